//! A short run of what `tests/run task-chaos` does for minutes.

use std::process::Command;

#[test]
fn a_fleet_under_a_nemesis_loses_no_task() {
    let ran = Command::new(env!("CARGO_BIN_EXE_task_chaos"))
        .args(["--seconds", "8"])
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&ran.stdout);
    let errors = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{told}\n{errors}");
    assert!(told.contains("doubled 0") && told.contains("0 violations"), "{told}");
}

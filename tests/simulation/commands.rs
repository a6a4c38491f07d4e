//! The long commands as a person meets them: words that cannot be meant, nobody who reads, no room, and no server on the machine.

use std::fs::File;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Output, Stdio};

const SIMULATE: &str = env!("CARGO_BIN_EXE_simulate");
const CHAOS: &str = env!("CARGO_BIN_EXE_chaos_fleet");

fn run(program: &str, words: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(program).args(words).output().unwrap();
    told(&output)
}

fn told(output: &Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn words_that_cannot_be_meant_are_named() {
    let month = "--seconds wants 20 to 2678400";
    for (program, words, wanted) in [
        (
            SIMULATE,
            &["--seconds", "18446744073709551615"][..],
            "--seconds wants 1 to",
        ),
        (SIMULATE, &["--seconds", "0"], "--seconds wants 1 to"),
        (SIMULATE, &["--year", "--seconds"], "`--seconds` is not understood here"),
        (
            SIMULATE,
            &["--mutants", "NoMargin", "NoMargin"],
            "is not understood here",
        ),
        (SIMULATE, &["--help", "me"], "`me` is not understood here"),
        (CHAOS, &["--seconds", "5"], month),
        (CHAOS, &["--seconds", "18446744073709551615"], month),
        (CHAOS, &["--seconds"], "--seconds wants a number"),
        (CHAOS, &["--seed", "x"], "--seed wants a number, not `x`"),
        (CHAOS, &["--foo"], "`--foo` is not understood"),
    ] {
        let (code, out, error) = run(program, words);
        assert_eq!((code, out.as_str()), (Some(2), ""), "{words:?}: {error}");
        assert!(error.contains(wanted), "{words:?}: `{error}` has no `{wanted}`");
    }
    for program in [SIMULATE, CHAOS] {
        let (code, out, error) = run(program, &["--help"]);
        assert!(
            code == Some(0) && out.starts_with("usage: ") && error.is_empty(),
            "{out}{error}"
        );
    }
}

/// Whoever looks at the first lines goes away, and so must the run: not as a fault in the code would be told.
#[test]
fn what_nobody_can_hear_ends_with_one_line() {
    let full = File::options().write(true).open("/dev/full").unwrap();
    let output = Command::new(SIMULATE)
        .args(["--one", "--seed", "3"])
        .stdout(full)
        .output()
        .unwrap();
    let (code, _, error) = told(&output);
    assert_ne!(code, Some(0));
    assert_eq!(error.lines().count(), 1, "{error}");
    assert!(error.starts_with("stopped: what it tells cannot be written"), "{error}");

    let mut child = Command::new(CHAOS)
        .args(["--seconds", "20"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // It tells its seed at once, and the rest to nobody.
    drop(child.stdout.take());
    let (code, _, error) = told(&child.wait_with_output().unwrap());
    assert_ne!(code, Some(0));
    assert!(error.starts_with("stopped: what it tells cannot be written"), "{error}");
    assert!(!error.contains("panicked"), "{error}");
    // Where its files are, if it has come so far: they are kept for whoever wants to know.
    if let Some((_, folder)) = error.split_once("the files are kept in ") {
        std::fs::remove_dir_all(folder.trim()).unwrap();
    }
}

/// A search path with what the script itself needs, and a `cargo` that tells what it was asked for.
fn bare(folder: &Path) {
    let path = std::env::var_os("PATH").unwrap();
    for name in ["bash", "dirname", "sed"] {
        let found = std::env::split_paths(&path)
            .map(|at| at.join(name))
            .find(|at| at.exists());
        symlink(found.unwrap(), folder.join(name)).unwrap();
    }
    let cargo = folder.join("cargo");
    std::fs::write(&cargo, "#!/bin/sh\necho cargo \"$@\"\n").unwrap();
    std::fs::set_permissions(&cargo, std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn what_needs_no_server_asks_for_none() {
    let folder = tempfile::tempdir().unwrap();
    bare(folder.path());
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/run");
    let run = |words: &[&str], server: Option<&str>| {
        let mut command = Command::new(folder.path().join("bash"));
        command.arg(script).args(words).env("PATH", folder.path());
        match server {
            Some(server) => command.env("LEADER_TEST_REDIS_SERVER", server),
            None => command.env_remove("LEADER_TEST_REDIS_SERVER"),
        };
        told(&command.output().unwrap())
    };
    for words in [&["simulate", "--seconds", "1"][..], &["mutants", "NoMargin"]] {
        let (code, out, error) = run(words, None);
        assert_eq!(code, Some(0), "{words:?}: {error}");
        assert!(
            out.starts_with("cargo run ") && out.trim_end().ends_with(words[1..].last().unwrap()),
            "{out}"
        );
    }
    let (code, _, error) = run(&["chaos"], None);
    assert!(code == Some(1) && error.contains("redis-server is missing"), "{error}");
    let (code, _, error) = run(&["chaos"], Some("/nowhere/redis-server"));
    assert_eq!(code, Some(1));
    assert!(
        error.contains("/nowhere/redis-server cannot be run: name a binary"),
        "{error}"
    );
}

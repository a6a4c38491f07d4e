//! A short run of `tests/run chaos`: five processes, a nemesis, a judge.

use std::process::Command;

use crate::rig::turn;

/// How long, in seconds: most of it faults, then a calm.
const SECONDS: &str = "24";
/// What must have happened at least, on whatever machine: otherwise hardly anything was judged.
const FAULTS: u64 = 8;
const CHANGES: u64 = 5;
const STARTS: u64 = 30;

/// The number that follows a word.
fn number_after(text: &str, word: &str) -> u64 {
    let rest = text
        .split_once(word)
        .unwrap_or_else(|| panic!("no `{word}` in {text}"))
        .1;
    let digits: String = rest.trim_start().chars().take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap()
}

#[tokio::test]
async fn a_nemesis_finds_no_two_believers_and_no_tick_without_an_outcome() {
    let _turn = turn().await;
    let mut run = Command::new(env!("CARGO_BIN_EXE_chaos_fleet"));
    let output = run.args(["--seconds", SECONDS]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    println!("{text}");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let faults = text.lines().find_map(|line| line.split_once(" faults:")).unwrap().0;
    assert!(faults.parse::<u64>().unwrap() >= FAULTS);
    assert!(number_after(&text, "leader changes:") >= CHANGES);
    assert!(number_after(&text, "bodies started:") >= STARTS);
    assert!(text.trim_end().ends_with(" passed, 0 failed"));
}

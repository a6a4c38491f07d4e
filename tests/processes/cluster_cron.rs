//! The fleet in one process.

use std::process::{Command, Output};
use std::time::Duration;

use serde_json::Value;

use crate::programs::{Process, program};

/// Runs it to its end and gives the one line it wrote.
async fn run(arguments: &[&str]) -> Value {
    let mut process = Process::start("cluster_cron", Command::new(program("cluster_cron")).args(arguments));
    let status = process.ended(Duration::from_secs(40)).await;
    let line = process
        .says(Duration::from_secs(5), "a line", |line| line.starts_with('{'))
        .await;
    println!("{line}");
    assert!(status.success(), "{status}: {line}");
    assert_eq!(process.out(), [line.as_str()], "more than one line on stdout");
    serde_json::from_str(&line).expect("JSON")
}

fn number(of: &Value) -> u64 {
    of.as_u64().unwrap_or_else(|| panic!("{of} is no number"))
}

/// Every due tick has one outcome or is pending, and none ran twice or was missed.
fn adds_up(told: &Value) {
    let outcomes = told["outcomes"].as_object().expect("outcomes");
    let sum = |ran: bool| -> u64 {
        let of = outcomes.iter().filter(|(word, _)| word.starts_with("ran.") == ran);
        of.map(|(_, count)| number(count)).sum()
    };
    assert_eq!(number(&told["ticks_ran"]), sum(true), "{told}");
    assert_eq!(
        number(&told["ticks_due"]),
        sum(true) + sum(false) + number(&told["pending"]),
        "{told}"
    );
    assert_eq!((number(&told["duplicates"]), number(&told["missed"])), (0, 0), "{told}");
    assert!(
        outcomes.get("ran.not_started").is_none(),
        "a claimed tick was not started: {told}"
    );
}

#[tokio::test]
async fn a_killed_leader_and_a_step_down_cost_no_tick() {
    let told = run(&["--seconds", "12", "--script", "4s:kill-leader,8s:step-down", "--json"]).await;
    adds_up(&told);
    assert!(number(&told["handovers"]) >= 2, "{told}");
    assert!(number(&told["ticks_due"]) >= 15, "{told}");
    let states: Vec<_> = told["instances"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|of| &of["state"])
        .collect();
    assert_eq!(states.iter().filter(|state| **state == "killed").count(), 1, "{told}");
    for group in told["groups"].as_array().expect("a list") {
        assert!(group["leader"].is_string() && number(&group["term"]) > 0, "{told}");
    }
}

/// Groups that claim at the same moment do not get into each other's way.
#[tokio::test]
async fn without_faults_every_tick_runs() {
    let told = run(&["--seconds", "7", "--json"]).await;
    adds_up(&told);
    assert_eq!(number(&told["handovers"]), 0, "{told}");
    assert_eq!(
        told["outcomes"].as_object().map(|all| all.keys().collect::<Vec<_>>()),
        Some(vec![&"ran.ok".to_owned()]),
        "{told}"
    );
}

#[tokio::test]
async fn a_stop_a_freeze_and_a_restart_cost_no_tick() {
    let script = "2s:freeze-leader=3s@cleanup,6s:stop-leader,8s:restart,9s:stop-leader@reports";
    let told = run(&["--seconds", "13", "--script", script, "--json"]).await;
    adds_up(&told);
    assert!(number(&told["handovers"]) >= 3, "{told}");
}

#[test]
fn a_bad_command_line_is_refused() {
    for (arguments, why) in [
        (&["--secs", "3"][..], "`--secs` is not known"),
        (&["--seconds", "soon"], "a whole number of seconds"),
        (&["--script", "4s:explode"], "`explode` is no verb"),
        (&["--script", "4s:kill-leader@nowhere"], "no group `nowhere`"),
        (&["--script", "kill-leader"], "TIME:VERB"),
        (&["--seconds", "3", "--script", "4s:restart"], "not before the end"),
    ] {
        let Output { status, stderr, stdout } = Command::new(program("cluster_cron"))
            .args(arguments)
            .output()
            .expect("started");
        let message = String::from_utf8_lossy(&stderr);
        assert_eq!(status.code(), Some(2), "{arguments:?}: {message}");
        assert!(message.contains(why), "{arguments:?}: {message}");
        assert!(stdout.is_empty(), "{arguments:?}");
    }
}

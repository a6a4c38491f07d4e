//! Tasks in the simulator: repeatable, done without faults, and lost by none.

use std::time::Duration;

use leader_core::testing::{Faults, Report, Simulation};
use leader_core::{Task, TaskStatus, Timing, task};

const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

#[task(name = "proof.long", queue = "proof", retries = 1, backoff = "1s", timeout = "1m")]
async fn long(fails: bool, task: Task) -> Result<(), &'static str> {
    tokio::time::sleep(secs(20)).await;
    if fails && task.attempt() == 1 {
        Err("once")
    } else {
        Ok(())
    }
}

#[task(name = "proof.brief", queue = "other")]
async fn brief() {}

fn fleet(seed: u64) -> Simulation {
    Simulation::new()
        .seed(seed)
        .task::<long>(true, secs(15))
        .task::<brief>((), secs(5))
        .configure(|bootstrap| bootstrap.tasks(|tasks| tasks.shards("proof", 2)))
        .timing(Timing::from_ttl(secs(5)))
        .lasting(secs(1_200))
}

/// How many have this status, by name.
fn count(report: &Report, task: &str, status: TaskStatus) -> u64 {
    report.tasks[task].get(&status).copied().unwrap_or(0)
}

#[test]
fn the_same_seed_gives_the_same_log_of_tasks() {
    let hard = |seed| {
        let faults = Faults::fierce().and_loss(1.0);
        let report = fleet(seed).faults(faults).logged().run();
        report.assert_sound();
        report.log.unwrap()
    };
    let (one, two) = (hard(42), hard(42));
    assert!(one.lines().filter(|line| line.contains(" Task(")).count() > 1_000);
    let differing = one.lines().zip(two.lines()).find(|(a, b)| a != b);
    assert!(one == two, "{differing:#?}");
    assert!(hard(43) != one);
}

#[test]
fn without_faults_every_task_is_done() {
    let report = fleet(1).run();
    println!("{report}");
    report.assert_sound();
    for (task, at_least) in [("proof.long", 50), ("proof.brief", 150)] {
        let (done, cancelled) = (
            count(&report, task, TaskStatus::Done),
            count(&report, task, TaskStatus::Cancelled),
        );
        let all: u64 = report.tasks[task].values().sum();
        assert_eq!(done + cancelled, all, "{task}: {:?}", report.tasks);
        assert!(done > at_least, "{task}: {:?}", report.tasks);
    }
    // Each of the long ones twice.
    let done = |task| count(&report, task, TaskStatus::Done);
    assert!(
        report.attempts >= 2 * done("proof.long") + done("proof.brief"),
        "{report}"
    );
}

#[test]
fn under_faults_none_is_lost() {
    for seed in 1..=4 {
        let report = fleet(seed).faults(Faults::fierce()).run();
        report.assert_sound();
        assert!(count(&report, "proof.long", TaskStatus::Done) > 20, "{report}");
    }
}

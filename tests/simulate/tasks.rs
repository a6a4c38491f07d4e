//! Tasks of every kind: brief and long ones, some that fail, some that hang, and one of which few run at once.

use std::time::Duration;

use leader_core::testing::Simulation;
use leader_core::{Task, task};

use crate::jobs::fails_at;

/// Takes so long, in parts, so that it is polled.
async fn takes(seconds: u64) {
    for _ in 0..4 {
        tokio::time::sleep(Duration::from_millis(250 * seconds)).await;
    }
}

/// At about every other attempt, whatever the others did.
fn fails(task: &Task) -> Result<(), String> {
    let stored = task.enqueued_at().as_millisecond().unsigned_abs();
    if fails_at(stored, task.attempt()) {
        return Err("by chance".to_owned());
    }
    Ok(())
}

#[task(name = "tasks.brief", queue = "one")]
async fn brief(_number: u32, _task: Task) {}

#[task(name = "tasks.seconds", queue = "one", timeout = "1m")]
async fn seconds(_task: Task) {
    takes(4).await;
}

/// Longer than most leases.
#[task(name = "tasks.long", queue = "two", timeout = "2m")]
async fn long(_task: Task) {
    takes(45).await;
}

#[task(
    name = "tasks.flaky",
    queue = "two",
    retries = 2,
    backoff = "1s..10s",
    timeout = "1m"
)]
async fn flaky(task: Task) -> Result<(), String> {
    takes(2).await;
    fails(&task)
}

#[task(name = "tasks.hangs", queue = "two", retries = 1, backoff = "1s", timeout = "10s")]
async fn hangs(task: Task) {
    if fails(&task).is_err() {
        std::future::pending::<()>().await;
    }
    takes(3).await;
}

#[task(name = "tasks.narrow", queue = "one", concurrency = 2, timeout = "1m")]
async fn narrow(_task: Task) {
    takes(6).await;
}

type Add = fn(Simulation) -> Simulation;

const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// Each of them, to be given to a simulation.
pub(crate) const ALL: [(&str, Add); 6] = [
    ("brief", |simulation| simulation.task::<brief>(1_u32, secs(20))),
    ("seconds", |simulation| simulation.task::<seconds>((), secs(30))),
    ("long", |simulation| simulation.task::<long>((), secs(60))),
    ("flaky", |simulation| simulation.task::<flaky>((), secs(45))),
    ("hangs", |simulation| simulation.task::<hangs>((), secs(60))),
    ("narrow", |simulation| simulation.task::<narrow>((), secs(30))),
];

//! Tasks of an instance: stored ahead of time, and from the instant they are due until all have been executed.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use leader_core::{Instance, task};
use leader_tests::RedisServer;

use crate::meter::rate;

static EXECUTED: AtomicU32 = AtomicU32::new(0);

/// A namespace that no other round has.
pub(crate) fn fresh() -> String {
    static LAST: AtomicU32 = AtomicU32::new(0);
    format!("bench-{}", LAST.fetch_add(1, Ordering::Relaxed))
}

#[task(queue = "at-once")]
async fn nothing(_payload: String) {
    EXECUTED.fetch_add(1, Ordering::Relaxed);
}

/// An instance that works, with as much room as is of use.
pub(crate) async fn instance(url: String, namespace: String) -> Instance {
    leader_core::bootstrap(url)
        .namespace(namespace)
        .first_start(true)
        .tasks(|tasks| tasks.concurrency(1_000))
        .await
        .expect("it starts")
}

pub(crate) async fn run(server: &RedisServer, tasks: u32) -> f64 {
    let instance = instance(server.url(), fresh()).await;
    EXECUTED.store(0, Ordering::SeqCst);
    let due = Timestamp::now() + SignedDuration::from_secs(3);
    let payloads = std::iter::repeat_n("x".repeat(98), tasks as usize);
    let stored = instance.tasks().enqueue_many::<nothing, _>(payloads).at(due).await;
    assert_eq!(stored.expect("they are stored").len(), tasks as usize);
    let left = Duration::try_from(due.duration_since(Timestamp::now())).expect("they are stored in time");
    tokio::time::sleep(left).await;
    let began = Instant::now();
    while EXECUTED.load(Ordering::Relaxed) < tasks {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let took = began.elapsed();
    instance.shutdown().await;
    rate(tasks, took)
}

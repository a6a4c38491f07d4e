//! Two million overdue tasks after an outage of every dispatcher: three processes drain them.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use leader_core::task;
use leader_tests::RedisServer;

use crate::meter::rate;

/// How many are overdue.
const OVERDUE: u32 = 2_000_000;
/// How many processes drain them.
const PROCESSES: usize = 3;
/// How many one call stores.
const BATCH: u32 = 20_000;
const NAMESPACE: &str = "outage";

#[task(queue = "outage")]
async fn overdue(_payload: String) {}

/// The most memory that a process has had, in MiB.
fn peak(child: &Child) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).expect("it runs");
    let line = status
        .lines()
        .find(|line| line.starts_with("VmHWM:"))
        .expect("Linux tells");
    let kib: u64 = line
        .split_whitespace()
        .nth(1)
        .expect("a number")
        .parse()
        .expect("a number");
    kib / 1024
}

pub(crate) async fn run() {
    let server = RedisServer::start().await;
    let producer = leader_core::bootstrap(server.url())
        .namespace(NAMESPACE)
        .service("bench")
        .first_start(true)
        .campaign(false)
        .tasks(|tasks| tasks.work(false))
        .await
        .expect("it starts");
    let tasks = producer.tasks();
    let payload = "x".repeat(98);
    for _ in 0..OVERDUE / BATCH {
        let payloads = std::iter::repeat_n(payload.clone(), BATCH as usize);
        tasks
            .enqueue_many::<overdue, _>(payloads)
            .await
            .expect("they are stored");
    }
    let before = tasks.figures("outage").await.expect("the server answers");
    println!(
        "{} tasks are overdue, and nobody dispatches: {} in streams",
        before.due, before.dispatched
    );
    let program = std::env::current_exe().expect("a program");
    let spawn = |number: usize| {
        let mut command = Command::new(&program);
        command.args(["worker", &format!("worker-{number}"), &server.url()]);
        command.stdin(Stdio::null()).spawn().expect("a process")
    };
    let began = Instant::now();
    let mut workers: Vec<Child> = (1..=PROCESSES).map(spawn).collect();
    let mut figures = before;
    while figures.counts.done < u64::from(OVERDUE) {
        tokio::time::sleep(Duration::from_millis(100)).await;
        figures = tasks.figures("outage").await.expect("the server answers");
        assert!(began.elapsed() < Duration::from_secs(600), "not drained: {figures:?}");
    }
    let took = began.elapsed();
    let peaks: Vec<u64> = workers.iter().map(peak).collect();
    for worker in &mut workers {
        let _ = worker.kill();
        let _ = worker.wait();
    }
    println!(
        "done {} in {took:.1?} ({:.0} a second), attempts {}, late results {}; the most memory of each process: {peaks:?} MiB",
        figures.counts.done,
        rate(OVERDUE, took),
        figures.counts.started,
        figures.counts.late,
    );
    assert_eq!((figures.counts.started, figures.counts.late), (u64::from(OVERDUE), 0));
    assert!(peaks.iter().all(|mib| *mib < 200), "{peaks:?}");
    producer.shutdown().await;
}

/// One of the processes.
pub(crate) async fn work(id: &str, url: &str) {
    let instance = leader_core::bootstrap(url)
        .namespace(NAMESPACE)
        .service("bench")
        .instance_id(id)
        .first_start(true)
        .tasks(|tasks| tasks.concurrency(1_000))
        .await
        .expect("it starts");
    instance.run_until_shutdown().await.expect("signals can be heard");
}

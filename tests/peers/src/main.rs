//! Other queues on Redis: tasks that wait, until all have been executed. `leader-peers PEER PORT TASKS` tells the seconds.
//!
//! All are stored before the clock starts, with a payload of 100 bytes, and may be run at once: nobody has to wait for a timer. What a peer
//! can be told of batches and concurrency was tried, and the fastest is here.

mod apalis_redis;
mod oxana;
mod rsmq;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

static EXECUTED: AtomicUsize = AtomicUsize::new(0);

/// What every body does.
fn executed() {
    EXECUTED.fetch_add(1, Ordering::Relaxed);
}

fn payload() -> String {
    "x".repeat(100)
}

/// A number to try: the variable of the environment, or what was found to be the fastest.
fn tuned(name: &str, best: usize) -> usize {
    std::env::var(name).map_or(best, |value| value.parse().expect("a number"))
}

/// How long the workers take.
async fn timed(tasks: usize, workers: impl Future<Output = ()> + Send + 'static) -> Duration {
    let began = Instant::now();
    let workers = tokio::spawn(workers);
    while EXECUTED.load(Ordering::Relaxed) < tasks {
        assert!(
            !workers.is_finished(),
            "the workers ended before they had run all {tasks}"
        );
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    began.elapsed()
}

#[tokio::main(worker_threads = 2)]
async fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let [peer, port, tasks] = words[..] else {
        panic!("write leader-peers PEER PORT TASKS")
    };
    let port: u16 = port.parse().expect("a port");
    let tasks: usize = tasks.parse().expect("a number of tasks");
    let took = match peer {
        "apalis" => apalis_redis::run(port, tasks).await,
        "oxana" => oxana::run(port, tasks).await,
        "rsmq-batch" => rsmq::in_batches(port, tasks).await,
        "rsmq-single" => rsmq::one_at_a_time(port, tasks).await,
        other => panic!("unknown: `{other}`; write apalis, oxana, rsmq-batch or rsmq-single"),
    };
    println!("seconds {}", took.as_secs_f64());
    // The workers would wait for more.
    std::process::exit(0);
}

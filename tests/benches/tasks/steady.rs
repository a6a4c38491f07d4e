//! A steady flow: how late the bodies begin, and what it costs.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use leader_core::{Task, task};
use leader_tests::RedisServer;

use crate::at_once::{fresh, instance};
use crate::meter::{of_the_server, own, per_mille};

/// Tasks a second.
const RATE: u32 = 5_000;

static LATE: Mutex<Vec<Duration>> = Mutex::new(Vec::new());

#[task(queue = "steady")]
async fn note(_payload: String, task: Task) {
    let late = Timestamp::now().duration_since(task.due_at());
    // The store counts whole milliseconds.
    let late = Duration::try_from(late).unwrap_or_default();
    LATE.lock().expect("nobody panics with it").push(late);
}

pub(crate) async fn run(server: &RedisServer, span: Duration) {
    for (what, ahead) in [("at once", Duration::ZERO), ("2 s later", Duration::from_secs(2))] {
        flow(server, span, what, ahead).await;
    }
}

async fn flow(server: &RedisServer, span: Duration, what: &str, ahead: Duration) {
    LATE.lock().expect("nobody panics with it").clear();
    let instance = instance(server.url(), fresh()).await;
    let tasks = instance.tasks();
    let (cpu, redis) = (own(), of_the_server(server).await);
    let began = Instant::now();
    let mut ticker = tokio::time::interval(Duration::from_millis(1));
    let mut storing = tokio::task::JoinSet::new();
    let mut stored = 0_u32;
    while began.elapsed() < span {
        ticker.tick().await;
        // One by one, as many as are due by now.
        let millis = u32::try_from(began.elapsed().as_millis()).expect("some seconds");
        let wanted = millis * (RATE / 1_000);
        while stored < wanted {
            stored += 1;
            let tasks = tasks.clone();
            storing.spawn(async move {
                let payload = "x".repeat(98);
                tasks
                    .enqueue::<note>(&payload)
                    .after(ahead)
                    .await
                    .expect("it is stored");
            });
        }
        while storing.try_join_next().is_some() {}
    }
    storing.join_all().await;
    while LATE.lock().expect("nobody panics with it").len() < stored as usize {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let took = began.elapsed().as_secs_f64();
    let (cpu, redis) = ((own() - cpu) / took, (of_the_server(server).await - redis) / took);
    let mut late = std::mem::take(&mut *LATE.lock().expect("nobody panics with it"));
    late.sort_unstable();
    println!(
        "{RATE} tasks a second, one by one, due {what}: late by p50 {:?}, p99 {:?}, max {:?} (n = {stored}); {:.0} % of a core, and {:.0} % of Redis",
        per_mille(&late, 500),
        per_mille(&late, 990),
        per_mille(&late, 1_000),
        100.0 * cpu,
        100.0 * redis,
    );
    instance.shutdown().await;
}

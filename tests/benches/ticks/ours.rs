//! The leader under load.

use std::time::Duration;

use jiff::Timestamp;
use leader_core::{Embedded, Tick, bootstrap, leader_only};
use leader_tests::RedisServer;
use tokio::runtime::Runtime;

use crate::meter::{Figures, Lateness, Load, cpu, round_trips, server_cpu};

static LATENESS: Lateness = Lateness::new();

/// Copied by `__copies`: a thousand annotated functions would take the compiler most of a minute.
#[leader_only(every = "1s")]
async fn job(tick: Tick) {
    LATENESS.note(tick.scheduled_at(), tick.started_at());
}

/// Runs a leader on `server`, or on the embedded store.
pub fn run(runtime: &Runtime, server: Option<&RedisServer>, load: Load) -> Figures {
    runtime.block_on(async {
        let bootstrap = match server {
            Some(server) => {
                server.command(&["FLUSHALL"]).await;
                bootstrap(server.url())
            }
            None => bootstrap(Embedded::new()),
        };
        // The function itself is the first.
        let instance = bootstrap
            .first_start(true)
            .__copies::<job>(load.jobs - 1)
            .await
            .expect("the store is there");
        // The first seconds warm everything up.
        let from = until_second(Timestamp::now() + Duration::from_secs(2)).await;
        let began = (round_trips(), cpu(), read(server).await);
        until_second(from + Duration::from_secs(load.seconds)).await;
        let ended = (round_trips(), cpu(), read(server).await);
        let cpu = ended.1.saturating_sub(began.1);
        instance.shutdown().await;
        Figures {
            late: LATENESS.take(from, load.seconds),
            due: load.jobs as u64 * load.seconds,
            seconds: load.seconds,
            round_trips: Some(ended.0 - began.0),
            cpu,
            server_cpu: ended.2.zip(began.2).map(|(ended, began)| ended.saturating_sub(began)),
        }
    })
}

async fn read(server: Option<&RedisServer>) -> Option<Duration> {
    match server {
        Some(server) => Some(server_cpu(server).await),
        None => None,
    }
}

/// Waits until the middle of the second of `at`, when nothing is due; gives that second.
async fn until_second(at: Timestamp) -> Timestamp {
    let second = Timestamp::from_second(at.as_second()).expect("a time of today");
    let middle = second + Duration::from_millis(500);
    let left = Duration::try_from(middle.duration_since(Timestamp::now())).unwrap_or_default();
    tokio::time::sleep(left).await;
    second
}

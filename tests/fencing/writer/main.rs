//! A service for the tests `frozen` and `rerun`: its jobs write to three resources in two halves, the second by work that nobody can cancel.
//!
//! `fenced_writer <id> <redis url> <socket folder of PostgreSQL> <address of an HTTP server> <group> [retries]`. The second half waits until
//! the key `go:<id>` is there. Lines of JSON on stdout tell of each half.

mod half;

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use half::{Half, Resources, Written};
use leader_core::fencing::Fenced;
use leader_core::fencing::http::RequestFence;
use leader_core::{Event, Events, State, Tick, Timing, leader_only};
use redis::AsyncCommands;
use serde_json::json;
use tokio::sync::{Mutex, watch};
use tokio::task::JoinHandle;
use tokio_postgres::NoTls;

const TTL: Duration = Duration::from_millis(1_500);

/// What the jobs need.
#[derive(Clone)]
struct Work {
    to: Resources,
    may_go_on: watch::Receiver<bool>,
}

fn tell(fence: u64, half: &str, to: &str, written: &Written) {
    let refusal = written.as_ref().err().map(ToString::to_string);
    let is_fenced = written.as_ref().is_err_and(anyhow::Error::is::<Fenced>);
    println!(
        "{}",
        json!({ "half": half, "to": to, "fence": fence, "refusal": refusal, "is_fenced": is_fenced })
    );
}

/// Writes the first half, and gives what writes the second one: neither is within reach of whoever drops the body.
async fn begin(tick: &Tick, work: Work) -> (JoinHandle<()>, JoinHandle<()>) {
    let mut half = Half {
        fence: tick.fence(),
        sent: RequestFence::from(tick),
        text: format!("first half under {}", tick.fence()),
        to: work.to,
    };
    let fence = half.fence;
    tell(fence, "first", "database", &half.to_database().await);
    tell(fence, "first", "table", &half.to_guarded_table().await);
    tell(fence, "first", "redis", &half.to_redis().await);
    tell(fence, "first", "server", &half.to_server());
    half.text = format!("second half under {fence}");
    let (of_task, of_thread, may_go_on) = (half.clone(), half, work.may_go_on);
    let mut waits = may_go_on.clone();
    let task = tokio::spawn(async move {
        let _ = waits.wait_for(|go| *go).await;
        tell(fence, "second", "database", &of_task.to_database().await);
        tell(fence, "second", "table", &of_task.to_guarded_table().await);
        tell(fence, "second", "redis", &of_task.to_redis().await);
    });
    let thread = tokio::task::spawn_blocking(move || {
        while !*may_go_on.borrow() {
            std::thread::sleep(Duration::from_millis(1));
        }
        tell(fence, "second", "server", &of_thread.to_server());
    });
    (task, thread)
}

#[leader_only(group = "frozen", every = "1s")]
async fn publish(tick: Tick, State(work): State<Work>) -> anyhow::Result<()> {
    let (task, thread) = begin(&tick, work).await;
    task.await?;
    thread.await?;
    Ok(())
}

/// Due once in four years: a tick of it that is owed is all that its tests get. Tells of each of its polls.
#[leader_only(group = "rerun", cron = "0 0 29 2 *")]
async fn rerun(tick: Tick, State(work): State<Work>) -> anyhow::Result<()> {
    println!("begins {} as try {}", tick.fence(), tick.attempt());
    let (task, thread) = begin(&tick, work).await;
    while !task.is_finished() || !thread.is_finished() {
        println!("polled {}", tick.fence());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Ok(())
}

/// Tells what became of runs, as this instance sees it.
async fn follow(mut events: Events) {
    while let Ok(stamped) = events.recv().await {
        if let Event::Decided { outcome, fence, .. } = stamped.event {
            println!("decided {fence} as {outcome}");
        }
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let mut words = std::env::args().skip(1);
    let mut word = || {
        words
            .next()
            .context("fenced_writer <id> <redis url> <socket folder> <address> <group> [retries]")
    };
    let (id, url, folder, server, group) = (word()?, word()?, word()?, word()?.parse()?, word()?);
    let retries: u32 = word().map_or(Ok(0), |text| text.parse())?;
    let mut config = tokio_postgres::Config::new();
    config.host_path(folder).user("leader").dbname("postgres");
    let (database, connection) = config.connect(NoTls).await?;
    tokio::spawn(connection);
    let redis = redis::Client::open(url.clone())?
        .get_multiplexed_async_connection()
        .await?;
    let (go, may_go_on) = watch::channel(false);
    let (mut asking, key) = (redis.clone(), format!("go:{id}"));
    tokio::spawn(async move {
        while !matches!(asking.exists(&key).await, Ok(true)) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        go.send_replace(true);
        // Without it the receivers would take its end for an answer.
        go.closed().await;
    });
    let resources = Resources {
        database: Arc::new(Mutex::new(database)),
        redis,
        server,
    };
    let given = Work {
        to: resources,
        may_go_on,
    };
    let bootstrap = leader_core::bootstrap(url)
        .state(given)
        .namespace("frozen")
        .service("fenced_writer")
        .instance_id(id)
        .first_start(true)
        .campaign_only([group])
        .job("rerun", |job| job.retries(retries).backoff("100ms"))
        .timing(Timing::from_ttl(TTL));
    tokio::spawn(follow(bootstrap.events()));
    let instance = bootstrap.await?;
    println!("ready");
    instance.run_until_shutdown().await?;
    Ok(())
}

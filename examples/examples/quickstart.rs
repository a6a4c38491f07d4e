//! The README's snippet: a job, a gated function, one instance.
//!
//! Runs on the embedded store, or on the Redis that `LEADER_REDIS_URL` names.

use leader_core::{Embedded, State, Tick, leader_only};

#[derive(Clone)]
struct Db;

impl Db {
    async fn purge_before(&self, at: jiff::Timestamp, fence: u64) -> anyhow::Result<u64> {
        // Stands for a query.
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        println!("purging sessions that expired before {at}, with fence {fence}");
        Ok(3)
    }
}

/// Delete expired sessions. Runs on whichever instance leads the group `cleanup`.
#[leader_only(group = "cleanup", every = "3s")]
async fn purge_sessions(tick: Tick, State(db): State<Db>) -> anyhow::Result<u64> {
    db.purge_before(tick.scheduled_at(), tick.fence()).await
}

/// Not scheduled by us: callable from anywhere, runs only on the leader of `default`.
#[leader_only]
async fn send_digest(to: &str) -> anyhow::Result<()> {
    println!("digest sent to {to}");
    Ok(())
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    tracing_subscriber::fmt()
        .with_env_filter("info")
        .with_writer(std::io::stderr)
        .init();
    let bootstrap = match std::env::var("LEADER_REDIS_URL") {
        Ok(url) => leader_core::bootstrap(url),
        Err(_) => leader_core::bootstrap(Embedded::new()),
    };
    let instance = bootstrap.state(Db).await?;
    match send_digest("ops@example.org").await {
        Ok(sent) => sent?,
        Err(skipped) => println!("{skipped}"),
    }
    println!("press Ctrl-C to stop");
    instance.run_until_shutdown().await?;
    Ok(())
}

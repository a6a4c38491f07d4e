//! What the fleet runs, and the bodies' own log of it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use leader_core::{State, Tick, leader_only};

/// The groups of the jobs below.
pub const GROUPS: [&str; 3] = ["default", "cleanup", "reports"];

/// Every start of a body, written by the bodies themselves: by job and planned instant, the instants at which it began.
#[derive(Debug, Default)]
pub struct Log(Mutex<BTreeMap<(String, Timestamp), Vec<Timestamp>>>);

impl Log {
    /// Notes a start.
    pub fn started(&self, job: &str, scheduled_at: Timestamp, started_at: Timestamp) {
        let mut starts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        starts
            .entry((job.to_owned(), scheduled_at))
            .or_default()
            .push(started_at);
    }

    /// How late a tick's body began.
    pub fn lag(&self, job: &str, scheduled_at: Timestamp) -> Option<Duration> {
        let starts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let first = starts.get(&(job.to_owned(), scheduled_at))?.first()?;
        // A wall clock that was set back in between makes no lag.
        Some(Duration::try_from(first.duration_since(scheduled_at)).unwrap_or_default())
    }

    /// How many starts were one too many.
    pub fn duplicates(&self) -> usize {
        let starts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        starts.values().map(|starts| starts.len() - 1).sum()
    }
}

/// What each instance gives to its bodies; they all write to one log.
#[derive(Clone, Debug)]
pub struct Site {
    pub log: Arc<Log>,
}

impl Site {
    /// Stands for the work of a job.
    async fn work(&self, tick: &Tick, millis: u64) {
        self.log
            .started(tick.job().as_str(), tick.scheduled_at(), tick.started_at());
        tokio::time::sleep(Duration::from_millis(millis)).await;
    }
}

// A tick may be as late as its period, and then simply runs: no job is due more often than a new leader is found.

#[leader_only(every = "2s")]
async fn collect_usage(tick: Tick, State(site): State<Site>) {
    site.work(&tick, 40).await;
}

#[leader_only(cron = "*/3 * * * * *")]
async fn refresh_prices(tick: Tick, State(site): State<Site>) {
    site.work(&tick, 120).await;
}

#[leader_only(group = "cleanup", every = "2s")]
async fn purge_sessions(tick: Tick, State(site): State<Site>) {
    site.work(&tick, 80).await;
}

#[leader_only(group = "reports", every = "3s")]
async fn mail_report(tick: Tick, State(site): State<Site>) {
    site.work(&tick, 250).await;
}

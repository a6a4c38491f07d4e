//! Numbers of one instance for Prometheus: counted where things happen, read at a scrape.
//!
//! Events and measurements go to a [`Meter`] at once, so that nothing of them lags; a scrape copies what is counted and writes it as
//! text afterwards, so that whoever counts never waits for it. Without the feature `metrics` nobody counts.

#[cfg(feature = "metrics")]
mod exposition;
#[cfg(feature = "metrics")]
mod histogram;
mod measured;
mod metered;
#[cfg(feature = "metrics")]
mod numbers;
#[cfg(feature = "metrics")]
pub(crate) mod table;

#[cfg(feature = "metrics")]
use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;

#[cfg(feature = "metrics")]
pub(crate) use exposition::{OPENMETRICS, Reading, TEXT};
#[cfg(feature = "tasks")]
pub(crate) use measured::TaskResult;
#[cfg(all(feature = "metrics", feature = "tasks"))]
pub(crate) use measured::Waiting;
pub(crate) use measured::{Measured, MeteredJob, RenewalOutcome};
pub(crate) use metered::Metered;

use crate::event::Event;
use crate::names::{GroupName, JobName, QueueName};

/// Counts for one instance.
#[derive(Debug)]
pub(crate) struct Meter {
    #[cfg(feature = "metrics")]
    numbers: Mutex<numbers::Numbers>,
}

#[cfg(feature = "metrics")]
impl Meter {
    /// Everything that is known before anything has happened starts at 0.
    pub(crate) fn new(groups: &[GroupName], jobs: Vec<MeteredJob>, queues: Vec<QueueName>) -> Self {
        let numbers = Mutex::new(numbers::Numbers::new(groups, jobs, queues));
        Self { numbers }
    }

    /// Counts an event that is told `now`: by the fleet's time, if that is known.
    pub(crate) fn hear(&self, event: &Event, now: Timestamp, fleet: bool) {
        self.numbers().hear(event, now, fleet);
    }

    /// The fleet's time is known from now on: what passes is counted.
    pub(crate) fn begin(&self, now: Timestamp) {
        self.numbers().begin(now);
    }

    pub(crate) fn measure(&self, measured: Measured<'_>) {
        self.numbers().measure(measured);
    }

    /// These jobs made at run time are run here, each by a handler.
    pub(crate) fn know(&self, made: impl Iterator<Item = (JobName, JobName)>) {
        self.numbers().know(made);
    }

    /// What has been counted, and what time alone has changed by `now`.
    pub(crate) fn read(&self, now: Timestamp, fleet: bool) -> numbers::Numbers {
        let mut numbers = self.numbers();
        numbers.look(now, fleet);
        numbers.clone()
    }

    fn numbers(&self) -> MutexGuard<'_, numbers::Numbers> {
        // Nothing panics while it holds this.
        self.numbers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(not(feature = "metrics"))]
#[allow(clippy::unused_self, clippy::needless_pass_by_value, reason = "nobody counts")]
impl Meter {
    pub(crate) fn new(_: &[GroupName], _: Vec<MeteredJob>, _: Vec<QueueName>) -> Self {
        Self {}
    }

    pub(crate) fn hear(&self, _: &Event, _: Timestamp, _: bool) {}

    pub(crate) fn begin(&self, _: Timestamp) {}

    pub(crate) fn measure(&self, _: Measured<'_>) {}

    pub(crate) fn know(&self, _: impl Iterator<Item = (JobName, JobName)>) {}
}

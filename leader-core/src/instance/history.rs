//! A job's past: its records, and what became of one instant.

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;

use jiff::Timestamp;
use tokio::sync::oneshot;

use super::Instance;
use super::lookup::{self, NoTicks};
use super::schedules;
use super::status::LedgerError;
use crate::job::outcome::{Outcome, Ran};
use crate::job::record::Job;
use crate::job::tick::Origin;
use crate::runtime::config::JobSpec;
use crate::runtime::engine::{Errand, Request};
use crate::store::explain::{self, Explanation, Question};
use crate::store::{JobLedger, LedgerRecord};

/// A question for a job's records, newest first; made by [`Instance::history`]. Await it.
#[derive(Clone, Debug)]
#[must_use = "nothing is asked before it is awaited"]
pub struct History {
    instance: Instance,
    job: String,
    filter: Filter,
}

#[derive(Clone, Debug, Default)]
struct Filter {
    newest: Option<usize>,
    before: Option<Timestamp>,
    outcomes: Vec<Outcome>,
    failures: bool,
    origin: Option<Origin>,
}

impl History {
    /// At most so many, the newest.
    pub fn newest(mut self, count: usize) -> Self {
        self.filter.newest = Some(count);
        self
    }

    /// Only ticks before an instant; a span that reaches it is left out.
    pub fn before(mut self, at: Timestamp) -> Self {
        self.filter.before = Some(at);
        self
    }

    /// Only this outcome; said several times, any of them.
    pub fn outcome(mut self, outcome: Outcome) -> Self {
        self.filter.outcomes.push(outcome);
        self
    }

    /// Only runs that ended badly: with an error, a panic, by their `timeout`, lost or fenced.
    pub fn failures(mut self) -> Self {
        self.filter.failures = true;
        self
    }

    /// Only runs of this origin. Ticks that did not run are of the schedule's.
    pub fn origin(mut self, origin: Origin) -> Self {
        self.filter.origin = Some(origin);
        self
    }
}

impl Filter {
    /// Those that are asked for; the records come newest first.
    fn keep(&self, mut records: Vec<LedgerRecord>) -> Vec<LedgerRecord> {
        records.retain(|record| self.wants(record));
        records.truncate(self.newest.unwrap_or(usize::MAX));
        records
    }

    fn wants(&self, record: &LedgerRecord) -> bool {
        let in_time = self.before.is_none_or(|before| record.last < before);
        let outcome = self.outcomes.is_empty() || self.outcomes.contains(&record.outcome);
        let failure = !self.failures || is_failure(record.outcome);
        in_time && outcome && failure && self.origin.is_none_or(|origin| record.origin == origin)
    }
}

fn is_failure(outcome: Outcome) -> bool {
    matches!(
        outcome,
        Outcome::Ran(Ran::Error | Ran::Panic | Ran::TimedOut | Ran::Lost) | Outcome::Fenced
    )
}

impl IntoFuture for History {
    type Output = Result<Vec<LedgerRecord>, LedgerError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    /// Cancel safe.
    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let ledger = self.instance.ledger(&self.job).await?;
            Ok(self.filter.keep(ledger.records))
        })
    }
}

impl Instance {
    /// A job and what the store has recorded of it.
    pub(super) async fn located(&self, job: &str) -> Result<(Arc<JobSpec>, JobLedger), LedgerError> {
        let (shared, job) = (Arc::clone(&self.shared), job.to_owned());
        if let Err(live @ NoTicks::WhileLeading { .. }) = lookup::scheduled(&shared, &job) {
            return Err(live.into());
        }
        let (answer, read) = oneshot::channel();
        self.request(Request::Errand(Errand(Box::new(move |store| {
            Box::pin(async move {
                let _ = answer.send(schedules::located(&shared, &*store, &job).await);
            })
        }))));
        let located = read.await.map_err(|_| LedgerError::Stopped)?;
        Ok(located.map_err(LedgerError::Store)??)
    }

    /// The records of a job, newest first: what became of its ticks, and its runs of other origins. Whoever leads; the job must be this
    /// instance's.
    ///
    /// ```standalone_crate
    /// use leader_core::{Embedded, leader_only};
    ///
    /// #[leader_only(every = "1h")]
    /// async fn purge_sessions() {}
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let instance = leader_core::bootstrap(Embedded::new()).await?;
    /// for record in instance.history::<purge_sessions>().failures().newest(20).await? {
    ///     println!("{} {} on {}: {}", record.first, record.outcome, record.instance, record.error);
    /// }
    /// # instance.shutdown().await;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Of the future: [`LedgerError`], when the job is not this instance's or the store does not answer.
    pub fn history<J: Job>(&self) -> History {
        self.history_of(J::NAME)
    }

    /// The records of a job by its name; as [`history`](Self::history).
    pub fn history_of(&self, job: impl Into<String>) -> History {
        History {
            instance: self.clone(),
            job: job.into(),
            filter: Filter::default(),
        }
    }

    /// Why a job ran at an instant, or did not: by the store's ledger, the schedule that was in force then, who paused it, and what this
    /// instance knows of the group's leader. Two questions to the store at once, whoever leads. Cancel safe.
    ///
    /// ```standalone_crate
    /// use leader_core::{Embedded, leader_only};
    ///
    /// #[leader_only(cron = "0 9 * * *")]
    /// async fn send_report() {}
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let instance = leader_core::bootstrap(Embedded::new()).await?;
    /// let why = instance.explain("send_report", "2026-01-01T09:30:00Z".parse()?).await?;
    /// assert!(why.to_string().ends_with("the nearest are 2026-01-01T09:00:00Z and 2026-01-02T09:00:00Z."));
    /// # instance.shutdown().await;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`LedgerError`], when the job is not this instance's or the store does not answer.
    pub async fn explain(&self, job: &str, at: Timestamp) -> Result<Explanation, LedgerError> {
        let (spec, ledger) = self.located(job).await?;
        let (answer, read) = oneshot::channel();
        let group = spec.group.clone();
        self.request(Request::Errand(Errand(Box::new(move |store| {
            Box::pin(async move {
                let _ = answer.send(store.control(&group).await);
            })
        }))));
        let read = read.await.map_err(|_| LedgerError::Stopped)?;
        let control = read.map_err(LedgerError::Store)?;
        let status = self
            .shared
            .gates
            .get(spec.group.as_str())
            .map(|gate| gate.status().borrow().clone());
        Ok(explain::explain(&Question {
            job: &spec.name,
            group: &spec.group,
            at,
            now: self.shared.fleet_now(),
            rule: &spec.rule,
            ledger: &ledger,
            control: &control,
            leader: status.as_ref().and_then(|status| status.leader.as_deref()),
            leads_since: status
                .as_ref()
                .filter(|status| status.leader.is_some())
                .and_then(|status| status.since),
            anywhere: spec.is_unled(),
        }))
    }
}

#[cfg(test)]
mod tests;

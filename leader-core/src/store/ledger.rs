//! What the store has recorded of a job.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;

use crate::job::outcome::{Outcome, Ran};
use crate::job::tick::Origin;
use crate::names::Holder;
use crate::store::coverage::Absence;
use crate::store::schedules::{EarlierSchedule, StoredSchedule};
use crate::store::tries::Pausing;

/// How many records of runs, and as many of ticks that did not run, are kept for each job unless it is said otherwise.
pub const KEPT: usize = 1_000;

/// The most that may be asked to be kept of each.
pub(crate) const MOST_KEPT: usize = 100_000;

/// How much of each job's past is kept; given to [`Bootstrap::history`](crate::Bootstrap::history).
///
/// Runs, and ticks that did not run, have bounds of their own, so that a job that is skipped often does not lose the records of its runs.
/// What is trimmed is told: the counts of outcomes are never cut, and [`Instance::explain`](crate::Instance::explain) says that the details are
/// gone.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "it is given to `bootstrap(..).history(keep)`"]
pub struct Keep {
    pub(crate) runs: usize,
    pub(crate) others: usize,
    pub(crate) age: Duration,
}

impl Default for Keep {
    /// 1,000 runs and 1,000 other records of each job, none older than 90 days.
    fn default() -> Self {
        Self {
            runs: KEPT,
            others: KEPT,
            age: Duration::from_secs(90 * 86_400),
        }
    }
}

impl Keep {
    /// So many runs; 1 to 100,000, anything else is an error of the start.
    pub fn runs(self, runs: usize) -> Self {
        Self { runs, ..self }
    }

    /// So many records of ticks that did not run, each of which may stand for many; 1 to 100,000, anything else is an error of the start.
    pub fn others(self, others: usize) -> Self {
        Self { others, ..self }
    }

    /// Records that were settled longer ago go with the next one that is written; the newest stays. At least 1 s.
    pub fn age(self, age: Duration) -> Self {
        Self { age, ..self }
    }
}

/// Up to which tick details may be gone.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Trimmed {
    /// The last tick of a run whose record is gone.
    pub runs: Option<Timestamp>,
    /// The last tick without a run whose record is gone.
    pub others: Option<Timestamp>,
}

/// A job's part of the ledger: what became of every due tick since the job was first seen.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct JobLedger {
    /// When the fleet first saw the job; nothing is owed for the past. `None`: never.
    pub since: Option<Timestamp>,
    /// The last settled tick, or `since` before the first.
    pub cursor: Option<Timestamp>,
    /// How many ticks had each outcome.
    pub counts: BTreeMap<Outcome, u64>,
    /// Runs that have begun and not ended, oldest first.
    pub open: Vec<OpenRun>,
    /// The tick that waits for an earlier run to end, as `overlap = "wait"` has it.
    pub waiting: Option<Timestamp>,
    /// The newest records, newest first; 1,000 runs and as many others at the most, unless [`Keep`] says otherwise.
    pub records: Vec<LedgerRecord>,
    /// The schedule in force. `None`: the store keeps none.
    pub schedule: Option<StoredSchedule>,
    /// Those before it, newest first; at most 32. Where the store has lost what it knew there may be gaps between them.
    pub schedules: Vec<EarlierSchedule>,
    /// Up to which tick details may be gone.
    pub trimmed: Trimmed,
    /// The handler, where the schedule was made at run time.
    pub handler: Option<String>,
    /// When the schedule was ended that was made at run time; `None` while it is in force.
    pub retired: Option<Timestamp>,
    /// Spans in which no leader could decide its ticks, oldest first: those in which the fleet was without it, and others that have not been
    /// decided since. At most 16.
    pub absences: Vec<Absence>,
}

impl JobLedger {
    /// How many ticks have an outcome.
    #[must_use]
    pub fn decided(&self) -> u64 {
        self.counts.values().sum()
    }

    /// How many ticks of the schedule have begun a run that has not ended, or wait for one to end.
    #[must_use]
    pub fn pending(&self) -> u64 {
        let pending = self.open.iter().filter(|run| run.origin == Origin::Schedule).count();
        pending as u64 + u64::from(self.waiting.is_some())
    }

    /// Brings the records, kept in the order of writing, into the order of their ticks.
    pub(crate) fn sort_records(&mut self) {
        self.records
            .sort_by(|a, b| b.last.cmp(&a.last).then(b.fence.cmp(&a.fence)));
    }
}

/// A run that has begun and not ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OpenRun {
    /// The tick.
    pub tick: Timestamp,
    /// The run's fence.
    pub fence: u64,
    /// The term it was claimed under; 0 for a job that needs no leader.
    pub term: u64,
    /// The claim's number.
    pub(crate) number: u64,
    /// Why it was made.
    pub origin: Origin,
    /// When it was claimed, by the server's clock.
    pub claimed_at: Timestamp,
    /// Who claimed it.
    pub instance: String,
    /// The process that did.
    pub(crate) holder: Holder,
    /// Which try of it this is, from 1.
    pub tries: u32,
    /// When the next try may begin, by the server's clock: this one has failed. `None` while it runs.
    pub again_at: Option<Timestamp>,
    /// How this try ended; `None` while it runs.
    pub last: Option<Ran>,
    /// The error's text of this try; empty for none.
    pub error: String,
}

impl OpenRun {
    /// What a leader is told of it, when it pauses.
    pub(crate) fn pausing(&self) -> Option<Pausing> {
        Some(Pausing {
            fence: self.fence,
            tick: self.tick,
            tries: self.tries,
            again_at: self.again_at?,
            ran: self.last.unwrap_or(Ran::Lost),
        })
    }
}

impl LedgerRecord {
    /// How long the run took, from its claim to its settlement with all its tries; zero without a run.
    #[must_use]
    pub fn duration(&self) -> Duration {
        let took = self.settled_at.duration_since(self.claimed_at);
        took.try_into().unwrap_or_default()
    }
}

/// One record: a run that ended, or a span of ticks that did not run.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LedgerRecord {
    /// The first tick.
    pub first: Timestamp,
    /// The last tick; the same as `first` for a run.
    pub last: Timestamp,
    /// How many ticks.
    pub count: u64,
    /// What became of them.
    pub outcome: Outcome,
    /// Why the run was made.
    pub origin: Origin,
    /// The run's fence; 0 without a run.
    pub fence: u64,
    /// The term of the leader that settled it.
    pub term: u64,
    /// The instance that ran or settled it.
    pub instance: String,
    /// The process that did.
    pub(crate) holder: Holder,
    /// When it was settled, by the server's clock.
    pub settled_at: Timestamp,
    /// When the run was claimed; as `settled_at` without a run.
    pub claimed_at: Timestamp,
    /// The error's text, that of the last try; empty for none.
    pub error: String,
    /// How many tries the run had; 0 without a run.
    pub tries: u32,
}

//! What came of a run.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use super::fault::{Fault, FaultKind};
use super::judge::Violation;
use crate::job::record::Job;
use crate::store::ledger::JobLedger;
#[cfg(feature = "tasks")]
use crate::store::tasks::TaskStatus;

/// What came of a simulation; its text tells the counts, and with violations the plan that repeats them.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Report {
    /// What everything followed from.
    pub seed: u64,
    /// How much time has passed in it.
    pub span: Duration,
    /// How often each kind of fault happened; those of messages, to how many.
    pub faults: BTreeMap<FaultKind, u64>,
    /// The faults, in order.
    pub plan: Vec<Fault>,
    /// What must not be; at most 20.
    pub violations: Vec<Violation>,
    /// What became of every tick, by job.
    pub ledgers: BTreeMap<String, JobLedger>,
    /// What became of the tasks that somebody was told to be stored, by name: the newest 20,000.
    #[cfg(feature = "tasks")]
    pub tasks: BTreeMap<String, BTreeMap<TaskStatus, u64>>,
    /// How many attempts at tasks began.
    #[cfg(feature = "tasks")]
    pub attempts: u64,
    /// How many leaderships began.
    pub elections: u64,
    /// How many bodies began.
    pub runs: u64,
    /// How many of them were dropped before they came to their own end.
    pub dropped: u64,
    /// How many polls of bodies were looked at.
    pub polls: u64,
    /// Everything that was seen, a line each, if that was asked for.
    pub log: Option<String>,
}

impl Report {
    /// What became of every tick of a job.
    ///
    /// # Panics
    /// When it was no job of the simulation.
    #[must_use]
    pub fn ledger<J: Job>(&self) -> &JobLedger {
        match self.ledgers.get(J::NAME) {
            Some(ledger) => ledger,
            None => panic!(
                "`{}` was no job of the simulation: give it with `.job::<{}>()`",
                J::NAME,
                J::NAME
            ),
        }
    }

    /// How many faults there were.
    #[must_use]
    pub fn fault_count(&self) -> u64 {
        self.faults.values().sum()
    }

    /// Whether every promise was kept.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.violations.is_empty()
    }

    /// Fails a test unless every promise was kept.
    ///
    /// # Panics
    /// Then, with everything that repeats the run.
    pub fn assert_sound(&self) {
        assert!(self.is_sound(), "{self}");
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hours = self.span.as_secs_f64() / 3_600.0;
        write!(
            f,
            "seed {}: {hours:.1} h, {} faults, {} elections, {} runs, {} violations",
            self.seed,
            self.fault_count(),
            self.elections,
            self.runs,
            self.violations.len()
        )?;
        for (job, ledger) in &self.ledgers {
            write!(f, "\n  {job}:")?;
            for (outcome, count) in &ledger.counts {
                write!(f, " {outcome} {count}")?;
            }
        }
        #[cfg(feature = "tasks")]
        for (task, counts) in &self.tasks {
            write!(f, "\n  task {task}:")?;
            for (status, count) in counts {
                write!(f, " {status} {count}")?;
            }
        }
        for (kind, count) in &self.faults {
            write!(f, "\n  fault {kind}: {count}")?;
        }
        for violation in &self.violations {
            write!(f, "\n  violation at {violation}")?;
        }
        if !self.violations.is_empty() {
            write!(f, "\n  the plan, {} faults:", self.plan.len())?;
            for fault in self.plan.iter().take(200) {
                write!(f, "\n    {fault}")?;
            }
        }
        Ok(())
    }
}

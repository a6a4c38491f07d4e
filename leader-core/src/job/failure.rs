//! A run that ended badly, and whom the program has told of it.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use jiff::Timestamp;

use super::outcome::{Outcome, Ran};
use super::output::JobError;
use super::tick::Origin;
use crate::names::{GroupName, JobName};

/// A run of this instance that ended badly, as the store has recorded it; given to
/// [`Bootstrap::on_failure`](crate::Bootstrap::on_failure).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedRun {
    pub(crate) job: JobName,
    pub(crate) group: GroupName,
    pub(crate) scheduled_at: Timestamp,
    pub(crate) fence: u64,
    pub(crate) term: u64,
    pub(crate) origin: Origin,
    pub(crate) attempt: u32,
    pub(crate) ran: Ran,
    pub(crate) outcome: Outcome,
}

impl FailedRun {
    /// The job's stable name.
    #[must_use]
    pub fn job(&self) -> &JobName {
        &self.job
    }

    /// The job's group.
    #[must_use]
    pub fn group(&self) -> &GroupName {
        &self.group
    }

    /// The planned instant of its tick.
    #[must_use]
    pub fn scheduled_at(&self) -> Timestamp {
        self.scheduled_at
    }

    /// The run's fence.
    #[must_use]
    pub fn fence(&self) -> u64 {
        self.fence
    }

    /// The term that it ran under.
    #[must_use]
    pub fn term(&self) -> u64 {
        self.term
    }

    /// Why it was made.
    #[must_use]
    pub fn origin(&self) -> Origin {
        self.origin
    }

    /// Which try of the run was the last, from 1.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// How it ended here.
    #[must_use]
    pub fn ran(&self) -> Ran {
        self.ran
    }

    /// What the store made of that: the same, or [`Outcome::Fenced`] when the run had been settled before, as by another leader when
    /// it shows no sign of life, or when it does not make way for a later one. The ledger then has that other word for it, and [`ran`](Self::ran), which may be `ok`, is known
    /// here alone.
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        self.outcome
    }
}

/// What is wrong with a run that ended so; `None` when nothing is, or nothing that its instance has to be told of.
///
/// Not `cancelled` nor `not_started`: those are what a hand-over or a lost leadership does to a run, at each roll-out, and a later tick
/// that takes its place.
pub(crate) fn failure(ran: Ran, outcome: Outcome, text: &str) -> Option<JobError> {
    let said = |otherwise: &str| JobError(if text.is_empty() { otherwise } else { text }.to_owned());
    match (ran, outcome) {
        // Nothing of it was run, whoever settled it.
        (Ran::NotStarted, _) => None,
        (_, Outcome::Fenced) => Some(said("its result was refused: the run had been settled before")),
        (Ran::Error | Ran::Panic, _) => Some(said("")),
        (Ran::TimedOut, _) => Some(said("it took longer than the job's timeout, and was dropped")),
        (Ran::Ok | Ran::Cancelled | Ran::Lost, _) => None,
    }
}

type Told = Pin<Box<dyn Future<Output = ()> + Send>>;

/// One hook, as it was given.
#[doc(hidden)]
#[derive(Clone)]
#[non_exhaustive]
pub enum Hook {
    /// It may block.
    Plain(Arc<dyn Fn(FailedRun, JobError) + Send + Sync>),
    Async(Arc<dyn Fn(FailedRun, JobError) -> Told + Send + Sync>),
}

impl fmt::Debug for Hook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Plain(_) => "Plain",
            Self::Async(_) => "Async",
        })
    }
}

/// What tells the two kinds of hooks apart.
#[doc(hidden)]
#[derive(Debug)]
#[non_exhaustive]
pub enum Plain {}
#[doc(hidden)]
#[derive(Debug)]
#[non_exhaustive]
pub enum Async {}

/// What a hook of [`Bootstrap::on_failure`](crate::Bootstrap::on_failure) returns: `()`, or a future of it. `Kind` follows from that.
#[diagnostic::on_unimplemented(
    message = "a failure hook cannot return `{Self}`",
    label = "a failure hook returns `()`, or a `Send` future of `()`",
    note = "it handles its own errors: nobody waits for them"
)]
pub trait HookOutput<Kind>: Sized {
    #[doc(hidden)]
    fn hook(hook: impl Fn(FailedRun, JobError) -> Self + Send + Sync + 'static) -> Hook;
}

impl HookOutput<Plain> for () {
    fn hook(hook: impl Fn(FailedRun, JobError) + Send + Sync + 'static) -> Hook {
        Hook::Plain(Arc::new(hook))
    }
}

impl<F: Future<Output = ()> + Send + 'static> HookOutput<Async> for F {
    fn hook(hook: impl Fn(FailedRun, JobError) -> Self + Send + Sync + 'static) -> Hook {
        Hook::Async(Arc::new(move |run, error| Box::pin(hook(run, error))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_a_failure() {
        let told = |ran, outcome, text| failure(ran, outcome, text).map(|error| error.to_string());
        for ran in Ran::ALL.iter().copied() {
            let plain = told(ran, Outcome::Ran(ran), "text").is_some();
            assert_eq!(plain, matches!(ran, Ran::Error | Ran::Panic | Ran::TimedOut), "{ran}");
            // A body that was run, and whose result counts for nothing.
            let fenced = told(ran, Outcome::Fenced, "").is_some_and(|text| text.contains("refused"));
            assert_eq!(fenced, ran != Ran::NotStarted, "{ran}");
        }
        let timed_out = told(Ran::TimedOut, Outcome::Ran(Ran::TimedOut), "").unwrap();
        assert!(timed_out.contains("timeout"), "{timed_out}");
        assert_eq!(told(Ran::Panic, Outcome::Fenced, "boo").as_deref(), Some("boo"));
    }

    #[test]
    fn both_kinds_of_hooks_are_told_apart() {
        fn kind<K, R: HookOutput<K>>(hook: impl Fn(FailedRun, JobError) -> R + Send + Sync + 'static) -> Hook {
            R::hook(hook)
        }
        async fn told(_: FailedRun, _: JobError) {}
        assert!(matches!(kind(told), Hook::Async(_)));
        assert!(matches!(kind(async |_, _| {}), Hook::Async(_)));
        assert!(matches!(kind(|_, _| {}), Hook::Plain(_)));
        assert!(matches!(kind(|run, _| drop(run)), Hook::Plain(_)));
        assert!(matches!(kind(|_, _| async {}), Hook::Async(_)));
    }
}

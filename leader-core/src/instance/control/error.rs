//! Why something could not be done to a job or a group.

use jiff::Timestamp;

use super::Done;
use crate::store::StoreError;

/// Something could not be done to a job or a group.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ControlError {
    /// No living instance has a scheduled job of this name.
    #[error(
        "`{job}` is no scheduled job of a living instance of the fleet: see `fleet()` for theirs, and `schedules(group)` for those made at run time"
    )]
    #[non_exhaustive]
    UnknownJob {
        /// The name.
        job: String,
    },
    /// No living instance has a group of this name.
    #[error("`{group}` is no group of a living instance of the fleet: see `fleet()` for theirs")]
    #[non_exhaustive]
    UnknownGroup {
        /// The name.
        group: String,
    },
    /// The schedule of a job that this instance lacks is not known here.
    #[error("`{job}` is a job of other instances only: ask for its past ticks on one that has it")]
    #[non_exhaustive]
    NotHere {
        /// The job.
        job: String,
    },
    /// There is no pause to end.
    #[error("{target} is not paused: nothing was changed")]
    #[non_exhaustive]
    NotPaused {
        /// What was to be resumed.
        target: String,
    },
    /// There is no such request: it was met, withdrawn, or never made.
    #[error(
        "request {request} of `{group}` is not open: it was met, withdrawn or never made; `state()` has the open ones"
    )]
    #[non_exhaustive]
    NotOpen {
        /// The group.
        group: String,
        /// The id.
        request: u64,
    },
    /// A pause would have ended before it began.
    #[error("a pause until {until} is over already: it is {now} by the store's clock; give a later instant")]
    #[non_exhaustive]
    UntilPassed {
        /// The end.
        until: Timestamp,
        /// The store's time.
        now: Timestamp,
    },
    /// A span reaches into the future, whose ticks the schedule runs by itself.
    #[error(
        "a span up to {to} is not past yet: it is {now} by the store's clock; end the span before that, the schedule runs what comes by itself"
    )]
    #[non_exhaustive]
    NotPast {
        /// The end of the span.
        to: Timestamp,
        /// The store's time.
        now: Timestamp,
    },
    /// The schedule has no tick in the span.
    #[error("`{job}` has no tick from {from} to {to}{}", backwards(from, to))]
    #[non_exhaustive]
    NoTicks {
        /// The job.
        job: String,
        /// The beginning.
        from: Timestamp,
        /// The end.
        to: Timestamp,
    },
    /// The span has more ticks than one request may ask for.
    #[error("`{job}` has {ticks} ticks in the span, and one request runs {most} at the most: ask for parts of it")]
    #[non_exhaustive]
    TooManyTicks {
        /// The job.
        job: String,
        /// How many it has.
        ticks: u64,
        /// How many there may be.
        most: u64,
    },
    /// As many requests of the group are open as may be.
    #[error("{open} requests of `{group}` are open already: wait for some, or cancel them")]
    #[non_exhaustive]
    TooManyRequests {
        /// The group.
        group: String,
        /// How many are open.
        open: usize,
    },
    /// The store did not answer. The act may have been kept all the same: `state()` tells.
    #[error("the store did not answer; what was asked may be kept all the same: look at `state()`")]
    #[non_exhaustive]
    Store {
        /// Why.
        source: StoreError,
        /// What was done in other groups before.
        done: Vec<Done>,
    },
    /// The instance has stopped.
    #[error("the instance has stopped")]
    Stopped,
}

/// A span that was given the wrong way round has no tick either.
fn backwards(from: &Timestamp, to: &Timestamp) -> &'static str {
    if from > to {
        ": the span ends before it begins, give the earlier instant first"
    } else {
        ""
    }
}

impl From<StoreError> for ControlError {
    fn from(source: StoreError) -> Self {
        Self::Store {
            source,
            done: Vec::new(),
        }
    }
}

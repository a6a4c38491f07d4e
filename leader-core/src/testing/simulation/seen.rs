//! What is seen of a simulated fleet: everything that its invariants are about, and what its log tells.

use std::time::Duration;

use jiff::Timestamp;

use super::fault::Fault;
#[cfg(feature = "tasks")]
use super::tasks::seen::TaskSeen;
use crate::event::Event;
use crate::job::record::Overlap;
use crate::job::tick::Origin;
use crate::schedule::missed::Missed;
use crate::store::ledger::JobLedger;

/// Which start of which instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Who {
    pub(super) instance: usize,
    pub(super) life: u32,
}

/// A body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Body {
    pub(super) who: Who,
    pub(super) job: &'static str,
    pub(super) group: String,
    pub(super) tick: Timestamp,
    pub(super) origin: Origin,
    pub(super) attempt: u32,
    pub(super) fence: u64,
    /// 0 where no leader is needed.
    pub(super) term: u64,
    /// Whether it may go on when trust has ended.
    pub(super) finishes: bool,
    pub(super) overlap: Overlap,
}

/// What a server does with a lease, and how long it lives from then on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LeaseStep {
    Granted(Duration),
    Prolonged(Duration),
    Returned,
}

/// Something that was seen, at one true instant.
#[derive(Clone, Debug)]
pub(super) enum Seen<'a> {
    Fault(&'a Fault),
    /// A process was started, or ended without a word.
    Started(Who),
    Died(Who),
    /// A belief has begun or was prolonged; and who else believes to lead the group now.
    Believes {
        who: Who,
        group: &'a str,
        term: u64,
        /// For how long it may believe from now on, by its machine's clock.
        left: Duration,
        others: &'a [(Who, u64)],
    },
    Told {
        who: Who,
        event: &'a Event,
    },
    /// A server has done something with a lease.
    Lease {
        group: &'a str,
        holder: &'a str,
        term: u64,
        step: LeaseStep,
    },
    /// A body was polled; `trusted` as it says itself.
    Polled {
        body: &'a Body,
        first: bool,
        trusted: bool,
    },
    Ended {
        body: &'a Body,
        /// Whether it returned what went well; `None` where it did not come to its own end.
        returned: Option<bool>,
    },
    /// The store says that the ticks of a job are decided up to there.
    Cursor {
        job: &'a str,
        cursor: Timestamp,
    },
    /// A call of a handle has returned.
    Called {
        who: Who,
        what: &'static str,
        took: Duration,
        bound: Duration,
    },
    /// All faults are over.
    Healed,
    /// A group is led again after that, or is not.
    Led {
        group: &'a str,
        after: Option<Duration>,
        bound: Duration,
    },
    /// What the ledger says at the end.
    Ledger {
        job: &'a str,
        missed: Missed,
        overlap: Overlap,
        due: u64,
        /// Ticks that were due when the faults were over, and have no outcome.
        undecided: u64,
        ledger: &'a JobLedger,
    },
    /// Something of tasks.
    #[cfg(feature = "tasks")]
    Task(TaskSeen<'a>),
    /// How much there is of what could grow.
    Size {
        what: &'static str,
        size: usize,
        bound: usize,
    },
}

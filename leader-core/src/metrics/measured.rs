//! What is measured beside the events: too much of it to be told to everybody.

use std::time::Duration;

use jiff::Timestamp;

use crate::names::{GroupName, JobName, QueueName};
use crate::schedule::planner::Rule;

macro_rules! words {
    ($(#[$doc:meta])* $Enum:ident { $($(#[$variant_doc:meta])* $Variant:ident = $word:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[cfg_attr(not(feature = "metrics"), allow(dead_code, reason = "nobody counts"))]
        pub(crate) enum $Enum {
            $($(#[$variant_doc])* $Variant,)*
        }

        #[cfg(feature = "metrics")]
        impl $Enum {
            pub(super) const ALL: &[Self] = &[$(Self::$Variant),*];

            /// The label's value.
            pub(super) fn as_str(self) -> &'static str {
                match self {
                    $(Self::$Variant => $word,)*
                }
            }
        }
    };
}

words! {
    /// How a renewal ended.
    RenewalOutcome {
        /// Answered, in half of the time that an operation may take.
        Ok = "ok",
        /// Answered, but later.
        Slow = "slow",
        /// Not answered in time, or refused.
        Error = "error",
        /// The lease was somebody else's, or nobody's.
        Lost = "lost",
    }
}

words! {
    /// How a task ended here.
    TaskResult {
        /// It was done.
        Done = "done",
        /// It is not tried again by itself.
        Dead = "dead",
        /// It was cancelled while it ran.
        Cancelled = "cancelled",
    }
}

/// The operations of a store that are measured, in the words of the metrics.
#[cfg(feature = "metrics")]
pub(super) const OPERATIONS: &[&str] = &[
    "inspect",
    "campaign",
    "renew",
    "release",
    "ask",
    "take_over",
    "cover",
    "claim",
    "settle",
    "ledger",
    "act",
    "control",
    "make",
    "made",
    "enrol",
    "leave",
    "roster",
    #[cfg(feature = "tasks")]
    "open_queue",
    #[cfg(feature = "tasks")]
    "close_generation",
    #[cfg(feature = "tasks")]
    "enqueue",
    #[cfg(feature = "tasks")]
    "forget_once",
    #[cfg(feature = "tasks")]
    "unique",
    #[cfg(feature = "tasks")]
    "dispatch",
    #[cfg(feature = "tasks")]
    "take",
    #[cfg(feature = "tasks")]
    "beat_tasks",
    #[cfg(feature = "tasks")]
    "finish",
    #[cfg(feature = "tasks")]
    "change_task",
    #[cfg(feature = "tasks")]
    "task",
    #[cfg(feature = "tasks")]
    "list_tasks",
    #[cfg(feature = "tasks")]
    "task_figures",
];

/// A job whose numbers are kept.
#[derive(Clone, Debug)]
#[cfg_attr(not(feature = "metrics"), allow(dead_code, reason = "nobody counts"))]
pub(crate) struct MeteredJob {
    pub(crate) name: JobName,
    pub(crate) group: GroupName,
    /// When its ticks are due; `None` where it has none, or those of schedules made at run time.
    pub(crate) rule: Option<Rule>,
    /// Whether it has ticks at all: a body that lives as long as a lead has none.
    pub(crate) has_ticks: bool,
    /// Whether only the leader of its group has its ticks.
    pub(crate) led: bool,
}

/// What a dispatcher knows of what waits in its shard.
#[derive(Clone, Copy, Debug, Default)]
#[cfg_attr(not(feature = "metrics"), allow(dead_code, reason = "nobody counts"))]
pub(crate) struct Waiting {
    pub(crate) pending: u64,
    pub(crate) dispatched: u64,
    pub(crate) running: u64,
    pub(crate) dead: u64,
    pub(crate) oldest_due: Option<Timestamp>,
}

/// One measurement.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(
    not(all(feature = "metrics", feature = "tasks")),
    allow(dead_code, reason = "nobody counts, or nobody works on tasks")
)]
pub(crate) enum Measured<'a> {
    /// A renewal had its answer, or none in time; when the lease ends by it.
    Renewal {
        group: &'a GroupName,
        outcome: RenewalOutcome,
        took: Duration,
        expiry: Option<Timestamp>,
    },
    /// A body has ended.
    RunEnded { job: &'a JobName, took: Duration },
    /// The store was asked something.
    Operation {
        op: &'static str,
        took: Duration,
        failed: bool,
    },
    /// Tasks were stored.
    Enqueued { queue: &'a QueueName, count: u64 },
    /// Tasks have ended.
    TaskEnded {
        queue: &'a QueueName,
        result: TaskResult,
        count: u64,
    },
    /// Attempts have failed and others follow.
    TaskRetried { queue: &'a QueueName, count: u64 },
    /// An attempt's worker fell silent; whether that was once too often.
    TaskLost { queue: &'a QueueName, dead: bool },
    /// What waits in a shard that is led here; `None` when it is led here no longer.
    Waiting {
        queue: &'a QueueName,
        shard: u32,
        waiting: Option<Waiting>,
    },
}

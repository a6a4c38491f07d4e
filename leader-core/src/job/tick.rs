//! The tick that a body is run for.

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;

use super::gate::Lead;
use crate::names::{GroupName, JobName};

/// Why a run was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Origin {
    /// The job's own schedule.
    Schedule,
    /// Somebody asked for it.
    Manual,
    /// Somebody asked for a past span to be run again.
    Backfill,
}

impl Origin {
    /// The word for logs, metrics and the store.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Schedule => "schedule",
            Self::Manual => "manual",
            Self::Backfill => "backfill",
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The tick that a body is run for: which instant, which fence, and when to stop. Cheap to clone.
#[derive(Clone)]
pub struct Tick(Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) job: JobName,
    pub(crate) origin: Origin,
    pub(crate) scheduled_at: Timestamp,
    pub(crate) started_at: Timestamp,
    pub(crate) attempt: u32,
    pub(crate) lead: Lead,
}

impl fmt::Debug for Tick {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tick")
            .field("job", self.job())
            .field("group", self.group())
            .field("scheduled_at", &self.scheduled_at())
            .field("fence", &self.fence())
            .finish_non_exhaustive()
    }
}

impl Tick {
    pub(crate) fn new(inner: Inner) -> Self {
        Self(Arc::new(inner))
    }

    /// The job's stable name.
    #[must_use]
    pub fn job(&self) -> &JobName {
        &self.0.job
    }

    /// The job's group.
    #[must_use]
    pub fn group(&self) -> &GroupName {
        self.0.lead.group()
    }

    /// The planned instant that names the tick. It does not depend on when a timer woke up.
    #[must_use]
    pub fn scheduled_at(&self) -> Timestamp {
        self.0.scheduled_at
    }

    /// When the body was started, by this instance's wall clock.
    #[must_use]
    pub fn started_at(&self) -> Timestamp {
        self.0.started_at
    }

    /// The fencing token of this run: higher than that of any run or leadership of its group before it. Pass it to the resource that is
    /// written to, and have the resource refuse any lower one: [`fencing`](crate::fencing) has how.
    #[must_use]
    #[doc(alias = "fencing token")]
    pub fn fence(&self) -> u64 {
        self.0.lead.fence()
    }

    /// The term of the leadership that the run was started under; 0 for a job that needs no leader (`#[scheduled(on = "any")]`).
    #[must_use]
    pub fn term(&self) -> u64 {
        self.0.lead.term()
    }

    /// Why the run was made.
    #[must_use]
    pub fn origin(&self) -> Origin {
        self.0.origin
    }

    /// Which try of the run this is, from 1.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.0.attempt
    }

    /// Completes when the body should stop; see [`Lead::cancelled`]. Cancel safe.
    pub async fn cancelled(&self) {
        self.0.lead.cancelled().await;
    }

    /// Whether the body should stop.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.lead.is_cancelled()
    }

    #[cfg(feature = "testing")]
    pub(crate) fn lead(&self) -> &Lead {
        &self.0.lead
    }
}

//! What a handle tells, and why it could not.

use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::watch;

use super::lookup::NoTicks;
use crate::job::gate::GroupStatus;
use crate::names::{GroupName, JobName};
use crate::store::StoreError;

/// A job as this instance runs it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct JobStatus {
    /// The job.
    pub name: JobName,
    /// Its group.
    pub group: GroupName,
    /// Its schedule as written, `while leading` for a long-lived body.
    pub schedule: String,
    /// The same in words, where there are simple ones.
    pub words: String,
    /// The next planned tick; `None` without one.
    pub next: Option<Timestamp>,
    /// How late the next tick may be, counted from when it is due, and still simply run: the setting, or the distance to the tick after
    /// it where that is shorter. Zero for a long-lived body.
    pub grace: Duration,
    /// The most that the next tick is due later than planned: the setting, or 1 ms less than the distance to the tick after it where
    /// that is shorter. Zero for none.
    pub jitter: Duration,
    /// The schedule that is followed instead, on the leader of the group: that of a newer version that lives, or the former one while its
    /// last ticks are decided. `None` where the job's own is in force, and on standbys.
    pub following: Option<String>,
    /// The handler that it runs, where it was made at run time.
    pub handler: Option<JobName>,
}

/// A read of the roster failed.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FleetError {
    /// The store did not answer.
    #[error("the roster could not be read")]
    Store(#[source] StoreError),
    /// The instance has stopped.
    #[error("the instance has stopped")]
    Stopped,
}

/// A read of the ledger failed.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LedgerError {
    /// The name is no job of this instance, or has no ticks.
    #[error(transparent)]
    NoTicks(#[from] NoTicks),
    /// The store did not answer.
    #[error("the ledger could not be read")]
    Store(#[source] StoreError),
    /// The instance has stopped.
    #[error("the instance has stopped")]
    Stopped,
}

/// A group's status, and its changes.
#[derive(Clone, Debug)]
pub struct GroupWatch(pub(super) watch::Receiver<GroupStatus>);

impl GroupWatch {
    /// The status now.
    #[must_use]
    pub fn current(&self) -> GroupStatus {
        self.0.borrow().clone()
    }

    /// Waits for the next change and gives the status after it; `None` when the instance is gone. Cancel safe.
    pub async fn changed(&mut self) -> Option<GroupStatus> {
        self.0.changed().await.ok()?;
        Some(self.0.borrow_and_update().clone())
    }
}

/// A group that the instance does not know.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this instance does not know the group `{0}`: give it to `bootstrap(..).groups([..])`")]
pub struct UnknownGroup(pub(super) String);

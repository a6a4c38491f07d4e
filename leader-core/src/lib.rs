//! Cluster-wide cron and leader election.

#[doc(hidden)]
#[path = "private.rs"]
pub mod __private;
mod clock;
mod election;
mod job;
mod names;
mod schedule;
mod store;
mod timing;

pub use clock::{Clock, Moment};
pub use job::extract::{Extract, State};
pub use job::gate::{GroupStatus, Lead, Role};
pub use job::outcome::{MissedReason, Outcome, Ran, UnknownOutcome};
pub use job::output::{JobError, JobOutput};
pub use job::record::{Job, Missed, OnLoss};
pub use job::scope::{Skipped, current};
pub use job::tick::{Origin, Tick};
#[cfg(feature = "macros")]
pub use leader_macros::leader_only;
pub use names::{DEFAULT_GROUP, GroupName, Holder, InstanceId, JobName, MAX_NAME, NameError, Namespace, ServiceName};
pub use store::error::{StoreError, StoreErrorKind};
pub use timing::{MAX_TTL, MIN_TTL, Timing, TimingError};

/// What the workspace's own suites test from outside; not subject to semantic versioning.
#[doc(hidden)]
#[cfg(feature = "testing")]
pub mod __seam {
    #[cfg(feature = "redis")]
    pub use crate::store::redis::{Connection, Subscription, parse};
}

//! Cluster-wide cron and leader election.

mod clock;
mod names;
mod store;
mod timing;

pub use clock::{Clock, Moment};
pub use names::{
    DEFAULT_GROUP, GroupName, Holder, InstanceId, JobName, MAX_NAME, NameError, Namespace,
    ServiceName,
};
pub use store::error::{StoreError, StoreErrorKind};
pub use timing::{MAX_TTL, MIN_TTL, Timing, TimingError};

/// What the workspace's own suites test from outside; not subject to semantic versioning.
#[doc(hidden)]
#[cfg(feature = "testing")]
pub mod __seam {
    #[cfg(feature = "redis")]
    pub use crate::store::redis::{Connection, Subscription, parse};
}

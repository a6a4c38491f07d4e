//! Cluster-wide cron and leader election.

mod clock;
mod names;
mod schedule;
mod timing;

pub use clock::{Clock, Moment};
pub use names::{
    DEFAULT_GROUP, GroupName, Holder, InstanceId, JobName, MAX_NAME, NameError, Namespace,
    ServiceName,
};
pub use timing::{MAX_TTL, MIN_TTL, Timing, TimingError};

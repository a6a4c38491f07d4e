//! Cluster-wide cron and leader election.

#[doc(hidden)]
#[path = "private.rs"]
pub mod __private;
mod clock;
mod job;
mod names;
#[cfg(feature = "testing")]
pub mod testing;
mod timing;

// The attribute's tokens name this crate; so do those in our own tests.
#[cfg(test)]
extern crate self as leader_core;

pub use clock::{Clock, Moment};
pub use job::extract::{Extract, ExtractLeading, State};
pub use job::gate::{GroupStatus, Lead, Role};
pub use job::outcome::{MissedReason, Outcome, Ran, UnknownOutcome};
pub use job::output::{JobError, JobOutput};
pub use job::record::{Job, Missed, OnLoss};
pub use job::scope::{Skipped, current};
pub use job::tick::{Origin, Tick};
#[cfg(feature = "macros")]
#[doc = include_str!("docs/leader_only.md")]
pub use leader_macros::leader_only;
pub use names::{DEFAULT_GROUP, GroupName, Holder, InstanceId, JobName, MAX_NAME, NameError, Namespace, ServiceName};
pub use timing::{MAX_TTL, MIN_TTL, Timing, TimingError};

#![doc = include_str!("../README.md")]
#![warn(clippy::exhaustive_enums, clippy::exhaustive_structs)]

#[doc(hidden)]
#[path = "private.rs"]
pub mod __private;
#[cfg(feature = "admin")]
pub mod admin;
mod bootstrap;
mod clock;
mod election;
mod event;
pub mod fencing;
mod instance;
mod job;
mod metrics;
#[cfg(feature = "mutants")]
#[doc(hidden)]
pub mod mutants;
#[cfg(not(feature = "mutants"))]
mod mutants;
mod names;
mod runtime;
mod schedule;
mod store;
#[cfg(feature = "tasks")]
mod tasks;
mod telemetry;
#[cfg(feature = "testing")]
pub mod testing;
mod timing;

// The attribute's tokens name this crate; so do those in our own tests.
#[cfg(test)]
extern crate self as leader_core;

#[cfg(feature = "tasks")]
pub use bootstrap::TaskSettings;
pub use bootstrap::{Bootstrap, BootstrapError, Env, Fault, IntoStore, JobSettings, bootstrap, env};
pub use clock::{Clock, Moment};
pub use election::{Lost, Oddity};
pub use event::{Event, Events, EventsError, Scheduling, SchedulingNews, Stamped, TaskNews};
pub use instance::{
    Backfilling, Cancelling, ClockDispute, ClockStatus, Control, ControlError, Done, FleetError, Group, GroupWatch,
    Health, HealthCheck, History, Instance, JobStatus, LedgerError, Load, MadeSchedule, Member, NewSchedule, NoTicks,
    Pausing, Requested, Resuming, Scheduled, SchedulingError, StepDownError, Target, Triggering, UnknownGroup,
    Unscheduled, Unscheduling, WhileLeading,
};
#[cfg(feature = "metrics")]
pub use instance::{Metric, MetricKind, Metrics};
pub use job::around::Next;
pub use job::extract::{Extract, ExtractLeading, State};
pub use job::failure::{FailedRun, HookOutput};
pub use job::gate::{GroupStatus, Lead, Role};
pub use job::handler::{ExtractHandling, Handler, Payload};
pub use job::outcome::{Outcome, Ran, UnknownOutcome};
pub use job::output::{JobError, JobOutput};
pub use job::record::{Job, OnLoss, Overlap};
pub use job::scope::{Skipped, current};
pub use job::tick::{Origin, Tick};
#[cfg(feature = "macros")]
#[doc = include_str!("docs/leader_only.md")]
pub use leader_macros::leader_only;
#[cfg(feature = "macros")]
#[doc = include_str!("docs/scheduled.md")]
pub use leader_macros::scheduled;
#[cfg(all(feature = "macros", feature = "tasks"))]
#[doc = include_str!("docs/task.md")]
pub use leader_macros::task;
pub use names::{
    DEFAULT_GROUP, DEFAULT_QUEUE, GroupName, Holder, InstanceId, JobName, MAX_NAME, MAX_QUEUE, NameError, Namespace,
    QueueName, ServiceName, TaskName,
};
pub use schedule::blackout::Calendar;
pub use schedule::missed::{Missed, MissedReason};
pub use schedule::{
    Cron, CronError, Days, DurationError, Every, MAX_EXPRESSION, MAX_PERIOD, MIN_PERIOD, Message, Note, PeriodError,
    Planned, Schedule, ScheduleError, TZDB_VERSION, Zone, ZoneError, parse_duration,
};
pub use store::embedded::Embedded;
pub use store::explain::{Explanation, Fate, OtherRun};
pub use store::ledger::{Keep, Trimmed};
#[cfg(feature = "tasks")]
pub use store::tasks::{PastAttempt, Priority, RunningAttempt, TaskCounts, TaskStatus};
pub use store::{
    Absence, AbsenceKind, Act, Deed, EarlierSchedule, Finding, FindingKind, Gap, GroupControl, JobLedger, LedgerRecord,
    OpenRequest, OpenRun, Pause, StoreError, StoreErrorKind, StoredSchedule,
};
#[cfg(feature = "tasks")]
pub use tasks::enqueue::{Enqueue, EnqueueError, EnqueueMany, Enqueued, MAX_UNIQUE};
#[cfg(feature = "tasks")]
pub use tasks::extract::ExtractTask;
#[cfg(feature = "tasks")]
pub use tasks::handle::{TaskError, Tasks};
#[cfg(feature = "tasks")]
pub use tasks::id::{TaskId, TaskIdError};
#[cfg(feature = "tasks")]
pub use tasks::query::{TaskDetails, TaskFigures, TaskList, TaskQuery};
#[cfg(feature = "tasks")]
pub use tasks::record::{PayloadOf, TaskHandler, TaskOutput};
#[cfg(feature = "tasks")]
pub use tasks::task::Task;
pub use timing::{MAX_TTL, MIN_TTL, Timing, TimingError};

/// What the workspace's own suites test from outside; not subject to semantic versioning.
#[doc(hidden)]
#[cfg(feature = "testing")]
pub mod __seam {
    pub use crate::election::marks::Mark;
    pub use crate::election::{Attempt, CampaignReply, Command, Election, Reply, StepDown};
    pub use crate::job::gate::steps::{GateStep, GateView};
    pub use crate::schedule::blackout::Blackouts;
    pub use crate::schedule::planner;
    pub use crate::store::embedded::server::{EmbeddedServer, GroupLook, JobLook, Left, Part, Snapshot, Written};
    pub use crate::store::embedded::steps::GroupSteps;
    pub use crate::store::ledger::KEPT;
    #[cfg(feature = "redis")]
    pub use crate::store::redis::{Connection, RedisStore, Subscription, parse};
    pub use crate::store::*;

    /// An embedded store as an instance in `namespace` sees it.
    #[must_use]
    pub fn in_namespace(store: crate::Embedded, namespace: &crate::Namespace) -> crate::Embedded {
        store.in_namespace(namespace)
    }

    /// An embedded store that keeps so many records.
    #[must_use]
    pub fn keeping(store: crate::Embedded, keep: crate::Keep) -> crate::Embedded {
        store.keeping(keep)
    }
}

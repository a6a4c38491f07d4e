//! Why a schedule could not be made at run time, or ended.

use jiff::Timestamp;

use crate::names::NameError;
use crate::schedule::ScheduleError;
use crate::store::{MADE_SCHEDULES, MAX_PAYLOAD, StoreError};

/// A schedule could not be made, ended or listed. Unless it says otherwise, nothing was changed.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SchedulingError {
    /// The name is not a legal one.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The expression, the period or the time zone is refused.
    #[error("the schedule of `{name}` is refused: {error}")]
    #[non_exhaustive]
    Schedule {
        /// The name.
        name: String,
        /// Why.
        error: ScheduleError,
    },
    /// The schedule has no tick any more.
    #[error("`{schedule}` has no tick after {now}: give years to come")]
    #[non_exhaustive]
    NeverDue {
        /// The schedule.
        schedule: String,
        /// Now.
        now: Timestamp,
    },
    /// The handler is switched off on this instance.
    #[error(
        "the handler `{handler}` is switched off on this instance, which could not run `{name}`: schedule it from one that has it"
    )]
    #[non_exhaustive]
    NoHandler {
        /// The handler.
        handler: String,
        /// The schedule.
        name: String,
    },
    /// The group is none that this fleet elects.
    #[error("`{group}` is no group of this fleet, which elects {known}")]
    #[non_exhaustive]
    UnknownGroup {
        /// The group.
        group: String,
        /// Those that are.
        known: String,
    },
    /// The name is that of a job of the program.
    #[error("`{name}` is {of}: schedule it under another name")]
    #[non_exhaustive]
    NameTaken {
        /// The name.
        name: String,
        /// What has it.
        of: String,
    },
    /// The payload is missing, or is none that the handler can be given.
    #[error("`{handler}` cannot be given this payload: {reason}")]
    #[non_exhaustive]
    Payload {
        /// The handler.
        handler: String,
        /// Why.
        reason: String,
    },
    /// The payload is too long.
    #[error(
        "the payload of `{name}` has {bytes} bytes of JSON, and {MAX_PAYLOAD} at the most are kept: keep the rest elsewhere, and its key here"
    )]
    #[non_exhaustive]
    PayloadTooLong {
        /// The schedule.
        name: String,
        /// How many it has.
        bytes: usize,
    },
    /// The group has as many schedules as it may have.
    #[error(
        "the group `{group}` has {schedules} schedules made at run time, and {MADE_SCHEDULES} are the most: end some, or put others into another group with `.group(..)`"
    )]
    #[non_exhaustive]
    TooMany {
        /// The group.
        group: String,
        /// How many it has.
        schedules: usize,
    },
    /// There is no schedule of the name.
    #[error("no schedule `{name}` was made at run time in {groups}: `schedules(group)` has those that were")]
    #[non_exhaustive]
    NotScheduled {
        /// The name.
        name: String,
        /// Where it was looked for.
        groups: String,
    },
    /// Several groups have a schedule of the name.
    #[error("`{name}` is a schedule of {groups}: say which with `.group(..)`")]
    #[non_exhaustive]
    Ambiguous {
        /// The name.
        name: String,
        /// The groups.
        groups: String,
    },
    /// The store did not answer before anything was asked of it that changes something.
    #[error("the store did not answer; nothing was changed")]
    Unread(#[source] StoreError),
    /// The store did not answer, and the change may be kept all the same.
    #[error(
        "the store did not answer; what was asked may be kept all the same: ask again, which changes nothing twice, or look at `schedules(..)`"
    )]
    Store(#[source] StoreError),
    /// The instance has stopped. What was asked of it last may be kept all the same.
    #[error("the instance has stopped")]
    Stopped,
}

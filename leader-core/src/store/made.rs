//! Schedules made at run time, as the store keeps them beside the jobs of the program.

use std::sync::Arc;

use jiff::Timestamp;

use super::schedules::Writer;
use crate::names::{GroupName, JobName};

/// How many schedules made at run time a group may have. Its leader knows all of them by heart, and each change of one has it look at the
/// list: more belong into several groups.
pub const MADE_SCHEDULES: usize = 1_000;
/// The longest payload of one, in bytes of JSON. The leader keeps all of them in memory, and 1,000 of these are 64 MB.
pub const MAX_PAYLOAD: usize = 64 * 1024;
/// When a read has given payloads of so many bytes in all it gives no more: no answer shall hold up the claims behind it.
pub const MADE_AT_ONCE: usize = 1024 * 1024;

/// Something to be done to a schedule made at run time.
#[derive(Clone, Debug)]
#[allow(clippy::exhaustive_structs, reason = "an internal message")]
pub struct MakeRequest {
    /// The group.
    pub group: GroupName,
    /// The name of the schedule, which is that of its job.
    pub name: JobName,
    /// What.
    pub what: Making,
    /// Who, without control characters and `|`.
    pub by: String,
    /// The version of who writes it, and of its time zones.
    pub writer: Writer,
}

/// What is done to a schedule made at run time.
#[derive(Clone, Debug)]
#[allow(clippy::exhaustive_enums, reason = "an internal message")]
pub enum Making {
    /// It is made, or made anew.
    Make {
        /// The handler.
        handler: JobName,
        /// The schedule as text.
        schedule: Arc<str>,
        /// What it carries, as JSON.
        payload: Arc<str>,
    },
    /// It ends.
    End,
    /// It has ended, and no run of it is open any more: it is forgotten. Its history stays.
    Forget,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "an internal message")]
pub enum MadeReply {
    /// It is done, under this number.
    Done {
        /// The number.
        number: u64,
        /// The server's time.
        at: Timestamp,
        /// Whether there was none of this name before.
        new: bool,
    },
    /// The store keeps the same already; nothing was changed.
    Same {
        /// The number of its last change.
        number: u64,
        /// When that was, by the server's clock.
        at: Timestamp,
    },
    /// There is none of this name; nothing was changed.
    Nothing,
    /// The name is that of a job of the program, of whatever version; nothing was changed.
    Taken,
    /// The group has so many already; nothing was changed.
    Full {
        /// How many.
        schedules: usize,
    },
}

/// A read of a group's schedules.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
#[allow(clippy::exhaustive_structs, reason = "an internal message")]
pub struct MadeList {
    /// All of them, in the order of their last changes.
    pub entries: Vec<MadeEntry>,
    /// Those that were changed since what was asked, and no later than this, have their payloads here. The others are to be asked for.
    pub up_to: u64,
}

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "an internal message")]
pub struct MadeEntry {
    /// Its name.
    pub name: String,
    /// The number of its last change; 0 where that cannot be read.
    pub number: u64,
    /// It has ended, and had a run open then.
    pub ended: bool,
    /// What it is; `None` where this version cannot read it.
    pub line: Option<MadeLine>,
    /// What it carries, as JSON, where it was asked for.
    pub payload: Option<Arc<str>>,
}

/// What one of them is.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "an internal message")]
pub struct MadeLine {
    /// The number of the change that made it: one of the same name made later is another.
    pub born: u64,
    /// When it was last changed, by the server's clock.
    pub at: Timestamp,
    /// Who changed it.
    pub by: String,
    /// The version of the program that did.
    pub version: String,
    /// The handler.
    pub handler: JobName,
    /// The schedule that is wanted, as text.
    pub schedule: String,
}

impl MadeList {
    /// Whether payloads are left to be asked for.
    #[must_use]
    pub fn has_more(&self) -> bool {
        self.entries.iter().any(|entry| entry.number > self.up_to)
    }
}

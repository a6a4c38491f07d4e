//! What a store tells of its tasks, and what people do to them.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;

use super::{Due, Lane, Shard, TaskKeep};
use crate::job::outcome::Ran;
use crate::names::{Holder, TaskName};

/// Where a task is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum TaskStatus {
    /// It waits until it is due, and has not been tried.
    Pending,
    /// It is due, and waits in its stream for a worker.
    Dispatched,
    /// A worker runs it.
    Running,
    /// It has been run.
    Done,
    /// Its last attempt failed, was lost or was handed back, and it waits for the next.
    Failed,
    /// It will not be tried again, unless somebody asks for it: a dead letter.
    Dead,
    /// Somebody has cancelled it.
    Cancelled,
}

impl TaskStatus {
    /// Every value.
    pub const ALL: &[Self] = &[
        Self::Pending,
        Self::Dispatched,
        Self::Running,
        Self::Done,
        Self::Failed,
        Self::Dead,
        Self::Cancelled,
    ];

    /// The word for logs, metrics and the store.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Dispatched => "dispatched",
            Self::Running => "running",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Dead => "dead",
            Self::Cancelled => "cancelled",
        }
    }

    /// Whether nothing more will be done by itself: its unique key is free.
    #[must_use]
    pub fn is_finished(self) -> bool {
        matches!(self, Self::Done | Self::Dead | Self::Cancelled)
    }
}

impl fmt::Display for TaskStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A task as the store has it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "an internal message")]
pub struct StoredTask {
    /// The task.
    pub key: String,
    /// Where it waits, or waited.
    pub lane: Lane,
    /// Where it is in its life.
    pub status: TaskStatus,
    /// When it is due, or was.
    pub due: Timestamp,
    /// When it was stored.
    pub created: Timestamp,
    /// When it was done, died or was cancelled.
    pub ended: Option<Timestamp>,
    /// Its unique key.
    pub unique: Option<String>,
    /// How many attempts have begun.
    pub attempts: u32,
    /// The attempt under way.
    pub running: Option<RunningAttempt>,
    /// The newest attempts that have ended, the oldest of them first.
    pub history: Vec<PastAttempt>,
    /// What it carries; `None` where that was not asked for or is no longer kept.
    pub payload: Option<Arc<str>>,
}

/// An attempt under way.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "an internal message")]
pub struct RunningAttempt {
    /// Its fence.
    pub fence: u64,
    /// Who makes it.
    pub holder: Holder,
    /// Since when.
    pub began: Timestamp,
    /// When it was last heard of.
    pub heard: Timestamp,
}

/// An attempt that has ended. Of one that ended well only the last of a task is told.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "an internal message")]
pub struct PastAttempt {
    /// Which one, from 1.
    pub attempt: u32,
    /// Its fence.
    pub fence: u64,
    /// Who made it.
    pub holder: Holder,
    /// When it began.
    pub began: Timestamp,
    /// When its end was recorded.
    pub ended: Timestamp,
    /// How it ended; [`Ran::Cancelled`] where it was handed back.
    pub ran: Ran,
    /// With which error; empty without.
    pub error: String,
}

/// What somebody wants of a task.
#[derive(Clone, Debug)]
#[allow(clippy::exhaustive_structs, reason = "an internal message")]
pub struct ChangeTask {
    /// The shard.
    pub shard: Shard,
    /// The task.
    pub key: String,
    /// What.
    pub change: TaskChange,
    /// What is kept of one that ends by it.
    pub keep: TaskKeep,
}

/// What that may be.
#[derive(Clone, Debug)]
#[allow(clippy::exhaustive_enums, reason = "an internal message")]
pub enum TaskChange {
    /// It shall not be run any more. One that runs is told with its next sign of life.
    Cancel,
    /// It shall be due at another time. Only what waits for its time can be.
    Reschedule(Due),
    /// It shall be tried again now: a dead one anew, one that waits for its next attempt without waiting longer.
    Retry,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "an internal message")]
pub enum Changed {
    /// It is so. The status that the task had before.
    Done(TaskStatus),
    /// The worker that runs it will be told.
    Asked,
    /// It cannot be, in this status.
    Not(TaskStatus),
    /// Its unique key belongs to another unfinished task by now.
    UniqueTaken(String),
    /// No such task is known, or any more.
    Unknown,
}

/// A wish for a page of tasks.
#[derive(Clone, Debug)]
#[allow(clippy::exhaustive_structs, reason = "an internal message")]
pub struct ListTasks {
    /// The shard.
    pub shard: Shard,
    /// Those of this status.
    pub status: TaskStatus,
    /// Those of this name.
    pub task: Option<TaskName>,
    /// Those that are, or were, due before.
    pub due_before: Option<Timestamp>,
    /// Where the page before this one ended.
    pub after: Option<String>,
    /// The most tasks that are looked at.
    pub most: u32,
}

/// A page of tasks: by lane and then by due time where they wait, else by when they came into the status. Tasks that move meanwhile may be
/// passed over or told twice.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "an internal message")]
pub struct TaskPage {
    /// The tasks, without payloads.
    pub tasks: Vec<StoredTask>,
    /// Where the next page begins; `None` after the last.
    pub next: Option<String>,
}

/// What is in a shard.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "an internal message")]
pub struct ShardFigures {
    /// The server's time.
    pub now: Timestamp,
    /// Waits for its time, those whose attempt has failed included.
    pub pending: u64,
    /// Of these, is due.
    pub due: u64,
    /// When the first of these was due.
    pub oldest_due: Option<Timestamp>,
    /// Waits in streams.
    pub dispatched: u64,
    /// Is run.
    pub running: u64,
    /// Dead letters.
    pub dead: u64,
    /// What has happened so far.
    pub counts: TaskCounts,
    /// Unfinished tasks by generation; those without are left out.
    pub unfinished: BTreeMap<u32, u64>,
}

impl std::ops::AddAssign for TaskCounts {
    fn add_assign(&mut self, other: Self) {
        self.enqueued += other.enqueued;
        self.dispatched += other.dispatched;
        self.started += other.started;
        self.done += other.done;
        self.failed += other.failed;
        self.lost += other.lost;
        self.handed_back += other.handed_back;
        self.dead += other.dead;
        self.cancelled += other.cancelled;
        self.late += other.late;
    }
}

/// What has happened in a shard since it was first used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "an internal message")]
pub struct TaskCounts {
    /// Tasks that were stored.
    pub enqueued: u64,
    /// Moves to a stream.
    pub dispatched: u64,
    /// Attempts that have begun.
    pub started: u64,
    /// Tasks that are done.
    pub done: u64,
    /// Attempts that failed.
    pub failed: u64,
    /// Attempts that were lost.
    pub lost: u64,
    /// Attempts that were handed back.
    pub handed_back: u64,
    /// Tasks that have died.
    pub dead: u64,
    /// Tasks that were cancelled.
    pub cancelled: u64,
    /// Results that came too late and were refused.
    pub late: u64,
}

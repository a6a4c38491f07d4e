//! What is seen of tasks.

use std::time::Duration;

use jiff::Timestamp;

use crate::store::tasks::{Changed, StoredTask, TaskChange, TaskEnding, TaskStatus};
use crate::tasks::id::TaskId;
use crate::testing::simulation::seen::Who;

/// An attempt whose body has begun.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::testing::simulation) struct Attempt {
    pub(in crate::testing::simulation) who: Who,
    pub(in crate::testing::simulation) task: &'static str,
    pub(in crate::testing::simulation) id: TaskId,
    /// Which one, from 1.
    pub(in crate::testing::simulation) number: u32,
    pub(in crate::testing::simulation) fence: u64,
    pub(in crate::testing::simulation) due: Timestamp,
}

/// What who wanted a task stored was told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::testing::simulation) enum Answer {
    Stored(TaskId),
    /// This one is there instead.
    Instead(TaskId),
    NotStored,
    NotKnown,
}

/// Something that was seen of tasks, at one true instant.
#[derive(Clone, Debug)]
pub(in crate::testing::simulation) enum TaskSeen<'a> {
    /// Somebody wanted one stored, and was answered.
    Answered {
        who: Who,
        task: &'static str,
        unique: Option<&'a str>,
        answer: &'a Answer,
    },
    /// A server has stored one, or says that it has; `again` where a batch is told a second time.
    Stored {
        id: &'a TaskId,
        due: Timestamp,
        unique: Option<&'a str>,
        again: bool,
    },
    /// A server has not stored one because this unfinished one has its key.
    Instead {
        id: &'a TaskId,
        unique: &'a str,
        again: bool,
    },
    /// A server has begun an attempt, or tells of it again.
    Begun {
        id: &'a TaskId,
        attempt: u32,
        fence: u64,
        instance: Option<usize>,
        /// The same step had begun others.
        anew: bool,
    },
    /// A server was told how an attempt ended.
    Finished {
        id: &'a TaskId,
        fence: u64,
        how: &'a TaskEnding,
        taken: bool,
        /// What the task is now.
        now: Option<TaskStatus>,
    },
    /// A server has given up an attempt that was silent.
    Lost {
        id: &'a TaskId,
        attempt: u32,
        now: Option<TaskStatus>,
    },
    /// A server was asked to change a task.
    Changed {
        id: &'a TaskId,
        change: &'a TaskChange,
        changed: &'a Changed,
    },
    /// A body was polled: `trusted` as it says itself, and `others` are attempts of the same task that are trusted elsewhere.
    Polled {
        attempt: &'a Attempt,
        first: bool,
        trusted: bool,
        others: &'a [Attempt],
    },
    Ended {
        attempt: &'a Attempt,
        returned: Option<bool>,
    },
    /// So many tasks were unfinished when the faults were over, and how long it took until none was.
    Drained {
        unfinished: u64,
        after: Option<Duration>,
        bound: Duration,
    },
    /// What the store has at the end of a task that somebody was told to be stored.
    Left {
        id: &'a TaskId,
        stored: Option<&'a StoredTask>,
        retries: u32,
    },
}

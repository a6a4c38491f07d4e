//! The seam between an instance and the tasks of its store: what is asked, what is answered, and what each step keeps.
//!
//! A task lives in one *shard* of its queue from the moment it is stored until it is forgotten. All that is kept of a shard shares its
//! election group's Cluster slot, so that every step below is atomic and may look at the lease.

mod ends;
mod generations;
mod stored;
mod work;

use std::fmt;

pub use ends::{FinishBatch, FinishReply, TaskEnd, TaskEnding};
pub use generations::{Closed, Generation, Generations, OpenQueue};
pub use stored::{
    ChangeTask, Changed, ListTasks, PastAttempt, RunningAttempt, ShardFigures, StoredTask, TaskChange, TaskCounts,
    TaskPage, TaskStatus,
};
pub use work::{
    AwaitTasks, BeatReply, Dispatch, DispatchReply, Due, EnqueueBatch, EnqueueReply, LaneRoom, LostAttempt, Moves,
    NewTask, Take, TakeReply, Taken, TaskBeats,
};

use super::Answer;
use crate::names::{GroupName, QueueName, TaskName};

/// The most attempts of a task whose history is kept: the newest ones.
pub const KEPT_ATTEMPTS: usize = 10;

/// The payloads of one [`take`](TaskStore::take), in bytes: more would not be through before its worker stops waiting. The first task comes
/// whatever it carries.
pub const TAKE_BYTES: usize = 1 << 20;

/// What a store does with tasks. The contract suite states what each operation must keep.
///
/// Dropping an answer's future does not undo the operation: it may have run, or may still run. Whatever changes something may be asked
/// again in the same words after an answer was lost, and then answers alike and changes nothing more.
pub trait TaskStore: fmt::Debug + Send + Sync {
    /// Which generations of a queue are open; where the newest has another number of shards than is asked for, it opens the next.
    fn open_queue(&self, request: OpenQueue) -> Answer<'_, Generations>;

    /// Ends an earlier generation of a queue whose shards have no unfinished task of it.
    fn close_generation(&self, request: Closed) -> Answer<'_, Generations>;

    /// Stores tasks of one shard, in one atomic step.
    ///
    /// A batch of an earlier generation than the shard knows is refused as a whole. A task whose unique key belongs to an unfinished one is
    /// not stored, and that one is named. Nor is one whose key is that of an unfinished or dead task, or that is `once` while its key is
    /// remembered. One whose key is that of a task which is done or was cancelled is another life of it: nothing is told any more of the one
    /// before.
    fn enqueue(&self, batch: EnqueueBatch) -> Answer<'_, EnqueueReply>;

    /// Forgets keys that were remembered for tasks that are to be stored once.
    fn forget_once<'a>(&'a self, shard: &'a Shard, keys: Vec<String>) -> Answer<'a, ()>;

    /// Who has a unique key: the key of an unfinished task.
    fn unique<'a>(&'a self, shard: &'a Shard, unique: &'a str) -> Answer<'a, Option<String>>;

    /// Moves due tasks to the streams of their lanes, in one atomic step that checks the lease of the shard's group; settles attempts that
    /// have been silent; keeps what has ended within its bounds: those that are too old go in this step, those that are too many in this one
    /// or as others end.
    fn dispatch(&self, request: Dispatch) -> Answer<'_, DispatchReply>;

    /// Begins attempts of what waits in the streams, up to [`TAKE_BYTES`]: the order is that of the lanes asked for. Reading, taking out and beginning are one
    /// step, so that nothing is ever with a worker that has not begun.
    fn take(&self, request: Take) -> Answer<'_, TakeReply>;

    /// Waits until there may be something to take, or the bound has passed. One that waits is woken for one that is put into a stream. A
    /// process has one wait at a time: another would begin when the first has ended.
    fn await_tasks(&self, request: AwaitTasks) -> Answer<'_, ()>;

    /// Tells that attempts are alive. One answer for each.
    fn beat_tasks(&self, request: TaskBeats) -> Answer<'_, Vec<BeatReply>>;

    /// Records how attempts ended: each is compared with the fence under which the task runs.
    fn finish(&self, batch: FinishBatch) -> Answer<'_, Vec<FinishReply>>;

    /// Changes what will become of a task.
    fn change_task(&self, request: ChangeTask) -> Answer<'_, Changed>;

    /// Reads a task with its payload.
    fn task<'a>(&'a self, shard: &'a Shard, key: &'a str) -> Answer<'a, Option<StoredTask>>;

    /// Reads a page of the tasks of one status, without payloads.
    fn list_tasks(&self, request: ListTasks) -> Answer<'_, TaskPage>;

    /// Counts what is in a shard.
    fn task_figures<'a>(&'a self, shard: &'a Shard) -> Answer<'a, ShardFigures>;
}

/// One part of a queue: an election group and a Cluster slot of its own.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(clippy::exhaustive_structs, reason = "an internal message")]
pub struct Shard {
    /// The queue.
    pub queue: QueueName,
    /// Which part, from 0.
    pub index: u32,
}

impl Shard {
    /// The group whose leader dispatches it.
    ///
    /// # Panics
    /// Never: a queue's name leaves room for what is added.
    #[must_use]
    pub fn group(&self) -> GroupName {
        GroupName::new(format!("dispatch:{}:{}", self.queue, self.index)).expect("a queue's name is short enough")
    }
}

/// How soon a task is taken where others wait too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Priority {
    /// Before all others.
    High,
    /// As usual.
    #[default]
    Normal,
    /// When nothing else waits.
    Low,
}

impl Priority {
    /// Every value, the first to be taken first.
    pub const ALL: &[Self] = &[Self::High, Self::Normal, Self::Low];

    /// The word for logs and metrics.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::High => "high",
            Self::Normal => "normal",
            Self::Low => "low",
        }
    }

    /// The digit that stands before a task's name in the store: lanes sort by it.
    #[must_use]
    pub fn digit(self) -> char {
        match self {
            Self::High => '0',
            Self::Normal => '1',
            Self::Low => '2',
        }
    }
}

impl fmt::Display for Priority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The tasks of one name and priority: they wait together, and those that are due go to one stream. Lanes sort by priority.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(clippy::exhaustive_structs, reason = "an internal message")]
pub struct Lane {
    /// How soon they are taken.
    pub priority: Priority,
    /// What they are.
    pub task: TaskName,
}

impl fmt::Display for Lane {
    /// As the store spells it: `1:charge`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.priority.digit(), self.task)
    }
}

impl Lane {
    /// Reads what [`Display`](fmt::Display) has written.
    #[must_use]
    pub fn from_store(text: &str) -> Option<Self> {
        let (digit, task) = text.split_once(':')?;
        let priority = *Priority::ALL
            .iter()
            .find(|priority| digit.chars().eq([priority.digit()]))?;
        let task = TaskName::new(task.to_owned()).ok()?;
        Some(Self { priority, task })
    }
}

/// How much is kept of tasks that have ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "an internal message")]
pub struct TaskKeep {
    /// So many of each shard that are done or were cancelled, without their payloads; up to a tenth more, as they go together.
    pub ended: u32,
    /// And no longer than this, and a tenth of it.
    pub ended_for: std::time::Duration,
    /// So many dead letters of each shard.
    pub dead: u32,
    /// And no longer than this.
    pub dead_for: std::time::Duration,
}

impl Default for TaskKeep {
    fn default() -> Self {
        const DAY: u64 = 24 * 60 * 60;
        Self {
            ended: 10_000,
            ended_for: std::time::Duration::from_secs(7 * DAY),
            dead: 10_000,
            dead_for: std::time::Duration::from_secs(90 * DAY),
        }
    }
}

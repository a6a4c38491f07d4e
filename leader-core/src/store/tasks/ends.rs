//! How attempts end.

use std::time::Duration;

use super::{Lane, Shard, TaskKeep};
use crate::job::outcome::Ran;
use crate::names::Holder;

/// Ends of attempts of one shard, recorded in one step.
#[derive(Clone, Debug)]
#[allow(clippy::exhaustive_structs, reason = "an internal message")]
pub struct FinishBatch {
    /// The shard.
    pub shard: Shard,
    /// The worker.
    pub holder: Holder,
    /// The ends.
    pub ends: Vec<TaskEnd>,
    /// What is kept.
    pub keep: TaskKeep,
}

/// One end.
#[derive(Clone, Debug)]
#[allow(clippy::exhaustive_structs, reason = "an internal message")]
pub struct TaskEnd {
    /// The task.
    pub key: String,
    /// Where it waited.
    pub lane: Lane,
    /// The attempt's fence.
    pub fence: u64,
    /// The task's unique key.
    pub unique: Option<String>,
    /// The generation that it belongs to.
    pub generation: u32,
    /// What becomes of it.
    pub how: TaskEnding,
}

/// What becomes of a task after an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "an internal message")]
pub enum TaskEnding {
    /// It is done.
    Done,
    /// The attempt failed, and another is due so long after this.
    Retry {
        /// The pause.
        after: Duration,
        /// How the attempt ended.
        ran: Ran,
        /// With which error.
        error: String,
    },
    /// The attempt failed, and was the last: it is dead.
    Bury {
        /// How the attempt ended.
        ran: Ran,
        /// With which error.
        error: String,
    },
    /// Somebody has cancelled it.
    Cancelled,
    /// The worker stops: the attempt counts for nothing, and the task is due at once.
    HandBack,
}

/// What a result came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "an internal message")]
pub enum FinishReply {
    /// It is recorded.
    Taken,
    /// The task is no longer the attempt's: its result is refused. Not that of the attempt which ended last, unless it was found to be lost:
    /// what is told of it again is taken again, and changes nothing.
    Late,
}

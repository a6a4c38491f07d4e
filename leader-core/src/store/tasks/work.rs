//! Tasks that are stored, dispatched, taken and alive.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::{Lane, Shard, TaskKeep};
use crate::names::Holder;

/// When a task is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "an internal message")]
pub enum Due {
    /// At an instant; one that has passed is due at once.
    At(Timestamp),
    /// So long after the store has taken it, by the store's clock.
    After(Duration),
}

/// Tasks of one shard that are stored in one step.
#[derive(Clone, Debug)]
#[allow(clippy::exhaustive_structs, reason = "an internal message")]
pub struct EnqueueBatch {
    /// The shard.
    pub shard: Shard,
    /// The generation that it was chosen by.
    pub generation: u32,
    /// Who stores them. It has one batch of a shard under way at a time.
    pub producer: Holder,
    /// Rises with each batch of this producer: one that is not above the last that was taken is a repetition, and stores nothing. The last
    /// gets the answer that was given first, whatever has become of its tasks. A producer that has said nothing for a day may be forgotten.
    pub number: u64,
    /// The tasks.
    pub tasks: Vec<NewTask>,
}

/// One of them.
#[derive(Clone, Debug)]
#[allow(clippy::exhaustive_structs, reason = "an internal message")]
pub struct NewTask {
    /// What it is called within its shard: unlike every other, and without control characters.
    pub key: String,
    /// Where it waits.
    pub lane: Lane,
    /// When it is due.
    pub due: Due,
    /// Only one unfinished task of a shard has this, if any. No control characters.
    pub unique: Option<String>,
    /// The key is remembered until it is told to be forgotten, and no other task of that key is stored meanwhile.
    pub once: bool,
    /// What it carries, as JSON.
    pub payload: Arc<str>,
}

/// The answer to an [`EnqueueBatch`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "an internal message")]
pub enum EnqueueReply {
    /// The batch was taken.
    Stored {
        /// The server's time.
        now: Timestamp,
        /// For each task the key of the one that has its unique key, where that is another; or its own where it was stored before, `once`.
        instead: Vec<Option<String>>,
    },
    /// The queue has a later generation than the batch.
    Moved {
        /// Its number.
        generation: u32,
    },
}

/// The dispatcher's step.
#[derive(Clone, Debug)]
#[allow(clippy::exhaustive_structs, reason = "an internal message")]
pub struct Dispatch {
    /// The shard.
    pub shard: Shard,
    /// The leader of its group.
    pub holder: Holder,
    /// Its term.
    pub term: u64,
    /// The most tasks that are moved.
    pub most: u32,
    /// The most that waits in a stream.
    pub room: u32,
    /// How long an attempt may be silent before it is lost.
    pub silence: Duration,
    /// How long the leader has been connected without a break: a silence is judged only by one that would have heard.
    pub connected: Duration,
    /// How often a task may be lost and go on: once more, and it is dead.
    pub losses: u32,
    /// What is kept.
    pub keep: TaskKeep,
}

/// The answer to a [`Dispatch`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "an internal message")]
pub enum DispatchReply {
    /// The lease is the asker's.
    Yours(Moves),
    /// It is not; nothing was done.
    NotYours,
}

/// What a dispatcher's step has done.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "an internal message")]
pub struct Moves {
    /// The server's time.
    pub now: Timestamp,
    /// How many tasks were moved.
    pub moved: u32,
    /// When the first of them was due.
    pub first_due: Option<Timestamp>,
    /// When the next task is due of a lane that is not due yet, or whose stream has room: in the past where the step had moved the most it
    /// may.
    pub next: Option<Timestamp>,
    /// Whether a task is due whose lane's stream has no room.
    pub full: bool,
    /// When the attempt that was heard of longest ago will have been silent for too long, unless it is heard of.
    pub silent_at: Option<Timestamp>,
    /// The attempts that were found to be lost.
    pub lost: Vec<LostAttempt>,
}

/// An attempt whose worker has fallen silent.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "an internal message")]
pub struct LostAttempt {
    /// The task.
    pub key: String,
    /// Where it waits.
    pub lane: Lane,
    /// Which attempt it was.
    pub attempt: u32,
    /// Who made it.
    pub holder: Holder,
    /// Whether the task is dead now.
    pub dead: bool,
}

/// What a worker has room for.
#[derive(Clone, Debug)]
#[allow(clippy::exhaustive_structs, reason = "an internal message")]
pub struct Take {
    /// The shard.
    pub shard: Shard,
    /// The worker.
    pub holder: Holder,
    /// Rises with each step of this worker on this shard; the same again gets the same attempts, as far as they are still its own. One below
    /// the last that began something begins nothing. A worker that has begun nothing for a day may be forgotten.
    pub number: u64,
    /// Whether it was asked before, without an answer: then its number counts even where it begins nothing, so that the earlier copy, which
    /// may come later, begins nothing either.
    pub again: bool,
    /// The most attempts that are begun.
    pub most: u32,
    /// The lanes whose tasks it knows, the first to be read first.
    pub lanes: Vec<LaneRoom>,
}

/// How much of one lane a worker has room for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "an internal message")]
pub struct LaneRoom {
    /// The lane.
    pub lane: Lane,
    /// The most attempts of it.
    pub most: u32,
}

/// The answer to a [`Take`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "an internal message")]
pub struct TakeReply {
    /// The attempts that have begun.
    pub taken: Vec<Taken>,
    /// Whether more may wait in the lanes asked for.
    pub more: bool,
}

/// An attempt that has begun.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "an internal message")]
pub struct Taken {
    /// The task.
    pub key: String,
    /// Where it waited.
    pub lane: Lane,
    /// The attempt's fence: above every fence and term of the shard's group before it.
    pub fence: u64,
    /// Which attempt it is, from 1.
    pub attempt: u32,
    /// How many of those before it failed: neither those that were lost nor those that were handed back.
    pub failed: u32,
    /// When the task was due, this time.
    pub due: Timestamp,
    /// When it was stored.
    pub created: Timestamp,
    /// Its unique key.
    pub unique: Option<String>,
    /// The generation that it belongs to.
    pub generation: u32,
    /// What it carries.
    pub payload: Arc<str>,
}

/// A wait for something to take.
#[derive(Clone, Debug)]
#[allow(clippy::exhaustive_structs, reason = "an internal message")]
pub struct AwaitTasks {
    /// The shards.
    pub shards: Vec<Shard>,
    /// The tasks that are known, by name.
    pub tasks: Vec<crate::names::TaskName>,
    /// How long to wait.
    pub bound: Duration,
}

/// Signs of life of a worker's attempts.
#[derive(Clone, Debug)]
#[allow(clippy::exhaustive_structs, reason = "an internal message")]
pub struct TaskBeats {
    /// The shard.
    pub shard: Shard,
    /// The attempts: task and fence.
    pub attempts: Vec<(String, u64)>,
}

/// What one attempt is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "an internal message")]
pub enum BeatReply {
    /// It is heard.
    Heard,
    /// It is heard, and somebody wants it to end.
    Cancel,
    /// It is no longer its worker's.
    Gone,
}

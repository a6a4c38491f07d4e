//! What happened to tasks.

use jiff::SignedDuration;

use crate::job::outcome::Ran;
use crate::names::{QueueName, TaskName};

/// Something that happened to tasks here. What goes well is counted in the figures and told of nowhere, because it may be much.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TaskNews {
    /// This instance leads a shard of a queue, and has handed due tasks to the workers.
    #[non_exhaustive]
    Dispatched {
        /// The queue.
        queue: QueueName,
        /// Which part of it.
        shard: u32,
        /// How many.
        count: u32,
        /// How long ago the first of them was due.
        lag: SignedDuration,
    },
    /// An attempt on this instance failed.
    #[non_exhaustive]
    Failed {
        /// The task, as [`TaskId`](crate::TaskId) writes it.
        id: String,
        /// The task's name.
        task: TaskName,
        /// The attempt's fence.
        fence: u64,
        /// How it ended.
        ran: Ran,
        /// Its error or panic.
        error: String,
        /// Whether it was the last: the task is dead.
        dead: bool,
    },
    /// The result of an attempt on this instance came too late: the task was another worker's by then.
    #[non_exhaustive]
    Refused {
        /// The task, as [`TaskId`](crate::TaskId) writes it.
        id: String,
        /// The task's name.
        task: TaskName,
        /// The attempt's fence.
        fence: u64,
    },
    /// This instance leads a shard of a queue, and has found a worker silent: the task is tried again.
    #[non_exhaustive]
    Lost {
        /// The task, as [`TaskId`](crate::TaskId) writes it.
        id: String,
        /// The task's name.
        task: TaskName,
        /// Which attempt it was.
        attempt: u32,
        /// The worker's instance.
        instance: String,
        /// Whether it has been lost too often: the task is dead, or was to be cancelled.
        dead: bool,
    },
}

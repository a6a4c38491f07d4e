//! What an instance was given of tasks, checked.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::id::Keys;
use super::record::TaskBody;
use crate::names::{QueueName, TaskName};
use crate::runtime::config::JobSpec;
use crate::schedule::Backoff;
use crate::store::tasks::TaskKeep;

/// The most bytes of a payload, unless said otherwise.
pub(crate) const MAX_PAYLOAD: usize = 256 * 1024;
/// The most attempts that run at once on an instance, unless said otherwise.
pub(crate) const CONCURRENCY: usize = 64;
/// The most that waits in one stream: what is due beyond that stays in its bucket.
pub(crate) const STREAM: u32 = 10_000;
/// How often a task may be lost with its worker and go on: what takes its process down each time shall not do so for ever.
pub(crate) const LOSSES: u32 = 3;
/// The most shards of a queue.
pub(crate) const MAX_SHARDS: u32 = 256;

/// A function that runs tasks.
#[derive(Clone)]
pub(crate) struct TaskSpec {
    pub(crate) name: TaskName,
    pub(crate) queue: QueueName,
    pub(crate) retries: u32,
    pub(crate) backoff: Backoff,
    pub(crate) timeout: Option<Duration>,
    /// The most attempts of it at once.
    pub(crate) concurrency: Option<u32>,
    pub(crate) runs: Runs,
}

/// What it runs.
#[derive(Clone)]
pub(crate) enum Runs {
    /// A function under `#[task]`.
    Task(TaskBody),
    /// A job whose ticks the fleet runs.
    Tick(Arc<JobSpec>),
}

impl std::fmt::Debug for TaskSpec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TaskSpec")
            .field("name", &self.name)
            .field("queue", &self.queue)
            .finish_non_exhaustive()
    }
}

/// Everything about tasks that an instance was given.
#[derive(Debug)]
pub(crate) struct Settings {
    /// By name.
    pub(crate) specs: BTreeMap<TaskName, TaskSpec>,
    /// Each queue, with the number of shards that was asked for.
    pub(crate) queues: BTreeMap<QueueName, Option<u32>>,
    /// Of these, those whose tasks are run whichever they are, and not only the functions' own.
    pub(crate) open: BTreeSet<QueueName>,
    /// Whether this instance runs tasks.
    pub(crate) works: bool,
    /// The most attempts at once.
    pub(crate) concurrency: usize,
    pub(crate) max_payload: usize,
    /// The most that waits in one stream.
    pub(crate) stream: u32,
    pub(crate) keep: TaskKeep,
    pub(crate) keys: Keys,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            specs: BTreeMap::new(),
            queues: BTreeMap::new(),
            open: BTreeSet::new(),
            works: true,
            concurrency: CONCURRENCY,
            max_payload: MAX_PAYLOAD,
            stream: STREAM,
            keep: TaskKeep::default(),
            keys: Keys::default(),
        }
    }
}

impl Settings {
    /// Whether there is nothing to do: no function runs tasks, and no queue was named.
    pub(crate) fn is_empty(&self) -> bool {
        self.queues.is_empty()
    }
}

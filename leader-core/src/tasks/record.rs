//! What `#[task]` leaves for the linker to collect, and what says which payload belongs to which task.

use std::fmt;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::extract::TaskGiven;
use crate::job::extract::Needs;
use crate::job::output::JobOutput;
use crate::job::record::BodyFuture;
use crate::schedule::{Backoff, MOST_RETRIES};

pub(super) type TaskRunFn = fn(&TaskGiven<'_>) -> BodyFuture;
type TaskNeedsFn = fn(&mut Needs);

/// How often a task is tried again that says nothing of it.
pub(crate) const DEFAULT_RETRIES: u32 = 3;

/// Checks `retries` of a task at compile time.
///
/// # Panics
/// When it is more than [`MOST_RETRIES`].
#[must_use]
#[track_caller]
pub(crate) const fn checked_task_retries(count: u32) -> u32 {
    assert!(
        count <= MOST_RETRIES,
        "`retries` is more than 1000: what fails so often is for somebody to look at; write a smaller number"
    );
    count
}

/// One function that runs tasks.
#[doc(hidden)]
#[derive(Clone, Copy)]
pub struct TaskRecord {
    pub(crate) name: &'static str,
    pub(crate) queue: &'static str,
    pub(crate) module: &'static str,
    pub(crate) retries: u32,
    pub(crate) backoff: Option<Backoff>,
    /// The bound of an attempt.
    pub(crate) timeout: Option<Duration>,
    /// The most attempts that run at once on one instance.
    pub(crate) concurrency: Option<u32>,
    pub(crate) body: TaskBody,
}

/// Its two function pointers: one makes an attempt's future, one says what its arguments need.
#[derive(Clone, Copy)]
pub(crate) struct TaskBody {
    pub(crate) run: TaskRunFn,
    pub(crate) needs: TaskNeedsFn,
}

impl fmt::Debug for TaskRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskRecord")
            .field("name", &self.name)
            .field("queue", &self.queue)
            .field("retries", &self.retries)
            .field("backoff", &self.backoff)
            .field("timeout", &self.timeout)
            .field("concurrency", &self.concurrency)
            .finish_non_exhaustive()
    }
}

inventory::collect!(TaskRecord);

impl TaskRecord {
    /// A task of a queue, with the usual settings.
    #[must_use]
    pub const fn new(
        name: &'static str,
        queue: &'static str,
        module: &'static str,
        run: TaskRunFn,
        needs: TaskNeedsFn,
    ) -> Self {
        Self {
            name,
            queue,
            module,
            retries: DEFAULT_RETRIES,
            backoff: None,
            timeout: None,
            concurrency: None,
            body: TaskBody { run, needs },
        }
    }

    /// How often a failed one is tried again.
    #[must_use]
    pub const fn retries(self, retries: u32) -> Self {
        Self { retries, ..self }
    }

    /// How long it pauses before.
    #[must_use]
    pub const fn backoff(self, backoff: Backoff) -> Self {
        Self {
            backoff: Some(backoff),
            ..self
        }
    }

    /// The bound of an attempt.
    #[must_use]
    pub const fn timeout(self, timeout: Duration) -> Self {
        Self {
            timeout: Some(timeout),
            ..self
        }
    }

    /// The most attempts that run at once on one instance.
    #[must_use]
    pub const fn concurrency(self, most: u32) -> Self {
        Self {
            concurrency: Some(most),
            ..self
        }
    }
}

/// The hidden type beside every function under `#[task]`, of the function's own name: `enqueue::<billing::charge>(&invoice)`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a task",
    label = "not a task: annotate the function with `#[task]`"
)]
pub trait TaskHandler: 'static {
    /// The task's stable name.
    const NAME: &'static str;
    /// The queue that its tasks wait in.
    const QUEUE: &'static str;
    /// What its tasks carry; `()` where the function takes no payload.
    type Payload: DeserializeOwned + Send + 'static;
    #[doc(hidden)]
    const RECORD: TaskRecord;
}

/// What a task returns: what a job does.
#[diagnostic::on_unimplemented(
    message = "a task cannot return `{Self}`",
    label = "a task returns `()` or `Result<T, E>`",
    note = "`E` must convert into `Box<dyn Error + Send + Sync>`; `anyhow::Error`, `String` and every `std` error do"
)]
pub trait TaskOutput: JobOutput {}

#[diagnostic::do_not_recommend]
impl<R: JobOutput> TaskOutput for R {}

/// What tasks of `H` carry: the type of the first argument of the function under `#[task]`, or `()`. The attribute says so, and nobody else.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not what the task `{H}` takes",
    label = "not the payload of `{H}`",
    note = "the payload is the first argument of the function under `#[task]`, and `()` where that is `Task` or a state"
)]
pub trait PayloadOf<H: TaskHandler>: Serialize {}

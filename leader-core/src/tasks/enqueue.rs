//! Storing tasks: what a caller says of them, and what is refused before anything is stored.

use std::fmt;
use std::future::IntoFuture;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::handle::Tasks;
use super::id::TaskId;
use super::record::{PayloadOf, TaskHandler};
use crate::names::{NameError, QueueName, TaskName};
use crate::store::StoreError;
use crate::store::tasks::{Due, Lane, NewTask, Priority};

/// The longest unique key, in bytes.
pub const MAX_UNIQUE: usize = 200;
/// The longest time that a task is due after now: a hundred years.
const LONGEST: Duration = Duration::from_secs(100 * 366 * 24 * 60 * 60);

/// A task that was stored, or the one that is there instead.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Enqueued {
    /// Which task it is.
    pub id: TaskId,
    /// Whether it is new; `false` where an unfinished task with the same unique key is there, which is the one that is named.
    pub is_new: bool,
}

/// Why a task was not stored.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EnqueueError {
    /// The payload cannot be written as JSON.
    #[error("the payload of `{task}` cannot be written as JSON: nothing was stored; mend its `Serialize`")]
    #[non_exhaustive]
    Payload {
        /// The task.
        task: &'static str,
        /// What serde says.
        source: serde_json::Error,
    },
    /// The payload is too large.
    #[error(
        "the payload of `{task}` has {bytes} bytes, and at most {most} are taken: nothing was stored; keep the data elsewhere and \
         give the task its name, or raise the limit with `bootstrap(..).tasks(|tasks| tasks.max_payload(..))`"
    )]
    #[non_exhaustive]
    TooLarge {
        /// The task.
        task: &'static str,
        /// Its bytes as JSON.
        bytes: usize,
        /// The most that are taken.
        most: usize,
    },
    /// A name is refused.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The unique key is refused.
    #[error("the unique key {key:?} is refused: {reason}; nothing was stored")]
    #[non_exhaustive]
    Unique {
        /// The key, cut to a readable length.
        key: String,
        /// Why.
        reason: &'static str,
    },
    /// The task would be due too far in the future.
    #[error("a task cannot be due {after:?} after now: nothing was stored; write at most a hundred years")]
    #[non_exhaustive]
    Due {
        /// How long after now.
        after: Duration,
    },
    /// The instance has stopped.
    #[error("the instance has stopped and stores nothing any more: enqueue before `shutdown`, or on another instance")]
    Stopped,
    /// The instance ended while it was storing.
    #[error(
        "the instance ended while it was storing, and it is not known whether it has: enqueue again on another instance with the same \
         `.unique(key)`, and nothing is stored twice"
    )]
    Ended,
    /// The store failed.
    #[error("{}", store_text(*.stored, *.all, *.unknown))]
    #[non_exhaustive]
    Store {
        /// How many of the tasks are known to be stored.
        stored: usize,
        /// How many there were.
        all: usize,
        /// Whether others of them may be stored, too.
        unknown: bool,
        /// Why.
        source: StoreError,
    },
}

fn store_text(stored: usize, all: usize, unknown: bool) -> String {
    let what = match (stored, all) {
        (0, 1) => "the task was not stored".to_owned(),
        (0, _) => format!("none of {all} tasks is known to be stored"),
        _ => format!("only {stored} of {all} tasks are known to be stored"),
    };
    let doubt = if unknown {
        ", and it is not known whether more are: enqueue again with the same `.unique(key)`, and nothing is stored twice"
    } else {
        ": enqueue again"
    };
    format!("{what}{doubt}")
}

/// What tasks of one call have in common.
#[derive(Clone, Debug)]
struct Wish {
    task: &'static str,
    queue: String,
    due: Due,
    priority: Priority,
}

impl Wish {
    fn of<H: TaskHandler>() -> Self {
        Self {
            task: H::NAME,
            queue: H::QUEUE.to_owned(),
            due: Due::After(Duration::ZERO),
            priority: Priority::Normal,
        }
    }

    /// Everything but the payload, checked.
    fn checked(self) -> Result<(QueueName, Lane, Due), EnqueueError> {
        let queue = QueueName::new(self.queue)?;
        let task = TaskName::new(self.task)?;
        if let Due::After(after) = self.due
            && after > LONGEST
        {
            return Err(EnqueueError::Due { after });
        }
        let priority = self.priority;
        Ok((queue, Lane { priority, task }, self.due))
    }
}

fn json<H: TaskHandler>(payload: &impl PayloadOf<H>, most: usize) -> Result<Arc<str>, EnqueueError> {
    let task = H::NAME;
    let json = serde_json::to_string(payload).map_err(|source| EnqueueError::Payload { task, source })?;
    let bytes = json.len();
    if bytes > most {
        return Err(EnqueueError::TooLarge { task, bytes, most });
    }
    Ok(json.into())
}

fn checked_unique(key: String) -> Result<String, EnqueueError> {
    let reason = if key.is_empty() {
        "it is empty"
    } else if key.len() > MAX_UNIQUE {
        "it has more than 200 bytes"
    } else if key.chars().any(char::is_control) {
        "it has control characters"
    } else {
        return Ok(key);
    };
    let key = key.chars().take(MAX_UNIQUE).collect();
    Err(EnqueueError::Unique { key, reason })
}

type Stored<T> = Pin<Box<dyn Future<Output = Result<T, EnqueueError>> + Send>>;

/// A task that is about to be stored; made by [`Tasks::enqueue`]. Await it.
#[must_use = "a task is stored when this is awaited"]
pub struct Enqueue<H> {
    tasks: Tasks,
    wish: Wish,
    payload: Result<Arc<str>, EnqueueError>,
    unique: Option<String>,
    of: PhantomData<fn(H)>,
}

impl<H> fmt::Debug for Enqueue<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Enqueue")
            .field("wish", &self.wish)
            .finish_non_exhaustive()
    }
}

impl<H: TaskHandler> Enqueue<H> {
    pub(super) fn new(tasks: Tasks, payload: &impl PayloadOf<H>) -> Self {
        let payload = json(payload, tasks.hub.settings.max_payload);
        Self {
            tasks,
            wish: Wish::of::<H>(),
            payload,
            unique: None,
            of: PhantomData,
        }
    }

    /// When it is due; at once, unless said. An instant that has passed is due at once. It is compared with the store's clock: the task
    /// is never taken before.
    pub fn at(mut self, due: Timestamp) -> Self {
        self.wish.due = Due::At(due);
        self
    }

    /// It is due so long after the store has taken it.
    pub fn after(mut self, pause: Duration) -> Self {
        self.wish.due = Due::After(pause);
        self
    }

    /// As long as a task of this key is unfinished in the queue, no other is stored: what comes back names the one that is there. At most
    /// [`MAX_UNIQUE`] bytes without control characters.
    pub fn unique(mut self, key: impl Into<String>) -> Self {
        self.unique = Some(key.into());
        self
    }

    /// How soon it is taken where others wait too.
    pub fn priority(mut self, priority: Priority) -> Self {
        self.wish.priority = priority;
        self
    }

    /// Another queue than the attribute's. It is dispatched and run by the instances that were given it with
    /// `bootstrap(..).tasks(|tasks| tasks.queue(..))`.
    pub fn queue(mut self, queue: impl Into<String>) -> Self {
        self.wish.queue = queue.into();
        self
    }

    fn order(self) -> Result<(Tasks, QueueName, NewTask), EnqueueError> {
        let (queue, lane, due) = self.wish.checked()?;
        let task = NewTask {
            key: self.tasks.hub.settings.keys.fresh(self.tasks.shared.fleet_now()),
            lane,
            due,
            unique: self.unique.map(checked_unique).transpose()?,
            once: false,
            payload: self.payload?,
        };
        Ok((self.tasks, queue, task))
    }
}

impl<H: TaskHandler> IntoFuture for Enqueue<H> {
    type Output = Result<Enqueued, EnqueueError>;
    type IntoFuture = Stored<Enqueued>;

    /// Not cancel safe: one that is dropped may be stored all the same.
    fn into_future(self) -> Self::IntoFuture {
        // What is refused is refused before the first poll; nothing is sent before it.
        let order = self.order();
        Box::pin(async move {
            let (tasks, queue, task) = order?;
            let mut stored = ordered(tasks, queue, vec![task]).await?;
            stored.pop().ok_or(EnqueueError::Stopped)
        })
    }
}

/// What one of many carries, and its unique key.
type Carried = (Arc<str>, Option<String>);

/// Tasks that are about to be stored together; made by [`Tasks::enqueue_many`]. Await it.
#[must_use = "tasks are stored when this is awaited"]
pub struct EnqueueMany<H> {
    tasks: Tasks,
    wish: Wish,
    payloads: Result<Vec<Carried>, EnqueueError>,
    of: PhantomData<fn(H)>,
}

impl<H> fmt::Debug for EnqueueMany<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EnqueueMany")
            .field("wish", &self.wish)
            .finish_non_exhaustive()
    }
}

impl<H: TaskHandler> EnqueueMany<H> {
    pub(super) fn new<P: PayloadOf<H>>(tasks: Tasks, payloads: impl IntoIterator<Item = (P, Option<String>)>) -> Self {
        let most = tasks.hub.settings.max_payload;
        let one = |(payload, unique): (P, Option<String>)| {
            Ok((json(&payload, most)?, unique.map(checked_unique).transpose()?))
        };
        let payloads = payloads.into_iter().map(one).collect();
        Self {
            tasks,
            wish: Wish::of::<H>(),
            payloads,
            of: PhantomData,
        }
    }

    /// When they are due; see [`Enqueue::at`].
    pub fn at(mut self, due: Timestamp) -> Self {
        self.wish.due = Due::At(due);
        self
    }

    /// They are due so long after the store has taken them.
    pub fn after(mut self, pause: Duration) -> Self {
        self.wish.due = Due::After(pause);
        self
    }

    /// How soon they are taken where others wait too.
    pub fn priority(mut self, priority: Priority) -> Self {
        self.wish.priority = priority;
        self
    }

    /// Another queue than the attribute's; see [`Enqueue::queue`].
    pub fn queue(mut self, queue: impl Into<String>) -> Self {
        self.wish.queue = queue.into();
        self
    }
}

impl<H: TaskHandler> IntoFuture for EnqueueMany<H> {
    type Output = Result<Vec<Enqueued>, EnqueueError>;
    type IntoFuture = Stored<Vec<Enqueued>>;

    /// Not cancel safe: what is dropped may be stored all the same.
    fn into_future(self) -> Self::IntoFuture {
        let Self {
            tasks, wish, payloads, ..
        } = self;
        Box::pin(async move {
            let (queue, lane, due) = wish.checked()?;
            let now = tasks.shared.fleet_now();
            let new = payloads?.into_iter().map(|(payload, unique)| NewTask {
                key: tasks.hub.settings.keys.fresh(now),
                lane: lane.clone(),
                due,
                unique,
                once: false,
                payload,
            });
            let new = new.collect();
            ordered(tasks, queue, new).await
        })
    }
}

/// Has tasks stored.
async fn ordered(tasks: Tasks, queue: QueueName, new: Vec<NewTask>) -> Result<Vec<Enqueued>, EnqueueError> {
    let placed = tasks.hub.store(queue, new).await?;
    let enqueued = |(id, is_new)| Enqueued { id, is_new };
    Ok(placed.into_iter().map(enqueued).collect())
}

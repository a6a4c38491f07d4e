//! A handle on the tasks of a running instance.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use tokio::sync::oneshot;

use super::enqueue::{Enqueue, EnqueueMany};
use super::hub::Hub;
use super::id::TaskId;
use super::query::{TaskDetails, TaskFigures, TaskList, TaskQuery};
use super::record::{PayloadOf, TaskHandler};
#[cfg(feature = "metrics")]
use crate::metrics::{Measured, Waiting};
use crate::names::{NameError, QueueName, TaskName};
use crate::runtime::engine::{Errand, Input, Request};
use crate::runtime::shared::Shared;
use crate::store::tasks::{ChangeTask, Changed, Due, ListTasks, OpenQueue, Shard, TaskChange, TaskStatus};
use crate::store::{Store, StoreError};

#[doc = include_str!("../docs/tasks.md")]
#[derive(Clone)]
pub struct Tasks {
    pub(super) shared: Arc<Shared>,
    pub(super) hub: Arc<Hub>,
}

impl fmt::Debug for Tasks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tasks").finish_non_exhaustive()
    }
}

/// Why a question about tasks has no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TaskError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A name is refused.
    #[error(transparent)]
    Name(#[from] NameError),
    /// No such task is known, or any more.
    #[error("no task `{id}` is known, or any more: what has ended is kept for a while only (`tasks.keep_ended(..)`)")]
    #[non_exhaustive]
    Unknown {
        /// The task.
        id: TaskId,
    },
    /// It cannot be done to a task in its status.
    #[error("the task `{id}` is {status}, and {what}")]
    #[non_exhaustive]
    Untimely {
        /// The task.
        id: TaskId,
        /// Its status.
        status: TaskStatus,
        /// What can be done instead.
        what: &'static str,
    },
    /// Another unfinished task has the unique key.
    #[error(
        "the task `{id}` cannot be tried again: the unfinished task `{other}` has its unique key; cancel that one, or let it run"
    )]
    #[non_exhaustive]
    UniqueTaken {
        /// The task.
        id: TaskId,
        /// The other one.
        other: TaskId,
    },
    /// The page token is not one that was given with a page.
    #[error("`{token}` is no page token of tasks: give the `next` of the page before, and the same query")]
    #[non_exhaustive]
    Token {
        /// The token.
        token: String,
    },
    /// The instance has stopped.
    #[error("the instance has stopped and asks the store nothing any more: ask another instance")]
    Stopped,
}

impl Tasks {
    pub(crate) fn new(shared: Arc<Shared>, hub: Arc<Hub>) -> Self {
        Self { shared, hub }
    }

    /// Stores a task of `H`, which some worker of the fleet runs when it is due. Await what it gives.
    ///
    /// What cannot be stored is refused before anything is sent. A store that does not answer is asked again for a while, under a number by
    /// which it knows a repetition; when it has not answered then, the error says that the task may be stored.
    pub fn enqueue<H: TaskHandler>(&self, payload: &impl PayloadOf<H>) -> Enqueue<H> {
        Enqueue::new(self.clone(), payload)
    }

    /// Stores many tasks of `H`, in as few steps as will do. One that cannot be written is the error of all, and nothing is stored; a store
    /// that fails half way leaves what it has taken, and the error says how many these are.
    pub fn enqueue_many<H: TaskHandler, P: PayloadOf<H>>(
        &self,
        payloads: impl IntoIterator<Item = P>,
    ) -> EnqueueMany<H> {
        EnqueueMany::new(self.clone(), payloads.into_iter().map(|payload| (payload, None)))
    }

    /// The same for tasks that each have a unique key.
    pub fn enqueue_many_unique<H: TaskHandler, P: PayloadOf<H>>(
        &self,
        payloads: impl IntoIterator<Item = (String, P)>,
    ) -> EnqueueMany<H> {
        let keyed = payloads.into_iter().map(|(key, payload)| (payload, Some(key)));
        EnqueueMany::new(self.clone(), keyed)
    }

    /// A task with its payload and history; `None` where it is not known, or no longer kept.
    ///
    /// # Errors
    /// [`TaskError::Store`], [`TaskError::Stopped`].
    pub async fn get(&self, id: &TaskId) -> Result<Option<TaskDetails>, TaskError> {
        let (shard, key) = (id.place().clone(), id.key().to_owned());
        let of = shard.clone();
        let stored = self
            .ask(move |store| async move { store.tasks().task(&shard, &key).await })
            .await?;
        Ok(stored.map(|stored| TaskDetails::new(&of, stored)))
    }

    /// Has a task not be run any more. One that runs is told with its worker's next sign of life ([`Task::cancelled`](crate::Task::cancelled)),
    /// and dropped with the one after that.
    ///
    /// # Errors
    /// [`TaskError::Untimely`] where it has ended, [`TaskError::Unknown`], [`TaskError::Store`], [`TaskError::Stopped`].
    pub async fn cancel(&self, id: &TaskId) -> Result<(), TaskError> {
        let what = "has ended: there is nothing to cancel";
        self.change(id, TaskChange::Cancel, what).await
    }

    /// Has a task be due at another time. Only one that waits for its time can be.
    ///
    /// # Errors
    /// [`TaskError::Untimely`] where it is dispatched or has ended, [`TaskError::Unknown`], [`TaskError::Store`], [`TaskError::Stopped`].
    pub async fn reschedule(&self, id: &TaskId, due: Timestamp) -> Result<(), TaskError> {
        let what = "only what waits for its time can have another: cancel it and enqueue it anew";
        self.change(id, TaskChange::Reschedule(Due::At(due)), what).await
    }

    /// Has a dead task be tried anew, or one that waits for its next attempt be tried now.
    ///
    /// # Errors
    /// [`TaskError::Untimely`] where it is neither, [`TaskError::UniqueTaken`], [`TaskError::Unknown`], [`TaskError::Store`],
    /// [`TaskError::Stopped`].
    pub async fn retry(&self, id: &TaskId) -> Result<(), TaskError> {
        let what = "only what is dead, or waits for its next attempt, can be tried again: wait, or enqueue it anew";
        self.change(id, TaskChange::Retry, what).await
    }

    async fn change(&self, id: &TaskId, change: TaskChange, what: &'static str) -> Result<(), TaskError> {
        let request = ChangeTask {
            shard: id.place().clone(),
            key: id.key().to_owned(),
            change,
            keep: self.hub.settings.keep,
        };
        let id = id.clone();
        match self
            .ask(|store| async move { store.tasks().change_task(request).await })
            .await?
        {
            Changed::Done(_) | Changed::Asked => Ok(()),
            Changed::Not(status) => Err(TaskError::Untimely { id, status, what }),
            Changed::UniqueTaken(other) => {
                let other = TaskId::new(id.place().clone(), other);
                Err(TaskError::UniqueTaken { id, other })
            }
            Changed::Unknown => Err(TaskError::Unknown { id }),
        }
    }

    /// A page of the tasks of a queue.
    ///
    /// # Errors
    /// [`TaskError::Name`], [`TaskError::Token`], [`TaskError::Store`], [`TaskError::Stopped`].
    pub async fn list(&self, queue: &str, query: &TaskQuery) -> Result<TaskList, TaskError> {
        let queue = QueueName::new(queue.to_owned())?;
        let task = query.name.clone().map(TaskName::new).transpose()?;
        let shards = self.shards(&queue).await?;
        let token = || TaskError::Token {
            token: query.after.clone().unwrap_or_default(),
        };
        // Which shard, and where in it.
        let (mut index, mut after) = match query
            .after
            .as_deref()
            .map(|after| after.split_once('~').ok_or_else(token))
        {
            None => (0, None),
            Some(split) => {
                let (index, after) = split?;
                let index: usize = index.parse().map_err(|_| token())?;
                (index, Some(after.to_owned()).filter(|after| !after.is_empty()))
            }
        };
        let mut list = TaskList::default();
        let limit = query.limit.clamp(1, 1000);
        while let Some(shard) = shards.get(index).cloned() {
            let left = limit.saturating_sub(u32::try_from(list.tasks.len()).unwrap_or(u32::MAX));
            if left == 0 {
                list.next = Some(format!("{index}~"));
                break;
            }
            let request = ListTasks {
                shard: shard.clone(),
                status: query.status,
                task: task.clone(),
                due_before: query.due_before,
                after: after.take(),
                most: left,
            };
            let page = self
                .ask(|store| async move { store.tasks().list_tasks(request).await })
                .await?;
            list.tasks
                .extend(page.tasks.into_iter().map(|stored| TaskDetails::new(&shard, stored)));
            if let Some(next) = page.next {
                list.next = Some(format!("{index}~{next}"));
                break;
            }
            index += 1;
        }
        Ok(list)
    }

    /// Counts what is in a queue.
    ///
    /// # Errors
    /// [`TaskError::Name`], [`TaskError::Store`], [`TaskError::Stopped`].
    pub async fn figures(&self, queue: &str) -> Result<TaskFigures, TaskError> {
        let queue = QueueName::new(queue.to_owned())?;
        let mut all = TaskFigures::default();
        let mut at: Option<Timestamp> = None;
        for shard in self.shards(&queue).await? {
            let one = self
                .ask(|store| async move { store.tasks().task_figures(&shard).await })
                .await?;
            at = at.into_iter().chain([one.now]).min();
            all.pending += one.pending;
            all.due += one.due;
            all.oldest_due = all.oldest_due.into_iter().chain(one.oldest_due).min();
            all.dispatched += one.dispatched;
            all.running += one.running;
            all.dead += one.dead;
            all.counts += one.counts;
        }
        all.at = at.unwrap_or_default();
        Ok(all)
    }

    /// Has what waits in the shards that are led here measured.
    #[cfg(feature = "metrics")]
    pub(crate) async fn measure(&self) {
        for shard in self.hub.shards() {
            let gate = self.shared.gates.get(shard.group().as_str());
            let asked = shard.clone();
            let waiting = if gate.is_some_and(|gate| gate.is_open()) {
                let figures = self.ask(|store| async move { store.tasks().task_figures(&asked).await });
                let Ok(figures) = figures.await else { continue };
                Some(Waiting {
                    pending: figures.pending,
                    dispatched: figures.dispatched,
                    running: figures.running,
                    dead: figures.dead,
                    oldest_due: figures.oldest_due,
                })
            } else {
                None
            };
            self.shared.meter.measure(Measured::Waiting {
                queue: &shard.queue,
                shard: shard.index,
                waiting,
            });
        }
    }

    /// The queues of this instance, by name, with the number of their parts: those of its tasks, and those that it was given.
    #[must_use]
    pub fn queues(&self) -> BTreeMap<String, usize> {
        let queues = self.hub.settings.queues.keys();
        // Until a task is stored here, as many as were found at the start.
        let begun = |queue: &QueueName| self.hub.shards().filter(|shard| shard.queue == *queue).count();
        let shards = |queue: &QueueName| self.hub.routes().shards(queue).len().max(begun(queue));
        queues.map(|queue| (queue.to_string(), shards(queue))).collect()
    }

    async fn shards(&self, queue: &QueueName) -> Result<Vec<Shard>, TaskError> {
        let known = self.hub.routes().of(queue).is_some();
        if !known {
            let request = OpenQueue {
                queue: queue.clone(),
                shards: None,
            };
            let generations = self
                .ask(|store| async move { store.tasks().open_queue(request).await })
                .await?;
            let shard = |index| Shard {
                queue: queue.clone(),
                index,
            };
            return Ok((0..generations.most()).map(shard).collect());
        }
        Ok(self.hub.routes().shards(queue))
    }

    /// Asks the store on the framework's thread.
    async fn ask<T: Send + 'static, F: Future<Output = Result<T, StoreError>> + Send + 'static>(
        &self,
        question: impl FnOnce(Arc<dyn Store>) -> F + Send + 'static,
    ) -> Result<T, TaskError> {
        let (tell, told) = oneshot::channel();
        let errand = Errand(Box::new(move |store| {
            Box::pin(async move {
                // Nobody waits any more.
                let _ = tell.send(question(store).await);
            })
        }));
        self.shared.send(Input::Request(Request::Errand(errand)));
        told.await.map_err(|_| TaskError::Stopped)?.map_err(TaskError::Store)
    }
}

//! The task that a body is run for.

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;

use super::id::TaskId;
use super::trust::Trust;
use crate::names::{QueueName, TaskName};
use crate::store::tasks::Priority;

/// The task that a body is run for: which one, which attempt, which fence, and when to stop. Cheap to clone.
///
/// What the task carries is the body's first argument, and not in here.
#[derive(Clone)]
pub struct Task(Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) id: TaskId,
    pub(crate) name: TaskName,
    pub(crate) priority: Priority,
    pub(crate) attempt: u32,
    pub(crate) due_at: Timestamp,
    pub(crate) enqueued_at: Timestamp,
    pub(crate) started_at: Timestamp,
    pub(crate) fence: u64,
    pub(crate) unique: Option<String>,
    pub(crate) trust: Arc<Trust>,
}

impl fmt::Debug for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Task")
            .field("id", self.id())
            .field("name", self.name())
            .field("attempt", &self.attempt())
            .field("due_at", &self.due_at())
            .field("fence", &self.fence())
            .finish_non_exhaustive()
    }
}

impl Task {
    pub(crate) fn new(inner: Inner) -> Self {
        Self(Arc::new(inner))
    }

    /// Which task this is, in the whole fleet. It is the same in every attempt: what the body asks of others may carry it as the key by which
    /// they know a repetition.
    #[must_use]
    #[doc(alias = "idempotency key")]
    pub fn id(&self) -> &TaskId {
        &self.0.id
    }

    /// The stable name of the function that runs it.
    #[must_use]
    pub fn name(&self) -> &TaskName {
        &self.0.name
    }

    /// The queue that it waited in.
    #[must_use]
    pub fn queue(&self) -> &QueueName {
        self.0.id.queue()
    }

    /// How soon it was to be taken where others waited too.
    #[must_use]
    pub fn priority(&self) -> Priority {
        self.0.priority
    }

    /// Which attempt this is, from 1. One that was lost with its worker, or handed back by one that stopped, counts too.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.0.attempt
    }

    /// When this attempt was due, by the store's clock: of the first one what was asked for, of a later one when its pause ended.
    #[must_use]
    pub fn due_at(&self) -> Timestamp {
        self.0.due_at
    }

    /// When the task was stored, by the store's clock.
    #[must_use]
    pub fn enqueued_at(&self) -> Timestamp {
        self.0.enqueued_at
    }

    /// When the body was started, by this instance's wall clock.
    #[must_use]
    pub fn started_at(&self) -> Timestamp {
        self.0.started_at
    }

    /// The fencing token of this attempt: higher than that of every attempt before it in the same part of the queue, and so of every earlier one
    /// of this task. Pass it to the resource that is written to, and have the resource refuse any lower one: [`fencing`](crate::fencing) has how.
    #[must_use]
    #[doc(alias = "fencing token")]
    pub fn fence(&self) -> u64 {
        self.0.fence
    }

    /// What the task was to be the only unfinished one of, if it was.
    #[must_use]
    pub fn unique_key(&self) -> Option<&str> {
        self.0.unique.as_deref()
    }

    /// Completes when the body should stop: at once when the instance shuts down, with the next sign of life when the task is cancelled, and when the attempt is no longer
    /// known to be this worker's, because the store was out of reach for too long or the task is another's by now. Cancel safe.
    pub async fn cancelled(&self) {
        self.0.trust.cancelled().await;
    }

    /// Whether the attempt may still be believed to be its worker's.
    #[cfg(feature = "testing")]
    pub(crate) fn is_trusted(&self) -> bool {
        self.0.trust.holds()
    }

    /// Whether the body should stop.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.trust.is_cancelled()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::clock::Clock;

    fn task(trust: &Arc<Trust>) -> Task {
        Task::new(Inner {
            id: "mail~3~k".parse().unwrap(),
            name: TaskName::new("send").unwrap(),
            priority: Priority::High,
            attempt: 2,
            due_at: Timestamp::from_second(20).unwrap(),
            enqueued_at: Timestamp::from_second(10).unwrap(),
            started_at: Timestamp::from_second(21).unwrap(),
            fence: 9,
            unique: Some("u".to_owned()),
            trust: Arc::clone(trust),
        })
    }

    #[tokio::test]
    async fn it_stops_when_it_is_told_and_when_trust_ends() {
        let clock = Clock::manual(Timestamp::UNIX_EPOCH);
        let ttl = Duration::from_secs(5);
        let trust = Arc::new(Trust::new(clock.clone(), clock.now() + ttl));
        let silent = task(&trust);
        assert!(!silent.is_cancelled());
        clock.advance(ttl);
        assert!(silent.is_cancelled());

        let trust = Arc::new(Trust::new(clock.clone(), clock.now() + ttl));
        let told = task(&trust);
        trust.tell();
        told.clone().cancelled().await;
        assert!(told.is_cancelled());
    }

    #[test]
    fn it_tells_what_it_was_made_of() {
        let clock = Clock::manual(Timestamp::UNIX_EPOCH);
        let task = task(&Arc::new(Trust::new(clock.clone(), clock.now())));
        let names = (task.id().key(), task.name().as_str(), task.queue().as_str());
        assert_eq!(names, ("k", "send", "mail"));
        assert_eq!((task.priority(), task.attempt(), task.fence()), (Priority::High, 2, 9));
        let times = [task.enqueued_at(), task.due_at(), task.started_at()].map(Timestamp::as_second);
        assert_eq!((times, task.unique_key()), ([10, 20, 21], Some("u")));
        assert_eq!(
            format!("{task:?}"),
            "Task { id: mail~3~k, name: \"send\", attempt: 2, due_at: 1970-01-01T00:00:20Z, fence: 9, .. }"
        );
    }
}

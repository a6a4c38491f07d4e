//! What is asked of a fleet's tasks, and what is told.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::id::TaskId;
use crate::names::TaskName;
use crate::store::tasks::{PastAttempt, Priority, RunningAttempt, Shard, StoredTask, TaskCounts, TaskStatus};

/// A task as the store has it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TaskDetails {
    /// Which task it is.
    pub id: TaskId,
    /// The name of what runs it.
    pub name: TaskName,
    /// How soon it is taken where others wait too.
    pub priority: Priority,
    /// Where it is in its life.
    pub status: TaskStatus,
    /// When it is due, or was, this time.
    pub due_at: Timestamp,
    /// When it was stored.
    pub enqueued_at: Timestamp,
    /// When it was done, died or was cancelled.
    pub ended_at: Option<Timestamp>,
    /// Its unique key.
    pub unique_key: Option<String>,
    /// How many attempts have begun.
    pub attempts: u32,
    /// The attempt under way.
    pub running: Option<RunningAttempt>,
    /// The newest attempts that have ended, the oldest of them first.
    pub history: Vec<PastAttempt>,
    /// What it carries, as JSON; `None` in lists, and when it is no longer kept because the task is done or was cancelled.
    pub payload: Option<Arc<str>>,
}

impl TaskDetails {
    pub(super) fn new(shard: &Shard, stored: StoredTask) -> Self {
        Self {
            id: TaskId::new(shard.clone(), stored.key),
            name: stored.lane.task,
            priority: stored.lane.priority,
            status: stored.status,
            due_at: stored.due,
            enqueued_at: stored.created,
            ended_at: stored.ended,
            unique_key: stored.unique,
            attempts: stored.attempts,
            running: stored.running,
            history: stored.history,
            payload: stored.payload,
        }
    }

    /// The error of the newest attempt that has one.
    #[must_use]
    pub fn last_error(&self) -> Option<&str> {
        let mut errors = self.history.iter().rev().map(|attempt| attempt.error.as_str());
        errors.find(|error| !error.is_empty())
    }
}

/// Which tasks a list shall have; the default is all that are pending, a hundred at a time.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TaskQuery {
    /// Those of this status.
    pub status: TaskStatus,
    /// Those of this name.
    pub name: Option<String>,
    /// Those that are, or were, due before.
    pub due_before: Option<Timestamp>,
    /// The most that are looked at for one page, at most 1,000.
    pub limit: u32,
    /// The `next` of the page before.
    pub after: Option<String>,
}

impl Default for TaskQuery {
    fn default() -> Self {
        Self {
            status: TaskStatus::Pending,
            name: None,
            due_before: None,
            limit: 100,
            after: None,
        }
    }
}

impl TaskQuery {
    /// The tasks of one status.
    #[must_use]
    pub fn of(status: TaskStatus) -> Self {
        Self {
            status,
            ..Self::default()
        }
    }

    /// Of these, those of one name.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Of these, those that are, or were, due before.
    #[must_use]
    pub fn due_before(mut self, at: Timestamp) -> Self {
        self.due_before = Some(at);
        self
    }

    /// The most that are looked at for one page.
    #[must_use]
    pub fn limit(mut self, most: u32) -> Self {
        self.limit = most;
        self
    }

    /// The page behind the one that had this `next`.
    #[must_use]
    pub fn after(mut self, next: impl Into<String>) -> Self {
        self.after = Some(next.into());
        self
    }
}

/// A page of tasks. It may be empty though there are more: what is looked at is bounded, and not what is found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TaskList {
    /// The tasks, without what they carry.
    pub tasks: Vec<TaskDetails>,
    /// Where the next page begins; `None` after the last.
    pub next: Option<String>,
}

/// What is in a queue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TaskFigures {
    /// When, by the store's clock.
    pub at: Timestamp,
    /// Waits for its time, what has failed and will be tried again included.
    pub pending: u64,
    /// Of these, is due: it waits for room in its stream, or for a dispatcher.
    pub due: u64,
    /// When the first of these was due.
    pub oldest_due: Option<Timestamp>,
    /// Is due, and waits for a worker.
    pub dispatched: u64,
    /// Is run.
    pub running: u64,
    /// Dead letters.
    pub dead: u64,
    /// What has happened since the queue was first used.
    pub counts: TaskCounts,
}

impl TaskFigures {
    /// What is due and not done: how far the workers are behind.
    #[must_use]
    pub fn backlog(&self) -> u64 {
        self.due + self.dispatched + self.running
    }

    /// How long it takes until nothing of the [backlog](Self::backlog) is left, at the rate at which tasks have ended since an earlier look;
    /// `None` where none has.
    ///
    /// ```
    /// # fn look() -> (leader_core::TaskFigures, leader_core::TaskFigures) { Default::default() }
    /// let (earlier, now) = look();
    /// match now.drain_time(&earlier) {
    ///     Some(left) => println!("{} tasks are due, for another {left:?}", now.backlog()),
    ///     None => println!("{} tasks are due, and none has ended", now.backlog()),
    /// }
    /// ```
    #[must_use]
    pub fn drain_time(&self, earlier: &Self) -> Option<Duration> {
        if self.backlog() == 0 {
            return Some(Duration::ZERO);
        }
        let ended = |counts: &TaskCounts| counts.done + counts.dead + counts.cancelled;
        let count = ended(&self.counts)
            .checked_sub(ended(&earlier.counts))
            .filter(|count| *count > 0)?;
        let span = Duration::try_from(self.at.duration_since(earlier.at)).ok()?;
        let nanos = span.as_nanos().checked_mul(u128::from(self.backlog()))? / u128::from(count);
        Some(Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backlog_drains_at_the_rate_that_was_seen() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let earlier = TaskFigures {
            at: at(100),
            ..TaskFigures::default()
        };
        let mut now = TaskFigures {
            at: at(104),
            due: 500,
            dispatched: 90,
            running: 10,
            ..TaskFigures::default()
        };
        assert_eq!(now.drain_time(&earlier), None, "none has ended");
        now.counts.done = 390;
        now.counts.dead = 10;
        // A hundred a second.
        assert_eq!(now.drain_time(&earlier), Some(Duration::from_secs(6)));
        assert_eq!(now.drain_time(&now), None);
        (now.due, now.dispatched, now.running) = (0, 0, 0);
        assert_eq!(now.drain_time(&earlier), Some(Duration::ZERO));
    }
}

//! Who waits for tasks: the first to come is the first to be woken.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use crate::names::{Namespace, TaskName};
use crate::store::tasks::{AwaitTasks, Shard};

/// Those who wait on one store.
#[derive(Debug, Default)]
pub(in crate::store::embedded) struct Waiters(Mutex<Line>);

#[derive(Debug, Default)]
struct Line {
    waiting: VecDeque<Waiter>,
    last: u64,
}

#[derive(Debug)]
struct Waiter {
    id: u64,
    namespace: Namespace,
    shards: Vec<Shard>,
    tasks: Vec<TaskName>,
    wake: oneshot::Sender<Wake>,
}

/// What somebody is woken for.
#[derive(Debug)]
struct Wake {
    namespace: Namespace,
    shard: Shard,
    task: TaskName,
}

/// A place in the line, until it is dropped.
#[derive(Debug)]
pub(super) struct Waiting<'a> {
    waiters: &'a Waiters,
    id: u64,
    woken: oneshot::Receiver<Wake>,
}

impl Waiters {
    fn line(&self) -> MutexGuard<'_, Line> {
        // Nothing panics half way through a change.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn wait(&self, namespace: &Namespace, request: &AwaitTasks) -> Waiting<'_> {
        let (wake, woken) = oneshot::channel();
        let mut line = self.line();
        line.last += 1;
        let id = line.last;
        line.waiting.push_back(Waiter {
            id,
            namespace: namespace.clone(),
            shards: request.shards.clone(),
            tasks: request.tasks.clone(),
            wake,
        });
        let waiters = self;
        Waiting { waiters, id, woken }
    }

    /// Wakes the first who knows a task that was put into a stream.
    pub(super) fn wake(&self, namespace: &Namespace, shard: &Shard, task: &TaskName) {
        let knows = |waiter: &Waiter| {
            waiter.namespace == *namespace && waiter.shards.contains(shard) && waiter.tasks.contains(task)
        };
        let mut line = self.line();
        let at = line.waiting.iter().position(knows);
        let Some(waiter) = at.and_then(|at| line.waiting.remove(at)) else {
            return;
        };
        // Whoever is dropped takes itself out of the line first, and passes on what it was woken for.
        let _ = waiter.wake.send(Wake {
            namespace: namespace.clone(),
            shard: shard.clone(),
            task: task.clone(),
        });
    }
}

impl Waiting<'_> {
    /// Waits until it is woken. Cancel safe.
    pub(super) async fn woken(&mut self) {
        // The sender stays in the line until it wakes.
        let _ = (&mut self.woken).await;
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.waiters.line().waiting.retain(|waiter| waiter.id != self.id);
        if let Ok(wake) = self.woken.try_recv() {
            self.waiters.wake(&wake.namespace, &wake.shard, &wake.task);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::QueueName;

    fn shard() -> Shard {
        let queue = QueueName::new("mail").unwrap();
        Shard { queue, index: 0 }
    }

    fn wish(task: &'static str) -> AwaitTasks {
        AwaitTasks {
            shards: vec![shard()],
            tasks: vec![TaskName::new(task).unwrap()],
            bound: std::time::Duration::ZERO,
        }
    }

    #[tokio::test]
    async fn one_that_was_woken_and_is_gone_passes_it_on() {
        let waiters = Waiters::default();
        let namespace = Namespace::default();
        let first = waiters.wait(&namespace, &wish("charge"));
        let mut other = waiters.wait(&namespace, &wish("mail"));
        let mut second = waiters.wait(&namespace, &wish("charge"));
        waiters.wake(&namespace, &shard(), &TaskName::new("charge").unwrap());
        assert!(second.woken.try_recv().is_err(), "one is woken, the first");
        drop(first);
        second.woken().await;
        drop(second);
        assert!(other.woken.try_recv().is_err());
        assert_eq!(waiters.line().waiting.len(), 1, "only who waits is in the line");
    }
}

//! The tasks of the embedded store: each step is a pure one on the data of a shard.

mod change;
mod dispatch;
mod due;
mod enqueue;
mod finish;
mod generations;
mod list;
mod shard;
mod take;
mod waiters;

use jiff::Timestamp;
pub(super) use shard::Tasks;
pub(super) use waiters::Waiters;

use super::Embedded;
use super::told::Hint;
use crate::store::Answer;
#[cfg(feature = "testing")]
use crate::store::tasks::TaskStatus;
use crate::store::tasks::{
    AwaitTasks, BeatReply, ChangeTask, Changed, Closed, Dispatch, DispatchReply, EnqueueBatch, EnqueueReply,
    FinishBatch, FinishReply, Generations, ListTasks, OpenQueue, Shard, ShardFigures, StoredTask, Take, TakeReply,
    TaskBeats, TaskPage, TaskStore,
};

impl Embedded {
    /// Tells whoever dispatches a shard when its first task is due.
    fn tell_due(&self, shard: &Shard, due: Option<Timestamp>) {
        if let Some(due) = due {
            self.tell(shard.group(), Hint::Due(due));
        }
    }
}

#[cfg(feature = "testing")]
impl Embedded {
    /// What a task is, at once: for who looks at each step of a server.
    pub(crate) fn task_status(&self, shard: &Shard, key: &str) -> Option<TaskStatus> {
        let found = self.step(|data, _| list::task(data, shard, key)).ok()?;
        found.map(|task| task.status)
    }
}

impl TaskStore for Embedded {
    fn open_queue(&self, request: OpenQueue) -> Answer<'_, Generations> {
        Box::pin(self.later(move |data, time| generations::open(data, &request, time)))
    }

    fn close_generation(&self, request: Closed) -> Answer<'_, Generations> {
        Box::pin(self.later(move |data, time| generations::close(data, &request, time)))
    }

    fn enqueue(&self, batch: EnqueueBatch) -> Answer<'_, EnqueueReply> {
        Box::pin(async move {
            let shard = batch.shard.clone();
            let (reply, due) = self.later(|data, time| enqueue::enqueue(data, batch, time)).await?;
            self.tell_due(&shard, due);
            Ok(reply)
        })
    }

    fn forget_once<'a>(&'a self, shard: &'a Shard, keys: Vec<String>) -> Answer<'a, ()> {
        Box::pin(self.later(move |data, time| enqueue::forget_once(data, shard, &keys, time)))
    }

    fn unique<'a>(&'a self, shard: &'a Shard, unique: &'a str) -> Answer<'a, Option<String>> {
        Box::pin(self.later(move |data, _| enqueue::unique(data, shard, unique)))
    }

    fn dispatch(&self, request: Dispatch) -> Answer<'_, DispatchReply> {
        Box::pin(async move {
            let step = self.later(|data, time| dispatch::dispatch(data, &request, time));
            let (reply, moved) = step.await?;
            for task in moved {
                self.shared.waiters.wake(&self.namespace, &request.shard, &task);
            }
            Ok(reply)
        })
    }

    fn take(&self, request: Take) -> Answer<'_, TakeReply> {
        Box::pin(async move {
            let (reply, more) = self.later(|data, time| take::take(data, &request, time)).await?;
            if let Some(task) = more {
                self.shared.waiters.wake(&self.namespace, &request.shard, &task);
            }
            Ok(reply)
        })
    }

    fn await_tasks(&self, request: AwaitTasks) -> Answer<'_, ()> {
        Box::pin(async move {
            // Whether there is something, and who waits, is decided in one step: nothing is moved between the two.
            let wait = || self.shared.waiters.wait(&self.namespace, &request);
            let waiting = self.later(|data, _| (!take::waits(data, &request)).then(wait)).await?;
            if let Some(mut waiting) = waiting {
                // The bound is as good an end as being woken.
                let _ = tokio::time::timeout(request.bound, waiting.woken()).await;
            }
            Ok(())
        })
    }

    fn beat_tasks(&self, request: TaskBeats) -> Answer<'_, Vec<BeatReply>> {
        Box::pin(self.later(move |data, time| take::beat(data, &request, time)))
    }

    fn finish(&self, batch: FinishBatch) -> Answer<'_, Vec<FinishReply>> {
        Box::pin(async move {
            let shard = batch.shard.clone();
            let (replies, due) = self.later(|data, time| finish::finish(data, batch, time)).await?;
            self.tell_due(&shard, due);
            Ok(replies)
        })
    }

    fn change_task(&self, request: ChangeTask) -> Answer<'_, Changed> {
        Box::pin(async move {
            let shard = request.shard.clone();
            let (changed, due) = self.later(|data, time| change::change(data, request, time)).await?;
            self.tell_due(&shard, due);
            Ok(changed)
        })
    }

    fn task<'a>(&'a self, shard: &'a Shard, key: &'a str) -> Answer<'a, Option<StoredTask>> {
        Box::pin(self.later(move |data, _| list::task(data, shard, key)))
    }

    fn list_tasks(&self, request: ListTasks) -> Answer<'_, TaskPage> {
        Box::pin(async move { self.later(|data, _| list::list(data, &request)).await? })
    }

    fn task_figures<'a>(&'a self, shard: &'a Shard) -> Answer<'a, ShardFigures> {
        Box::pin(self.later(move |data, time| list::figures(data, shard, time)))
    }
}

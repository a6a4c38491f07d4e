//! Tasks on the way to the store and back.

use std::sync::Arc;

use super::{Link, one};
use crate::store::Answer;
use crate::store::tasks::{
    AwaitTasks, BeatReply, ChangeTask, Changed, Closed, Dispatch, DispatchReply, EnqueueBatch, EnqueueReply,
    FinishBatch, FinishReply, Generations, ListTasks, OpenQueue, Shard, ShardFigures, StoredTask, Take, TakeReply,
    TaskBeats, TaskPage, TaskStore,
};
use crate::testing::simulation::tasks::steps;

/// Carries a step of the store.
macro_rules! carried {
    ($self:ident, $server:ident => $step:expr) => {
        Box::pin(one($self.carry(move |$server| Box::pin(async move { $step.await }))))
    };
}

impl TaskStore for Link {
    fn open_queue(&self, request: OpenQueue) -> Answer<'_, Generations> {
        carried!(self, server => server.open_queue(request))
    }

    fn close_generation(&self, request: Closed) -> Answer<'_, Generations> {
        carried!(self, server => server.close_generation(request))
    }

    fn enqueue(&self, batch: EnqueueBatch) -> Answer<'_, EnqueueReply> {
        let servers = Arc::clone(&self.servers);
        carried!(self, server => steps::enqueue(servers, server, batch))
    }

    fn forget_once<'a>(&'a self, shard: &'a Shard, keys: Vec<String>) -> Answer<'a, ()> {
        let shard = shard.clone();
        carried!(self, server => server.forget_once(&shard, keys))
    }

    fn unique<'a>(&'a self, shard: &'a Shard, unique: &'a str) -> Answer<'a, Option<String>> {
        let (shard, unique) = (shard.clone(), unique.to_owned());
        carried!(self, server => server.unique(&shard, &unique))
    }

    fn dispatch(&self, request: Dispatch) -> Answer<'_, DispatchReply> {
        let servers = Arc::clone(&self.servers);
        carried!(self, server => steps::dispatch(servers, server, request))
    }

    fn take(&self, request: Take) -> Answer<'_, TakeReply> {
        let servers = Arc::clone(&self.servers);
        carried!(self, server => steps::take(servers, server, request))
    }

    /// Only a hint: nothing is sent, and what hangs in a server that is gone ends with the bound.
    fn await_tasks(&self, request: AwaitTasks) -> Answer<'_, ()> {
        Box::pin(async move { self.servers.of(self.instance).await_tasks(request).await })
    }

    fn beat_tasks(&self, request: TaskBeats) -> Answer<'_, Vec<BeatReply>> {
        carried!(self, server => server.beat_tasks(request))
    }

    fn finish(&self, batch: FinishBatch) -> Answer<'_, Vec<FinishReply>> {
        let servers = Arc::clone(&self.servers);
        carried!(self, server => steps::finish(servers, server, batch))
    }

    fn change_task(&self, request: ChangeTask) -> Answer<'_, Changed> {
        let servers = Arc::clone(&self.servers);
        carried!(self, server => steps::change(servers, server, request))
    }

    fn task<'a>(&'a self, shard: &'a Shard, key: &'a str) -> Answer<'a, Option<StoredTask>> {
        let (shard, key) = (shard.clone(), key.to_owned());
        carried!(self, server => server.task(&shard, &key))
    }

    fn list_tasks(&self, request: ListTasks) -> Answer<'_, TaskPage> {
        carried!(self, server => server.list_tasks(request))
    }

    fn task_figures<'a>(&'a self, shard: &'a Shard) -> Answer<'a, ShardFigures> {
        let shard = shard.clone();
        carried!(self, server => server.task_figures(&shard))
    }
}

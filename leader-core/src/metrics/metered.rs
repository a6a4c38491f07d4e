//! A store whose operations are measured.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use super::{Measured, Meter};
use crate::clock::Clock;
use crate::names::{GroupName, JobName};
#[cfg(feature = "tasks")]
use crate::store::tasks::{
    AwaitTasks, BeatReply, ChangeTask, Changed, Closed, Dispatch, DispatchReply, EnqueueBatch, EnqueueReply,
    FinishBatch, FinishReply, Generations, ListTasks, OpenQueue, Shard, ShardFigures, StoredTask, Take, TakeReply,
    TaskBeats, TaskPage, TaskStore,
};
use crate::store::{
    ActRequest, Acted, Answer, Answers, Ask, AskReply, Beats, Campaign, Campaigned, ClaimBatch, Claimed, Cover, Ears,
    Enrolled, Entry, Finding, GroupControl, JobLedger, MadeList, MadeReply, MakeRequest, Release, Renewal, Roster,
    SettleBatch, Settled, Store, TakeOver, TakenOver, Told,
};

/// How long what is asked of a store takes, and whether it fails.
#[derive(Debug)]
pub(crate) struct Metered {
    store: Arc<dyn Store>,
    meter: Arc<Meter>,
    clock: Clock,
}

impl Metered {
    /// The same store, measured. One that lives in this process has nothing to measure.
    pub(crate) fn store(store: Arc<dyn Store>, meter: &Arc<Meter>, clock: &Clock) -> Arc<dyn Store> {
        if store.is_embedded() || cfg!(not(feature = "metrics")) {
            return store;
        }
        Arc::new(Self {
            store,
            meter: Arc::clone(meter),
            clock: clock.clone(),
        })
    }

    fn measured<'a, T: 'a>(
        &'a self,
        op: &'static str,
        asked: Pin<Box<dyn Future<Output = T> + Send + 'a>>,
        failed: impl Fn(&T) -> bool + Send + 'a,
    ) -> Pin<Box<dyn Future<Output = T> + Send + 'a>> {
        Box::pin(async move {
            let began = self.clock.now();
            let answer = asked.await;
            let took = self.clock.now().since(began);
            let failed = failed(&answer);
            self.meter.measure(Measured::Operation { op, took, failed });
            answer
        })
    }

    fn one<'a, T: 'a>(&'a self, op: &'static str, asked: Answer<'a, T>) -> Answer<'a, T> {
        self.measured(op, asked, Result::is_err)
    }

    /// One round trip, which has failed where nothing of it was answered.
    fn all<'a, T: 'a>(&'a self, op: &'static str, asked: Answers<'a, T>) -> Answers<'a, T> {
        self.measured(op, asked, |answers| {
            !answers.is_empty() && answers.iter().all(Result::is_err)
        })
    }
}

impl Store for Metered {
    fn address(&self) -> String {
        self.store.address()
    }

    fn is_embedded(&self) -> bool {
        self.store.is_embedded()
    }

    fn inspect(&self) -> Answer<'_, Vec<Finding>> {
        self.one("inspect", self.store.inspect())
    }

    fn campaign(&self, requests: Vec<Campaign>) -> Answers<'_, Campaigned> {
        self.all("campaign", self.store.campaign(requests))
    }

    fn renew(&self, renewals: Vec<Renewal>, beats: Vec<Beats>) -> Pin<Box<dyn Future<Output = Told> + Send + '_>> {
        self.measured("renew", self.store.renew(renewals, beats), |told| {
            let refused = !told.renewed.is_empty() && told.renewed.iter().all(Result::is_err);
            refused || (told.renewed.is_empty() && !told.beaten.is_empty() && !told.beaten.contains(&true))
        })
    }

    fn release(&self, request: Release) -> Answer<'_, ()> {
        self.one("release", self.store.release(request))
    }

    fn ask(&self, request: Ask) -> Answer<'_, AskReply> {
        self.one("ask", self.store.ask(request))
    }

    fn take_over(&self, request: TakeOver) -> Answer<'_, TakenOver> {
        self.one("take_over", self.store.take_over(request))
    }

    fn cover(&self, request: Cover) -> Answer<'_, bool> {
        self.one("cover", self.store.cover(request))
    }

    fn claim(&self, batches: Vec<ClaimBatch>) -> Answers<'_, Claimed> {
        self.all("claim", self.store.claim(batches))
    }

    fn settle(&self, batches: Vec<SettleBatch>) -> Answers<'_, Vec<Settled>> {
        self.all("settle", self.store.settle(batches))
    }

    fn ledger<'a>(&'a self, group: &'a GroupName, job: &'a JobName) -> Answer<'a, JobLedger> {
        self.one("ledger", self.store.ledger(group, job))
    }

    fn act(&self, request: ActRequest) -> Answer<'_, Acted> {
        self.one("act", self.store.act(request))
    }

    fn control<'a>(&'a self, group: &'a GroupName) -> Answer<'a, GroupControl> {
        self.one("control", self.store.control(group))
    }

    fn make(&self, request: MakeRequest) -> Answer<'_, MadeReply> {
        self.one("make", self.store.make(request))
    }

    fn made<'a>(&'a self, group: &'a GroupName, after: u64) -> Answer<'a, MadeList> {
        self.one("made", self.store.made(group, after))
    }

    fn enrol(&self, entry: Entry) -> Answer<'_, Enrolled> {
        self.one("enrol", self.store.enrol(entry))
    }

    fn leave(&self, holder: crate::names::Holder) -> Answer<'_, ()> {
        self.one("leave", self.store.leave(holder))
    }

    fn roster(&self) -> Answer<'_, Roster> {
        self.one("roster", self.store.roster())
    }

    #[cfg(feature = "tasks")]
    fn tasks(&self) -> &dyn TaskStore {
        self
    }

    fn listen(&self, ears: Arc<dyn Ears>) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        self.store.listen(ears)
    }
}

#[cfg(feature = "tasks")]
impl TaskStore for Metered {
    fn open_queue(&self, request: OpenQueue) -> Answer<'_, Generations> {
        self.one("open_queue", self.store.tasks().open_queue(request))
    }

    fn close_generation(&self, request: Closed) -> Answer<'_, Generations> {
        self.one("close_generation", self.store.tasks().close_generation(request))
    }

    fn enqueue(&self, batch: EnqueueBatch) -> Answer<'_, EnqueueReply> {
        self.one("enqueue", self.store.tasks().enqueue(batch))
    }

    fn forget_once<'a>(&'a self, shard: &'a Shard, keys: Vec<String>) -> Answer<'a, ()> {
        self.one("forget_once", self.store.tasks().forget_once(shard, keys))
    }

    fn unique<'a>(&'a self, shard: &'a Shard, unique: &'a str) -> Answer<'a, Option<String>> {
        self.one("unique", self.store.tasks().unique(shard, unique))
    }

    fn dispatch(&self, request: Dispatch) -> Answer<'_, DispatchReply> {
        self.one("dispatch", self.store.tasks().dispatch(request))
    }

    fn take(&self, request: Take) -> Answer<'_, TakeReply> {
        self.one("take", self.store.tasks().take(request))
    }

    /// Waits for as long as it is told to: there is nothing to measure.
    fn await_tasks(&self, request: AwaitTasks) -> Answer<'_, ()> {
        self.store.tasks().await_tasks(request)
    }

    fn beat_tasks(&self, request: TaskBeats) -> Answer<'_, Vec<BeatReply>> {
        self.one("beat_tasks", self.store.tasks().beat_tasks(request))
    }

    fn finish(&self, batch: FinishBatch) -> Answer<'_, Vec<FinishReply>> {
        self.one("finish", self.store.tasks().finish(batch))
    }

    fn change_task(&self, request: ChangeTask) -> Answer<'_, Changed> {
        self.one("change_task", self.store.tasks().change_task(request))
    }

    fn task<'a>(&'a self, shard: &'a Shard, key: &'a str) -> Answer<'a, Option<StoredTask>> {
        self.one("task", self.store.tasks().task(shard, key))
    }

    fn list_tasks(&self, request: ListTasks) -> Answer<'_, TaskPage> {
        self.one("list_tasks", self.store.tasks().list_tasks(request))
    }

    fn task_figures<'a>(&'a self, shard: &'a Shard) -> Answer<'a, ShardFigures> {
        self.one("task_figures", self.store.tasks().task_figures(shard))
    }
}

//! The store of a fleet that lives in this process alone: for examples, development and tests.
//!
//! It keeps the rules of the Redis scripts, step for step; the contract suite runs on both.

mod control;
mod coverage;
mod lease;
mod made;
mod paused;
mod quarantine;
mod records;
mod roster;
mod schedules;
#[cfg_attr(
    not(feature = "testing"),
    allow(dead_code, reason = "the handle of suites and of the simulator")
)]
pub(crate) mod server;
#[cfg(feature = "testing")]
pub(crate) use server::{EmbeddedServer, GroupLook, Left, Part, Snapshot};
mod step;
#[cfg(feature = "testing")]
pub(crate) mod steps;
#[cfg(feature = "tasks")]
mod tasks;
mod ticks;
mod told;
mod tries;
mod trim;
mod unled;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use jiff::Timestamp;
use step::{State, Time};
use tokio::sync::broadcast;
use told::{Hint, Message};

use crate::clock::{Clock, Moment};
use crate::names::{GroupName, Holder, JobName, Namespace};
use crate::store::control::{ActRequest, Acted, GroupControl};
use crate::store::coverage::Cover;
use crate::store::ledger::{JobLedger, Keep};
use crate::store::made::{MadeList, MadeReply, MakeRequest};
use crate::store::request::{
    Ask, AskReply, Asked, Beats, Campaign, Campaigned, ClaimBatch, Claimed, Release, Renewal, Replaced, SettleBatch,
    Settled, TakeOver, TakenOver, Told,
};
use crate::store::roster::{Enrolled, Entry, Roster};
use crate::store::{Answer, Answers, Ears, Finding, Store};

/// A store inside this process. Clones share it: several instances of one process form a fleet.
///
/// Never a fallback for Redis: another process has another store, and would lead the same groups.
///
/// ```standalone_crate
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use leader_core::Embedded;
///
/// let store = Embedded::new();
/// let one = leader_core::bootstrap(store.clone()).instance_id("web-1").await?;
/// let two = leader_core::bootstrap(store).instance_id("web-2").await?;
/// assert!(one.is_leader("default") != two.is_leader("default"));
/// # two.shutdown().await;
/// # one.shutdown().await;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Embedded {
    shared: Arc<Shared>,
    namespace: Namespace,
    pub(crate) manual_ticks: bool,
    keep: Keep,
}

struct Shared {
    clock: Clock,
    state: Mutex<State>,
    told: broadcast::Sender<Message>,
    #[cfg(feature = "tasks")]
    waiters: tasks::Waiters,
}

/// What the store holds of one namespace.
#[derive(Clone, Debug, Default)]
struct Data {
    groups: BTreeMap<GroupName, Group>,
    roster: BTreeMap<Holder, roster::Enrolment>,
    /// The number of the roster's state.
    revision: u64,
    /// Of queues whose number of shards somebody has said.
    #[cfg(feature = "tasks")]
    queues: BTreeMap<crate::names::QueueName, crate::store::Generations>,
}

/// One group.
#[derive(Clone, Debug, Default)]
struct Group {
    lease: Option<Lease>,
    /// Since when nobody holds the lease; counts only while that is so.
    vacant: Option<Moment>,
    /// What the leader of a term is asked, until when.
    asked: Option<(u64, Moment, Asked)>,
    term: u64,
    fence: u64,
    drained: Option<Timestamp>,
    late_from: Option<Timestamp>,
    beats: BTreeMap<u64, Moment>,
    /// Since when runs are asked to end because a later tick takes their place.
    replaced: BTreeMap<u64, Moment>,
    jobs: BTreeMap<JobName, JobLedger>,
    /// Those that were schedules made at run time, and are the program's again: their records are kept with the next claim.
    revived: BTreeSet<JobName>,
    control: control::Control,
    made: made::Table,
    coverage: coverage::Coverage,
    marks: quarantine::Marks,
    /// Where the group is that of a shard.
    #[cfg(feature = "tasks")]
    tasks: Option<Box<tasks::Tasks>>,
}

#[derive(Clone, Debug)]
struct Lease {
    /// `None` where the key is of another type than a lease.
    holder: Option<Holder>,
    /// [`Moment::MAX`] where it has no end.
    ends: Moment,
}

impl Group {
    /// The lease, if it has not ended.
    fn held(&mut self, now: Moment) -> Option<&Lease> {
        if let Some(ended) = self.lease.take_if(|lease| now >= lease.ends) {
            self.vacant = Some(ended.ends);
        }
        self.lease.as_ref()
    }

    fn is_held_by(&mut self, holder: &Holder, term: u64, now: Moment) -> bool {
        let held = self.held(now).and_then(|lease| lease.holder.as_ref());
        // No lead has the term 0, whatever was lost.
        held == Some(holder) && self.term == term && term != 0
    }

    /// A number above every one before it.
    fn mint(&mut self, known: u64, now: Timestamp) -> u64 {
        let micros = u64::try_from(now.as_microsecond()).unwrap_or(0);
        self.fence = (self.fence + 1).max(micros).max(known.saturating_add(1));
        self.fence
    }
}

impl Default for Embedded {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Embedded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Embedded")
            .field("manual_ticks", &self.manual_ticks)
            .finish_non_exhaustive()
    }
}

impl Embedded {
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::with_clock(Clock::system())
    }

    /// An empty store for tests: no trigger fires by itself, `instance.run_tick::<J>(at)` fires one.
    #[must_use]
    #[cfg(feature = "testing")]
    pub fn for_test() -> Self {
        Self {
            manual_ticks: true,
            ..Self::new()
        }
    }

    /// An empty store on a clock of the caller's.
    #[must_use]
    pub(crate) fn with_clock(clock: Clock) -> Self {
        Self::with_state(clock, State::default())
    }

    fn with_state(clock: Clock, state: State) -> Self {
        Self {
            shared: Arc::new(Shared {
                clock,
                state: Mutex::new(state),
                told: broadcast::Sender::new(64),
                #[cfg(feature = "tasks")]
                waiters: tasks::Waiters::default(),
            }),
            namespace: Namespace::default(),
            manual_ticks: false,
            keep: Keep::default(),
        }
    }

    pub(crate) fn clock(&self) -> &Clock {
        &self.shared.clock
    }

    /// The same store, seen from a namespace.
    #[must_use]
    pub(crate) fn in_namespace(self, namespace: &Namespace) -> Self {
        let namespace = namespace.clone();
        Self { namespace, ..self }
    }

    /// The same store, which keeps so many records of each job that is written of through this handle.
    #[must_use]
    pub(crate) fn keeping(self, keep: Keep) -> Self {
        Self { keep, ..self }
    }

    /// Keeps what was recorded of some jobs within its bounds.
    fn trim<'a>(&self, data: &mut Data, group: &GroupName, jobs: impl Iterator<Item = &'a JobName>, time: Time<'_>) {
        let Some(group) = data.groups.get_mut(group) else {
            return;
        };
        for job in jobs {
            let job = group.coverage.goes_on_as(job);
            if let Some(job) = group.jobs.get_mut(&job) {
                trim::trim(job, &self.keep, time.wall);
            }
        }
    }

    fn tell(&self, group: GroupName, hint: Hint) {
        // Nobody listens: nobody is waiting.
        let _ = self.shared.told.send(Message::Of(self.namespace.clone(), group, hint));
    }
}

impl Store for Embedded {
    fn address(&self) -> String {
        "embedded".to_owned()
    }

    fn is_embedded(&self) -> bool {
        true
    }

    fn inspect(&self) -> Answer<'_, Vec<Finding>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    fn campaign(&self, requests: Vec<Campaign>) -> Answers<'_, Campaigned> {
        Box::pin(async move {
            let one = |data: &mut Data, request, time: Time<'_>| match time.process {
                Some(process) => quarantine::campaign(data, request, process, time),
                None => Ok(lease::campaign(data, request, time)),
            };
            // One script, of which each is judged on its own.
            let all = self.later(|data, time| requests.iter().map(|request| one(data, request, time)).collect());
            all.await.unwrap_or_else(|error| vec![Err(error); requests.len()])
        })
    }

    fn renew(&self, renewals: Vec<Renewal>, beats: Vec<Beats>) -> Pin<Box<dyn Future<Output = Told> + Send + '_>> {
        Box::pin(async move {
            let mut told = Told {
                renewed: self.each(&renewals, lease::renew).await,
                ..Told::default()
            };
            for (beats, answer) in beats.iter().zip(self.each(&beats, lease::beat).await) {
                told.beaten.push(answer.is_ok());
                let (replaced, gone) = answer.unwrap_or_default();
                let run = |fence| Replaced {
                    group: beats.group.clone(),
                    fence,
                };
                told.replaced.extend(replaced.into_iter().map(run));
                told.gone.extend(gone.into_iter().map(run));
            }
            told
        })
    }

    fn release(&self, request: Release) -> Answer<'_, ()> {
        Box::pin(async move {
            if self.later(|data, time| lease::release(data, &request, time)).await? {
                self.tell(request.group, Hint::Released(request.term));
            }
            Ok(())
        })
    }

    fn ask(&self, request: Ask) -> Answer<'_, AskReply> {
        Box::pin(async move {
            let reply = self.later(|data, time| lease::ask(data, &request, time)).await?;
            if let AskReply::Kept { term, .. } = reply {
                self.tell(request.group, Hint::Asked(term));
            }
            Ok(reply)
        })
    }

    fn take_over(&self, request: TakeOver) -> Answer<'_, TakenOver> {
        Box::pin(self.later(move |data, time| {
            self.forget_ended(data, &request.group, time);
            ticks::take_over(data, &request, time)
        }))
    }

    fn cover(&self, request: Cover) -> Answer<'_, bool> {
        Box::pin(self.later(move |data, time| coverage::cover(data, &request, time)))
    }

    fn claim(&self, batches: Vec<ClaimBatch>) -> Answers<'_, Claimed> {
        Box::pin(async move {
            let one = |data: &mut Data, batch: &ClaimBatch, time: Time<'_>| {
                let answer = ticks::claim(data, batch, time);
                let jobs = batch.claims.iter().map(|claim| &claim.job);
                self.trim(data, &batch.group, jobs, time);
                answer
            };
            self.each(&batches, one).await
        })
    }

    fn settle(&self, batches: Vec<SettleBatch>) -> Answers<'_, Vec<Settled>> {
        Box::pin(async move {
            let one = |data: &mut Data, batch: &SettleBatch, time: Time<'_>| {
                let answer = ticks::settle(data, batch, time);
                let jobs = batch.ends.iter().map(|end| &end.job);
                self.trim(data, &batch.group, jobs, time);
                answer
            };
            self.each(&batches, one).await
        })
    }

    fn ledger<'a>(&'a self, group: &'a GroupName, job: &'a JobName) -> Answer<'a, JobLedger> {
        Box::pin(self.later(move |data, time| {
            self.forget_ended(data, group, time);
            let group = data.groups.get(group);
            group.map(|group| coverage::ledger(group, job)).unwrap_or_default()
        }))
    }

    fn act(&self, request: ActRequest) -> Answer<'_, Acted> {
        Box::pin(async move {
            let group = request.group.clone();
            let acted = self.later(|data, time| control::act(data, request, time)).await?;
            if let Acted::Done { number, .. } = acted {
                self.tell(group, Hint::Controlled(number));
            }
            Ok(acted)
        })
    }

    fn control<'a>(&'a self, group: &'a GroupName) -> Answer<'a, GroupControl> {
        Box::pin(self.later(move |data, time| control::control(data, group, time)))
    }

    fn make(&self, request: MakeRequest) -> Answer<'_, MadeReply> {
        Box::pin(self.make_one(request))
    }

    fn made<'a>(&'a self, group: &'a GroupName, after: u64) -> Answer<'a, MadeList> {
        Box::pin(self.later(move |data, _| made::list(data, group, after)))
    }

    fn enrol(&self, entry: Entry) -> Answer<'_, Enrolled> {
        Box::pin(self.later(move |data, time| roster::enrol(data, entry, time)))
    }

    fn leave(&self, holder: Holder) -> Answer<'_, ()> {
        Box::pin(self.later(move |data, time| roster::leave(data, &holder, time)))
    }

    fn roster(&self) -> Answer<'_, Roster> {
        Box::pin(self.later(|data, time| roster::roster(data, time)))
    }

    #[cfg(feature = "tasks")]
    fn tasks(&self) -> &dyn crate::store::TaskStore {
        self
    }

    fn listen(&self, ears: Arc<dyn Ears>) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(told::hear(self.shared.told.subscribe(), &self.namespace, ears))
    }
}

//! The way of one instance to the store: what is sent may be late, lost or refused, and what was lost may have been done.

mod across;
#[cfg(feature = "tasks")]
mod tasks;

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use across::Across;

use super::dice::Dice;
use super::fault::FaultKind;
use super::leases;
use super::servers::Servers;
use crate::clock::of_timers;
use crate::names::{GroupName, Holder, JobName};
use crate::store::embedded::Embedded;
use crate::store::{
    ActRequest, Acted, Answer, Answers, Ask, AskReply, Beats, Campaign, Campaigned, ClaimBatch, Claimed, Cover, Ears,
    Enrolled, Entry, Finding, GroupControl, JobLedger, MadeList, MadeReply, MakeRequest, Release, Renewal, Roster,
    SettleBatch, Settled, Store, StoreError, TakeOver, TakenOver, Told,
};

/// What is wrong with the way of an instance: until when, and how much of it.
#[derive(Debug, Default)]
pub(super) struct Weather {
    all: BTreeMap<FaultKind, (Instant, i64)>,
    calm_from: Option<Instant>,
}

impl Weather {
    pub(super) fn begin(&mut self, kind: FaultKind, until: Instant, strength: i64) {
        self.all.insert(kind, (until, strength));
        self.calm_from = self.calm_from.max(Some(until));
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    fn is_calm(&self, now: Instant) -> bool {
        self.calm_from.is_none_or(|from| from <= now)
    }

    /// Until when it is so, and how much.
    fn of(&self, kind: FaultKind, now: Instant) -> Option<(Instant, u32)> {
        let (until, strength) = *self.all.get(&kind)?;
        (now < until).then(|| (until, u32::try_from(strength).unwrap_or(0)))
    }
}

/// What becomes of one message.
#[derive(Clone, Copy, Debug)]
enum Fate {
    /// It arrives then.
    Arrives(Instant),
    Lost,
    Refused,
}

/// The way itself.
#[derive(Debug)]
pub(super) struct Way {
    pub(super) weather: Mutex<Weather>,
    dice: Mutex<Dice>,
    /// The most that a message takes in good weather.
    latency: Duration,
    counts: Arc<Mutex<BTreeMap<FaultKind, u64>>>,
}

impl Way {
    pub(super) fn new(dice: Dice, latency: Duration, counts: Arc<Mutex<BTreeMap<FaultKind, u64>>>) -> Self {
        Self {
            weather: Mutex::default(),
            dice: Mutex::new(dice),
            latency,
            counts,
        }
    }

    fn count(&self, kind: FaultKind) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        *counts.entry(kind).or_default() += 1;
    }

    /// Whether nothing would happen to a message now.
    fn is_plain(&self, now: Instant) -> bool {
        self.latency.is_zero() && self.weather.lock().unwrap_or_else(PoisonError::into_inner).is_calm(now)
    }

    /// What becomes of a message that is sent now; `out` to the store.
    fn fate(&self, out: bool) -> Fate {
        let now = of_timers();
        let weather = self.weather.lock().unwrap_or_else(PoisonError::into_inner);
        let mut dice = self.dice.lock().unwrap_or_else(PoisonError::into_inner);
        let mut at = now + dice.span(Duration::ZERO, self.latency);
        if weather.is_calm(now) {
            return Fate::Arrives(at);
        }
        let of = |kind| weather.of(kind, now).map(|(until, strength)| (kind, until, strength));
        if let Some((kind, ..)) = of(FaultKind::Refused) {
            self.count(kind);
            return Fate::Refused;
        }
        let (cut, lost) = if out {
            (FaultKind::CutOut, FaultKind::LostRequest)
        } else {
            (FaultKind::CutIn, FaultKind::LostReply)
        };
        if let Some((kind, ..)) = of(cut) {
            self.count(kind);
            return Fate::Lost;
        }
        if let Some((kind, _, chance)) = of(lost)
            && dice.per_mille(chance)
        {
            self.count(kind);
            return Fate::Lost;
        }
        if let Some((kind, _, most)) = of(FaultKind::Delay) {
            self.count(kind);
            at += dice.span(Duration::ZERO, Duration::from_millis(u64::from(most)));
        }
        if let Some((kind, _, chance)) = of(FaultKind::LateRequest)
            && out
            && dice.per_mille(chance)
        {
            self.count(kind);
            at += dice.span(Duration::from_secs(1), Duration::from_secs(40));
        }
        if let Some((kind, until, _)) = of(FaultKind::Held) {
            self.count(kind);
            at = at.max(until);
        }
        Fate::Arrives(at)
    }
}

/// The store, as one process of an instance reaches it.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) servers: Arc<Servers>,
    pub(super) instance: usize,
    pub(super) way: Arc<Way>,
    /// How long an answer is waited for.
    pub(super) bound: Duration,
}

type Step<T> = Pin<Box<dyn Future<Output = T> + Send>>;

impl Link {
    /// Carries a question to the store and its answer back. What has been sent is on its way whatever becomes of the asker.
    async fn carry<T: Send + 'static>(
        &self,
        step: impl FnOnce(Embedded) -> Step<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let now = of_timers();
        if self.way.is_plain(now)
            && let Some(server) = self.servers.at_once(self.instance, now)
        {
            return Ok(step(server?).await);
        }
        let arrives = match self.way.fate(true) {
            Fate::Arrives(at) => at,
            Fate::Refused => return Err(StoreError::unreachable()),
            Fate::Lost => {
                sleep(self.bound).await;
                return Err(StoreError::timed_out());
            }
        };
        let (tell, told) = oneshot::channel();
        let (servers, way, instance) = (Arc::clone(&self.servers), Arc::clone(&self.way), self.instance);
        let patience = self.bound;
        tokio::spawn(async move {
            sleep_until(arrives).await;
            let reply = match servers.reach(instance).await {
                Ok(server) => Ok(step(server).await),
                Err(error) => Err(error),
            };
            match way.fate(false) {
                Fate::Arrives(at) => {
                    sleep_until(at).await;
                    // Nobody waits any more: it came too late.
                    let _ = tell.send(reply);
                }
                Fate::Refused => {}
                Fate::Lost => {
                    // Silence, not the end of a connection.
                    sleep(patience).await;
                    drop(tell);
                }
            }
        });
        match timeout(self.bound, told).await {
            Ok(Ok(reply)) => reply,
            Ok(Err(_)) => Err(StoreError::unreachable()),
            Err(_) => Err(StoreError::timed_out()),
        }
    }
}

/// One answer for all that were asked for.
async fn each<T>(
    asked: usize,
    carried: impl Future<Output = Result<Vec<Result<T, StoreError>>, StoreError>>,
) -> Vec<Result<T, StoreError>> {
    match carried.await {
        Ok(answers) => answers,
        Err(error) => (0..asked).map(|_| Err(error.clone())).collect(),
    }
}

/// One answer.
async fn one<T>(carried: impl Future<Output = Result<Result<T, StoreError>, StoreError>>) -> Result<T, StoreError> {
    carried.await?
}

impl Store for Link {
    fn address(&self) -> String {
        "a simulated store".to_owned()
    }

    fn inspect(&self) -> Answer<'_, Vec<Finding>> {
        Box::pin(one(self.carry(|server| Box::pin(async move { server.inspect().await }))))
    }

    fn campaign(&self, requests: Vec<Campaign>) -> Answers<'_, Campaigned> {
        let asked = requests.len();
        let servers = Arc::clone(&self.servers);
        let carried = self.carry(|server| Box::pin(leases::campaign(servers, server, requests)));
        Box::pin(each(asked, carried))
    }

    fn renew(&self, renewals: Vec<Renewal>, beats: Vec<Beats>) -> Pin<Box<dyn Future<Output = Told> + Send + '_>> {
        let (asked, beating) = (renewals.len(), beats.len());
        let servers = Arc::clone(&self.servers);
        let carried = self.carry(|server| Box::pin(leases::renew(servers, server, renewals, beats)));
        Box::pin(async move {
            carried.await.unwrap_or_else(|error| Told {
                renewed: (0..asked).map(|_| Err(error.clone())).collect(),
                replaced: Vec::new(),
                beaten: vec![false; beating],
                gone: Vec::new(),
            })
        })
    }

    fn release(&self, request: Release) -> Answer<'_, ()> {
        let servers = Arc::clone(&self.servers);
        Box::pin(one(
            self.carry(|server| Box::pin(leases::release(servers, server, request)))
        ))
    }

    fn ask(&self, request: Ask) -> Answer<'_, AskReply> {
        Box::pin(one(
            self.carry(|server| Box::pin(async move { server.ask(request).await }))
        ))
    }

    fn take_over(&self, request: TakeOver) -> Answer<'_, TakenOver> {
        Box::pin(one(
            self.carry(|server| Box::pin(async move { server.take_over(request).await }))
        ))
    }

    fn cover(&self, request: Cover) -> Answer<'_, bool> {
        Box::pin(one(
            self.carry(|server| Box::pin(async move { server.cover(request).await }))
        ))
    }

    fn claim(&self, batches: Vec<ClaimBatch>) -> Answers<'_, Claimed> {
        let asked = batches.len();
        let carried = self.carry(|server| Box::pin(async move { server.claim(batches).await }));
        Box::pin(each(asked, carried))
    }

    fn settle(&self, batches: Vec<SettleBatch>) -> Answers<'_, Vec<Settled>> {
        let asked = batches.len();
        let carried = self.carry(|server| Box::pin(async move { server.settle(batches).await }));
        Box::pin(each(asked, carried))
    }

    fn ledger<'a>(&'a self, group: &'a GroupName, job: &'a JobName) -> Answer<'a, JobLedger> {
        let (group, job) = (group.clone(), job.clone());
        Box::pin(one(
            self.carry(|server| Box::pin(async move { server.ledger(&group, &job).await }))
        ))
    }

    fn act(&self, request: ActRequest) -> Answer<'_, Acted> {
        Box::pin(one(
            self.carry(|server| Box::pin(async move { server.act(request).await }))
        ))
    }

    fn control<'a>(&'a self, group: &'a GroupName) -> Answer<'a, GroupControl> {
        let group = group.clone();
        Box::pin(one(
            self.carry(|server| Box::pin(async move { server.control(&group).await }))
        ))
    }

    fn make(&self, request: MakeRequest) -> Answer<'_, MadeReply> {
        Box::pin(one(
            self.carry(|server| Box::pin(async move { server.make(request).await }))
        ))
    }

    fn made<'a>(&'a self, group: &'a GroupName, after: u64) -> Answer<'a, MadeList> {
        let group = group.clone();
        Box::pin(one(self.carry(move |server| {
            Box::pin(async move { server.made(&group, after).await })
        })))
    }

    fn enrol(&self, entry: Entry) -> Answer<'_, Enrolled> {
        Box::pin(one(
            self.carry(|server| Box::pin(async move { server.enrol(entry).await }))
        ))
    }

    fn leave(&self, holder: Holder) -> Answer<'_, ()> {
        Box::pin(one(
            self.carry(|server| Box::pin(async move { server.leave(holder).await }))
        ))
    }

    fn roster(&self) -> Answer<'_, Roster> {
        Box::pin(one(self.carry(|server| Box::pin(async move { server.roster().await }))))
    }

    #[cfg(feature = "tasks")]
    fn tasks(&self) -> &dyn crate::store::TaskStore {
        self
    }

    fn listen(&self, ears: Arc<dyn Ears>) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async move {
            loop {
                let server = self.servers.of(self.instance);
                let ears: Arc<dyn Ears> = Arc::new(Across {
                    way: Arc::clone(&self.way),
                    ears: Arc::clone(&ears),
                });
                tokio::select! {
                    biased;
                    () = self.servers.changed() => ears.gap(),
                    () = server.listen(Arc::clone(&ears)) => {}
                }
            }
        })
    }
}

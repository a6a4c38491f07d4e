//! The store of a simulated fleet: one server, or for a while an old and a new one, which may stall, be off, and forget.

use jiff::SignedDuration;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError, Weak};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use super::fault::{Fault, FaultKind};
use super::seen::Seen;
#[cfg(feature = "tasks")]
use super::tasks::steps::{Batches, Steps};
use super::world::World;
use crate::clock::{Clock, of_timers};
#[cfg(feature = "tasks")]
use crate::names::Holder;
use crate::names::{GroupName, Namespace};
use crate::store::StoreError;
use crate::store::embedded::{Embedded, EmbeddedServer, GroupLook, Left, Part, Snapshot};
#[cfg(feature = "tasks")]
use crate::store::tasks::Shard;

/// How far apart the clocks of two servers are: no two of them ever show the same microsecond.
const APART: SignedDuration = SignedDuration::from_micros(137);

/// All servers.
#[derive(Debug)]
pub(super) struct Servers {
    state: Mutex<State>,
    /// Woken when connections end.
    ended: Notify,
    /// Who is told what they do.
    world: Weak<World>,
    #[cfg(feature = "tasks")]
    batches: Mutex<Batches>,
    #[cfg(feature = "tasks")]
    steps: Mutex<Steps>,
}

#[derive(Debug)]
struct State {
    master: EmbeddedServer,
    /// The one before it, which this instance still has, until then.
    old: Option<(EmbeddedServer, usize, Instant)>,
    /// What it held a short while before faults that bring it back, by their number in the plan.
    earlier: BTreeMap<usize, Snapshot>,
    stalled_until: Option<Instant>,
    off_until: Option<Instant>,
    full_until: Option<Instant>,
    readonly_until: Option<Instant>,
    /// How far its clock has been stepped.
    stepped: SignedDuration,
}

fn is_over(until: Option<Instant>, now: Instant) -> bool {
    until.is_none_or(|until| until <= now)
}

impl State {
    /// Ends what is over.
    fn look(&mut self, now: Instant) {
        if self.old.as_ref().is_some_and(|(_, _, until)| *until <= now) {
            self.old = None;
        }
        if self.full_until.is_some() && is_over(self.full_until, now) {
            self.full_until = None;
            self.master.set_full(false);
        }
        if self.readonly_until.is_some() && is_over(self.readonly_until, now) {
            self.readonly_until = None;
            self.master.set_readonly(false);
        }
    }

    fn of(&self, instance: usize) -> &EmbeddedServer {
        match &self.old {
            Some((old, whose, _)) if *whose == instance => old,
            _ => &self.master,
        }
    }
}

/// One of the parts of what is kept of a group: all, in one half of the cases.
fn part(server: &EmbeddedServer, group: &GroupName, chance: u64) -> Part {
    let jobs = || {
        let looks = server.leases();
        let look = looks.into_iter().find(|look| look.group == *group);
        look.map(|look| look.jobs).unwrap_or_default()
    };
    match chance % 10 {
        1 => Part::Lease,
        2 => Part::State,
        3 => Part::Fence,
        4 => Part::Beats,
        5 => {
            let jobs = jobs();
            let at = usize::try_from(chance / 10).unwrap_or(0) % jobs.len().max(1);
            jobs.into_iter().nth(at).map_or(Part::All, |job| Part::Job(job.job))
        }
        _ => Part::All,
    }
}

impl Servers {
    pub(super) fn new(clock: Clock, world: Weak<World>) -> Self {
        let master = EmbeddedServer::on(clock);
        master.set_appendonly(true);
        Self {
            state: Mutex::new(State {
                master,
                old: None,
                earlier: BTreeMap::new(),
                stalled_until: None,
                off_until: None,
                full_until: None,
                readonly_until: None,
                stepped: SignedDuration::ZERO,
            }),
            ended: Notify::new(),
            world,
            #[cfg(feature = "tasks")]
            batches: Mutex::default(),
            #[cfg(feature = "tasks")]
            steps: Mutex::default(),
        }
    }

    fn state<T>(&self, look: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.look(of_timers());
        look(&mut state)
    }

    /// Tells what a server has done.
    pub(super) fn tell(&self, seen: &Seen<'_>) {
        if let Some(world) = self.world.upgrade() {
            world.see(seen);
        }
    }

    /// Whether a batch of tasks was taken before.
    #[cfg(feature = "tasks")]
    pub(super) fn is_repeated(&self, shard: &Shard, producer: &Holder, number: u64) -> bool {
        let mut batches = self.batches.lock().unwrap_or_else(PoisonError::into_inner);
        let last = batches.entry((shard.clone(), producer.clone())).or_default();
        let is_repeated = number <= *last;
        *last = number.max(*last);
        is_repeated
    }

    /// Of the attempts that a step has begun those that it had not begun when it was asked for before.
    #[cfg(feature = "tasks")]
    pub(super) fn begun(&self, shard: &Shard, holder: &Holder, number: u64, fences: Vec<u64>) -> Vec<u64> {
        let mut steps = self.steps.lock().unwrap_or_else(PoisonError::into_inner);
        let last = steps.entry((shard.clone(), holder.clone())).or_default();
        if last.0 == number {
            return fences.into_iter().filter(|fence| !last.1.contains(fence)).collect();
        }
        if !fences.is_empty() {
            *last = (number, fences);
        }
        Vec::new()
    }

    /// Lets a fault of the store begin.
    pub(super) fn afflict(&self, fault: &Fault, number: usize, groups: &[GroupName]) {
        let now = of_timers();
        let until = Some(now + fault.lasts);
        let cuts = self.state(|state| {
            match fault.kind {
                FaultKind::StoreStall => state.stalled_until = state.stalled_until.max(until),
                FaultKind::StoreFull => {
                    state.full_until = state.full_until.max(until);
                    state.master.set_full(true);
                }
                FaultKind::StoreReadOnly => {
                    state.readonly_until = state.readonly_until.max(until);
                    state.master.set_readonly(true);
                }
                FaultKind::StoreRestart => {
                    state.off_until = state.off_until.max(until);
                    state.master.restart(Left::Everything);
                }
                FaultKind::StoreEmpty => {
                    state.off_until = state.off_until.max(until);
                    state.master.restart(Left::Nothing);
                }
                FaultKind::StoreRollback => {
                    let Some(snapshot) = state.earlier.remove(&number) else {
                        return false;
                    };
                    state.off_until = state.off_until.max(until);
                    state.master.restart(Left::AsOf(snapshot));
                }
                FaultKind::StoreFlushed => state.master.flush(),
                FaultKind::StoreLoses => {
                    let group = groups.get(fault.instance % groups.len().max(1));
                    let Some(group) = group else { return false };
                    let part = part(&state.master, group, fault.strength.unsigned_abs());
                    state.master.lose(&Namespace::default(), group, &part);
                }
                FaultKind::FailOver | FaultKind::TwoMasters => {
                    let Some(snapshot) = state.earlier.remove(&number) else {
                        return false;
                    };
                    let old = state.master.clone();
                    // A replica is as old as its primary, and knows what it had heard.
                    let replica = old.fork();
                    replica.hold(snapshot);
                    replica.step_clock(APART);
                    state.master = replica;
                    if fault.kind == FaultKind::TwoMasters {
                        state.old = Some((old, fault.instance, now + fault.lasts));
                    } else {
                        state.off_until = state.off_until.max(until);
                    }
                }
                FaultKind::StoreClock => {
                    let step = SignedDuration::from_millis(fault.strength);
                    state.stepped += step;
                    state.master.step_clock(step);
                }
                _ => return false,
            }
            !matches!(
                fault.kind,
                FaultKind::StoreStall | FaultKind::StoreFull | FaultKind::StoreReadOnly | FaultKind::StoreClock
            )
        });
        if cuts {
            self.ended.notify_waiters();
        }
    }

    /// Keeps what the server holds now, for the fault of this number.
    pub(super) fn keep(&self, number: usize) {
        self.state(|state| {
            let snapshot = state.master.snapshot();
            state.earlier.insert(number, snapshot);
        });
    }

    /// Ends what is wrong.
    pub(super) fn heal(&self) {
        self.state(|state| {
            state.stalled_until = None;
            state.off_until = None;
            state.full_until = None;
            state.readonly_until = None;
            state.master.set_full(false);
            state.master.set_readonly(false);
            state.old = None;
            let stepped = std::mem::take(&mut state.stepped);
            state.master.step_clock(-stepped);
        });
        self.ended.notify_waiters();
    }

    /// The server that an instance has, whether it answers or not.
    pub(super) fn of(&self, instance: usize) -> Embedded {
        self.state(|state| state.of(instance).store())
    }

    /// What the newest server knows.
    pub(super) fn look(&self) -> Vec<GroupLook> {
        self.state(|state| state.master.leases())
    }

    /// Completes when the connections of an instance have ended: for one after another in the order in which they wait, where a channel
    /// would throw dice that no seed reaches. Cancel safe.
    pub(super) async fn changed(&self) {
        self.ended.notified().await;
    }

    /// The server that an instance reaches at once; `None` when it has to wait.
    pub(super) fn at_once(&self, instance: usize, now: Instant) -> Option<Result<Embedded, StoreError>> {
        self.state(|state| {
            if !is_over(state.off_until, now) {
                return Some(Err(StoreError::unreachable()));
            }
            is_over(state.stalled_until, now).then(|| Ok(state.of(instance).store()))
        })
    }

    /// The same, when it has been waited for. Cancel safe.
    pub(super) async fn reach(&self, instance: usize) -> Result<Embedded, StoreError> {
        loop {
            let now = of_timers();
            if let Some(reached) = self.at_once(instance, now) {
                return reached;
            }
            let until = self.state(|state| state.stalled_until);
            sleep_until(until.unwrap_or(now)).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn connections_end_in_the_order_in_which_they_wait() {
        let clock = Clock::of_the_runtime(jiff::Timestamp::UNIX_EPOCH);
        let servers = Arc::new(Servers::new(clock, Weak::new()));
        let order = Arc::new(Mutex::new(Vec::new()));
        let wait = |number| {
            let (servers, order) = (Arc::clone(&servers), Arc::clone(&order));
            tokio::spawn(async move {
                servers.changed().await;
                order.lock().unwrap().push(number);
            })
        };
        let waiting: Vec<_> = (0..20).map(wait).collect();
        tokio::task::yield_now().await;
        servers.heal();
        for wait in waiting {
            wait.await.unwrap();
        }
        assert_eq!(*order.lock().unwrap(), (0..20).collect::<Vec<_>>());
    }
}

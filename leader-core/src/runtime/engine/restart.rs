//! An engine that panics is a loss of every lead, and is started again after a pause.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};

use super::inspection::Inspection;
use super::lives::Lives;
use super::requests::{LAST_WORDS, ask_to_step_down, last_words, read_fleet};
use super::roster::Roster;
use super::{Engine, FIRST_ANSWERS, Input, Refused, Request, Stopping};
use crate::clock::Moment;
use crate::election::{Lost, Oddity};
use crate::event::Event;
use crate::job::gate::Role;
use crate::job::scope;
use crate::names::GroupName;
use crate::runtime::panics::{self, caught};
use crate::runtime::restarts::Restarts;
use crate::runtime::shared::Shared;
use crate::runtime::watch::Watch;
use crate::schedule::planning::PlanningClock;
use crate::schedule::skew::Skew;
use crate::store::{Release, Store};

/// What outlives an engine that panics.
pub(crate) struct Kept {
    pub(super) inbox: mpsc::UnboundedReceiver<Input>,
    pub(super) ready: Option<(oneshot::Sender<Result<(), Refused>>, Moment)>,
    /// Of each group.
    pub(super) groups: Vec<Seen>,
    /// Never runs backwards.
    pub(super) planning: PlanningClock,
    /// A dispute outlives an engine.
    pub(super) skew: Skew,
    /// Those that are added while the instance lives, and those that have not ended yet.
    pub(super) lives: Lives,
    pub(super) watch: Watch,
    pub(super) inspection: Inspection,
    /// The roster line stays.
    pub(super) roster: Roster,
    /// The number of the last claim: where there are no terms, those of the next engine are told from the last one's by it.
    pub(super) last_claim: u64,
    stopping: Option<Stopping>,
}

/// What was seen of a group.
#[derive(Clone, Copy, Default)]
pub(super) struct Seen {
    pub(super) known: u64,
    pub(super) answered: bool,
    pub(super) oddity: Option<Oddity>,
}

impl Kept {
    /// For the first engine of an instance.
    pub(crate) fn new(
        shared: &Shared,
        inbox: mpsc::UnboundedReceiver<Input>,
        ready: oneshot::Sender<Result<(), Refused>>,
    ) -> Self {
        let config = &shared.config;
        let now = config.clock.now();
        Self {
            inbox,
            ready: Some((ready, now + FIRST_ANSWERS)),
            groups: vec![Seen::default(); shared.gates.iter().count()],
            planning: PlanningClock::new(config.clock.wall(), now),
            skew: Skew::new(config.follow_store_clock, config.timing.ttl()),
            lives: Lives::new(config.lives.clone()),
            watch: Watch::new(config.timing, now),
            inspection: Inspection::due(now),
            roster: Roster::default(),
            last_claim: 0,
            stopping: None,
        }
    }
}

/// Runs an instance until it has stopped.
pub(crate) async fn drive(shared: &Arc<Shared>, store: &Arc<dyn Store>, bodies: &Handle, mut kept: Kept) {
    let clock = &shared.config.clock;
    let mut restarts = Restarts::default();
    loop {
        let began = clock.now();
        let mut engine = Engine::new(Arc::clone(shared), Arc::clone(store), bodies.clone(), kept);
        let Err(panic) = caught(engine.run()).await else {
            stopped(shared, engine.stopping.take());
            return;
        };
        let ends = engine.close();
        let error = panics::text(panic);
        let stopping = engine.stopping.is_some();
        let again_in = (!stopping).then(|| restarts.pause_after(clock.now().since(began)));
        tell(shared, Event::EnginePanicked { error, again_in });
        let led = engine.lose_all(&ends);
        kept = engine.keep();
        if let Some(pause) = again_in {
            kept.pause(clock.now() + pause, shared, store, bodies).await;
        }
        if let Some(stopping) = kept.stopping.take() {
            if !stopping.left {
                last_steps(shared, store, led, stopping.bound).await;
            }
            stopped(shared, Some(stopping));
            return;
        }
    }
}

/// A panic may come from whoever listens to the log.
fn tell(shared: &Shared, event: Event) {
    let _ = catch_unwind(AssertUnwindSafe(|| shared.tell(event)));
}

/// Whoever is told that the instance has stopped may count on it.
fn stopped(shared: &Shared, stopping: Option<Stopping>) {
    scope::unregister(&shared.gates);
    let instance = shared.config.instance.clone();
    shared.tell(Event::Stopped { instance });
    for waiting in stopping.into_iter().flat_map(|stopping| stopping.waiting) {
        let _ = waiting.send(());
    }
}

impl Engine {
    /// Clears every belief, and says until when each was held.
    fn close(&self) -> Vec<Moment> {
        self.runs.trusts.close_all();
        let close = |gate: &Arc<crate::job::gate::Gate>| {
            let until = gate.trust_until();
            gate.close();
            until
        };
        self.shared.gates.iter().map(close).collect()
    }

    /// Tells of what was led until then, and has its bodies dropped: the store is told of no run of theirs, and finds them dead.
    fn lose_all(&mut self, ends: &[Moment]) -> Vec<(GroupName, u64)> {
        let now = self.now();
        self.runs.end_all();
        let mut led = Vec::new();
        for (state, until) in self.groups.iter_mut().zip(ends) {
            let group = state.gate.group().clone();
            self.lives.end(&group);
            for done in state.step_down.drain(..) {
                let _ = done.send(Ok(()));
            }
            let (role, term) = {
                let status = state.gate.status().borrow();
                (status.role, status.term)
            };
            if !matches!(role, Role::Leader | Role::Draining) {
                continue;
            }
            state.gate.tell(term);
            state.show(Role::Standby, None, term, None);
            led.push((group.clone(), term));
            let lost = Event::Lost {
                group,
                term,
                reason: Lost::EnginePanicked,
                ended: if *until == Moment::ZERO { now } else { now.min(*until) },
            };
            tell(&self.shared, lost);
        }
        led
    }

    fn keep(self) -> Kept {
        let seen = |state: &super::GroupState| Seen {
            known: state.known.max(state.election.known()),
            answered: state.answered,
            oddity: state.oddity,
        };
        let now = self.now();
        Kept {
            inbox: self.inbox,
            ready: self.ready,
            groups: self.groups.iter().map(seen).collect(),
            planning: self.planning,
            skew: self.skew,
            lives: self.lives,
            watch: self.watch,
            inspection: self.inspection.kept(now),
            roster: self.roster.kept(),
            last_claim: self.ticks.last_claim(),
            stopping: self.stopping,
        }
    }
}

impl Kept {
    /// Waits for the next start, and answers meanwhile; returns early when the instance is to stop.
    async fn pause(&mut self, until: Moment, shared: &Arc<Shared>, store: &Arc<dyn Store>, bodies: &Handle) {
        let clock = &shared.config.clock;
        let step = shared.config.timing.ttl() / 10;
        let mut later = Vec::new();
        while self.stopping.is_none() {
            tokio::select! {
                biased;
                input = self.inbox.recv() => {
                    let Some(input) = input else { break };
                    later.extend(self.take(input, shared, store, bodies));
                }
                () = clock.sleep_until(until, step) => break,
            }
        }
        // What was sent to the engine that is gone is not the next one's.
        while let Ok(input) = self.inbox.try_recv() {
            later.extend(self.take(input, shared, store, bodies));
        }
        for input in later {
            shared.send(input);
        }
    }

    /// Takes an input while no engine runs, and gives back what the next one is to have.
    fn take(&mut self, input: Input, shared: &Arc<Shared>, store: &Arc<dyn Store>, bodies: &Handle) -> Option<Input> {
        let config = &shared.config;
        match input {
            Input::Probed(number) => self.probed(shared, number),
            Input::LifeEnded { id, .. } => self.lives.ended_unled(id),
            // Led elsewhere it can be asked for; led here as far as the store knows, it ends with the next term.
            Input::Request(Request::StepDown { group, reason, done }) => {
                if let Some(gate) = shared.gates.get(group.as_str()) {
                    let status = gate.status().subscribe();
                    ask_to_step_down(shared, store, group, reason, status, done);
                }
            }
            Input::Request(Request::Fleet { answer }) => read_fleet(&config.process, store, answer),
            Input::Request(Request::Errand(errand)) => errand.run(&config.process, store),
            Input::Request(Request::Shutdown { done }) => {
                self.stop(config.clock.now() + last_words(config.timing), done);
            }
            Input::Request(Request::RuntimeGone { done }) => self.stop(config.clock.now() + LAST_WORDS, done),
            Input::Request(Request::Live(spec)) => self.lives.add(spec),
            Input::Request(Request::EndLife(name)) => {
                if let Some(life) = self.lives.take_out(&name) {
                    bodies.spawn(config.process.hold(async move { drop(life) }));
                }
            }
            #[cfg(feature = "testing")]
            Input::Request(Request::Kill) => {
                let (done, _) = oneshot::channel();
                self.stop(config.clock.now(), done);
                self.stopping.iter_mut().for_each(|stopping| stopping.left = true);
            }
            #[cfg(feature = "testing")]
            Input::Request(Request::Freeze(span)) => std::thread::sleep(span),
            #[cfg(feature = "testing")]
            Input::Request(Request::Panic { .. }) => return Some(input),
            // Answers to an engine that is gone, and hints to one that will look by itself. Whoever asks for more is answered by
            // the drop of what it waits for.
            _ => {}
        }
        None
    }

    fn probed(&mut self, shared: &Shared, number: u64) {
        if self.watch.answered(number) {
            tell(shared, Event::RuntimeRecovered);
            self.roster.set_wedged(false);
        }
    }

    fn stop(&mut self, bound: Moment, done: oneshot::Sender<()>) {
        Stopping::join(&mut self.stopping, bound, done);
    }
}

/// Gives back what was led, and takes the roster line out: an engine that broke is not needed for that.
async fn last_steps(shared: &Arc<Shared>, store: &Arc<dyn Store>, led: Vec<(GroupName, u64)>, bound: Moment) {
    let holder = &shared.config.holder;
    let release = |(group, term)| {
        let store = Arc::clone(store);
        let holder = holder.clone();
        let request = Release {
            group,
            holder,
            term,
            draining_since: None,
        };
        tokio::spawn(async move { store.release(request).await })
    };
    let releases: Vec<_> = led.into_iter().map(release).collect();
    let steps = async {
        for release in releases {
            let _ = release.await;
        }
        let _ = caught(store.leave(holder.clone())).await;
    };
    let _ = tokio::time::timeout(bound.since(shared.config.clock.now()), steps).await;
}

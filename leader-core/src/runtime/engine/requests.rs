//! What handles ask.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{oneshot, watch};

use super::input::{FleetAnswer, Input, Request};
use super::{Engine, Stopping};
use crate::clock::Moment;
use crate::election::{Lost, StepDown};
use crate::job::gate::GroupStatus;
use crate::names::GroupName;
use crate::runtime::fleet;
use crate::runtime::process::Process;
use crate::runtime::requests::{self, StepDownError};
use crate::runtime::shared::Shared;
use crate::store::{Asked, Store};
use crate::timing::Timing;

/// How long a release is tried when the runtime of the bodies is gone.
pub(super) const LAST_WORDS: Duration = Duration::from_millis(250);

impl Engine {
    pub(super) fn request(&mut self, now: Moment, request: Request) {
        match request {
            Request::StepDown { group, reason, done } => self.step_down(now, group, reason, done),
            Request::Fleet { answer } => read_fleet(&self.shared.config.process, &self.store, answer),
            Request::Errand(errand) => errand.run(&self.shared.config.process, &self.store),
            Request::Shutdown { done } => self.shut_down(now, done, None),
            Request::RuntimeGone { done } => self.shut_down(now, done, Some(Lost::RuntimeGone)),
            #[cfg(feature = "testing")]
            Request::Kill => {
                self.groups.iter().for_each(|group| group.gate.seal());
                self.runs.end_all();
                self.groups.iter().for_each(|group| self.lives.end(group.gate.group()));
                self.stopping = Some(Stopping {
                    waiting: Vec::new(),
                    bound: now,
                    left: true,
                    leaving: true,
                });
            }
            #[cfg(feature = "testing")]
            Request::Freeze(span) => std::thread::sleep(span),
            #[cfg(feature = "testing")]
            Request::Panic { in_a_question: false } => std::panic::resume_unwind(Box::new("a panic on request")),
            #[cfg(feature = "testing")]
            Request::Panic { in_a_question: true } => {
                let question = async { std::panic::panic_any("a panic of the store") };
                self.ask(question, |()| Input::CallsIdle);
            }
            Request::Live(spec) => self.add_life(now, spec),
            Request::EndLife(name) => self.remove_life(&name),
            #[cfg(feature = "testing")]
            Request::RunTick { job, at, done } => self.claim_extra(now, job, at, done),
        }
    }

    fn step_down(
        &mut self,
        now: Moment,
        group: GroupName,
        reason: String,
        done: oneshot::Sender<Result<(), StepDownError>>,
    ) {
        // The handle knows only groups of this instance.
        let Some(index) = self.index_of(group.as_str()) else {
            return;
        };
        let state = &mut self.groups[index];
        if state.election.leading(now).is_some() {
            state.step_down.push(done);
            state.election.step_down(now, StepDown::Request);
            self.elections_turn(now);
            return;
        }
        let status = state.gate.status().subscribe();
        ask_to_step_down(&self.shared, &self.store, group, reason, status, done);
    }

    fn shut_down(&mut self, now: Moment, done: oneshot::Sender<()>, abandoned: Option<Lost>) {
        let config = &self.shared.config;
        let bound = match abandoned {
            Some(_) => now + LAST_WORDS,
            None => now + config.drain + last_words(config.timing),
        };
        Stopping::join(&mut self.stopping, bound, done);
        if let (Some(companion), Some(stopping)) = (&config.companion, &self.stopping) {
            companion.drain(stopping.drained_by(config.timing));
        }
        self.roster_drains();
        for group in &mut self.groups {
            if let Some(reason) = abandoned {
                group.election.abandon(now, reason);
            }
            group.election.step_down(now, StepDown::Shutdown);
        }
        self.elections_turn(now);
        if abandoned.is_some() {
            // Whether anything answers or not, that is all the time there is.
            self.ask(async move { tokio::time::sleep(LAST_WORDS).await }, |()| Input::Left);
        }
    }
}

/// How long a release and what follows it may take.
pub(super) fn last_words(timing: Timing) -> Duration {
    2 * (timing.operation() + timing.retry())
}

/// Reads the roster for a handle, in a task of its own.
pub(super) fn read_fleet(process: &Process, store: &Arc<dyn Store>, answer: FleetAnswer) {
    let store = Arc::clone(store);
    tokio::spawn(process.hold(async move {
        let _ = answer.send(store.roster().await.map(|roster| fleet::members(&roster)));
    }));
}

/// Asks whoever leads a group to give it up, in a task of its own.
pub(super) fn ask_to_step_down(
    shared: &Shared,
    store: &Arc<dyn Store>,
    group: GroupName,
    reason: String,
    status: watch::Receiver<GroupStatus>,
    done: oneshot::Sender<Result<(), StepDownError>>,
) {
    let config = &shared.config;
    let asked = Asked {
        by: config.instance.to_string(),
        reason,
    };
    let store = Arc::clone(store);
    let (timing, drain, clock) = (config.timing, config.drain, config.clock.clone());
    let asking = requests::ask_to_step_down(store, group, asked, timing, drain, clock, status);
    tokio::spawn(config.process.hold(async move {
        let _ = done.send(asking.await);
    }));
}

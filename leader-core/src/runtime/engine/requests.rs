//! What handles ask.

use std::sync::Arc;
use std::time::Duration;

use super::input::{Input, Request};
use super::{Engine, Stopping};
use crate::clock::Moment;
use crate::election::{Lost, StepDown};

/// How long a release is tried when the runtime of the bodies is gone.
const LAST_WORDS: Duration = Duration::from_millis(250);

impl Engine {
    pub(super) fn request(&mut self, now: Moment, request: Request) {
        match request {
            Request::StepDown { group, done } => self.step_down(now, &group, done),
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
            Request::Ledger { job, answer } => {
                let spec = self.shared.config.jobs.iter().find(|spec| spec.name == job);
                // The handle knows only jobs of this instance.
                let Some(group) = spec.map(|spec| spec.group.clone()) else {
                    return;
                };
                let store = Arc::clone(&self.store);
                tokio::spawn(async move {
                    let _ = answer.send(store.ledger(&group, &job).await);
                });
            }
            #[cfg(feature = "testing")]
            Request::Freeze(span) => std::thread::sleep(span),
            Request::Live(spec) => self.add_life(now, spec),
            Request::EndLife(name) => self.remove_life(&name),
            #[cfg(feature = "testing")]
            Request::RunTick { job, at, done } => self.claim_extra(now, job, at, done),
        }
    }

    fn step_down(&mut self, now: Moment, group: &crate::GroupName, done: tokio::sync::oneshot::Sender<Result<(), ()>>) {
        let state = self.groups.iter_mut().find(|state| state.gate.group() == group);
        match state {
            Some(state) if state.election.leading(now).is_some() => {
                state.step_down.push(done);
                state.election.step_down(now, StepDown::Request);
                self.elections_turn(now);
            }
            _ => {
                let _ = done.send(Err(()));
            }
        }
    }

    fn shut_down(&mut self, now: Moment, done: tokio::sync::oneshot::Sender<()>, abandoned: Option<Lost>) {
        let config = &self.shared.config;
        let last_words = 2 * (config.timing.operation() + config.timing.retry());
        let bound = match abandoned {
            Some(_) => now + LAST_WORDS,
            None => now + config.drain + last_words,
        };
        match &mut self.stopping {
            Some(stopping) => {
                stopping.waiting.push(done);
                stopping.bound = stopping.bound.min(bound);
            }
            None => {
                self.stopping = Some(Stopping {
                    waiting: vec![done],
                    bound,
                    left: false,
                    leaving: false,
                });
            }
        }
        for group in &mut self.groups {
            match abandoned {
                Some(reason) => group.election.abandon(now, reason),
                None => group.election.step_down(now, StepDown::Shutdown),
            }
        }
        self.elections_turn(now);
        if abandoned.is_some() {
            // Whether anything answers or not, that is all the time there is.
            self.ask(async move { tokio::time::sleep(LAST_WORDS).await }, |()| Input::Left);
        }
    }
}

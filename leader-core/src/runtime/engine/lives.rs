//! Long-lived bodies: started at each grant, told and dropped at its end, and restarted when they return early.

use std::sync::Arc;

use super::Engine;
use super::input::{Group, Input};
use crate::clock::Moment;
use crate::event::Event;
use crate::job::extract::Given;
use crate::job::gate::Lead;
use crate::job::outcome::Ran;
use crate::job::record::OnLoss;
use crate::job::scope::{self, Scope};
use crate::names::{GroupName, JobName};
use crate::runtime::config::LifeSpec;
use crate::runtime::guarded::{Control, Ending, Guarded, Start, Witness};
use crate::runtime::restarts::Restarts;
use crate::runtime::shared::Shared;

/// One start of one body.
pub(super) type LifeId = u64;

#[derive(Default)]
pub(super) struct Lives {
    all: Vec<Life>,
    last_id: LifeId,
}

pub(super) struct Life {
    spec: LifeSpec,
    state: State,
    restarts: Restarts,
}

impl Life {
    fn new(spec: LifeSpec) -> Self {
        Self {
            spec,
            state: State::Off,
            restarts: Restarts::default(),
        }
    }
}

enum State {
    /// Its group is not led here.
    Off,
    Running {
        id: LifeId,
        term: u64,
        began: Moment,
        control: Arc<Control>,
        /// Not to be restarted, whatever comes.
        last: bool,
    },
    Pausing {
        until: Moment,
        term: u64,
    },
}

impl Lives {
    pub(super) fn new(specs: Vec<LifeSpec>) -> Self {
        Self {
            all: specs.into_iter().map(Life::new).collect(),
            last_id: 0,
        }
    }

    pub(super) fn next_wake(&self) -> Option<Moment> {
        let until = |life: &Life| match life.state {
            State::Pausing { until, .. } => Some(until),
            _ => None,
        };
        self.all.iter().filter_map(until).min()
    }

    pub(super) fn any_running(&self, group: &GroupName) -> bool {
        self.all
            .iter()
            .any(|life| life.spec.group == *group && matches!(life.state, State::Running { .. }))
    }

    /// No restarts any more in this leadership.
    pub(super) fn stop(&mut self, group: &GroupName) {
        for life in self.all.iter_mut().filter(|life| life.spec.group == *group) {
            match &mut life.state {
                State::Running { last, .. } => *last = true,
                state => *state = State::Off,
            }
        }
    }

    /// Adds a body that is not started.
    pub(super) fn add(&mut self, spec: LifeSpec) {
        self.all.push(Life::new(spec));
    }

    /// Takes a body out; it is dropped at its next poll.
    pub(super) fn take_out(&mut self, name: &JobName) -> Option<Life> {
        let at = self.all.iter().position(|life| life.spec.name == *name)?;
        let life = self.all.remove(at);
        if let State::Running { control, .. } = &life.state {
            control.end(Ran::Cancelled);
        }
        Some(life)
    }

    /// A body ended while nothing is led: the next leadership starts it.
    pub(super) fn ended_unled(&mut self, id: LifeId) {
        let is_this = |life: &&mut Life| matches!(life.state, State::Running { id: other, .. } if other == id);
        if let Some(life) = self.all.iter_mut().find(is_this) {
            life.state = State::Off;
        }
    }

    /// Drops the bodies at their next poll.
    pub(super) fn end(&self, group: &GroupName) {
        for life in self.all.iter().filter(|life| life.spec.group == *group) {
            if let State::Running { control, .. } = &life.state {
                control.end(Ran::Cancelled);
            }
        }
    }
}

struct Reporter {
    shared: Arc<Shared>,
    id: LifeId,
}

impl Witness for Reporter {
    fn begun(&mut self) {}

    fn ended(&mut self, ending: Ending) {
        let id = self.id;
        self.shared.send(Input::LifeEnded { id, ending });
    }
}

impl Engine {
    /// A leadership has begun.
    pub(super) fn lives_begin(&mut self, index: Group, term: u64) {
        let group = self.groups[index].gate.group().clone();
        let now = self.now();
        for at in 0..self.lives.all.len() {
            let life = &mut self.lives.all[at];
            // One that has not ended yet is started when it has.
            if life.spec.group == group && !matches!(life.state, State::Running { .. }) {
                life.restarts = Restarts::default();
                self.start_life(now, at, term);
            }
        }
    }

    pub(super) fn lives_turn(&mut self, now: Moment) {
        for at in 0..self.lives.all.len() {
            if let State::Pausing { until, term } = self.lives.all[at].state
                && now >= until
            {
                self.start_life(now, at, term);
            }
        }
    }

    /// Adds a body; it starts at once when its group is led here.
    pub(super) fn add_life(&mut self, now: Moment, spec: LifeSpec) {
        let led = self.led_term(&spec.group);
        self.lives.add(spec);
        if let Some(term) = led {
            self.start_life(now, self.lives.all.len() - 1, term);
        }
    }

    /// Takes a body out again.
    pub(super) fn remove_life(&mut self, name: &JobName) {
        if let Some(life) = self.lives.take_out(name) {
            // What the body has captured may block or panic in its drop: not on this thread.
            self.bodies
                .spawn(self.shared.config.process.hold(async move { drop(life) }));
        }
    }

    fn led_term(&self, group: &GroupName) -> Option<u64> {
        let state = self.groups.iter().find(|state| state.gate.group() == group)?;
        state
            .taken_over
            .filter(|term| state.draining.is_none() && state.gate.trusts(*term))
    }

    fn start_life(&mut self, now: Moment, at: usize, term: u64) {
        self.lives.last_id += 1;
        let id = self.lives.last_id;
        let life = &mut self.lives.all[at];
        let Some(gate) = self
            .shared
            .gates
            .get(life.spec.group.as_str())
            .filter(|gate| gate.trusts(term))
        else {
            life.state = State::Off;
            return;
        };
        let lead = Lead::new(Arc::clone(gate), term, term);
        let control = Arc::new(Control::default());
        let shared = Arc::clone(&self.shared);
        let start_body = Arc::clone(&life.spec.start);
        let given_lead = lead.clone();
        let start: Start = Box::new(move || {
            let given = Given {
                tick: None,
                lead: &given_lead,
                states: &shared.config.states,
                payload: None,
            };
            let body = start_body(&given);
            let scope = Scope::new(Some(Arc::clone(&shared.gates)), Some(given_lead.clone()));
            Box::pin(async move { Ending::from(scope::within(scope, body).await) })
        });
        let reporter = Reporter {
            shared: Arc::clone(&self.shared),
            id,
        };
        let guarded = Guarded::new(start, lead, OnLoss::Cancel, Arc::clone(&control), reporter);
        life.state = State::Running {
            id,
            term,
            began: now,
            control,
            last: false,
        };
        self.bodies.spawn(self.shared.config.process.hold(guarded));
    }

    pub(super) fn life_ended(&mut self, now: Moment, id: LifeId, ending: Ending) {
        let is_this = |life: &Life| matches!(life.state, State::Running { id: other, .. } if other == id);
        let Some(at) = self.lives.all.iter().position(is_this) else {
            return;
        };
        let group = self.lives.all[at].spec.group.clone();
        let led = self.led_term(&group);
        let life = &mut self.lives.all[at];
        let State::Running { term, began, last, .. } = life.state else {
            return;
        };
        life.state = State::Off;
        match led {
            // A new leadership began while the body of an old one was ending.
            Some(new) if new != term => self.start_life(now, at, new),
            Some(_) if !last => {
                let again_in = life.restarts.pause_after(now.since(began));
                life.state = State::Pausing {
                    until: now + again_in,
                    term,
                };
                let name = life.spec.name.clone();
                // A body that was told to stop has only obeyed.
                if self
                    .shared
                    .gates
                    .get(group.as_str())
                    .is_some_and(|gate| gate.is_told(term))
                {
                    return;
                }
                self.shared.tell(Event::BodyEnded {
                    name,
                    group,
                    error: ending.error,
                    again_in,
                });
            }
            _ => {}
        }
    }
}

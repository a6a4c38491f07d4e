//! The steps from a state to the next: requests and answers in any order, time, faults.

use std::rc::Rc;

use leader_core::__seam::{GateView, Reply, StepDown};
use leader_core::Lost;

use super::config::{ANY, Config, Fault, Property};
use super::driver::{awaited, claim, deliver, take_over, turn};
use super::state::{Claim, Message, Process, State, What, Work, machine, number_of, tick};
use super::store::{execute, settle};

/// Hints are numbered apart from requests.
const HINT: u64 = 1 << 40;

#[derive(Clone, Copy, Debug)]
pub enum Step {
    /// A unit passes; not by the clock of one.
    Time {
        slow: Option<usize>,
    },
    /// A machine's timer comes, if late.
    Timer {
        who: usize,
    },
    /// The request at a place is executed; its answer is lost, heard at once, or under way.
    Executed {
        who: usize,
        place: usize,
        answer: Answer,
    },
    /// A request or an answer is lost.
    Lost {
        who: usize,
        place: usize,
    },
    /// An answer or a hint arrives.
    Heard {
        who: usize,
        place: usize,
    },
    /// The awaited request is told to have failed; it may be executed all the same.
    Fails {
        who: usize,
        place: usize,
    },
    StepsDown {
        who: usize,
    },
    ShutsDown {
        who: usize,
    },
    Drained {
        who: usize,
    },
    Wedged {
        who: usize,
    },
    Unwedged {
        who: usize,
    },
    Crashes {
        who: usize,
    },
    Starts {
        who: usize,
    },
    AsksForCursor {
        who: usize,
    },
    Claims {
        who: usize,
        tick: u8,
        again: bool,
    },
    BodyEnds {
        who: usize,
    },
    CalmBegins,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    Lost,
    Heard,
    UnderWay,
}

pub struct Move {
    pub step: Step,
    pub state: State,
    pub broken: Option<Property>,
}

/// Every step from here.
pub fn moves(state: &State, config: &Config, into: &mut Vec<Move>) {
    into.clear();
    let mut moves = Moves { state, config, into };
    for who in 0..config.instances {
        moves.of_network(who);
        moves.of_machine(who);
        if config.ticks > 0 {
            moves.of_ticks(who);
        }
    }
    if config.calm_within.is_some() && state.calm.is_none() {
        moves.add(Step::CalmBegins, |next| {
            next.calm = Some(0);
            None
        });
    }
    moves.of_time();
}

struct Moves<'a> {
    state: &'a State,
    config: &'a Config,
    into: &'a mut Vec<Move>,
}

impl Moves<'_> {
    fn add(&mut self, step: Step, change: impl FnOnce(&mut State) -> Option<Property>) {
        let config = self.config;
        let mut state = self.state.clone();
        let broken = change(&mut state);
        let full = (0..config.instances).any(|who| state.processes[who].messages.len() > config.messages);
        if full {
            return;
        }
        let broken = broken
            .filter(|property| config.asks(*property))
            .or_else(|| judge(&state, config));
        self.into.push(Move { step, state, broken });
    }

    fn fault(&mut self, fault: Fault, step: Step, change: impl FnOnce(&mut State) -> Option<Property>) {
        if self.state.faults[fault as usize] == 0 || self.state.calm.is_some() {
            return;
        }
        self.add(step, |next| {
            let left = &mut next.faults[fault as usize];
            if *left != ANY {
                *left -= 1;
            }
            change(next)
        });
    }

    fn of_network(&mut self, who: usize) {
        let config = self.config;
        let process = &self.state.processes[who];
        for (place, message) in process.messages.iter().enumerate() {
            let alive = message.life == process.life;
            if message.what.is_request() {
                let answers: &[Answer] = match (alive, config.late) {
                    (false, _) => &[Answer::Lost],
                    (true, true) => &[Answer::UnderWay],
                    (true, false) if self.state.calm.is_some() => &[Answer::Heard],
                    (true, false) => &[Answer::Heard, Answer::Lost],
                };
                for answer in answers {
                    let step = Step::Executed {
                        who,
                        place,
                        answer: *answer,
                    };
                    self.add(step, |next| executed(next, config, who, place, *answer));
                }
                let waits = alive && awaited(&process.machine) == Some(message.attempt);
                if waits && config.errors && self.state.calm.is_none() {
                    let attempt = message.attempt;
                    self.add(Step::Fails { who, place }, |next| {
                        turn(next, config, who, |machine, now| {
                            machine.handle_reply(now, leader_core::__seam::Attempt(attempt), &Reply::Failed);
                        })
                    });
                }
            } else {
                self.add(Step::Heard { who, place }, |next| {
                    let message = process_mut(next, who).messages.remove(place);
                    heard(next, config, who, &message)
                });
            }
            if self.state.calm.is_none() {
                self.add(Step::Lost { who, place }, |next| {
                    process_mut(next, who).messages.remove(place);
                    None
                });
            }
        }
    }

    fn of_machine(&mut self, who: usize) {
        let config = self.config;
        let process = &self.state.processes[who];
        let now = self.state.now(who);
        if process.machine.poll_timeout().is_some_and(|at| now >= at) {
            self.add(Step::Timer { who }, |next| {
                turn(next, config, who, leader_core::__seam::Election::handle_timeout)
            });
        }
        if let Some(term) = process.machine.leading(now) {
            let draining = process.gate.open_until == 0;
            if draining {
                self.add(Step::Drained { who }, |next| {
                    turn(next, config, who, |machine, now| machine.drained(now, term))
                });
            } else {
                self.fault(Fault::StepDown, Step::StepsDown { who }, |next| {
                    turn(next, config, who, |machine, now| {
                        machine.step_down(now, StepDown::Request);
                    })
                });
            }
        }
        if process.machine.is_stopped() {
            self.add(Step::Starts { who }, |next| {
                start(next, config, who);
                None
            });
        } else {
            self.fault(Fault::Shutdown, Step::ShutsDown { who }, |next| {
                turn(next, config, who, |machine, now| {
                    machine.step_down(now, StepDown::Shutdown);
                })
            });
        }
        if process.wedged {
            self.add(Step::Unwedged { who }, |next| {
                process_mut(next, who).wedged = false;
                turn(next, config, who, leader_core::__seam::Election::rejoin)
            });
        } else {
            self.fault(Fault::Wedge, Step::Wedged { who }, |next| {
                process_mut(next, who).wedged = true;
                turn(next, config, who, |machine, now| machine.abandon(now, Lost::Wedged))
            });
        }
        self.fault(Fault::Crash, Step::Crashes { who }, |next| {
            start(next, config, who);
            None
        });
    }

    fn of_ticks(&mut self, who: usize) {
        let (config, state) = (self.config, self.state);
        let work = &state.processes[who].work;
        if let Some((_, same)) = work.claim {
            if work.term == same.term {
                let tick = number_of(config, same.tick).unwrap_or(0);
                let step = Step::Claims { who, tick, again: true };
                self.add(step, |next| {
                    claim(process_mut(next, who), same);
                    None
                });
            }
        } else if let (true, Some(cursor)) = (work.term != 0, work.cursor) {
            let due = (0..config.ticks).find(|number| tick(config, *number) > cursor);
            if let Some(number) = due.filter(|number| tick(config, *number) <= state.wall_seconds()) {
                let new = Claim {
                    term: work.term,
                    number: work.last_claim + 1,
                    tick: tick(config, number),
                    cursor,
                };
                let step = Step::Claims {
                    who,
                    tick: number,
                    again: false,
                };
                self.add(step, |next| {
                    claim(process_mut(next, who), new);
                    None
                });
            }
        }
        if work.term != 0 && work.cursor.is_none() {
            self.add(Step::AsksForCursor { who }, |next| {
                take_over(process_mut(next, who));
                None
            });
        }
        if let Some(fence) = work.running.first().copied() {
            self.add(Step::BodyEnds { who }, |next| {
                process_mut(next, who).work.running.remove(0);
                settle(next, fence);
                None
            });
        }
    }

    fn of_time(&mut self) {
        let (config, state) = (self.config, self.state);
        if config.horizon > 0 && state.time >= config.horizon {
            return;
        }
        if state.calm.is_some() && (0..config.instances).any(|who| is_busy(state, who)) {
            return;
        }
        self.add(Step::Time { slow: None }, |next| pass(next, config));
        for who in 0..config.instances {
            let last = state.processes[who].slipped_at;
            if last.is_none_or(|last| state.time - last >= config.ttl) {
                self.fault(Fault::Slip, Step::Time { slow: Some(who) }, |next| {
                    let process = process_mut(next, who);
                    process.behind += 1;
                    process.slipped_at = Some(state.time);
                    pass(next, config)
                });
            }
        }
    }
}

/// Whether an instance has something to do at this instant.
fn is_busy(state: &State, who: usize) -> bool {
    let process = &state.processes[who];
    let due = process.machine.poll_timeout().is_some_and(|at| state.now(who) >= at);
    due || process.wedged || process.machine.is_stopped() || !process.messages.is_empty()
}

fn process_mut(state: &mut State, who: usize) -> &mut Process {
    Rc::make_mut(&mut state.processes[who])
}

fn pass(state: &mut State, config: &Config) -> Option<Property> {
    state.time += 1;
    if let (Some(calm), Some(within)) = (&mut state.calm, config.calm_within) {
        *calm += 1;
        return (*calm > within).then_some(Property::LedAgain);
    }
    None
}

fn start(state: &mut State, config: &Config, who: usize) {
    let now = state.now(who);
    let process = process_mut(state, who);
    process.machine = machine(config, who, now);
    process.gate = GateView::default();
    process.life += 1;
    process.wedged = false;
    process.work = Work::default();
    // What was under way to the old process finds nobody.
    process.messages.retain(|message| message.what.is_request());
}

fn executed(state: &mut State, config: &Config, who: usize, place: usize, answer: Answer) -> Option<Property> {
    let message = process_mut(state, who).messages.remove(place);
    let done = execute(state, config, who, &message);
    if let (What::Release { term }, true) = (&message.what, done.released) {
        released(state, config, who, &message, *term);
    }
    let broken = done.broken;
    let answered = Message {
        what: done.answer,
        ..message
    };
    match answer {
        Answer::Lost => broken,
        Answer::Heard => broken.or(heard(state, config, who, &answered)),
        Answer::UnderWay => {
            process_mut(state, who).messages.insert(place, answered);
            broken
        }
    }
}

/// A lease was given back: what its holder sent before is void, and the others hear of it, sooner or later or never.
fn released(state: &mut State, config: &Config, who: usize, release: &Message, term: u64) {
    for message in &mut process_mut(state, who).messages {
        let before = message.life == release.life && message.attempt < release.attempt;
        message.void |= before && message.what.is_request();
    }
    for other in (0..config.instances).filter(|other| config.hints && *other != who) {
        let process = process_mut(state, other);
        if process.messages.len() < config.messages {
            process.send(Message {
                life: process.life,
                attempt: HINT,
                what: What::Told { term },
                void: false,
            });
        }
    }
}

fn heard(state: &mut State, config: &Config, who: usize, message: &Message) -> Option<Property> {
    let (won, broken) = deliver(state, config, who, message);
    let Some(won) = won else { return broken };
    // The body starts now.
    if config.asks(Property::StartInTrust) && !state.holds(who, won.term) {
        return Some(Property::StartInTrust);
    }
    let number = usize::from(number_of(config, won.tick).unwrap_or(0));
    state.started[number] += 1;
    (state.started[number] > 1).then_some(Property::TickOnce).or(broken)
}

/// What is wrong with a state.
fn judge(state: &State, config: &Config) -> Option<Property> {
    let mut believers = 0;
    for who in 0..config.instances {
        let believed = state.believes(who);
        if let Some(term) = believed {
            believers += 1;
            if config.asks(Property::LeaseBehind) && !state.holds(who, term) {
                return Some(Property::LeaseBehind);
            }
        }
        let machine = &state.processes[who].machine;
        if config.asks(Property::GateAgrees) && machine.leading(state.now(who)) != believed {
            return Some(Property::GateAgrees);
        }
    }
    (believers > 1 && config.asks(Property::OneBeliever)).then_some(Property::OneBeliever)
}

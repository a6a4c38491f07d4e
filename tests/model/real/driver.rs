//! What the engine does for a machine, as little of it as there can be: commands are executed in order, gates opened and closed by the
//! real gate, ticks claimed one after another.

use std::rc::Rc;

use leader_core::__seam::{Attempt, CampaignReply, Command, Election, GateStep, GateView, Mark, Reply};
use leader_core::Moment;

use super::config::{Config, Mutant, Property};
use super::state::{Claim, Message, Process, State, Verdict, What, group};

/// Requests of the driver are numbered apart from the machine's.
const DRIVERS: u64 = 1 << 32;

/// Lets a machine take one turn, and executes what it commands. What was broken.
pub fn turn(
    state: &mut State,
    config: &Config,
    slot: usize,
    act: impl FnOnce(&mut Election, Moment),
) -> Option<Property> {
    let now = state.now(slot);
    let State { processes, led, .. } = state;
    let process = Rc::make_mut(&mut processes[slot]);
    act(&mut process.machine, now);
    obey(process, config, now, led)
}

fn obey(process: &mut Process, config: &Config, now: Moment, led: &mut u64) -> Option<Property> {
    let mut broken = None;
    while let Some(command) = process.machine.poll_command() {
        match command {
            Command::Campaign {
                attempt, known, yields, ..
            } => {
                let yields = yields.as_secs();
                let known = known.max(process.work.known);
                request(process, attempt, What::Campaign { known, yields });
            }
            Command::Renew { attempt, term } => request(process, attempt, What::Renew { term }),
            Command::Release { attempt, term, .. } => request(process, attempt, What::Release { term }),
            Command::Lead { term, until } => {
                let until = end_of_trust(config, now, until);
                step(process, GateStep::Open(term, until));
                if term <= *led {
                    broken = Some(Property::NumbersRise);
                }
                *led = term.max(*led);
                if config.ticks > 0 {
                    process.work.term = term;
                    // Numbers are told apart by the term as well.
                    process.work.last_claim = 0;
                    take_over(process);
                }
            }
            Command::Extend { until, .. } => step(process, GateStep::Extend(end_of_trust(config, now, until))),
            Command::Drain { .. } => {
                step(process, GateStep::CloseEntry);
                forget_ticks(process);
            }
            Command::Lose { .. } => {
                if !config.has(Mutant::ReleaseBeforeBelief) {
                    step(process, GateStep::Close);
                }
                forget_ticks(process);
            }
            Command::Tell { .. } | Command::RenewalFailed { .. } | Command::Quarantined { .. } | Command::Stopped => {}
        }
    }
    broken
}

fn step(process: &mut Process, step: GateStep) {
    // The belief of an earlier leadership must have been cleared, even where a wrong driver forgets to.
    if matches!(step, GateStep::Open(..)) && process.gate.trust_until != 0 {
        process.gate = GateView::default();
    }
    process.gate = process.gate.after(&group(), step);
}

fn end_of_trust(config: &Config, now: Moment, until: Moment) -> Moment {
    match config.mutant {
        Some(Mutant::TrustFromReply) => now + config.timing.trust(),
        Some(Mutant::TrustHasNoEnd) => Moment::MAX,
        _ => until,
    }
}

fn request(process: &mut Process, attempt: Attempt, what: What) {
    process.send(Message {
        life: process.life,
        attempt: attempt.0,
        what,
        void: false,
    });
}

fn own_request(process: &mut Process, what: What) -> u64 {
    process.work.last_request += 1;
    let number = DRIVERS + process.work.last_request;
    request(process, Attempt(number), what);
    number
}

fn forget_ticks(process: &mut Process) {
    process.work.term = 0;
    process.work.cursor = None;
    process.work.asks = None;
}

/// Asks for the cursor, at first or again.
pub fn take_over(process: &mut Process) {
    let term = process.work.term;
    process.work.asks = Some(own_request(process, What::TakeOver { term }));
}

/// Claims a tick, or asks again for the same claim.
pub fn claim(process: &mut Process, claim: Claim) {
    let number = own_request(process, What::Claim(claim));
    process.work.last_claim = claim.number;
    process.work.claim = Some((number, claim));
}

/// The request that the machine waits for.
pub fn awaited(machine: &Election) -> Option<u64> {
    let mut awaited = None;
    machine.marks(&mut |mark| {
        if let Mark::Attempt(number) = mark {
            awaited = Some(number);
        }
    });
    awaited
}

/// Gives a process the answer to one of its requests. The claim that was won, if it is one, and what was broken.
pub fn deliver(
    state: &mut State,
    config: &Config,
    slot: usize,
    message: &Message,
) -> (Option<Claim>, Option<Property>) {
    let now = state.now(slot);
    match &message.what {
        What::Answer(reply) => (None, answer(state, config, slot, message.attempt, reply)),
        What::Told { term } => (
            None,
            turn(state, config, slot, |machine, now| machine.told_of_release(now, *term)),
        ),
        What::TakenOver { term, cursor } => {
            let work = &mut Rc::make_mut(&mut state.processes[slot]).work;
            if work.asks == Some(message.attempt) && work.term == *term {
                work.asks = None;
                work.cursor = *cursor;
            }
            (None, None)
        }
        What::Claimed(claim, verdict) => {
            let process = Rc::make_mut(&mut state.processes[slot]);
            if process.work.claim.is_none_or(|(number, _)| number != message.attempt) {
                return (None, None);
            }
            process.work.claim = None;
            let plans = process.work.term == claim.term && process.work.cursor.is_some();
            match *verdict {
                Verdict::Won(fence) => {
                    process.work.known = process.work.known.max(fence);
                    // After every wait the deadline is compared again: by the real gate.
                    let trusted = process.gate.trusts(&group(), claim.term, now);
                    if plans {
                        process.work.cursor = Some(claim.tick);
                    }
                    if trusted || config.has(Mutant::StartsWithoutLook) {
                        process.work.running.push(fence);
                        return (Some(*claim), None);
                    }
                }
                Verdict::Overlapped if plans => process.work.cursor = Some(claim.tick),
                Verdict::Moved(cursor) if plans => process.work.cursor = Some(cursor),
                // The next renewal says the same, and demotes.
                Verdict::NotYours if plans => forget_ticks(process),
                Verdict::Overlapped | Verdict::Moved(_) | Verdict::NotYours => {}
            }
            (None, None)
        }
        _ => (None, None),
    }
}

fn answer(state: &mut State, config: &Config, slot: usize, attempt: u64, reply: &Reply) -> Option<Property> {
    let was = state.processes[slot].gate.trust_until != 0;
    let attempt = match awaited(&state.processes[slot].machine) {
        Some(awaited) if config.has(Mutant::AnswersMixedUp) => awaited,
        _ => attempt,
    };
    let broken = turn(state, config, slot, |machine, now| {
        machine.handle_reply(now, Attempt(attempt), reply);
    });
    let now = state.now(slot);
    let process = Rc::make_mut(&mut state.processes[slot]);
    if config.has(Mutant::ReleaseBeforeBelief) && *reply == Reply::Released {
        step(process, GateStep::Close);
    }
    if let Reply::Campaign(CampaignReply::Acquired { term }) = reply
        && config.has(Mutant::GrantAfterStepDown)
        && !was
        && process.machine.leading(now).is_none()
    {
        step(process, GateStep::Open(*term, now + config.timing.trust()));
    }
    broken
}

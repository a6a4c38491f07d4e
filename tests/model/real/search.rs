//! Breadth first through every reachable state; what breaks a property is told with its shortest trace.

use std::fmt::Write;

use leader_core::Moment;
use rustc_hash::{FxHashMap, FxHashSet};

use super::canon::{Canon, ranks};
use super::config::{Config, Property, SLOTS};
use super::state::{Message, State, Verdict, What, owner, units_until};
use super::steps::{Answer, Move, Step, moves};

/// What a search found.
#[derive(Debug)]
pub struct Found {
    pub states: usize,
    pub transitions: usize,
    /// Whether every reachable state was seen.
    pub complete: bool,
    pub broken: Option<(Property, String)>,
    /// The longest time without a leader after the faults, where that is asked.
    pub longest: u8,
    /// The steps to the state that is farthest away.
    pub depth: usize,
}

struct Walk {
    canon: Canon,
    seen: FxHashSet<u64>,
    /// For each state the one before, and which of its moves led here.
    from: Vec<(u32, u16)>,
}

impl Walk {
    fn note(&mut self, state: &State, config: &Config, from: u32, choice: usize) -> Option<u32> {
        let print = self.canon.fingerprint(state, config);
        self.seen.insert(print).then(|| {
            let choice = u16::try_from(choice).expect("fewer moves");
            self.from.push((from, choice));
            u32::try_from(self.from.len() - 1).expect("fewer states")
        })
    }
}

/// Visits every reachable state, up to the cap, or until something breaks.
pub fn search(config: &Config) -> Found {
    let mut walk = Walk {
        canon: Canon::default(),
        seen: FxHashSet::default(),
        from: Vec::new(),
    };
    let start = State::start(config);
    walk.note(&start, config, 0, 0);
    let mut frontier = vec![(start, 0)];
    let mut next = Vec::new();
    let mut choices = Vec::new();
    let mut found = Found {
        states: 1,
        transitions: 0,
        complete: true,
        broken: None,
        longest: 0,
        depth: 0,
    };
    while !frontier.is_empty() {
        // What has been gone on from is let go at once.
        for (state, number) in frontier.drain(..) {
            moves(&state, config, &mut choices);
            found.transitions += choices.len();
            for (choice, chosen) in choices.drain(..).enumerate() {
                if let Some(property) = chosen.broken {
                    found.states = walk.from.len();
                    found.broken = Some((property, trace(config, &walk, number, choice)));
                    return found;
                }
                if let Some(number) = walk.note(&chosen.state, config, number, choice) {
                    match chosen.state.calm {
                        Some(calm) if chosen.state.is_led(config) => found.longest = found.longest.max(calm),
                        _ if chosen.state.is_decided(config) => {}
                        _ => next.push((chosen.state, number)),
                    }
                }
            }
            if walk.from.len() >= config.cap {
                found.states = walk.from.len();
                found.complete = false;
                return found;
            }
        }
        found.depth += 1;
        std::mem::swap(&mut frontier, &mut next);
    }
    found.states = walk.from.len();
    found
}

/// Whether states of one form go on to states of the same forms: what the search rests on. How many pairs were compared; the first that
/// differ, in words.
pub fn compare_forms(config: &Config) -> Result<usize, String> {
    let mut canon = Canon::default();
    let mut forms = FxHashMap::default();
    let mut choices = Vec::new();
    let mut frontier = vec![State::start(config)];
    let mut compared = 0;
    while let Some(state) = frontier.pop() {
        moves(&state, config, &mut choices);
        let mut next: Vec<_> = choices
            .iter()
            .map(|chosen| (canon.fingerprint(&chosen.state, config), chosen.broken.is_some()))
            .collect();
        next.sort_unstable();
        next.dedup();
        let form = canon.fingerprint(&state, config);
        if let Some((other, others)) = forms.get(&form) {
            compared += 1;
            if *others != next {
                return Err(format!("{}\n{}", view(other, config), view(&state, config)));
            }
            continue;
        }
        forms.insert(form, (state, next));
        frontier.extend(choices.drain(..).map(|chosen| chosen.state));
    }
    Ok(compared)
}

/// The steps to the move `last` of the state `number`, in words.
fn trace(config: &Config, walk: &Walk, number: u32, last: usize) -> String {
    let mut path = vec![last];
    let mut at = number;
    while at != 0 {
        let (from, choice) = walk.from[usize::try_from(at).expect("an index")];
        path.push(usize::from(choice));
        at = from;
    }
    path.reverse();
    let mut state = State::start(config);
    let mut choices: Vec<Move> = Vec::new();
    let mut text = String::new();
    for (number, choice) in path.into_iter().enumerate() {
        moves(&state, config, &mut choices);
        let chosen = choices.swap_remove(choice);
        let step = told(&state, config, chosen.step);
        state = chosen.state;
        writeln!(text, "{:>4}. {step:<62} {}", number + 1, view(&state, config)).expect("a string");
    }
    text
}

const NAMES: [char; SLOTS] = ['A', 'B', 'C'];

fn told(state: &State, config: &Config, step: Step) -> String {
    let ranks = ranks(state, config);
    let message = |who: usize, place: usize| {
        let process = &state.processes[who];
        let message = &process.messages[place];
        let dead = if message.life == process.life { "" } else { "dead " };
        format!("{dead}{}'s {}", NAMES[who], named(&ranks, message))
    };
    match step {
        Step::Time { slow: None } => "-- a unit passes".to_owned(),
        Step::Time { slow: Some(who) } => format!("-- a unit passes, not by the clock of {}", NAMES[who]),
        Step::Timer { who } => format!("{}'s timer comes", NAMES[who]),
        Step::Executed { who, place, answer } => {
            let end = match answer {
                Answer::Lost => ", and nobody hears of it",
                Answer::Heard => " and answered",
                Answer::UnderWay => "",
            };
            format!("{} is executed{end}", message(who, place))
        }
        Step::Lost { who, place } => format!("{} is lost", message(who, place)),
        Step::Heard { who, place } => format!("{} arrives", message(who, place)),
        Step::Fails { who, place } => format!("{} is told to have failed", message(who, place)),
        Step::StepsDown { who } => format!("{} is asked to step down", NAMES[who]),
        Step::ShutsDown { who } => format!("{} is shut down", NAMES[who]),
        Step::Drained { who } => format!("{} is drained", NAMES[who]),
        Step::Wedged { who } => format!("{}'s job runtime stands still", NAMES[who]),
        Step::Unwedged { who } => format!("{}'s job runtime runs again", NAMES[who]),
        Step::Crashes { who } => format!("{} dies and starts again", NAMES[who]),
        Step::Starts { who } => format!("{} starts again", NAMES[who]),
        Step::AsksForCursor { who } => format!("{} asks for the cursor again", NAMES[who]),
        Step::Claims { who, tick, again } => {
            let again = if again { " again" } else { "" };
            format!("{} claims tick {tick}{again}", NAMES[who])
        }
        Step::BodyEnds { who } => format!("a body of {} ends", NAMES[who]),
        Step::CalmBegins => "faults have ended".to_owned(),
    }
}

fn rank(ranks: &[u64], number: u64) -> usize {
    ranks.iter().position(|other| *other == number).unwrap_or(usize::MAX)
}

fn named(ranks: &[u64], message: &Message) -> String {
    let rank = |number: &u64| rank(ranks, *number);
    match &message.what {
        What::Campaign { known, .. } => format!("campaign {} knowing {}", message.attempt, rank(known)),
        What::Renew { term } => format!("renewal {} of {}", message.attempt, rank(term)),
        What::Release { term } => format!("release {} of {}", message.attempt, rank(term)),
        What::TakeOver { term } => format!("question for the cursor under {}", rank(term)),
        What::Claim(claim) => format!("claim {} under {}", claim.number, rank(&claim.term)),
        What::Answer(reply) => format!("answer to {}: {reply:?}", message.attempt),
        What::TakenOver { cursor, .. } => format!("answer: cursor {cursor:?}"),
        What::Claimed(claim, Verdict::Won(fence)) => format!("answer to claim {}: won, {}", claim.number, rank(fence)),
        What::Claimed(claim, verdict) => format!("answer to claim {}: {verdict:?}", claim.number),
        What::Told { term } => format!("word of the release of {}", rank(term)),
    }
}

fn view(state: &State, config: &Config) -> String {
    let ranks = ranks(state, config);
    let now = state.store_now();
    let mut text = match state.store.lease() {
        Some((holder, ends)) if now < ends => {
            let (slot, life) = owner(holder);
            let dead = if life == state.processes[slot].life {
                ""
            } else {
                "dead "
            };
            format!("{dead}{} for {}", NAMES[slot], units_until(ends, now))
        }
        _ => "vacant".to_owned(),
    };
    write!(text, " (term {})", rank(&ranks, state.store.term())).expect("a string");
    for (who, name) in NAMES.iter().enumerate().take(config.instances) {
        let process = &state.processes[who];
        write!(text, " | {name} knows {}", rank(&ranks, process.machine.known())).expect("a string");
        if let Some(term) = state.believes(who) {
            let left = units_until(Moment::from_nanos(process.gate.trust_until), state.now(who));
            write!(text, ", BELIEVES in {} for {left}", rank(&ranks, term)).expect("a string");
        }
        for message in &process.messages {
            write!(text, ", [{}]", named(&ranks, message)).expect("a string");
        }
    }
    text
}

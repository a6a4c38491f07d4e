//! Breadth first through every reachable state; what breaks a property is told with its shortest trace.

use std::fmt::Write;

use rustc_hash::FxHashSet;

use crate::config::{Config, Property};
use crate::state::{ENDLESS, Kind, Message, NO_SNAPSHOT, NOBODY, SLOTS, State, Store, UNBORN, slot_of};
use crate::steps::{Step, moves};

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
}

struct Walk {
    seen: FxHashSet<u64>,
    /// For each state the one before, and which of its moves led here.
    from: Vec<(u32, u16)>,
}

impl Walk {
    fn note(&mut self, state: &State, config: &Config, from: usize, choice: usize) -> Option<usize> {
        self.seen.insert(state.fingerprint(config)).then(|| {
            let from = u32::try_from(from).expect("fewer states");
            let choice = u16::try_from(choice).expect("fewer moves");
            self.from.push((from, choice));
            self.from.len() - 1
        })
    }
}

/// Visits every reachable state, up to the cap, or until something breaks.
pub fn search(config: &Config) -> Found {
    let mut walk = Walk {
        seen: FxHashSet::default(),
        from: Vec::new(),
    };
    let mut start = State::start(config);
    start.normalise(config);
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
    };
    while !frontier.is_empty() {
        for (state, number) in &frontier {
            moves(state, config, &mut choices);
            found.transitions += choices.len();
            for (choice, chosen) in choices.iter_mut().enumerate() {
                if let Some(property) = chosen.broken {
                    found.states = walk.from.len();
                    found.broken = Some((property, trace(config, &walk, *number, choice)));
                    return found;
                }
                chosen.state.normalise(config);
                if let Some(number) = walk.note(&chosen.state, config, *number, choice) {
                    if chosen.state.is_settled(config) {
                        found.longest = found.longest.max(chosen.state.calm - 1);
                    } else {
                        next.push((chosen.state, number));
                    }
                }
            }
            if walk.from.len() >= config.cap {
                found.states = walk.from.len();
                found.complete = false;
                return found;
            }
        }
        frontier.clear();
        std::mem::swap(&mut frontier, &mut next);
    }
    found.states = walk.from.len();
    found
}

/// The steps to the move `last` of the state `number`, in words.
fn trace(config: &Config, walk: &Walk, number: usize, last: usize) -> String {
    let mut path = vec![last];
    let mut at = number;
    while at != 0 {
        let (from, choice) = walk.from[at];
        path.push(usize::from(choice));
        at = usize::try_from(from).expect("an index");
    }
    path.reverse();
    let mut state = State::start(config);
    // Which instance is in each place: `normalise` moves them about.
    let mut names = state.normalise(config).map(|slot| ['A', 'B', 'C'][slot]);
    let mut choices = Vec::new();
    let mut text = String::new();
    for (number, choice) in path.into_iter().enumerate() {
        moves(&state, config, &mut choices);
        let chosen = &mut choices[choice];
        let step = told(chosen.step, names);
        state = chosen.state;
        let before = names;
        let order = state.normalise(config);
        names = order.map(|slot| before[slot]);
        writeln!(text, "{:>4}. {step:<58} {}", number + 1, view(&state, config, names)).expect("a string");
    }
    text
}

fn told(step: Step, names: [char; SLOTS]) -> String {
    let request = |what: Message| {
        let ghost = if what.awaited { "" } else { "ghost " };
        let kind = match what.kind {
            Kind::None => "nothing",
            Kind::Campaign => "campaign knowing",
            Kind::Renew => "renewal of",
            Kind::Release => "release of",
            Kind::Acquired => "grant of",
            Kind::Renewed => "word of its renewal of",
            Kind::NotYours => "refusal by",
        };
        format!("{ghost}{kind} {}", what.term)
    };
    match step {
        Step::Campaigns { who, yields: 0 } => format!("{} campaigns", names[who]),
        Step::Campaigns { who, yields } => format!("{} campaigns, yielding {yields}", names[who]),
        Step::Renews { who } => format!("{} sends a renewal", names[who]),
        Step::StepsDown { who, releases } => format!("{} steps down, sending {releases} release(s)", names[who]),
        Step::GivesUp { who } => format!("{} gives its request up", names[who]),
        Step::Executed { who, what, heard } => {
            let end = match (what.awaited, heard) {
                (true, false) => ", and the answer is lost",
                _ => "",
            };
            format!("{}'s {} is executed{end}", names[who], request(what))
        }
        Step::Lost { who, what } => format!("{}'s {} is lost", names[who], request(what)),
        Step::Heard { who, what } => format!("{} hears the {}", names[who], request(what)),
        Step::Crashes { who, stays_dead: true } => format!("{} dies", names[who]),
        Step::Crashes { who, .. } => format!("{} dies and starts again", names[who]),
        Step::Starts { who } => format!("{} starts again", names[who]),
        Step::Wedged { who } => format!("{}'s job runtime stands still", names[who]),
        Step::Unwedged { who } => format!("{}'s job runtime runs again", names[who]),
        Step::Tick { slow } => {
            let slow: String = (0..SLOTS).filter(|who| slow[*who]).map(|who| names[who]).collect();
            if slow.is_empty() {
                "-- a unit passes".to_owned()
            } else {
                format!("-- a unit passes, not by the clock of {slow}")
            }
        }
        Step::Server(fault) => format!("fault: {fault:?}"),
        Step::SetClock { by, .. } => format!("the server's clock is set by {by}"),
        Step::Fsync => "the store is written to disk".to_owned(),
        Step::CalmBegins => "faults have ended".to_owned(),
    }
}

fn view(state: &State, config: &Config, names: [char; SLOTS]) -> String {
    let mut text = store_view(&state.store, config, names);
    for (instance, name) in state.instances[..config.instances].iter().zip(names) {
        write!(text, " | {name} knows {}", instance.known).expect("a string");
        if instance.believes() {
            write!(text, ", BELIEVES for {}", instance.trust).expect("a string");
        }
        for message in instance.messages {
            if message.kind != Kind::None {
                let ghost = if message.awaited { "" } else { "ghost " };
                write!(text, ", {ghost}{:?} {}", message.kind, message.term).expect("a string");
            }
        }
    }
    if state.snapshot_age != NO_SNAPSHOT {
        write!(text, " | on disk: {}", store_view(&state.snapshot, config, names)).expect("a string");
    }
    text
}

fn store_view(store: &Store, config: &Config, names: [char; SLOTS]) -> String {
    let mut text = match (store.holder, store.left) {
        (NOBODY, _) => "vacant".to_owned(),
        (holder, ENDLESS) => format!("{} for ever", names[slot_of(holder)]),
        (holder, left) => format!("{} for {left}", names[slot_of(holder)]),
    };
    write!(text, " (term {}", store.term).expect("a string");
    if store.seen < config.old {
        write!(text, ", seen {} ago", store.seen).expect("a string");
    }
    if store.released {
        text.push_str(", released");
    }
    if store.born == UNBORN {
        text.push_str(", unborn");
    }
    text.push(')');
    text
}

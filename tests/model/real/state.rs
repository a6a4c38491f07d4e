//! A state: real machines, the real data of the store, what is under way between them, and the clocks.

use std::rc::Rc;

use jiff::Timestamp;
use leader_core::__seam::{Election, GateView, GroupSteps, Reply, Want};
use leader_core::{GroupName, Holder, JobName, Moment};

use super::config::{Config, DRAIN, SLOTS, UNIT, units};

/// When everything begins, on every clock.
const BEGINNING: u64 = 1000;

/// A request, or the answer to one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    Campaign {
        known: u64,
        yields: u64,
    },
    Renew {
        term: u64,
    },
    Release {
        term: u64,
    },
    TakeOver {
        term: u64,
    },
    Claim(Claim),
    /// An answer to one of the machine's requests.
    Answer(Reply),
    /// What a new leader must know; the cursor in seconds.
    TakenOver {
        term: u64,
        cursor: Option<i64>,
    },
    /// The answer to a claim.
    Claimed(Claim, Verdict),
    /// The lease of a term was given back.
    Told {
        term: u64,
    },
}

impl What {
    pub fn is_request(&self) -> bool {
        matches!(
            self,
            Self::Campaign { .. } | Self::Renew { .. } | Self::Release { .. } | Self::TakeOver { .. } | Self::Claim(_)
        )
    }
}

/// A claim as its sender knows it; instants in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    pub term: u64,
    pub number: u64,
    pub tick: i64,
    pub cursor: i64,
}

/// What became of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Won(u64),
    Moved(i64),
    Overlapped,
    NotYours,
}

#[derive(Clone, Debug)]
pub struct Message {
    /// Which of the processes that an instance has had sent it.
    pub life: u16,
    /// Its number, in the order of sending; the machine's own where the machine asked.
    pub attempt: u64,
    pub what: What,
    /// It was sent before a release of the same process that has been executed.
    pub void: bool,
}

/// What an instance has to do with ticks: the driver's part, which the engine has with its planner.
#[derive(Clone, Debug, Default)]
pub struct Work {
    /// The term whose ticks are planned; 0 for none.
    pub term: u64,
    pub cursor: Option<i64>,
    /// The claim that waits for its answer, and the number of the request.
    pub claim: Option<(u64, Claim)>,
    /// The number of the request of a take-over that waits for its answer.
    pub asks: Option<u64>,
    pub last_claim: u64,
    pub last_request: u64,
    /// The highest fence seen.
    pub known: u64,
    /// The runs whose bodies have begun and not ended, by their fences.
    pub running: Vec<u64>,
}

/// One instance: a process, and what is under way from and to it.
#[derive(Clone, Debug)]
pub struct Process {
    pub machine: Election,
    pub gate: GateView,
    pub life: u16,
    /// How many units its clock has missed.
    pub behind: u64,
    /// When it missed the last one, by the true time.
    pub slipped_at: Option<u64>,
    /// Sorted by process and number.
    pub messages: Vec<Message>,
    /// Its job runtime stands still.
    pub wedged: bool,
    pub work: Work,
}

impl Process {
    pub fn send(&mut self, message: Message) {
        let key = |message: &Message| (message.life, message.attempt);
        let at = self.messages.partition_point(|other| key(other) <= key(&message));
        self.messages.insert(at, message);
    }
}

#[derive(Clone, Debug)]
pub struct State {
    pub processes: [Rc<Process>; SLOTS],
    pub store: Rc<GroupSteps>,
    /// The true time, which is the store's, in units.
    pub time: u64,
    /// The highest term that anybody has led under.
    pub led: u64,
    pub faults: [u8; super::config::FAULTS],
    /// How long nobody has led since faults have ended.
    pub calm: Option<u8>,
    /// How many bodies have started, by tick.
    pub started: [u8; 2],
}

impl State {
    pub fn start(config: &Config) -> Self {
        let process = |slot| {
            Rc::new(Process {
                machine: machine(config, slot, moment(0)),
                gate: GateView::default(),
                life: 0,
                behind: 0,
                slipped_at: None,
                messages: Vec::new(),
                wedged: false,
                work: Work::default(),
            })
        };
        Self {
            processes: [process(0), process(1), process(2)],
            store: Rc::default(),
            time: 0,
            led: 0,
            faults: config.faults,
            calm: None,
            started: [0; 2],
        }
    }

    /// What the clock of an instance shows.
    pub fn now(&self, slot: usize) -> Moment {
        moment(self.time - self.processes[slot].behind)
    }

    pub fn store_now(&self) -> Moment {
        moment(self.time)
    }

    pub fn wall(&self) -> Timestamp {
        at(self.wall_seconds())
    }

    pub fn wall_seconds(&self) -> i64 {
        i64::try_from(BEGINNING + self.time).expect("few")
    }

    /// The term in which an instance believes to lead: what its gate lets calls and bodies in by.
    pub fn believes(&self, slot: usize) -> Option<u64> {
        let gate = &self.processes[slot].gate;
        (self.now(slot).as_nanos() < gate.trust_until).then_some(gate.term)
    }

    /// Whether the store has an unexpired lease of a process in a term.
    pub fn holds(&self, slot: usize, term: u64) -> bool {
        let lease = self.store.lease();
        let holds = |(holder, ends): (&Holder, Moment)| {
            self.store_now() < ends && owner(holder) == (slot, self.processes[slot].life)
        };
        self.store.term() == term && lease.is_some_and(holds)
    }

    /// Every tick is decided, and nobody is about to claim one.
    pub fn is_decided(&self, config: &Config) -> bool {
        let Some(last) = config.ticks.checked_sub(1).map(|last| tick(config, last)) else {
            return false;
        };
        let cursor = self.store.job(&job()).and_then(|job| job.cursor);
        let of_ticks = |message: &Message| {
            matches!(
                message.what,
                What::Claim(_) | What::Claimed(..) | What::TakenOver { .. }
            )
        };
        let idle = |process: &Rc<Process>| {
            let work = &process.work;
            work.claim.is_none()
                && work.cursor.is_none_or(|cursor| cursor >= last)
                && !process.messages.iter().any(of_ticks)
        };
        cursor.is_some_and(|cursor| cursor >= at(last)) && self.processes[..config.instances].iter().all(idle)
    }

    /// Somebody leads, and is not about to stop.
    pub fn is_led(&self, config: &Config) -> bool {
        (0..config.instances).any(|slot| {
            let gate = &self.processes[slot].gate;
            self.now(slot).as_nanos() < gate.open_until
        })
    }
}

pub fn machine(config: &Config, slot: usize, now: Moment) -> Election {
    let mut machine = Election::new(config.timing, units(DRAIN), config.preference[slot], true, now);
    machine.set_yield(units(config.yields[slot]));
    machine
}

fn moment(time: u64) -> Moment {
    Moment::ZERO + units(BEGINNING + time)
}

pub fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(seconds).expect("a small number")
}

/// When a tick is planned, in seconds: the first a unit after the beginning, and a TTL between them.
pub fn tick(config: &Config, number: u8) -> i64 {
    i64::try_from(BEGINNING + 1 + u64::from(number) * config.ttl).expect("few")
}

/// Which tick an instant is.
pub fn number_of(config: &Config, instant: i64) -> Option<u8> {
    (0..config.ticks).find(|number| tick(config, *number) == instant)
}

pub fn holder(slot: usize, life: u16) -> Holder {
    Holder::from_store(&format!("{}#{life}", ["A", "B", "C"][slot]))
}

/// Whose name it is: the instance, and which of its processes.
pub fn owner(holder: &Holder) -> (usize, u16) {
    let (name, life) = holder.as_str().split_at(1);
    let slot = usize::from(name.as_bytes()[0] - b'A');
    (slot, life[1..].parse().expect("a holder of the model"))
}

pub fn group() -> GroupName {
    GroupName::new("g").expect("a legal name")
}

pub fn job() -> JobName {
    JobName::new("j").expect("a legal name")
}

/// What a claim is for: a tick whose run is begun unless an earlier one is open.
pub const WANT: Want = Want::Run;

/// A moment from now, in whole units up to the next; nothing when it has come.
pub fn units_until(at: Moment, now: Moment) -> u64 {
    let unit = u64::try_from(UNIT.as_nanos()).expect("small");
    at.as_nanos().saturating_sub(now.as_nanos()).div_ceil(unit)
}

/// How long ago a moment is, in whole units up to the next.
pub fn units_since(at: Moment, now: Moment) -> u64 {
    units_until(now, at)
}

//! What one search is about: how many instances, which faults, which wrong rule, which properties.

use std::time::Duration;

use leader_core::Timing;

/// What time is counted in.
pub const UNIT: Duration = Duration::from_secs(1);
/// The most instances.
pub const SLOTS: usize = 3;
/// How many kinds of faults there are.
pub const FAULTS: usize = 5;
/// As many as one likes.
pub const ANY: u8 = u8::MAX;
/// How long a step-down waits for what runs, in units.
pub const DRAIN: u64 = 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A leader is asked to step down.
    StepDown,
    /// An instance is told to stop for good; another takes its place sooner or later.
    Shutdown,
    /// The job runtime of an instance stands still: it gives up the lead, or its candidacy, until it runs again.
    Wedge,
    /// A process dies and another starts in its place, without its memory.
    Crash,
    /// A clock misses a unit: one in each TTL at the most.
    Slip,
}

/// A rule that is left out or wrong, to see that the search notices: a step of the store wrapped from outside, or a driver of the machine
/// that does not do as it is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutant {
    /// A renewal writes its sender over whoever has the lease.
    RenewIgnoresHolder,
    /// A renewal takes a vacant lease.
    RenewAcquires,
    /// A release gives back the holder's lease of any term.
    ReleaseIgnoresTerm,
    /// A release gives back whatever lease there is.
    ReleaseIgnoresHolder,
    /// A campaign is granted whatever term it knows.
    NeverStale,
    /// A campaign that finds its own lease goes on under the old term.
    OwnLeaseKeepsTerm,
    /// A claim is judged as if its sender led.
    ClaimOfAnyTerm,
    /// A claim does not look at the cursor.
    ClaimIgnoresCursor,
    /// Trust counts from the reply.
    TrustFromReply,
    /// Belief does not end with time.
    TrustHasNoEnd,
    /// Belief is cleared when the release is answered.
    ReleaseBeforeBelief,
    /// Any answer is taken for the one that is waited for.
    AnswersMixedUp,
    /// A lease that is to be given back is believed in.
    GrantAfterStepDown,
    /// A body starts without another look at the clock.
    StartsWithoutLook,
    /// The margin is nothing.
    NoMargin,
    /// The cool-down has no end.
    CoolDownForEver,
}

/// What must hold in every state, or in every step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Property {
    /// At most one instance believes at any instant (DESIGN 10; Gray and Cheriton, "Leases", 1989).
    OneBeliever,
    /// Each lead has a higher term than every one before it, and each number that is minted is higher (DESIGN 5; Kleppmann, "How to do
    /// distributed locking", 2016).
    NumbersRise,
    /// Who believes holds the lease, of that term, unexpired, as long as the store loses nothing (DESIGN 5: trust counts from before the
    /// send).
    LeaseBehind,
    /// No command sent before a release gives or prolongs a lease once that release is executed (reference/model.md, V6).
    NoGhost,
    /// What the gate says is what the machine believes (ARCHITECTURE, invariants).
    GateAgrees,
    /// Each tick has one run at the most, and one body (DESIGN 6; go-co-op/gocron 841).
    TickOnce,
    /// The cursor never goes back (DESIGN 6; client-go and rundeck 6879 for what happens otherwise).
    CursorRises,
    /// No claim is won by one that does not hold the lease in its term (DESIGN 5: holder and term).
    ClaimUnderLease,
    /// No body starts unless the leadership that won it still has the lease (DESIGN 10: frozen process; kubernetes 65090).
    StartInTrust,
    /// After the last fault somebody leads within a TTL and one unit (DESIGN 10: killed leader).
    LedAgain,
}

#[derive(Clone, Debug)]
pub struct Config {
    pub name: &'static str,
    pub instances: usize,
    pub timing: Timing,
    /// In units.
    pub ttl: u64,
    /// How many requests and answers of each instance may be under way.
    pub messages: usize,
    pub faults: [u8; FAULTS],
    /// Answers may be late, and not only requests.
    pub late: bool,
    /// Requests may be told to have failed before their time is up.
    pub errors: bool,
    /// Releases are told of, sooner or later.
    pub hints: bool,
    /// How long each instance leaves a vacancy to others, in units.
    pub yields: [u64; SLOTS],
    pub preference: [u16; SLOTS],
    /// How many ticks there are.
    pub ticks: u8,
    /// When time ends, where there are ticks.
    pub horizon: u64,
    /// Within how many units somebody leads when faults have ended.
    pub calm_within: Option<u8>,
    pub mutant: Option<Mutant>,
    /// The one property that is asked; `None` for all.
    pub only: Option<Property>,
    /// After how many states to stop.
    pub cap: usize,
}

impl Config {
    pub fn new(name: &'static str, ttl: u64) -> Self {
        let config = Self {
            name,
            instances: 2,
            timing: timing(ttl),
            ttl,
            messages: 1,
            faults: [0; FAULTS],
            late: false,
            errors: false,
            hints: false,
            yields: [0; SLOTS],
            preference: [0; SLOTS],
            ticks: 0,
            horizon: 0,
            calm_within: None,
            mutant: None,
            only: None,
            cap: usize::MAX,
        };
        assert_eq!(config.timing.validate(), Ok(()), "the times of a real election");
        config
    }

    pub fn fault(mut self, fault: Fault, times: u8) -> Self {
        self.faults[fault as usize] = times;
        self
    }

    pub fn instances(mut self, instances: usize) -> Self {
        self.instances = instances;
        self
    }

    pub fn messages(mut self, messages: usize) -> Self {
        self.messages = messages;
        self
    }

    pub fn late(mut self) -> Self {
        self.late = true;
        self
    }

    pub fn errors(mut self) -> Self {
        self.errors = true;
        self
    }

    pub fn hints(mut self) -> Self {
        self.hints = true;
        self
    }

    pub fn yields(mut self, yields: [u64; SLOTS]) -> Self {
        self.yields = yields;
        self
    }

    /// The first has the vacancies before the others.
    pub fn in_order(mut self) -> Self {
        self.preference = [0, u16::MAX / 2, u16::MAX];
        self
    }

    /// So many ticks, claimed until time ends.
    pub fn ticks(mut self, ticks: u8, horizon: u64) -> Self {
        self.ticks = ticks;
        self.horizon = horizon;
        self
    }

    /// Faults end at some time, and from then on somebody leads within so many units.
    pub fn calm_within(mut self, units: u8) -> Self {
        self.calm_within = Some(units);
        self
    }

    pub fn mutant(mut self, mutant: Mutant, property: Property) -> Self {
        self.mutant = Some(mutant);
        self.only = Some(property);
        match mutant {
            Mutant::NoMargin => self.timing = self.timing.with_margin(Duration::from_millis(1)),
            Mutant::CoolDownForEver => self.timing = self.timing.with_cool_down(100 * UNIT),
            _ => {}
        }
        self
    }

    pub fn cap(mut self, cap: usize) -> Self {
        self.cap = cap;
        self
    }

    pub fn has(&self, mutant: Mutant) -> bool {
        self.mutant == Some(mutant)
    }

    pub fn asks(&self, property: Property) -> bool {
        // A driver that does not do as it is told disagrees with its machine.
        let told = self.mutant.is_none() || property != Property::GateAgrees;
        told && self.only.is_none_or(|only| only == property)
    }

    /// Whether instances may be exchanged for each other.
    pub fn symmetric(&self) -> bool {
        let first = (self.yields[0], self.preference[0]);
        (1..self.instances).all(|slot| (self.yields[slot], self.preference[slot]) == first)
    }
}

/// The times of an election whose every span is a unit, up to the next: margin, operation, and what goes before a renewal or a retry.
fn timing(ttl: u64) -> Timing {
    let operation = if ttl > 3 { 990 } else { 490 };
    Timing::from_ttl(units(ttl))
        .with_margin(UNIT)
        .with_renew(UNIT)
        .with_operation(Duration::from_millis(operation))
        .with_retry(Duration::from_millis(10))
        .with_cool_down(units(2))
}

pub fn units(units: u64) -> Duration {
    UNIT * u32::try_from(units).expect("few")
}

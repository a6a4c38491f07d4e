//! What one run of the model is about: how many instances, which faults, which rules, which properties.

use crate::state::SLOTS;

/// How many kinds of faults there are.
pub const FAULTS: usize = 13;
/// As many as one likes.
pub const ANY: u8 = 15;
/// An operation's time-out, in units.
pub const OPERATION: u8 = 1;
/// How much an fsync may lag behind, and the spare time that the store's rules keep for it.
pub const FSYNC: u8 = 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A process dies, and another starts in its place without its memory, at once or later.
    Crash,
    /// A leader steps down.
    StepDown,
    /// A clock misses a unit; at most one in each TTL.
    Slip,
    /// The job runtime of an instance stands still.
    Wedge,
    /// The lease key is deleted.
    Del,
    /// The key of the lease's state is deleted.
    DelState,
    /// All keys are deleted.
    Flush,
    /// The server restarts without its data.
    Empty,
    /// The server restarts with its data as of an earlier fsync.
    Rollback,
    /// The server restarts with all its data.
    Restart,
    /// The server's clock is set back.
    Back,
    /// The server's clock is set forward.
    Forward,
    /// Somebody takes the lease's end away.
    Persist,
}

/// What a server that was just restarted makes everybody wait for, because it may have forgotten its last writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Young {
    /// For `seen` + 2 × TTL + the lag of an fsync: by the last renewal that it remembers, which others may have followed until the end of
    /// its lease and for that lag.
    BySeen,
    /// Until every belief of its earlier life has ended: by its age alone.
    ByAge,
}

/// What `campaign.lua` does on a server that keeps an append-only file, and remembers a leader that did not give the lease back; on any
/// other it goes by age.
pub const YOUNG: Young = Young::BySeen;

/// A rule that is left out or wrong, to see that the model notices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutant {
    /// The rule of old: a lease that is gone is vacant.
    VanishedIsVacant,
    RenewOfAnyTerm,
    ReleaseOfAnyTerm,
    /// The recorded holder is exempt from the quarantine of a vanished lease whatever it knows.
    ExemptWithoutTerm,
    /// A campaign is granted whatever it knows.
    NeverStale,
    /// A step-down leaves a renewal outstanding.
    StepDownKeepsFlight,
    /// Whoever finds a lease that is too long cuts it to less than it was granted for.
    ClampTooShort,
    /// A lease that is too long is cut to the TTL of whoever finds it.
    ClampToOwnTtl,
    NeverClamp,
    /// `seen` in the future stays there.
    SeenStaysInFuture,
    /// `seen` in the future is long past.
    SeenInFutureIsOld,
    /// No birth mark is needed.
    NoBirthMark,
    /// A young server is like an old one.
    NeverYoung,
    /// A young server takes the last renewal that it remembers for the last that there was, but for the lag of an fsync.
    LateRenewalForgotten,
    /// A vacancy is left to others from each look on.
    YieldForEver,
    /// An instance whose job runtime stands still takes the lease it asked for.
    WedgedLeads,
    TrustFromReply,
    ReleaseBeforeBelief,
    /// A renewal is granted on a vacant lease.
    RenewAcquires,
}

/// What must hold in every state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Property {
    /// Never two believers.
    P1,
    /// Terms of believers rise.
    P3,
    /// A believer whose lease was not taken away holds an unexpired lease of its term.
    Inv,
    /// A believer is not demoted unless somebody else holds the lease, or it was taken away.
    Keep,
    /// No late command gives or prolongs a lease to one that gave it back.
    Ghost,
    /// Nobody believes for a TTL without a lease.
    Bound,
    /// Without faults somebody leads within so many units.
    P8,
    /// An instance whose job runtime stands still does not believe.
    Wedge,
}

#[derive(Clone, Debug)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "switches that have nothing to do with one another"
)]
pub struct Config {
    pub name: &'static str,
    pub instances: usize,
    pub ttl: [u8; SLOTS],
    pub margin: u8,
    /// How many requests of one instance may be in flight.
    pub messages: usize,
    pub faults: [u8; FAULTS],
    /// Whether instances may stand still at any time, for any time.
    pub pauses: bool,
    /// Whether answers may be late. Without, an answer comes when its request is executed, or never: see `steps`.
    pub late_replies: bool,
    /// How long each instance leaves a vacancy to others; without timers it may also leave it to nobody.
    pub yields: [u8; SLOTS],
    /// Every process asks as the only one of its id.
    pub only_one: bool,
    /// All instances have one id: with `only_one` a broken promise.
    pub one_id: bool,
    pub young: Young,
    /// Whether only a lease that is held is written to disk, and no vacancy.
    pub held_on_disk: bool,
    /// The store has just been set up, and a birth mark is missing.
    pub fresh: bool,
    /// Within how many units somebody leads when faults have ended. Timers are modelled then.
    pub calm_within: Option<u8>,
    pub properties: Vec<Property>,
    pub mutants: Vec<Mutant>,
    /// After how many states to stop.
    pub cap: usize,
    /// An age that stands for every greater one.
    pub old: i8,
}

impl Config {
    pub fn new(name: &'static str, ttl: u8) -> Self {
        use Property::{Ghost, Inv, Keep, P1, P3, Wedge};
        let mut config = Self {
            name,
            instances: 2,
            ttl: [ttl; SLOTS],
            margin: 1,
            messages: 2,
            faults: [0; FAULTS],
            pauses: true,
            late_replies: false,
            yields: [0; SLOTS],
            only_one: false,
            one_id: false,
            young: YOUNG,
            held_on_disk: false,
            fresh: false,
            calm_within: None,
            properties: vec![P1, P3, Inv, Keep, Ghost, Wedge],
            mutants: Vec::new(),
            cap: 10_000_000,
            old: 0,
        };
        config.settle();
        config
    }

    fn settle(&mut self) {
        let longest = self.ttl.into_iter().max().unwrap_or(0);
        let spare = self.yields.into_iter().max().unwrap_or(0).max(FSYNC);
        // What the script counts on from the last renewal that a restarted server remembers: others up to the end of its lease, and the lag
        // of an fsync after that.
        let by_seen = if self.restarts() && self.young == Young::BySeen {
            longest
        } else {
            0
        };
        self.old = (longest + by_seen + spare).cast_signed();
    }

    pub fn fault(mut self, fault: Fault, times: u8) -> Self {
        self.faults[fault as usize] = times;
        self.settle();
        self
    }

    pub fn only(mut self, properties: &[Property]) -> Self {
        self.properties = properties.to_vec();
        self
    }

    pub fn mutant(mut self, mutant: Mutant) -> Self {
        self.mutants.push(mutant);
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

    pub fn ttls(mut self, ttl: [u8; SLOTS]) -> Self {
        self.ttl = ttl;
        self.settle();
        self
    }

    pub fn margin(mut self, margin: u8) -> Self {
        self.margin = margin;
        self
    }

    pub fn yields(mut self, yields: [u8; SLOTS]) -> Self {
        self.yields = yields;
        self.settle();
        self
    }

    /// Asks P8 too: somebody leads within `units` after the last fault.
    pub fn calm_within(mut self, units: u8) -> Self {
        self.calm_within = Some(units);
        self.only(&[Property::P1, Property::P8])
    }

    pub fn young(mut self, young: Young) -> Self {
        self.young = young;
        self.settle();
        self
    }

    /// No vacancy is written to disk.
    pub fn held_on_disk(mut self) -> Self {
        self.held_on_disk = true;
        self
    }

    pub fn pauses(mut self, pauses: bool) -> Self {
        self.pauses = pauses;
        self
    }

    pub fn late_replies(mut self) -> Self {
        self.late_replies = true;
        self
    }

    /// Each process promises to be the only one of its id.
    pub fn only_one(mut self) -> Self {
        self.only_one = true;
        self
    }

    /// All instances have one id.
    pub fn one_id(mut self) -> Self {
        self.one_id = true;
        self
    }

    pub fn fresh(mut self) -> Self {
        self.fresh = true;
        self
    }

    pub fn has(&self, mutant: Mutant) -> bool {
        self.mutants.contains(&mutant)
    }

    pub fn asks(&self, property: Property) -> bool {
        self.properties.contains(&property)
    }

    pub fn timers(&self) -> bool {
        self.calm_within.is_some()
    }

    /// For how long an instance trusts, from before the send.
    pub fn trust(&self, slot: usize) -> u8 {
        self.ttl[slot] - self.margin
    }

    pub fn symmetric(&self) -> bool {
        let alike = |values: &[u8; SLOTS]| values[..self.instances].iter().all(|value| *value == values[0]);
        alike(&self.ttl) && alike(&self.yields)
    }

    pub fn yields_at_all(&self) -> bool {
        self.yields != [0; SLOTS]
    }

    pub fn may(&self, fault: Fault) -> bool {
        self.faults[fault as usize] > 0
    }

    /// Whether the server may seem young.
    pub fn restarts(&self) -> bool {
        [Fault::Empty, Fault::Rollback, Fault::Restart, Fault::Back]
            .into_iter()
            .any(|fault| self.may(fault))
    }

    pub fn restarts_instances(&self) -> bool {
        self.may(Fault::Crash)
    }
}

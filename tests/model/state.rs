//! The state of the model: small numbers only, all times relative to now, terms and processes known by their rank alone.

use crate::config::Config;

/// The most instances.
pub const SLOTS: usize = 3;
/// The most requests of one instance in flight.
pub const MESSAGES: usize = 2;
/// No holder.
pub const NOBODY: u8 = 0;
/// A lease without an end.
pub const ENDLESS: u8 = u8::MAX;
/// A birth mark that is missing.
pub const UNBORN: i8 = i8::MIN;
/// No state of the store that a restart could fall back to.
pub const NO_SNAPSHOT: u8 = 15;

/// The holder that the process `nonce` of an instance writes.
pub fn holder(slot: usize, nonce: u8) -> u8 {
    1 + 8 * index(slot) + nonce
}

/// Whose holder it is.
pub fn slot_of(holder: u8) -> usize {
    usize::from((holder - 1) / 8)
}

pub fn index(slot: usize) -> u8 {
    u8::try_from(slot).expect("few instances")
}

/// What is under way between an instance and the store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    #[default]
    None,
    Campaign,
    Renew,
    Release,
    // Answers, in configurations where they may be late.
    Acquired,
    Renewed,
    NotYours,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Message {
    pub kind: Kind,
    /// Which process of the instance sent it.
    pub nonce: u8,
    /// The highest term known for a campaign, else the term meant.
    pub term: u8,
    /// How long a campaign leaves a vacancy to others; whether another holds for a refused renewal.
    pub arg: u8,
    /// By the sender's clock, how long ago it was sent.
    pub age: u8,
    /// Whether its sender still waits for the answer; if not it is a ghost.
    pub awaited: bool,
}

impl Message {
    pub fn is_request(self) -> bool {
        matches!(self.kind, Kind::Campaign | Kind::Renew | Kind::Release)
    }

    fn word(self) -> u64 {
        u64::from(self.kind as u8)
            | u64::from(self.nonce) << 4
            | u64::from(self.term) << 8
            | u64::from(self.arg) << 16
            | u64::from(self.age) << 20
            | u64::from(self.awaited) << 24
    }
}

/// One instance. It believes while `trust` is left, in the highest term it knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Instance {
    pub trust: u8,
    pub known: u8,
    pub nonce: u8,
    /// The highest term that it gave back and the store took.
    pub gave: u8,
    /// For how long it has believed without a lease.
    pub lost: u8,
    /// Until its clock may miss a unit again.
    pub slip: u8,
    /// Until it looks again, where timers are modelled.
    pub look: u8,
    /// A vacancy was left to others: 1 + for how long still.
    pub yielded: u8,
    pub wedged: bool,
    pub dead: bool,
    /// A fault took its lease away.
    pub robbed: bool,
    pub messages: [Message; MESSAGES],
}

impl Instance {
    pub fn believes(&self) -> bool {
        self.trust > 0
    }

    /// Where the answer that it waits for will come from.
    pub fn flight(&self) -> Option<usize> {
        (0..MESSAGES).find(|at| self.messages[*at].awaited)
    }

    /// Whatever it waits for, it does no longer.
    pub fn drop_flight(&mut self) {
        for message in &mut self.messages {
            if message.awaited {
                if message.is_request() {
                    message.awaited = false;
                    message.age = 0;
                } else {
                    *message = Message::default();
                }
            }
        }
    }

    fn words(&self) -> [u64; 2] {
        let own = u64::from(self.trust)
            | u64::from(self.known) << 4
            | u64::from(self.nonce) << 12
            | u64::from(self.gave) << 16
            | u64::from(self.lost) << 24
            | u64::from(self.slip) << 28
            | u64::from(self.look) << 32
            | u64::from(self.yielded) << 40
            | u64::from(self.wedged) << 44
            | u64::from(self.dead) << 45
            | u64::from(self.robbed) << 46;
        [own, self.messages[0].word() | self.messages[1].word() << 32]
    }
}

/// The keys of the group. Times are ages: how long ago by the server's clock, below zero in its future.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Store {
    pub holder: u8,
    /// How long the lease lasts still.
    pub left: u8,
    pub term: u8,
    pub fence: u8,
    /// The recorded holder.
    pub last: u8,
    pub ttl: u8,
    pub quarantine: u8,
    pub born: i8,
    pub seen: i8,
    pub vacant: i8,
    pub released: bool,
}

impl Store {
    /// A store that has lost everything; `old` stands for any time long past.
    pub fn empty(old: i8) -> Self {
        Self {
            holder: NOBODY,
            left: 0,
            term: 0,
            fence: 0,
            last: NOBODY,
            ttl: 0,
            quarantine: 0,
            born: UNBORN,
            seen: old,
            vacant: old,
            released: false,
        }
    }

    /// One unit passes.
    pub fn pass(&mut self, old: i8) {
        if self.holder != NOBODY && self.left != ENDLESS {
            self.left -= 1;
            if self.left == 0 {
                self.holder = NOBODY;
            }
        }
        for age in [&mut self.born, &mut self.seen, &mut self.vacant] {
            if *age != UNBORN && *age < old {
                *age += 1;
            }
        }
    }

    /// The server's clock is set by `by`, forward above zero. What is long past stays so unless `exact`.
    pub fn step_clock(&mut self, by: i8, old: i8, exact: bool) {
        if self.holder != NOBODY && self.left != ENDLESS {
            let left = i16::from(self.left) - i16::from(by);
            self.left = u8::try_from(left.clamp(0, 2 * i16::from(old))).expect("clamped");
            if self.left == 0 {
                self.holder = NOBODY;
            }
        }
        for age in [&mut self.born, &mut self.seen, &mut self.vacant] {
            if *age != UNBORN && (exact || *age < old) {
                *age = (*age + by).clamp(-2 * old, old);
            }
        }
    }

    fn words(&self) -> [u64; 2] {
        let times = u64::from(self.left)
            | u64::from(self.born.cast_unsigned()) << 8
            | u64::from(self.seen.cast_unsigned()) << 16
            | u64::from(self.vacant.cast_unsigned()) << 24;
        let names = u64::from(self.holder)
            | u64::from(self.last) << 8
            | u64::from(self.term) << 16
            | u64::from(self.fence) << 24
            | u64::from(self.ttl) << 32
            | u64::from(self.quarantine) << 36
            | u64::from(self.released) << 40;
        [times, names]
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    pub instances: [Instance; SLOTS],
    pub store: Store,
    /// What a restart may fall back to.
    pub snapshot: Store,
    /// How long ago that was written.
    pub snapshot_age: u8,
    pub uptime: i8,
    /// The highest term that anybody has believed in.
    pub top: u8,
    /// The server's clock was set back: it no longer makes terms rise.
    pub set_back: bool,
    /// 1 + for how long there have been no faults, where that is asked.
    pub calm: u8,
    /// How many faults of each kind are left.
    pub faults: [u8; crate::config::FAULTS],
}

impl State {
    /// Every term, so that the ranks can be closed up.
    pub fn each_term(&mut self, config: &Config, mut change: impl FnMut(&mut u8)) {
        for instance in &mut self.instances[..config.instances] {
            change(&mut instance.known);
            change(&mut instance.gave);
            for message in &mut instance.messages {
                if message.kind != Kind::None {
                    change(&mut message.term);
                }
            }
        }
        change(&mut self.store.term);
        change(&mut self.store.fence);
        if self.snapshot_age != NO_SNAPSHOT {
            change(&mut self.snapshot.term);
            change(&mut self.snapshot.fence);
        }
        change(&mut self.top);
    }

    fn each_holder(&mut self, mut change: impl FnMut(&mut u8)) {
        for name in [
            &mut self.store.holder,
            &mut self.store.last,
            &mut self.snapshot.holder,
            &mut self.snapshot.last,
        ] {
            if *name != NOBODY {
                change(name);
            }
        }
    }

    /// Brings states that differ in nothing that matters to one form, and tells where each instance went.
    pub fn normalise(&mut self, config: &Config) -> [usize; SLOTS] {
        for slot in 0..config.instances {
            self.forget(slot, config);
        }
        if self.snapshot_age == NO_SNAPSHOT {
            self.snapshot = Store::empty(config.old);
        }
        if self.calm != 0 {
            self.faults = [0; crate::config::FAULTS];
        }
        let no_restart = !config.restarts() && self.uptime == config.old;
        if no_restart && self.store.released && self.store.holder == NOBODY {
            // Only a young server asks when a lease that was given back was renewed last.
            self.store.seen = config.old;
        }
        if !config.yields_at_all() {
            self.store.vacant = config.old;
        }

        let mut used: u32 = 1;
        self.each_term(config, |term| used |= 1 << *term);
        if used & used.wrapping_add(1) != 0 {
            self.each_term(config, |term| *term = rank(used, *term));
        }
        if config.restarts_instances() {
            for slot in 0..config.instances {
                self.close_up_nonces(slot);
            }
        }
        for instance in &mut self.instances[..config.instances] {
            if instance.messages[0].word() > instance.messages[1].word() {
                instance.messages.swap(0, 1);
            }
        }
        if config.symmetric() {
            self.sort(config)
        } else {
            [0, 1, 2]
        }
    }

    /// Drops what no later step looks at.
    fn forget(&mut self, slot: usize, config: &Config) {
        let instance = &mut self.instances[slot];
        if !instance.believes() {
            instance.lost = 0;
            if !config.late_replies {
                instance.robbed = false;
            }
        }
        if instance.gave != 0 {
            let (gave, nonce) = (instance.gave, instance.nonce);
            let late = |message: &Message| {
                message.nonce == nonce
                    && (message.kind == Kind::Renew && message.term <= gave
                        || message.kind == Kind::Campaign && message.term < gave)
            };
            if !instance.messages.iter().any(late) {
                instance.gave = 0;
            }
        }
    }

    fn close_up_nonces(&mut self, slot: usize) {
        let mut used: u32 = 1 << self.instances[slot].nonce;
        for message in &self.instances[slot].messages {
            if message.kind != Kind::None {
                used |= 1 << message.nonce;
            }
        }
        self.each_holder(|name| {
            if slot_of(*name) == slot {
                used |= 1 << ((*name - 1) % 8);
            }
        });
        if used & used.wrapping_add(1) == 0 {
            return;
        }
        let instance = &mut self.instances[slot];
        instance.nonce = rank(used, instance.nonce);
        for message in &mut instance.messages {
            if message.kind != Kind::None {
                message.nonce = rank(used, message.nonce);
            }
        }
        self.each_holder(|name| {
            if slot_of(*name) == slot {
                *name = holder(slot, rank(used, (*name - 1) % 8));
            }
        });
    }

    /// The instances are alike: which is which does not matter.
    fn sort(&mut self, config: &Config) -> [usize; SLOTS] {
        let mut order = [0, 1, 2];
        let key = |slot: usize| {
            let own = |name: u8| name != NOBODY && slot_of(name) == slot;
            let names = u8::from(own(self.store.holder))
                | u8::from(own(self.store.last)) << 1
                | u8::from(own(self.snapshot.holder)) << 2
                | u8::from(own(self.snapshot.last)) << 3;
            (self.instances[slot].words(), names)
        };
        let keys = [key(0), key(1), key(2)];
        for at in 1..config.instances {
            let mut at = at;
            while at > 0 && keys[order[at - 1]] > keys[order[at]] {
                order.swap(at - 1, at);
                at -= 1;
            }
        }
        if order != [0, 1, 2] {
            let before = self.instances;
            let mut place = [0; SLOTS];
            for (to, from) in order.into_iter().enumerate() {
                self.instances[to] = before[from];
                place[from] = to;
            }
            self.each_holder(|name| *name = holder(place[slot_of(*name)], (*name - 1) % 8));
        }
        order
    }

    /// A number by which the state is known: equal for equal states, and otherwise as good as never.
    pub fn fingerprint(&self, config: &Config) -> u64 {
        let mut sum = 0x9E37_79B9_7F4A_7C15;
        let mut take = |word: u64| {
            let mut mixed: u64 = sum ^ word;
            mixed = (mixed ^ mixed >> 32).wrapping_mul(0xD6E8_FEB8_6659_FD93);
            mixed = (mixed ^ mixed >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            sum = (mixed ^ mixed >> 32).wrapping_add(0x9E37_79B9_7F4A_7C15);
        };
        for instance in &self.instances[..config.instances] {
            let [own, messages] = instance.words();
            take(own);
            take(messages);
        }
        let [times, names] = self.store.words();
        take(times);
        take(names);
        if self.snapshot_age != NO_SNAPSHOT {
            let [times, names] = self.snapshot.words();
            take(times);
            take(names);
        }
        take(
            u64::from(self.snapshot_age)
                | u64::from(self.uptime.cast_unsigned()) << 4
                | u64::from(self.top) << 12
                | u64::from(self.set_back) << 20
                | u64::from(self.calm) << 24,
        );
        let mut faults = 0;
        for left in self.faults {
            faults = faults << 4 | u64::from(left);
        }
        take(faults);
        sum
    }
}

/// How many of the used numbers lie below this one.
fn rank(used: u32, number: u8) -> u8 {
    let below = used & ((1 << number) - 1);
    u8::try_from(below.count_ones()).expect("at most 32")
}

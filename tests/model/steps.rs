//! What may happen next: the instances, the network, the faults, the passing of time.
//!
//! An answer comes when its request is executed, or never. That loses nothing: a grant or a renewal that is heard of earlier makes
//! its instance believe earlier and until the same instant, and it need not do anything before the late answer would have come; one
//! that dies in between has not heard. A refusal that comes late is a refusal that was lost and another that came in time. The
//! configurations with late answers are there to show that this is so.

use crate::config::{ANY, Config, FSYNC, Fault, Mutant, OPERATION, Property};
use crate::rules::{Ask, Server, Verdict};
use crate::state::{ENDLESS, Instance, Kind, Message, NO_SNAPSHOT, NOBODY, SLOTS, State, Store, holder, slot_of};

/// What happens. A slot is an instance's place in the state before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Campaigns { who: usize, yields: u8 },
    Renews { who: usize },
    StepsDown { who: usize, releases: usize },
    GivesUp { who: usize },
    Executed { who: usize, what: Message, heard: bool },
    Lost { who: usize, what: Message },
    Heard { who: usize, what: Message },
    Crashes { who: usize, stays_dead: bool },
    Starts { who: usize },
    Wedged { who: usize },
    Unwedged { who: usize },
    Tick { slow: [bool; SLOTS] },
    Server(Fault),
    SetClock { by: i8, exact: bool },
    Fsync,
    CalmBegins,
}

/// A step, the state after it, and what it breaks.
#[derive(Clone, Copy, Debug)]
pub struct Move {
    pub step: Step,
    pub state: State,
    pub broken: Option<Property>,
}

impl State {
    pub fn start(config: &Config) -> Self {
        let old = config.old;
        let mut store = Store::empty(old);
        if !config.fresh {
            store.born = old;
        }
        Self {
            instances: [Instance::default(); SLOTS],
            store,
            snapshot: Store::empty(old),
            snapshot_age: NO_SNAPSHOT,
            uptime: old,
            top: 0,
            set_back: false,
            calm: 0,
            faults: config.faults,
        }
    }

    /// Somebody leads who will not be told in a moment that the lease was lost.
    pub fn is_led(&self, config: &Config) -> bool {
        self.instances[..config.instances]
            .iter()
            .any(|instance| instance.believes() && !instance.robbed)
    }

    /// Whether nothing that follows matters.
    pub fn is_settled(&self, config: &Config) -> bool {
        self.calm != 0 && self.is_led(config)
    }

    fn spend(&mut self, fault: Fault) -> bool {
        let left = &mut self.faults[fault as usize];
        match *left {
            0 => return false,
            ANY => {}
            _ => *left -= 1,
        }
        true
    }

    /// Puts a request on its way, if there is room.
    fn send(&mut self, config: &Config, who: usize, message: Message) -> bool {
        let instance = &mut self.instances[who];
        let nonce = instance.nonce;
        let under_way = instance.messages.iter().filter(|message| message.kind != Kind::None);
        if under_way.count() >= config.messages {
            return false;
        }
        let room = instance.messages.iter_mut().find(|message| message.kind == Kind::None);
        *room.expect("room") = Message { nonce, ..message };
        true
    }

    fn rob(&mut self) {
        for instance in &mut self.instances {
            instance.robbed = true;
        }
    }

    /// Gives back `term`, or what it believed in: belief is cleared first, and no outstanding attempt counts any more.
    fn release(&mut self, config: &Config, who: usize, term: u8, copies: usize) {
        let instance = &mut self.instances[who];
        if !config.has(Mutant::StepDownKeepsFlight) {
            instance.drop_flight();
        }
        if !config.has(Mutant::ReleaseBeforeBelief) {
            instance.trust = 0;
        }
        if config.timers() {
            instance.look = config.ttl[who];
        }
        for _ in 0..copies {
            let message = Message {
                kind: Kind::Release,
                term,
                ..Message::default()
            };
            self.send(config, who, message);
        }
    }

    /// A term above the last, above the server's clock, above what the caller has seen.
    fn mint(&mut self, config: &Config, known: u8) -> u8 {
        let mut highest = self.store.fence.max(known);
        if self.set_back {
            // As low as it may be, and yet nobody's number.
            self.each_term(config, |term| {
                if *term > highest {
                    *term += 1;
                }
            });
        } else {
            self.each_term(config, |term| highest = highest.max(*term));
        }
        self.store.term = highest + 1;
        self.store.fence = highest + 1;
        highest + 1
    }

    fn refuse(&mut self, config: &Config, who: usize, verdict: Verdict) {
        let term = self.store.term;
        let ttl = config.ttl[who];
        let instance = &mut self.instances[who];
        instance.known = instance.known.max(term);
        if !config.timers() {
            return;
        }
        match verdict {
            Verdict::Held(left) => {
                instance.yielded = 0;
                instance.look = left.min(ttl);
            }
            Verdict::Yielded(rest) => {
                let until = rest.min(ttl) + 1;
                instance.look = until - 1;
                instance.yielded = match instance.yielded {
                    0 => until,
                    earlier => earlier.min(until),
                };
            }
            Verdict::Quarantined(rest) => instance.look = rest,
            Verdict::Stale | Verdict::Acquired => instance.look = 0,
        }
    }

    /// The grant of `term` is heard of.
    fn lead(&mut self, config: &Config, who: usize, term: u8, age: u8) -> Option<Property> {
        let trust = trust_left(config, who, age);
        let instance = &mut self.instances[who];
        instance.known = instance.known.max(term);
        instance.yielded = 0;
        instance.look = 0;
        if instance.wedged && !config.has(Mutant::WedgedLeads) {
            self.release(config, who, term, 1);
            return None;
        }
        if trust == 0 {
            return None;
        }
        instance.trust = trust;
        let rises = term > self.top;
        self.top = self.top.max(term);
        (!rises && config.asks(Property::P3)).then_some(Property::P3)
    }

    fn extend(&mut self, config: &Config, who: usize, term: u8, age: u8) {
        let left = trust_left(config, who, age);
        let instance = &mut self.instances[who];
        if instance.believes() || config.has(Mutant::StepDownKeepsFlight) && instance.known == term {
            instance.trust = instance.trust.max(left);
        }
    }

    fn demote(&mut self, config: &Config, who: usize, term: u8, by_other: bool) -> Option<Property> {
        let instance = &mut self.instances[who];
        let unjust = instance.believes() && !instance.robbed && !by_other;
        instance.trust = 0;
        instance.look = 0;
        instance.known = instance.known.max(term);
        (unjust && config.asks(Property::Keep)).then_some(Property::Keep)
    }

    /// The store executes the request; the sender hears of it if it still waits and `heard`.
    fn execute(&mut self, config: &Config, who: usize, at: usize, heard: bool) -> Option<Property> {
        let message = std::mem::take(&mut self.instances[who].messages[at]);
        let name = holder(who, message.nonce);
        let same_process = message.nonce == self.instances[who].nonce;
        let heard = heard && message.awaited;
        let gave = self.instances[who].gave;
        let mut broken = None;
        let mut late = Message {
            awaited: true,
            ..message
        };
        match message.kind {
            Kind::Campaign => {
                let ask = Ask {
                    slot: who,
                    holder: name,
                    known: message.term,
                    yields: message.arg,
                };
                let uptime = self.uptime;
                match self.store.campaign(config, ask, Server { uptime }) {
                    Verdict::Acquired => {
                        let again = same_process && message.term < gave;
                        let term = self.mint(config, message.term);
                        if same_process {
                            self.instances[who].robbed = false;
                        }
                        late.kind = Kind::Acquired;
                        late.term = term;
                        if heard && !config.late_replies {
                            broken = self.lead(config, who, term, message.age);
                        }
                        if again && config.asks(Property::Ghost) {
                            broken = Some(Property::Ghost);
                        }
                    }
                    verdict => {
                        if heard {
                            self.refuse(config, who, verdict);
                        }
                        late.kind = Kind::None;
                    }
                }
            }
            Kind::Renew => {
                if self.store.renew(config, who, name, message.term) {
                    if same_process {
                        // What it believes in is the store's again; a ghost of an earlier term says nothing of it.
                        self.instances[who].robbed &= message.term != self.instances[who].known;
                        if message.term <= gave && config.asks(Property::Ghost) {
                            broken = Some(Property::Ghost);
                        }
                    }
                    late.kind = Kind::Renewed;
                    if heard && !config.late_replies {
                        self.extend(config, who, message.term, message.age);
                    }
                } else {
                    let by_other = self.store.holder != NOBODY && slot_of(self.store.holder) != who;
                    late.kind = Kind::NotYours;
                    late.term = self.store.term;
                    late.arg = u8::from(by_other);
                    if heard && !config.late_replies {
                        broken = self.demote(config, who, late.term, by_other);
                    }
                }
            }
            Kind::Release => {
                let released = self.store.release(config, name, message.term);
                let instance = &mut self.instances[who];
                if released && same_process {
                    instance.gave = instance.gave.max(message.term);
                }
                late.kind = Kind::None;
            }
            Kind::None | Kind::Acquired | Kind::Renewed | Kind::NotYours => {}
        }
        if heard && config.late_replies && late.kind != Kind::None {
            self.instances[who].messages[at] = late;
        }
        broken
    }

    /// A late answer arrives.
    fn hear(&mut self, config: &Config, who: usize, at: usize) -> Option<Property> {
        let message = std::mem::take(&mut self.instances[who].messages[at]);
        match message.kind {
            Kind::Acquired => self.lead(config, who, message.term, message.age),
            Kind::Renewed => {
                self.extend(config, who, message.term, message.age);
                None
            }
            _ => self.demote(config, who, message.term, message.arg == 1),
        }
    }

    fn crash(&mut self, who: usize, stays_dead: bool) {
        let mut highest = self.instances[who].nonce;
        for message in &self.instances[who].messages {
            highest = highest.max(message.nonce);
        }
        for name in [
            self.store.holder,
            self.store.last,
            self.snapshot.holder,
            self.snapshot.last,
        ] {
            if name != NOBODY && slot_of(name) == who {
                highest = highest.max((name - 1) % 8);
            }
        }
        let instance = &mut self.instances[who];
        instance.drop_flight();
        *instance = Instance {
            nonce: highest + 1,
            dead: stays_dead,
            slip: instance.slip,
            messages: instance.messages,
            ..Instance::default()
        };
    }

    /// One unit passes, except for the clocks that are slow.
    fn pass(&mut self, config: &Config, slow: [bool; SLOTS]) -> Option<Property> {
        let old = config.old;
        self.store.pass(old);
        if self.snapshot_age != NO_SNAPSHOT {
            self.snapshot.pass(old);
            self.snapshot_age += 1;
            if self.snapshot_age > FSYNC {
                self.snapshot_age = NO_SNAPSHOT;
            }
        }
        self.uptime = (self.uptime + 1).min(old);
        if self.calm != 0 {
            self.calm += 1;
        }
        let mut broken = None;
        for (who, slow) in slow.into_iter().enumerate().take(config.instances) {
            let held = self.is_held_by(who);
            let trust = config.trust(who);
            let instance = &mut self.instances[who];
            instance.slip = instance.slip.saturating_sub(1);
            if slow {
                instance.slip = config.ttl[who];
            } else {
                instance.look = instance.look.saturating_sub(1);
                if instance.yielded > 1 {
                    instance.yielded -= 1;
                }
                for message in &mut instance.messages {
                    if message.awaited {
                        message.age = (message.age + 1).min(trust);
                    }
                }
                if instance.trust == 1 {
                    instance.drop_flight();
                }
                instance.trust = instance.trust.saturating_sub(1);
            }
            if config.asks(Property::Bound) {
                instance.lost = if instance.believes() && !held {
                    instance.lost + 1
                } else {
                    0
                };
                if instance.lost >= config.ttl[who] {
                    broken = Some(Property::Bound);
                }
            }
        }
        broken
    }

    /// Whether the store says what this instance believes.
    fn is_held_by(&self, who: usize) -> bool {
        let instance = &self.instances[who];
        self.store.holder == holder(who, instance.nonce) && self.store.term == instance.known
    }

    /// What is broken in this state.
    fn judge(&self, config: &Config) -> Option<Property> {
        let mut believers = 0;
        for who in 0..config.instances {
            let instance = &self.instances[who];
            if !instance.believes() {
                continue;
            }
            believers += 1;
            if !instance.robbed && !self.is_held_by(who) && config.asks(Property::Inv) {
                return Some(Property::Inv);
            }
            if instance.wedged && config.asks(Property::Wedge) {
                return Some(Property::Wedge);
            }
        }
        (believers > 1 && config.asks(Property::P1)).then_some(Property::P1)
    }

    /// Whether somebody has something to do that cannot wait for the next unit.
    fn is_pressed(&self, config: &Config) -> bool {
        self.instances[..config.instances].iter().any(|instance| {
            let late = |at: usize| instance.messages[at].age >= OPERATION;
            if self.calm == 0 {
                return !config.pauses && instance.flight().is_some_and(late);
            }
            let under_way = instance.messages.iter().any(|message| message.kind != Kind::None);
            let campaigns = !instance.believes() && !instance.wedged && instance.look == 0;
            under_way || !instance.dead && (campaigns || instance.believes() && instance.robbed)
        })
    }
}

/// How long an answer makes its instance believe, when its request was sent `age` ago.
fn trust_left(config: &Config, who: usize, age: u8) -> u8 {
    let age = if config.has(Mutant::TrustFromReply) { 0 } else { age };
    config.trust(who).saturating_sub(age)
}

/// Everything that may happen next.
pub fn moves(state: &State, config: &Config, out: &mut Vec<Move>) {
    out.clear();
    let mut add = |step: Step, state: State, broken: Option<Property>| {
        let broken = broken.or_else(|| state.judge(config));
        out.push(Move { step, state, broken });
    };
    for who in 0..config.instances {
        instance_moves(state, config, who, &mut add);
    }
    if !state.is_pressed(config) {
        let may = |who: usize| {
            let instance = &state.instances[who];
            who < config.instances && state.faults[Fault::Slip as usize] > 0 && instance.slip == 0
        };
        for bits in 0..1 << config.instances {
            let slow = std::array::from_fn(|who| bits >> who & 1 == 1);
            if (0..SLOTS).any(|who| slow[who] && !may(who)) {
                continue;
            }
            let mut next = *state;
            for who in slow {
                if who {
                    next.spend(Fault::Slip);
                }
            }
            let mut broken = next.pass(config, slow);
            if config.calm_within.is_some_and(|units| next.calm > units + 1) && !next.is_led(config) {
                broken = Some(Property::P8);
            }
            add(Step::Tick { slow }, next, broken);
        }
    }
    if state.calm == 0 {
        server_faults(state, config, &mut add);
        if config.timers() && state.instances[..config.instances].iter().any(|i| !i.dead && !i.wedged) {
            add(Step::CalmBegins, State { calm: 1, ..*state }, None);
        }
    }
}

fn instance_moves(state: &State, config: &Config, who: usize, add: &mut impl FnMut(Step, State, Option<Property>)) {
    let instance = &state.instances[who];
    let calm = state.calm != 0;
    for (at, what) in instance.messages.into_iter().enumerate() {
        if what.kind == Kind::None || at == 1 && what == instance.messages[0] {
            continue;
        }
        let mut next = *state;
        if what.is_request() {
            let broken = next.execute(config, who, at, true);
            add(
                Step::Executed {
                    who,
                    what,
                    heard: what.awaited,
                },
                next,
                broken,
            );
            if what.awaited && !calm {
                let mut next = *state;
                let broken = next.execute(config, who, at, false);
                add(
                    Step::Executed {
                        who,
                        what,
                        heard: false,
                    },
                    next,
                    broken,
                );
            }
        } else {
            let broken = next.hear(config, who, at);
            add(Step::Heard { who, what }, next, broken);
        }
        if !calm || !what.awaited {
            let mut next = *state;
            next.instances[who].messages[at] = Message::default();
            add(Step::Lost { who, what }, next, None);
        }
    }
    if instance.dead {
        if !calm {
            let mut next = *state;
            next.instances[who].dead = false;
            add(Step::Starts { who }, next, None);
        }
        return;
    }
    if instance.flight().is_none() {
        let mut message = Message {
            term: instance.known,
            awaited: true,
            ..Message::default()
        };
        if instance.believes() {
            message.kind = Kind::Renew;
            let mut next = *state;
            if (!calm || instance.robbed) && next.send(config, who, message) {
                add(Step::Renews { who }, next, None);
            }
        } else if !instance.wedged && instance.look == 0 {
            message.kind = Kind::Campaign;
            let paid = instance.yielded == 1;
            let yields = if paid && !config.has(Mutant::YieldForEver) {
                0
            } else {
                config.yields[who]
            };
            // Without timers nobody knows whether it has waited already.
            let choices: &[u8] = if config.timers() || yields == 0 {
                &[yields]
            } else {
                &[0, yields]
            };
            for &yields in choices {
                message.arg = yields;
                let mut next = *state;
                if next.send(config, who, message) {
                    add(Step::Campaigns { who, yields }, next, None);
                }
            }
        }
    }
    if !calm {
        instance_faults(state, config, who, add);
    }
}

fn instance_faults(state: &State, config: &Config, who: usize, add: &mut impl FnMut(Step, State, Option<Property>)) {
    let instance = &state.instances[who];
    if instance.flight().is_some() {
        let mut next = *state;
        next.instances[who].drop_flight();
        add(Step::GivesUp { who }, next, None);
    }
    let mut next = *state;
    if instance.believes() && next.spend(Fault::StepDown) {
        for releases in 1..=config.messages {
            let mut next = next;
            next.release(config, who, instance.known, releases);
            add(Step::StepsDown { who, releases }, next, None);
        }
    }
    for stays_dead in [false, true] {
        let mut next = *state;
        if (!stays_dead || config.timers()) && next.spend(Fault::Crash) {
            next.crash(who, stays_dead);
            add(Step::Crashes { who, stays_dead }, next, None);
        }
    }
    let mut next = *state;
    if instance.wedged {
        next.instances[who].wedged = false;
        add(Step::Unwedged { who }, next, None);
    } else if next.spend(Fault::Wedge) {
        next.instances[who].wedged = true;
        if instance.believes() {
            next.release(config, who, instance.known, 1);
        }
        add(Step::Wedged { who }, next, None);
    }
}

fn server_faults(state: &State, config: &Config, add: &mut impl FnMut(Step, State, Option<Property>)) {
    let old = config.old;
    for fault in [
        Fault::Del,
        Fault::DelState,
        Fault::Flush,
        Fault::Empty,
        Fault::Restart,
        Fault::Persist,
    ] {
        let mut next = *state;
        let held = state.store.holder != NOBODY;
        let matters = match fault {
            Fault::Del => held,
            Fault::Persist => held && state.store.left != ENDLESS,
            _ => true,
        };
        if !matters || !next.spend(fault) {
            continue;
        }
        match fault {
            Fault::Del => next.store.vacate(),
            Fault::DelState => {
                next.store = Store {
                    holder: state.store.holder,
                    left: state.store.left,
                    fence: state.store.fence,
                    ..Store::empty(old)
                };
            }
            Fault::Flush => next.store = Store::empty(old),
            Fault::Empty => {
                next.store = Store::empty(old);
                next.uptime = 0;
            }
            Fault::Persist => next.store.persist(),
            _ => next.uptime = 0,
        }
        if !matches!(fault, Fault::Persist | Fault::Restart) {
            next.rob();
        }
        add(Step::Server(fault), next, None);
    }
    let mut next = *state;
    let may_keep = !config.held_on_disk || state.store.holder != NOBODY;
    if may_keep && next.spend(Fault::Rollback) {
        // Kept in view of a restart to come; if none comes in time the fault is spent.
        next.snapshot = next.store;
        next.snapshot_age = 0;
        add(Step::Fsync, next, None);
    }
    if state.snapshot_age != NO_SNAPSHOT {
        let mut next = *state;
        next.store = next.snapshot;
        next.snapshot_age = NO_SNAPSHOT;
        next.uptime = 0;
        next.rob();
        add(Step::Server(Fault::Rollback), next, None);
    }
    let beyond = config.ttl[0].cast_signed() + 1;
    for (fault, by) in [
        (Fault::Back, -1),
        (Fault::Back, -beyond),
        (Fault::Forward, 1),
        (Fault::Forward, beyond),
    ] {
        for exact in [true, false] {
            let mut next = *state;
            if (by > 0 && !exact) || !next.spend(fault) {
                continue;
            }
            next.store.step_clock(by, old, exact);
            next.snapshot.step_clock(by, old, exact);
            if exact || next.uptime < old {
                next.uptime = (next.uptime + by).clamp(-2 * old, old);
            }
            next.set_back |= by < 0;
            if by > 0 {
                next.rob();
            }
            add(Step::SetClock { by, exact }, next, None);
        }
    }
}

//! The line by which the fleet knows this instance, and what the other lines mean for its elections.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::input::Group;
use super::{Engine, Input, Refused};
use crate::clock::Moment;
use crate::election::StepDown;
use crate::event::Event;
use crate::job::gate::Role;
use crate::runtime::fleet::{self, Member};
use crate::store::{Enrolled, Entry, StoreError, Twin};

/// How many leases long a line lives without a sign of life.
const SLACK: u32 = 2;
/// How many leases long a group stays where it is, and the fleet what it is, before a group moves to where it belongs.
const STAY: u32 = 6;

/// The instance's line in the roster, and the others.
#[derive(Default)]
#[allow(clippy::struct_excessive_bools, reason = "each is true or not by itself")]
pub(super) struct Roster {
    pub(super) enrolled: bool,
    in_flight: bool,
    next: Option<Moment>,
    /// What the instance says of itself, made anew when it changes.
    introduction: Option<String>,
    /// The store has asked for it.
    introduce: bool,
    started_at: Option<Timestamp>,
    wedged: bool,
    /// The fleet as last read, and the number of that state.
    members: Vec<Member>,
    revision: u64,
    reading: bool,
    read_at: Option<Moment>,
    twin: Option<(Twin, TwinState)>,
    /// The jobs of a led group that this instance lacks, as last told.
    uncovered: BTreeMap<Group, BTreeMap<String, String>>,
    /// When a leader makes way for a member that has more of the group's jobs.
    making_way: BTreeMap<Group, Moment>,
    /// When to look next whether a group belongs elsewhere, and whether the roster is being read for that.
    spread_at: Option<Moment>,
    spreading: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TwinState {
    /// A line that was there before this instance: of a process that may have ended.
    Left,
    /// A process that lives beside this one.
    Alive,
}

impl Roster {
    /// Whether another process of the same id is alive, for certain.
    pub(super) fn has_twin(&self) -> bool {
        matches!(self.twin, Some((_, TwinState::Alive)))
    }

    /// Whether no sign of life is under way.
    pub(super) fn is_still(&self) -> bool {
        !self.in_flight
    }

    /// Whether the runtime of the bodies runs none: the fleet is told.
    pub(super) fn set_wedged(&mut self, wedged: bool) {
        self.wedged = wedged;
        self.renew_introduction();
    }

    /// As the next engine finds it: no answer is on its way, and nothing is led.
    pub(super) fn kept(self) -> Self {
        Self {
            in_flight: false,
            next: None,
            reading: false,
            uncovered: BTreeMap::new(),
            making_way: BTreeMap::new(),
            spreading: false,
            ..self
        }
    }

    fn renew_introduction(&mut self) {
        self.introduction = None;
        self.next = None;
    }
}

impl Engine {
    pub(super) fn roster_turn(&mut self, now: Moment) {
        self.make_way(now);
        self.spread_turn(now);
        let due = self.inspection.passed && self.roster.next.is_none_or(|at| now >= at);
        if !due || self.roster.in_flight || self.is_leaving() {
            return;
        }
        self.roster.in_flight = true;
        let entry = self.entry(now);
        let store = Arc::clone(&self.store);
        self.ask(async move { store.enrol(entry).await }, move |answer| Input::Enrolled {
            sent: now,
            answer,
        });
    }

    fn entry(&mut self, now: Moment) -> Entry {
        let config = &self.shared.config;
        let draining = self.stopping.is_some();
        let wall = config.clock.wall();
        let started_at = *self.roster.started_at.get_or_insert(wall);
        let wedged = self.roster.wedged;
        let introduction = self
            .roster
            .introduction
            .get_or_insert_with(|| fleet::introduction(config, started_at, draining, wedged));
        let mut hasher = DefaultHasher::new();
        introduction.hash(&mut hasher);
        let led = self.groups.iter().filter(|group| group.election.leading(now).is_some());
        let offset = self.planning.offset_of(wall, now);
        Entry {
            holder: config.holder.clone(),
            service: config.service.clone(),
            ttl: config.timing.ttl() * SLACK,
            beat: fleet::beat(led.map(|group| group.gate.group()), offset),
            digest: hasher.finish(),
            introduction: self.roster.introduce.then(|| introduction.clone()),
        }
    }

    /// The fleet is told that this instance is about to go.
    pub(super) fn roster_drains(&mut self) {
        self.roster.renew_introduction();
    }

    pub(super) fn enrolled(&mut self, now: Moment, sent: Moment, answer: Result<Enrolled, StoreError>) {
        self.heard(now, &answer);
        self.roster.in_flight = false;
        let timing = self.shared.config.timing;
        // One whose introduction has changed meanwhile is due at once.
        let stale = self.roster.introduction.is_none();
        let again = match &answer {
            _ if stale => Duration::ZERO,
            Ok(Enrolled::Yes { .. }) => timing.ttl() / 2,
            Ok(Enrolled::Introduce) => Duration::ZERO,
            Ok(Enrolled::OtherService { .. }) => timing.renew(),
            Err(_) => timing.retry(),
        };
        self.roster.next = Some(now + again);
        match answer {
            Ok(Enrolled::Yes {
                now: server,
                revision,
                twin,
            }) => {
                self.planning.sample(sent, now, server);
                self.roster.introduce = false;
                self.meet_twin(twin);
                if !std::mem::replace(&mut self.roster.enrolled, true) {
                    let instance = self.shared.config.instance.clone();
                    self.shared.tell(Event::Started { instance });
                    self.read_roster();
                } else if revision != self.roster.revision || self.observes(now) {
                    self.read_roster();
                }
            }
            Ok(Enrolled::Introduce) => self.roster.introduce = true,
            Ok(Enrolled::OtherService { service, instance }) => {
                if let Some((ready, _)) = self.ready.take() {
                    let _ = ready.send(Err(Refused::OtherService { service, instance }));
                } else {
                    self.shared.tell(Event::OtherService { service, instance });
                }
            }
            Err(_) => {}
        }
    }

    /// Two processes of one id are told apart from one that was started again: its predecessor shows no more sign of life.
    fn meet_twin(&mut self, twin: Option<Twin>) {
        let Some(twin) = twin else {
            self.roster.twin = None;
            return;
        };
        let state = match &self.roster.twin {
            None if !self.roster.enrolled => TwinState::Left,
            Some((known, TwinState::Left)) if known.holder == twin.holder && known.seen == twin.seen => TwinState::Left,
            _ => TwinState::Alive,
        };
        let known = self.roster.has_twin();
        if state == TwinState::Alive && !known {
            let instance = self.shared.config.instance.clone();
            let other = twin.holder.to_string();
            self.shared.tell(Event::DuplicateId { instance, other });
        }
        self.roster.twin = Some((twin, state));
    }

    fn read_roster(&mut self) {
        if !std::mem::replace(&mut self.roster.reading, true) {
            let store = Arc::clone(&self.store);
            self.ask(async move { store.roster().await }, Input::Roster);
        }
    }

    pub(super) fn roster_read(&mut self, now: Moment, answer: &Result<crate::store::Roster, StoreError>) {
        self.heard(now, answer);
        self.roster.reading = false;
        self.roster.read_at = Some(now);
        // Unread, it is read after the next sign of life.
        if let Ok(roster) = answer {
            if std::mem::replace(&mut self.roster.revision, roster.revision) != roster.revision {
                self.roster.spread_at = Some(now + self.shared.config.timing.ttl() * STAY);
            }
            self.roster.members = fleet::members(roster);
            for index in 0..self.groups.len() {
                self.place(index);
                self.look_for_uncovered(now, index);
                self.observe(index);
            }
            if std::mem::take(&mut self.roster.spreading) {
                self.spread(now);
            }
        }
        // Nobody campaigns before it knows whom to leave a vacancy to, or cannot know.
        for group in &mut self.groups {
            let takes_part = self.shared.config.candidacy.has(group.gate.group());
            group.election.set_campaigning(takes_part);
            if !takes_part {
                group.answered = true;
            }
        }
    }

    /// Whether the leaders of groups that are only watched are to be looked up again.
    fn observes(&self, now: Moment) -> bool {
        let config = &self.shared.config;
        let watched = config.groups.iter().any(|group| !config.candidacy.has(group));
        watched
            && self
                .roster
                .read_at
                .is_none_or(|at| now.since(at) >= config.timing.ttl())
    }

    /// Whoever takes no part in an election knows the leader from the roster alone.
    fn observe(&mut self, index: Group) {
        let state = &self.groups[index];
        let group = state.gate.group();
        if self.shared.config.candidacy.has(group) {
            return;
        }
        let leads = |member: &&Member| member.leads.contains(group.as_str());
        let leader = self
            .roster
            .members
            .iter()
            .filter(leads)
            .max_by_key(|member| member.last_seen);
        let leader = leader.map(|member| member.instance.clone());
        if state.gate.status().borrow().leader != leader {
            let since = leader.is_some().then(|| self.shared.config.clock.wall());
            state.show(Role::Observer, leader, 0, since);
        }
    }

    /// How long the next vacancy of a group is left to others.
    pub(super) fn place(&mut self, index: Group) {
        let config = &self.shared.config;
        let state = &mut self.groups[index];
        let last = state.gate.status().borrow().leader.clone();
        let name = state.gate.group().as_str();
        let yields = fleet::yields(
            &self.roster.members,
            &config.holder,
            name,
            last.as_deref(),
            config.timing.ttl(),
        );
        state.election.set_yield(yields);
    }

    /// Tells of jobs that the leader of a group lacks, and plans to make way for a member that has them.
    pub(super) fn look_for_uncovered(&mut self, now: Moment, index: Group) {
        let state = &self.groups[index];
        if state.election.leading(now).is_none() {
            self.roster.uncovered.remove(&index);
            self.roster.making_way.remove(&index);
            return;
        }
        let (own, group) = (&self.shared.config.holder, state.gate.group());
        let uncovered = fleet::uncovered(&self.roster.members, own, group.as_str());
        let told = self.roster.uncovered.get(&index);
        for (job, member) in &uncovered {
            if told.is_none_or(|told| !told.contains_key(job)) {
                self.shared.tell(Event::Uncovered {
                    group: group.clone(),
                    job: job.clone(),
                    member: member.clone(),
                });
            }
        }
        self.roster.uncovered.insert(index, uncovered);
        if fleet::better_covered(&self.roster.members, own, group.as_str()).is_some() {
            let ttl = self.shared.config.timing.ttl();
            self.roster.making_way.entry(index).or_insert(now + ttl);
        } else {
            self.roster.making_way.remove(&index);
        }
    }

    /// A leader gives a group up for a member that has more of its jobs, once that has been there for one lease.
    fn make_way(&mut self, now: Moment) {
        let due = |(index, at): (&Group, &Moment)| (now >= *at).then_some(*index);
        let Some(index) = self.roster.making_way.iter().find_map(due) else {
            return;
        };
        self.roster.making_way.remove(&index);
        let state = &mut self.groups[index];
        let (own, group) = (&self.shared.config.holder, state.gate.group().clone());
        let better = fleet::better_covered(&self.roster.members, own, group.as_str());
        let leading = state.election.leading(now).filter(|_| state.draining.is_none());
        if let (Some(term), Some(member)) = (leading, better) {
            let member = member.instance.clone();
            self.shared.tell(Event::MakingWay { group, term, member });
            state.election.step_down(now, StepDown::Request);
        }
    }

    /// In a calm fleet groups go, one at a time, to the instances that they prefer: not all stay with the one that was there first.
    fn spread_turn(&mut self, now: Moment) {
        if !self.shared.config.spread || self.stopping.is_some() || self.roster.spread_at.is_none_or(|at| now < at) {
            return;
        }
        self.roster.spread_at = Some(now + self.shared.config.timing.ttl());
        let led = self.groups.iter().filter(|group| group.election.leading(now).is_some());
        if led.count() > 1 {
            self.roster.spreading = true;
            self.read_roster();
        }
    }

    fn spread(&mut self, now: Moment) {
        let config = &self.shared.config;
        let stay = config.timing.ttl() * STAY;
        let fresh = self.planning.at(now) - jiff::SignedDuration::try_from(config.timing.ttl()).unwrap_or_default();
        let belongs_elsewhere = |index: Group| {
            let state = &self.groups[index];
            let term = state.election.leading(now).filter(|_| state.draining.is_none())?;
            let member = fleet::preferred(&self.roster.members, state.gate.group().as_str())?;
            let settled = now.since(state.leading_since) >= stay && !self.is_busy(index);
            let moves = settled && member.holder != config.holder && member.last_seen >= fresh;
            moves.then(|| (index, term, member.instance.clone()))
        };
        let Some((index, term, member)) = (0..self.groups.len()).find_map(belongs_elsewhere) else {
            return;
        };
        let group = self.groups[index].gate.group().clone();
        self.shared.tell(Event::MakingWay { group, term, member });
        self.groups[index].election.step_down(now, StepDown::Request);
    }

    pub(super) fn roster_wake(&self, now: Moment) -> Option<Moment> {
        let waiting = self.inspection.passed && !self.roster.in_flight && !self.is_leaving();
        let line = waiting.then(|| self.roster.next.unwrap_or(now));
        let making_way = self.roster.making_way.values().min().copied();
        let spread = self
            .roster
            .spread_at
            .filter(|_| self.shared.config.spread && self.stopping.is_none());
        [line, making_way, spread].into_iter().flatten().min()
    }

    /// Whether the roster line has been, or is being, taken out: a drain before that is still part of the fleet.
    fn is_leaving(&self) -> bool {
        self.stopping.as_ref().is_some_and(|stopping| stopping.leaving)
    }
}

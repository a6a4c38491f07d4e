//! The line by which the fleet knows this instance, and what the other lines mean for its elections.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::input::Group;
use super::time_zones::Told;
use super::{Engine, Input, Refused};
use crate::clock::Moment;
use crate::event::Event;
use crate::job::gate::Role;
use crate::names::Holder;
use crate::runtime::fleet::{self, Doubt, Member};
use crate::store::{Enrolled, Entry, StoreError, Twin};
use crate::timing::MAX_TTL;

/// How many leases long a line lives without a sign of life.
const SLACK: u32 = 2;
/// How many leases long a group stays where it is, and the fleet what it is, before a group moves to where it belongs.
pub(super) const STAY: u32 = 6;

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
    doubt: Doubt,
    /// The fleet as last read, and the number of that state.
    pub(super) members: Vec<Member>,
    revision: u64,
    /// The longest TTL of anybody who was ever seen: who has it may still believe after the store has forgotten both.
    longest_ttl: Duration,
    pub(super) reading: bool,
    read_at: Option<Moment>,
    /// When the first line was written, by the server's clock.
    enrolled_at: Option<Timestamp>,
    /// Another living process of the same id, that has been told of.
    twin: Option<Holder>,
    /// Another service in the namespace, that has been told of.
    other: Option<(String, String)>,
    /// Members that read time zones from another version, as last told.
    pub(super) told_time_zones: Told,
    /// The jobs of a led group that this instance lacks, as last told.
    pub(super) uncovered: BTreeMap<Group, BTreeMap<String, String>>,
    /// When a leader makes way for a member that has more of the group's jobs.
    pub(super) making_way: BTreeMap<Group, Moment>,
    /// When to look next whether a group belongs elsewhere, and whether the roster is being read for that.
    pub(super) spread_at: Option<Moment>,
    pub(super) moving: bool,
}

impl Roster {
    /// Whether another process of the same id is alive, for certain.
    pub(super) fn has_twin(&self) -> bool {
        self.twin.is_some()
    }

    pub(super) fn longest_ttl(&self) -> Duration {
        self.longest_ttl
    }

    /// Whether somebody is a member of the fleet, as far as is known.
    pub(super) fn knows(&self, instance: &str) -> bool {
        self.members.iter().any(|member| member.instance == instance)
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

    /// What is held against the store's clock: the fleet is told, and judges.
    pub(super) fn set_doubt(&mut self, doubt: Doubt) {
        if std::mem::replace(&mut self.doubt, doubt) != doubt {
            self.renew_introduction();
        }
    }

    /// Shows a sign of life by then.
    pub(super) fn hurry(&mut self, by: Moment) {
        self.next = self.next.map(|at| at.min(by));
    }

    /// As the next engine finds it: no answer is on its way, and nothing is led.
    pub(super) fn kept(self) -> Self {
        Self {
            in_flight: false,
            next: None,
            reading: false,
            uncovered: BTreeMap::new(),
            making_way: BTreeMap::new(),
            moving: false,
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
        self.moves_turn(now);
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
        let doubt = self.roster.doubt;
        let introduction = self
            .roster
            .introduction
            .get_or_insert_with(|| fleet::introduction(config, started_at, draining, wedged, doubt));
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
                self.roster.introduce = false;
                self.sampled(now, sent, server);
                self.roster.other = None;
                let since = *self.roster.enrolled_at.get_or_insert(server);
                self.meet_twin(since, twin);
                if !std::mem::replace(&mut self.roster.enrolled, true) {
                    let instance = self.shared.config.instance.clone();
                    self.shared.tell(Event::Started { instance });
                    self.read_roster();
                } else if revision != self.roster.revision || self.observes(now) || self.skew.asks() {
                    self.read_roster();
                }
            }
            Ok(Enrolled::Introduce) => self.roster.introduce = true,
            Ok(Enrolled::OtherService { service, instance }) => {
                if let Some((ready, _)) = self.ready.take() {
                    let _ = ready.send(Err(Refused::OtherService { service, instance }));
                } else if self.roster.other.as_ref() != Some(&(service.clone(), instance.clone())) {
                    self.roster.other = Some((service.clone(), instance.clone()));
                    self.shared.tell(Event::OtherService { service, instance });
                }
            }
            Err(_) => {}
        }
    }

    /// Another process of this id is alive for certain when it has shown a sign of life since this one enrolled: the line of a
    /// predecessor is older.
    fn meet_twin(&mut self, since: Timestamp, twin: Option<Twin>) {
        let alive = twin.filter(|twin| twin.seen > since).map(|twin| twin.holder);
        if let Some(holder) = &alive
            && self.roster.twin.is_none()
        {
            let instance = self.shared.config.instance.clone();
            let other = holder.to_string();
            let exclusive = self.shared.config.exclusive_id;
            self.shared.tell(Event::DuplicateId {
                instance,
                other,
                exclusive,
            });
        }
        self.roster.twin = alive;
    }

    pub(super) fn read_roster(&mut self) {
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
            let changed = std::mem::replace(&mut self.roster.revision, roster.revision) != roster.revision;
            if changed {
                self.roster.spread_at = Some(now + self.shared.config.timing.ttl() * STAY);
            }
            self.roster.members = fleet::members(roster);
            let longest = self.roster.members.iter().map(|member| member.ttl).max();
            self.roster.longest_ttl = self.roster.longest_ttl.max(longest.unwrap_or_default()).min(MAX_TTL);
            self.compare_time_zones();
            self.judge_clock(now);
            for index in 0..self.groups.len() {
                self.place(index);
                self.look_for_uncovered(now, index);
                self.observe(index);
                self.review_followed(index);
                self.review_coverage(index);
            }
            // Nothing moves in a fleet that has just changed.
            if std::mem::take(&mut self.roster.moving) && !changed {
                self.move_one(now);
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

    pub(super) fn roster_wake(&self, now: Moment) -> Option<Moment> {
        let waiting = self.inspection.passed && !self.roster.in_flight && !self.is_leaving();
        let line = waiting.then(|| self.roster.next.unwrap_or(now));
        let moves = self
            .moves_at()
            .filter(|_| !self.roster.reading && self.stopping.is_none());
        [line, moves].into_iter().flatten().min()
    }

    /// Whether the roster line has been, or is being, taken out: a drain before that is still part of the fleet.
    fn is_leaving(&self) -> bool {
        self.stopping.as_ref().is_some_and(|stopping| stopping.leaving)
    }
}

//! Groups that belong to another instance: what a leader lacks is told, and it makes way.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::Engine;
use super::input::Group;
use super::roster::STAY;
use crate::clock::Moment;
use crate::election::StepDown;
use crate::event::Event;
use crate::runtime::fleet;

impl Engine {
    /// Tells of jobs that the leader of a group lacks, and plans to make way for a member that has them.
    pub(super) fn look_for_uncovered(&mut self, now: Moment, index: Group) {
        let state = &self.groups[index];
        if state.election.leading(now).is_none() {
            self.roster.uncovered.remove(&index);
            self.roster.making_way.remove(&index);
            self.shared.show_uncovered(state.gate.group(), &BTreeMap::new());
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
        self.shared.show_uncovered(group, &uncovered);
        self.roster.uncovered.insert(index, uncovered);
        if fleet::better_covered(&self.roster.members, own, group.as_str()).is_some() {
            let at = now + self.patience();
            self.roster.making_way.entry(index).or_insert(at);
        } else {
            self.roster.making_way.remove(&index);
        }
    }

    /// Groups that belong elsewhere move one at a time, and on what the roster says now: in a calm fleet to the instances that they
    /// prefer, so that not all stay with the one that was there first; and at any time to one that has more of their jobs.
    pub(super) fn moves_turn(&mut self, now: Moment) {
        if self.roster.reading || self.stopping.is_some() || self.moves_at().is_none_or(|at| now < at) {
            return;
        }
        let ttl = self.shared.config.timing.ttl();
        if let Some(at) = self.roster.spread_at.as_mut().filter(|at| now >= **at) {
            *at = now + ttl;
        }
        for at in self.roster.making_way.values_mut().filter(|at| now >= **at) {
            *at = now + ttl;
        }
        if !self.roster.making_way.is_empty() || self.leads_several(now) {
            self.roster.moving = true;
            self.read_roster();
        }
    }

    fn leads_several(&self, now: Moment) -> bool {
        let led = self.groups.iter().filter(|group| group.election.leading(now).is_some());
        led.count() > 1
    }

    pub(super) fn moves_at(&self) -> Option<Moment> {
        let spread = self.roster.spread_at.filter(|_| self.shared.config.spread);
        let making_way = self.roster.making_way.values().min().copied();
        [spread, making_way].into_iter().flatten().min()
    }

    /// Moves one group, after the roster has been read for that.
    pub(super) fn move_one(&mut self, now: Moment) {
        let ttl = self.shared.config.timing.ttl();
        let fresh = self.planning.store_at(now) - SignedDuration::try_from(ttl).unwrap_or_default();
        let found = (0..self.groups.len()).find_map(|index| self.belongs_to(now, index, fresh));
        let Some((index, term, member)) = found else {
            return;
        };
        self.roster.making_way.remove(&index);
        let group = self.groups[index].gate.group().clone();
        self.shared.tell(Event::MakingWay { group, term, member });
        self.groups[index].election.step_down(now, StepDown::Request);
    }

    /// Whom a group that is led here is to go to.
    fn belongs_to(&self, now: Moment, index: Group, fresh: Timestamp) -> Option<(Group, u64, String)> {
        let config = &self.shared.config;
        let state = &self.groups[index];
        let term = state.election.leading(now).filter(|_| state.draining.is_none())?;
        let (own, name, members) = (&config.holder, state.gate.group().as_str(), &self.roster.members);
        let led_for = now.since(state.leading_since);
        let spreads = config.spread && self.leads_several(now);
        let settled = spreads && led_for >= config.timing.ttl() * STAY && !self.is_busy(index);
        let better = fleet::better_covered(members, own, name).filter(|_| led_for >= self.patience());
        let member = better.or_else(|| fleet::preferred(members, name).filter(|_| settled))?;
        let moves = member.holder != *own && member.last_seen >= fresh;
        moves.then(|| (index, term, member.instance.clone()))
    }

    /// How long a leader waits before it makes way: whoever has just given the group up is out of its cool-down by then.
    pub(super) fn patience(&self) -> Duration {
        let timing = self.shared.config.timing;
        timing.ttl().max(timing.cool_down()) + timing.ttl() / 2
    }
}

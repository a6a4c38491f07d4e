//! Jobs whose schedule in force, as the store keeps it, is not the one that this instance has for them.

use std::sync::Arc;

use super::super::Engine;
use super::super::input::Group;
use crate::clock::Moment;
use crate::election::placement::Version;
use crate::event::Event;
use crate::runtime::fleet;
use crate::schedule::Schedule;
use crate::schedule::planner::{Change, Rule, StepKind};
use crate::store::{Claim, ClaimReply, StoredSchedule, UNLED};

impl Engine {
    /// How the ticks of a job are decided: by the schedule in force, with this instance's own policies.
    pub(super) fn rule_in_force(&self, job: usize, stored: &StoredSchedule) -> Rule {
        let own = &self.jobs[job].rule;
        let schedule = if stored.text == own.schedule.as_str() {
            own.schedule.clone()
        } else {
            // One that cannot be read is replaced before anything is decided.
            stored.text.parse().unwrap_or_else(|_| own.schedule.clone())
        };
        own.clone().with_schedule(schedule)
    }

    /// Follows the schedule in force, or sees to it that this instance's own comes into force.
    pub(super) fn follow(&mut self, job: usize, stored: StoredSchedule) {
        let spec = &self.jobs[job];
        let (group, name) = (spec.group.clone(), spec.name.clone());
        if stored.text == spec.rule.schedule.as_str() {
            self.ticks.followed.remove(&job);
            if self.may_change(job) && self.stands_for_more(job, &stored) {
                self.planner.change(job, Change::WhenDecided);
            }
            return;
        }
        if stored.text.parse::<Schedule>().is_err() {
            self.shared.tell(Event::ScheduleUnreadable {
                group,
                job: name,
                schedule: stored.text.clone(),
                version: stored.version.clone(),
            });
            self.ticks.followed.insert(job, stored);
            self.planner.change(job, Change::AtOnce);
            return;
        }
        let told = self.ticks.told_followed.get(&job) == Some(&stored.text);
        let (text, version) = (stored.text.clone(), stored.version.clone());
        self.ticks.followed.insert(job, stored);
        if !self.may_change(job) {
            // The leader of its group will.
        } else if !self.is_newer(job) {
            self.planner.change(job, Change::WhenDecided);
        } else if !told {
            self.ticks.told_followed.insert(job, text.clone());
            self.shared.tell(Event::ScheduleFollowed {
                group,
                job: name,
                schedule: text,
                version,
            });
        }
    }

    /// Whether the store is to hear that a newer version, or another time zone database, stands for the schedule in force.
    fn stands_for_more(&self, job: usize, stored: &StoredSchedule) -> bool {
        if self.jobs.is_made(job) {
            // Whoever made it stands for it.
            return false;
        }
        let config = &self.shared.config;
        let zoned = self.jobs[job].rule.schedule.zone().is_some_and(|zone| !zone.is_utc());
        let (own, theirs) = (Version::read(&config.version), Version::read(&stored.version));
        own > theirs || (own == theirs && zoned && stored.time_zones != config.time_zones)
    }

    /// Whether this instance may put another schedule in force: of jobs that need no leader, the leader of their group.
    fn may_change(&self, job: usize) -> bool {
        !self.is_unled(job) || self.leads_group(self.group_of[job])
    }

    /// Whether the followed schedule is that of a newer version that lives.
    fn is_newer(&self, job: usize) -> bool {
        let config = &self.shared.config;
        let spec = &self.jobs[job];
        self.ticks.followed.get(&job).is_some_and(|stored| {
            let members = &self.roster.members;
            // A newer version may have it by another name.
            [&spec.name, self.kept_as(job)].into_iter().any(|name| {
                let job = (spec.group.as_str(), name.as_str());
                fleet::newer_lives(members, &config.holder, job, &stored.version, &config.version)
            })
        })
    }

    /// The fleet has changed: what is followed is that of a newer version only while one lives.
    pub(in super::super) fn review_followed(&mut self, index: Group) {
        let state = &self.groups[index];
        let jobs = state.jobs.iter().chain(&state.unled.jobs).copied();
        for job in jobs.filter(|job| self.may_change(*job)).collect::<Vec<_>>() {
            let readable = |stored: &StoredSchedule| stored.text.parse::<Schedule>().is_ok();
            if self.ticks.followed.get(&job).is_some_and(readable) {
                let change = if self.is_newer(job) {
                    Change::No
                } else {
                    Change::WhenDecided
                };
                self.planner.change(job, change);
            }
        }
    }

    /// The schedule by which the job is planned at present.
    pub(super) fn text_in_force(&self, job: usize) -> Arc<str> {
        match self.ticks.followed.get(&job) {
            Some(stored) => stored.text.as_str().into(),
            None => self.jobs[job].rule.schedule.shared_text(),
        }
    }

    pub(super) fn text_to_adopt(&self, job: usize, kind: StepKind) -> Arc<str> {
        if kind == StepKind::Adopt {
            self.jobs[job].rule.schedule.shared_text()
        } else {
            Arc::default()
        }
    }

    /// What a change came to; or the store keeps another schedule than a tick was planned by, as after it has lost its last writes.
    pub(super) fn schedule_answered(
        &mut self,
        now: Moment,
        index: Group,
        term: u64,
        job: usize,
        claim: &Claim,
        reply: &ClaimReply,
    ) {
        if !self.plans_under(index, term) || self.groups[index].draining.is_some() {
            return;
        }
        match *reply {
            ClaimReply::Adopted { cursor } => {
                let spec = &self.jobs[job];
                let schedule = spec.rule.schedule.clone();
                self.planner.changed(job, schedule, cursor);
                if let Some(stored) = self.ticks.followed.remove(&job) {
                    self.shared.tell(Event::ScheduleChanged {
                        group: spec.group.clone(),
                        job: spec.name.clone(),
                        from: stored.text,
                        to: claim.adopts.to_string(),
                        since: cursor,
                    });
                    self.ticks.told_followed.remove(&job);
                    self.show_followed();
                }
            }
            ClaimReply::Moved { cursor, waiting } => {
                self.planner.answered(job, cursor);
                self.found_waiting(now, job, waiting);
            }
            _ if term == UNLED => self.read_unled_again(now, index),
            // All jobs of the group are read anew: where one schedule was lost the others were, too.
            _ if self.jobs.is_made(job) => self.look_at_made(now, index, job),
            _ => self.groups[index].take_over_again = Some(now),
        }
    }

    pub(super) fn show_followed(&self) {
        let jobs = &self.jobs;
        let followed = self.ticks.followed.iter();
        let followed = followed.map(|(job, stored)| (jobs[*job].name.clone(), stored.text.clone()));
        self.shared.show_followed(followed.collect());
    }
}

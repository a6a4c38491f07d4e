//! Jobs that need no leader: every instance that may run them plans their ticks, and whoever claims one first runs it.
//!
//! Each claim that comes too late costs one command and nothing else. Whatever has to be watched (runs that have fallen silent, ticks that
//! wait, pauses that end, schedules that change) is watched by the leader of the group alone, beside who runs the job at present: the
//! others look again when the next tick is due.

use std::sync::Arc;

use jiff::Timestamp;

use super::super::Engine;
use super::super::input::{Group, Input};
use crate::clock::Moment;
use crate::mutants::{Mutant, planted};
use crate::schedule::Schedule;
use crate::store::{Claim, ClaimReply, StoreError, TakeOver, TakenOver, UNLED, Want, Writer};

/// The jobs of one group that need no leader.
pub(in super::super) struct Unled {
    pub(in super::super) jobs: Vec<usize>,
    /// When to read their cursors; `None` while they are known, or being read.
    read_at: Option<Moment>,
}

impl Unled {
    pub(in super::super) fn new(jobs: Vec<usize>, now: Moment) -> Self {
        let read_at = (!jobs.is_empty()).then_some(now);
        Self { jobs, read_at }
    }

    /// Asks for a reading, unless there is nothing to read.
    fn read(&mut self, at: Moment) {
        if !self.jobs.is_empty() {
            self.read_at = Some(self.read_at.map_or(at, |other| other.min(at)));
        }
    }
}

impl Engine {
    pub(in super::super) fn is_unled(&self, job: usize) -> bool {
        self.jobs[job].is_unled()
    }

    /// Whether this instance leads a group, and is not giving it up.
    pub(in super::super) fn leads_group(&self, index: Group) -> bool {
        let state = &self.groups[index];
        state.draining.is_none() && state.taken_over.is_some_and(|term| state.gate.trusts(term))
    }

    /// Whether what was claimed under a term is planned here still: for jobs that need no leader, always.
    pub(in super::super) fn plans_under(&self, index: Group, term: u64) -> bool {
        term == UNLED || self.groups[index].taken_over == Some(term)
    }

    /// Whether a lost answer is asked for again.
    pub(in super::super) fn asks_on(&self, index: Group, term: u64) -> bool {
        match term {
            UNLED => self.stopping.is_none() && self.groups[index].draining.is_none(),
            term => self.groups[index].gate.trusts(term),
        }
    }

    /// Whether a run may begin that was claimed: after every wait the deadline is compared again.
    pub(in super::super) fn may_start(&self, now: Moment, index: Group, term: u64) -> bool {
        if planted(Mutant::BegunPastTrust) {
            return true;
        }
        match term {
            UNLED => now < self.unled_until(now) && !self.watch.is_wedged(),
            term => self.groups[index].gate.trusts(term),
        }
    }

    /// Until when the claims are trusted whose answers are being taken: from before they were first sent.
    pub(in super::super) fn unled_until(&self, now: Moment) -> Moment {
        let sent = self.ticks.answers_from.unwrap_or(now);
        sent + self.shared.config.timing.trust()
    }

    /// Whether this instance takes part in the races of a group.
    pub(in super::super) fn races(&self, index: Group) -> bool {
        let (config, state) = (&self.shared.config, &self.groups[index]);
        config.candidacy.has(state.gate.group())
            && self.roster.enrolled
            && self.stopping.is_none()
            && state.draining.is_none()
            && !self.watch.is_wedged()
            && !self.link.is_failing()
            && !self.holds_ticks()
            // One whose clock is astray leaves them to others; but somebody must be there whatever the clocks say.
            && (!self.skew.disagrees() || self.leads_group(index))
    }

    /// Whether the job needs no leader, and its group has another, or none.
    pub(in super::super) fn is_led_elsewhere(&self, job: usize) -> bool {
        self.is_unled(job) && !self.leads_group(self.group_of[job])
    }

    /// Whether the job's affairs are watched by others: its leader, or who runs it.
    pub(in super::super) fn is_watched_elsewhere(&self, job: usize) -> bool {
        self.is_led_elsewhere(job) && self.runs.alive(job).is_empty()
    }

    /// When an instance looks again at a job that others watch: with its next tick.
    pub(in super::super) fn with_the_next_tick(&self, now: Moment, job: usize) -> Timestamp {
        let at = self.planning.at(now);
        let next = self.planner.next_due(job, at);
        // Without one there is nothing more to race for.
        next.unwrap_or_else(|| self.planning.after(now, self.shared.config.timing.ttl()))
    }

    pub(in super::super) fn unled_wake(&self) -> Option<Moment> {
        let due = |index: &Group| self.groups[*index].unled.read_at.is_some() && self.races(*index);
        let due = (0..self.groups.len()).filter(due);
        due.filter_map(|index| self.groups[index].unled.read_at).min()
    }

    pub(in super::super) fn unled_turn(&mut self, now: Moment) {
        for index in 0..self.groups.len() {
            let due = self.groups[index].unled.read_at.is_some_and(|at| now >= at);
            if due && self.races(index) && !self.shared.config.manual_ticks {
                self.read_unled(now, index);
            }
        }
    }

    fn read_unled(&mut self, now: Moment, index: Group) {
        let config = &self.shared.config;
        let state = &mut self.groups[index];
        state.unled.read_at = None;
        let jobs = || state.unled.jobs.iter().map(|job| &self.jobs[*job]);
        let request = TakeOver {
            group: state.gate.group().clone(),
            holder: config.holder.clone(),
            term: UNLED,
            jobs: jobs().map(|job| job.name.clone()).collect(),
            schedules: jobs().map(|job| job.rule.schedule.shared_text()).collect(),
            writer: Writer::new(&config.version, &config.time_zones),
            elsewhere: None,
            was: jobs().map(|job| job.was.clone()).collect(),
            beside: (state.jobs.iter().filter(|job| !self.jobs.is_made(**job)))
                .map(|job| self.jobs[*job].name.clone())
                .collect(),
        };
        let store = Arc::clone(&self.store);
        self.ask(async move { store.take_over(request).await }, move |answer| {
            Input::TakenOver {
                group: index,
                term: UNLED,
                sent: now,
                jobs: Vec::new(),
                answer,
            }
        });
    }

    pub(in super::super) fn unled_read(
        &mut self,
        now: Moment,
        index: Group,
        sent: Moment,
        answer: Result<TakenOver, StoreError>,
    ) {
        self.heard(now, &answer);
        let Ok(TakenOver::Yours {
            now: server,
            cursors,
            waiting,
            open,
            schedules,
            kept,
            ..
        }) = answer
        else {
            let again = now + self.shared.config.timing.retry();
            self.groups[index].unled.read(again);
            return;
        };
        self.sampled(now, sent, server);
        let leads = self.leads_group(index);
        let found = cursors.into_iter().zip(waiting).zip(open).zip(schedules).zip(kept);
        for (job, ((((cursor, waiting), open), stored), kept)) in
            self.groups[index].unled.jobs.clone().into_iter().zip(found)
        {
            self.keep_as(job, kept);
            if !leads && stored.text.parse::<Schedule>().is_err() {
                // Its leader is to write another first.
                let later = now + self.shared.config.timing.ttl();
                self.groups[index].unled.read(later);
                continue;
            }
            let rule = self.rule_in_force(job, &stored);
            let begun = self.planning.at(now);
            self.planner.begin(job, rule, cursor, None, begun);
            self.follow(job, stored);
            if leads {
                self.tell_of_the_future(job, cursor, server);
                self.found_open(now, job, open);
            }
            if !self.is_watched_elsewhere(job) {
                self.found_waiting(now, job, waiting);
            }
        }
        self.requests_find_jobs(index);
        self.show_followed();
    }

    /// The schedule of a job is another than was thought.
    pub(in super::super) fn read_unled_again(&mut self, now: Moment, index: Group) {
        let soon = now + self.shared.config.timing.retry();
        self.groups[index].unled.read(soon);
    }

    /// The group is led here from now on: whatever its jobs without a leader need is looked at.
    pub(in super::super) fn led_unled(&mut self, now: Moment, index: Group) {
        self.groups[index].unled.read(now);
    }

    /// It is led no longer: what only a leader watches is left to the next one. Where it was drained its bodies end too.
    pub(in super::super) fn lost_unled(&mut self, index: Group, drained: bool) {
        for job in self.groups[index].unled.jobs.clone() {
            self.forget_tries_elsewhere(job);
            self.planner.withdraw_change(job);
            self.planner.waits_no_longer(job);
            self.planner.let_go(job);
        }
        if drained {
            self.end_unled_runs(Some(index));
        }
        // Some decisions may have been given up.
        let now = self.now();
        self.groups[index].unled.read(now);
    }

    /// What a claim came to that somebody else has got ahead of.
    pub(super) fn moved(&mut self, now: Moment, job: usize, cursor: Timestamp, waiting: Option<Timestamp>) {
        if !self.is_unled(job) {
            self.planner.answered(job, cursor);
            self.found_waiting(now, job, waiting);
            return;
        }
        tracing::trace!(job = %self.jobs[job].name, %cursor, "another instance was first");
        let index = self.group_of[job];
        self.planner.overtaken(job, cursor);
        self.pauses_overtaken(job, cursor);
        if !self.planner.is_tick(job, cursor) {
            // The schedule may be another by now.
            self.read_unled_again(now, index);
        }
        if !self.is_watched_elsewhere(job) {
            self.found_waiting(now, job, waiting);
        }
    }

    /// Leaders look whether the runs of others are alive, when they would have been silent for too long.
    pub(in super::super) fn watch_run_of_others(&mut self, now: Moment, job: usize, claim: &Claim, reply: &ClaimReply) {
        let decides = matches!(claim.want, Want::Run | Want::Owed | Want::Waited);
        let ours = matches!(reply, ClaimReply::Won { .. });
        if self.is_unled(job) && decides && !ours && self.leads_group(self.group_of[job]) {
            let silent = self.silence() + self.shared.config.timing.margin();
            self.watch_from(job, now + silent);
        }
    }

    /// How long a run may be silent before its runner cannot trust it any more, or is gone: as long as the longest lease or claim of the
    /// fleet lives. Signs of life come as often as the runner's own TTL asks for.
    pub(in super::super) fn silence(&self) -> std::time::Duration {
        self.roster.longest_ttl().max(self.shared.config.timing.ttl())
    }
}

//! What people ask of the groups that are led here: heard of, read once, told, and met.
//!
//! The store's claims judge; what is known here only saves round trips and says when to look.

mod requests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::Engine;
use super::input::{Group, Input};
use crate::clock::Moment;
use crate::event::Event;
use crate::job::outcome::Outcome;
use crate::schedule::Schedule;
use crate::schedule::missed::Passed;
use crate::store::{Claim, ClaimReply, Deed, GroupControl, Pause, StoreError, Want};
use requests::Open;

/// How much later than a pause's end the ticks are looked at: this clock may be a little ahead of the store's.
const AFTER_END: Duration = Duration::from_millis(20);

/// What is known of one group in the present leadership.
#[derive(Default)]
pub(super) struct Control {
    /// The number of the newest act that was read.
    known: u64,
    /// Something was heard while a read was under way, which may be older.
    wanted: bool,
    reading: bool,
    read_at: Option<Moment>,
    pauses: Vec<Pause>,
    /// Those that are over, and speak for ticks that nobody has decided.
    ended: Vec<Pause>,
    open: Vec<Open>,
    /// The jobs whose ticks stay open.
    held: BTreeSet<usize>,
    /// Where the store has parted spans, by the pauses that it goes by; not all of those need be readable here.
    parted: BTreeMap<usize, BTreeSet<Timestamp>>,
}

/// How many such instants are remembered of each job. More only part what need not be.
const PARTED: usize = 64;

impl Engine {
    /// The store has told the number of the newest act.
    pub(super) fn control_heard(&mut self, index: Group, number: u64) {
        if number == 0 {
            self.made_heard(index, 0);
        }
        if self.groups[index].control.known != number {
            self.read_control(index);
        }
    }

    fn read_control(&mut self, index: Group) {
        let state = &mut self.groups[index];
        let Some(term) = state.taken_over else { return };
        let control = &mut state.control;
        control.read_at = None;
        if std::mem::replace(&mut control.reading, true) {
            control.wanted = true;
            return;
        }
        control.wanted = false;
        let group = state.gate.group().clone();
        let store = Arc::clone(&self.store);
        self.ask(async move { store.control(&group).await }, move |answer| {
            Input::ControlRead {
                group: index,
                term,
                answer,
            }
        });
    }

    pub(super) fn control_read(
        &mut self,
        now: Moment,
        index: Group,
        term: u64,
        answer: Result<GroupControl, StoreError>,
    ) {
        self.heard(now, &answer);
        if self.groups[index].taken_over != Some(term) {
            return;
        }
        self.groups[index].control.reading = false;
        let Ok(read) = answer else {
            self.groups[index].control.read_at = Some(now + self.shared.config.timing.retry());
            return;
        };
        self.tell_control(index, &read);
        let open = self.merge_requests(now, index, read.requests);
        let control = &mut self.groups[index].control;
        if control.known != read.number {
            control.parted.clear();
        }
        control.known = read.number;
        control.pauses = read.pauses;
        control.ended = read.ended;
        control.open = open;
        for job in std::mem::take(&mut control.held) {
            // One that is held still is told so by its next claim.
            self.planner.let_go(job);
        }
        if self.groups[index].control.wanted {
            self.read_control(index);
        }
        self.made_heard(index, read.made);
    }

    /// Tells what is new, and what is no more.
    fn tell_control(&self, index: Group, read: &GroupControl) {
        let state = &self.groups[index];
        let group = state.gate.group();
        let known = &state.control;
        for pause in &read.pauses {
            if !known.pauses.iter().any(|other| other.number == pause.number) {
                self.shared.tell(Event::Paused {
                    group: group.clone(),
                    pause: pause.clone(),
                });
            }
        }
        for pause in &known.pauses {
            if !read.pauses.iter().any(|other| other.job == pause.job) {
                let resumed = read
                    .acts
                    .iter()
                    .find(|act| act.number > known.known && act.job == pause.job && matches!(act.deed, Deed::Resume));
                let words = resumed.map(|act| (act.by.clone(), act.reason.clone()));
                let (by, reason) = words.unwrap_or_default();
                self.shared.tell(Event::Resumed {
                    group: group.clone(),
                    job: pause.job.clone(),
                    by,
                    reason,
                });
            }
        }
        for request in &read.requests {
            if !known.open.iter().any(|open| open.request.id == request.id) {
                self.shared.tell(Event::Requested {
                    group: group.clone(),
                    request: request.clone(),
                });
            }
        }
    }

    /// The spans that have passed, each on one side of every pause's beginning and end: a claim settles them by their parts.
    pub(super) fn split_at_pauses(&self, job: usize, passed: &[Passed]) -> Vec<Passed> {
        let mut spans = passed.to_vec();
        if spans.is_empty() {
            return spans;
        }
        let spec = &self.jobs[job];
        // The spans are those of the schedule in force.
        let rule = self.planner.rule(job).unwrap_or(&spec.rule);
        let parted = self.groups[self.group_of[job]].control.parted.get(&job);
        let edges = self.pauses_of(job).flat_map(Pause::edges);
        for edge in edges.chain(parted.into_iter().flatten().copied()) {
            let split = |span: Passed| split(&rule.schedule, span, edge);
            spans = spans.into_iter().flat_map(split).collect();
        }
        spans
    }

    /// The pauses that speak for a job, over or not, as far as they are known here.
    fn pauses_of(&self, job: usize) -> impl Iterator<Item = &Pause> {
        let control = &self.groups[self.group_of[job]].control;
        let name = self.kept_as(job);
        let all = control.pauses.iter().chain(&control.ended);
        all.filter(move |pause| pause.concerns(name))
    }

    /// What the store has made of a span that a claim settled along the way.
    pub(super) fn outcome_of(&self, job: usize, passed: &Passed) -> Outcome {
        if self.pauses_of(job).any(|pause| pause.skips(passed.first)) {
            Outcome::Paused
        } else {
            Outcome::from(passed.reason)
        }
    }

    /// What a claim came to that a pause has judged; whether one has.
    pub(super) fn answered_in_a_pause(
        &mut self,
        now: Moment,
        index: Group,
        term: u64,
        job: usize,
        claim: &Claim,
        reply: &ClaimReply,
    ) -> bool {
        let judged = matches!(
            reply,
            ClaimReply::Paused { .. } | ClaimReply::Held { .. } | ClaimReply::Split { .. }
        );
        let outside = matches!(claim.want, Want::Extra(_));
        let planned = self.plans_under(index, term) && !outside;
        if !judged {
            return false;
        }
        if planned && claim.want == Want::Waited {
            self.waited(now, job, claim, reply);
        }
        match reply {
            ClaimReply::Paused { since } => {
                self.tell_paused(job, claim, *since);
                if planned && claim.want != Want::Waited {
                    self.planner.answered(job, claim.tick);
                }
            }
            // Only a leader hears of the end of a pause, whoever runs the job at present.
            ClaimReply::Held { .. } | ClaimReply::Split { .. } if planned && self.is_led_elsewhere(job) => {
                let next = self.with_the_next_tick(now, job);
                self.planner.leave(job, next);
            }
            ClaimReply::Held { until } if planned => {
                self.groups[index].control.held.insert(job);
                let soonest = self.planning.after(now, AFTER_END);
                self.planner.hold(job, until.map(|until| until.max(soonest)));
            }
            ClaimReply::Split { since } if planned => {
                // The pause is to be known first.
                let control = &mut self.groups[index].control;
                control.held.insert(job);
                let parted = control.parted.entry(job).or_default();
                parted.insert(*since);
                if parted.len() > PARTED {
                    parted.pop_first();
                }
                self.planner.hold(job, None);
                self.read_control(index);
            }
            _ => {}
        }
        true
    }

    /// What a claim in a pause has settled.
    fn tell_paused(&mut self, job: usize, claim: &Claim, since: Timestamp) {
        self.pauses_ended(job);
        for passed in &claim.passed {
            // The pause that the store tells of may not be known here yet.
            let outcome = if since <= passed.first && passed.first <= claim.tick {
                Outcome::Paused
            } else {
                self.outcome_of(job, passed)
            };
            self.decided(job, (passed.first, passed.last, passed.count), outcome);
        }
        if claim.want == Want::Settle {
            return;
        }
        let waited = self.planner.waits_no_longer(job).filter(|tick| *tick != claim.tick);
        for tick in waited.into_iter().chain([claim.tick]) {
            self.decided(job, (tick, tick, 1), Outcome::Paused);
        }
    }

    pub(super) fn control_wake(&self) -> Option<Moment> {
        let controls = self.groups.iter().map(|state| &state.control);
        let wakes = controls.flat_map(|control| control.read_at.into_iter().chain(control.next_look()));
        wakes.min()
    }

    pub(super) fn control_turn(&mut self, now: Moment) {
        for index in 0..self.groups.len() {
            let control = &self.groups[index].control;
            if control.read_at.is_some_and(|at| now >= at) {
                self.read_control(index);
            }
            if !self.groups[index].control.open.is_empty() {
                self.requests_turn(now, index);
            }
        }
    }
}

/// A span in two, where an instant lies within it.
fn split(schedule: &Schedule, span: Passed, at: Timestamp) -> Vec<Passed> {
    let instant = SignedDuration::from_nanos(1);
    let (before_first, before_at) = (span.first - instant, at - instant);
    if at <= span.first || span.last < at {
        return vec![span];
    }
    let (Some(last), Some(first)) = (schedule.prev(before_at), schedule.next(before_at)) else {
        return vec![span];
    };
    let count = schedule.count(before_first, before_at);
    let earlier = Passed { last, count, ..span };
    let later = Passed {
        first,
        count: span.count.saturating_sub(count),
        ..span
    };
    vec![earlier, later]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::missed::MissedReason;

    #[test]
    fn a_span_over_the_beginning_of_a_pause_is_two_of_the_same_sum() {
        let schedule = Schedule::every("10s").unwrap();
        let at = |second| Timestamp::from_second(second).unwrap();
        let span = Passed {
            reason: MissedReason::Coalesced.into(),
            first: at(10),
            last: at(100),
            count: 10,
        };
        let parts = |since| -> Vec<_> {
            let parts = split(&schedule, span, since);
            parts.iter().map(|part| (part.first, part.last, part.count)).collect()
        };
        assert_eq!(parts(at(35)), [(at(10), at(30), 3), (at(40), at(100), 7)]);
        // A tick at the beginning belongs to the pause.
        assert_eq!(parts(at(40)), [(at(10), at(30), 3), (at(40), at(100), 7)]);
        assert_eq!(parts(at(100)), [(at(10), at(90), 9), (at(100), at(100), 1)]);
        for whole in [at(10), at(5), at(101)] {
            assert_eq!(parts(whole), [(at(10), at(100), 10)]);
        }
    }
}

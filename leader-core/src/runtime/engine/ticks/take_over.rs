//! What a new leader must know of its jobs.

use std::sync::Arc;

use jiff::SignedDuration;

use super::super::Engine;
use super::super::input::{Group, Input};
use super::coverage::removed_since;
use crate::clock::Moment;
use crate::mutants::{Mutant, planted};
use crate::schedule::planner::Gaps;
use crate::store::coverage::gaps;
use crate::store::{StoreError, TakeOver, TakenOver, UNLED, Writer};

impl Engine {
    /// Asks for the cursors of a group that is led anew.
    pub(in super::super) fn take_over(&mut self, now: Moment, index: Group, term: u64) {
        let state = &mut self.groups[index];
        state.taken_over = Some(term);
        state.take_over_again = None;
        if self.shared.config.manual_ticks {
            return;
        }
        // Those made at run time are asked for when they have been read.
        let jobs: Vec<_> = (state.jobs.iter().copied())
            .filter(|job| !self.jobs.is_made(*job))
            .collect();
        if jobs.is_empty() && self.shared.config.handlers.is_empty() {
            // There are no cursors to ask for, and perhaps jobs that others have had.
            self.tell_coverage(index, term);
            return;
        }
        if self.skew.holds(&self.planning) {
            // A new job would begin at an instant that is not the fleet's.
            state.take_over_again = Some(now + self.shared.config.timing.retry());
            return;
        }
        let elsewhere = self.tells_elsewhere(index, term);
        let (config, state) = (&self.shared.config, &self.groups[index]);
        let request = TakeOver {
            elsewhere,
            was: jobs.iter().map(|job| self.jobs[*job].was.clone()).collect(),
            beside: (state.unled.jobs.iter())
                .map(|job| self.jobs[*job].name.clone())
                .collect(),
            group: state.gate.group().clone(),
            holder: config.holder.clone(),
            term,
            jobs: jobs.iter().map(|job| self.jobs[*job].name.clone()).collect(),
            schedules: (jobs.iter())
                .map(|job| self.jobs[*job].rule.schedule.shared_text())
                .collect(),
            writer: Writer::new(&config.version, &config.time_zones),
        };
        let store = Arc::clone(&self.store);
        self.ask(async move { store.take_over(request).await }, move |answer| {
            Input::TakenOver {
                group: index,
                term,
                sent: now,
                jobs,
                answer,
            }
        });
    }

    pub(in super::super) fn taken_over(
        &mut self,
        now: Moment,
        index: Group,
        term: u64,
        sent: Moment,
        jobs: Vec<usize>,
        answer: Result<TakenOver, StoreError>,
    ) {
        if term == UNLED {
            self.unled_read(now, index, sent, answer);
            return;
        }
        self.heard(now, &answer);
        let state = &mut self.groups[index];
        let current = state.taken_over == Some(term) && state.draining.is_none();
        if !current || !state.gate.trusts(term) {
            return;
        }
        let made = jobs.first().is_some_and(|job| self.jobs.is_made(*job));
        if made {
            self.made_answered(now, index, &jobs, answer.is_err());
        }
        match answer {
            Ok(TakenOver::Yours {
                now: server,
                late_from,
                cursors,
                waiting,
                open,
                schedules,
                control,
                absences,
                kept,
            }) => {
                self.sampled(now, sent, server);
                let config = &self.shared.config;
                let hand_over = config.drain.saturating_add(2 * config.timing.ttl());
                let hand_over = SignedDuration::try_from(hand_over).unwrap_or(SignedDuration::MAX);
                // A drain excuses its own length and a hand-over. What fell due while nobody led for longer is missed.
                let late_from = late_from.filter(|from| server.duration_since(*from) <= hand_over);
                let found = cursors
                    .into_iter()
                    .zip(waiting)
                    .zip(open)
                    .zip(schedules)
                    .zip(absences)
                    .zip(kept);
                for (job, (((((cursor, waiting), mut open), stored), absences), kept)) in jobs.into_iter().zip(found) {
                    if made && (stored.text.is_empty() || !self.groups[index].jobs.contains(&job)) {
                        // It has ended meanwhile.
                        continue;
                    }
                    self.keep_as(job, kept);
                    let mut rule = self.rule_in_force(job, &stored);
                    rule.gaps = Gaps::new(gaps(&absences, server), cursor);
                    // One that was left behind with a job that the fleet gave up is coalesced by the next.
                    let waiting = waiting.filter(|tick| !removed_since(&absences, *tick));
                    self.tell_of_the_future(job, cursor, server);
                    let begun = self.planning.at(now);
                    self.planner.begin(job, rule, cursor, late_from, begun);
                    self.follow(job, stored);
                    self.found_waiting(now, job, waiting);
                    if planted(Mutant::OpenRunsUnwatched) {
                        open.silent_in = None;
                    }
                    if planted(Mutant::PausesForgotten) {
                        open.pausing.clear();
                    }
                    self.found_open(now, job, open);
                }
                self.show_followed();
                self.requests_find_jobs(index);
                self.control_heard(index, control);
            }
            // The next renewal says the same, and demotes.
            Ok(TakenOver::NotYours) => {}
            Err(_) if made => {}
            Err(_) => self.groups[index].take_over_again = Some(now + self.shared.config.timing.retry()),
        }
    }

    /// Stops planning a group's jobs: the cursors are read anew at the next term.
    pub(in super::super) fn forget_ticks(&mut self, index: Group) {
        self.ticks.coverage.forget(index);
        let group = self.groups[index].gate.group();
        self.shared.show_uncovered(group, &std::collections::BTreeMap::new());
        for job in &self.groups[index].jobs {
            self.planner.end(*job);
            self.places.forget(*job);
            self.ticks.tries.forget(*job);
            self.ticks.followed.remove(job);
        }
        self.show_followed();
    }
}

//! From due ticks to claims, and from claims to runs.

mod ahead;
mod claims;
mod coverage;
#[cfg(feature = "testing")]
mod extra;
mod followed;
mod patience;
mod take_over;
mod tries;
mod under_way;
mod unled;
mod waiting;

#[cfg(feature = "testing")]
pub(super) use extra::ByHand;
pub(super) use tries::Failed;
pub(super) use unled::Unled;

use std::collections::BTreeMap;

use tokio::sync::oneshot;

use super::Engine;
use super::input::Group;
use crate::clock::Moment;
use crate::job::outcome::Outcome;
use crate::job::tick::Origin;
use crate::mutants::{Mutant, planted};
use crate::names::JobName;
use crate::store::{Claim, ClaimBatch, ClaimReply, Claimed, StoreError, StoredSchedule, Want};

/// The claims under way.
#[derive(Default)]
pub(super) struct Ticks {
    last_number: u64,
    /// The number of the first claim of this engine.
    first: u64,
    /// When the claims were first sent whose answers are being taken.
    pub(super) answers_from: Option<Moment>,
    last_id: u64,
    flights: BTreeMap<u64, Flight>,
    tries: tries::Tries,
    coverage: coverage::Coverage,
    /// The names under which the store keeps jobs that a newer version has renamed.
    kept: BTreeMap<usize, JobName>,
    /// What the store keeps of the jobs whose schedule in force is not the one that this instance has for them.
    followed: BTreeMap<usize, StoredSchedule>,
    /// The schedules of newer versions that were told of.
    told_followed: BTreeMap<usize, String>,
}

/// Who waits for a run that was asked for.
pub(super) type Asker = oneshot::Sender<Result<(Outcome, String), String>>;

/// One round trip of claims.
#[derive(Debug, Default)]
struct Flight {
    /// When it was first sent.
    since: Option<Moment>,
    batches: Vec<(Group, ClaimBatch)>,
    /// The job of each claim, by batch.
    jobs: Vec<Vec<usize>>,
    /// Set when the answer failed: ask again, the same way.
    again_at: Option<Moment>,
    asker: Option<Asker>,
}

impl Ticks {
    /// Those of an engine that follows another, which claimed up to this number.
    pub(super) fn after(last_number: u64) -> Self {
        Self {
            last_number,
            first: last_number + 1,
            ..Self::default()
        }
    }

    /// The number of the last claim.
    pub(super) fn last_claim(&self) -> u64 {
        self.last_number
    }

    /// Whether a claim of the group waits for its answer.
    pub(super) fn has_claims(&self, group: Group) -> bool {
        self.flights
            .values()
            .any(|flight| flight.batches.iter().any(|(other, _)| *other == group))
    }

    /// The lowest number of the group's claims that wait for their answer, `new` ones included.
    fn lowest_under_way(&self, group: Group, new: &[Claim]) -> u64 {
        let batches = self.flights.values().flat_map(|flight| &flight.batches);
        let waiting = batches
            .filter(|(other, _)| *other == group)
            .flat_map(|(_, batch)| &batch.claims);
        let lowest = waiting.chain(new).map(|claim| claim.number).min();
        lowest.unwrap_or(u64::MAX)
    }
}

impl Engine {
    pub(super) fn ticks_wake(&mut self, now: Moment) -> Option<Moment> {
        let planned = self.planner.next_wake().filter(|_| !self.holds_ticks());
        let late = if planted(Mutant::ClaimsLate) { 4 } else { 0 };
        let early = jiff::SignedDuration::from_secs(if planted(Mutant::EarlyTimer) { 5 } else { -late });
        let planned = planned.map(|at| self.planning.moment_of(at - early, now));
        let again = self.ticks.flights.values().filter_map(|flight| flight.again_at).min();
        let told = self.ticks.coverage.next_wake();
        let wakes = planned.into_iter().chain(again).chain(told);
        wakes.chain(self.tries_wake(now)).min()
    }

    pub(super) fn ticks_turn(&mut self, now: Moment) {
        for index in 0..self.groups.len() {
            let state = &self.groups[index];
            if let (Some(term), Some(_)) = (state.taken_over, state.take_over_again.filter(|at| now >= *at)) {
                self.take_over(now, index, term);
            }
        }
        self.coverage_turn(now);
        let held = self.holds_ticks();
        self.tries_turn(now, held);
        // A claim that overtakes the result of the run before it would find that run open.
        let due = if held { Vec::new() } else { self.due(now) };
        if !due.is_empty() {
            let flight = self.claims(due);
            self.send_claims(now, flight);
        }
        let again: Vec<u64> = (self.ticks.flights.iter())
            .filter(|(_, flight)| flight.again_at.is_some_and(|at| now >= at))
            .map(|(id, _)| *id)
            .collect();
        for id in again {
            let Some(mut flight) = self.ticks.flights.remove(&id) else {
                continue;
            };
            if held && !self.keeps_on(now, &mut flight) {
                continue;
            }
            if flight.jobs.iter().flatten().any(|job| self.runs.is_untold(*job)) {
                flight.again_at = Some(now + self.shared.config.timing.retry());
                self.ticks.flights.insert(id, flight);
            } else {
                self.send_claims(now, flight);
            }
        }
    }

    pub(super) fn claimed(&mut self, now: Moment, id: u64, answers: Vec<Result<Claimed, StoreError>>) {
        let Some(flight) = self.ticks.flights.remove(&id) else {
            return;
        };
        let mut again = Flight {
            since: flight.since,
            again_at: Some(now + self.shared.config.timing.retry()),
            ..Flight::default()
        };
        let mut asker = flight.asker;
        self.ticks.answers_from = flight.since;
        for (((index, batch), jobs), answer) in flight.batches.into_iter().zip(flight.jobs).zip(answers) {
            self.heard(now, &answer);
            match answer {
                Ok(Claimed::Yours(replies)) => {
                    for ((claim, job), reply) in batch.claims.iter().zip(jobs).zip(replies) {
                        self.watch_run_of_others(now, job, claim, &reply);
                        self.claim_answered(now, index, batch.term, claim, job, reply, &mut asker);
                    }
                }
                // The same claims again, which get the same answer: while the leadership lasts.
                Err(_) if self.asks_on(index, batch.term) => {
                    let (batch, jobs) = self.still_in_time(now, again.since.unwrap_or(now), batch, jobs);
                    if !jobs.is_empty() {
                        again.batches.push((index, batch));
                        again.jobs.push(jobs);
                    }
                }
                // The next renewal says the same, and demotes.
                Ok(Claimed::NotYours) | Err(_) => {}
            }
        }
        self.spawn_runs();
        if !again.batches.is_empty() {
            again.asker = asker;
            self.ticks.last_id += 1;
            self.ticks.flights.insert(self.ticks.last_id, again);
        } else if let Some(asker) = asker {
            let _ = asker.send(Err("this instance no longer leads the group of the job".to_owned()));
        }
    }

    #[allow(clippy::too_many_arguments, reason = "one claim and everything its answer touches")]
    fn claim_answered(
        &mut self,
        now: Moment,
        index: Group,
        term: u64,
        claim: &Claim,
        job: usize,
        reply: ClaimReply,
        asker: &mut Option<Asker>,
    ) {
        if let Want::Retry { fence, tries } = claim.want {
            self.retry_answered(now, (index, term), claim, job, (fence, tries), &reply);
            return;
        }
        if reply == ClaimReply::OtherSchedule || claim.want == Want::Adopt {
            self.schedule_answered(now, index, term, job, claim, &reply);
            return;
        }
        self.request_answered(now, index, term, claim, &reply);
        if self.answered_in_a_pause(now, index, term, job, claim, &reply) {
            return;
        }
        let planned = self.plans_under(index, term) && !matches!(claim.want, Want::Extra(_));
        if planned && claim.want == Want::Waited {
            self.waited(now, job, claim, &reply);
        }
        let scheduled = matches!(claim.want, Want::Run | Want::Owed | Want::Settle);
        let planned = planned && scheduled;
        let moved = matches!(
            reply,
            ClaimReply::Won { .. } | ClaimReply::Overlapped | ClaimReply::Waits | ClaimReply::Passed
        );
        if moved && scheduled {
            self.coalesce(job, claim.want);
            self.pauses_ended(job);
            for passed in &claim.passed {
                let outcome = self.outcome_of(job, passed);
                self.decided(job, (passed.first, passed.last, passed.count), outcome);
            }
        }
        match reply {
            ClaimReply::Won { fence } => {
                let state = &mut self.groups[index];
                state.known = state.known.max(fence);
                let origin = match claim.want {
                    Want::Extra(origin) => origin,
                    _ => Origin::Schedule,
                };
                // After every wait the deadline is compared again: a claim that was won too late is not started.
                if self.may_start(now, index, term) {
                    let owed = claim.want == Want::Owed;
                    self.start_run(now, index, term, job, claim.tick, fence, origin, owed, 1, asker.take());
                } else {
                    self.not_started(index, term, fence, job, claim.tick, origin, 1, asker.take());
                }
                if planned && claim.want == Want::Owed {
                    self.planner.rest(job, claim.tick);
                } else if planned {
                    self.planner.answered(job, claim.tick);
                }
            }
            ClaimReply::Overlapped | ClaimReply::Passed => {
                if reply == ClaimReply::Overlapped {
                    self.decided(job, (claim.tick, claim.tick, 1), Outcome::OverlapSkipped);
                }
                if planned {
                    self.planner.answered(job, claim.tick);
                }
            }
            ClaimReply::Waits => {
                if planned {
                    self.planner.answered(job, claim.tick);
                    self.look_again_at_waiting(now, job, claim.tick);
                }
            }
            ClaimReply::Replacing => {
                if !planted(Mutant::ReplacedGoesOn) {
                    self.runs.replace(index, job);
                }
                if planned {
                    self.pause(now, job, claim.cursor);
                }
            }
            ClaimReply::Busy => {
                if let Some(asker) = asker.take() {
                    let _ = asker.send(Err(format!("an earlier run of `{}` has not ended", claim.job)));
                } else if planned {
                    self.pause(now, job, claim.cursor);
                }
            }
            ClaimReply::Looked(found) => {
                if self.plans_under(index, term) {
                    self.found_open(now, job, found);
                }
            }
            ClaimReply::Moved { cursor, waiting } => {
                if planned {
                    self.moved(now, job, cursor, waiting);
                }
            }
            // Only of a retry; and what was answered above.
            ClaimReply::Early { .. }
            | ClaimReply::OtherSchedule
            | ClaimReply::Adopted { .. }
            | ClaimReply::Paused { .. }
            | ClaimReply::Held { .. }
            | ClaimReply::Split { .. }
            | ClaimReply::Gone => {}
        }
    }
}

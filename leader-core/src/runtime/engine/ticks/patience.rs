//! How long a claim without an answer is asked again.

use std::collections::BTreeSet;

use super::super::Engine;
use super::Flight;
use crate::clock::Moment;
use crate::store::{Claim, ClaimBatch, Want};

impl Engine {
    /// Keeps what is asked again the same way, and has the rest planned anew: its ticks are missed by now, and the policy decides.
    ///
    /// Should a claim that is given up have been taken all the same, the next one finds the cursor moved, and settles its run as
    /// not started.
    pub(super) fn still_in_time(
        &mut self,
        now: Moment,
        since: Moment,
        mut batch: ClaimBatch,
        jobs: Vec<usize>,
    ) -> (ClaimBatch, Vec<usize>) {
        let claims = std::mem::take(&mut batch.claims);
        // The ticks of one job are decided in order: all of its claims are given up, or none.
        let given_up: BTreeSet<usize> = (claims.iter().zip(&jobs))
            .filter(|(claim, job)| !self.is_in_time(now, since, claim, **job))
            .map(|(_, job)| *job)
            .collect();
        let mut kept = Vec::new();
        for (claim, job) in claims.into_iter().zip(jobs) {
            if !given_up.contains(&job) {
                batch.claims.push(claim);
                kept.push(job);
            }
        }
        for job in given_up {
            self.planner.again(job);
        }
        (batch, kept)
    }

    /// Whether anything of a flight is asked again while no tick may be claimed; its ticks are planned anew when they may.
    pub(super) fn keeps_on(&mut self, now: Moment, flight: &mut Flight) -> bool {
        let since = flight.since.unwrap_or(now);
        let jobs = std::mem::take(&mut flight.jobs);
        for ((index, batch), jobs) in std::mem::take(&mut flight.batches).into_iter().zip(jobs) {
            let (batch, jobs) = self.still_in_time(now, since, batch, jobs);
            if !jobs.is_empty() {
                flight.batches.push((index, batch));
                flight.jobs.push(jobs);
            }
        }
        !flight.batches.is_empty()
    }

    fn is_in_time(&self, now: Moment, since: Moment, claim: &Claim, job: usize) -> bool {
        if matches!(claim.want, Want::Extra(_) | Want::Retry { .. } | Want::Look) {
            return true;
        }
        if self.holds_ticks() {
            return false;
        }
        let timing = self.shared.config.timing;
        // One lost answer, or two, are no reason: the same claim gets the same answer.
        if now.since(since) <= 2 * (timing.operation() + timing.retry()) {
            return true;
        }
        let rule = self.planner.rule(job);
        claim.want == Want::Run && rule.is_some_and(|rule| rule.is_in_time(claim.tick, self.planning.at(now)))
    }
}

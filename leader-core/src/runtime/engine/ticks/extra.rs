//! Runs outside the schedule.

use jiff::Timestamp;

use super::super::Engine;
use super::{Asker, Flight};
use crate::clock::Moment;
use crate::job::tick::Origin;
use crate::store::{Claim, Overlap, Want};

impl Engine {
    /// Claims a run outside the schedule.
    pub(in super::super) fn claim_extra(&mut self, now: Moment, job: usize, at: Timestamp, asker: Asker) {
        let name = self.shared.config.jobs[job].name.clone();
        let index = self.group_of[job];
        let state = &self.groups[index];
        if state.draining.is_some() || !state.taken_over.is_some_and(|term| state.gate.trusts(term)) {
            let _ = asker.send(Err(format!("this instance does not lead the group of `{name}`")));
            return;
        }
        self.ticks.last_number += 1;
        let claim = Claim {
            alive: self.runs.alive(job),
            job: name,
            number: self.ticks.last_number,
            tick: at,
            cursor: at,
            want: Want::Extra(Origin::Manual),
            overlap: Overlap::Skip,
            passed: Vec::new(),
        };
        let flight = Flight {
            batches: vec![(index, self.batch(index, vec![claim]))],
            jobs: vec![vec![job]],
            asker: Some(asker),
            ..Flight::default()
        };
        self.send_claims(now, flight);
    }
}

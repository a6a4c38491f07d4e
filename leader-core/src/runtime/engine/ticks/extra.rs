//! Runs outside the schedule.

use jiff::Timestamp;

use super::super::Engine;
use super::{Asker, Flight};
use crate::clock::Moment;
use crate::job::tick::Origin;
use crate::store::{Claim, Overlap, Want};

/// A run that was asked for: the job, the instant that names it, and who waits.
pub(in super::super) type ByHand = (usize, Timestamp, Asker);

impl Engine {
    /// Claims what was asked for, as far as there are places: somebody waits, and ticks come after.
    pub(in super::super) fn by_hand_turn(&mut self, now: Moment) {
        while let Some((job, _, _)) = self.places.by_hand.front() {
            if self.leads(*job) && !self.has_place_for(*job) {
                break;
            }
            if let Some((job, at, asker)) = self.places.by_hand.pop_front() {
                self.claim_by_hand(now, job, at, asker);
            }
        }
    }

    fn leads(&self, job: usize) -> bool {
        let index = self.group_of[job];
        if self.is_unled(job) {
            self.races(index)
        } else {
            self.leads_group(index)
        }
    }

    /// Claims a run outside the schedule, as soon as there is a place.
    pub(in super::super) fn claim_extra(&mut self, now: Moment, job: usize, at: Timestamp, asker: Asker) {
        self.places.by_hand.push_back((job, at, asker));
        self.by_hand_turn(now);
    }

    fn claim_by_hand(&mut self, now: Moment, job: usize, at: Timestamp, asker: Asker) {
        let name = self.kept_as(job).clone();
        let index = self.group_of[job];
        if !self.leads(job) {
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
            further: None,
            schedule: "".into(),
            adopts: "".into(),
            meets: None,
        };
        let flight = Flight {
            batches: vec![(index, self.batch(index, self.is_unled(job), vec![claim]))],
            jobs: vec![vec![job]],
            asker: Some(asker),
            ..Flight::default()
        };
        self.send_claims(now, flight);
    }
}

//! What is asked of the store about the ticks that are due.

use std::collections::BTreeMap;

use super::super::Engine;
use super::super::input::Group;
use super::Flight;
use crate::schedule::planner::{Step, StepKind};
use crate::store::{Claim, ClaimBatch, Want, Writer};

impl Engine {
    pub(super) fn claims(&mut self, due: Vec<(usize, Vec<Step>)>) -> Flight {
        let mut by_group: BTreeMap<Group, (Vec<Claim>, Vec<usize>)> = BTreeMap::new();
        for (job, steps) in due {
            let (claims, jobs) = by_group.entry(self.group_of[job]).or_default();
            for step in steps {
                claims.push(self.claim_of(job, &step));
                jobs.push(job);
            }
        }
        let mut flight = Flight::default();
        for (index, (claims, jobs)) in by_group {
            flight.batches.push((index, self.batch(index, claims)));
            flight.jobs.push(jobs);
        }
        flight
    }

    fn claim_of(&mut self, job: usize, step: &Step) -> Claim {
        self.ticks.last_number += 1;
        let name = self.shared.config.jobs[job].name.clone();
        Claim {
            alive: self.runs.alive(job),
            job: name,
            number: self.ticks.last_number,
            tick: step.tick,
            cursor: step.cursor,
            want: match step.kind {
                StepKind::Run => Want::Run,
                StepKind::Owed => Want::Owed,
                StepKind::Waited => Want::Waited,
                StepKind::Settle => Want::Settle,
                StepKind::Adopt => Want::Adopt,
            },
            overlap: self.shared.config.jobs[job].overlap,
            passed: step.passed.clone(),
            schedule: self.text_in_force(job),
            adopts: self.text_to_adopt(job, step.kind),
        }
    }

    pub(super) fn batch(&self, index: Group, claims: Vec<Claim>) -> ClaimBatch {
        let config = &self.shared.config;
        let state = &self.groups[index];
        ClaimBatch {
            group: state.gate.group().clone(),
            holder: config.holder.clone(),
            term: state.taken_over.unwrap_or_default(),
            known: state.known,
            claiming: self.ticks.lowest_under_way(index, &claims),
            silence: config.timing.trust(),
            patience: 2 * config.timing.renew(),
            connected: std::time::Duration::ZERO,
            claims,
            writer: Writer::new(&config.version, &config.time_zones),
        }
    }
}

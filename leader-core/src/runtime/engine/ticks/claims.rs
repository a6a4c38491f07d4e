//! Claims: made of the planner's steps, and sent.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::super::Engine;
use super::super::input::{Group, Input};
use super::Flight;
use crate::clock::Moment;
use crate::schedule::planner::{Step, StepKind};
use crate::store::{Claim, ClaimBatch, Further, UNLED, Want, Writer};

impl Engine {
    pub(super) fn claims(&mut self, due: Vec<(usize, Vec<Step>)>) -> Flight {
        let mut by_group: BTreeMap<(Group, bool), (Vec<Claim>, Vec<usize>)> = BTreeMap::new();
        for (job, steps) in due {
            let (claims, jobs) = by_group.entry((self.group_of[job], self.is_unled(job))).or_default();
            for step in steps {
                claims.push(self.claim_of(job, &step));
                jobs.push(job);
            }
        }
        let mut flight = Flight::default();
        for ((index, unled), (claims, jobs)) in by_group {
            flight.batches.push((index, self.batch(index, unled, claims)));
            flight.jobs.push(jobs);
        }
        flight
    }

    pub(super) fn claim_of(&mut self, job: usize, step: &Step) -> Claim {
        self.ticks.last_number += 1;
        let name = self.kept_as(job).clone();
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
            overlap: self.jobs[job].overlap,
            passed: self.split_at_pauses(job, &step.passed),
            further: self.further(job),
            schedule: self.text_in_force(job),
            adopts: self.text_to_adopt(job, step.kind),
            meets: None,
        }
    }

    /// All of them are of jobs that need no leader, or none.
    pub(super) fn batch(&self, index: Group, unled: bool, claims: Vec<Claim>) -> ClaimBatch {
        let config = &self.shared.config;
        let state = &self.groups[index];
        ClaimBatch {
            group: state.gate.group().clone(),
            holder: config.holder.clone(),
            // Without one, what needs a leader is nobody's to claim.
            term: if unled {
                UNLED
            } else {
                state.taken_over.unwrap_or(u64::MAX)
            },
            known: state.known,
            claiming: self.ticks.lowest_under_way(index, &claims),
            first: self.ticks.first,
            silence: self.silence(),
            patience: 2 * config.timing.renew(),
            connected: std::time::Duration::ZERO,
            claims,
            writer: Writer::new(&config.version, &config.time_zones),
        }
    }

    /// The number of a new claim.
    pub(in super::super) fn next_claim(&mut self) -> u64 {
        self.ticks.last_number += 1;
        self.ticks.last_number
    }

    /// Sends one claim in a round trip of its own.
    pub(in super::super) fn send_one(&mut self, now: Moment, index: Group, job: usize, claim: Claim) {
        let flight = Flight {
            batches: vec![(index, self.batch(index, self.is_unled(job), vec![claim]))],
            jobs: vec![vec![job]],
            ..Flight::default()
        };
        self.send_claims(now, flight);
    }

    pub(super) fn send_claims(&mut self, now: Moment, mut flight: Flight) {
        let connected = self
            .link
            .connected_since
            .map(|since| now.since(since))
            .unwrap_or_default();
        for (_, batch) in &mut flight.batches {
            batch.connected = connected;
        }
        self.ticks.last_id += 1;
        let id = self.ticks.last_id;
        let batches: Vec<_> = flight.batches.iter().map(|(_, batch)| batch.clone()).collect();
        let claims: usize = batches.iter().map(|batch| batch.claims.len()).sum();
        tracing::trace!(claims, "claims sent in one round trip");
        flight.again_at = None;
        flight.since.get_or_insert(now);
        self.ticks.flights.insert(id, flight);
        let store = Arc::clone(&self.store);
        self.ask(async move { store.claim(batches).await }, move |answers| {
            Input::Claimed { id, answers }
        });
    }

    /// What the job's runs have of further tries.
    pub(super) fn further(&self, job: usize) -> Option<Further> {
        let spec = &self.jobs[job];
        // A run whose claim has expired is taken again in any case.
        let retries = spec.retries.max(u32::from(spec.is_unled()));
        (retries > 0).then_some(Further {
            retries,
            first: spec.backoff.first,
            most: spec.backoff.most,
        })
    }
}

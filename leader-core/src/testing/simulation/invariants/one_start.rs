//! Each try of each tick begins at most once, and when a later run of a job has begun an earlier one is polled no more: at most one
//! effect that no fence can tell from another (ShedLock#6, gocron#841, node-cron#563).

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::{Invariant, Scene};
use crate::job::record::Overlap;
use crate::job::tick::Origin;
use crate::testing::simulation::seen::{Body, Seen};

#[derive(Default)]
pub(super) struct OneStart {
    begun: BTreeMap<&'static str, BTreeMap<Timestamp, BTreeSet<u32>>>,
    /// The highest fence of each job whose run has begun.
    newest: BTreeMap<&'static str, u64>,
}

/// How many ticks of a job are remembered: what comes later than that is not told from a new one.
const KEPT: usize = 10_000;

impl OneStart {
    fn begins(&mut self, body: &Body) -> Result<(), String> {
        let ticks = self.begun.entry(body.job).or_default();
        let tries = ticks.entry(body.tick).or_default();
        if !tries.insert(body.attempt) {
            return Err(format!("try {} of the tick begins again: {body:?}", body.attempt));
        }
        if tries.last().is_some_and(|newest| *newest > body.attempt) {
            return Err(format!("an earlier try begins after a later one: {body:?}, {tries:?}"));
        }
        if ticks.len() > KEPT {
            ticks.pop_first();
        }
        Ok(())
    }
}

impl Invariant for OneStart {
    fn name(&self) -> &'static str {
        "one start of each try"
    }

    fn see(&mut self, seen: &Seen<'_>, scene: Scene) -> Result<(), String> {
        let Seen::Polled { body, first, .. } = seen else {
            return Ok(());
        };
        if scene.forgot || body.origin != Origin::Schedule {
            return Ok(());
        }
        let newest = self.newest.entry(body.job).or_default();
        if *first {
            *newest = body.fence.max(*newest);
            return self.begins(body);
        }
        let alone = matches!(body.overlap, Overlap::Skip | Overlap::Wait) && !body.finishes;
        if alone && body.fence < *newest {
            return Err(format!(
                "a run with the fence {newest} has begun, and this one goes on: {body:?}"
            ));
        }
        Ok(())
    }
}

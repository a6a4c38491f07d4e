//! The ledger says of a run what its body did: none is recorded to have ended well, or with an error, that has not returned so, and none as never
//! begun that was. Counts that add up say nothing of that: a fleet that records `ok` whatever happens keeps them.

use std::collections::BTreeMap;

use super::{Invariant, Scene};
use crate::job::outcome::{Outcome, Ran};
use crate::testing::simulation::seen::Seen;

/// How many runs of a job are remembered: more than the ledger keeps records of.
const KEPT: usize = 10_000;

#[derive(Default)]
pub(super) struct Told {
    /// What the body of each job and fence returned, once it has.
    bodies: BTreeMap<&'static str, BTreeMap<u64, Option<bool>>>,
}

impl Invariant for Told {
    fn name(&self) -> &'static str {
        "the ledger has what bodies did"
    }

    fn see(&mut self, seen: &Seen<'_>, scene: Scene) -> Result<(), String> {
        match seen {
            Seen::Polled { body, first: true, .. } => {
                let bodies = self.bodies.entry(body.job).or_default();
                bodies.insert(body.fence, None);
                if bodies.len() > KEPT {
                    bodies.pop_first();
                }
            }
            Seen::Ended { body, returned } => {
                let of_job = self.bodies.get_mut(body.job);
                if let Some(known) = of_job.and_then(|bodies| bodies.get_mut(&body.fence)) {
                    *known = *returned;
                }
            }
            Seen::Ledger { job, ledger, .. } if !scene.forgot => {
                let Some(bodies) = self.bodies.get(job) else {
                    return Ok(());
                };
                let Some((oldest, _)) = bodies.first_key_value() else {
                    return Ok(());
                };
                for record in ledger.records.iter().filter(|record| record.fence >= *oldest) {
                    let did = bodies.get(&record.fence);
                    let is_true = match record.outcome {
                        Outcome::Ran(Ran::Ok) => did == Some(&Some(true)),
                        Outcome::Ran(Ran::Error) => did == Some(&Some(false)),
                        // A middleware may have returned without it.
                        Outcome::Ran(Ran::NotStarted) => did != Some(&None),
                        _ => true,
                    };
                    if !is_true {
                        return Err(format!("of a body of `{job}` that returned {did:?} it has {record:?}"));
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }
}

//! The ledger says of a run what its body did: one that was dropped has no result, whoever tells one for it, and one that is said never to
//! have begun was never polled.

use std::collections::{BTreeMap, BTreeSet};

use super::{Invariant, Scene};
use crate::job::outcome::{Outcome, Ran};
use crate::testing::simulation::seen::Seen;

#[derive(Default)]
pub(super) struct Results {
    /// The fences of the bodies that were dropped, and of those that came to their own end: each group has its own.
    dropped: BTreeMap<&'static str, BTreeSet<u64>>,
    ended: BTreeMap<&'static str, BTreeSet<u64>>,
}

impl Invariant for Results {
    fn name(&self) -> &'static str {
        "results are those of the bodies"
    }

    fn see(&mut self, seen: &Seen<'_>, scene: Scene) -> Result<(), String> {
        match seen {
            Seen::Ended { body, by_itself } => {
                let ends = if *by_itself { &mut self.ended } else { &mut self.dropped };
                ends.entry(body.job).or_default().insert(body.fence);
                Ok(())
            }
            // A store that has forgotten may have given a fence twice.
            Seen::Ledger { job, ledger, .. } if !scene.forgot => {
                let has = |ends: &BTreeMap<&'static str, BTreeSet<u64>>, fence| {
                    ends.get(job).is_some_and(|fences| fences.contains(fence))
                };
                let wrong = ledger.records.iter().find(|record| match record.outcome {
                    Outcome::Ran(Ran::Ok | Ran::Error) => !has(&self.ended, &record.fence),
                    Outcome::Ran(Ran::NotStarted) if record.term != 0 => {
                        has(&self.ended, &record.fence) || has(&self.dropped, &record.fence)
                    }
                    _ => false,
                });
                match wrong {
                    Some(record) => Err(format!("no body of `{job}` came to this: {record:?}")),
                    None => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }
}

//! Each leadership has a term of its own, above those before it, and from then on no run is claimed under an earlier one: a lease's number
//! is its epoch (the sequencer of Burrows, "The Chubby lock service", 2006; the ballots of Lamport, "Paxos made simple", 2001).

use std::collections::{BTreeMap, BTreeSet};

use super::{Invariant, Scene};
use crate::event::Event;
use crate::testing::simulation::seen::Seen;

#[derive(Default)]
pub(super) struct Terms {
    /// Every term under which somebody was elected, by group.
    elected: BTreeMap<String, BTreeSet<u64>>,
    groups: BTreeMap<&'static str, String>,
}

impl Invariant for Terms {
    fn name(&self) -> &'static str {
        "each lead has a term of its own"
    }

    fn see(&mut self, seen: &Seen<'_>, scene: Scene) -> Result<(), String> {
        match seen {
            Seen::Told {
                who,
                event: Event::Elected { group, term },
            } => {
                let elected = self.elected.entry(group.to_string()).or_default();
                let last = elected.last().copied().unwrap_or(0);
                elected.insert(*term);
                if *term <= last && !scene.forgot {
                    return Err(format!("{who:?} is elected in `{group}` under {term} after {last}"));
                }
                Ok(())
            }
            Seen::Polled { body, first: true, .. } => {
                self.groups.entry(body.job).or_insert_with(|| body.group.clone());
                Ok(())
            }
            Seen::Ledger { job, ledger, .. } if !scene.forgot => {
                let Some(elected) = self.groups.get(job).and_then(|group| self.elected.get(group)) else {
                    return Ok(());
                };
                // Terms and fences are of one counter.
                let late = ledger.records.iter().find(|record| {
                    record.term != 0
                        && record.fence > record.term
                        && elected.range(record.term + 1..record.fence).next().is_some()
                });
                match late {
                    Some(record) => Err(format!(
                        "a run of `{job}` was claimed after its term had ended: {record:?}"
                    )),
                    None => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }
}

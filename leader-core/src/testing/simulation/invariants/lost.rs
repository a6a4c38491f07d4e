//! A run of a leader is `lost` only if its runner died, stood still or was cut off: that nobody could hear it, because the store was away,
//! is no reason (celery#5935 and kombu#337 take work again that is under way).

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

use super::{Invariant, Scene};
use crate::job::outcome::{Outcome, Ran};
use crate::testing::simulation::seen::Seen;

/// How long what a fault has done may be felt after it: the longest that a message is late.
const FELT: SignedDuration = SignedDuration::from_secs(45);

#[derive(Default)]
pub(super) struct LostRuns {
    /// Whose body a run is, and since when, by its fence: each group has its own.
    begun: BTreeMap<u64, Vec<(&'static str, usize, Timestamp)>>,
    /// From when to when something was wrong with an instance.
    wrong: Vec<(usize, Timestamp, Timestamp)>,
}

impl LostRuns {
    fn was_wrong(&self, who: usize, from: Timestamp, to: Timestamp) -> bool {
        let mut wrong = self.wrong.iter();
        wrong.any(|(instance, begin, end)| *instance == who && *begin <= to && from <= *end)
    }
}

impl Invariant for LostRuns {
    fn name(&self) -> &'static str {
        "no run is lost without a reason"
    }

    fn see(&mut self, seen: &Seen<'_>, scene: Scene) -> Result<(), String> {
        match seen {
            Seen::Fault(fault) => {
                if !fault.kind.is_of_the_store() {
                    let end = scene.now + fault.lasts + FELT;
                    self.wrong.push((fault.instance, scene.now, end));
                }
                Ok(())
            }
            Seen::Polled { body, first: true, .. } if body.term != 0 => {
                let begun = (body.job, body.who.instance, scene.now);
                self.begun.entry(body.fence).or_default().push(begun);
                Ok(())
            }
            Seen::Ledger { job, ledger, .. } if !scene.forgot => {
                for record in &ledger.records {
                    if record.outcome != Outcome::Ran(Ran::Lost) {
                        continue;
                    }
                    let mut begun = self.begun.get(&record.fence).into_iter().flatten();
                    let Some((_, who, begun)) = begun.find(|(other, ..)| other == job) else {
                        continue;
                    };
                    if !self.was_wrong(*who, *begun, record.settled_at) {
                        return Err(format!(
                            "a run of `{job}` is lost though nothing was wrong with instance {who} since {begun}: {record:?}"
                        ));
                    }
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

//! Every due tick ends with exactly one outcome: due = sum of outcomes + pending, and records neither overlap nor leave gaps.

use jiff::SignedDuration;

use super::{Invariant, Scene};
use crate::job::tick::Origin;
use crate::store::ledger::OpenRun;
use crate::testing::simulation::seen::Seen;

/// How long a run may be open, or overdue for another try, when all is over.
const PATIENCE: SignedDuration = SignedDuration::from_secs(60);

pub(super) struct OneOutcome;

impl Invariant for OneOutcome {
    fn name(&self) -> &'static str {
        "one outcome of each tick"
    }

    fn see(&mut self, seen: &Seen<'_>, scene: Scene) -> Result<(), String> {
        let Seen::Ledger {
            job,
            due,
            undecided,
            ledger,
            ..
        } = seen
        else {
            return Ok(());
        };
        let told = ledger.decided() + ledger.pending();
        if told != *due && !scene.forgot {
            return Err(format!(
                "{due} ticks of `{job}` were due, {told} are accounted for: {:?}, open {:?}, waiting {:?}",
                ledger.counts, ledger.open, ledger.waiting
            ));
        }
        if *undecided > 0 {
            return Err(format!(
                "{undecided} ticks of `{job}` after {:?} are undecided long after the last fault",
                ledger.cursor
            ));
        }
        let mut spans: Vec<_> = ledger
            .records
            .iter()
            .filter(|record| record.origin == Origin::Schedule)
            .map(|record| (record.first, record.last, record.fence))
            .collect();
        spans.sort_unstable();
        for pair in spans.windows(2) {
            if pair[1].0 <= pair[0].1 && !scene.forgot {
                return Err(format!("two records of `{job}` speak of one tick: {pair:?}"));
            }
        }
        // The last may have begun, or pause, when its process was ended: whoever leads next looks after it.
        let forgotten = |run: &OpenRun| run.again_at.unwrap_or(run.claimed_at) + PATIENCE < scene.now;
        if ledger.open.iter().any(forgotten) {
            return Err(format!(
                "runs of `{job}` are never settled: {:?}, {:?}",
                ledger.open, ledger.counts
            ));
        }
        Ok(())
    }
}

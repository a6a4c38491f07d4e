//! What the ledger must say of runs that are tried again.

use std::collections::BTreeMap;

use jiff::Timestamp;
use leader_core::{JobLedger, LedgerRecord, Outcome, Ran};

use crate::Body;

/// The first one included.
const MOST: u32 = 3;

/// What is wrong with a job's tries.
pub(crate) fn judge(job: &str, ledger: &JobLedger, bodies: &[Body]) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut by_tick: BTreeMap<Timestamp, Vec<&Body>> = BTreeMap::new();
    for body in bodies {
        by_tick.entry(body.tick).or_default().push(body);
    }
    for (tick, tries) in &by_tick {
        // In the order of their fences.
        if tries.windows(2).any(|pair| pair[0].attempt >= pair[1].attempt) {
            wrong.push(format!("{job}: tries do not rise with their fences: {tries:?}"));
        }
        let last = tries[tries.len() - 1];
        let of_tick = |record: &&LedgerRecord| record.first == *tick && record.outcome.is_ran();
        let Some(record) = ledger.records.iter().find(of_tick) else {
            wrong.push(format!("{job}: no record of {tries:?}"));
            continue;
        };
        let fits = match record.outcome {
            Outcome::Ran(told @ (Ran::Ok | Ran::Error)) if record.fence == last.fence => last.result == Some(told),
            Outcome::Ran(told) if record.fence > last.fence => {
                matches!(told, Ran::NotStarted | Ran::Lost | Ran::Cancelled)
            }
            Outcome::Ran(_) => record.fence == last.fence,
            _ => false,
        };
        let counted = if record.fence == last.fence {
            record.tries == last.attempt
        } else {
            record.tries > last.attempt
        };
        if !fits || !counted || record.tries > MOST {
            wrong.push(format!("{job}: the record {record:?} of {tries:?}"));
        }
    }
    for record in &ledger.records {
        if record.outcome.is_ran() != (1..=MOST).contains(&record.tries) {
            wrong.push(format!("{job}: a number of tries that cannot be: {record:?}"));
        }
    }
    let tried_again = by_tick.values().filter(|tries| tries.len() > 1).count();
    println!("{job}: {tried_again} of {} runs were tried again", by_tick.len());
    wrong
}

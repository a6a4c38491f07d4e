//! How much of the past is kept.

use std::time::Duration;

use super::Bootstrap;
use super::fault::Fault;
use super::settings::Faults;
use crate::store::ledger::{Keep, MOST_KEPT};

impl Bootstrap {
    /// How much of each job's past the store keeps: 1,000 runs and as many records of ticks that did not run, none older than 90 days,
    /// unless given. It holds for what this instance writes; give it to all instances alike. The counts of outcomes are never cut.
    pub fn history(mut self, keep: Keep) -> Self {
        self.keep = keep;
        self
    }
}

pub(super) fn check(keep: &Keep, faults: &mut Faults) {
    let possible = 1..=MOST_KEPT;
    if !possible.contains(&keep.runs) || !possible.contains(&keep.others) || keep.age < Duration::from_secs(1) {
        faults.0.push(Fault::History {
            runs: keep.runs,
            others: keep.others,
            age: keep.age,
        });
    }
}

//! What was asked in a run, and what was answered.

use std::collections::BTreeMap;
use std::fmt;

/// Counts of operations and of each kind of answer.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) sequences: u64,
    answers: BTreeMap<&'static str, BTreeMap<String, u64>>,
}

impl Tally {
    pub(super) fn count(&mut self, operation: &'static str, kind: String) {
        *self.answers.entry(operation).or_default().entry(kind).or_default() += 1;
    }

    pub(super) fn add(&mut self, other: Self) {
        self.sequences += other.sequences;
        for (operation, kinds) in other.answers {
            for (kind, count) in kinds {
                *self.answers.entry(operation).or_default().entry(kind).or_default() += count;
            }
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = self.answers.values().flat_map(BTreeMap::values).sum::<u64>();
        writeln!(f, "{} sequences, {all} answers", self.sequences)?;
        for (operation, kinds) in &self.answers {
            let kinds: Vec<_> = kinds.iter().map(|(kind, count)| format!("{kind} {count}")).collect();
            writeln!(f, "  {operation}: {}", kinds.join(", "))?;
        }
        Ok(())
    }
}

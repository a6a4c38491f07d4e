//! What the leader of a group lacks.

use std::collections::BTreeMap;

use super::Instance;

impl Instance {
    /// The jobs of a group led here that this instance lacks, each with a living instance that has it: they do not run, and their ticks
    /// become [`MissedReason::Uncovered`](crate::MissedReason::Uncovered). Empty where it leads not, or has all of them. Each is told once as
    /// [`Event::Uncovered`](crate::Event::Uncovered); nothing is asked of the store.
    #[must_use]
    pub fn uncovered(&self, group: &str) -> BTreeMap<String, String> {
        self.shared.uncovered(group)
    }
}

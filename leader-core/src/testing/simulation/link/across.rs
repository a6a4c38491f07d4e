//! Hints on their way from a store to an instance.

use std::sync::Arc;

use super::{Fate, Way};
use crate::clock::of_timers;
use crate::store::{Ears, StoreError};

/// What is told on the way.
pub(super) struct Across {
    pub(super) way: Arc<Way>,
    pub(super) ears: Arc<dyn Ears>,
}

impl Across {
    /// Hints are lost as they would be late: nobody relies on them.
    fn arrives(&self) -> bool {
        let now = of_timers();
        self.way.is_plain(now) || matches!(self.way.fate(false), Fate::Arrives(at) if at <= now + self.way.latency)
    }
}

impl Ears for Across {
    fn released(&self, group: &str, term: u64) {
        if self.arrives() {
            self.ears.released(group, term);
        }
    }

    fn asked(&self, group: &str, term: u64) {
        if self.arrives() {
            self.ears.asked(group, term);
        }
    }

    fn controlled(&self, group: &str, number: u64) {
        if self.arrives() {
            self.ears.controlled(group, number);
        }
    }

    #[cfg(feature = "tasks")]
    fn due(&self, group: &str, at: jiff::Timestamp) {
        if self.arrives() {
            self.ears.due(group, at);
        }
    }

    fn gap(&self) {
        self.ears.gap();
    }

    fn deaf(&self, error: StoreError) {
        self.ears.deaf(error);
    }
}

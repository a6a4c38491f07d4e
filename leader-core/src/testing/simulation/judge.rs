//! Looks at everything that is seen of a fleet, and keeps what should not have been.

use std::fmt::Write;
use std::time::Duration;

use jiff::Timestamp;

use super::invariants::{self, Invariant, Scene};
use super::seen::Seen;
#[cfg(feature = "tasks")]
use super::tasks::seen::TaskSeen;
use crate::event::Event;

/// The most violations that are kept: one fault is seen again and again.
const MOST: usize = 20;

/// Something that must not be.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Violation {
    /// When it was seen, counted from the beginning.
    pub at: Duration,
    /// What is promised.
    pub invariant: &'static str,
    /// What was seen instead.
    pub what: String,
}

impl std::fmt::Display for Violation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:.3} s, {}: {}", self.at.as_secs_f64(), self.invariant, self.what)
    }
}

pub(super) struct Judge {
    invariants: Vec<Box<dyn Invariant>>,
    begin: Timestamp,
    scene: Scene,
    ttl: Duration,
    /// Until when leases may be held twice.
    split_until: Duration,
    pub(super) violations: Vec<Violation>,
    /// What was seen, a line each.
    pub(super) log: Option<String>,
    pub(super) elections: u64,
    pub(super) runs: u64,
    pub(super) polls: u64,
    pub(super) dropped: u64,
    #[cfg(feature = "tasks")]
    pub(super) attempts: u64,
    /// Until when tasks may be forgotten, or known twice.
    #[cfg(feature = "tasks")]
    forgets_until: Duration,
}

impl Judge {
    pub(super) fn new(begin: Timestamp, ttl: Duration, keeps_log: bool) -> Self {
        Self {
            invariants: invariants::all(),
            begin,
            scene: Scene::default(),
            ttl,
            split_until: Duration::ZERO,
            violations: Vec::new(),
            log: keeps_log.then(String::new),
            elections: 0,
            runs: 0,
            polls: 0,
            dropped: 0,
            #[cfg(feature = "tasks")]
            attempts: 0,
            #[cfg(feature = "tasks")]
            forgets_until: Duration::ZERO,
        }
    }

    pub(super) fn see(&mut self, at: Duration, seen: &Seen<'_>) {
        if let Some(log) = &mut self.log {
            // A string takes everything.
            let _ = writeln!(log, "{:>16.6} {seen:?}", at.as_secs_f64());
        }
        (self.scene.now, self.scene.ttl) = (self.begin + at, self.ttl);
        #[cfg(feature = "tasks")]
        self.see_tasks(at, seen);
        match seen {
            Seen::Fault(fault) => {
                self.scene.forgot |= fault.kind.is_forgetful();
                if fault.kind.splits() {
                    self.split_until = self.split_until.max(at + fault.lasts + 2 * self.ttl);
                }
            }
            // A clock that had leapt is put right.
            Seen::Healed if self.scene.forgot => self.split_until = at + 2 * self.ttl,
            Seen::Told {
                event: Event::Elected { .. },
                ..
            } => self.elections += 1,
            Seen::Polled { first, .. } => {
                self.polls += 1;
                self.runs += u64::from(*first);
            }
            Seen::Ended { returned: None, .. } => self.dropped += 1,
            _ => {}
        }
        self.scene.split = at < self.split_until;
        for invariant in &mut self.invariants {
            let Err(what) = invariant.see(seen, self.scene) else {
                continue;
            };
            if self.violations.len() < MOST {
                let invariant = invariant.name();
                self.violations.push(Violation { at, invariant, what });
            }
        }
    }

    #[cfg(feature = "tasks")]
    fn see_tasks(&mut self, at: Duration, seen: &Seen<'_>) {
        let until = match seen {
            Seen::Fault(fault) if fault.kind.is_forgetful() => at + fault.lasts + 2 * self.ttl,
            // A clock that had leapt is put right.
            Seen::Healed if self.scene.forgot => at + 2 * self.ttl,
            Seen::Task(TaskSeen::Polled { first: true, .. }) => {
                self.attempts += 1;
                return;
            }
            _ => at,
        };
        self.forgets_until = self.forgets_until.max(until);
        self.scene.forgets = at < self.forgets_until;
    }
}

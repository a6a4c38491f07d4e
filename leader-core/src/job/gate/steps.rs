//! What a gate knows, as a value, and its steps: for searches through every state.

use std::sync::atomic::Ordering;

use jiff::Timestamp;

use super::Gate;
use crate::clock::{Clock, Moment};
use crate::names::GroupName;

/// What a gate knows: a term and two deadlines; zero = closed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "an internal message")]
pub struct GateView {
    /// The term of the leadership that it was last opened for.
    pub term: u64,
    /// Until when that leadership may be trusted, in nanoseconds.
    pub trust_until: u64,
    /// Until when new entries pass.
    pub open_until: u64,
}

/// What is done to a gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "an internal message")]
pub enum GateStep {
    /// A leadership begins.
    Open(u64, Moment),
    /// Trust is prolonged.
    Extend(Moment),
    /// Nobody is let in any more.
    CloseEntry,
    /// Belief is cleared.
    Close,
}

impl GateView {
    fn gate(self, group: &GroupName, now: Moment) -> Gate {
        let clock = Clock::manual(Timestamp::UNIX_EPOCH);
        clock.advance(now.since(clock.now()));
        let gate = Gate::new(group.clone(), clock);
        gate.term.store(self.term, Ordering::SeqCst);
        gate.trust_until.store(self.trust_until, Ordering::SeqCst);
        gate.open_until.store(self.open_until, Ordering::SeqCst);
        gate
    }

    /// What the gate knows after a step.
    #[must_use]
    pub fn after(self, group: &GroupName, step: GateStep) -> Self {
        let gate = self.gate(group, Moment::ZERO);
        match step {
            GateStep::Open(term, until) => gate.open(term, until),
            GateStep::Extend(until) => gate.extend(until),
            GateStep::CloseEntry => gate.close_entry(),
            GateStep::Close => gate.close(),
        }
        Self {
            term: gate.term.load(Ordering::SeqCst),
            trust_until: gate.trust_until.load(Ordering::SeqCst),
            open_until: gate.open_until.load(Ordering::SeqCst),
        }
    }

    /// Whether the leadership of a term may be trusted at a moment from one second of the clock on.
    #[must_use]
    pub fn trusts(self, group: &GroupName, term: u64, now: Moment) -> bool {
        self.gate(group, now).trusts(term)
    }
}

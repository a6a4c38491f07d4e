//! From one schedule of a job to another. At each instant exactly one is in force: the new one's ticks are those after the change, and
//! the old one has none left by then.

use jiff::Timestamp;

use super::plan::Plan;
use super::{Planner, Rule, Step, StepKind};
use crate::schedule::Schedule;

/// Whether a job is to have another schedule than the one it is planned by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Change {
    /// It is not.
    #[default]
    No,
    /// As soon as no tick of the present one is left that is planned and not decided.
    WhenDecided,
    /// At once: the present one cannot be read, and nothing can be decided by it.
    AtOnce,
}

impl Plan {
    /// The change, when its time has come. A tick that is planned, and not due yet because of its jitter, is still the present schedule's.
    pub(super) fn change_over(&self, now: Timestamp) -> Option<Step> {
        // In whole milliseconds, as the store keeps instants; no tick lies between two.
        let now = Timestamp::from_millisecond(now.as_millisecond()).ok()?;
        let is_left = || self.rule.schedule.prev(now).is_some_and(|tick| tick > self.cursor);
        let in_time = match self.change {
            Change::No => false,
            Change::WhenDecided => !is_left(),
            Change::AtOnce => true,
        };
        in_time.then(|| Step {
            tick: now.max(self.cursor),
            cursor: self.cursor,
            kind: StepKind::Adopt,
            passed: Vec::new(),
        })
    }
}

impl Planner {
    /// Says whether another schedule is to be brought into force. One that is under way is answered by [`changed`](Self::changed) all the
    /// same.
    pub fn change(&mut self, job: usize, change: Change) {
        let Some(plan) = self.plans.get_mut(&job) else { return };
        plan.change = change;
        // Otherwise a decision is under way, or the job rests or is held: what ends that looks.
        if plan.wake.is_some() || plan.idle {
            self.await_next(job);
        }
    }

    /// Another schedule is in force; its ticks are those after `cursor`.
    pub fn changed(&mut self, job: usize, schedule: Schedule, cursor: Timestamp) {
        if let Some(plan) = self.plans.get_mut(&job) {
            plan.rule = plan.rule.clone().with_schedule(schedule);
            plan.change = Change::No;
            // What was late by the other one has been decided.
            plan.late_from = None;
            plan.in_turn_until = None;
        }
        self.answered(job, cursor);
    }

    /// Forgets a job for good: what is planned under its index from here on is another.
    pub fn forget(&mut self, job: usize) {
        self.plans.remove(&job);
        self.decided.remove(&job);
    }

    /// How the ticks of a job are decided at present.
    #[must_use]
    pub fn rule(&self, job: usize) -> Option<&Rule> {
        self.plans.get(&job).map(|plan| &plan.rule)
    }
}

#[cfg(test)]
mod tests;

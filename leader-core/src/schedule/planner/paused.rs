//! Jobs whose ticks stay open until a pause ends.

use jiff::Timestamp;

use super::Planner;
use super::plan::Plan;

/// Whether a job's ticks stay open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Paused {
    #[default]
    No,
    /// They are not to be decided before this instant.
    Until(Timestamp),
    /// Not before the job is let go.
    Open,
}

impl Planner {
    /// The decision under way was not carried out, and none is made before `until`, or before the job is [let go](Self::let_go). What
    /// is open then is decided by age alone.
    pub fn hold(&mut self, job: usize, until: Option<Timestamp>) {
        if let Some(plan) = self.plans.get_mut(&job) {
            plan.late_from = None;
            plan.paused = until.map_or(Paused::Open, Paused::Until);
        }
        self.await_next(job);
    }

    /// The reason to hold a job is gone, or is to be heard anew.
    pub fn let_go(&mut self, job: usize) {
        let paused = |plan: &mut Plan| std::mem::take(&mut plan.paused) != Paused::No;
        if self.plans.get_mut(&job).is_some_and(paused) {
            self.await_next(job);
        }
    }
}

impl Plan {
    /// When a look that is wanted at `at` may be.
    pub(super) fn not_before(&self, at: Timestamp) -> Option<Timestamp> {
        match self.paused {
            Paused::No => Some(at),
            Paused::Until(until) => Some(until.max(at)),
            Paused::Open => None,
        }
    }
}

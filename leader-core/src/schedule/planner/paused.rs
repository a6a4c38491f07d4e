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
        let paused = |plan: &mut Box<Plan>| std::mem::take(&mut plan.paused) != Paused::No;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::Schedule;
    use crate::schedule::planner::{Rule, Step, StepKind};

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn due(planner: &mut Planner, now: i64) -> Vec<Step> {
        planner
            .due(at(now), |_| false)
            .into_iter()
            .flat_map(|(_, steps)| steps)
            .collect()
    }

    #[test]
    fn a_job_that_is_held_is_decided_by_age_when_it_is_let_go() {
        let mut planner = Planner::default();
        planner.begin(0, Rule::new(Schedule::every("10s").unwrap()), at(0), None, at(0));
        assert_eq!(due(&mut planner, 10).len(), 1);
        planner.hold(0, None);
        planner.resume(0);
        planner.ended(0, at(20));
        assert_eq!((planner.next_wake(), due(&mut planner, 40)), (None, Vec::new()));
        planner.let_go(0);
        let steps = due(&mut planner, 47);
        // The newest stands for all of them.
        assert_eq!((steps.len(), steps[0].tick, steps[0].kind), (1, at(40), StepKind::Owed));
        assert_eq!(steps[0].passed.iter().map(|passed| passed.count).sum::<u64>(), 3);
    }

    #[test]
    fn a_job_that_is_held_until_an_instant_is_looked_at_then() {
        let mut planner = Planner::default();
        planner.begin(0, Rule::new(Schedule::every("10s").unwrap()), at(0), None, at(0));
        due(&mut planner, 10);
        planner.hold(0, Some(at(21)));
        assert_eq!(planner.next_wake(), Some(at(21)));
        assert!(due(&mut planner, 20).is_empty());
        // The tick within its grace simply runs; the one before it is owed first.
        assert_eq!(due(&mut planner, 21).len(), 1);
        planner.let_go(0);
        assert_eq!(planner.next_wake(), None, "a decision is under way");
    }
}

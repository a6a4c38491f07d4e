//! Jobs whose ticks go to whoever claims them first: what an instance does that is not the first.

use jiff::Timestamp;

use super::{Change, Planner};

impl Planner {
    /// The decision that is due is left to others. What is still open at `at` is decided then, by age alone.
    pub fn leave(&mut self, job: usize, at: Timestamp) {
        if let Some(plan) = self.plans.get_mut(&job) {
            plan.held = false;
            plan.late_from = None;
        }
        self.look_at(job, at);
    }

    /// Another instance has decided, up to here: what it has left open is decided by age alone.
    pub fn overtaken(&mut self, job: usize, cursor: Timestamp) {
        if let Some(plan) = self.plans.get_mut(&job) {
            plan.late_from = None;
        }
        self.answered(job, cursor);
    }

    /// A change of the schedule is another's to make.
    pub fn withdraw_change(&mut self, job: usize) {
        if self.plans.contains_key(&job) {
            self.change(job, Change::No);
        }
    }

    /// When the next tick after `now` is due.
    #[must_use]
    pub fn next_due(&self, job: usize, now: Timestamp) -> Option<Timestamp> {
        let rule = self.rule(job)?;
        let mut tick = rule.schedule.next(now.max(self.plans.get(&job)?.cursor))?;
        // Jitter brings one that is planned earlier behind now.
        if let Some(earlier) = super::before(&rule.schedule, tick).filter(|tick| rule.due(*tick) > now) {
            tick = earlier;
        }
        Some(rule.due(tick))
    }

    /// Whether an instant is a tick of the schedule that the job is planned by.
    #[must_use]
    pub fn is_tick(&self, job: usize, at: Timestamp) -> bool {
        let before = at - jiff::SignedDuration::from_nanos(1);
        self.rule(job)
            .is_some_and(|rule| rule.schedule.next(before) == Some(at))
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

    fn planned() -> Planner {
        let mut planner = Planner::default();
        planner.begin(0, Rule::new(Schedule::every("10s").unwrap()), at(0), None, at(0));
        planner
    }

    fn due(planner: &mut Planner, now: i64) -> Vec<Step> {
        let due = planner.due(at(now), |_| false);
        due.into_iter().flat_map(|(_, steps)| steps).collect()
    }

    #[test]
    fn what_is_left_is_looked_at_again() {
        let mut planner = planned();
        assert!(planner.due(at(10), |_| true).is_empty());
        planner.leave(0, at(11));
        assert!(due(&mut planner, 10).is_empty());
        let steps = due(&mut planner, 11);
        assert_eq!((steps.len(), steps[0].tick, steps[0].kind), (1, at(10), StepKind::Run));
    }

    #[test]
    fn what_another_has_decided_is_done_with() {
        let mut planner = planned();
        assert_eq!(due(&mut planner, 10).len(), 1);
        planner.overtaken(0, at(10));
        assert!(due(&mut planner, 19).is_empty());
        assert_eq!(planner.next_wake(), Some(at(20)));
        // What nobody has decided for long is missed, whoever decides it in the end.
        let steps = due(&mut planner, 46);
        assert_eq!((steps[0].tick, steps[0].kind), (at(40), StepKind::Owed));
    }

    #[test]
    fn the_next_tick_is_the_one_that_is_not_due_yet() {
        let planner = planned();
        assert_eq!(planner.next_due(0, at(12)), Some(at(20)));
        assert_eq!(planner.next_due(0, at(20)), Some(at(30)));
        assert!(planner.is_tick(0, at(20)) && !planner.is_tick(0, at(21)));
    }

    #[test]
    fn a_change_that_another_has_made_is_withdrawn() {
        let mut planner = planned();
        planner.change(0, Change::AtOnce);
        planner.withdraw_change(0);
        assert!(due(&mut planner, 5).is_empty());
        assert_eq!(planner.next_wake(), Some(at(10)));
        planner.withdraw_change(7);
    }
}

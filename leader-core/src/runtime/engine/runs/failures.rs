//! Runs that ended badly, told to the program's own hooks.

use super::super::Engine;
use super::super::input::Group;
use super::results::Ended;
use crate::job::failure::{FailedRun, failure};
use crate::job::outcome::Outcome;
use crate::runtime::hooks;
use crate::store::End;

impl Engine {
    /// Calls the program's hooks, where the run's end is a failure; the store has its word in `outcome`.
    pub(in super::super) fn tell_of_failure(&self, group: Group, end: &End, ended: &Ended, outcome: Outcome) {
        if self.shared.config.on_failure.is_empty() {
            return;
        }
        let Some(error) = failure(end.ran, outcome, &end.error) else {
            return;
        };
        let run = FailedRun {
            job: end.job.clone(),
            group: self.groups[group].gate.group().clone(),
            scheduled_at: ended.tick,
            fence: end.fence,
            term: ended.term,
            origin: ended.origin,
            attempt: ended.attempt,
            ran: end.ran,
            outcome,
        };
        hooks::call(&self.shared, &self.bodies, &run, &error);
    }
}

//! When the faults are over every task comes to its end within the time that its attempts may take: liveness, which a fleet that runs nothing
//! would keep all else without.

use crate::testing::simulation::invariants::{Invariant, Scene};
use crate::testing::simulation::seen::Seen;
use crate::testing::simulation::tasks::seen::TaskSeen;

pub(super) struct Drained;

impl Invariant for Drained {
    fn name(&self) -> &'static str {
        "tasks come to an end"
    }

    fn see(&mut self, seen: &Seen<'_>, _: Scene) -> Result<(), String> {
        match seen {
            Seen::Task(TaskSeen::Drained {
                unfinished,
                after: None,
                bound,
            }) => Err(format!(
                "{unfinished} tasks are unfinished {bound:?} after the last fault"
            )),
            _ => Ok(()),
        }
    }
}

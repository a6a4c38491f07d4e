//! At most one attempt at a task is trusted at any true instant: each is a small lease of its own (Gray and Cheriton, "Leases", 1989).

use crate::testing::simulation::invariants::{Invariant, Scene};
use crate::testing::simulation::seen::Seen;
use crate::testing::simulation::tasks::seen::TaskSeen;

pub(super) struct OneBeliever;

impl Invariant for OneBeliever {
    fn name(&self) -> &'static str {
        "one believer of each task"
    }

    fn see(&mut self, seen: &Seen<'_>, scene: Scene) -> Result<(), String> {
        match seen {
            Seen::Task(TaskSeen::Polled {
                attempt,
                trusted: true,
                others,
                ..
            }) if !others.is_empty() && !scene.forgets => {
                Err(format!("{attempt:?} is polled, and trusted too are {others:?}"))
            }
            _ => Ok(()),
        }
    }
}

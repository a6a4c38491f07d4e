//! No attempt is polled past its trust: what was taken from it may have begun elsewhere.

use crate::testing::simulation::invariants::{Invariant, Scene};
use crate::testing::simulation::seen::Seen;
use crate::testing::simulation::tasks::seen::TaskSeen;

pub(super) struct TrustedPolls;

impl Invariant for TrustedPolls {
    fn name(&self) -> &'static str {
        "no poll of an attempt past its trust"
    }

    fn see(&mut self, seen: &Seen<'_>, _: Scene) -> Result<(), String> {
        match seen {
            Seen::Task(TaskSeen::Polled {
                attempt,
                trusted: false,
                ..
            }) => Err(format!("polled past its trust: {attempt:?}")),
            _ => Ok(()),
        }
    }
}

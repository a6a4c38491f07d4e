//! What could grow does not: tasks of a process, records of a job (apscheduler#463, jobrunr#940: ticks of an outage queued without end).

use super::{Invariant, Scene};
use crate::testing::simulation::seen::Seen;

pub(super) struct BoundedMemory;

impl Invariant for BoundedMemory {
    fn name(&self) -> &'static str {
        "memory is bounded"
    }

    fn see(&mut self, seen: &Seen<'_>, _: Scene) -> Result<(), String> {
        match seen {
            Seen::Size { what, size, bound } if size > bound => Err(format!("{size} {what}, and {bound} at the most")),
            _ => Ok(()),
        }
    }
}

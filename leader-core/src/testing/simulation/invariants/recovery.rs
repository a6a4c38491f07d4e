//! After the last fault somebody leads each group soon: liveness, which a fleet that never leads would keep all else without.

use super::{Invariant, Scene};
use crate::testing::simulation::seen::Seen;

pub(super) struct Recovery;

impl Invariant for Recovery {
    fn name(&self) -> &'static str {
        "somebody leads after the faults"
    }

    fn see(&mut self, seen: &Seen<'_>, _: Scene) -> Result<(), String> {
        match seen {
            Seen::Led {
                group,
                after: None,
                bound,
            } => Err(format!("nobody leads `{group}` {bound:?} after the last fault")),
            _ => Ok(()),
        }
    }
}

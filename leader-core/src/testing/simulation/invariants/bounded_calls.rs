//! No call outlives its bound, whatever the store does (river PR 1251: a renewal without a time-out hung for ever).

use super::{Invariant, Scene};
use crate::testing::simulation::seen::Seen;

pub(super) struct BoundedCalls;

impl Invariant for BoundedCalls {
    fn name(&self) -> &'static str {
        "no call outlives its bound"
    }

    fn see(&mut self, seen: &Seen<'_>, _: Scene) -> Result<(), String> {
        match seen {
            Seen::Called { who, what, took, bound } if took > bound => Err(format!(
                "`{what}` took {took:?} on {who:?}, and should take {bound:?} at the most"
            )),
            _ => Ok(()),
        }
    }
}

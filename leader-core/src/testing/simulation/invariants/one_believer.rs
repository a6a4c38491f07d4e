//! At most one instance believes to lead a group at any true instant: mutual exclusion by leases (Gray and Cheriton, "Leases", 1989).
//!
//! A belief is looked at when it begins and each time it is prolonged; in between it only runs out. A checker that looks at
//! the beginnings alone never sees a renewal that should have been refused.

use super::{Invariant, Scene};
use crate::testing::simulation::seen::Seen;

pub(super) struct OneBeliever;

impl Invariant for OneBeliever {
    fn name(&self) -> &'static str {
        "one believer"
    }

    fn see(&mut self, seen: &Seen<'_>, scene: Scene) -> Result<(), String> {
        match seen {
            Seen::Believes {
                who,
                group,
                term,
                others,
                ..
            } if !others.is_empty() && !scene.split => Err(format!(
                "{who:?} believes to lead `{group}` under term {term}, and so do {others:?}"
            )),
            _ => Ok(()),
        }
    }
}

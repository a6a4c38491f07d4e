//! Nobody is told that the lease is another's, or gone, while he may still trust it: a leader is never demoted unless somebody else may
//! lead (the property `KEEP` of the model in `tests/model`).
//!
//! Trust ends before the lease can. So whoever hears such an answer in time had a lease that somebody took away.

use super::{Invariant, Scene};
use crate::election::Lost;
use crate::event::Event;
use crate::testing::simulation::seen::Seen;

pub(super) struct Kept;

impl Invariant for Kept {
    fn name(&self) -> &'static str {
        "no lease is taken away"
    }

    fn see(&mut self, seen: &Seen<'_>, scene: Scene) -> Result<(), String> {
        match seen {
            Seen::Told {
                who,
                event:
                    Event::Lost {
                        group,
                        term,
                        reason: reason @ (Lost::Taken | Lost::Vanished),
                        ..
                    },
            } if !scene.forgot => Err(format!(
                "the lease of `{group}` under {term} is {reason:?} while {who:?} trusts it"
            )),
            _ => Ok(()),
        }
    }
}

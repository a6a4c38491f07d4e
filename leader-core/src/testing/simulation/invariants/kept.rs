//! Nobody is told that the lease is another's, or gone, while he may still trust it, and nobody gives up before his trust is over: a leader is never
//! demoted unless somebody else may lead (the property `KEEP` of the model in `tests/model`).
//!
//! Trust ends before the lease can. So whoever hears such an answer in time had a lease that somebody took away.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

use super::{Invariant, Scene};
use crate::election::Lost;
use crate::event::Event;
use crate::testing::simulation::seen::{Seen, Who};

/// The end of the newest belief of each process and group, and its term.
#[derive(Default)]
pub(super) struct Kept(BTreeMap<(Who, String), (u64, Timestamp)>);

impl Invariant for Kept {
    fn name(&self) -> &'static str {
        "no lease is taken away"
    }

    fn see(&mut self, seen: &Seen<'_>, scene: Scene) -> Result<(), String> {
        match seen {
            Seen::Believes {
                who, group, term, left, ..
            } => {
                // Clocks drift by a hundredth at the most.
                let left = SignedDuration::try_from(left.mul_f64(0.98)).unwrap_or(SignedDuration::ZERO);
                self.0.insert((*who, (*group).to_owned()), (*term, scene.now + left));
                Ok(())
            }
            Seen::Died(dead) => {
                self.0.retain(|(who, _), _| who != dead);
                Ok(())
            }
            Seen::Told {
                who,
                event:
                    Event::Lost {
                        group,
                        term,
                        reason: Lost::Expired,
                        ..
                    },
            } => match self.0.remove(&(*who, group.to_string())) {
                Some((believed, until)) if believed == *term && scene.now < until => Err(format!(
                    "{who:?} has given `{group}` up under {term}, and might have trusted it until {until}"
                )),
                _ => Ok(()),
            },
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

//! A lease is granted when nobody has it, and a renewal prolongs what is held under its term and never makes a lease: what comes late finds
//! the lease gone, and changes nothing (a lock that was released and is prolonged by a late command is nobody's: redlock-py and others
//! prolong by `SET`; Gray and Cheriton, "Leases", 1989, let a lease end once and for all).

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

use super::{Invariant, Scene};
use crate::testing::simulation::seen::{LeaseStep, Seen};

/// Servers count in whole milliseconds, and let a lease live to the end of its last.
const GRAIN: SignedDuration = SignedDuration::from_millis(2);

struct Lease {
    holder: String,
    term: u64,
    since: Timestamp,
    ends: Timestamp,
    returned: bool,
}

#[derive(Default)]
pub(super) struct Leases(BTreeMap<String, Lease>);

/// The instance that a process is of.
fn instance(holder: &str) -> &str {
    holder.split('#').next().unwrap_or(holder)
}

impl Invariant for Leases {
    fn name(&self) -> &'static str {
        "leases are granted once and prolonged while held"
    }

    fn see(&mut self, seen: &Seen<'_>, scene: Scene) -> Result<(), String> {
        let Seen::Lease {
            group,
            holder,
            term,
            step,
        } = seen
        else {
            return Ok(());
        };
        if scene.forgot {
            return Ok(());
        }
        let held = self.0.get(*group);
        match step {
            LeaseStep::Granted(ttl) => {
                let lease = Lease {
                    holder: (*holder).to_owned(),
                    term: *term,
                    since: scene.now,
                    ends: scene.now + *ttl,
                    returned: false,
                };
                // A process that was started anew may take what its last life has left.
                match self.0.insert((*group).to_owned(), lease) {
                    Some(other) if scene.now + GRAIN < other.ends && instance(&other.holder) != instance(holder) => {
                        Err(format!(
                            "`{group}` is granted to {holder} while {} has it until {}",
                            other.holder, other.ends
                        ))
                    }
                    Some(other) if *term <= other.term => {
                        Err(format!("`{group}` is granted under {term} after {}", other.term))
                    }
                    _ => Ok(()),
                }
            }
            LeaseStep::Prolonged(ttl) => match held {
                Some(lease) if lease.holder == *holder && lease.term == *term && scene.now <= lease.ends + GRAIN => {
                    // What was done in one instant may be told in any order.
                    let ends = scene.now + *ttl;
                    if let Some(lease) = self.0.get_mut(*group).filter(|lease| !lease.returned) {
                        lease.ends = ends;
                    }
                    Ok(())
                }
                Some(next) if scene.now <= next.since + GRAIN => Ok(()),
                other => Err(format!(
                    "{holder} prolongs `{group}` under {term}, and had {}",
                    other.map_or_else(
                        || "nothing".to_owned(),
                        |lease| format!("{} under {} until {}", lease.holder, lease.term, lease.ends)
                    )
                )),
            },
            LeaseStep::Returned => {
                if let Some(lease) = self.0.get_mut(*group)
                    && lease.holder == *holder
                    && lease.term == *term
                {
                    // Its term stays known.
                    lease.ends = lease.ends.min(scene.now);
                    lease.returned = true;
                }
                Ok(())
            }
        }
    }
}

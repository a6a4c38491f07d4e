//! What an instance tells alternates: it is elected, then it has lost; and a body that has ended is not polled again (client-go's callbacks
//! came in other orders: kubernetes/client-go#754).

use std::collections::{BTreeMap, BTreeSet};

use super::{Invariant, Scene};
use crate::event::Event;
use crate::testing::simulation::seen::{Seen, Who};

#[derive(Default)]
pub(super) struct Alternation {
    /// The term that each leads by its own word.
    leads: BTreeMap<(Who, String), u64>,
    /// The bodies that have begun and not ended, by their fences.
    running: BTreeSet<(&'static str, u64)>,
}

impl Invariant for Alternation {
    fn name(&self) -> &'static str {
        "beginnings and ends alternate"
    }

    fn see(&mut self, seen: &Seen<'_>, _: Scene) -> Result<(), String> {
        match seen {
            Seen::Told {
                who,
                event: Event::Elected { group, term },
            } => match self.leads.insert((*who, group.to_string()), *term) {
                Some(before) => Err(format!(
                    "{who:?} is elected in `{group}` under {term} while it leads under {before}"
                )),
                None => Ok(()),
            },
            Seen::Told {
                who,
                event: Event::Lost { group, term, .. },
            } => match self.leads.remove(&(*who, group.to_string())) {
                Some(before) if before == *term => Ok(()),
                before => Err(format!(
                    "{who:?} has lost `{group}` under {term}, and was elected under {before:?}"
                )),
            },
            Seen::Started(new) => match self.leads.keys().find(|(who, _)| who.instance == new.instance) {
                Some((who, group)) => Err(format!("{new:?} begins while {who:?} leads `{group}`")),
                None => Ok(()),
            },
            Seen::Died(dead) => {
                self.leads.retain(|(who, _), _| who != dead);
                Ok(())
            }
            Seen::Polled { body, first, .. } => {
                let id = (body.job, body.fence);
                let goes_on = if *first {
                    self.running.insert(id)
                } else {
                    self.running.contains(&id)
                };
                if goes_on {
                    Ok(())
                } else {
                    Err(format!("polled again, or after its end: {body:?}, first: {first}"))
                }
            }
            Seen::Ended { body, .. } => {
                self.running.remove(&(body.job, body.fence));
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

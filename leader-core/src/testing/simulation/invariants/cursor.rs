//! The cursor of a job never goes back: ticks are decided in their order, once (rundeck#6879, paseo#2819). Nor does a job begin anew, which
//! would settle what is between by forgetting it.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::{Invariant, Scene};
use crate::job::tick::Origin;
use crate::testing::simulation::seen::Seen;

#[derive(Default)]
pub(super) struct Cursor {
    /// The first tick of each job that was run.
    first: BTreeMap<&'static str, Timestamp>,
    cursors: BTreeMap<String, Timestamp>,
}

impl Invariant for Cursor {
    fn name(&self) -> &'static str {
        "cursors never go back"
    }

    fn see(&mut self, seen: &Seen<'_>, scene: Scene) -> Result<(), String> {
        let (job, cursor) = match seen {
            Seen::Cursor { job, cursor } => (job, cursor),
            Seen::Polled { body, first: true, .. } if body.origin == Origin::Schedule => {
                self.first.entry(body.job).or_insert(body.tick);
                return Ok(());
            }
            Seen::Ledger { job, ledger, .. } if !scene.forgot => {
                let (first, since) = (self.first.get(job), ledger.since);
                return match first.zip(since) {
                    Some((first, since)) if *first <= since => {
                        Err(format!("`{job}` begins at {since}, and has run the tick {first}"))
                    }
                    _ => Ok(()),
                };
            }
            _ => return Ok(()),
        };
        let before = self.cursors.insert((*job).to_owned(), *cursor);
        match before {
            Some(before) if before > *cursor && !scene.forgot => {
                Err(format!("the cursor of `{job}` went back from {before} to {cursor}"))
            }
            _ => Ok(()),
        }
    }
}

//! Terms of a group and fences of its jobs strictly rise in the order in which they take effect: fencing tokens (Kleppmann, "How to
//! do distributed locking", 2016; the sequencer of Burrows, "The Chubby lock service", 2006).
//!
//! Beyond what a store remembers they rise as far as somebody else does: an instance that lives, or the server's clock.

use std::collections::BTreeMap;

use super::{Invariant, Scene};
use crate::testing::simulation::seen::{Seen, Who};

#[derive(Default)]
pub(super) struct Rising {
    /// The highest term of a group that has taken effect, and the newest of each process.
    terms: BTreeMap<String, (u64, BTreeMap<Who, u64>)>,
    /// The same of a job.
    fences: BTreeMap<&'static str, u64>,
}

impl Invariant for Rising {
    fn name(&self) -> &'static str {
        "terms and fences rise"
    }

    fn see(&mut self, seen: &Seen<'_>, scene: Scene) -> Result<(), String> {
        match seen {
            Seen::Believes { who, group, term, .. } => {
                // One that was elected by a store that is gone may have had a higher one than who leads on: only new ones are looked at.
                let (highest, newest) = self.terms.entry((*group).to_owned()).or_default();
                let is_new = newest.insert(*who, *term) != Some(*term);
                if is_new && term < highest && !scene.split {
                    return Err(format!("{who:?} believes in term {term} of `{group}` after {highest}"));
                }
                *highest = (*term).max(*highest);
            }
            Seen::Polled {
                body,
                first: true,
                trusted: true,
            } => {
                let highest = self.fences.entry(body.job).or_default();
                if body.fence == *highest || (body.fence < *highest && !scene.split) {
                    return Err(format!("the fence {} of {body:?} is not above {highest}", body.fence));
                }
                if body.fence <= body.term {
                    return Err(format!("the fence of {body:?} is not above its term"));
                }
                *highest = body.fence.max(*highest);
            }
            _ => {}
        }
        Ok(())
    }
}

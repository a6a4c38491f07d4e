//! The store is told of an attempt what its body did: none that has not returned so ended well, or with an error. A fleet that tells of each
//! that it is done keeps all else.

use super::Known;
use crate::job::outcome::Ran;
use crate::store::tasks::TaskEnding;
use crate::testing::simulation::invariants::{Invariant, Scene};
use crate::testing::simulation::seen::Seen;
use crate::testing::simulation::tasks::seen::TaskSeen;

/// What the newest body of each task returned, once it has, by the fence of its attempt.
#[derive(Default)]
pub(super) struct Told(Known<(u64, Option<bool>)>);

impl Invariant for Told {
    fn name(&self) -> &'static str {
        "the store is told what attempts did"
    }

    fn see(&mut self, seen: &Seen<'_>, scene: Scene) -> Result<(), String> {
        if scene.forgets {
            self.0.0.clear();
            return Ok(());
        }
        let Seen::Task(seen) = seen else { return Ok(()) };
        match seen {
            TaskSeen::Polled {
                attempt, first: true, ..
            } => self.0.insert(&attempt.id, (attempt.fence, None)),
            TaskSeen::Ended { attempt, returned } => {
                if let Some(body) = self.0.get(&attempt.id).filter(|body| body.0 == attempt.fence) {
                    body.1 = *returned;
                }
            }
            TaskSeen::Finished { id, fence, how, .. } => {
                let wanted = match how {
                    TaskEnding::Done => true,
                    TaskEnding::Retry { ran: Ran::Error, .. } | TaskEnding::Bury { ran: Ran::Error, .. } => false,
                    _ => return Ok(()),
                };
                let body = self.0.get(id).filter(|body| body.0 == *fence);
                if let Some((_, returned)) = body.filter(|body| body.1 != Some(wanted)) {
                    return Err(format!(
                        "the body of {id} under {fence} returned {returned:?}, and the store is told {how:?}"
                    ));
                }
            }
            _ => {}
        }
        Ok(())
    }
}

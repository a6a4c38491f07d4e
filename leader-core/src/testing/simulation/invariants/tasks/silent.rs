//! An attempt whose body has begun is found lost only if its worker died, stood still or was cut off: that nobody could hear it, because the store was away, is no
//! reason (celery#5935 and kombu#337 take work again that is under way).

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

use crate::tasks::id::TaskId;
use crate::testing::simulation::invariants::{Invariant, Scene};
use crate::testing::simulation::seen::Seen;
use crate::testing::simulation::tasks::seen::TaskSeen;

/// How long what a fault has done may be felt after it: the longest that a message is late.
const FELT: SignedDuration = SignedDuration::from_secs(45);

#[derive(Default)]
pub(super) struct NoneSilenced {
    /// Whose the newest attempt of each task is whose body has begun, and since when.
    begun: BTreeMap<TaskId, (u32, usize, Timestamp)>,
    /// From when to when something was wrong with an instance.
    wrong: Vec<(usize, Timestamp, Timestamp)>,
}

impl Invariant for NoneSilenced {
    fn name(&self) -> &'static str {
        "no attempt is lost without a reason"
    }

    fn see(&mut self, seen: &Seen<'_>, scene: Scene) -> Result<(), String> {
        match seen {
            Seen::Fault(fault) if !fault.kind.is_of_the_store() => {
                self.wrong
                    .push((fault.instance, scene.now, scene.now + fault.lasts + FELT));
            }
            _ if scene.forgets => self.begun.clear(),
            Seen::Task(TaskSeen::Polled {
                attempt, first: true, ..
            }) => {
                let begun = (attempt.number, attempt.who.instance, scene.now);
                self.begun.insert(attempt.id.clone(), begun);
            }
            Seen::Task(TaskSeen::Finished { id, taken: true, .. }) => {
                self.begun.remove(id);
            }
            Seen::Task(TaskSeen::Lost { id, attempt, .. }) => {
                let Some((begun, who, since)) = self.begun.remove(id) else {
                    return Ok(());
                };
                let mut wrong = self.wrong.iter();
                let was_wrong = wrong.any(|(other, from, to)| *other == who && *from <= scene.now && since <= *to);
                if begun == *attempt && !was_wrong {
                    return Err(format!(
                        "attempt {attempt} at {id} is lost though nothing was wrong with instance {who} since {since}"
                    ));
                }
            }
            _ => {}
        }
        Ok(())
    }
}

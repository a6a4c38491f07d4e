//! A task that was stored for certain is done, dead or cancelled in the end (sidekiq PR 843, rq-scheduler PR 223, hermes PR 108945: popped
//! by a process that crashed, and gone).

use jiff::{SignedDuration, Timestamp};

use super::{Known, ended};
use crate::testing::simulation::fault::FaultKind;
use crate::testing::simulation::invariants::{Invariant, Scene};
use crate::testing::simulation::seen::Seen;
use crate::testing::simulation::tasks::seen::{Answer, TaskSeen};

/// How long an answer may be on its way.
const WAY: SignedDuration = SignedDuration::from_secs(120);

/// What a server has stored since it last forgot anything.
#[derive(Default)]
pub(super) struct NoTaskLost {
    /// Whether it has ended since.
    known: Known<bool>,
    remembers_from: Timestamp,
}

impl Invariant for NoTaskLost {
    fn name(&self) -> &'static str {
        "no task is lost"
    }

    fn see(&mut self, seen: &Seen<'_>, scene: Scene) -> Result<(), String> {
        let seen = match seen {
            // A clock that leaps forgets nothing.
            Seen::Fault(fault) if fault.kind.is_forgetful() && fault.kind != FaultKind::StoreClock => {
                let lasts = SignedDuration::try_from(fault.lasts).unwrap_or(SignedDuration::MAX);
                self.remembers_from = self.remembers_from.max(scene.now + lasts);
                self.known.0.clear();
                return Ok(());
            }
            Seen::Task(seen) => seen,
            _ => return Ok(()),
        };
        if scene.now <= self.remembers_from {
            return Ok(());
        }
        if let Some((id, _)) = ended(seen)
            && let Some(has_ended) = self.known.get(id)
        {
            *has_ended = true;
        }
        match seen {
            TaskSeen::Stored { id, again: false, .. } if self.known.get(id).is_none() => self.known.insert(id, false),
            TaskSeen::Answered {
                who,
                task,
                unique,
                answer: Answer::Stored(id),
            } if self.known.get(id).is_none() && self.remembers_from + WAY < scene.now => {
                return Err(format!(
                    "{who:?} was told that {id} of `{task}` is stored, with the key {unique:?}, and no server has stored it"
                ));
            }
            TaskSeen::Left { id, stored, .. } => match (self.known.get(id), stored) {
                (Some(false), None) => {
                    return Err(format!("{id} was stored, has not ended, and is not known any more"));
                }
                (Some(_), Some(stored)) if !stored.status.is_finished() => {
                    return Err(format!("{id} has not ended long after the last fault: {stored:?}"));
                }
                _ => {}
            },
            _ => {}
        }
        Ok(())
    }
}

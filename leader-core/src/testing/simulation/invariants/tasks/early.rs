//! No attempt begins before its task is due by the store's clock, whatever its machine's says; nor before what was asked for first, or last.

use jiff::{SignedDuration, Timestamp};

use super::Known;
use crate::store::tasks::{Changed, Due, TaskChange};
use crate::testing::simulation::fault::FaultKind;
use crate::testing::simulation::invariants::{Invariant, Scene};
use crate::testing::simulation::seen::Seen;
use crate::testing::simulation::tasks::seen::TaskSeen;

/// Servers count in whole milliseconds, and no two of them show the same time.
const OFF: SignedDuration = SignedDuration::from_millis(5);

#[derive(Default)]
pub(super) struct NoneEarly {
    /// When each was to be due at first.
    due: Known<Timestamp>,
    /// The store's clock has been wrong.
    leapt: bool,
}

impl Invariant for NoneEarly {
    fn name(&self) -> &'static str {
        "no attempt before its task is due"
    }

    fn see(&mut self, seen: &Seen<'_>, scene: Scene) -> Result<(), String> {
        if let Seen::Fault(fault) = seen {
            self.leapt |= fault.kind == FaultKind::StoreClock;
        }
        if self.leapt || scene.forgets {
            self.due.0.clear();
            return Ok(());
        }
        let Seen::Task(seen) = seen else { return Ok(()) };
        match seen {
            TaskSeen::Stored {
                id, due, again: false, ..
            } if self.due.get(id).is_none() => self.due.insert(id, *due),
            TaskSeen::Changed {
                id,
                change: TaskChange::Reschedule(due),
                changed: Changed::Done(_),
            } => match due {
                Due::At(at) => self.due.insert(id, *at),
                Due::After(pause) => {
                    let pause = SignedDuration::try_from(*pause).unwrap_or(SignedDuration::MAX);
                    self.due.insert(id, scene.now + pause);
                }
            },
            TaskSeen::Polled {
                attempt, first: true, ..
            } => {
                let asked = self.due.get(&attempt.id).copied().unwrap_or(attempt.due);
                let due = asked.max(attempt.due);
                if scene.now + OFF < due {
                    let early = due.duration_since(scene.now);
                    return Err(format!("{early:?} before it is due begins {attempt:?}"));
                }
            }
            _ => {}
        }
        Ok(())
    }
}

//! The fences of a task's attempts rise in the order in which they take effect, and no two attempts have one fence, whichever servers minted
//! them: fencing tokens (Kleppmann, "How to do distributed locking", 2016).

use std::collections::BTreeMap;

use super::{KEPT, Known};
use crate::store::tasks::Shard;
use crate::tasks::id::TaskId;
use crate::testing::simulation::fault::FaultKind;
use crate::testing::simulation::invariants::{Invariant, Scene};
use crate::testing::simulation::seen::Seen;
use crate::testing::simulation::tasks::seen::TaskSeen;

#[derive(Default)]
pub(super) struct Fences {
    /// Whose a fence of a shard is.
    whose: BTreeMap<(Shard, u64), (TaskId, u32, Option<usize>)>,
    /// The store's clock has been wrong.
    leapt: bool,
    /// The highest of each task, and which attempt had it.
    highest: Known<(u64, u32)>,
}

impl Invariant for Fences {
    fn name(&self) -> &'static str {
        "fences of attempts rise"
    }

    fn see(&mut self, seen: &Seen<'_>, scene: Scene) -> Result<(), String> {
        if let Seen::Fault(fault) = seen {
            self.leapt |= fault.kind == FaultKind::StoreClock;
        }
        if scene.split || scene.forgets {
            self.highest.0.clear();
        }
        let Seen::Task(TaskSeen::Begun {
            id,
            attempt,
            fence,
            instance,
            ..
        }) = seen
        else {
            return Ok(());
        };
        let begun = ((*id).clone(), *attempt, *instance);
        let whose = self.whose.entry((id.place().clone(), *fence)).or_insert(begun);
        // Who forgets, and whose clock goes back, has nothing left to mint above: workers carry no fence to it.
        if (&whose.0, whose.1, whose.2) != (id, *attempt, *instance) && !self.leapt {
            return Err(format!("attempt {attempt} at {id} has the fence {fence} of {whose:?}"));
        }
        if self.whose.len() > KEPT {
            self.whose.pop_first();
        }
        match self.highest.get(id) {
            Some((highest, before)) if (*fence > *highest) != (*attempt > *before) => Err(format!(
                "attempt {attempt} at {id} has the fence {fence}, and attempt {before} had {highest}"
            )),
            Some((highest, _)) if *fence <= *highest => Ok(()),
            _ => {
                self.highest.insert(id, (*fence, *attempt));
                Ok(())
            }
        }
    }
}

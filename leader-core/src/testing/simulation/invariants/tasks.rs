//! What must hold of tasks: one file each.
//!
//! What a server has done is seen there, at the true instant; what it is told to have done is compared with that. A server that forgets is
//! held to what it stores afterwards.

mod believer;
mod done;
mod drained;
mod early;
mod fences;
mod lost;
mod retries;
mod silent;
mod told;
mod trusted;
mod unique;

use std::collections::BTreeMap;

use super::Invariant;
use crate::store::tasks::{Changed, TaskChange, TaskStatus};
use crate::tasks::id::TaskId;
use crate::testing::simulation::tasks::seen::TaskSeen;

/// How many tasks are remembered: what comes later than that is not told from a new one.
const KEPT: usize = 20_000;

/// All of them, for a new run.
pub(super) fn all() -> Vec<Box<dyn Invariant>> {
    vec![
        Box::<lost::NoTaskLost>::default(),
        Box::<early::NoneEarly>::default(),
        Box::<fences::Fences>::default(),
        Box::new(believer::OneBeliever),
        Box::new(trusted::TrustedPolls),
        Box::<done::DoneOnce>::default(),
        Box::<told::Told>::default(),
        Box::<retries::Retries>::default(),
        Box::<unique::Unique>::default(),
        Box::<silent::NoneSilenced>::default(),
        Box::new(drained::Drained),
    ]
}

/// Something that is known of tasks, the newest of them.
struct Known<T>(BTreeMap<TaskId, T>);

impl<T> Default for Known<T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<T> Known<T> {
    fn insert(&mut self, id: &TaskId, what: T) {
        self.0.insert(id.clone(), what);
        if self.0.len() > KEPT {
            self.0.pop_first();
        }
    }

    fn get(&mut self, id: &TaskId) -> Option<&mut T> {
        self.0.get_mut(id)
    }
}

/// The task that has ended for good with what was seen, and how.
fn ended<'a>(seen: &TaskSeen<'a>) -> Option<(&'a TaskId, TaskStatus)> {
    match seen {
        TaskSeen::Finished { id, now: Some(now), .. } | TaskSeen::Lost { id, now: Some(now), .. } => {
            now.is_finished().then_some((id, *now))
        }
        TaskSeen::Changed {
            id,
            change: TaskChange::Cancel,
            changed: Changed::Done(_),
        } => Some((id, TaskStatus::Cancelled)),
        _ => None,
    }
}

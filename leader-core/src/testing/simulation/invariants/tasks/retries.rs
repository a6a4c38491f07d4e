//! A task fails as often as it may and no more, and dies of nothing else but of being lost too often (river and others counted a lost attempt
//! as a failure; celery#4627: tried again for ever).

use super::Known;
use crate::store::tasks::{TaskEnding, TaskStatus};
use crate::tasks::spec::LOSSES;
use crate::testing::simulation::invariants::{Invariant, Scene};
use crate::testing::simulation::seen::Seen;
use crate::testing::simulation::tasks::seen::TaskSeen;

#[derive(Default)]
struct Tries {
    /// The attempt whose failure was accepted last.
    last: Option<u64>,
    failed: u32,
    lost: u32,
}

/// By task, of those that were stored since a server last forgot anything.
#[derive(Default)]
pub(super) struct Retries(Known<Tries>);

impl Invariant for Retries {
    fn name(&self) -> &'static str {
        "tries are as many as they may be"
    }

    fn see(&mut self, seen: &Seen<'_>, scene: Scene) -> Result<(), String> {
        if scene.forgets {
            self.0.0.clear();
            return Ok(());
        }
        let Seen::Task(seen) = seen else { return Ok(()) };
        match seen {
            TaskSeen::Stored { id, again: false, .. } if self.0.get(id).is_none() => {
                self.0.insert(id, Tries::default());
            }
            TaskSeen::Finished {
                id,
                fence,
                how: TaskEnding::Retry { .. } | TaskEnding::Bury { .. },
                taken: true,
                ..
            } => {
                if let Some(tries) = self.0.get(id).filter(|tries| tries.last != Some(*fence)) {
                    tries.last = Some(*fence);
                    tries.failed += 1;
                }
            }
            TaskSeen::Lost { id, .. } => {
                if let Some(tries) = self.0.get(id) {
                    tries.lost += 1;
                }
            }
            TaskSeen::Left { id, stored, retries } => {
                let Some(tries) = self.0.get(id) else { return Ok(()) };
                let dead = stored.is_some_and(|stored| stored.status == TaskStatus::Dead);
                let of_failures = tries.failed == retries + 1;
                if tries.failed > retries + 1 || dead != (of_failures || tries.lost > LOSSES) {
                    // A failure of what somebody had cancelled is its end.
                    let cancelled = stored.is_some_and(|stored| stored.status == TaskStatus::Cancelled);
                    if !cancelled || tries.failed > retries + 1 {
                        return Err(format!(
                            "{id} may be tried again {retries} times; it failed {} times, was lost {} times, and is {:?}",
                            tries.failed,
                            tries.lost,
                            stored.map(|stored| stored.status)
                        ));
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }
}

//! What people want of a task.

use jiff::Timestamp;

use super::enqueue::{due, earlier};
use super::shard::{Key, Tasks, millis};
use crate::store::embedded::Data;
use crate::store::embedded::step::Time;
use crate::store::tasks::{ChangeTask, Changed, TaskChange, TaskStatus};

/// With when the first task of the shard is due, where that is earlier than it was.
pub(super) fn change(data: &mut Data, request: ChangeTask, time: Time<'_>) -> (Changed, Option<Timestamp>) {
    let Some(tasks) = data.known_tasks_mut(&request.shard) else {
        return (Changed::Unknown, None);
    };
    let before = tasks.earliest();
    let changed = tasks.change(Key::from(request.key), request.change, time);
    (changed, earlier(before, tasks))
}

impl Tasks {
    #[allow(clippy::needless_pass_by_value, reason = "the caller's is not needed any more")]
    fn change(&mut self, key: Key, change: TaskChange, time: Time<'_>) -> Changed {
        use TaskStatus::{Cancelled, Dead, Dispatched, Failed, Pending, Running};

        let Some(task) = self.all.get_mut(&key) else {
            return Changed::Unknown;
        };
        let (status, now) = (task.status, millis(time.wall));
        let task_lane = std::sync::Arc::clone(&task.lane);
        match (change, status) {
            (TaskChange::Cancel, Pending | Failed | Dispatched) => {
                time.frees();
                self.unwait(&key);
                if status == Dispatched {
                    let lane = std::sync::Arc::clone(&task_lane);
                    self.line(&lane).stream.retain(|(_, waits)| *waits != key);
                }
                self.end(&key, Cancelled, time);
            }
            (TaskChange::Cancel, Running) => {
                time.grows();
                if let Some(running) = &mut task.past_mut().running {
                    running.cancel = true;
                }
                return Changed::Asked;
            }
            (TaskChange::Reschedule(wanted), Pending | Failed) => {
                time.grows();
                self.unwait(&key);
                self.wait(&key, status, due(wanted, now));
            }
            (TaskChange::Retry, Failed) => {
                time.grows();
                self.unwait(&key);
                self.wait(&key, Failed, now);
            }
            (TaskChange::Retry, Dead) => {
                let holder = task.unique.as_ref().and_then(|unique| self.unique.get(unique));
                if let Some(other) = holder {
                    return Changed::UniqueTaken((**other).to_owned());
                }
                time.grows();
                self.revive(&key, now);
            }
            _ => return Changed::Not(status),
        }
        Changed::Done(status)
    }
}

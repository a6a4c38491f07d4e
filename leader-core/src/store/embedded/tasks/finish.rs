//! Attempts end.

use jiff::Timestamp;

use super::enqueue::earlier;
use super::shard::{Key, Task, Tasks, later, millis};
use crate::job::outcome::Ran;
use crate::mutants::{Mutant, planted};
use crate::store::embedded::Data;
use crate::store::embedded::step::Time;
use crate::store::tasks::{FinishBatch, FinishReply, TaskEnd, TaskEnding, TaskStatus};

/// With when the first task of the shard is due, where that is earlier than it was.
///
/// Needs no memory: what was done is not to be done again because it cannot be told.
pub(super) fn finish(data: &mut Data, batch: FinishBatch, time: Time<'_>) -> (Vec<FinishReply>, Option<Timestamp>) {
    let tasks = data.tasks_mut(&batch.shard);
    let before = tasks.earliest();
    let ends = batch.ends.into_iter();
    let replies = ends.map(|end| tasks.finish(end, time)).collect();
    (replies, earlier(before, tasks))
}

impl Tasks {
    fn finish(&mut self, end: TaskEnd, time: Time<'_>) -> FinishReply {
        let key = Key::from(end.key);
        let mut fence = end.fence;
        if planted(Mutant::TaskLateResult) {
            let running = self.all.get(&key).and_then(Task::running);
            fence = running.map_or(fence, |running| running.fence);
        }
        let cancel = self.all.get_mut(&key).and_then(|task| task.under(fence));
        let Some(cancel) = cancel.map(|running| running.cancel) else {
            let past = self.all.get(&key).and_then(Task::past);
            let last = past.and_then(|past| past.history.back());
            // What was found to be lost has been given up: its worker told nothing before.
            if last.is_some_and(|last| last.fence == end.fence && last.ran != Ran::Lost) {
                return FinishReply::Taken;
            }
            time.frees();
            self.counts.late += 1;
            return FinishReply::Late;
        };
        time.frees();
        let how = match end.how {
            TaskEnding::Retry { .. } | TaskEnding::Bury { .. } | TaskEnding::HandBack if cancel => {
                TaskEnding::Cancelled
            }
            how => how,
        };
        let now = millis(time.wall);
        match how {
            TaskEnding::Done => {
                self.part(&key, Ran::Ok, String::new(), time);
                self.end(&key, TaskStatus::Done, time);
            }
            TaskEnding::Cancelled => {
                self.part(&key, Ran::Cancelled, String::new(), time);
                self.end(&key, TaskStatus::Cancelled, time);
            }
            TaskEnding::Retry { after, ran, error } => {
                self.part(&key, ran, error, time);
                self.fail(&key);
                self.wait(&key, TaskStatus::Failed, later(now, after));
            }
            TaskEnding::Bury { ran, error } => {
                self.part(&key, ran, error, time);
                self.fail(&key);
                self.end(&key, TaskStatus::Dead, time);
            }
            TaskEnding::HandBack => {
                self.part(&key, Ran::Cancelled, String::new(), time);
                self.counts.handed_back += 1;
                self.wait(&key, TaskStatus::Failed, now);
            }
        }
        FinishReply::Taken
    }

    fn fail(&mut self, key: &Key) {
        self.counts.failed += 1;
        if let Some(task) = self.all.get_mut(key) {
            task.past_mut().failed += 1;
        }
    }
}

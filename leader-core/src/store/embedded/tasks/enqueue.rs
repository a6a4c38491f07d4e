//! Tasks are stored, and remembered.

use std::time::Duration;

use jiff::Timestamp;

use super::shard::{Key, Task, Tasks, instant, later, millis, say};
use crate::store::embedded::Data;
use crate::store::embedded::step::Time;
use crate::store::tasks::{Due, EnqueueBatch, EnqueueReply, NewTask, Shard, TaskStatus};

/// With when the first task of the shard is due, where that is earlier than it was.
pub(super) fn enqueue(data: &mut Data, batch: EnqueueBatch, time: Time<'_>) -> (EnqueueReply, Option<Timestamp>) {
    let tasks = data.tasks_mut(&batch.shard);
    if batch.generation < tasks.generation {
        let generation = tasks.generation;
        return (EnqueueReply::Moved { generation }, None);
    }
    if batch.generation > tasks.generation {
        time.grows();
        tasks.generation = batch.generation;
    }
    let before = tasks.earliest();
    let last = tasks.producers.get(&batch.producer);
    let instead = match last.filter(|last| batch.number <= last.number) {
        // Nobody waits for the answer to one before the last.
        Some(last) if batch.number == last.number && last.told.len() == batch.tasks.len() => last.told.clone(),
        Some(_) => vec![None; batch.tasks.len()],
        None => {
            time.grows();
            let generation = batch.generation;
            let one = |task| tasks.take_in(task, generation, time).map(|key| (*key).to_owned());
            let instead: Vec<_> = batch.tasks.into_iter().map(one).collect();
            let now = millis(time.wall);
            say(
                &mut tasks.producers,
                &batch.producer,
                batch.number,
                now,
                instead.clone(),
            );
            instead
        }
    };
    let stored = EnqueueReply::Stored {
        now: time.wall,
        instead,
    };
    (stored, earlier(before, tasks))
}

/// When the first task is due, where it was later before.
pub(super) fn earlier(before: Option<i64>, tasks: &Tasks) -> Option<Timestamp> {
    let first = tasks.earliest()?;
    before.is_none_or(|before| first < before).then(|| instant(first))
}

/// As the store keeps it.
pub(super) fn due(due: Due, now: i64) -> i64 {
    match due {
        // None early: a part of a millisecond is a whole one.
        Due::At(at) => millis(at) + i64::from(at.subsec_nanosecond().rem_euclid(1_000_000) != 0),
        Due::After(span) => later(now, span.saturating_add(Duration::from_nanos(999_999))),
    }
}

impl Tasks {
    /// Another unfinished task that has the unique key.
    fn other(&self, task: &NewTask) -> Option<&Key> {
        let holder = self.unique.get(task.unique.as_deref()?);
        holder.filter(|key| ***key != *task.key)
    }

    /// Stores a task, or tells whose place it would have taken.
    fn take_in(&mut self, new: NewTask, generation: u32, time: Time<'_>) -> Option<Key> {
        if let Some(other) = self.other(&new) {
            return Some(Key::clone(other));
        }
        let key = Key::from(new.key);
        let now = millis(time.wall);
        if new.once && self.once.contains_key(&key) {
            return Some(key);
        }
        let ended = self
            .all
            .get(&key)
            .map(|task| (task.status, task.past().and_then(|past| past.ended)));
        match ended {
            Some((TaskStatus::Done | TaskStatus::Cancelled, Some(ended))) => {
                self.ended.remove(&(ended, Key::clone(&key)));
            }
            Some(_) => return None,
            None => {}
        }
        if new.once {
            self.once.insert(Key::clone(&key), now);
        }
        let lane = self.lane(&new.lane);
        let unique = new.unique.map(Key::from);
        let task = Task {
            lane,
            status: TaskStatus::Pending,
            generation,
            due: due(new.due, now),
            created: now,
            unique,
            payload: Some(new.payload),
            past: None,
        };
        self.store(key, task);
        None
    }
}

pub(super) fn forget_once(data: &mut Data, shard: &Shard, keys: &[String], time: Time<'_>) {
    let Some(tasks) = data.known_tasks_mut(shard) else {
        return;
    };
    for key in keys {
        if tasks.once.remove(&**key).is_some() {
            time.frees();
        }
    }
}

pub(super) fn unique(data: &Data, shard: &Shard, unique: &str) -> Option<String> {
    let key = data.known_tasks(shard)?.unique.get(unique)?;
    Some((**key).to_owned())
}

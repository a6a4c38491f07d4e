//! What the embedded store keeps of the tasks of a shard, and how a task goes from one state to another.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::due::{Place, Waiting};
use crate::clock::Moment;
use crate::job::outcome::Ran;
use crate::mutants::{Mutant, planted};
use crate::names::Holder;
use crate::store::embedded::Data;
use crate::store::embedded::step::Time;
use crate::store::tasks::{KEPT_ATTEMPTS, Lane, PastAttempt, Shard, TaskCounts, TaskStatus};

/// What a task is called; also a unique key.
pub(super) type Key = Arc<str>;

/// The tasks of one shard. Instants are milliseconds of the server's clock.
#[derive(Clone, Debug, Default)]
pub(in crate::store::embedded) struct Tasks {
    /// The newest generation that is known; 0 before the first.
    pub(super) generation: u32,
    /// Each producer's last batch, and what it was answered.
    pub(super) producers: BTreeMap<Holder, Said<Option<String>>>,
    /// Each worker's last step that began something, and the attempts.
    pub(super) takes: BTreeMap<Holder, Said<(Key, u64)>>,
    /// Since when keys are remembered.
    pub(super) once: BTreeMap<Key, i64>,
    pub(super) all: BTreeMap<Key, Task>,
    /// The unfinished task of each unique key.
    pub(super) unique: BTreeMap<Key, Key>,
    pub(super) lanes: BTreeMap<Arc<Lane>, Line>,
    /// The last entry of a stream.
    pub(super) entry: u64,
    /// Attempts under way, the longest silent first.
    pub(super) heard: BTreeSet<(Moment, Key)>,
    /// Attempts under way by fence: in the order in which they began.
    pub(super) running: BTreeMap<u64, Key>,
    /// What is done or was cancelled, the oldest first.
    pub(super) ended: BTreeSet<Place>,
    /// Dead letters, the oldest first.
    pub(super) dead: BTreeSet<Place>,
    /// By generation.
    pub(super) unfinished: BTreeMap<u32, u64>,
    pub(super) counts: TaskCounts,
}

/// What a process has been told last.
#[derive(Clone, Debug)]
pub(super) struct Said<T> {
    pub(super) number: u64,
    pub(super) at: i64,
    pub(super) told: Vec<T>,
}

/// How long it is kept of a process that says nothing more.
const GONE: i64 = 24 * 60 * 60 * 1_000;

/// Keeps what a process is told. When it is new, what those have left that are long gone is forgotten.
pub(super) fn say<T>(all: &mut BTreeMap<Holder, Said<T>>, process: &Holder, number: u64, at: i64, told: Vec<T>) {
    if !all.contains_key(process) {
        all.retain(|_, said| at.saturating_sub(said.at) <= GONE);
    }
    all.insert(process.clone(), Said { number, at, told });
}

/// One lane.
#[derive(Clone, Debug, Default)]
pub(super) struct Line {
    pub(super) waiting: Waiting,
    /// The entries that no worker has begun; the tasks of some may have been cancelled since.
    pub(super) stream: VecDeque<(u64, Key)>,
    /// Attempts under way.
    pub(super) running: usize,
}

impl Line {
    pub(super) fn has_room(&self, room: u32) -> bool {
        self.stream.len() < room as usize
    }
}

/// One task.
#[derive(Clone, Debug)]
pub(super) struct Task {
    pub(super) lane: Arc<Lane>,
    pub(super) status: TaskStatus,
    pub(super) generation: u32,
    pub(super) due: i64,
    pub(super) created: i64,
    pub(super) unique: Option<Key>,
    pub(super) payload: Option<Arc<str>>,
    /// Millions wait for their time, and have none of this.
    pub(super) past: Option<Box<Past>>,
}

/// What has happened to a task.
#[derive(Clone, Debug, Default)]
pub(super) struct Past {
    pub(super) attempts: u32,
    pub(super) failed: u32,
    pub(super) losses: u32,
    /// Its entry in the stream.
    pub(super) entry: u64,
    pub(super) running: Option<Running>,
    pub(super) history: VecDeque<PastAttempt>,
    pub(super) ended: Option<i64>,
}

/// An attempt under way.
#[derive(Clone, Debug)]
pub(super) struct Running {
    pub(super) fence: u64,
    pub(super) holder: Holder,
    pub(super) began: Timestamp,
    pub(super) heard: Moment,
    pub(super) heard_at: Timestamp,
    /// Whether somebody wants it to end.
    pub(super) cancel: bool,
}

impl Task {
    pub(super) fn past(&self) -> Option<&Past> {
        self.past.as_deref()
    }

    pub(super) fn past_mut(&mut self) -> &mut Past {
        self.past.get_or_insert_default()
    }

    pub(super) fn running(&self) -> Option<&Running> {
        self.past()?.running.as_ref()
    }

    /// The attempt under way, if it has this fence.
    pub(super) fn under(&mut self, fence: u64) -> Option<&mut Running> {
        let running = self.past.as_mut()?.running.as_mut();
        running.filter(|running| running.fence == fence)
    }
}

impl Tasks {
    /// When the first task of all lanes is due.
    pub(super) fn earliest(&self) -> Option<i64> {
        self.lanes.values().filter_map(|line| line.waiting.first()).min()
    }

    pub(super) fn line(&mut self, lane: &Arc<Lane>) -> &mut Line {
        self.lanes.entry(Arc::clone(lane)).or_default()
    }

    /// The one copy of a lane's name.
    pub(super) fn lane(&mut self, lane: &Lane) -> Arc<Lane> {
        if let Some((known, _)) = self.lanes.get_key_value(lane) {
            return Arc::clone(known);
        }
        let lane = Arc::new(lane.clone());
        self.line(&lane);
        lane
    }

    /// A new task waits.
    pub(super) fn store(&mut self, key: Key, task: Task) {
        *self.unfinished.entry(task.generation).or_default() += 1;
        self.counts.enqueued += 1;
        if let Some(unique) = &task.unique {
            self.unique.insert(Key::clone(unique), Key::clone(&key));
        }
        self.line(&task.lane).waiting.insert(task.due, Key::clone(&key));
        self.all.insert(key, task);
    }

    /// A task waits for its time.
    pub(super) fn wait(&mut self, key: &Key, status: TaskStatus, due: i64) {
        let Some(task) = self.all.get_mut(key) else { return };
        (task.status, task.due) = (status, due);
        let lane = Arc::clone(&task.lane);
        self.line(&lane).waiting.insert(due, Key::clone(key));
    }

    /// A task waits for its time no longer.
    pub(super) fn unwait(&mut self, key: &Key) {
        let Some(task) = self.all.get(key) else { return };
        let (lane, due) = (Arc::clone(&task.lane), task.due);
        self.line(&lane).waiting.remove(due, key);
    }

    /// An attempt begins.
    pub(super) fn begin(&mut self, key: &Key, holder: &Holder, fence: u64, time: Time<'_>) {
        let Some(task) = self.all.get_mut(key) else { return };
        task.status = TaskStatus::Running;
        if planted(Mutant::TaskUniqueFreedEarly)
            && let Some(unique) = &task.unique
        {
            self.unique.remove(unique);
        }
        let past = task.past_mut();
        past.attempts += 1;
        past.running = Some(Running {
            fence,
            holder: holder.clone(),
            began: time.wall,
            heard: time.moment,
            heard_at: time.wall,
            cancel: false,
        });
        let lane = Arc::clone(&task.lane);
        self.line(&lane).running += 1;
        self.heard.insert((time.moment, Key::clone(key)));
        self.running.insert(fence, Key::clone(key));
        self.counts.started += 1;
    }

    /// An attempt is heard of.
    pub(super) fn hear(&mut self, key: &Key, time: Time<'_>) {
        let past = self.all.get_mut(key).map(Task::past_mut);
        let Some(running) = past.and_then(|past| past.running.as_mut()) else {
            return;
        };
        self.heard.remove(&(running.heard, Key::clone(key)));
        (running.heard, running.heard_at) = (time.moment, time.wall);
        self.heard.insert((time.moment, Key::clone(key)));
    }

    /// The attempt under way ends; what it was.
    pub(super) fn part(&mut self, key: &Key, ran: Ran, error: String, time: Time<'_>) -> Option<PastAttempt> {
        let task = self.all.get_mut(key)?;
        let past = task.past_mut();
        let running = past.running.take()?;
        let attempt = PastAttempt {
            attempt: past.attempts,
            fence: running.fence,
            holder: running.holder,
            began: running.began,
            ended: time.wall,
            ran,
            error,
        };
        past.history.push_back(attempt.clone());
        if past.history.len() > KEPT_ATTEMPTS {
            past.history.pop_front();
        }
        let lane = Arc::clone(&task.lane);
        self.heard.remove(&(running.heard, Key::clone(key)));
        self.running.remove(&running.fence);
        self.line(&lane).running -= 1;
        Some(attempt)
    }

    /// A task is done, dies or is cancelled. It neither waits nor runs.
    pub(super) fn end(&mut self, key: &Key, status: TaskStatus, time: Time<'_>) {
        let Some(task) = self.all.get_mut(key) else { return };
        let now = millis(time.wall);
        task.status = status;
        task.past_mut().ended = Some(now);
        let place = (now, Key::clone(key));
        if status == TaskStatus::Dead {
            self.counts.dead += 1;
            self.dead.insert(place);
        } else {
            let cancelled = status == TaskStatus::Cancelled;
            self.counts.cancelled += u64::from(cancelled);
            self.counts.done += u64::from(!cancelled);
            task.payload = None;
            self.ended.insert(place);
        }
        if let Some(unique) = &task.unique
            && self.unique.get(unique) == Some(key)
            && !planted(Mutant::TaskUniqueKept)
        {
            self.unique.remove(unique);
        }
        if let Some(count) = self.unfinished.get_mut(&task.generation) {
            *count -= 1;
            if *count == 0 {
                self.unfinished.remove(&task.generation);
            }
        }
    }

    /// A dead task is unfinished again, and waits.
    pub(super) fn revive(&mut self, key: &Key, now: i64) {
        let Some(task) = self.all.get_mut(key) else { return };
        *self.unfinished.entry(task.generation).or_default() += 1;
        if let Some(unique) = &task.unique {
            self.unique.insert(Key::clone(unique), Key::clone(key));
        }
        let past = task.past_mut();
        (past.failed, past.losses) = (0, 0);
        if let Some(ended) = past.ended.take() {
            self.dead.remove(&(ended, Key::clone(key)));
        }
        self.wait(key, TaskStatus::Failed, now);
    }
}

impl Data {
    /// The tasks of a shard, to be written.
    pub(super) fn tasks_mut(&mut self, shard: &Shard) -> &mut Tasks {
        let group = self.groups.entry(shard.group()).or_default();
        group.tasks.get_or_insert_default()
    }

    /// The tasks of a shard, if it has had any.
    pub(super) fn known_tasks_mut(&mut self, shard: &Shard) -> Option<&mut Tasks> {
        self.groups.get_mut(&shard.group())?.tasks.as_deref_mut()
    }

    /// The same, to be read.
    pub(super) fn known_tasks(&self, shard: &Shard) -> Option<&Tasks> {
        self.groups.get(&shard.group())?.tasks.as_deref()
    }
}

/// An instant as it is kept.
pub(super) fn millis(at: Timestamp) -> i64 {
    at.as_millisecond()
}

/// An instant as it is told.
pub(super) fn instant(millis: i64) -> Timestamp {
    let farthest = if millis < 0 { Timestamp::MIN } else { Timestamp::MAX };
    Timestamp::from_millisecond(millis).unwrap_or(farthest)
}

/// So long after an instant.
pub(super) fn later(now: i64, span: Duration) -> i64 {
    let span = i64::try_from(span.as_millis()).unwrap_or(i64::MAX);
    now.saturating_add(span).min(millis(Timestamp::MAX))
}

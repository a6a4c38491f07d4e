//! What is told of tasks.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Bound;

use super::due::Place;
use super::shard::{Key, Line, Task, Tasks, instant, millis};
use crate::store::embedded::Data;
use crate::store::embedded::step::Time;
use crate::store::error::StoreError;
use crate::store::tasks::{Lane, ListTasks, RunningAttempt, Shard, ShardFigures, StoredTask, TaskPage, TaskStatus};

pub(super) fn task(data: &Data, shard: &Shard, key: &str) -> Option<StoredTask> {
    let (key, task) = data.known_tasks(shard)?.all.get_key_value(key)?;
    let payload = task.payload.clone();
    Some(StoredTask {
        payload,
        ..stored(key, task)
    })
}

/// A task without its payload.
fn stored(key: &Key, task: &Task) -> StoredTask {
    let past = task.past();
    let running = task.running().map(|running| RunningAttempt {
        fence: running.fence,
        holder: running.holder.clone(),
        began: running.began,
        heard: running.heard_at,
    });
    StoredTask {
        key: (**key).to_owned(),
        lane: (*task.lane).clone(),
        status: task.status,
        due: instant(task.due),
        created: instant(task.created),
        ended: past.and_then(|past| past.ended).map(instant),
        unique: task.unique.as_deref().map(str::to_owned),
        attempts: past.map_or(0, |past| past.attempts),
        running,
        history: past
            .map(|past| past.history.iter().cloned().collect())
            .unwrap_or_default(),
        payload: None,
    }
}

pub(super) fn figures(data: &Data, shard: &Shard, time: Time<'_>) -> ShardFigures {
    let now = time.wall;
    let Some(tasks) = data.known_tasks(shard) else {
        return ShardFigures {
            now,
            ..ShardFigures::default()
        };
    };
    let lines = || tasks.lanes.values();
    let oldest = tasks.earliest().filter(|due| *due <= millis(now));
    ShardFigures {
        now,
        pending: lines().map(|line| line.waiting.len()).sum(),
        due: lines().map(|line| line.waiting.due(millis(now))).sum(),
        oldest_due: oldest.map(instant),
        dispatched: lines().map(|line| line.stream.len() as u64).sum(),
        running: tasks.running.len() as u64,
        dead: tasks.dead.len() as u64,
        counts: tasks.counts,
        unfinished: tasks.unfinished.clone(),
    }
}

/// Where a task stands in its list, as its cursor says.
#[derive(Clone, Debug)]
enum Cursor {
    Waiting(Lane, Place),
    Stream(Lane, u64),
    Running(u64),
    Ended(Place),
}

impl fmt::Display for Cursor {
    /// Neither lanes nor keys have control characters.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Waiting(lane, (due, key)) => write!(f, "w\n{lane}\n{due}\n{key}"),
            Self::Stream(lane, entry) => write!(f, "s\n{lane}\n{entry}"),
            Self::Running(fence) => write!(f, "r\n{fence}"),
            Self::Ended((ended, key)) => write!(f, "e\n{ended}\n{key}"),
        }
    }
}

impl Cursor {
    fn read(text: &str) -> Option<Self> {
        let parts: Vec<_> = text.split('\n').collect();
        Some(match *parts {
            ["w", lane, due, key] => Self::Waiting(Lane::from_store(lane)?, (due.parse().ok()?, key.into())),
            ["s", lane, entry] => Self::Stream(Lane::from_store(lane)?, entry.parse().ok()?),
            ["r", fence] => Self::Running(fence.parse().ok()?),
            ["e", ended, key] => Self::Ended((ended.parse().ok()?, key.into())),
            _ => return None,
        })
    }
}

/// The tasks of a list with their places in it.
type Places<'a> = Box<dyn Iterator<Item = (Cursor, &'a Key)> + 'a>;

pub(super) fn list(data: &Data, request: &ListTasks) -> Result<TaskPage, StoreError> {
    let no_place = || {
        let after = request.after.as_deref().unwrap_or_default();
        let advice = format!(
            "no page of {} tasks ended at {after:?}: begin with the first page",
            request.status
        );
        StoreError::refused("CURSOR").with_advice(advice)
    };
    let after = request
        .after
        .as_deref()
        .map(|after| Cursor::read(after).ok_or_else(no_place));
    let after = after.transpose()?;
    let Some(tasks) = data.known_tasks(&request.shard) else {
        return Ok(TaskPage::default());
    };
    let places = match (request.status, after) {
        (TaskStatus::Pending | TaskStatus::Failed, None) => tasks.waiting(request, None),
        (TaskStatus::Pending | TaskStatus::Failed, Some(Cursor::Waiting(lane, place))) => {
            tasks.waiting(request, Some((lane, place)))
        }
        (TaskStatus::Dispatched, None) => tasks.streams(request, None),
        (TaskStatus::Dispatched, Some(Cursor::Stream(lane, entry))) => tasks.streams(request, Some((lane, entry))),
        (TaskStatus::Running, None) => tasks.under_way(0),
        (TaskStatus::Running, Some(Cursor::Running(fence))) => tasks.under_way(fence),
        (TaskStatus::Done | TaskStatus::Cancelled, None) => ended(&tasks.ended, None),
        (TaskStatus::Done | TaskStatus::Cancelled, Some(Cursor::Ended(place))) => ended(&tasks.ended, Some(place)),
        (TaskStatus::Dead, None) => ended(&tasks.dead, None),
        (TaskStatus::Dead, Some(Cursor::Ended(place))) => ended(&tasks.dead, Some(place)),
        _ => return Err(no_place()),
    };
    Ok(tasks.page(request, places))
}

fn ended(kind: &BTreeSet<Place>, after: Option<Place>) -> Places<'_> {
    let bound = after.map_or(Bound::Unbounded, Bound::Excluded);
    let places = kind.range((bound, Bound::Unbounded));
    Box::new(places.map(|place| (Cursor::Ended(place.clone()), &place.1)))
}

impl Tasks {
    fn waiting<'a>(&'a self, request: &'a ListTasks, after: Option<(Lane, Place)>) -> Places<'a> {
        let (first, place) = after.unzip();
        let before = request.due_before.map_or(i64::MAX, millis);
        let lanes = self.lanes_from(request, first.as_ref());
        let of = move |(lane, line): (&'a Lane, &'a Line)| {
            let place = place.as_ref().filter(|_| first.as_ref() == Some(lane));
            let places: Vec<_> = line
                .waiting
                .after(place)
                .take_while(|(due, _)| *due < before)
                // No more of one lane can be asked for, and one beyond tells that there is more.
                .take(request.most.max(1) as usize + 1)
                .collect();
            places
                .into_iter()
                .map(|place| (Cursor::Waiting(lane.clone(), place.clone()), &place.1))
        };
        Box::new(lanes.flat_map(of))
    }

    fn streams<'a>(&'a self, request: &'a ListTasks, after: Option<(Lane, u64)>) -> Places<'a> {
        let (first, entry) = after.unzip();
        let lanes = self.lanes_from(request, first.as_ref());
        let of = move |(lane, line): (&'a Lane, &'a Line)| {
            let entry = entry.filter(|_| first.as_ref() == Some(lane)).unwrap_or(0);
            let begin = line.stream.partition_point(|(known, _)| *known <= entry);
            let entries = line.stream.range(begin..);
            entries.map(move |(entry, key)| (Cursor::Stream(lane.clone(), *entry), key))
        };
        Box::new(lanes.flat_map(of))
    }

    fn under_way(&self, after: u64) -> Places<'_> {
        let attempts = self.running.range((Bound::Excluded(after), Bound::Unbounded));
        Box::new(attempts.map(|(fence, key)| (Cursor::Running(*fence), key)))
    }

    /// The lanes asked for.
    fn lanes_from<'a>(
        &'a self,
        request: &'a ListTasks,
        first: Option<&Lane>,
    ) -> impl Iterator<Item = (&'a Lane, &'a Line)> + use<'a> {
        let bound = first.map_or(Bound::Unbounded, Bound::Included);
        let lanes = self.lanes.range::<Lane, _>((bound, Bound::Unbounded));
        let lanes = lanes.map(|(lane, line)| (&**lane, line));
        lanes.filter(move |(lane, _)| request.task.as_ref().is_none_or(|task| lane.task == *task))
    }

    fn page(&self, request: &ListTasks, places: Places<'_>) -> TaskPage {
        let mut places = places.peekable();
        let mut page = TaskPage::default();
        let mut last = None;
        for _ in 0..request.most.max(1) {
            let Some((cursor, key)) = places.next() else { break };
            // An entry may be that of one which was cancelled, and of the same name since.
            let is_its_own = match &cursor {
                Cursor::Stream(_, entry) => self.is_entry_of(key, *entry),
                _ => true,
            };
            last = Some(cursor);
            let Some(task) = self.all.get(key) else { continue };
            let asked = is_its_own
                && task.status == request.status
                && request.task.as_ref().is_none_or(|name| task.lane.task == *name)
                && request.due_before.is_none_or(|before| task.due < millis(before));
            if asked {
                page.tasks.push(stored(key, task));
            }
        }
        if places.peek().is_some() {
            page.next = last.map(|cursor| cursor.to_string());
        }
        page
    }
}

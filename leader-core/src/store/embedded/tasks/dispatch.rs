//! The dispatcher's step: what is due goes to the streams, what is silent is lost, what has ended is forgotten in its time.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::due::Place;
use super::shard::{Line, Tasks, instant, millis};
use crate::job::outcome::Ran;
use crate::mutants::{Mutant, planted};
use crate::names::TaskName;
use crate::store::embedded::Data;
use crate::store::embedded::step::{Time, whole_millis};
use crate::store::tasks::{Dispatch, DispatchReply, LostAttempt, Moves, TaskKeep, TaskStatus};

/// The most attempts that one step finds to be lost.
const LOST_AT_ONCE: usize = 100;
/// The most of each kind that one step forgets.
const FORGOTTEN_AT_ONCE: usize = 1_000;
/// What the history says of an attempt that is lost.
const SILENT: &str = "the worker fell silent";

/// With the names of the tasks that were moved.
pub(super) fn dispatch(data: &mut Data, request: &Dispatch, time: Time<'_>) -> (DispatchReply, Vec<TaskName>) {
    let not_yours = (DispatchReply::NotYours, Vec::new());
    let Some(group) = data.groups.get_mut(&request.shard.group()) else {
        return not_yours;
    };
    if !group.is_held_by(&request.holder, request.term, time.moment) {
        return not_yours;
    }
    // A shard without a task is looked at with every renewal, and nothing is kept for that.
    let mut empty = Tasks::default();
    let tasks = group.tasks.as_deref_mut().unwrap_or(&mut empty);
    let silence = whole(request.silence);
    let lost = if planted(Mutant::TaskLostByAnOutage) || whole(request.connected) >= silence {
        tasks.lose_silent(silence, request.losses, time)
    } else {
        Vec::new()
    };
    let (names, first_due) = tasks.move_due(request, time);
    let now = millis(time.wall);
    let lines = || tasks.lanes.values();
    let has_room = |line: &&Line| line.has_room(request.room);
    let is_due = |line: &Line| line.waiting.first().is_some_and(|due| due <= now);
    let counts = lines().filter(|line| has_room(line) || !is_due(line));
    let next = counts.filter_map(|line| line.waiting.first()).min();
    let full = lines().filter(|line| !has_room(line)).any(is_due);
    let silent_at = tasks.silent_at(silence, time);
    tasks.trim(&request.keep, time);
    let moves = Moves {
        now: time.wall,
        moved: u32::try_from(names.len()).unwrap_or(u32::MAX),
        first_due: first_due.map(instant),
        next: next.map(instant),
        full,
        silent_at,
        lost,
    };
    (DispatchReply::Yours(moves), names)
}

/// A span as it is told to a server.
fn whole(span: Duration) -> Duration {
    Duration::from_millis(u64::try_from(span.as_millis()).unwrap_or(u64::MAX))
}

impl Tasks {
    fn lose_silent(&mut self, silence: Duration, losses: u32, time: Time<'_>) -> Vec<LostAttempt> {
        let mut lost = Vec::new();
        while lost.len() < LOST_AT_ONCE
            && let Some((heard, key)) = self.heard.first()
            && *heard + silence <= time.moment
        {
            let key = Arc::clone(key);
            let cancel = self.all.get(&key).and_then(|task| task.running());
            let cancel = cancel.is_some_and(|running| running.cancel);
            if cancel {
                // What shall end needs no memory for that.
                time.frees();
            } else {
                time.grows();
            }
            let Some(attempt) = self.part(&key, Ran::Lost, SILENT.to_owned(), time) else {
                // An attempt that is heard of is under way.
                break;
            };
            let Some(task) = self.all.get_mut(&key) else { break };
            let past = task.past_mut();
            past.losses += 1;
            let dead = past.losses > losses && !cancel;
            self.counts.lost += 1;
            lost.push(LostAttempt {
                key: (*key).to_owned(),
                lane: (*task.lane).clone(),
                attempt: attempt.attempt,
                holder: attempt.holder,
                dead,
            });
            if cancel {
                // Nobody is left who could be told.
                self.end(&key, TaskStatus::Cancelled, time);
            } else if dead {
                self.end(&key, TaskStatus::Dead, time);
            } else if !planted(Mutant::TaskLostForEver) {
                self.wait(&key, TaskStatus::Failed, millis(time.wall));
            }
        }
        lost
    }

    /// The names of what was moved, and when the first of it was due.
    fn move_due(&mut self, request: &Dispatch, time: Time<'_>) -> (Vec<TaskName>, Option<i64>) {
        let (mut names, mut first_due) = (Vec::new(), None::<i64>);
        let mut now = millis(time.wall);
        if planted(Mutant::TaskDueEarly) {
            now += 60_000;
        }
        for (lane, line) in &mut self.lanes {
            while names.len() < request.most as usize
                && line.has_room(request.room)
                && let Some((due, key)) = line.waiting.pop_due(now)
            {
                time.grows();
                self.entry += 1;
                if let Some(task) = self.all.get_mut(&key) {
                    task.status = TaskStatus::Dispatched;
                    task.past_mut().entry = self.entry;
                }
                line.stream.push_back((self.entry, key));
                names.push(lane.task.clone());
                first_due = Some(first_due.map_or(due, |first| first.min(due)));
            }
        }
        self.counts.dispatched += names.len() as u64;
        (names, first_due)
    }

    fn silent_at(&self, silence: Duration, time: Time<'_>) -> Option<Timestamp> {
        let (heard, _) = self.heard.first()?;
        let (over, now) = (*heard + silence, time.moment);
        let signed = |span: Duration| SignedDuration::try_from(span).unwrap_or(SignedDuration::MAX);
        // One of the two is nothing. It is not told too early.
        let left = signed(over.since(now) + Duration::from_nanos(999_999)) - signed(now.since(over));
        Some(whole_millis(time.wall.saturating_add(left).unwrap_or(Timestamp::MAX)))
    }

    /// Keeps what has ended within its bounds.
    fn trim(&mut self, keep: &TaskKeep, time: Time<'_>) {
        let kinds = [
            (&mut self.ended, keep.ended, keep.ended_for),
            (&mut self.dead, keep.dead, keep.dead_for),
        ];
        for (kind, most, age) in kinds {
            for _ in 0..FORGOTTEN_AT_ONCE {
                let Some(key) = pop_beyond(kind, most, age, millis(time.wall)) else {
                    break;
                };
                time.frees();
                self.all.remove(&key.1);
            }
        }
    }
}

/// Takes the oldest, where there are too many or it is too old.
fn pop_beyond(kind: &mut BTreeSet<Place>, most: u32, age: Duration, now: i64) -> Option<Place> {
    let (ended, _) = kind.first()?;
    let lasts = i64::try_from(age.as_millis()).unwrap_or(i64::MAX);
    let is_over = kind.len() > most as usize || now.saturating_sub(*ended) >= lasts;
    is_over.then(|| kind.pop_first())?
}

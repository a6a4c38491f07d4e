//! Attempts begin and give signs of life.

use std::sync::Arc;

use super::shard::{Key, Task, Tasks, instant, millis, say};
use crate::mutants::{Mutant, planted};
use crate::names::TaskName;
use crate::store::embedded::step::Time;
use crate::store::embedded::{Data, Group};
use crate::store::tasks::{AwaitTasks, BeatReply, LaneRoom, TAKE_BYTES, Take, TakeReply, Taken, TaskBeats, TaskStatus};

/// Whether there may be something to take for who asks.
pub(super) fn waits(data: &Data, request: &AwaitTasks) -> bool {
    let shards = request.shards.iter().filter_map(|shard| data.known_tasks(shard));
    let mut lines = shards.flat_map(|tasks| &tasks.lanes);
    lines.any(|(lane, line)| !line.stream.is_empty() && request.tasks.contains(&lane.task))
}

/// With the name of a task that waits on in the lanes asked for.
pub(super) fn take(data: &mut Data, request: &Take, time: Time<'_>) -> (TakeReply, Option<TaskName>) {
    if request.again {
        // What is remembered of it needs a place, though there be nothing to take.
        data.tasks_mut(&request.shard);
    }
    let group = data.groups.get_mut(&request.shard.group());
    let Some((group, mut tasks)) = group.and_then(|group| group.tasks.take().map(|tasks| (group, tasks))) else {
        return (TakeReply::default(), None);
    };
    let taken = match tasks.takes.get(&request.holder) {
        Some(last) if last.number == request.number && !planted(Mutant::TaskTakenAgain) => {
            let again = |(key, fence): &(Key, u64)| tasks.taken(key, *fence);
            last.told.iter().filter_map(again).collect()
        }
        // One that comes late: its worker has gone on, and would not know of what it begins.
        Some(last) if last.number > request.number => Vec::new(),
        _ => begin(group, &mut tasks, request, time),
    };
    let waits = |room: &&LaneRoom| tasks.lanes.get(&room.lane).is_some_and(|line| !line.stream.is_empty());
    let more = request.lanes.iter().find(waits).map(|room| room.lane.task.clone());
    group.tasks = Some(tasks);
    let more_waits = more.is_some();
    (
        TakeReply {
            taken,
            more: more_waits,
        },
        more,
    )
}

fn begin(group: &mut Group, tasks: &mut Tasks, request: &Take, time: Time<'_>) -> Vec<Taken> {
    let mut taken: Vec<Taken> = Vec::new();
    let mut attempts = Vec::new();
    let mut bytes = 0;
    'lanes: for room in &request.lanes {
        let end = taken
            .len()
            .saturating_add(room.most as usize)
            .min(request.most as usize);
        while taken.len() < end
            && let Some((entry, key)) = tasks.lanes.get_mut(&room.lane).and_then(|line| line.stream.pop_front())
        {
            if !tasks.is_entry_of(&key, entry) {
                time.frees();
                continue;
            }
            let payload = tasks.all.get(&key).and_then(|task| task.payload.as_ref());
            bytes += payload.map_or(0, |payload| payload.len());
            if bytes > TAKE_BYTES && !taken.is_empty() {
                if let Some(line) = tasks.lanes.get_mut(&room.lane) {
                    line.stream.push_front((entry, key));
                }
                break 'lanes;
            }
            time.grows();
            let fence = if planted(Mutant::TaskFenceKept) {
                group.fence
            } else {
                group.mint(0, time.exact)
            };
            tasks.begin(&key, &request.holder, fence, time);
            taken.extend(tasks.taken(&key, fence));
            attempts.push((key, fence));
        }
    }
    if request.again {
        // The earlier copy may come yet: nobody would know of what it begins.
        time.grows();
    }
    if request.again || !attempts.is_empty() {
        let now = millis(time.wall);
        say(&mut tasks.takes, &request.holder, request.number, now, attempts);
    }
    taken
}

impl Tasks {
    /// Whether the task waits for a worker under this entry.
    pub(super) fn is_entry_of(&self, key: &Key, entry: u64) -> bool {
        let task = self.all.get(key).filter(|task| task.status == TaskStatus::Dispatched);
        task.and_then(Task::past).is_some_and(|past| past.entry == entry)
    }

    /// An attempt under way as its worker is told of it.
    fn taken(&self, key: &Key, fence: u64) -> Option<Taken> {
        let task = self.all.get(key)?;
        let past = task.past()?;
        past.running.as_ref().filter(|running| running.fence == fence)?;
        Some(Taken {
            key: (**key).to_owned(),
            lane: (*task.lane).clone(),
            fence,
            attempt: past.attempts,
            failed: past.failed,
            due: instant(task.due),
            created: instant(task.created),
            unique: task.unique.as_deref().map(str::to_owned),
            generation: task.generation,
            payload: task.payload.clone().unwrap_or_default(),
        })
    }
}

/// Needs no memory: what cannot be stored any more is not to be lost besides.
pub(super) fn beat(data: &mut Data, beats: &TaskBeats, time: Time<'_>) -> Vec<BeatReply> {
    let Some(tasks) = data.known_tasks_mut(&beats.shard) else {
        return vec![BeatReply::Gone; beats.attempts.len()];
    };
    let mut one = |(key, fence): &(String, u64)| {
        let key = Arc::from(&**key);
        let Some(running) = tasks.all.get_mut(&key).and_then(|task| task.under(*fence)) else {
            return BeatReply::Gone;
        };
        let reply = if running.cancel {
            BeatReply::Cancel
        } else {
            BeatReply::Heard
        };
        time.frees();
        tasks.hear(&key, time);
        reply
    };
    beats.attempts.iter().map(&mut one).collect()
}

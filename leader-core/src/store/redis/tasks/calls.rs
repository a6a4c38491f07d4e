//! The calls of the scripts of tasks.

use crate::store::redis::calls::millis;
use crate::store::redis::keys::Keys;
use crate::store::redis::script::Call;
use crate::store::tasks::{
    ChangeTask, Dispatch, Due, EnqueueBatch, FinishBatch, ListTasks, Shard, Take, TaskChange, TaskEnd, TaskEnding,
};

/// How many tasks one script takes: what Lua can put on its stack at once is some thousands of values.
pub(super) const MOST: usize = 512;

fn call(keys: &Keys, shard: &Shard) -> Call {
    Call::default().key(keys.of_tasks(shard, "tasks"))
}

fn due(due: Due) -> String {
    match due {
        // None early: a part of a millisecond is a whole one, but for that in which time ends.
        Due::At(at) => {
            let whole = at.as_millisecond() + i64::from(at.subsec_nanosecond().rem_euclid(1_000_000) != 0);
            format!("@{}", whole.min(jiff::Timestamp::MAX.as_millisecond()))
        }
        Due::After(after) => format!("+{}", after.as_nanos().div_ceil(1_000_000)),
    }
}

pub(super) fn enqueue(keys: &Keys, batch: &EnqueueBatch) -> Call {
    let mut call = call(keys, &batch.shard)
        .arg(batch.generation)
        .arg(&batch.producer)
        .arg(batch.number)
        .arg(keys.channel())
        .arg(batch.shard.group());
    for task in &batch.tasks {
        call.push(&task.key);
        call.push(&task.lane);
        call.push(due(task.due));
        call.push(task.unique.as_deref().unwrap_or_default());
        call.push(if task.once { "1" } else { "" });
        call.push(&task.payload);
    }
    call
}

pub(super) fn dispatch(keys: &Keys, request: &Dispatch) -> Call {
    let group = request.shard.group();
    call(keys, &request.shard)
        .key(keys.lease(&group))
        .key(keys.state(&group))
        .arg(&request.holder)
        .arg(request.term)
        .arg(request.most)
        .arg(request.room)
        .arg(request.silence.as_millis())
        .arg(request.connected.as_millis())
        .arg(request.losses)
        .arg(request.keep.ended)
        .arg(millis(request.keep.ended_for))
        .arg(request.keep.dead)
        .arg(millis(request.keep.dead_for))
}

pub(super) fn take(keys: &Keys, request: &Take) -> Call {
    let most = request.most.min(u32::try_from(MOST).unwrap_or(u32::MAX));
    let mut call = call(keys, &request.shard)
        .key(keys.fence(&request.shard.group()))
        .arg(&request.holder)
        .arg(request.number)
        .arg(most)
        .arg(if request.again { "again" } else { "" });
    for room in &request.lanes {
        call.push(&room.lane);
        call.push(room.most);
    }
    call
}

pub(super) fn beat(keys: &Keys, shard: &Shard, attempts: &[(String, u64)]) -> Call {
    let mut call = call(keys, shard);
    for (key, fence) in attempts {
        call.push(key);
        call.push(fence);
    }
    call
}

/// Records ends: those of tasks that are done and alike, which are most, in as few words as will do.
pub(super) fn finish(keys: &Keys, batch: &FinishBatch, ends: &[TaskEnd]) -> Call {
    let mut call = call(keys, &batch.shard)
        .arg(batch.keep.ended)
        .arg(keys.channel())
        .arg(batch.shard.group());
    let alike = |a: &TaskEnd, b: &TaskEnd| {
        a.how == TaskEnding::Done
            && b.how == TaskEnding::Done
            && (&a.lane, a.generation, &a.unique) == (&b.lane, b.generation, &b.unique)
    };
    for some in ends.chunk_by(alike) {
        let first = &some[0];
        let (word, after, ran, error) = match &first.how {
            TaskEnding::Done => {
                call.push(head(first));
                call.push(some.len());
                for end in some {
                    call.push(&end.key);
                    call.push(format_args!(" {} ", end.fence));
                }
                continue;
            }
            TaskEnding::Retry { after, ran, error } => ("retry", after.as_millis(), ran.as_str(), error.as_str()),
            TaskEnding::Bury { ran, error } => ("bury", 0, ran.as_str(), error.as_str()),
            TaskEnding::Cancelled => ("cancelled", 0, "cancelled", ""),
            TaskEnding::HandBack => ("back", 0, "cancelled", ""),
        };
        call.push("");
        call.push(&first.key);
        call.push(format_args!(" {} ", first.fence));
        call.push(head(first));
        call.push(word);
        call.push(after);
        call.push(ran);
        call.push(one_line(error));
    }
    call
}

fn head(end: &TaskEnd) -> String {
    let unique = end.unique.as_deref().unwrap_or_default();
    format!("{} {} {unique}", end.lane, end.generation)
}

/// An error as one line, which [`super::answers::lines`] reads again.
fn one_line(error: &str) -> String {
    error.replace('\\', "\\\\").replace('\n', "\\n")
}

pub(super) fn change(keys: &Keys, request: &ChangeTask) -> Call {
    let (word, at) = match request.change {
        TaskChange::Cancel => ("cancel", String::new()),
        TaskChange::Reschedule(at) => ("reschedule", due(at)),
        TaskChange::Retry => ("retry", String::new()),
    };
    call(keys, &request.shard)
        .arg(&request.key)
        .arg(word)
        .arg(at)
        .arg(keys.channel())
        .arg(request.shard.group())
        .arg(request.keep.ended)
}

pub(super) fn read(keys: &Keys, shard: &Shard, payloads: bool, tasks: &[String]) -> Call {
    let mut call = call(keys, shard).arg(if payloads { "1" } else { "" });
    for task in tasks {
        call.push(task);
    }
    call
}

pub(super) fn list(keys: &Keys, request: &ListTasks) -> Call {
    let before = request.due_before.map(|before| before.as_millisecond().to_string());
    call(keys, &request.shard)
        .arg(request.status)
        .arg(
            request
                .task
                .as_ref()
                .map(crate::names::TaskName::as_str)
                .unwrap_or_default(),
        )
        .arg(before.unwrap_or_default())
        .arg(request.after.as_deref().unwrap_or_default())
        .arg(request.most.max(1))
}

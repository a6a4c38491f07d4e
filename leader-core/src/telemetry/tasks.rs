//! News of tasks as log lines. What they carry is never logged.

use crate::event::TaskNews;

pub(super) fn tell(instance: &str, news: &TaskNews) {
    match news {
        TaskNews::Dispatched {
            queue,
            shard,
            count,
            lag,
        } => tracing::debug!(instance, %queue, shard, count, ?lag, "due tasks were handed to the workers"),
        TaskNews::Failed {
            id,
            task,
            fence,
            ran,
            error,
            dead: false,
        } => tracing::warn!(
            instance, id, %task, fence, %ran, error,
            "an attempt of a task failed, and is followed by another"
        ),
        TaskNews::Failed {
            id,
            task,
            fence,
            ran,
            error,
            dead: true,
        } => tracing::error!(
            instance, id, %task, fence, %ran, error,
            "the last attempt of a task failed: it waits among the dead letters until somebody has it tried again"
        ),
        TaskNews::Refused { id, task, fence } => tracing::warn!(
            instance, id, %task, fence,
            "the result of a task came too late and was refused: another worker has it by now"
        ),
        TaskNews::Lost {
            id,
            task,
            attempt,
            instance: worker,
            dead: false,
        } => tracing::warn!(instance, id, %task, attempt, worker, "a worker fell silent: its task is given to another"),
        TaskNews::Lost {
            id,
            task,
            attempt,
            instance: worker,
            dead: true,
        } => tracing::error!(
            instance, id, %task, attempt, worker,
            "a worker fell silent once too often with this task: it is not tried again by itself"
        ),
    }
}

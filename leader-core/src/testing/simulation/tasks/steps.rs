//! What a server does with tasks, told by its answers before they go on their way back.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;

use super::seen::TaskSeen;
use crate::names::Holder;
use crate::store::StoreError;
use crate::store::embedded::Embedded;
use crate::store::tasks::{
    ChangeTask, Changed, Dispatch, DispatchReply, Due, EnqueueBatch, EnqueueReply, FinishBatch, FinishReply, Shard,
    Take, TakeReply, TaskStore,
};
use crate::tasks::id::TaskId;
use crate::testing::simulation::seen::Seen;
use crate::testing::simulation::servers::Servers;

/// The number of the last batch of each producer and shard that was taken. It is not told: numbers are the whole process's.
pub(in crate::testing::simulation) type Batches = BTreeMap<(Shard, Holder), u64>;

/// The number of the last step of each worker and shard that began attempts, and their fences.
pub(in crate::testing::simulation) type Steps = BTreeMap<(Shard, Holder), (u64, Vec<u64>)>;

fn tell(servers: &Servers, seen: TaskSeen<'_>) {
    servers.tell(&Seen::Task(seen));
}

/// Which instance a holder is, by the name that it was given.
fn instance(holder: &Holder) -> Option<usize> {
    holder.instance().strip_prefix("simulated-")?.parse().ok()
}

fn due(due: Due, now: Timestamp) -> Timestamp {
    match due {
        Due::At(at) => at,
        Due::After(span) => now.saturating_add(span).unwrap_or(Timestamp::MAX),
    }
}

pub(in crate::testing::simulation) async fn enqueue(
    servers: Arc<Servers>,
    server: Embedded,
    batch: EnqueueBatch,
) -> Result<EnqueueReply, StoreError> {
    let reply = server.enqueue(batch.clone()).await?;
    if let EnqueueReply::Stored { now, instead } = &reply {
        let again = servers.is_repeated(&batch.shard, &batch.producer, batch.number);
        for (task, instead) in batch.tasks.iter().zip(instead) {
            let unique = task.unique.as_deref();
            match (instead, unique) {
                (None, _) => tell(
                    &servers,
                    TaskSeen::Stored {
                        id: &TaskId::new(batch.shard.clone(), task.key.as_str()),
                        due: due(task.due, *now),
                        unique,
                        again,
                    },
                ),
                (Some(other), Some(unique)) => tell(
                    &servers,
                    TaskSeen::Instead {
                        id: &TaskId::new(batch.shard.clone(), other.as_str()),
                        unique,
                        again,
                    },
                ),
                // What is to be stored once, and was.
                (Some(_), None) => {}
            }
        }
    }
    Ok(reply)
}

pub(in crate::testing::simulation) async fn take(
    servers: Arc<Servers>,
    server: Embedded,
    request: Take,
) -> Result<TakeReply, StoreError> {
    let (shard, holder, number) = (request.shard.clone(), request.holder.clone(), request.number);
    let reply = server.take(request).await?;
    let fences = reply.taken.iter().map(|taken| taken.fence).collect();
    let others = servers.begun(&shard, &holder, number, fences);
    for taken in &reply.taken {
        tell(
            &servers,
            TaskSeen::Begun {
                id: &TaskId::new(shard.clone(), taken.key.as_str()),
                attempt: taken.attempt,
                fence: taken.fence,
                instance: instance(&holder),
                anew: others.contains(&taken.fence),
            },
        );
    }
    Ok(reply)
}

pub(in crate::testing::simulation) async fn finish(
    servers: Arc<Servers>,
    server: Embedded,
    batch: FinishBatch,
) -> Result<Vec<FinishReply>, StoreError> {
    let replies = server.finish(batch.clone()).await?;
    for (end, reply) in batch.ends.iter().zip(&replies) {
        let now = server.task_status(&batch.shard, &end.key);
        tell(
            &servers,
            TaskSeen::Finished {
                id: &TaskId::new(batch.shard.clone(), end.key.as_str()),
                fence: end.fence,
                how: &end.how,
                taken: *reply == FinishReply::Taken,
                now,
            },
        );
    }
    Ok(replies)
}

pub(in crate::testing::simulation) async fn dispatch(
    servers: Arc<Servers>,
    server: Embedded,
    request: Dispatch,
) -> Result<DispatchReply, StoreError> {
    let shard = request.shard.clone();
    let reply = server.dispatch(request).await?;
    if let DispatchReply::Yours(moves) = &reply {
        for lost in &moves.lost {
            let now = server.task_status(&shard, &lost.key);
            tell(
                &servers,
                TaskSeen::Lost {
                    id: &TaskId::new(shard.clone(), lost.key.as_str()),
                    attempt: lost.attempt,
                    now,
                },
            );
        }
    }
    Ok(reply)
}

pub(in crate::testing::simulation) async fn change(
    servers: Arc<Servers>,
    server: Embedded,
    request: ChangeTask,
) -> Result<Changed, StoreError> {
    let changed = server.change_task(request.clone()).await?;
    tell(
        &servers,
        TaskSeen::Changed {
            id: &TaskId::new(request.shard, request.key),
            change: &request.change,
            changed: &changed,
        },
    );
    Ok(changed)
}

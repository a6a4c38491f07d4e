//! After the faults: waits until the tasks are done, and looks at what the store has of each.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use super::seen::TaskSeen;
use super::{Kind, shard_of};
use crate::clock::of_timers;
use crate::store::tasks::{Shard, TaskStatus, TaskStore};
use crate::testing::simulation::seen::Seen;
use crate::testing::simulation::world::{World, lock};

/// How long a body may take that says nothing of it.
const LONG: Duration = Duration::from_secs(300);
/// The latest that a task is due after the end of the faults, what was on its way for long included.
const DUE: Duration = Duration::from_secs(120);

/// The shards that instances dispatch.
fn shards(world: &World) -> Vec<Shard> {
    let groups = world.groups();
    groups.iter().filter_map(|group| shard_of(group.as_str())).collect()
}

/// How long all attempts of one task may take in all: each as long as it may, every pause, and so many times found to be lost.
fn longest(kind: &Kind, ttl: Duration) -> Duration {
    let record = &kind.record;
    let attempt = record.timeout.unwrap_or(LONG) + 2 * ttl;
    let pauses = (1..=record.retries).map(|attempt| record.backoff.unwrap_or_default().bound(attempt));
    (record.retries + 1 + crate::tasks::spec::LOSSES) * attempt + pauses.sum::<Duration>()
}

async fn unfinished(world: &World) -> u64 {
    let server = world.servers.of(0);
    let mut sum = 0;
    for shard in shards(world) {
        if let Ok(figures) = server.task_figures(&shard).await {
            sum += figures.pending + figures.dispatched + figures.running;
        }
    }
    sum
}

/// Waits until every task has ended.
pub(in crate::testing::simulation) async fn settle(world: &Arc<World>) {
    let kinds = &world.setting.tasks;
    let ttl = world.setting.timing.ttl();
    let Some(longest) = kinds.iter().map(|kind| longest(kind, ttl)).max() else {
        return;
    };
    let at_first = unfinished(world).await;
    // Where only so many run at once, the others wait for them.
    let places = kinds.iter().filter_map(|kind| kind.record.concurrency).min();
    let turns = places.map_or(1, |places| {
        at_first / (u64::from(places) * world.machines.len() as u64) + 1
    });
    let bound = DUE + longest.saturating_mul(u32::try_from(turns).unwrap_or(u32::MAX));
    let began = of_timers();
    let after = loop {
        if unfinished(world).await == 0 && began.elapsed() >= DUE {
            break Some(began.elapsed());
        }
        if began.elapsed() > bound {
            break None;
        }
        sleep(Duration::from_secs(1)).await;
    };
    world.see(&Seen::Task(TaskSeen::Drained {
        unfinished: unfinished(world).await,
        after,
        bound,
    }));
}

/// Looks up every task that somebody was told to be stored; how many of each name have which status.
pub(in crate::testing::simulation) async fn look(world: &World) -> BTreeMap<String, BTreeMap<TaskStatus, u64>> {
    let server = world.servers.of(0);
    let stored = std::mem::take(&mut *lock(&world.tasks.stored));
    let mut counts: BTreeMap<_, BTreeMap<_, u64>> = BTreeMap::new();
    for (id, retries) in stored {
        let Ok(found) = server.task(id.place(), id.key()).await else {
            continue;
        };
        if let Some(found) = &found {
            let of_name = counts.entry(found.lane.task.to_string()).or_default();
            *of_name.entry(found.status).or_default() += 1;
        }
        world.see(&Seen::Task(TaskSeen::Left {
            id: &id,
            stored: found.as_ref(),
            retries,
        }));
    }
    counts
}

//! Earlier numbers of shards of a queue: over when no unfinished task is left of them.

use super::hub::Desk;
use super::producer::learn;
use crate::names::QueueName;
use crate::store::StoreError;
use crate::store::tasks::{Closed, Generation, OpenQueue, Shard};

/// Closes the generations that are over, where this instance leads the first shard of their queue.
pub(super) async fn close(desk: Desk) {
    let timing = desk.shared.config.timing;
    let clock = &desk.shared.config.clock;
    loop {
        clock.sleep_until(clock.now() + timing.ttl(), timing.ttl() / 10).await;
        for queue in desk.hub.settings.queues.keys() {
            let first = Shard {
                queue: queue.clone(),
                index: 0,
            };
            let leads = desk
                .shared
                .gates
                .get(first.group().as_str())
                .is_some_and(|gate| gate.is_open());
            if !leads {
                continue;
            }
            if let Err(error) = close_of(&desk, queue).await {
                tracing::debug!(%queue, %error, "what is left of earlier numbers of shards is not known");
            }
        }
    }
}

async fn close_of(desk: &Desk, queue: &QueueName) -> Result<(), StoreError> {
    let tasks = desk.store.tasks();
    let request = OpenQueue {
        queue: queue.clone(),
        shards: None,
    };
    let generations = tasks.open_queue(request).await?;
    if generations.earlier.is_empty() {
        return Ok(());
    }
    // So that nobody stores anything by an earlier one from here on.
    learn(
        desk,
        queue,
        desk.shared.config.clock.now() + desk.shared.config.timing.ttl(),
    )
    .await?;
    let mut figures = Vec::new();
    for index in 0..generations.most() {
        let shard = Shard {
            queue: queue.clone(),
            index,
        };
        figures.push(tasks.task_figures(&shard).await?);
    }
    let newest = generations.newest.shards as usize;
    // A dead letter may be tried again, and then needs its dispatcher.
    let dead_beyond = figures.iter().skip(newest).any(|of_shard| of_shard.dead > 0);
    let is_over = |generation: &Generation| {
        let none_left = figures
            .iter()
            .all(|of_shard| !of_shard.unfinished.contains_key(&generation.number));
        none_left && !(dead_beyond && generation.shards as usize > newest)
    };
    for generation in generations.earlier.iter().filter(|generation| is_over(generation)) {
        let closed = Closed {
            queue: queue.clone(),
            number: generation.number,
        };
        let left = tasks.close_generation(closed).await?;
        tracing::info!(%queue, generation = generation.number, shards = generation.shards, "an earlier number of shards is over");
        desk.hub.routes().learn(queue, left);
    }
    Ok(())
}

//! Earlier numbers of shards of a queue: over when no unfinished task is left of them.

use super::hub::Desk;
use super::producer::patiently;
use crate::clock::Moment;
use crate::names::QueueName;
use crate::store::StoreError;
use crate::store::tasks::{Closed, EnqueueBatch, Generation, Generations, OpenQueue, Shard};

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

/// Learns how many shards a queue has, and tells the shards of its earlier generations, so that they take nothing of those any more.
pub(super) async fn learn(desk: &Desk, queue: &QueueName, by: Moment) -> Result<(), StoreError> {
    let generations = open_ones(desk, queue, by).await?;
    tell_shards(desk, queue, &generations, by).await?;
    desk.hub.routes().learn(queue, generations);
    Ok(())
}

async fn tell_shards(desk: &Desk, queue: &QueueName, generations: &Generations, by: Moment) -> Result<(), StoreError> {
    let most = generations.earlier.iter().map(|generation| generation.shards).max();
    for index in 0..most.unwrap_or(0) {
        let batch = EnqueueBatch {
            shard: Shard {
                queue: queue.clone(),
                index,
            },
            generation: generations.newest.number,
            producer: desk.shared.config.holder.clone(),
            number: 0,
            tasks: Vec::new(),
        };
        patiently(desk, by, || desk.store.tasks().enqueue(batch.clone())).await?;
    }
    Ok(())
}

/// Asks which generations of a queue are open.
pub(super) async fn open_ones(desk: &Desk, queue: &QueueName, by: Moment) -> Result<Generations, StoreError> {
    let asked = || OpenQueue {
        queue: queue.clone(),
        shards: None,
    };
    patiently(desk, by, || desk.store.tasks().open_queue(asked())).await
}

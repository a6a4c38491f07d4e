//! The number of shards of a queue may change, and what was stored by an earlier number is known until it is told to be over.

use leader_core::__seam::{Closed, Generation, Generations, OpenQueue};
use leader_core::QueueName;

use super::bench::TaskBench;
use crate::bench::Bench;

on_each_store!(
    a_queue_that_nobody_has_opened_has_one_shard,
    another_number_of_shards_opens_the_next_generation,
    a_generation_is_closed_once_and_the_newest_never,
);

async fn open(tasks: &TaskBench, queue: &str, shards: Option<u32>) -> Generations {
    let queue = QueueName::new(queue.to_owned()).unwrap();
    tasks.store().open_queue(OpenQueue { queue, shards }).await.unwrap()
}

async fn close(tasks: &TaskBench, queue: &str, number: u32) -> Generations {
    let queue = QueueName::new(queue.to_owned()).unwrap();
    tasks.store().close_generation(Closed { queue, number }).await.unwrap()
}

/// The newest first; each by its number and its shards.
fn generations(all: &[(u32, u32)]) -> Generations {
    let mut all = all.iter().map(|(number, shards)| Generation {
        number: *number,
        shards: *shards,
    });
    Generations {
        newest: all.next().unwrap(),
        earlier: all.collect(),
    }
}

async fn a_queue_that_nobody_has_opened_has_one_shard(bench: Bench) {
    let tasks = TaskBench::on(bench).await;
    for _ in 0..2 {
        assert_eq!(open(&tasks, "mail", None).await, generations(&[(1, 1)]));
        assert_eq!(close(&tasks, "mail", 1).await, generations(&[(1, 1)]));
    }
    // Whoever asked may have stored something by that: it is the first generation.
    assert_eq!(open(&tasks, "mail", Some(4)).await, generations(&[(2, 4), (1, 1)]));
    assert_eq!(open(&tasks, "mail", None).await, generations(&[(2, 4), (1, 1)]));
    assert_eq!(close(&tasks, "mail", 1).await, generations(&[(2, 4)]));
    assert_eq!(open(&tasks, "other", None).await, generations(&[(1, 1)]));
}

async fn another_number_of_shards_opens_the_next_generation(bench: Bench) {
    let tasks = TaskBench::on(bench).await;
    open(&tasks, "mail", Some(4)).await;
    close(&tasks, "mail", 1).await;
    for _ in 0..2 {
        assert_eq!(open(&tasks, "mail", Some(4)).await, generations(&[(2, 4)]));
    }
    for _ in 0..2 {
        assert_eq!(open(&tasks, "mail", Some(2)).await, generations(&[(3, 2), (2, 4)]));
    }
    let all = generations(&[(4, 4), (3, 2), (2, 4)]);
    assert_eq!(open(&tasks, "mail", Some(4)).await, all);
    assert_eq!(open(&tasks, "mail", None).await, all);
    assert_eq!(all.most(), 4);
}

async fn a_generation_is_closed_once_and_the_newest_never(bench: Bench) {
    let tasks = TaskBench::on(bench).await;
    for shards in [2, 8] {
        open(&tasks, "mail", Some(shards)).await;
    }
    assert_eq!(close(&tasks, "mail", 3).await, generations(&[(3, 8), (2, 2), (1, 1)]));
    for _ in 0..2 {
        assert_eq!(close(&tasks, "mail", 1).await, generations(&[(3, 8), (2, 2)]));
    }
    assert_eq!(close(&tasks, "mail", 2).await, generations(&[(3, 8)]));
    // Its number never comes again.
    assert_eq!(open(&tasks, "mail", Some(4)).await, generations(&[(4, 4), (3, 8)]));
}

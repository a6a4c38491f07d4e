//! How many shards a queue has, and had.

use crate::names::QueueName;
use crate::store::embedded::Data;
use crate::store::embedded::step::Time;
use crate::store::tasks::{Closed, Generation, Generations, OpenQueue};

fn known(data: &Data, queue: &QueueName) -> Generations {
    let unknown = || Generations {
        newest: Generation { number: 1, shards: 1 },
        earlier: Vec::new(),
    };
    data.queues.get(queue).cloned().unwrap_or_else(unknown)
}

pub(super) fn open(data: &mut Data, request: &OpenQueue, time: Time<'_>) -> Generations {
    let Some(shards) = request.shards else {
        return known(data, &request.queue);
    };
    let mut generations = known(data, &request.queue);
    let newest = generations.newest;
    if newest.shards == shards {
        return generations;
    }
    generations.earlier.insert(0, newest);
    generations.newest = Generation {
        number: newest.number + 1,
        shards,
    };
    time.grows();
    data.queues.insert(request.queue.clone(), generations.clone());
    generations
}

pub(super) fn close(data: &mut Data, request: &Closed, time: Time<'_>) -> Generations {
    if let Some(kept) = data.queues.get_mut(&request.queue) {
        let before = kept.earlier.len();
        kept.earlier.retain(|generation| generation.number != request.number);
        if kept.earlier.len() < before {
            time.frees();
        }
    }
    known(data, &request.queue)
}

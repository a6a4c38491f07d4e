//! The producer: stores what handles give it, as many together as wait.
//!
//! It has one batch of a shard under way at a time, so that a batch whose answer was lost can be asked again without storing anything twice.

mod forget;
mod orders;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::{mpsc, oneshot};

use super::enqueue::EnqueueError;
use super::generations::{learn, open_ones};
use super::hub::{Counted, Desk};
use super::id::TaskId;
use super::routing::{earlier_of, shard_of};
use crate::clock::Moment;
use crate::metrics::Measured;
use crate::mutants::{Mutant, planted};
use crate::names::QueueName;
use crate::store::StoreError;
use crate::store::tasks::{EnqueueBatch, EnqueueReply, Generations, NewTask, Shard};

/// The most tasks of one batch, and the bytes that end one earlier.
const BATCH: usize = 256;
const BYTES: usize = 1 << 20;
/// For how many operations' time a batch is asked again when the store does not answer.
const PATIENCE: u32 = 5;

/// Where a task is that was to be stored: its id, and whether it is new.
pub(super) type Placed = (TaskId, bool);

/// Tasks of one queue that a handle gives.
#[derive(Debug)]
pub(super) struct Order {
    pub(super) queue: QueueName,
    pub(super) tasks: Vec<NewTask>,
    pub(super) kind: OrderKind,
    pub(super) counted: Counted,
}

/// What is wanted, and who waits for it.
#[derive(Debug)]
pub(super) enum OrderKind {
    /// Have them stored.
    Store(oneshot::Sender<Result<Vec<Placed>, EnqueueError>>),
    /// Have this key forgotten, which was remembered for a task that was to be stored once.
    Forget(String),
}

use forget::forget;

/// Numbers of batches rise as long as the process lives, whatever begins anew.
static BATCHES: AtomicU64 = AtomicU64::new(0);

/// One of an order's tasks: the order, and which of them.
type Place = (u64, usize);

#[derive(Default)]
struct Work {
    orders: BTreeMap<u64, Waiting>,
    last: u64,
    /// What waits until it is known how many shards its queue has.
    unrouted: BTreeMap<QueueName, Vec<(Place, NewTask)>>,
    asking: BTreeSet<QueueName>,
    shards: BTreeMap<Shard, Line>,
}

/// What waits for one shard.
#[derive(Default)]
struct Line {
    waits: VecDeque<(Place, NewTask)>,
    under_way: bool,
}

struct Waiting {
    /// Until when it is asked again when the store does not answer.
    by: Moment,
    placed: Vec<Option<Placed>>,
    left: usize,
    /// How many batches with tasks of it are under way.
    flying: usize,
    /// Why it fails, and whether that may have stored tasks: told when none of it is under way any more.
    failed: Option<(StoreError, bool)>,
    done: Option<oneshot::Sender<Result<Vec<Placed>, EnqueueError>>>,
    counted: Counted,
}

/// What comes back.
enum Answer {
    Routes(QueueName, Result<(), StoreError>),
    Batch {
        shard: Shard,
        tasks: Vec<(Place, NewTask)>,
        outcome: Outcome,
    },
}

enum Outcome {
    /// For each task what is there instead, if anything is.
    Stored(Vec<Option<TaskId>>),
    /// The queue has another generation by now.
    Moved,
    Failed(StoreError),
}

/// Stores tasks as long as the instance lives.
pub(super) async fn produce(desk: Desk) {
    let hub = Arc::clone(&desk.hub);
    let mut inbox = hub.inbox().lock().await;
    let (tell, mut told) = mpsc::unbounded_channel();
    let mut work = Work::default();
    loop {
        tokio::select! {
            biased;
            Some(answer) = told.recv() => work.answered(&desk, answer),
            order = inbox.recv() => match order {
                Some(order) => {
                    work.take(&desk, order);
                    // As many as wait go together.
                    while let Ok(order) = inbox.try_recv() {
                        work.take(&desk, order);
                    }
                }
                None => return,
            },
        }
        work.route(&desk, &tell);
        work.send(&desk, &tell);
    }
}

impl Work {
    fn take(&mut self, desk: &Desk, order: Order) {
        order.counted.take();
        let left = order.tasks.len();
        let done = match order.kind {
            OrderKind::Store(done) => done,
            OrderKind::Forget(key) => return forget(desk, order.queue, key, order.counted),
        };
        if left == 0 {
            let _ = done.send(Ok(Vec::new()));
            return;
        }
        if done.is_closed() {
            // Nobody waits any more, and nothing was sent.
            drop(order.counted);
            return desk.look_again();
        }
        self.last += 1;
        let number = self.last;
        let tasks = order.tasks.into_iter().enumerate();
        let unrouted = self.unrouted.entry(order.queue).or_default();
        unrouted.extend(tasks.map(|(at, task)| ((number, at), task)));
        let waiting = Waiting {
            by: by(desk),
            placed: vec![None; left],
            left,
            flying: 0,
            failed: None,
            done: Some(done),
            counted: order.counted,
        };
        self.orders.insert(number, waiting);
    }

    /// Puts what is not routed into the lines of its shards, or asks how many these are.
    fn route(&mut self, desk: &Desk, tell: &mpsc::UnboundedSender<Answer>) {
        let routes = desk.hub.routes();
        let mut unknown = BTreeMap::new();
        for (queue, tasks) in std::mem::take(&mut self.unrouted) {
            let Some(generations) = routes.of(&queue) else {
                unknown.insert(queue, tasks);
                continue;
            };
            for (place, task) in tasks {
                let shard = shard_of(&queue, task.unique.as_deref(), &task.key, generations.newest);
                self.shards.entry(shard).or_default().waits.push_back((place, task));
            }
        }
        drop(routes);
        self.unrouted = unknown;
        for queue in self.unrouted.keys() {
            if self.asking.insert(queue.clone()) {
                let (desk, queue, tell) = (desk.clone(), queue.clone(), tell.clone());
                let by = by(&desk);
                let process = desk.shared.config.process.clone();
                tokio::spawn(process.hold(async move {
                    let answer = learn(&desk, &queue, by).await;
                    let _ = tell.send(Answer::Routes(queue, answer));
                }));
            }
        }
    }

    fn send(&mut self, desk: &Desk, tell: &mpsc::UnboundedSender<Answer>) {
        for (shard, line) in &mut self.shards {
            if line.under_way || line.waits.is_empty() {
                continue;
            }
            let routes = desk.hub.routes();
            let Some(generations) = routes.of(&shard.queue).cloned() else {
                continue;
            };
            drop(routes);
            let (mut tasks, mut bytes) = (Vec::new(), 0);
            let mut orders = BTreeSet::new();
            while tasks.len() < BATCH && bytes < BYTES {
                let Some((place, task)) = line.waits.pop_front() else {
                    break;
                };
                // Whoever waits no longer, and has nothing stored or under way, is as if it had not asked.
                let Some(waiting) = self.orders.get_mut(&place.0) else {
                    continue;
                };
                if waiting.failed.is_some() {
                    continue;
                }
                let untouched = waiting.flying == 0 && waiting.left == waiting.placed.len();
                if untouched
                    && !orders.contains(&place.0)
                    && waiting.done.as_ref().is_none_or(oneshot::Sender::is_closed)
                {
                    self.orders.remove(&place.0);
                    desk.look_again();
                    continue;
                }
                orders.insert(place.0);
                bytes += task.payload.len();
                tasks.push((place, task));
            }
            if tasks.is_empty() {
                continue;
            }
            for order in orders {
                if let Some(waiting) = self.orders.get_mut(&order) {
                    waiting.flying += 1;
                }
            }
            line.under_way = true;
            let (desk, shard, tell) = (desk.clone(), shard.clone(), tell.clone());
            let by = by(&desk);
            let process = desk.shared.config.process.clone();
            tokio::spawn(process.hold(async move {
                let outcome = store(&desk, &shard, &generations, &tasks, by).await;
                let _ = tell.send(Answer::Batch { shard, tasks, outcome });
            }));
        }
        // What there is nothing to store of is not kept in mind.
        self.shards.retain(|_, line| line.under_way || !line.waits.is_empty());
    }

    fn answered(&mut self, desk: &Desk, answer: Answer) {
        match answer {
            Answer::Routes(queue, answer) => {
                self.asking.remove(&queue);
                if let Err(error) = answer {
                    for ((order, _), _) in self.unrouted.remove(&queue).unwrap_or_default() {
                        self.fail(order, &error, false);
                        self.look_at(desk, order);
                    }
                }
            }
            Answer::Batch { shard, tasks, outcome } => {
                if let Some(line) = self.shards.get_mut(&shard) {
                    line.under_way = false;
                }
                let orders: BTreeSet<_> = tasks.iter().map(|((order, _), _)| *order).collect();
                for order in &orders {
                    if let Some(waiting) = self.orders.get_mut(order) {
                        waiting.flying -= 1;
                    }
                }
                match outcome {
                    Outcome::Stored(instead) => {
                        let new = instead.iter().filter(|other| other.is_none()).count();
                        desk.shared.meter.measure(Measured::Enqueued {
                            queue: &shard.queue,
                            count: new as u64,
                        });
                        for ((place, task), instead) in tasks.into_iter().zip(instead) {
                            let placed = match instead {
                                Some(other) => (other, false),
                                None => (TaskId::new(shard.clone(), task.key), true),
                            };
                            self.placed(place, placed);
                        }
                    }
                    Outcome::Moved => {
                        desk.hub.routes().forget(&shard.queue);
                        // What waits behind them is of the same number of shards.
                        let waits = self.shards.remove(&shard).map(|line| line.waits).unwrap_or_default();
                        let unrouted = self.unrouted.entry(shard.queue.clone()).or_default();
                        unrouted.extend(tasks.into_iter().chain(waits));
                    }
                    Outcome::Failed(error) => {
                        self.fail_those_that_waited(desk, &shard, &error);
                        for order in &orders {
                            self.fail(*order, &error, true);
                        }
                    }
                }
                for order in orders {
                    self.look_at(desk, order);
                }
            }
        }
    }
}

/// Until when the store is asked.
fn by(desk: &Desk) -> Moment {
    desk.shared.config.clock.now() + PATIENCE * desk.shared.config.timing.operation()
}

/// Asks again while the store does not answer.
pub(super) async fn patiently<T, F: Future<Output = Result<T, StoreError>>>(
    desk: &Desk,
    by: Moment,
    mut ask: impl FnMut() -> F,
) -> Result<T, StoreError> {
    let config = &desk.shared.config;
    loop {
        match ask().await {
            Err(error) if error.is_transient() && config.clock.now() + config.timing.retry() < by => {
                tokio::time::sleep(config.timing.retry()).await;
            }
            answer => return answer,
        }
    }
}

/// Stores one batch.
async fn store(
    desk: &Desk,
    shard: &Shard,
    generations: &Generations,
    tasks: &[(Place, NewTask)],
    by: Moment,
) -> Outcome {
    let mut instead: Vec<Option<TaskId>> = vec![None; tasks.len()];
    for (at, (_, task)) in tasks.iter().enumerate() {
        let Some(unique) = task.unique.as_deref() else { continue };
        for earlier in earlier_of(&shard.queue, unique, generations) {
            match patiently(desk, by, || desk.store.tasks().unique(&earlier, unique)).await {
                Ok(Some(key)) => instead[at] = Some(TaskId::new(earlier.clone(), key)),
                Ok(None) => {}
                Err(error) => return Outcome::Failed(error),
            }
        }
    }
    let new = tasks.iter().zip(&instead).filter(|(_, instead)| instead.is_none());
    let mut batch = EnqueueBatch {
        shard: shard.clone(),
        generation: generations.newest.number,
        producer: desk.shared.config.holder.clone(),
        number: BATCHES.fetch_add(1, Ordering::SeqCst) + 1,
        tasks: new.map(|((_, task), _)| task.clone()).collect(),
    };
    let ask = || {
        if planted(Mutant::TaskStoredAgain) {
            batch.number = BATCHES.fetch_add(1, Ordering::SeqCst) + 1;
        }
        desk.store.tasks().enqueue(batch.clone())
    };
    let mut stored = patiently(desk, by, ask).await;
    if let Ok(EnqueueReply::Moved { generation }) = stored {
        // A store that has lost what it knew of the queue would send us to and fro for ever: the shard is right.
        match open_ones(desk, &shard.queue, by).await {
            Ok(known) if known.newest.number < generation => {
                batch.generation = generation;
                stored = patiently(desk, by, || desk.store.tasks().enqueue(batch.clone())).await;
            }
            Ok(_) => {}
            Err(error) => return Outcome::Failed(error),
        }
    }
    match stored {
        Ok(EnqueueReply::Stored { instead: others, .. }) => {
            let mut others = others.into_iter();
            for place in instead.iter_mut().filter(|instead| instead.is_none()) {
                *place = others.next().flatten().map(|key| TaskId::new(shard.clone(), key));
            }
            Outcome::Stored(instead)
        }
        Ok(EnqueueReply::Moved { .. }) => Outcome::Moved,
        Err(error) => Outcome::Failed(error),
    }
}

//! What becomes of the orders of handles.

use std::collections::BTreeSet;

use super::{Place, Placed, Waiting, Work};
use crate::store::StoreError;
use crate::store::tasks::Shard;
use crate::tasks::enqueue::EnqueueError;
use crate::tasks::hub::Desk;

impl Work {
    pub(super) fn placed(&mut self, (order, at): Place, placed: Placed) {
        let Some(waiting) = self.orders.get_mut(&order) else {
            return;
        };
        if waiting.placed[at].replace(placed).is_none() {
            waiting.left -= 1;
        }
    }

    /// Answers an order of which nothing is left to do.
    pub(super) fn look_at(&mut self, desk: &Desk, order: u64) {
        let over = |waiting: &Waiting| waiting.flying == 0 && (waiting.left == 0 || waiting.failed.is_some());
        if !self.orders.get(&order).is_some_and(over) {
            return;
        }
        let Some(mut waiting) = self.orders.remove(&order) else {
            return;
        };
        let Some(done) = waiting.done.take() else { return };
        let answer = match waiting.failed.filter(|_| waiting.left > 0) {
            None => Ok(waiting.placed.into_iter().flatten().collect()),
            Some((source, unknown)) => Err(EnqueueError::Store {
                stored: waiting.placed.iter().flatten().count(),
                all: waiting.placed.len(),
                unknown,
                source,
            }),
        };
        let _ = done.send(answer);
        drop(waiting.counted);
        desk.look_again();
    }

    /// An order fails as a whole, at the first of its tasks that does: nothing more of it is sent, and it is told so when it is known what has
    /// become of what was.
    pub(super) fn fail(&mut self, order: u64, error: &StoreError, sent: bool) {
        let Some(waiting) = self.orders.get_mut(&order) else {
            return;
        };
        let unknown = sent && error.is_transient();
        if let Some((_, before)) = &mut waiting.failed {
            *before |= unknown;
            return;
        }
        waiting.failed = Some((error.clone(), unknown));
        for line in self.shards.values_mut() {
            line.waits.retain(|((of, _), _)| *of != order);
        }
    }

    /// The store does not answer for a shard: what has waited there for as long as one is asked again is not asked for once more.
    pub(super) fn fail_those_that_waited(&mut self, desk: &Desk, shard: &Shard, error: &StoreError) {
        let now = desk.shared.config.clock.now();
        let waits = self.shards.get(shard).map(|line| &line.waits);
        let orders: BTreeSet<_> = waits.into_iter().flatten().map(|((order, _), _)| *order).collect();
        let tired = |order: &u64| self.orders.get(order).is_some_and(|waiting| waiting.by <= now);
        for order in orders.into_iter().filter(tired).collect::<Vec<_>>() {
            self.fail(order, error, false);
            self.look_at(desk, order);
        }
    }
}

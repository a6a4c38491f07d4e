//! Stores tasks at a steady rate, and remembers each.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use leader_core::{Instance, Priority, TaskId};
use leader_tests::dice::Dice;

use crate::RATE;
use crate::node::act;

/// A task that the store has taken.
#[derive(Debug)]
pub(crate) struct Stored {
    pub(crate) id: TaskId,
}

/// Ten times a second, for so long.
pub(crate) async fn produce(instance: Instance, seed: u64, span: Duration) -> Vec<Stored> {
    let mut dice = Dice::new(seed ^ 0x7461_736b);
    let mut ticker = tokio::time::interval(Duration::from_millis(100));
    let began = tokio::time::Instant::now();
    let mut stored = Vec::new();
    let tasks = instance.tasks();
    while began.elapsed() < span {
        ticker.tick().await;
        let ahead = i64::try_from(dice.below(5_000)).unwrap_or(0);
        let due = Timestamp::now() + SignedDuration::from_millis(ahead);
        // Most take no time; one in a hundred long enough to be in the way of a fault.
        let takes = |dice: &mut Dice| match dice.below(100) {
            0 => 500 + dice.below(2_500),
            1..=20 => dice.below(50),
            _ => 0,
        };
        let payloads: Vec<u64> = (0..RATE / 10).map(|_| takes(&mut dice)).collect();
        let priority = Priority::ALL[usize::try_from(dice.below(3)).unwrap_or(0)];
        let new = tasks.enqueue_many::<act, _>(payloads).at(due).priority(priority).await;
        let new = new.expect("the producer's link is whole");
        stored.extend(new.into_iter().map(|enqueued| Stored { id: enqueued.id }));
    }
    stored
}

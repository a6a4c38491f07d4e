//! How many shards a queue has, and had.

use crate::names::QueueName;

/// A wish for so many shards.
#[derive(Clone, Debug)]
#[allow(clippy::exhaustive_structs, reason = "an internal message")]
pub struct OpenQueue {
    /// The queue.
    pub queue: QueueName,
    /// How many; `None` only asks.
    pub shards: Option<u32>,
}

/// One number of shards that a queue has or had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "an internal message")]
pub struct Generation {
    /// Rises by one with each change, from 1.
    pub number: u32,
    /// How many shards.
    pub shards: u32,
}

/// The generations of a queue that are open.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "an internal message")]
pub struct Generations {
    /// What new tasks belong to.
    pub newest: Generation,
    /// Those before it that may have unfinished tasks, the newest first.
    pub earlier: Vec<Generation>,
}

/// An earlier generation that has no unfinished task.
#[derive(Clone, Debug)]
#[allow(clippy::exhaustive_structs, reason = "an internal message")]
pub struct Closed {
    /// The queue.
    pub queue: QueueName,
    /// Its number.
    pub number: u32,
}

impl Generations {
    /// The most shards of any of them: each has a dispatcher.
    #[must_use]
    pub fn most(&self) -> u32 {
        let earlier = self.earlier.iter().map(|generation| generation.shards);
        earlier.chain([self.newest.shards]).max().unwrap_or(1)
    }
}

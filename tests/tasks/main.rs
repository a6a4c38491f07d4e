//! Tasks as their users meet them: fleets inside one process, on both stores.
#![allow(clippy::unwrap_used, reason = "a test fails by panic")]

#[macro_use]
mod stage;
mod attacks;
mod basics;
mod bodies;
mod chaos;
mod losses;
mod order;
mod outages;
mod shards;
mod stops;
mod ticks;

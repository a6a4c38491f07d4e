//! Whole fleets in one thread, in virtual time: hours of real code in seconds. What needs no virtual time is run on a real server as
//! well.
#![allow(clippy::unwrap_used, reason = "a test fails by panic")]

mod commands;
mod downtime;
mod hand_overs;
mod proving;
mod races;
mod tasks;

use jiff::Timestamp;
use leader_core::{Clock, Embedded, testing};

/// A clock in virtual time, and a store on it: to be made, and used, in a runtime whose time is paused.
fn store() -> (Clock, Embedded) {
    // Some time of the past: whatever read another clock would be seen.
    let wall: Timestamp = "2026-03-02T08:59:57.250Z".parse().unwrap();
    let clock = Clock::of_the_runtime(wall);
    (clock.clone(), testing::__embedded_on(clock))
}

//! Elections on a real server under faults of the link and of the server, many of each.
//!
//! Ordinary runs take a few of each; `LEADER_CHAOS=full` takes all. Every scenario prints its figures, and the seed of its
//! phases, which `LEADER_CHAOS_SEED` repeats.
#![allow(clippy::unwrap_used, reason = "a test fails by panic")]

mod black_hole;
mod cut_log;
mod dose;
mod fail_over;
mod flush;
mod lost_grant;
mod lost_renewal;
mod nemesis;
mod observer;
mod outage;
mod rig;
mod stall;

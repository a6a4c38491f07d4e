//! What every store must keep, run on each of them: the embedded one and a real Redis.
#![allow(clippy::unwrap_used, reason = "a test fails by panic")]

#[macro_use]
mod bench;
#[cfg(target_os = "linux")]
#[macro_use]
mod machine;
mod blackout;
mod cases;
mod control;
mod coverage;
mod dead_runs;
#[cfg(target_os = "linux")]
mod differential;
mod garbage;
mod ghosts;
mod heard;
#[cfg(target_os = "linux")]
mod instants;
#[cfg(target_os = "linux")]
mod lane;
mod leases;
mod ledger;
mod made;
mod odd;
mod oom;
mod overlap;
mod quarantine;
mod renames;
mod requests;
mod roster;
mod round_trips;
mod schedules;
#[cfg(target_os = "linux")]
mod server;
#[cfg(target_os = "linux")]
mod shortage;
mod tasks;
mod ticks;
mod tries;
mod trimming;
mod unled;
mod vacancies;

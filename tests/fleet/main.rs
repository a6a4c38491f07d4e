//! Fleets inside one process: several instances on one store, as their users meet them.
#![allow(clippy::unwrap_used, reason = "a test fails by panic")]

#[macro_use]
mod stage;
mod around;
mod blackout;
mod bootstrap;
mod calls;
mod cases;
mod catch_up;
mod clocks;
mod control;
mod coverage;
mod edits;
mod events;
mod explain;
mod freeze;
mod herd;
mod hooks;
mod life_cycle;
mod lives;
mod losses;
mod mixed;
mod outage;
mod overlap;
mod panics;
mod places;
mod races;
mod recovery;
mod requests;
mod rights;
mod roster;
mod runs;
mod runtime_gone;
mod scheduling;
mod shutdown;
mod step_down;
mod store_check;
mod store_gone;
mod tries;
mod turmoil;
mod unled;
mod wedge;

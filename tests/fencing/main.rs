//! Fenced writes where the data is: on a real PostgreSQL, a real Redis, and a real HTTP server.
#![allow(clippy::unwrap_used, reason = "a test fails by panic")]

mod frozen;
#[path = "writer/half.rs"]
mod half;
mod http;
mod places;
#[path = "../processes/programs.rs"]
#[allow(dead_code, reason = "the suite `processes` uses the rest")]
mod programs;
mod redis;
mod requests;
mod rerun;
mod sql;

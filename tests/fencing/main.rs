//! Fenced writes where the data is: on a real PostgreSQL, a real Redis, and a real HTTP server.
#![allow(clippy::unwrap_used, reason = "a test fails by panic")]

mod http;
mod redis;
mod requests;
mod sql;

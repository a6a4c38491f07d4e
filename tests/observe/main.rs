//! What a fleet tells of itself: its numbers, and the probes that a platform asks.
#![allow(clippy::unwrap_used, reason = "a test fails by panic")]
#![allow(clippy::float_cmp, reason = "what is counted are whole numbers")]

mod deploy;
mod http;
mod numbers;
mod program;
mod prometheus;
mod scrape;

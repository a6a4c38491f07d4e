//! A module without the prelude, where the usual names mean something else.
#![no_implicit_prelude]
#![allow(dead_code, reason = "that it compiles is the test")]

use ::leader_core::{State, Tick, leader_only};

struct Result;
struct Ok;
struct Err;
struct Option;
mod core {}
mod std {}
mod leader_core {}

#[leader_only]
async fn plain(number: u8) -> u8 {
    let _: (Result, Ok, Err, Option) = (Result, Ok, Err, Option);
    number
}

#[leader_only(
    cron = "0 3 1-7 * MON",
    days = "and",
    timezone = "UTC",
    jitter = "1s",
    grace = "5s",
    missed = "skip",
    on_loss = "finish"
)]
async fn job(_tick: Tick, State(_number): State<u8>) {}

//! A module without the prelude, where the usual names mean something else.
#![no_implicit_prelude]
#![allow(dead_code, reason = "that it compiles is the test")]

use ::leader_core::{State, Task, Tick, leader_only, task};

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

#[task(
    queue = "mail",
    name = "without-prelude",
    retries = 1,
    backoff = "1s",
    timeout = "1s",
    concurrency = 1
)]
async fn carried(_number: u8, _task: Task, State(_other): State<u8>) {}

#[task]
async fn without_payload(_: Task) {}

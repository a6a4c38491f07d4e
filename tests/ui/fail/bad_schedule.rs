//! What a schedule's text says at compile time: value, range and the way out, under the literal.

use leader_core::leader_only;

#[leader_only(cron = "75 * * * *")]
async fn out_of_range() {}

#[leader_only(cron = "0 0 31 2 *")]
async fn never() {}

#[leader_only(cron = "0 0 9 * * 1")]
async fn which_monday() {}

#[leader_only(every = "10 minutes")]
async fn no_duration() {}

#[leader_only(every = "10ms")]
async fn too_often() {}

#[leader_only(cron = "0 3 * * *", timeout = "soon")]
async fn no_timeout() {}

fn main() {}

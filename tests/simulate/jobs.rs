//! Jobs of every policy, shorter and longer than their periods.

use std::time::Duration;

use leader_core::testing::Simulation;
use leader_core::{Tick, leader_only, scheduled};

async fn takes(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

/// The same choice for the same try, at about every other, whatever the tries before it did: some runs use up all of theirs. (The mix of
/// `SplitMix64`: Steele, Lea and Flood, 2014.)
pub(crate) fn fails_at(second: u64, attempt: u32) -> bool {
    let mut mixed = (second << 8 | u64::from(attempt)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    (mixed ^ mixed >> 31) & 1 == 1
}

fn fails(tick: &Tick) -> bool {
    let second = tick.scheduled_at().as_millisecond().unsigned_abs() / 1_000;
    fails_at(second, tick.attempt())
}

#[leader_only(group = "one", cron = "* * * * *")]
async fn brief(_tick: Tick) {}

#[leader_only(group = "one", every = "2m", missed = "all", max_missed = 20)]
async fn every_one(_tick: Tick) {
    takes(1).await;
}

#[leader_only(group = "one", every = "90s", missed = "skip", grace = "3s")]
async fn skipping(_tick: Tick) {
    takes(2).await;
}

#[leader_only(group = "one", every = "40s")]
async fn long(_tick: Tick) {
    takes(55).await;
}

#[leader_only(group = "two", every = "45s", overlap = "wait")]
async fn waiting(_tick: Tick) {
    takes(50).await;
}

#[leader_only(group = "two", every = "1m", overlap = "replace")]
async fn replaced(_tick: Tick) {
    takes(80).await;
}

#[leader_only(group = "two", every = "1m", overlap = "allow")]
async fn beside(_tick: Tick) {
    takes(100).await;
}

#[leader_only(group = "two", every = "90s", on_loss = "finish")]
async fn finishing(_tick: Tick) {
    takes(40).await;
}

#[leader_only(group = "two", every = "2m", retries = 3, backoff = "1s..10s")]
async fn flaky(tick: Tick) -> Result<(), String> {
    takes(3).await;
    if fails(&tick) {
        Err("by chance".to_owned())
    } else {
        Ok(())
    }
}

#[scheduled(group = "one", every = "50s", on = "any")]
async fn anywhere(_tick: Tick) {
    takes(5).await;
}

#[scheduled(group = "two", every = "2m", on = "any", retries = 2)]
async fn anywhere_again(tick: Tick) -> Result<(), String> {
    takes(4).await;
    if fails(&tick) {
        Err("by chance".to_owned())
    } else {
        Ok(())
    }
}

#[leader_only(group = "one", cron = "0 */5 * * * *", jitter = "30s", timeout = "20s")]
async fn timed_out(_tick: Tick) {
    takes(30).await;
}

type Add = fn(Simulation) -> Simulation;

/// Each of them, to be given to a simulation.
pub(crate) const ALL: [(&str, Add); 12] = [
    ("brief", Simulation::job::<brief>),
    ("every_one", Simulation::job::<every_one>),
    ("skipping", Simulation::job::<skipping>),
    ("long", Simulation::job::<long>),
    ("waiting", Simulation::job::<waiting>),
    ("replaced", Simulation::job::<replaced>),
    ("beside", Simulation::job::<beside>),
    ("finishing", Simulation::job::<finishing>),
    ("flaky", Simulation::job::<flaky>),
    ("anywhere", Simulation::job::<anywhere>),
    ("anywhere_again", Simulation::job::<anywhere_again>),
    ("timed_out", Simulation::job::<timed_out>),
];

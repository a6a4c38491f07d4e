//! The jobs of the fleet: one of each kind that the library knows, and what each allows.

use std::time::Duration;

use leader_core::{Lead, State, Tick, leader_only, scheduled};
use leader_tests::audit::JobSpec;
use leader_tests::dice::Dice;

use crate::floor::Floor;

/// A group of a body that lives as long as its leadership.
pub const HELD: &str = "steady";

const fn job(name: &'static str, group: &'static str, period: i64) -> JobSpec {
    JobSpec {
        name,
        group,
        period,
        retries: 0,
        beside: false,
        finishes: false,
        unled: false,
        owes_all: false,
        shows: &[("ran.ok", 10)],
    }
}

const fn beside(spec: JobSpec) -> JobSpec {
    JobSpec { beside: true, ..spec }
}

const fn finishes(spec: JobSpec) -> JobSpec {
    JobSpec { finishes: true, ..spec }
}

const fn tried(spec: JobSpec) -> JobSpec {
    JobSpec { retries: 2, ..spec }
}

const fn unled(spec: JobSpec) -> JobSpec {
    JobSpec { unled: true, ..spec }
}

const fn owes_all(spec: JobSpec) -> JobSpec {
    JobSpec { owes_all: true, ..spec }
}

const fn shows(spec: JobSpec, shows: &'static [(&'static str, u64)]) -> JobSpec {
    JobSpec { shows, ..spec }
}

/// What the judge knows of the jobs below. What each shows is a third of what it showed in an hour of trouble.
pub const JOBS: [JobSpec; 13] = [
    job("second", "steady", 1_000),
    shows(job("timed", "steady", 2_000), &[("ran.ok", 10), ("ran.timed_out", 10)]),
    finishes(shows(
        job("digest", "long", 2_000),
        &[("ran.ok", 8), ("overlap_skipped", 10)],
    )),
    job("queued", "long", 2_000),
    shows(job("replaced", "long", 2_000), &[("ran.ok", 10), ("ran.cancelled", 8)]),
    beside(job("parallel", "owed", 1_000)),
    owes_all(job("tally", "owed", 1_000)),
    tried(job("flaky", "tries", 2_000)),
    beside(tried(job("flaky_beside", "tries", 2_000))),
    tried(job("flaky_owed", "tries", 2_000)),
    unled(job("anywhere", "open", 1_000)),
    unled(shows(
        job("anywhere_long", "open", 2_000),
        &[("ran.ok", 8), ("overlap_skipped", 10)],
    )),
    unled(tried(job("anywhere_flaky", "open", 2_000))),
];

/// How long the body of a try takes, and whether it fails: chance that every process throws alike.
fn chance(tick: &Tick) -> Dice {
    let name = tick
        .job()
        .as_str()
        .bytes()
        .fold(7_u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
    let planned = tick.scheduled_at().as_millisecond().unsigned_abs();
    Dice::new(name ^ (planned << 8) ^ u64::from(tick.attempt()))
}

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// A body: at least so long, and up to so much longer; fails once in so many times, or never where that is 0.
async fn perform(floor: Floor, tick: Tick, least: u64, spread: u64, fails: u64) -> anyhow::Result<()> {
    let mut dice = chance(&tick);
    let takes = dice.span(ms(least), ms(spread));
    let fails = fails > 0 && dice.below(fails) == 0;
    floor.perform(&tick, takes, fails).await
}

macro_rules! bodies {
    ($($attribute:ident($($options:tt)*) $name:ident: $least:literal + $spread:literal, $fails:literal;)*) => {$(
        #[$attribute($($options)*)]
        async fn $name(tick: Tick, State(floor): State<Floor>) -> anyhow::Result<()> {
            perform(floor, tick, $least, $spread, $fails).await
        }
    )*};
}

bodies! {
    leader_only(group = "steady", cron = "* * * * * *") second: 5 + 40, 20;
    leader_only(group = "steady", every = "2s", timeout = "600ms") timed: 100 + 900, 0;
    leader_only(group = "long", every = "2s", on_loss = "finish") digest: 2_500 + 1_000, 0;
    leader_only(group = "long", every = "2s", overlap = "wait") queued: 500 + 2_000, 10;
    leader_only(group = "long", every = "2s", overlap = "replace") replaced: 500 + 2_500, 0;
    leader_only(group = "owed", every = "1s", overlap = "allow") parallel: 500 + 1_500, 0;
    leader_only(group = "owed", every = "1s", missed = "all") tally: 5 + 40, 0;
    leader_only(group = "tries", every = "2s", retries = 2, backoff = "200ms..600ms") flaky: 5 + 400, 2;
    leader_only(group = "tries", every = "2s", retries = 2, backoff = "200ms..600ms", overlap = "allow") flaky_beside: 5 + 400, 2;
    leader_only(group = "tries", every = "2s", retries = 2, backoff = "200ms..600ms", missed = "all") flaky_owed: 5 + 200, 3;
    scheduled(on = "any", group = "open", every = "1s") anywhere: 5 + 40, 20;
    scheduled(on = "any", group = "open", every = "2s") anywhere_long: 2_500 + 1_000, 0;
    scheduled(on = "any", group = "open", every = "2s", retries = 2, backoff = "200ms..600ms") anywhere_flaky: 5 + 400, 2;
}

/// Writes to the register for as long as it leads.
#[leader_only(group = "steady", while_leading)]
async fn holds(lead: Lead, State(floor): State<Floor>) -> anyhow::Result<()> {
    loop {
        floor.write("holds", lead.fence()).await?;
        tokio::time::sleep(ms(50)).await;
    }
}

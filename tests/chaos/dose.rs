//! How much of each fault: little in ordinary runs, all of it with `LEADER_CHAOS=full`.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::rig::ms;

/// The counts of every scenario.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dose {
    /// Stalls in each direction: pairs side by side, and rounds of each.
    pub(crate) stalls: (usize, usize),
    /// Lost replies of renewals for each way to lose them: pairs, rounds.
    pub(crate) lost_renewals: (usize, usize),
    /// Lost replies of campaigns: groups side by side, rounds.
    pub(crate) lost_grants: (usize, usize),
    /// Fleets on each killed server.
    pub(crate) fleets: usize,
    /// How long a killed server stays away: longer than TTL + 2 s.
    pub(crate) outage: Duration,
    /// Black holes: pairs, rounds.
    pub(crate) black_holes: (usize, usize),
    /// Flushes: namespaces, rounds.
    pub(crate) flushes: (usize, usize),
    /// Cut logs: instances, rounds.
    pub(crate) cut_logs: (usize, usize),
    /// Fail-overs: fleets, rounds there and back.
    pub(crate) fail_overs: (usize, usize),
}

const REDUCED: Dose = Dose {
    stalls: (1, 1),
    lost_renewals: (4, 3),
    lost_grants: (4, 2),
    fleets: 2,
    outage: ms(6_000),
    black_holes: (3, 1),
    flushes: (4, 1),
    cut_logs: (3, 2),
    fail_overs: (2, 1),
};

const FULL: Dose = Dose {
    stalls: (4, 5),
    lost_renewals: (10, 10),
    lost_grants: (10, 10),
    fleets: 4,
    outage: ms(30_000),
    black_holes: (8, 3),
    flushes: (10, 5),
    cut_logs: (6, 6),
    fail_overs: (4, 4),
};

/// The counts of this run.
pub(crate) fn dose() -> Dose {
    match std::env::var("LEADER_CHAOS") {
        Ok(word) if word == "full" => FULL,
        Ok(word) => panic!("LEADER_CHAOS={word}: only `full` is known"),
        Err(_) => REDUCED,
    }
}

/// Chooses phases. A seed is printed; `LEADER_CHAOS_SEED` repeats its choices.
#[derive(Debug)]
pub(crate) struct Chance(AtomicU64);

impl Chance {
    pub(crate) fn of(scenario: &str) -> Self {
        let seed = match std::env::var("LEADER_CHAOS_SEED") {
            Ok(seed) => seed.parse().expect("LEADER_CHAOS_SEED is a number"),
            Err(_) => RandomState::new().hash_one(scenario),
        };
        println!("{scenario}: LEADER_CHAOS_SEED={seed}");
        Self(AtomicU64::new(seed))
    }

    /// A number of its own for something that runs side by side with others.
    pub(crate) fn fork(&self) -> Self {
        Self(AtomicU64::new(self.next()))
    }

    /// A span below `most`.
    pub(crate) fn below(&self, most: Duration) -> Duration {
        let micros = u64::try_from(most.as_micros()).expect("a short span").max(1);
        Duration::from_micros(self.next() % micros)
    }

    /// Steele, Lea and Flood's `SplitMix64`.
    fn next(&self) -> u64 {
        const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
        let mut mixed = self.0.fetch_add(STEP, Ordering::SeqCst).wrapping_add(STEP);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

//! Chance that can be repeated.

use std::time::{Duration, SystemTime};

/// Repeatable chance (splitmix64: Steele, Lea and Flood, 2014).
#[derive(Debug)]
pub struct Dice(u64);

impl Dice {
    /// The same seed gives the same chance.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// One of `0..count`.
    pub fn below(&mut self, count: u64) -> u64 {
        self.next() % count
    }

    /// From `least` to `spread` more.
    ///
    /// # Panics
    /// When the spread is thousands of years.
    pub fn span(&mut self, least: Duration, spread: Duration) -> Duration {
        let micros = u64::try_from(spread.as_micros()).expect("some seconds");
        least + Duration::from_micros(self.next() % (micros + 1))
    }
}

/// The seed that `LEADER_CHAOS_SEED` names, or one of this moment; whoever uses it prints it.
///
/// # Panics
/// When the variable is no whole number.
#[must_use]
pub fn seed() -> u64 {
    match std::env::var("LEADER_CHAOS_SEED") {
        Ok(seed) => seed.parse().expect("LEADER_CHAOS_SEED is a whole number"),
        Err(_) => SystemTime::UNIX_EPOCH
            .elapsed()
            .expect("after 1970")
            .subsec_nanos()
            .into(),
    }
}

//! Chance that follows from a seed.

use std::time::Duration;

/// Repeatable chance (splitmix64: Steele, Lea and Flood, 2014).
#[derive(Clone, Debug)]
pub(super) struct Dice(u64);

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Other dice that follow from these, by what they are for: a roll more here changes nothing there.
    pub(super) fn fork(&self, what: u64) -> Self {
        let mut fork = Self(self.0 ^ what.wrapping_mul(0xd605_bbb5_8c8a_bbc9));
        fork.next();
        fork
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`; 0 where there is none.
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.next().checked_rem(bound).unwrap_or(0)
    }

    /// Whether so many of a thousand.
    pub(super) fn per_mille(&mut self, chance: u32) -> bool {
        self.below(1_000) < u64::from(chance)
    }

    /// From `least` to `most`, in whole milliseconds.
    pub(super) fn span(&mut self, least: Duration, most: Duration) -> Duration {
        let millis = |span: Duration| u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
        let spread = millis(most).saturating_sub(millis(least));
        least + Duration::from_millis(self.below(spread.saturating_add(1)))
    }

    /// In `0.0..1.0`.
    pub(super) fn part(&mut self) -> f64 {
        #[allow(clippy::cast_precision_loss, reason = "53 bits are what a float holds")]
        let part = (self.next() >> 11) as f64 / (1_u64 << 53) as f64;
        part
    }

    /// How long until the next of something that happens so often an hour, at no time rather than another.
    pub(super) fn pause(&mut self, per_hour: f64) -> Duration {
        let hours = -(1.0 - self.part()).ln() / per_hour;
        Duration::try_from_secs_f64(hours * 3_600.0).unwrap_or(Duration::MAX)
    }
}

//! How much later than planned a tick is due: an offset that every instance, build and platform computes alike from the job's name
//! and the tick, so that a successor goes on exactly where its predecessor left off.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::{Rule, before};
use crate::mutants::{Mutant, planted};
use crate::schedule::MIN_PERIOD;

impl Rule {
    /// When a tick is due: never before it is planned, and always before the next one is planned, so that the order of ticks stays.
    #[must_use]
    pub fn due(&self, tick: Timestamp) -> Timestamp {
        let offset = if planted(Mutant::JitterForgotten) {
            SignedDuration::ZERO
        } else {
            SignedDuration::from_millis(self.offset(tick))
        };
        tick.checked_add(offset).unwrap_or(tick)
    }

    /// Whether a tick that is due simply runs at `now`: within `grace`, and no longer after it was due than the next is planned
    /// after it.
    #[must_use]
    pub fn is_in_time(&self, tick: Timestamp, now: Timestamp) -> bool {
        let late = now.duration_since(self.due(tick));
        // No two ticks are nearer than the shortest period: most need no search for the next.
        let near = || late <= signed(MIN_PERIOD) || self.distance(tick).is_none_or(|distance| late <= distance);
        late <= signed(self.grace) && near()
    }

    /// The newest tick that is due.
    pub(in crate::schedule) fn newest_due(&self, now: Timestamp) -> Option<Timestamp> {
        let planned = self.schedule.prev(now)?;
        if self.due(planned) <= now {
            Some(planned)
        } else {
            // Due before the next was planned, which has passed.
            before(&self.schedule, planned)
        }
    }

    /// The first tick that is due at `from` or later.
    pub(super) fn first_due(&self, from: Timestamp) -> Option<Timestamp> {
        let planned_before = self.schedule.prev(from).filter(|tick| self.due(*tick) >= from);
        planned_before.or_else(|| self.schedule.next(from))
    }

    /// The newest tick that is older than `max_age` allows.
    pub(super) fn newest_too_old(&self, now: Timestamp) -> Option<Timestamp> {
        let oldest = now.checked_sub(signed(self.max_age?)).ok()?;
        let newest = self.newest_due(oldest)?;
        if self.due(newest) < oldest {
            Some(newest)
        } else {
            before(&self.schedule, newest)
        }
    }

    /// Grace and jitter as they hold for a tick: both end with the distance to the next one.
    pub(crate) fn in_force(&self, tick: Option<Timestamp>) -> (Duration, Duration) {
        let distance = tick.and_then(|tick| self.distance(tick));
        let distance = distance.map_or(Duration::MAX, SignedDuration::unsigned_abs);
        let before_next = distance.saturating_sub(Duration::from_millis(1));
        (self.grace.min(distance), self.jitter.min(before_next))
    }

    /// From a tick to the next; the last has none.
    fn distance(&self, tick: Timestamp) -> Option<SignedDuration> {
        Some(self.schedule.next(tick)?.duration_since(tick))
    }

    /// Milliseconds.
    fn offset(&self, tick: Timestamp) -> i64 {
        let most = millis(signed(self.jitter));
        if most == 0 {
            return 0;
        }
        let room = self
            .distance(tick)
            .map_or(u64::MAX, |distance| millis(distance).saturating_sub(1));
        let (most, even) = (most.min(room), mixed(self.seed, tick));
        // 0 to `most`, each as often as any other: the high half of the product (Lemire, 2019).
        let offset = (u128::from(even) * (u128::from(most) + 1)) >> 64;
        i64::try_from(offset).unwrap_or(0)
    }
}

/// What a job's name gives to the offsets of its ticks: FNV-1a (Fowler, Noll and Vo).
#[must_use]
pub fn seed(job: &str) -> u64 {
    fnv_1a(0xcbf2_9ce4_8422_2325, job.as_bytes())
}

fn fnv_1a(mut hash: u64, bytes: &[u8]) -> u64 {
    for byte in bytes {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    }
    hash
}

/// The tick hashed on from the seed. FNV leaves its high bits alike for alike inputs, and the finaliser of `MurmurHash3`
/// (Appleby, `fmix64`) spreads them.
pub(in crate::schedule) fn mixed(seed: u64, tick: Timestamp) -> u64 {
    let mut hash = fnv_1a(seed, &tick.as_nanosecond().to_le_bytes());
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ (hash >> 33)
}

fn signed(duration: Duration) -> SignedDuration {
    SignedDuration::try_from(duration).unwrap_or(SignedDuration::MAX)
}

fn millis(duration: SignedDuration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(0)
}

#[cfg(test)]
mod tests;

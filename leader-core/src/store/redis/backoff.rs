//! The pause between connection attempts.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

/// The ceiling of the first pause.
const FIRST: Duration = Duration::from_millis(50);
/// The ceiling of every later one: what a recovery may cost beyond the fault itself.
pub(super) const LONGEST: Duration = Duration::from_millis(500);

/// How long after the beginning of the `failures`-th failed attempt the next may begin: full jitter below a doubling ceiling,
/// so that a fleet does not come back in step.
pub(super) fn pause(failures: u32) -> Duration {
    let doubled = FIRST.saturating_mul(1 << failures.saturating_sub(1).min(8));
    let ceiling = doubled.min(LONGEST).as_micros();
    // The standard library's only source of randomness: enough to spread callers, and no dependency.
    let random = u128::from(RandomState::new().hash_one(failures));
    let micros = ceiling * (random >> 32) / (1 << 32);
    Duration::from_micros(u64::try_from(micros).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_never_exceed_the_longest() {
        let mean = |failures| (0..1000).map(|_| pause(failures)).sum::<Duration>() / 1000;
        assert!(mean(1) > Duration::from_millis(15) && mean(1) < Duration::from_millis(35));
        assert!(mean(4) > Duration::from_millis(150) && mean(4) < Duration::from_millis(250));
        for failures in [0, 1, 5, 40, u32::MAX] {
            assert!((0..1000).all(|_| pause(failures) <= LONGEST));
        }
    }
}

//! How long a run that failed pauses before its next try: doubling, bounded and spread.
//!
//! Pure, and alike on every instance: the spread follows from the job, the tick and the try.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::duration::{DurationError, read_duration};
use super::message::Message;
use super::planner::mixed;
use crate::mutants::{Mutant, planted};

/// The most further tries that a job can ask for.
pub const MOST_RETRIES: u32 = 1000;

/// Checks `retries` at compile time.
///
/// # Panics
/// When it is more than [`MOST_RETRIES`].
#[must_use]
#[track_caller]
pub const fn checked_retries(count: u32) -> u32 {
    assert!(
        count <= MOST_RETRIES,
        "`retries` is more than 1000: no try begins at or after the next tick; write a smaller number"
    );
    count
}

/// The first pause and the longest one. Each is twice the one before it, up to the longest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    pub(crate) first: Duration,
    pub(crate) most: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Self::from_first(Duration::from_secs(1))
    }
}

/// Why a back-off was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BackoffError {
    Duration(DurationError),
    Zero,
    /// Where the second duration begins.
    Order(usize),
}

impl BackoffError {
    /// The whole message for people; `text` is what was refused.
    pub(crate) const fn message(&self, text: &str) -> Message {
        let mut message = Message::new();
        match self {
            Self::Duration(error) => return error.message(text),
            Self::Zero => message
                .text("invalid back-off: the first pause is zero")
                .picture(text, 0, text.len())
                .text("\nhelp: write the first pause, which doubles up to 60s, or the first and the longest: `1s`, `1s..5m`"),
            Self::Order(at) => message
                .text("invalid back-off: the longest pause is shorter than the first")
                .picture(text, *at, text.len() - *at)
                .text("\nhelp: write the first pause and then the longest: `1s..5m`"),
        };
        message
    }
}

impl Backoff {
    const fn from_first(first: Duration) -> Self {
        let usual = Duration::from_secs(60);
        let most = if first.as_millis() > usual.as_millis() {
            first
        } else {
            usual
        };
        Self { first, most }
    }

    /// Reads the first pause, `1s`, or the first and the longest, `1s..5m`.
    pub(crate) const fn read(text: &str) -> Result<Self, BackoffError> {
        let bytes = text.as_bytes();
        let mut dots = 0;
        while dots < bytes.len() && !(bytes[dots] == b'.' && dots + 1 < bytes.len() && bytes[dots + 1] == b'.') {
            dots += 1;
        }
        let (first, rest) = text.split_at(dots);
        let first = match read_duration(first) {
            Ok(first) => first,
            Err(error) => return Err(BackoffError::Duration(error)),
        };
        if first.is_zero() {
            return Err(BackoffError::Zero);
        }
        if rest.is_empty() {
            return Ok(Self::from_first(first));
        }
        let (_, most) = rest.split_at(2);
        match read_duration(most) {
            Ok(most) if most.as_millis() < first.as_millis() => Err(BackoffError::Order(dots + 2)),
            Ok(most) => Ok(Self { first, most }),
            Err(mut error) => {
                error.at += dots + 2;
                Err(BackoffError::Duration(error))
            }
        }
    }

    /// Reads a back-off at compile time: the macros put it into a `const`.
    ///
    /// # Panics
    /// When it is refused. In a `const` that is a compile error.
    #[must_use]
    #[track_caller]
    pub const fn checked(text: &'static str) -> Self {
        match Self::read(text) {
            Ok(backoff) => backoff,
            Err(error) => panic!("{}", error.message(text).as_str()),
        }
    }

    /// The longest that the pause after a try, counted from 1, can be.
    pub(crate) fn bound(self, attempt: u32) -> Duration {
        let factor = 1_u32.checked_shl(attempt.saturating_sub(1)).unwrap_or(u32::MAX);
        self.first.saturating_mul(factor).min(self.most)
    }

    /// The pause after a try, counted from 1: half of its bound at the least, and spread evenly over the rest, so that what failed
    /// together is not tried again together. `seed` is the job's.
    pub(crate) fn pause(self, seed: u64, tick: Timestamp, attempt: u32) -> Duration {
        if planted(Mutant::RetryAtOnce) {
            return Duration::ZERO;
        }
        let bound = u64::try_from(self.bound(attempt).as_millis()).unwrap_or(u64::MAX);
        let room = bound / 2;
        let instant = tick.checked_add(SignedDuration::from_nanos(attempt.into()));
        let even = mixed(seed, instant.unwrap_or(tick));
        let spread = (u128::from(even) * (u128::from(room) + 1)) >> 64;
        Duration::from_millis(bound - room + u64::try_from(spread).unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::planner::seed;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn both_forms_are_read() {
        for (text, first, most) in [
            ("1s", 1_000, 60_000),
            ("250ms", 250, 60_000),
            ("2m", 120_000, 120_000),
            ("1s..5m", 1_000, 300_000),
            ("1s..1s", 1_000, 1_000),
        ] {
            let (first, most) = (ms(first), ms(most));
            assert_eq!(Backoff::read(text), Ok(Backoff { first, most }), "{text}");
        }
        assert_eq!(Backoff::default(), Backoff::checked("1s"));
    }

    #[test]
    fn others_are_refused_with_the_place() {
        for (text, part) in [
            ("", "empty"),
            ("0s", "first pause is zero"),
            ("soon", "a number is expected"),
            ("5s..1s", "shorter than the first"),
            ("1s..", "empty"),
            ("1s..2x", "`x` is not a unit"),
            ("1s...2s", "number is expected"),
        ] {
            let message = Backoff::read(text).unwrap_err().message(text);
            assert!(message.as_str().contains(part), "{text}: {}", message.as_str());
        }
        let Err(BackoffError::Duration(error)) = Backoff::read("1s..2x") else {
            panic!("taken");
        };
        assert_eq!((error.at, error.len), (5, 1));
    }

    #[test]
    fn pauses_double_up_to_the_longest() {
        let backoff = Backoff::checked("1s..7s");
        let bounds: Vec<_> = (1..=5).map(|attempt| backoff.bound(attempt).as_secs()).collect();
        assert_eq!(bounds, [1, 2, 4, 7, 7]);
        for attempt in [31, 32, 33, 64, 1000, u32::MAX] {
            assert_eq!(backoff.bound(attempt), ms(7_000), "{attempt}");
        }
    }

    /// Instances of different builds compute alike: these never change.
    #[test]
    fn pauses_are_spread_alike_everywhere() {
        let tick: Timestamp = "2026-03-02T03:00:00Z".parse().unwrap();
        let backoff = Backoff::checked("1s");
        let pauses = |job: &str| -> Vec<_> {
            (1..=8)
                .map(|attempt| backoff.pause(seed(job), tick, attempt).as_millis())
                .collect()
        };
        assert_eq!(pauses("purge"), pauses("purge"));
        assert_ne!(pauses("purge"), pauses("report"));
        for (at, pause) in pauses("purge").into_iter().enumerate() {
            let bound = backoff.bound(u32::try_from(at).unwrap() + 1).as_millis();
            assert!(pause >= bound / 2 && pause <= bound, "{pause} of {bound}");
        }
        assert_eq!(pauses("purge")[..4], [572, 1221, 2733, 6481]);
    }

    #[test]
    fn the_whole_room_is_used() {
        let tick: Timestamp = "2026-03-02T03:00:00Z".parse().unwrap();
        let backoff = Backoff::checked("10ms");
        let after = |second| tick + SignedDuration::from_secs(second);
        let all: std::collections::BTreeSet<_> = (0..500)
            .map(|second| backoff.pause(seed("purge"), after(second), 1).as_millis())
            .collect();
        assert_eq!(all, (5..=10).collect());
    }
}

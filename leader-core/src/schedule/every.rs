//! A fixed period: ticks at multiples of it since the Unix epoch, so that every instance computes the same ones.

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;

use super::duration::{Written, read_duration};
use super::message::Message;

/// The shortest period.
pub const MIN_PERIOD: Duration = Duration::from_millis(100);
/// The longest period.
pub const MAX_PERIOD: Duration = Duration::from_secs(366 * 86_400);

/// A period, with its ticks at multiples since the Unix epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Every {
    period_ms: i64,
}

/// Why a period was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PeriodError {
    /// Shorter than [`MIN_PERIOD`].
    TooShort,
    /// Longer than [`MAX_PERIOD`].
    TooLong,
    /// Not a whole number of milliseconds.
    Fraction,
}

impl PeriodError {
    /// The whole message for people: what is wrong, a picture of the text, and the way out.
    ///
    /// `text` is the period that was refused.
    #[must_use]
    pub const fn message(self, text: &str) -> Message {
        let mut out = Message::new();
        out.text("invalid period: ")
            .text(self.reason())
            .picture(text, 0, text.len())
            .text("\nhelp: ")
            .text(self.help());
        out
    }

    const fn reason(self) -> &'static str {
        match self {
            Self::TooShort => "it is shorter than 100ms",
            Self::TooLong => "it is longer than 366d",
            Self::Fraction => "it is not a whole number of milliseconds",
        }
    }

    const fn help(self) -> &'static str {
        match self {
            Self::TooShort => {
                "every tick is claimed in the store, which shorter periods would keep busy; loop inside a body with `while_leading`"
            }
            Self::TooLong => "name the date with `cron`",
            Self::Fraction => "round it",
        }
    }
}

impl fmt::Display for PeriodError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "invalid period: {}\nhelp: {}", self.reason(), self.help())
    }
}

impl std::error::Error for PeriodError {}

impl Every {
    /// Checks a period: [`MIN_PERIOD`] to [`MAX_PERIOD`], whole milliseconds.
    ///
    /// # Errors
    /// [`PeriodError`] when it is out of these bounds.
    pub const fn new(period: Duration) -> Result<Self, PeriodError> {
        if period.as_nanos() < MIN_PERIOD.as_nanos() {
            return Err(PeriodError::TooShort);
        }
        if period.as_nanos() > MAX_PERIOD.as_nanos() {
            return Err(PeriodError::TooLong);
        }
        if !period.subsec_nanos().is_multiple_of(1_000_000) {
            return Err(PeriodError::Fraction);
        }
        #[expect(clippy::cast_possible_truncation, reason = "at most MAX_PERIOD, about 2^35 ms")]
        let period_ms = period.as_millis() as i64;
        Ok(Self { period_ms })
    }

    /// Reads and checks a period at compile time: the macros put it into a `const`.
    ///
    /// # Panics
    /// When the text is no duration or the period is refused. In a `const` that is a compile error.
    #[must_use]
    #[track_caller]
    pub const fn checked(text: &'static str) -> Self {
        let period = match read_duration(text) {
            Ok(period) => period,
            Err(error) => panic!("{}", error.message(text).as_str()),
        };
        match Self::new(period) {
            Ok(every) => every,
            Err(error) => panic!("{}", error.message(text).as_str()),
        }
    }

    /// The period.
    #[must_use]
    pub const fn period(self) -> Duration {
        Duration::from_millis(self.period_ms.unsigned_abs())
    }

    /// The first tick after `after`; `None` beyond the last representable instant.
    #[must_use]
    pub fn next(self, after: Timestamp) -> Option<Timestamp> {
        let tick = (self.index(after) + 1) * self.period_ms;
        Timestamp::from_millisecond(tick).ok()
    }

    /// The last tick at or before `at`; `None` before the first representable instant.
    #[must_use]
    pub fn prev(self, at: Timestamp) -> Option<Timestamp> {
        Timestamp::from_millisecond(self.index(at) * self.period_ms).ok()
    }

    /// The number of ticks after `after` and not after `until`.
    #[must_use]
    pub fn count(self, after: Timestamp, until: Timestamp) -> u64 {
        u64::try_from(self.index(until) - self.index(after)).unwrap_or(0)
    }

    /// How many periods the last tick at or before `at` lies after the epoch; negative before it.
    fn index(self, at: Timestamp) -> i64 {
        // Toward the past on both sides of the epoch.
        let ms = at.as_millisecond();
        let floor = ms - i64::from(at.subsec_nanosecond() % 1_000_000 < 0);
        floor.div_euclid(self.period_ms)
    }
}

impl fmt::Display for Every {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Written(self.period_ms.unsigned_abs()).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn every(ms: u64) -> Every {
        Every::new(Duration::from_millis(ms)).unwrap()
    }

    #[test]
    fn periods_have_bounds_and_reasons() {
        const HALF: Every = Every::checked("90m");
        for (nanos, error) in [
            (0, PeriodError::TooShort),
            (99_999_999, PeriodError::TooShort),
            (100_000_001, PeriodError::Fraction),
            (366 * 86_400_000_000_001, PeriodError::TooLong),
        ] {
            assert_eq!(Every::new(Duration::from_nanos(nanos)), Err(error));
        }
        assert_eq!(Every::new(MIN_PERIOD).unwrap().to_string(), "100ms");
        assert_eq!(Every::new(MAX_PERIOD).unwrap().to_string(), "366d");
        assert_eq!(HALF.to_string(), "1h30m");
        assert_eq!(HALF.period(), Duration::from_secs(5400));
    }

    #[test]
    #[should_panic(expected = "invalid period: it is shorter than 100ms\n  99ms\n  ^^^^\nhelp: every tick")]
    fn a_short_period_does_not_compile() {
        let _ = Every::checked("99ms");
    }

    #[test]
    fn ticks_are_multiples_since_the_epoch() {
        let seven = every(7000);
        assert_eq!(seven.next(at("1970-01-01T00:00:00Z")), Some(at("1970-01-01T00:00:07Z")));
        assert_eq!(
            seven.prev(at("1970-01-01T00:00:06.999999999Z")),
            Some(at("1970-01-01T00:00:00Z"))
        );
        assert_eq!(
            seven.prev(at("1969-12-31T23:59:59.999999999Z")),
            Some(at("1969-12-31T23:59:53Z"))
        );
        assert_eq!(
            seven.next(at("1969-12-31T23:59:52.999999999Z")),
            Some(at("1969-12-31T23:59:53Z"))
        );
        assert_eq!(seven.next(at("1969-12-31T23:59:53Z")), Some(at("1970-01-01T00:00:00Z")));
        assert_eq!(seven.count(at("1969-12-31T23:59:53Z"), at("1970-01-01T00:00:07Z")), 2);
        assert_eq!(seven.count(at("1970-01-01T00:00:07Z"), at("1969-12-31T23:59:53Z")), 0);
    }

    #[test]
    fn the_ends_of_time_are_no_ticks() {
        let day = every(86_400_000);
        assert_eq!(day.next(Timestamp::MAX), None);
        assert!(day.prev(Timestamp::MAX).is_some());
        assert_eq!(day.prev(Timestamp::MIN), None);
        assert!(day.next(Timestamp::MIN).is_some());
        assert!(day.count(Timestamp::MIN, Timestamp::MAX) > 7_000_000);
    }

    proptest! {
        #[test]
        fn stepping_agrees_with_counting(ms in 100_u64..100_000, start in -10_000_000_000_000_i64..10_000_000_000_000, steps in 1_u64..50) {
            let every = every(ms);
            let start = Timestamp::from_nanosecond(i128::from(start) * 101).unwrap();
            let mut tick = start;
            for n in 1..=steps {
                let next = every.next(tick).unwrap();
                prop_assert!(next > tick);
                prop_assert_eq!(next.as_nanosecond().rem_euclid(i128::from(ms) * 1_000_000), 0);
                prop_assert_eq!(every.prev(next), Some(next));
                prop_assert!(every.prev(tick).unwrap() <= tick);
                prop_assert_eq!(every.count(start, next), n);
                tick = next;
            }
        }
    }
}

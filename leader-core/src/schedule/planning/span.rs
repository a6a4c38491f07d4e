//! Where a time lies between two bounds, and how fast the bounds part.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::clock::Moment;

/// At a moment the store's time lies between the two, in nanoseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) at: Moment,
    pub(super) low: i128,
    pub(super) high: i128,
}

impl Span {
    /// What follows from it for a later moment, by a monotonic clock that may be off by so many parts per million.
    pub(super) fn aged(self, now: Moment, ppm: i128) -> Self {
        let passed = nanos(self.at, now);
        let apart = part(passed, ppm) + 1;
        Self {
            at: self.at.max(now),
            low: self.low + passed - apart,
            high: self.high + passed + apart,
        }
    }

    /// What two of one moment say together; `None` when they contradict each other.
    pub(super) fn meet(self, other: Self) -> Option<Self> {
        let low = self.low.max(other.low);
        let high = self.high.min(other.high);
        (low <= high).then_some(Self { low, high, ..other })
    }

    /// How far two that contradict each other are apart.
    pub(super) fn gap(self, other: Self) -> i128 {
        (self.low - other.high).max(other.low - self.high)
    }
}

/// How far the monotonic clock may be off the store's rate, as the samples show.
#[derive(Debug)]
pub(super) struct Drift {
    /// The samples that newer ones are compared with: the first lies one window back, at least, and two at most.
    from: Option<(Span, Span)>,
    ppm: i128,
}

impl Default for Drift {
    fn default() -> Self {
        Self {
            from: None,
            ppm: Self::WORST,
        }
    }
}

impl Drift {
    /// The most that a clock may be off and still be followed, in parts per million: what is assumed before anything was measured.
    pub(super) const WORST: i128 = 20_000;
    /// By how much a rate may change after it was measured, in parts per million. A quartz changes by some ten, but the kernel
    /// slews its monotonic clock by up to 500 when it is told to, and so does the one of the store's host.
    const CHANGE: i128 = 500;
    /// The span that a rate is measured over: long enough to see 500 ppm through round trips of 0.3 s.
    const WINDOW: i128 = 600_000_000_000;

    /// Nothing is known but one sample.
    pub(super) fn since(sample: Span) -> Self {
        let from = Some((sample, sample));
        Self {
            from,
            ..Self::default()
        }
    }

    /// How far the bounds of a sample part, in parts of the time that passes.
    pub(super) fn ppm(&self) -> i128 {
        self.ppm
    }

    pub(super) fn note(&mut self, sample: Span) {
        let Some((from, next)) = &mut self.from else { return };
        let passed = nanos(from.at, sample.at);
        if passed > 0 {
            let fastest = sample.high - from.low - passed;
            let slowest = sample.low - from.high - passed;
            let most = fastest.abs().max(slowest.abs());
            let measured = most * 1_000_000 / passed + 1;
            self.ppm = (measured + Self::CHANGE).min(Self::WORST);
        }
        if nanos(next.at, sample.at) >= Self::WINDOW {
            (*from, *next) = (*next, sample);
        }
    }
}

/// The nanoseconds from one moment to a later one; zero when it is not later.
pub(super) fn nanos(from: Moment, to: Moment) -> i128 {
    i128::from(to.as_nanos().saturating_sub(from.as_nanos()))
}

pub(super) fn part(nanos: i128, ppm: i128) -> i128 {
    nanos * ppm / 1_000_000
}

/// The nearest instant that there is.
pub(super) fn timestamp(nanos: i128) -> Timestamp {
    let nearest = nanos.clamp(Timestamp::MIN.as_nanosecond(), Timestamp::MAX.as_nanosecond());
    Timestamp::from_nanosecond(nearest).unwrap_or(Timestamp::MAX)
}

/// The nearest duration that there is.
pub(super) fn span_of(nanos: i128) -> Duration {
    Duration::from_nanos(u64::try_from(nanos.max(0)).unwrap_or(u64::MAX))
}

/// The nearest signed duration that fits: 292 years.
pub(super) fn signed(nanos: i128) -> SignedDuration {
    let nearest = nanos.clamp(i128::from(i64::MIN), i128::from(i64::MAX));
    SignedDuration::from_nanos(i64::try_from(nearest).unwrap_or(i64::MAX))
}

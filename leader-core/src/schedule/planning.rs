//! The planning clock: the fleet's wall time, carried between two samples by the monotonic clock.
//!
//! A wall clock that is stepped, or wrong by hours, moves no tick: samples of the store's time do, and gently. The clock never
//! runs backwards, and says how wrong it may be.

mod span;

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::clock::Moment;
use span::{Drift, Span, nanos, part, signed, span_of, timestamp};

/// How much faster than the monotonic clock this one may run, in parts per million: 2 %. Ahead of the store it stands instead, because
/// a tick that comes early by what is known already comes early for nothing.
///
/// One that follows no faster than a clock drifts falls behind for ever. Clocks that are wrong by 1 % are as bad as they come
/// alive, and twice that also makes up for what has gathered before.
const SLEW: i128 = 20_000;
/// A larger error is a step of somebody's clock, in nanoseconds.
const STEP: i128 = 2_000_000_000;
/// How many round trips must agree on a step, with each other, before it is believed.
const AGREEING: u32 = 3;
/// Stores may give their time in whole milliseconds, cut off.
const RESOLUTION: i128 = 1_000_000;

/// A clock that follows the store's.
#[derive(Debug)]
pub struct PlanningClock {
    /// What it shows at the moment `at`, in nanoseconds since the Unix epoch.
    base: i128,
    at: Moment,
    /// How far the store's time is from that, as far as it is known.
    owed: i128,
    way: Way,
    /// Whether it shows the store's time, and not the local wall clock's any more.
    followed: bool,
    /// Where the store's time is.
    believed: Option<Span>,
    drift: Drift,
    suspect: Option<Suspect>,
}

/// How the clock goes to the store's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// A little faster than time, or as fast.
    Slewing,
    /// Not at all, until the store's time has caught up.
    Standing,
    /// In one leap, when it is told to [follow](PlanningClock::follow); until then as if nothing had happened.
    Waiting,
}

/// A step that is not believed yet.
#[derive(Clone, Copy, Debug)]
struct Suspect {
    span: Span,
    agreeing: u32,
}

/// How far a wall clock is ahead of the store's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offset {
    /// By so much.
    pub by: SignedDuration,
    /// Off by at most this.
    pub error: Duration,
}

impl PlanningClock {
    /// A clock that starts from the local wall clock, until it [follows](Self::follow) the first sample.
    #[must_use]
    pub fn new(wall: Timestamp, now: Moment) -> Self {
        Self {
            base: wall.as_nanosecond(),
            at: now,
            owed: 0,
            way: Way::Waiting,
            followed: false,
            believed: None,
            drift: Drift::default(),
            suspect: None,
        }
    }

    /// The fleet's time at a moment. Once the clock follows the store's it never decreases.
    #[must_use]
    pub fn at(&self, now: Moment) -> Timestamp {
        timestamp(self.shown(now))
    }

    fn shown(&self, now: Moment) -> i128 {
        let passed = nanos(self.at, now);
        let most = part(passed, SLEW);
        self.base
            + match self.way {
                Way::Waiting => passed,
                Way::Slewing => passed + self.owed.min(most),
                Way::Standing => (passed + self.owed).max(0),
            }
    }

    /// The store's time at a moment, as far as it is known: what the clock shows, or goes to.
    #[must_use]
    pub fn store_at(&self, now: Moment) -> Timestamp {
        timestamp(self.aim(now))
    }

    fn aim(&self, now: Moment) -> i128 {
        self.base + nanos(self.at, now) + self.owed
    }

    /// How far the clock may be from the store's time at a moment, in either direction. It grows with the time since the last
    /// sample, contains what has not been slewed away yet, and is endless before the first.
    ///
    /// A step of the store's clock that hides within a round trip is no part of it, nor one that is not believed yet; nor what a
    /// monotonic clock does that is wrong by more than 2 %, or changes its rate by more than 500 ppm at once.
    #[must_use]
    pub fn bound(&self, now: Moment) -> Duration {
        self.distance(now, self.shown(now)).map_or(Duration::MAX, span_of)
    }

    /// The most that a time may be from the store's.
    fn distance(&self, now: Moment, time: i128) -> Option<i128> {
        let store = self.believed?.aged(now, self.drift.ppm());
        Some((store.high - time).max(time - store.low))
    }

    /// How far a wall clock is ahead of the store's time; `None` before the first sample.
    #[must_use]
    pub fn offset_of(&self, wall: Timestamp, now: Moment) -> Option<Offset> {
        let aim = self.aim(now);
        Some(Offset {
            by: signed(wall.as_nanosecond() - aim),
            error: span_of(self.distance(now, aim)?),
        })
    }

    /// The first moment at which the fleet's time will be `wall`; now, when that has passed.
    #[must_use]
    pub fn moment_of(&self, wall: Timestamp, now: Moment) -> Moment {
        let needed = wall.as_nanosecond() - self.base;
        let at_rate = || {
            let (scaled, rate) = (needed * 1_000_000, 1_000_000 + SLEW);
            scaled.div_euclid(rate) + i128::from(scaled.rem_euclid(rate) != 0)
        };
        let passes = match self.way {
            Way::Waiting => needed,
            Way::Standing if needed <= 0 => 0,
            Way::Standing => needed - self.owed,
            Way::Slewing => at_rate().max(needed - self.owed),
        };
        // What a slew is cut off to, each way, is a nanosecond.
        let near = self.at + span_of(passes - 2);
        let first = (0..=4)
            .map(|nanos| near + Duration::from_nanos(nanos))
            .find(|moment| self.shown(*moment) >= wall.as_nanosecond());
        now.max(first.unwrap_or(Moment::MAX))
    }

    /// What the clock shows and so much more: the time at which to look again. While it stands, what it shows at a later moment has
    /// come already, and whoever looked again then would look without a pause.
    #[must_use]
    pub fn after(&self, now: Moment, span: Duration) -> Timestamp {
        timestamp(self.shown(now) + nanos(now, now + span))
    }

    /// Takes a sample: the store's time was `server` at some moment between `sent` and `received`, so that it lies between
    /// `server` and that and the round trip when the answer is there. Whether a step of it was believed by that, or the first time.
    pub fn sample(&mut self, sent: Moment, received: Moment, server: Timestamp) -> bool {
        let low = server.as_nanosecond();
        let trip = nanos(sent, received);
        let sample = Span {
            at: received,
            low,
            // By a clock that may be slow.
            high: low + trip + part(trip, self.drift.ppm()) + RESOLUTION,
        };
        let Some(believed) = self.believed else {
            self.believe(sample);
            self.drift = Drift::since(sample);
            return true;
        };
        let expected = believed.aged(received, self.drift.ppm());
        if let Some(both) = expected.meet(sample) {
            self.suspect = None;
            self.drift.note(sample);
            self.believe(both);
            return false;
        }
        if expected.gap(sample) <= STEP {
            self.suspect = None;
            self.drift = Drift::since(sample);
            self.believe(sample);
            return false;
        }
        self.doubt(sent, sample)
    }

    /// A step, if others say the same.
    fn doubt(&mut self, sent: Moment, sample: Span) -> bool {
        let suspect = match self.suspect {
            // Answers that were under way together are one look at the store's clock, not several.
            Some(suspect) if sent < suspect.span.at => return false,
            Some(suspect) => match suspect.span.aged(sample.at, Drift::WORST).meet(sample) {
                Some(span) => Suspect {
                    span,
                    agreeing: suspect.agreeing + 1,
                },
                None => Suspect::new(sample),
            },
            None => Suspect::new(sample),
        };
        if suspect.agreeing < AGREEING {
            self.suspect = Some(suspect);
            return false;
        }
        self.suspect = None;
        self.drift = Drift::since(suspect.span);
        self.believe(suspect.span);
        true
    }

    fn believe(&mut self, store: Span) {
        self.believed = Some(store);
        self.base = self.shown(store.at);
        self.at = self.at.max(store.at);
        // What the round trip may explain is left alone.
        self.owed = (store.low - self.base).max(0) + (store.high - self.base).min(0);
        // Whoever stands, or leaps back before anything was shown, does it to the end, so that no tick is early.
        let behind = (store.low - self.base).min(0);
        self.way = if !self.followed || self.owed > STEP {
            self.owed = if self.owed < 0 { behind } else { self.owed };
            Way::Waiting
        } else if self.owed < 0 || (self.way == Way::Standing && behind < 0) {
            self.owed = behind;
            Way::Standing
        } else {
            Way::Slewing
        };
    }

    /// Whether samples are wanted soon: one of them spoke of a step that others have not confirmed yet.
    #[must_use]
    pub fn suspects(&self) -> bool {
        self.suspect.is_some()
    }

    /// Whether the store's time is known and far ahead of the one that the clock shows, or has never been shown: the clock waits
    /// to be told to [follow](Self::follow).
    #[must_use]
    pub fn waits(&self) -> bool {
        self.way == Way::Waiting && self.believed.is_some()
    }

    /// Whether the clock shows the store's time, and not the local wall clock's any more.
    #[must_use]
    pub fn has_followed(&self) -> bool {
        self.followed
    }

    /// Leaps to the store's time, if the clock [waits](Self::waits) for that.
    pub fn follow(&mut self, now: Moment) {
        if self.waits() {
            self.base = self.aim(now);
            self.at = self.at.max(now);
            self.owed = 0;
            self.way = Way::Slewing;
            self.followed = true;
        }
    }
}

impl Suspect {
    fn new(span: Span) -> Self {
        Self { span, agreeing: 1 }
    }
}

#[cfg(test)]
mod tests;

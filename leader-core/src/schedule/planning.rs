//! The planning clock: the fleet's wall time, carried between two samples by the monotonic clock.
//!
//! A wall clock that is stepped, or wrong by hours, moves no tick: samples of the store's time do, and gently. The clock never
//! runs backwards.

use jiff::{SignedDuration, Timestamp};

use crate::clock::Moment;

/// The most that the clock is slewed, in parts of the time that passed: 1 %.
const SLEW: i32 = 100;
/// A larger error is a step of somebody's clock.
const STEP: SignedDuration = SignedDuration::from_secs(2);
/// How many samples must agree on a step before it is followed.
const AGREEING: u32 = 3;

/// A clock that follows the store's.
#[derive(Debug)]
pub struct PlanningClock {
    base: Timestamp,
    at: Moment,
    synced: bool,
    stepped: u32,
}

impl PlanningClock {
    /// A clock that starts from the local wall clock, until the first sample.
    #[must_use]
    pub fn new(wall: Timestamp, now: Moment) -> Self {
        Self {
            base: wall,
            at: now,
            synced: false,
            stepped: 0,
        }
    }

    /// The fleet's time at a moment.
    #[must_use]
    pub fn at(&self, now: Moment) -> Timestamp {
        self.base.saturating_add(passed(self.at, now)).unwrap_or(Timestamp::MAX)
    }

    /// How far a wall clock is ahead of the fleet's time; `None` before the first sample.
    #[must_use]
    pub fn offset_of(&self, wall: Timestamp, now: Moment) -> Option<SignedDuration> {
        self.synced.then(|| wall.duration_since(self.at(now)))
    }

    /// The moment at which the fleet's time will be `wall`; now, when that has passed.
    #[must_use]
    pub fn moment_of(&self, wall: Timestamp, now: Moment) -> Moment {
        let left = wall.duration_since(self.at(now));
        now + left.try_into().unwrap_or_default()
    }

    /// Takes a sample: the store's time was `server` at some moment between `sent` and `received`.
    pub fn sample(&mut self, sent: Moment, received: Moment, server: Timestamp) {
        let bound = passed(sent, received) / 2;
        let error = server.duration_since(self.at(sent + received.since(sent) / 2));
        // What the round trip may explain is left alone: by a slow machine's first sample, too.
        let error = error - error.clamp(-bound, bound);
        if !self.synced {
            self.synced = true;
            self.base = self.base.saturating_add(error).unwrap_or(self.base);
            return;
        }
        if error.is_zero() {
            self.stepped = 0;
            self.rebase(received, SignedDuration::ZERO);
            return;
        }
        if error.abs() > STEP {
            self.stepped += 1;
            if self.stepped < AGREEING {
                return;
            }
            if error > SignedDuration::ZERO {
                self.stepped = 0;
                self.rebase(received, error);
                return;
            }
        } else {
            self.stepped = 0;
        }
        // Slewed: faster by 1 % at most, and slower by 1 % at most, which never runs backwards.
        let most = passed(self.at, received) / SLEW;
        self.rebase(received, error.clamp(-most, most));
    }

    fn rebase(&mut self, now: Moment, by: SignedDuration) {
        self.base = self.at(now).saturating_add(by).unwrap_or(self.base);
        self.at = now.max(self.at);
    }
}

fn passed(from: Moment, to: Moment) -> SignedDuration {
    SignedDuration::try_from(to.since(from)).unwrap_or(SignedDuration::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn moment(seconds: u64) -> Moment {
        Moment::from_nanos((1000 + seconds) * 1_000_000_000)
    }

    fn wall(text: &str) -> Timestamp {
        format!("2026-03-02T{text}Z").parse().unwrap()
    }

    #[test]
    fn the_first_sample_sets_the_clock() {
        let mut clock = PlanningClock::new(wall("09:00:00"), moment(0));
        clock.sample(moment(0), moment(0), wall("12:00:00"));
        assert_eq!(clock.at(moment(5)), wall("12:00:05"));
        assert_eq!(clock.moment_of(wall("12:00:07"), moment(5)), moment(7));
        assert_eq!(clock.moment_of(wall("11:00:07"), moment(5)), moment(5));
    }

    /// An answer that waited for seconds in a busy process says little of the store's time.
    #[test]
    fn a_first_sample_is_trusted_no_further_than_its_round_trip() {
        let mut clock = PlanningClock::new(wall("12:00:00"), moment(0));
        clock.sample(moment(0), moment(6), wall("12:00:00"));
        assert_eq!(clock.at(moment(6)), wall("12:00:06"));
        let mut wrong = PlanningClock::new(wall("09:00:00"), moment(0));
        wrong.sample(moment(0), moment(6), wall("12:00:00"));
        assert_eq!(wrong.at(moment(6)), wall("12:00:00"));
    }

    #[test]
    fn small_errors_are_slewed_and_never_backwards() {
        let mut clock = PlanningClock::new(wall("12:00:00"), moment(0));
        clock.sample(moment(0), moment(0), wall("12:00:00"));
        let mut last = clock.at(moment(0));
        // The store's clock is 1 s behind from now on.
        for second in 1..=200_u32 {
            let server = wall("12:00:00") + SignedDuration::from_secs(i64::from(second) - 1);
            let at = moment(u64::from(second));
            clock.sample(at, at, server);
            let now = clock.at(at);
            assert!(now > last, "never backwards");
            last = now;
        }
        assert_eq!(last, wall("12:03:19"));
    }

    #[test]
    fn a_step_is_followed_forwards_when_three_samples_agree() {
        let mut clock = PlanningClock::new(wall("12:00:00"), moment(0));
        clock.sample(moment(0), moment(0), wall("12:00:00"));
        let server = |second: i64| wall("14:00:00") + SignedDuration::from_secs(second);
        clock.sample(moment(1), moment(1), server(1));
        clock.sample(moment(2), moment(2), server(2));
        assert_eq!(clock.at(moment(2)), wall("12:00:02"));
        clock.sample(moment(3), moment(3), server(3));
        assert_eq!(clock.at(moment(3)), wall("14:00:03"));
    }

    #[test]
    fn an_error_within_the_round_trip_is_left_alone() {
        let mut clock = PlanningClock::new(wall("12:00:00"), moment(0));
        clock.sample(moment(0), moment(0), wall("12:00:00"));
        let sent = moment(10);
        clock.sample(sent, sent + Duration::from_millis(400), wall("12:00:10"));
        assert_eq!(clock.at(moment(11)), wall("12:00:11"));
    }
}

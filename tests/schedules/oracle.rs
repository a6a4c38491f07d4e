//! The naive evaluator: every tick of an expression in a zone, found by walking through real time second by second.
//!
//! It shares no code with `leader-core`. Zones come from jiff's bundled database, of which only the offset at an instant is asked.

mod calendar;
mod expression;
#[cfg(test)]
mod tests;

use jiff::Timestamp;
use jiff::tz::{TimeZone, TimeZoneDatabase};

use calendar::DAY;
pub use calendar::{clock, date};
pub use expression::{Days, Expression};

/// How long before a window the walk begins, so that it knows which wall times have passed: no clock is set back by more.
const LEAD: i64 = 8 * 3600;

/// The real seconds that are looked at, as [`Line::survey`] bounds them: all of the years 1970 to 2100 in every zone.
pub const FIRST: i64 = -2 * DAY;
/// See [`FIRST`].
pub const LAST: i64 = 4_133_980_799 + 2 * DAY;

/// The zone of a name, from the bundled database.
pub fn zone(name: &str) -> TimeZone {
    TimeZoneDatabase::bundled().get(name).unwrap()
}

/// How far the wall clock is ahead of UTC at a real second.
pub fn offset(zone: &TimeZone, at: i64) -> i64 {
    zone.to_offset(Timestamp::from_second(at).unwrap()).seconds().into()
}

/// The ticks with `from` ≤ tick < `to`, by the rule as it is written, one second after the other.
///
/// A fixed expression ticks when a wall time that matches has come or has been jumped over, for the first time. Any other ticks
/// whenever the wall clock matches.
pub fn ticks_by_the_second(expression: &Expression, zone: &TimeZone, from: i64, to: i64) -> Vec<i64> {
    let mut ticks = Vec::new();
    // Wall times up to this one have passed.
    let mut passed = None;
    for at in from - LEAD..to {
        let wall = at + offset(zone, at);
        let due = if expression.is_fixed() {
            let first = passed.map_or(wall, |passed| passed + 1);
            passed = Some(wall.max(first - 1));
            (first..=wall).any(|wall| expression.matches(wall))
        } else {
            expression.matches(wall)
        };
        if due && at >= from {
            ticks.push(at);
        }
    }
    ticks
}

/// Real seconds of one offset: `from` ≤ second < `to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stretch {
    from: i64,
    to: i64,
    offset: i64,
}

/// A stretch of a zone's real time, cut where the offset changes.
#[derive(Debug)]
pub struct Line {
    /// The window that ticks are wanted of.
    pub from: i64,
    /// Its end, not part of it.
    pub to: i64,
    stretches: Vec<Stretch>,
}

/// Ticks of an expression, and what the rule for fixed ones did to them.
#[derive(Debug, Default)]
pub struct Found {
    /// In order, each once.
    pub ticks: Vec<i64>,
    /// Ticks at the end of a gap that jumped over what they stand for.
    pub moved: u64,
    /// Wall times that matched again after clocks had been set back, and were no ticks.
    pub dropped: u64,
}

impl Line {
    /// The seconds between two looks at a zone. The offset is taken as constant when both see the same: a test makes sure that no zone
    /// changes its offset twice a day. Between two that differ, looks are taken more closely, and then at each second.
    const LOOKS: [i64; 4] = [43_200, 3600, 60, 1];

    /// Looks at `from..to`, cut to what lies in the years 1970 to 2100 anywhere on Earth.
    pub fn survey(zone: &TimeZone, from: i64, to: i64) -> Self {
        let (from, to) = (from.clamp(FIRST, LAST), to.clamp(FIRST, LAST + 1));
        let begin = from - LEAD;
        let mut stretches = vec![Stretch {
            from: begin,
            to: begin,
            offset: offset(zone, begin),
        }];
        look(zone, to, &Self::LOOKS, &mut stretches);
        Self { from, to, stretches }
    }

    /// The instants at which clocks were set forward.
    pub fn gaps(&self) -> impl Iterator<Item = i64> {
        self.changes(|before, after| before < after)
    }

    /// The instants at which clocks were set back.
    pub fn folds(&self) -> impl Iterator<Item = i64> {
        self.changes(|before, after| before > after)
    }

    fn changes(&self, kind: fn(i64, i64) -> bool) -> impl Iterator<Item = i64> {
        let pairs = self.stretches.windows(2);
        pairs
            .filter(move |pair| kind(pair[0].offset, pair[1].offset))
            .map(|pair| pair[1].from)
            .filter(|at| (self.from..self.to).contains(at))
    }

    /// What [`ticks_by_the_second`] finds in the window, skipping seconds that cannot matter: within a stretch the wall clock runs on
    /// steadily, so a day, an hour or a minute that does not match is left out as a whole.
    pub fn ticks(&self, expression: &Expression) -> Found {
        let mut found = Found::default();
        let mut passed = None;
        for Stretch { from, to, offset } in &self.stretches {
            let (first, end) = (from + offset, to + offset);
            if !expression.is_fixed() {
                expression.walk(first, end, |wall| found.ticks.push(wall - offset));
                continue;
            }
            let unseen = passed.map_or(first, |passed| passed + 1);
            let mut jumped = false;
            expression.walk(unseen, first, |_| jumped = true);
            if jumped {
                found.ticks.push(*from);
                found.moved += u64::from(*from >= self.from);
            }
            if *from >= self.from {
                expression.walk(first, end.min(unseen), |_| found.dropped += 1);
            }
            expression.walk(first.max(unseen), end, |wall| {
                if !(jumped && wall == first) {
                    found.ticks.push(wall - offset);
                }
            });
            passed = Some(end.max(unseen) - 1);
        }
        // Of a change at the very end, the tick is no longer in the window.
        found.ticks.retain(|tick| (self.from..self.to).contains(tick));
        found
    }
}

/// Goes on from the last stretch to `to`, with the first of `steps` from look to look.
fn look(zone: &TimeZone, to: i64, steps: &[i64], stretches: &mut Vec<Stretch>) {
    let [step, finer @ ..] = steps else {
        return;
    };
    while let Some(stretch) = stretches.last_mut()
        && stretch.to < to
    {
        let next = (stretch.to + step).min(to);
        let offset = offset(zone, next);
        if offset == stretch.offset {
            stretch.to = next;
        } else if *step > 1 {
            look(zone, next, finer, stretches);
        } else {
            stretch.to = next;
            stretches.push(Stretch {
                from: next,
                to: next,
                offset,
            });
        }
    }
}

impl Expression {
    /// Calls `hit` with every matching wall second of `from..end`, in order.
    fn walk(&self, from: i64, end: i64, mut hit: impl FnMut(i64)) {
        let mut wall = from;
        while wall < end {
            let midnight = wall - wall.rem_euclid(DAY) + DAY;
            if !self.matches_date(date(wall)) {
                wall = midnight;
                continue;
            }
            let stop = end.min(midnight);
            while wall < stop {
                let (hour, minute, second) = clock(wall);
                if !self.matches_hour(hour) {
                    wall += 3600 - wall.rem_euclid(3600);
                } else if !self.matches_minute(minute) {
                    wall += 60 - wall.rem_euclid(60);
                } else {
                    for matches in &self.seconds()[second..] {
                        if wall < stop && *matches {
                            hit(wall);
                        }
                        wall += 1;
                    }
                }
            }
        }
    }
}

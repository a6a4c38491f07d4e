//! From the wall clock of a zone to instants: gaps, folds, and what a schedule makes of them.
//!
//! The calendar is searched on wall-clock seconds only; this page says which instant a wall-clock second is. A schedule without a `*` in
//! second, minute and hour names times of the day: such a time fires once where the clock shows it twice, at the first passing,
//! and at the gap's end where the clock leaves it out. Every other schedule fires whenever the clock matches, as real time passes.
//!
//! The rule is cronie's (`cron.c`, its handling of clock changes), but has no exception for long gaps.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, Offset, TimeZone};

use super::calendar::Calendar;

/// Before and after every tick in any zone: the calendar knows the years 1970 to 2100, and no offset is longer than two days.
const FIRST: i64 = -2 * 86_400;
/// See [`FIRST`].
const LAST: i64 = 4_133_980_800 + 2 * 86_400;

/// A calendar on the wall clock of a zone. Instants are whole seconds since the epoch.
#[derive(Clone, Copy)]
pub(super) struct Zoned<'a> {
    pub(super) calendar: &'a Calendar,
    pub(super) tz: &'a TimeZone,
}

/// A change of the offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Change {
    /// The first instant of the new offset.
    pub(super) at: i64,
    pub(super) before: i64,
    pub(super) after: i64,
}

impl Change {
    /// What the clock would have shown at this instant, had it not been changed.
    pub(super) fn wall_before(self) -> i64 {
        self.at + self.before
    }

    pub(super) fn wall_after(self) -> i64 {
        self.at + self.after
    }
}

impl Zoned<'_> {
    /// The first tick after `after`.
    pub(super) fn next(self, after: i64) -> Option<i64> {
        let after = after.clamp(FIRST, LAST);
        if self.calendar.cron().is_wild() {
            self.next_in_real_time(after)
        } else {
            self.next_time_of_day(after)
        }
    }

    /// The last tick at or before `at`.
    pub(super) fn prev(self, at: i64) -> Option<i64> {
        let at = at.clamp(FIRST, LAST);
        if self.calendar.cron().is_wild() {
            self.prev_in_real_time(at)
        } else {
            self.prev_time_of_day(at)
        }
    }

    /// The number of ticks after `after` and not after `until`.
    pub(super) fn count(self, after: i64, until: i64) -> u64 {
        let (after, until) = (after.clamp(FIRST, LAST), until.clamp(FIRST, LAST));
        let wild = self.calendar.cron().is_wild();
        let mut count = 0;
        let (mut from, mut offset, mut known) = (after, self.offset(after), after);
        // How far the clock had come: a time of the day that it shows again counts once.
        let mut shown = match self.change_at_or_before(after) {
            Some(change) if !wild => change.wall_before() - 1,
            _ => i64::MIN,
        };
        while from < until {
            let change = self.change_after(known, offset);
            let end = change.map_or(until, |change| until.min(change.at - 1));
            let (first, last) = ((from + offset).max(shown), end + offset);
            if first < last {
                count += self.calendar.count(first, last);
            }
            let Some(change) = change.filter(|change| change.at <= until) else {
                break;
            };
            if !wild {
                count += u64::from(self.falls_into(change) && !self.matches(change.wall_after()));
                shown = shown.max(change.wall_before() - 1);
            }
            (from, offset, known) = (change.at - 1, change.after, change.at);
        }
        count
    }

    fn next_in_real_time(self, after: i64) -> Option<i64> {
        // A tick may come after `from`; the offset holds at `known`.
        let (mut from, mut offset, mut known) = (after, self.offset(after), after);
        while from < LAST {
            let tick = self.calendar.next(from + offset).map(|wall| wall - offset);
            let change = self.change_after(known, offset);
            match (tick, change) {
                (Some(tick), Some(change)) if tick < change.at => return Some(tick),
                (tick, None) => return tick,
                // It may be near the calendar's end in one offset and not in the next.
                (_, Some(change)) => (from, offset, known) = (change.at - 1, change.after, change.at),
            }
        }
        None
    }

    fn prev_in_real_time(self, at: i64) -> Option<i64> {
        let (mut until, mut offset) = (at, self.offset(at));
        while until > FIRST {
            let tick = self.calendar.prev(until + offset).map(|wall| wall - offset);
            let change = self.change_at_or_before(until);
            match (tick, change) {
                (Some(tick), Some(change)) if tick >= change.at => return Some(tick),
                (tick, None) => return tick,
                (_, Some(change)) => (until, offset) = (change.at - 1, change.before),
            }
        }
        None
    }

    fn next_time_of_day(self, after: i64) -> Option<i64> {
        let mut wall = after + self.offset(after);
        loop {
            wall = self.calendar.next(wall)?;
            let tick = self.instant(wall);
            if tick > after {
                return Some(tick);
            }
            // The clock shows this time again: everything up to the change has fired already.
            if let Some(change) = self.change_at_or_before(after) {
                wall = wall.max(change.wall_before() - 1);
            }
        }
    }

    fn prev_time_of_day(self, at: i64) -> Option<i64> {
        let mut wall = at + self.offset(at);
        // While the clock shows times again, later ones have been shown.
        if let Some(change) = self.change_at_or_before(at) {
            wall = wall.max(change.wall_before() - 1);
        }
        self.calendar.prev(wall).map(|wall| self.instant(wall))
    }

    /// The instant of a time of the day: the first at which the clock shows it, or the end of the gap in which it does not.
    fn instant(self, wall: i64) -> i64 {
        match self.offsets(wall) {
            AmbiguousOffset::Unambiguous { offset } => wall - seconds(offset),
            AmbiguousOffset::Fold { before, .. } => wall - seconds(before),
            AmbiguousOffset::Gap { before, .. } => {
                let within = wall - seconds(before);
                self.change_at_or_before(within).map_or(within, |change| change.at)
            }
        }
    }

    /// Whether a time of the day that the schedule names is left out by the clock at this change.
    pub(super) fn falls_into(self, change: Change) -> bool {
        self.left_out(change).is_some()
    }

    /// The first time of the day that the schedule names and the clock leaves out at this change.
    pub(super) fn left_out(self, change: Change) -> Option<i64> {
        let first = self.calendar.next(change.wall_before() - 1)?;
        (first < change.wall_after()).then_some(first)
    }

    fn matches(self, wall: i64) -> bool {
        self.calendar.prev(wall) == Some(wall)
    }

    /// Which offsets a wall clock may have had when it showed this.
    pub(super) fn offsets(self, wall: i64) -> AmbiguousOffset {
        self.tz.to_ambiguous_timestamp(date_time(wall)).offset()
    }

    pub(super) fn offset(self, at: i64) -> i64 {
        seconds(self.tz.to_offset(timestamp(at)))
    }

    /// The first change after `at`, where the offset is `before`.
    fn change_after(self, at: i64, before: i64) -> Option<Change> {
        let next = self.tz.following(timestamp(at)).next()?;
        Some(Change {
            at: next.timestamp().as_second(),
            before,
            after: seconds(next.offset()),
        })
    }

    /// The last change at or before `at`.
    pub(super) fn change_at_or_before(self, at: i64) -> Option<Change> {
        let last = self.tz.preceding(timestamp(at + 1)).next()?;
        let at = last.timestamp().as_second();
        Some(Change {
            at,
            before: self.offset(at - 1),
            after: seconds(last.offset()),
        })
    }
}

fn seconds(offset: Offset) -> i64 {
    offset.seconds().into()
}

fn timestamp(at: i64) -> Timestamp {
    // The bounds of the search are well inside of what can be represented.
    Timestamp::from_second(at).unwrap_or_default()
}

/// What a clock shows, as a date and a time.
pub(super) fn date_time(wall: i64) -> DateTime {
    Offset::UTC.to_datetime(timestamp(wall))
}

#[cfg(test)]
mod tests;

//! The next ticks as a person wants to see them: on the wall clock, with a word where clocks change.

use std::fmt;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, Offset};

use super::blackout::Blackouts;
use super::zone::Zone;
use super::zoned::{Change, Zoned, date_time};

/// A tick to come, or one of the past, as [`Schedule::preview`](super::Schedule::preview) shows it.
///
/// `Display` writes one line: `2026-03-29 03:00:00 +02 Europe/Berlin: 02:30:00 does not exist, the clock goes from 02:00:00 to 03:00:00`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Planned {
    /// The tick.
    pub at: Timestamp,
    /// What the clock shows then in the schedule's zone; in UTC for a period.
    pub local: DateTime,
    /// The zone's offset from UTC then.
    pub offset: Offset,
    /// The name of the zone.
    pub zone: &'static str,
    /// What is unusual about it.
    pub note: Option<Note>,
}

/// What a change of clocks makes of a tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Note {
    /// The clock leaves out the time of the day that the schedule names, or several of them; the one tick for all is the end of the gap.
    Gap {
        /// The first time that the schedule names there.
        named: DateTime,
        /// The last; the same when there is one.
        last: DateTime,
        /// What the clock would show at the tick, had it not been set forward.
        from: DateTime,
        /// What it shows.
        to: DateTime,
    },
    /// The clock has just been set forward over times at which the schedule would fire; they do not exist and are no ticks.
    LeftOut {
        /// The first of them.
        first: DateTime,
        /// From where the clock was set forward.
        from: DateTime,
        /// Where the clock goes on.
        to: DateTime,
    },
    /// The clock shows this time of the day twice; the tick is the first passing and there is no second.
    FirstOfTwo {
        /// When it is shown again.
        again: Timestamp,
    },
    /// A blackout calendar of the job covers the tick, and it does not run.
    Blackout {
        /// When the span ends that covers it.
        until: Timestamp,
    },
    /// The clock shows this time twice, and the schedule follows real time: both are ticks.
    Twice {
        /// Whether this is the second.
        second: bool,
    },
}

impl Planned {
    /// With a note where a calendar covers it: whatever else is unusual about it, it does not run.
    pub(crate) fn under(mut self, blackouts: &Blackouts) -> Self {
        if let Some((_, until)) = blackouts.span_at(self.at) {
            self.note = Some(Note::Blackout { until });
        }
        self
    }
}

impl fmt::Display for Planned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (date, time) = (self.local.date(), self.local.time());
        write!(f, "{date} {time} {} {}", self.offset, self.zone)?;
        match self.note {
            Some(note) => write!(f, ": {note}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gap { named, last, from, to } => {
                let with_date = from.date() != to.date();
                let shown = |at| Shown { at, with_date };
                let (named, last, from, to) = (shown(named), shown(last), shown(from), shown(to));
                if named == last {
                    write!(f, "{named} does not exist, the clock goes from {from} to {to}")
                } else {
                    write!(
                        f,
                        "{named} and later times up to {last} do not exist and are this one tick, the clock goes from {from} to {to}"
                    )
                }
            }
            Self::LeftOut { from, to, .. } => {
                let with_date = from.date() != to.date();
                let (from, to) = (Shown { at: from, with_date }, Shown { at: to, with_date });
                write!(
                    f,
                    "times from {from} to before {to} do not exist and are no ticks, the clock goes from {from} to {to}"
                )
            }
            Self::FirstOfTwo { again } => write!(f, "the clock shows this again at {again}, which is no tick"),
            Self::Blackout { until } => write!(f, "a blackout calendar covers it until {until}, and it does not run"),
            Self::Twice { second: false } => f.write_str("the clock shows this twice, the first time"),
            Self::Twice { second: true } => f.write_str("the clock shows this twice, the second time"),
        }
    }
}

/// What a clock shows; with its date where that is of interest.
#[derive(PartialEq)]
struct Shown<'a> {
    at: &'a DateTime,
    with_date: bool,
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.with_date {
            write!(f, "{} ", self.at.date())?;
        }
        write!(f, "{}", self.at.time())
    }
}

impl Planned {
    /// Of a schedule on the clock of a zone. `before` is the tick before it.
    pub(super) fn zoned(search: Zoned<'_>, zone: &Zone, at: Timestamp, before: Option<Timestamp>) -> Self {
        let second = at.as_second();
        let wall = second + search.offset(second);
        Self {
            at,
            local: date_time(wall),
            offset: zone.tz().to_offset(at),
            zone: zone.name(),
            note: note(search, second, wall, before.map(Timestamp::as_second)),
        }
    }

    /// Of a period.
    pub(super) fn utc(at: Timestamp) -> Self {
        Self {
            at,
            local: Offset::UTC.to_datetime(at),
            offset: Offset::UTC,
            zone: "UTC",
            note: None,
        }
    }
}

fn note(search: Zoned<'_>, at: i64, wall: i64, before: Option<i64>) -> Option<Note> {
    let last = search.change_at_or_before(at);
    let wild = search.calendar.cron().is_wild();
    // The change lies between the tick before this one and this one.
    let fresh = |change: &Change| before.is_some_and(|before| before < change.at);
    if let Some(change) = last.filter(|change| change.after > change.before) {
        let left_out = search.left_out(change);
        match left_out {
            Some(named) if !wild && at == change.at => {
                let last = search.calendar.prev(change.wall_after() - 1).unwrap_or(named);
                return Some(Note::Gap {
                    named: date_time(named),
                    last: date_time(last),
                    from: date_time(change.wall_before()),
                    to: date_time(change.wall_after()),
                });
            }
            Some(first) if wild && fresh(&change) => {
                return Some(Note::LeftOut {
                    first: date_time(first),
                    from: date_time(change.wall_before()),
                    to: date_time(change.wall_after()),
                });
            }
            _ => {}
        }
    }
    let AmbiguousOffset::Fold { before: first, after } = search.offsets(wall) else {
        return None;
    };
    let again = wall - i64::from(after.seconds());
    Some(if wild {
        Note::Twice {
            second: wall - i64::from(first.seconds()) != at,
        }
    } else {
        Note::FirstOfTwo {
            again: Timestamp::from_second(again).ok()?,
        }
    })
}

#[cfg(test)]
mod tests {
    use crate::schedule::{Schedule, Zone};

    fn lines(expr: &str, zone: &str, after: &str, count: usize) -> Vec<String> {
        let schedule = Schedule::cron(expr).unwrap().in_zone(Zone::new(zone).unwrap()).unwrap();
        let planned = schedule.preview(after.parse().unwrap(), count);
        planned.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_gap_says_which_time_is_missing() {
        assert_eq!(
            lines("30 2 * * *", "Europe/Berlin", "2026-03-28T00:00Z", 3),
            [
                "2026-03-28 02:30:00 +01 Europe/Berlin",
                "2026-03-29 03:00:00 +02 Europe/Berlin: 02:30:00 does not exist, the clock goes from 02:00:00 to 03:00:00",
                "2026-03-30 02:30:00 +02 Europe/Berlin",
            ]
        );
        assert_eq!(
            lines("*/30 * * * *", "Europe/Berlin", "2026-03-29T00:10Z", 3),
            [
                "2026-03-29 01:30:00 +01 Europe/Berlin",
                "2026-03-29 03:00:00 +02 Europe/Berlin: times from 02:00:00 to before 03:00:00 do not exist and are no ticks, \
                 the clock goes from 02:00:00 to 03:00:00",
                "2026-03-29 03:30:00 +02 Europe/Berlin",
            ]
        );
        // All that is left out is one tick, and the time at the gap's end is the same one.
        for expr in ["0,30 2 * * *", "0,30 2,3 * * *"] {
            assert_eq!(
                lines(expr, "Europe/Berlin", "2026-03-29T00:00Z", 1),
                [
                    "2026-03-29 03:00:00 +02 Europe/Berlin: 02:00:00 and later times up to 02:30:00 do not exist and are this one \
                     tick, the clock goes from 02:00:00 to 03:00:00"
                ]
            );
        }
        assert_eq!(
            lines("0 */6 * * *", "Pacific/Apia", "2011-12-30T09:00Z", 1),
            [
                "2011-12-31 00:00:00 +14 Pacific/Apia: times from 2011-12-30 00:00:00 to before 2011-12-31 00:00:00 do not exist and \
                 are no ticks, the clock goes from 2011-12-30 00:00:00 to 2011-12-31 00:00:00"
            ]
        );
        // A tick at the gap's end that names no time in it is as any other.
        assert_eq!(
            lines("0 3 * * *", "Europe/Berlin", "2026-03-29T00:00Z", 1),
            ["2026-03-29 03:00:00 +02 Europe/Berlin"]
        );
        assert_eq!(
            lines("0 12 * * *", "Pacific/Apia", "2011-12-30T00:00Z", 2),
            [
                "2011-12-31 00:00:00 +14 Pacific/Apia: 2011-12-30 12:00:00 does not exist, \
                 the clock goes from 2011-12-30 00:00:00 to 2011-12-31 00:00:00",
                "2011-12-31 12:00:00 +14 Pacific/Apia",
            ]
        );
        // Long after the change nothing is said of it.
        assert_eq!(
            lines("0 */12 * * *", "Europe/Berlin", "2026-03-29T12:00Z", 1),
            ["2026-03-30 00:00:00 +02 Europe/Berlin"]
        );
    }

    #[test]
    fn a_fold_says_what_becomes_of_the_second_passing() {
        assert_eq!(
            lines("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00Z", 2),
            [
                "2026-10-25 02:30:00 +02 Europe/Berlin: the clock shows this again at 2026-10-25T01:30:00Z, which is no tick",
                "2026-10-26 02:30:00 +01 Europe/Berlin",
            ]
        );
        assert_eq!(
            lines("*/30 * * * *", "Europe/Berlin", "2026-10-24T23:30Z", 6),
            [
                "2026-10-25 02:00:00 +02 Europe/Berlin: the clock shows this twice, the first time",
                "2026-10-25 02:30:00 +02 Europe/Berlin: the clock shows this twice, the first time",
                "2026-10-25 02:00:00 +01 Europe/Berlin: the clock shows this twice, the second time",
                "2026-10-25 02:30:00 +01 Europe/Berlin: the clock shows this twice, the second time",
                "2026-10-25 03:00:00 +01 Europe/Berlin",
                "2026-10-25 03:30:00 +01 Europe/Berlin",
            ]
        );
    }

    #[test]
    fn periods_and_utc_have_no_notes() {
        let every = Schedule::every("36h").unwrap();
        let planned = every.preview("2026-03-28T00:00Z".parse().unwrap(), 2);
        assert_eq!(planned[0].to_string(), "2026-03-29 00:00:00 +00 UTC");
        assert!(planned.iter().all(|planned| planned.note.is_none()));
        assert_eq!(
            lines("@daily", "UTC", "2026-03-28T00:00Z", 2)[1],
            "2026-03-30 00:00:00 +00 UTC"
        );
        assert!(lines("0 0 0 1 1 ? 1999", "UTC", "2026-03-28T00:00Z", 2).is_empty());
    }
}

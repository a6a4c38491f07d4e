//! The search for the instants of a cron expression, on wall-clock seconds read as UTC.
//!
//! The search is the `cron` crate's, which is right in UTC; its zoned iteration goes back in time when clocks are set back and is never
//! used. It knows the years 1970 to 2100.

use chrono::{DateTime, Datelike, NaiveDate, NaiveTime, Utc};
use std::fmt::Write as _;

use super::gate::{Cron, Date, Days, FIRST_YEAR, LAST_YEAR};

const DAY: i64 = 86_400;
/// 2100-12-31T23:59:59, the last second that the search knows.
const LAST: i64 = 4_133_980_799;

/// A cron expression, ready to be searched. Times are seconds since 1970-01-01T00:00:00 of some wall clock.
#[derive(Clone, Debug)]
pub(super) struct Calendar {
    cron: Cron,
    /// Together these contain every tick; two when either of two day fields may match, which the crate cannot say.
    /// `L`, `W` and `#` are wider in them than in `cron`, which has the last word.
    hulls: Vec<cron::Schedule>,
}

impl Calendar {
    pub(super) fn new(cron: Cron) -> Self {
        let hulls = if cron.days() == Days::Or {
            vec![
                hull(&cron, cron.day_hull(), u8::MAX),
                hull(&cron, u32::MAX, cron.weekday_hull()),
            ]
        } else {
            vec![hull(&cron, cron.day_hull(), cron.weekday_hull())]
        };
        Self { cron, hulls }
    }

    pub(super) fn cron(&self) -> &Cron {
        &self.cron
    }

    /// The first tick after `after`.
    pub(super) fn next(&self, after: i64) -> Option<i64> {
        let first = |hull| self.first(hull, after);
        self.hulls.iter().filter_map(first).min()
    }

    /// The last tick at or before `at`.
    pub(super) fn prev(&self, at: i64) -> Option<i64> {
        let last = |hull| self.last(hull, at);
        self.hulls.iter().filter_map(last).max()
    }

    /// The number of ticks after `after` and not after `until`, from the bit sets alone.
    pub(super) fn count(&self, after: i64, until: i64) -> u64 {
        let first = after.max(-1) + 1;
        let last = until.min(LAST);
        if first > last {
            return 0;
        }
        let (first_day, last_day) = (first.div_euclid(DAY), last.div_euclid(DAY));
        let whole = self.ticks_before(DAY);
        let mut count = 0;
        let Some(first_date) = date(first) else {
            return 0;
        };
        for (day, date) in (first_day..=last_day).zip(first_date.iter_days()) {
            if self.matches(date) {
                count += whole;
                if day == first_day {
                    count -= self.ticks_before(first.rem_euclid(DAY));
                }
                if day == last_day {
                    count -= whole - self.ticks_before(last.rem_euclid(DAY) + 1);
                }
            }
        }
        count
    }

    fn first(&self, hull: &cron::Schedule, after: i64) -> Option<i64> {
        // The crate overflows near the ends of chrono's time, far outside of these bounds.
        let mut after = after.max(-1);
        while after < LAST {
            let from = DateTime::<Utc>::from_timestamp(after, 0)?;
            let tick = hull.after(&from).next()?.timestamp();
            if self.matches(date(tick)?) {
                return Some(tick);
            }
            after = tick - tick.rem_euclid(DAY) + DAY - 1;
        }
        None
    }

    fn last(&self, hull: &cron::Schedule, at: i64) -> Option<i64> {
        let mut before = self.in_listed_year(at.min(LAST) + 1)?;
        while before > 0 {
            let from = DateTime::<Utc>::from_timestamp(before, 0)?;
            let tick = hull.after(&from).next_back()?.timestamp();
            if self.matches(date(tick)?) {
                return Some(tick);
            }
            before = tick - tick.rem_euclid(DAY);
        }
        None
    }

    fn matches(&self, date: NaiveDate) -> bool {
        let day = Date {
            month: date.month(),
            day: date.day(),
            last: u32::from(date.num_days_in_month()),
            weekday: date.weekday().num_days_from_sunday(),
        };
        u32::try_from(date.year()).is_ok_and(|year| self.cron.has_year(year)) && self.cron.matches(day)
    }

    /// `before`, or the end of the last listed year when the second before it lies in one that is not listed: asked there, the crate
    /// takes that second's month and day for the last ones of the listed year.
    fn in_listed_year(&self, before: i64) -> Option<i64> {
        let year = u32::try_from(date(before - 1)?.year()).ok()?;
        let listed = (FIRST_YEAR..=year).rev().find(|year| self.cron.has_year(*year))?;
        if listed == year {
            return Some(before);
        }
        let end = NaiveDate::from_ymd_opt(i32::try_from(listed).ok()? + 1, 1, 1)?;
        Some(end.and_time(NaiveTime::MIN).and_utc().timestamp())
    }

    /// How many ticks of a matching day lie before its second `end`.
    fn ticks_before(&self, end: i64) -> u64 {
        let (seconds, minutes, hours) = self.cron.time();
        let (second, minute, hour) = (end % 60, end / 60 % 60, end / 3600);
        let per_minute = u64::from(seconds.count_ones());
        let per_hour = per_minute * u64::from(minutes.count_ones());
        let hours = u64::from(hours);
        let mut count = below(hours, hour) * per_hour;
        if hours >> hour & 1 == 1 {
            count += below(minutes, minute) * per_minute;
            if minutes >> minute & 1 == 1 {
                count += below(seconds, second);
            }
        }
        count
    }
}

/// The number of bits below `end`.
fn below(bits: u64, end: i64) -> u64 {
    u64::from((bits & ((1 << end) - 1)).count_ones())
}

fn date(wall: i64) -> Option<NaiveDate> {
    Some(DateTime::<Utc>::from_timestamp(wall, 0)?.date_naive())
}

/// Renders bit sets in the crate's dialect: plain lists of numbers, Sunday = 1.
fn hull(cron: &Cron, days: u32, weekdays: u8) -> cron::Schedule {
    let (second, minute, hour) = cron.time();
    let years = (FIRST_YEAR..=LAST_YEAR).filter(|year| cron.has_year(*year));
    let mut text = String::new();
    list(&mut text, bits(second, 0..=59), 60);
    list(&mut text, bits(minute, 0..=59), 60);
    list(&mut text, bits(hour.into(), 0..=23), 24);
    list(&mut text, bits(days.into(), 1..=31), 31);
    list(&mut text, bits(cron.months().into(), 1..=12), 12);
    list(&mut text, bits(weekdays.into(), 0..=6).map(|day| day + 1), 7);
    if !cron.every_year() {
        list(&mut text, years, usize::MAX);
    }
    text.trim_end()
        .parse()
        .expect("lists of numbers in range are in every dialect")
}

fn bits(set: u64, values: std::ops::RangeInclusive<u32>) -> impl Iterator<Item = u32> {
    values.filter(move |value| set >> value & 1 == 1)
}

/// Appends `values`: as `*` when there are `all` of them, which the crate keeps as nothing at all, as a range with a step when they
/// are one, which it reads sooner, or else one by one.
fn list(text: &mut String, values: impl Iterator<Item = u32>, all: usize) {
    let values: Vec<_> = values.collect();
    // Writing to a string does not fail.
    let _ = match values[..] {
        _ if values.len() == all => write!(text, "* "),
        [first, second, .., last] if values.windows(2).all(|pair| pair[1] - pair[0] == second - first) => {
            write!(text, "{first}-{last}/{} ", second - first)
        }
        _ => {
            for (at, value) in values.iter().enumerate() {
                let comma = if at == 0 { "" } else { "," };
                let _ = write!(text, "{comma}{value}");
            }
            write!(text, " ")
        }
    };
}

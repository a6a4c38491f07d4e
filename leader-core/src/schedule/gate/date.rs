//! Which dates an expression matches, and whether there are any.

use super::error::{Apart, Kind};
use super::unit::{FIRST_YEAR, LAST_YEAR};
use super::{Cron, Days, EVERY_YEAR};

/// 1970 began on a Thursday.
const FIRST_WEEKDAY: u32 = 4;

/// One date, as far as an expression can tell dates of a year apart.
#[derive(Clone, Copy, Debug)]
pub(in crate::schedule) struct Date {
    pub(in crate::schedule) month: u32,
    pub(in crate::schedule) day: u32,
    /// The last day of the month.
    pub(in crate::schedule) last: u32,
    /// 0 is Sunday.
    pub(in crate::schedule) weekday: u32,
}

impl Cron {
    /// Every day of the month on which the field can match in some month.
    pub(in crate::schedule) const fn day_hull(&self) -> u32 {
        let mut days = self.day_of_month;
        if self.last_day {
            days |= 0b1111 << 28;
        }
        if self.last_workday {
            days |= 0b11_1111 << 26;
        }
        // A weekend moves the day by one, at the ends of a month by two.
        let near = self.nearest;
        days | ((near | near << 1 | near << 2 | near >> 1 | near >> 2) & !1)
    }

    /// Every weekday on which the field can match in some week.
    pub(in crate::schedule) const fn weekday_hull(&self) -> u8 {
        self.day_of_week | self.last_weekdays | self.nth_weekdays()
    }

    pub(super) const fn nth_weekdays(&self) -> u8 {
        let nth = self.nth;
        nth[0] | nth[1] | nth[2] | nth[3] | nth[4]
    }

    /// Whether month and day fields match; the year is not looked at.
    pub(in crate::schedule) const fn matches(&self, day: Date) -> bool {
        if self.month >> day.month & 1 == 0 {
            return false;
        }
        match self.days() {
            Days::Or => self.matches_day_of_month(day) || self.matches_day_of_week(day),
            // A star has all its bits.
            Days::And | Days::Unsaid => self.matches_day_of_month(day) && self.matches_day_of_week(day),
        }
    }

    const fn matches_day_of_month(&self, at: Date) -> bool {
        let Date { day, last, weekday, .. } = at;
        let workday = weekday >= 1 && weekday <= 5;
        let left = last - day;
        self.day_of_month >> day & 1 == 1
            || self.last_day && left == 0
            || self.last_workday && workday && (left == 0 || weekday == 5 && left <= 2)
            || self.nearest != 0 && workday && self.is_nearest(day, last, weekday)
    }

    /// Whether the workday `day` is the nearest one to a day named with `W`.
    const fn is_nearest(&self, day: u32, last: u32, weekday: u32) -> bool {
        let named = self.nearest;
        let after_weekend = weekday == 1
            // The day before is a Sunday; on the 3rd, the first of the month was a Saturday.
            && (day > 1 && named >> (day - 1) & 1 == 1 || day == 3 && named >> 1 & 1 == 1);
        let before_weekend = weekday == 5
            // The day after is a Saturday; the Sunday after it moves back only when it ends the month.
            && (day < last && named >> (day + 1) & 1 == 1
                || day + 2 == last && named >> last & 1 == 1);
        named >> day & 1 == 1 || after_weekend || before_weekend
    }

    const fn matches_day_of_week(&self, at: Date) -> bool {
        let Date { day, last, weekday, .. } = at;
        (self.day_of_week | self.nth[(day as usize - 1) / 7]) >> weekday & 1 == 1
            || last - day < 7 && self.last_weekdays >> weekday & 1 == 1
    }

    /// Whether some day of some allowed year matches: there are only 14 kinds of years.
    pub(super) const fn exists(&self) -> bool {
        let mut seen: u16 = 0;
        let mut year = FIRST_YEAR;
        let mut first = FIRST_WEEKDAY;
        while year <= LAST_YEAR {
            let leap = is_leap(year);
            let kind = 1 << (first * 2 + leap as u32);
            if self.has_year(year) && seen & kind == 0 {
                seen |= kind;
                if self.exists_in(leap, first) {
                    return true;
                }
            }
            first = (first + 1 + leap as u32) % 7;
            year += 1;
        }
        false
    }

    /// Why no day matches.
    pub(super) const fn why_never(&self) -> Kind {
        let any_year = Self {
            year: EVERY_YEAR,
            ..*self
        };
        if any_year.exists() {
            return Kind::NoSuchYear(any_year.year_after(self));
        }
        let any_weekday = Self {
            day_of_week_star: true,
            day_of_week: 0b111_1111,
            ..any_year
        };
        if !any_weekday.exists() {
            return Kind::NoSuchDay;
        }
        // A plain weekday falls on every day of every month in some year, but for those that never are one.
        let workdays_only = self.day_of_month == 0 && !self.last_day;
        if workdays_only && self.weekday_hull() & 0b011_1110 == 0 {
            return Kind::NeverMeet(Apart::Workday);
        }
        let (mut nth, mut number) = (0, 1);
        while nth < self.nth.len() {
            if self.nth[nth] != 0 {
                return Kind::NeverMeet(Apart::Nth(number, self.nth[nth].trailing_zeros()));
            }
            nth += 1;
            number += 1;
        }
        Kind::NeverMeet(Apart::Last(self.last_weekdays.trailing_zeros() % 7))
    }

    /// The first year with a match after the first that `listed` allows, else the first of all.
    const fn year_after(&self, listed: &Self) -> u32 {
        let mut from = FIRST_YEAR;
        while from < LAST_YEAR && !listed.has_year(from) {
            from += 1;
        }
        let (mut year, mut weekday, mut first_of_all) = (FIRST_YEAR, FIRST_WEEKDAY, 0);
        while year <= LAST_YEAR {
            let leap = is_leap(year);
            if (year > from || first_of_all == 0) && self.exists_in(leap, weekday) {
                if year > from {
                    return year;
                }
                first_of_all = year;
            }
            weekday = (weekday + 1 + leap as u32) % 7;
            year += 1;
        }
        first_of_all
    }

    const fn exists_in(&self, leap: bool, first: u32) -> bool {
        let mut weekday = first;
        let mut month = 1;
        while month <= 12 {
            let last = month_length(month, leap);
            let mut day = 1;
            while day <= last && self.month >> month & 1 == 1 {
                let at = Date {
                    month,
                    day,
                    last,
                    weekday: (weekday + day - 1) % 7,
                };
                if self.matches(at) {
                    return true;
                }
                day += 1;
            }
            weekday = (weekday + last) % 7;
            month += 1;
        }
        false
    }
}

const fn is_leap(year: u32) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

const fn month_length(month: u32, leap: bool) -> u32 {
    match month {
        2 => 28 + leap as u32,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

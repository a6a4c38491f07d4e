//! The dates of the years 1970 to 2100, counted day by day.

use std::sync::OnceLock;

/// Seconds of a day.
pub const DAY: i64 = 86_400;

/// One day of the calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Date {
    pub year: u32,
    pub month: u32,
    pub day: u32,
    /// The last day of the month.
    pub last: u32,
    /// 0 is Sunday.
    pub weekday: u32,
}

/// The first date of the table, some days before 1970.
const BEGIN: Date = Date {
    year: 1969,
    month: 12,
    day: 22,
    last: 31,
    weekday: 1,
};
/// Its number, where 1970-01-01 is 0.
const BEGIN_NUMBER: i64 = -10;

impl Date {
    fn tomorrow(self) -> Self {
        let weekday = (self.weekday + 1) % 7;
        if self.day < self.last {
            return Self {
                day: self.day + 1,
                weekday,
                ..self
            };
        }
        let (year, month) = match self.month {
            12 => (self.year + 1, 1),
            month => (self.year, month + 1),
        };
        let last = match month {
            // Of the years of the table, 1900 and 2200 are far; 2000 was a leap year, 2100 is none.
            2 if year % 4 == 0 && year != 2100 => 29,
            2 => 28,
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        };
        Self {
            year,
            month,
            day: 1,
            last,
            weekday,
        }
    }
}

/// Every date from some days before 1970 to some days after 2100.
pub fn dates() -> &'static [Date] {
    static DATES: OnceLock<Vec<Date>> = OnceLock::new();
    DATES.get_or_init(|| {
        let mut dates = vec![BEGIN];
        let mut date = BEGIN;
        while (date.year, date.day) < (2101, 10) {
            date = date.tomorrow();
            dates.push(date);
        }
        dates
    })
}

/// The date of a wall-clock second; seconds count from 1970-01-01T00:00:00 on the wall clock.
pub fn date(wall: i64) -> Date {
    let index = wall.div_euclid(DAY) - BEGIN_NUMBER;
    dates()[usize::try_from(index).unwrap()]
}

/// The hour, minute and second of a wall-clock second.
pub fn clock(wall: i64) -> (usize, usize, usize) {
    let of_day = usize::try_from(wall.rem_euclid(DAY)).unwrap();
    (of_day / 3600, of_day / 60 % 60, of_day % 60)
}

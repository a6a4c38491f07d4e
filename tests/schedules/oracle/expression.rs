//! Reads expressions that are known to be well-formed, and says whether a wall-clock second matches.
//!
//! Written from crontab(5) and the documentation of `leader_core::Cron`.

use super::calendar::{Date, clock, date, dates};

/// How two restricted day fields combine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Days {
    Unsaid,
    Or,
    And,
}

/// An expression as plain tables.
#[derive(Clone, Debug)]
pub struct Expression {
    seconds: Vec<bool>,
    minutes: Vec<bool>,
    hours: Vec<bool>,
    days_of_month: Vec<DayOfMonth>,
    months: Vec<bool>,
    days_of_week: Vec<DayOfWeek>,
    /// From 1970.
    years: Vec<bool>,
    combine: Combine,
    fixed: bool,
}

#[derive(Clone, Copy, Debug)]
enum DayOfMonth {
    Plain(u32),
    Last,
    LastWorkday,
    NearestWorkday(u32),
}

/// 0 is Sunday.
#[derive(Clone, Copy, Debug)]
enum DayOfWeek {
    Plain(u32),
    Last(u32),
    Nth(u32, u32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Combine {
    /// A field that is exactly `*` or `?` matches every day and leaves the word to the other.
    Both,
    Either,
}

const MONTHS: &str = "JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC";
const WEEKDAYS: &str = "SUN MON TUE WED THU FRI SAT";

impl Expression {
    /// Reads `text`; a panic is a fault of the caller, who knows it to be well-formed.
    pub fn read(text: &str, days: Days) -> Self {
        let lower = text.to_lowercase();
        let text = match &*lower {
            "@hourly" => "0 * * * *",
            "@daily" | "@midnight" => "0 0 * * *",
            "@weekly" => "0 0 * * 0",
            "@monthly" => "0 0 1 * *",
            "@yearly" | "@annually" => "0 0 1 1 *",
            _ => text,
        };
        let upper = text.to_uppercase();
        let mut fields: Vec<&str> = upper.split_whitespace().collect();
        if fields.len() == 5 {
            fields.insert(0, "0");
        }
        if fields.len() == 6 {
            fields.push("*");
        }
        let [second, minute, hour, day_of_month, month, day_of_week, year] = fields[..] else {
            panic!("`{text}` has neither 5 nor 6 nor 7 fields");
        };
        let star = |field: &str| field == "*" || field == "?";
        let restricted = !star(day_of_month) && !star(day_of_week);
        Self {
            seconds: table(second, 0, 59, ""),
            minutes: table(minute, 0, 59, ""),
            hours: table(hour, 0, 23, ""),
            days_of_month: day_of_month.split(',').flat_map(read_day_of_month).collect(),
            months: table(month, 1, 12, MONTHS),
            days_of_week: day_of_week.split(',').flat_map(read_day_of_week).collect(),
            years: table(year, 1970, 2100, ""),
            combine: if restricted && days != Days::And {
                Combine::Either
            } else {
                Combine::Both
            },
            fixed: ![second, minute, hour].iter().any(|field| field.contains('*')),
        }
    }

    /// Without a `*` in second, minute and hour, an expression names times of the day.
    pub fn is_fixed(&self) -> bool {
        self.fixed
    }

    /// Whether any date of the years 1970 to 2100 matches.
    pub fn exists(&self) -> bool {
        dates().iter().any(|date| self.matches_date(*date))
    }

    /// Whether the wall clock's second `wall` matches.
    pub fn matches(&self, wall: i64) -> bool {
        let (hour, minute, second) = clock(wall);
        self.seconds[second] && self.matches_minute(minute) && self.matches_hour(hour) && self.matches_date(date(wall))
    }

    /// Whether each second of a minute matches.
    pub fn seconds(&self) -> &[bool] {
        &self.seconds
    }

    pub fn matches_minute(&self, minute: usize) -> bool {
        self.minutes[minute]
    }

    pub fn matches_hour(&self, hour: usize) -> bool {
        self.hours[hour]
    }

    pub fn matches_date(&self, date: Date) -> bool {
        let Some(year) = date.year.checked_sub(1970) else {
            return false;
        };
        let listed = |table: &[bool], index: u32| table.get(index as usize).copied().unwrap_or(false);
        if !listed(&self.years, year) || !listed(&self.months, date.month - 1) {
            return false;
        }
        let mut of_month = self.days_of_month.iter().map(|day| day.matches(date));
        let mut of_week = self.days_of_week.iter().map(|day| day.matches(date));
        match self.combine {
            Combine::Either => of_month.any(|yes| yes) || of_week.any(|yes| yes),
            Combine::Both => of_month.any(|yes| yes) && of_week.any(|yes| yes),
        }
    }
}

impl DayOfMonth {
    fn matches(self, date: Date) -> bool {
        match self {
            Self::Plain(day) => date.day == day,
            Self::Last => date.day == date.last,
            Self::LastWorkday => workdays(date).max() == Some(date.day),
            // Never a tie: of the days around a weekend one is nearer.
            Self::NearestWorkday(day) => {
                day <= date.last && workdays(date).min_by_key(|other| other.abs_diff(day)) == Some(date.day)
            }
        }
    }
}

impl DayOfWeek {
    fn matches(self, date: Date) -> bool {
        match self {
            Self::Plain(weekday) => date.weekday == weekday,
            Self::Last(weekday) => date.weekday == weekday && date.day + 7 > date.last,
            // The first of a weekday is one of the days 1 to 7, the second one of 8 to 14.
            Self::Nth(weekday, n) => date.weekday == weekday && date.day.div_ceil(7) == n,
        }
    }
}

/// The days from Monday to Friday of a date's month.
fn workdays(date: Date) -> impl Iterator<Item = u32> {
    (1..=date.last).filter(move |day| {
        // Far enough back to stay positive.
        let weekday = (date.weekday + 35 + day - date.day) % 7;
        (1..=5).contains(&weekday)
    })
}

fn read_day_of_month(item: &str) -> Vec<DayOfMonth> {
    if item == "L" {
        vec![DayOfMonth::Last]
    } else if item == "LW" {
        vec![DayOfMonth::LastWorkday]
    } else if let Some(day) = item.strip_suffix('W') {
        vec![DayOfMonth::NearestWorkday(day.parse().unwrap())]
    } else {
        values(item, 1, 31, "").map(DayOfMonth::Plain).collect()
    }
}

fn read_day_of_week(item: &str) -> Vec<DayOfWeek> {
    if let Some((weekday, n)) = item.split_once('#') {
        vec![DayOfWeek::Nth(value(weekday, 0, WEEKDAYS) % 7, n.parse().unwrap())]
    } else if let Some(weekday) = item.strip_suffix('L') {
        vec![DayOfWeek::Last(value(weekday, 0, WEEKDAYS) % 7)]
    } else {
        values(item, 0, 6, WEEKDAYS).map(DayOfWeek::Plain).collect()
    }
}

/// Which of the values from `min` a field lists.
fn table(field: &str, min: u32, max: u32, names: &str) -> Vec<bool> {
    let mut table = vec![false; (max - min + 1) as usize];
    for value in field.split(',').flat_map(|item| values(item, min, max, names)) {
        table[(value - min) as usize] = true;
    }
    table
}

/// The values of `*`, `a`, `a-b`, each with or without `/step`; `a/step` goes on to the largest.
fn values(item: &str, min: u32, max: u32, names: &str) -> impl Iterator<Item = u32> + use<> {
    let (range, step) = match item.split_once('/') {
        Some((range, step)) => (range, Some(step.parse().unwrap())),
        None => (item, None),
    };
    let weekdays = names == WEEKDAYS;
    let (first, last) = match range.split_once('-') {
        _ if range == "*" || range == "?" => (min, max),
        Some((first, last)) => (value(first, min, names), value(last, min, names)),
        // As a number Sunday is 0 or 7.
        None if step.is_some() && weekdays => (value(range, min, names) % 7, max),
        None if step.is_some() => (value(range, min, names), max),
        None => (value(range, min, names), value(range, min, names)),
    };
    // A range of weekdays goes round from SAT to SUN.
    let (first, last) = if weekdays && first == 7 && last < 7 {
        (0, last)
    } else if weekdays && first > last {
        (first, last + 7)
    } else {
        (first, last)
    };
    let step = step.unwrap_or(1);
    (first..=last)
        .step_by(step)
        .map(move |value| if weekdays { value % 7 } else { value })
}

/// A number, or a name's place among `names`, which count from `first`.
fn value(word: &str, first: u32, names: &str) -> u32 {
    if let Ok(number) = word.parse() {
        return number;
    }
    let place = names.split(' ').position(|name| name == word).unwrap();
    u32::try_from(place).unwrap() + first
}

//! The only parser of cron expressions: strict, without dependencies, a `const fn`, so that the macros' tokens run it at compile time.
//!
//! Five fields are crontab(5). What dialects disagree on is refused with the way out; loosening a rule later is compatible, changing
//! a meaning is not.

mod date;
mod error;
mod field;
#[cfg(test)]
mod tests;
mod unit;

use super::error::ScheduleError;
pub(super) use date::Date;
use error::Kind;
pub use error::{CronError, MAX_EXPRESSION};
use field::{Field, Part, tri};
use unit::Unit;
pub(super) use unit::{FIRST_YEAR, LAST_YEAR};

/// What a day must match when day of month and day of week are both restricted.
///
/// A day field is restricted unless it is exactly `*` or `?`: `*/2` and `1-31` are restrictions. (Vixie cron and cronie look at the
/// first character only and take `*/2` for a star.)
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Days {
    /// Nothing was said: either with five fields, as in crontab(5); refused with six or seven, where dialects disagree.
    #[default]
    Unsaid,
    /// Either field matches.
    Or,
    /// Both fields match.
    And,
}

/// A checked cron expression as bit sets: what the calendar search works on.
///
/// Five fields (minute, hour, day of month, month, day of week) are crontab(5): weekdays are Unix numbers (0 and 7 are Sunday) or names,
/// and two restricted day fields match when either does. Six fields begin with the second, seven also end with the year (1970-2100);
/// there weekdays are names only, and two restricted day fields need [`Days`].
///
/// Fields take lists, ranges, steps (`*/5`, `10-50/7`, `5/15` = `5-59/15`), names of months and weekdays in any ASCII case, and ranges of
/// weekdays that wrap (`FRI-MON`). Day of month also takes `L` (last day), `LW` (last Monday to Friday) and `15W` (the Monday to Friday
/// nearest to the 15th within the month; `31W` exists only in months of 31 days); day of week also `FRIL` (last Friday) and `FRI#3`
/// (third Friday). The nicknames are `@hourly`, `@daily`, `@midnight`, `@weekly`, `@monthly`, `@yearly`, `@annually`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
pub struct Cron {
    second: u64,
    minute: u64,
    hour: u32,
    day_of_month: u32,
    month: u16,
    /// Bit 0 is Sunday.
    day_of_week: u8,
    /// Bit 0 is 1970.
    year: [u64; 3],
    last_day: bool,
    last_workday: bool,
    nearest: u32,
    last_weekdays: u8,
    nth: [u8; 5],
    day_of_month_star: bool,
    day_of_week_star: bool,
    wild: bool,
    /// Two restricted day fields must both match.
    both: bool,
}

impl Cron {
    /// Reads an expression; see [`Cron`] for the grammar.
    ///
    /// # Errors
    /// [`ScheduleError::Cron`] with the place of the fault. A date that never exists (`30 2`) is a fault too.
    pub fn parse(expr: &str) -> Result<Self, ScheduleError> {
        Self::parse_with(expr, Days::Unsaid)
    }

    /// Reads an expression and says how two restricted day fields combine; `days` means nothing to other expressions.
    ///
    /// # Errors
    /// [`ScheduleError::Cron`] with the place of the fault.
    pub fn parse_with(expr: &str, days: Days) -> Result<Self, ScheduleError> {
        Self::read(expr, days).map_err(|error| ScheduleError::Cron {
            expr: expr.to_owned(),
            error,
        })
    }

    /// [`Cron::parse_with`] for a `const` too.
    pub(crate) const fn read(expr: &str, days: Days) -> Result<Self, CronError> {
        let bytes = expr.as_bytes();
        let all = Part {
            bytes,
            from: 0,
            to: bytes.len(),
        };
        if bytes.len() > MAX_EXPRESSION {
            return Err(all.error(Kind::TooLong));
        }
        let (fields, count) = tri!(split(all));
        if all.at(0) == b'@' {
            return if count == 1 || fields[0].is("@every") {
                nickname(fields[0])
            } else {
                Err(all.error(Kind::Nickname))
            };
        }
        if fields[0].is("every") {
            return Err(fields[0].error(Kind::EveryNickname));
        }
        if fields[0].starts("TZ=") || fields[0].starts("CRON_TZ=") {
            return Err(fields[0].error(Kind::ZonePrefix));
        }
        if count < 5 || count > 7 {
            return Err(all.error(Kind::FieldCount(count)));
        }
        // The other fields are then not those that were meant.
        if count == 6 && fields[5].is_year() {
            return Err(fields[5].error(Kind::YearOfSix));
        }
        // Where the minute stands.
        let first = if count == 5 { 0 } else { 1 };
        let names_only = count > 5;
        let second = if count > 5 {
            tri!(field::parse(fields[0], Unit::Second, false))
        } else {
            single(0)
        };
        let minute = tri!(field::parse(fields[first], Unit::Minute, false));
        let hour = tri!(field::parse(fields[first + 1], Unit::Hour, false));
        let dom = tri!(field::parse(fields[first + 2], Unit::DayOfMonth, false));
        let month = tri!(field::parse(fields[first + 3], Unit::Month, false));
        let dow = tri!(field::parse(fields[first + 4], Unit::DayOfWeek, names_only));
        let year = if count == 7 {
            tri!(field::parse(fields[6], Unit::Year, false)).bits
        } else {
            EVERY_YEAR
        };
        let restricted = !dom.star && !dow.star;
        if restricted && names_only && matches!(days, Days::Unsaid) {
            let at = fields[first + 2];
            return Err(fields[first + 4].error(Kind::BothDays(at.from, at.len())));
        }
        let cron = Self::new(
            [second, minute, hour, dom, month, dow],
            year,
            restricted && matches!(days, Days::And),
        );
        if !cron.exists() {
            let last = if count == 7 {
                6
            } else if dow.star {
                first + 3
            } else {
                first + 4
            };
            let (from, to) = (fields[first + 2].from, fields[last].to);
            return Err(CronError::new(from, to, cron.why_never()));
        }
        Ok(cron)
    }

    /// Reads an expression at compile time: the macros put it into a `const`.
    ///
    /// # Panics
    /// When the expression is refused, with [`CronError::message`]. In a `const` that is a compile error.
    #[must_use]
    #[track_caller]
    pub const fn checked(expr: &'static str) -> Self {
        Self::checked_with(expr, Days::Unsaid)
    }

    /// Like [`Cron::checked`], with what [`Cron::parse_with`] takes.
    ///
    /// # Panics
    /// When the expression is refused, with [`CronError::message`]. In a `const` that is a compile error.
    #[must_use]
    #[track_caller]
    pub const fn checked_with(expr: &'static str, days: Days) -> Self {
        match Self::read(expr, days) {
            Ok(cron) => cron,
            Err(error) => panic!("{}", error.message(expr).as_str()),
        }
    }

    /// Whether a `*` occurs in second, minute or hour, as in cronie: such a schedule follows real time when clocks are changed,
    /// one without it names times of the day.
    #[must_use]
    pub const fn is_wild(&self) -> bool {
        self.wild
    }

    /// How day of month and day of week combine; [`Days::Unsaid`] when at most one of them is restricted.
    #[must_use]
    pub const fn days(&self) -> Days {
        if self.day_of_month_star || self.day_of_week_star {
            Days::Unsaid
        } else if self.both {
            Days::And
        } else {
            Days::Or
        }
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "a field sets no bit above its largest value"
    )]
    const fn new(fields: [Field; 6], year: [u64; 3], both: bool) -> Self {
        let [second, minute, hour, dom, month, dow] = fields;
        Self {
            second: second.bits[0],
            minute: minute.bits[0],
            hour: hour.bits[0] as u32,
            day_of_month: dom.bits[0] as u32,
            month: month.bits[0] as u16,
            day_of_week: dow.bits[0] as u8,
            year,
            last_day: dom.last_day,
            last_workday: dom.last_workday,
            nearest: dom.nearest,
            last_weekdays: dow.last_weekdays,
            nth: dow.nth,
            day_of_month_star: dom.star,
            day_of_week_star: dow.star,
            wild: second.wild || minute.wild || hour.wild,
            both,
        }
    }

    /// The allowed seconds, minutes and hours; bit = value.
    pub(super) const fn time(&self) -> (u64, u64, u32) {
        (self.second, self.minute, self.hour)
    }

    /// The allowed months; bit = month, 1 = January.
    pub(super) const fn months(&self) -> u16 {
        self.month
    }

    pub(super) const fn has_year(&self, year: u32) -> bool {
        if year < FIRST_YEAR || year > LAST_YEAR {
            return false;
        }
        let bit = year - FIRST_YEAR;
        self.year[(bit / 64) as usize] >> (bit % 64) & 1 == 1
    }

    pub(super) const fn every_year(&self) -> bool {
        let [a, b, c] = self.year;
        a == EVERY_YEAR[0] && b == EVERY_YEAR[1] && c == EVERY_YEAR[2]
    }

    /// The plain days of the month, when these are all that the field names.
    pub(super) const fn plain_days(&self) -> Option<u32> {
        if self.last_day || self.last_workday || self.nearest != 0 {
            None
        } else {
            Some(self.day_of_month)
        }
    }

    /// The plain days of the month, whatever else the field names.
    pub(super) const fn plain_days_beside(&self) -> u32 {
        self.day_of_month
    }

    /// `L`, `LW` and the days before a `W`.
    pub(super) const fn special_days(&self) -> (bool, bool, u32) {
        (self.last_day, self.last_workday, self.nearest)
    }

    /// Whether every day of the month matches its field.
    pub(super) const fn days_are_all(&self) -> bool {
        self.day_of_month == u32::MAX - 1
    }

    /// The plain weekdays, when these are all that the field names.
    pub(super) const fn plain_weekdays(&self) -> Option<u8> {
        if self.last_weekdays | self.nth_weekdays() == 0 {
            Some(self.day_of_week)
        } else {
            None
        }
    }

    /// The plain weekdays, whatever else the field names.
    pub(super) const fn plain_weekdays_beside(&self) -> u8 {
        self.day_of_week
    }

    /// The weekdays before an `L`, and those before each `#`.
    pub(super) const fn special_weekdays(&self) -> (u8, [u8; 5]) {
        (self.last_weekdays, self.nth)
    }

    /// Whether every weekday matches its field.
    pub(super) const fn weekdays_are_all(&self) -> bool {
        self.day_of_week == 0b111_1111
    }
}

/// 131 years.
const EVERY_YEAR: [u64; 3] = [u64::MAX, u64::MAX, 0b111];

/// A field of one value.
const fn single(value: u32) -> Field {
    Field {
        bits: [1 << value, 0, 0],
        ..Field::NONE
    }
}

/// Cuts an expression at its blanks; counts fields beyond the seventh without keeping them.
const fn split(all: Part<'_>) -> Result<([Part<'_>; 7], usize), CronError> {
    let bytes = all.bytes;
    let mut fields = [Part { to: 0, ..all }; 7];
    let mut count = 0;
    let mut i = 0;
    while i < bytes.len() {
        let from = i;
        while i < bytes.len() && is_blank(bytes[i]) {
            i += 1;
        }
        if i > from && (from == 0 || i == bytes.len()) {
            let blank = if i - from == bytes.len() {
                Kind::Empty
            } else {
                Kind::OuterBlank
            };
            return Err(CronError::new(from, i, blank));
        }
        let from = i;
        while i < bytes.len() && !is_blank(bytes[i]) {
            if !bytes[i].is_ascii_graphic() {
                return Err(CronError::new(i, character_end(bytes, i), Kind::Character));
            }
            i += 1;
        }
        if count < fields.len() {
            fields[count] = Part { bytes, from, to: i };
        }
        count += 1;
    }
    if count == 0 {
        return Err(CronError::new(0, 0, Kind::Empty));
    }
    Ok((fields, count))
}

const fn is_blank(byte: u8) -> bool {
    byte == b' ' || byte == b'\t'
}

const fn character_end(bytes: &[u8], at: usize) -> usize {
    let mut end = at + 1;
    while end < bytes.len() && bytes[end] & 0xC0 == 0x80 {
        end += 1;
    }
    end
}

/// The nicknames of crontab(5) that name instants.
const fn nickname(name: Part<'_>) -> Result<Cron, CronError> {
    let expr = if name.is("@hourly") {
        "0 * * * *"
    } else if name.is("@daily") || name.is("@midnight") {
        "0 0 * * *"
    } else if name.is("@weekly") {
        "0 0 * * 0"
    } else if name.is("@monthly") {
        "0 0 1 * *"
    } else if name.is("@yearly") || name.is("@annually") {
        "0 0 1 1 *"
    } else if name.is("@reboot") {
        return Err(name.error(Kind::Reboot));
    } else if name.is("@every") {
        return Err(name.error(Kind::EveryNickname));
    } else {
        return Err(name.error(Kind::Nickname));
    };
    Cron::read(expr, Days::Unsaid)
}

//! The fields of an expression and their values.

/// Weekday names in Unix order.
pub(super) const WEEKDAYS: [&str; 7] = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];
pub(super) const MONTHS: [&str; 12] = [
    "JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC",
];

/// The years of the calendar search; it has no others.
pub(in crate::schedule) const FIRST_YEAR: u32 = 1970;
/// See [`FIRST_YEAR`].
pub(in crate::schedule) const LAST_YEAR: u32 = 2100;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    Second,
    Minute,
    Hour,
    DayOfMonth,
    Month,
    DayOfWeek,
    Year,
}

impl Unit {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Second => "second",
            Self::Minute => "minute",
            Self::Hour => "hour",
            Self::DayOfMonth => "day of month",
            Self::Month => "month",
            Self::DayOfWeek => "day of week",
            Self::Year => "year",
        }
    }

    pub(super) const fn min(self) -> u32 {
        match self {
            Self::Second | Self::Minute | Self::Hour | Self::DayOfWeek => 0,
            Self::DayOfMonth | Self::Month => 1,
            Self::Year => FIRST_YEAR,
        }
    }

    pub(super) const fn max(self) -> u32 {
        match self {
            Self::Second | Self::Minute => 59,
            Self::Hour => 23,
            Self::DayOfMonth => 31,
            Self::Month => 12,
            // 0 and 7 are both Sunday, crontab(5).
            Self::DayOfWeek => 7,
            Self::Year => LAST_YEAR,
        }
    }

    /// Where `*` and an open range `a/n` end.
    pub(super) const fn last(self) -> u32 {
        match self {
            Self::DayOfWeek => 6,
            _ => self.max(),
        }
    }

    pub(super) const fn max_step(self) -> u32 {
        match self {
            Self::Year => LAST_YEAR - FIRST_YEAR,
            _ => self.max(),
        }
    }

    pub(super) const fn values(self) -> &'static str {
        match self {
            Self::Second | Self::Minute => "0-59",
            Self::Hour => "0-23",
            Self::DayOfMonth => "1-31, `L`, `LW`, `15W`",
            Self::Month => "1-12 or JAN to DEC",
            Self::DayOfWeek => "SUN to SAT (three letters), `FRIL`, `FRI#3`",
            Self::Year => "1970-2100",
        }
    }

    pub(super) const fn is_day(self) -> bool {
        matches!(self, Self::DayOfMonth | Self::DayOfWeek)
    }
}

//! When a job is due: pure functions of an expression and an instant.
//!
//! Nothing here reads a clock. Expressions are read by the [gate](Cron), the only parser, at compile time and at run time alike; the
//! calendar search works on wall-clock seconds, which are UTC as long as no zone is given.

mod calendar;
mod describe;
mod duration;
mod every;
mod gate;
mod message;
pub mod missed;
pub mod planner;
pub mod planning;
pub mod skew;
#[cfg(test)]
mod tests;

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use calendar::Calendar;
pub use duration::{DurationError, checked_duration, parse_duration};
pub use every::{Every, MAX_PERIOD, MIN_PERIOD, PeriodError};
pub use gate::{Cron, CronError, Days, MAX_EXPRESSION};
pub use message::Message;

/// When a job is due: a cron expression in UTC, or a fixed period.
///
/// Its text form (`Display`, and back with `FromStr`) is stable: `cron "*/5 * * * *"`, `cron "0 0 9 1 * MON" days or`, `every 1h30m`. Two
/// schedules are equal when it is; blanks between fields count as one, and a period is written in one way only.
///
/// The ticks of a cron expression are whole seconds of the years 1970 to 2100.
#[derive(Clone, Debug)]
pub struct Schedule {
    text: Arc<str>,
    rule: Rule,
}

#[derive(Clone, Debug)]
enum Rule {
    Cron(Arc<Calendar>),
    Every(Every),
}

/// Why a schedule was refused: the whole message for people.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ScheduleError {
    /// The cron expression was refused.
    #[error("{}", error.message(expr))]
    Cron {
        /// The expression.
        expr: String,
        /// The fault and its place.
        error: CronError,
    },
    /// The text of a period is no duration.
    #[error("{}", error.message(text))]
    Duration {
        /// The text.
        text: String,
        /// The fault and its place.
        error: DurationError,
    },
    /// The period is out of bounds.
    #[error("invalid period: {0}")]
    Period(#[from] PeriodError),
    /// The text is not what `Display` of a [`Schedule`] writes.
    #[error("`{text}` is no schedule: write `cron \"…\"` or `every …`")]
    Form {
        /// The text.
        text: String,
    },
}

impl Schedule {
    /// The schedule of a cron expression; see [`Cron`] for the grammar.
    ///
    /// # Errors
    /// [`ScheduleError::Cron`] when the expression is refused.
    pub fn cron(expr: &str) -> Result<Self, ScheduleError> {
        Self::cron_with(expr, Days::Unsaid)
    }

    /// The schedule of a cron expression, saying how two restricted day fields combine.
    ///
    /// # Errors
    /// [`ScheduleError::Cron`] when the expression is refused.
    pub fn cron_with(expr: &str, days: Days) -> Result<Self, ScheduleError> {
        match Cron::parse_with(expr, days) {
            Ok(cron) => Ok(Self::from_cron(expr, cron)),
            Err(error) => Err(ScheduleError::Cron {
                expr: expr.to_owned(),
                error,
            }),
        }
    }

    /// The schedule of a period such as `30s`: ticks at its multiples since the Unix epoch.
    ///
    /// # Errors
    /// [`ScheduleError::Duration`] when it is no duration, [`ScheduleError::Period`] when it is out of bounds.
    pub fn every(text: &str) -> Result<Self, ScheduleError> {
        match parse_duration(text) {
            Ok(period) => Self::from_period(period),
            Err(error) => Err(ScheduleError::Duration {
                text: text.to_owned(),
                error,
            }),
        }
    }

    /// The schedule of an expression that is already checked; `text` is what `cron` was read from.
    #[must_use]
    pub fn from_cron(text: &str, cron: Cron) -> Self {
        let fields: Vec<_> = text.split_ascii_whitespace().collect();
        let days = match cron.days() {
            Days::And => " days and",
            Days::Or if fields.len() > 5 => " days or",
            Days::Or | Days::Unsaid => "",
        };
        Self {
            text: format!("cron \"{}\"{days}", fields.join(" ")).into(),
            rule: Rule::Cron(Arc::new(Calendar::new(cron))),
        }
    }

    /// The schedule of a period: ticks at its multiples since the Unix epoch.
    ///
    /// # Errors
    /// [`ScheduleError::Period`] unless it is [`MIN_PERIOD`] to [`MAX_PERIOD`] and whole milliseconds.
    pub fn from_period(period: Duration) -> Result<Self, ScheduleError> {
        Ok(Self::from_every(Every::new(period)?))
    }

    /// The schedule of a period that is already checked.
    #[must_use]
    pub fn from_every(every: Every) -> Self {
        Self {
            text: format!("every {every}").into(),
            rule: Rule::Every(every),
        }
    }

    /// The first tick after `after`, never `after` itself; `None` when there is none any more, which is no error.
    #[must_use]
    pub fn next(&self, after: Timestamp) -> Option<Timestamp> {
        match &self.rule {
            Rule::Cron(calendar) => instant(calendar.next(wall(after))?),
            Rule::Every(every) => every.next(after),
        }
    }

    /// The last tick at or before `at`; `None` when there was none yet.
    #[must_use]
    pub fn prev(&self, at: Timestamp) -> Option<Timestamp> {
        match &self.rule {
            Rule::Cron(calendar) => instant(calendar.prev(wall(at))?),
            Rule::Every(every) => every.prev(at),
        }
    }

    /// The number of ticks after `after` and not after `until`, exactly, without stepping through them.
    #[must_use]
    pub fn count(&self, after: Timestamp, until: Timestamp) -> u64 {
        match &self.rule {
            Rule::Cron(calendar) => calendar.count(wall(after), wall(until)),
            Rule::Every(every) => every.count(after, until),
        }
    }

    /// The schedule in simple words, such as `at 09:00 on weekdays`; as written when no sentence is certainly right.
    #[must_use]
    pub fn describe(&self) -> String {
        match &self.rule {
            Rule::Cron(calendar) => describe::cron(calendar).unwrap_or_else(|| self.text.to_string()),
            Rule::Every(every) => describe::every(*every),
        }
    }

    /// The text form, as `Display` writes it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

/// The UTC wall clock's whole second at an instant; its past second inside of one, before the epoch too.
fn wall(at: Timestamp) -> i64 {
    at.as_second() - i64::from(at.subsec_nanosecond() < 0)
}

fn instant(wall: i64) -> Option<Timestamp> {
    Timestamp::from_second(wall).ok()
}

impl PartialEq for Schedule {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Schedule {}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

impl FromStr for Schedule {
    type Err = ScheduleError;

    /// Reads what `Display` writes.
    fn from_str(text: &str) -> Result<Self, ScheduleError> {
        if let Some(period) = text.strip_prefix("every ") {
            return Self::every(period);
        }
        let parts = text.strip_prefix("cron \"").and_then(|rest| rest.rsplit_once('"'));
        let (expr, days) = match parts {
            Some((expr, "")) => (expr, Days::Unsaid),
            Some((expr, " days or")) => (expr, Days::Or),
            Some((expr, " days and")) => (expr, Days::And),
            _ => {
                let text = text.to_owned();
                return Err(ScheduleError::Form { text });
            }
        };
        Self::cron_with(expr, days)
    }
}

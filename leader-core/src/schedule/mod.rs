//! When a job is due: pure functions of an expression and an instant.
//!
//! Nothing here reads a clock. Expressions are read by the [gate](Cron), the only parser, at compile time and at run time alike; the
//! calendar search works on wall-clock seconds, and `zoned` says which instants these are.

mod ascii;
mod backoff;
pub mod blackout;
mod calendar;
mod describe;
mod duration;
mod error;
mod every;
mod gate;
mod message;
pub mod missed;
#[allow(clippy::exhaustive_enums, clippy::exhaustive_structs, reason = "an internal module")]
pub mod planner;
pub mod planning;
mod preview;
pub mod skew;
#[cfg(test)]
mod tests;
mod zone;
mod zoned;

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

pub(crate) use backoff::MOST_RETRIES;
#[allow(unreachable_pub, reason = "named by the macros' tokens through the private room")]
pub use backoff::{Backoff, checked_retries};
use calendar::Calendar;
pub(crate) use duration::written;
pub use duration::{DurationError, checked_duration, parse_duration};
pub use error::ScheduleError;
pub use every::{Every, MAX_PERIOD, MIN_PERIOD, PeriodError};
pub use gate::{Cron, CronError, Days, MAX_EXPRESSION};
pub use message::Message;
pub use preview::{Note, Planned};
pub use zone::{TZDB_VERSION, Zone, ZoneError};
use zoned::Zoned;

/// When a job is due: a cron expression on the wall clock of a zone (UTC, unless said otherwise), or a fixed period of real time.
///
/// Its text form (`Display`, and back with `FromStr`) is stable: `cron "*/5 * * * *"`, `cron "0 0 9 1 * MON" days or`,
/// `cron "30 2 * * *" timezone Europe/Berlin`, `every 1h30m`. Two schedules are equal when it is; blanks between fields count as one, and
/// a period is written in one way only.
///
/// The ticks of a cron expression are whole seconds of the years 1970 to 2100 of its wall clock.
///
/// # When clocks change
///
/// An expression without `*` in second, minute and hour names times of the day, and each fires once: one that the clock leaves out fires
/// at the end of the gap, one that it shows twice fires at the first passing. Several that are left out by one gap, and one at its end,
/// are one tick: `0,30 2 * * *` fires once on the day on which the clock goes from 02:00 to 03:00. All other expressions follow real time:
/// they fire whenever the clock matches, so that `*/15 * * * *` never pauses and never doubles.
///
/// ```
/// use leader_core::{Schedule, Zone};
///
/// let nightly = Schedule::cron("30 2 * * *")?.in_zone("Europe/Berlin".parse()?)?;
/// let ticks: Vec<_> = nightly.ticks("2026-03-28T12:00:00Z".parse()?).take(2).collect();
/// // On the 29th there is no 02:30: the clock goes from 02:00 to 03:00, which is 01:00 UTC.
/// assert_eq!(ticks, ["2026-03-29T01:00:00Z".parse()?, "2026-03-30T00:30:00Z".parse()?]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # What a day is
///
/// A period counts real time since 1970-01-01T00:00:00Z, and `1d` is 24 hours: `every 7d` fires on Thursdays at 00:00 UTC, whatever
/// clocks do. A time of the day in some place, or the first of a month, is a cron expression with a zone.
#[derive(Clone)]
pub struct Schedule {
    text: Arc<str>,
    rule: Rule,
}

#[derive(Clone)]
enum Rule {
    Cron(Arc<Calendar>, Zone),
    Every(Every),
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
    /// [`ScheduleError::Cron`] when the expression is refused, [`ScheduleError::Days`] when it has no use for `days`.
    pub fn cron_with(expr: &str, days: Days) -> Result<Self, ScheduleError> {
        let cron = Cron::parse_with(expr, days)?;
        if days != Days::Unsaid && cron.days() == Days::Unsaid {
            return Err(ScheduleError::Days { expr: expr.to_owned() });
        }
        Ok(Self::from_cron(expr, cron))
    }

    /// The schedule of a period such as `30s`: ticks at its multiples since the Unix epoch.
    ///
    /// # Errors
    /// [`ScheduleError::Duration`] when it is no duration, [`ScheduleError::Period`] when it is out of bounds.
    pub fn every(text: &str) -> Result<Self, ScheduleError> {
        match Every::new(parse_duration(text)?) {
            Ok(every) => Ok(Self::from_every(every)),
            Err(error) => Err(ScheduleError::Period {
                period: text.to_owned(),
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
            rule: Rule::Cron(Arc::new(Calendar::new(cron)), Zone::UTC),
        }
    }

    /// The same expression on the wall clock of another zone.
    ///
    /// # Errors
    /// [`ScheduleError::ZoneOfPeriod`] when it is a period and the zone is not UTC.
    pub fn in_zone(self, zone: Zone) -> Result<Self, ScheduleError> {
        let (calendar, old) = match self.rule {
            Rule::Cron(calendar, old) => (calendar, old),
            Rule::Every(_) if zone.is_utc() => return Ok(self),
            Rule::Every(_) => return Err(self.refuses(zone.name())),
        };
        let bare = self.text.strip_suffix(&suffix(&old)).unwrap_or(&self.text);
        Ok(Self {
            text: (bare.to_owned() + &suffix(&zone)).into(),
            rule: Rule::Cron(calendar, zone),
        })
    }

    /// A period has no zone.
    fn refuses(&self, zone: &str) -> ScheduleError {
        ScheduleError::ZoneOfPeriod {
            period: self.text.to_string(),
            zone: zone.to_owned(),
        }
    }

    /// The schedule of a period: ticks at its multiples since the Unix epoch.
    ///
    /// # Errors
    /// [`ScheduleError::Period`] unless it is [`MIN_PERIOD`] to [`MAX_PERIOD`] and whole milliseconds.
    pub fn from_period(period: Duration) -> Result<Self, ScheduleError> {
        match Every::new(period) {
            Ok(every) => Ok(Self::from_every(every)),
            Err(error) => Err(ScheduleError::Period {
                period: format!("{period:?}"),
                error,
            }),
        }
    }

    /// The schedule of a period that is already checked.
    #[must_use]
    pub fn from_every(every: Every) -> Self {
        Self {
            text: format!("every {every}").into(),
            rule: Rule::Every(every),
        }
    }

    /// The zone on whose wall clock a cron expression is read; a period has none.
    #[must_use]
    pub fn zone(&self) -> Option<&Zone> {
        match &self.rule {
            Rule::Cron(_, zone) => Some(zone),
            Rule::Every(_) => None,
        }
    }

    /// The first tick after `after`, never `after` itself; `None` when there is none any more, which is no error.
    #[must_use]
    pub fn next(&self, after: Timestamp) -> Option<Timestamp> {
        match &self.rule {
            Rule::Cron(calendar, zone) if zone.is_utc() => instant(calendar.next(second(after))?),
            Rule::Cron(calendar, zone) => instant(zoned(calendar, zone).next(second(after))?),
            Rule::Every(every) => every.next(after),
        }
    }

    /// The last tick at or before `at`; `None` when there was none yet.
    #[must_use]
    pub fn prev(&self, at: Timestamp) -> Option<Timestamp> {
        match &self.rule {
            Rule::Cron(calendar, zone) if zone.is_utc() => instant(calendar.prev(second(at))?),
            Rule::Cron(calendar, zone) => instant(zoned(calendar, zone).prev(second(at))?),
            Rule::Every(every) => every.prev(at),
        }
    }

    /// The number of ticks after `after` and not after `until`, exactly, without stepping through them.
    #[must_use]
    pub fn count(&self, after: Timestamp, until: Timestamp) -> u64 {
        match &self.rule {
            Rule::Cron(calendar, zone) if zone.is_utc() => calendar.count(second(after), second(until)),
            Rule::Cron(calendar, zone) => zoned(calendar, zone).count(second(after), second(until)),
            Rule::Every(every) => every.count(after, until),
        }
    }

    /// The ticks after `after`, in order.
    pub fn ticks(&self, after: Timestamp) -> impl Iterator<Item = Timestamp> + '_ {
        std::iter::successors(self.next(after), |tick| self.next(*tick))
    }

    /// The next `count` ticks after `after` on the wall clock, with a note where a change of clocks makes one unusual; fewer when
    /// the schedule ends.
    #[must_use]
    pub fn preview(&self, after: Timestamp, count: usize) -> Vec<Planned> {
        let mut before = self.prev(after);
        let planned = self.ticks(after).take(count).map(|at| {
            let before = before.replace(at);
            match &self.rule {
                Rule::Cron(calendar, zone) => Planned::zoned(zoned(calendar, zone), zone, at, before),
                Rule::Every(_) => Planned::utc(at),
            }
        });
        planned.collect()
    }

    /// The schedule in simple words, such as `at 09:00 on weekdays (UTC)`; as written when no sentence is certainly right.
    #[must_use]
    pub fn describe(&self) -> String {
        match &self.rule {
            Rule::Cron(calendar, zone) => describe::cron(calendar, zone).unwrap_or_else(|| self.text.to_string()),
            Rule::Every(every) => describe::every(*every),
        }
    }

    /// The text form, shared.
    pub(crate) fn shared_text(&self) -> Arc<str> {
        Arc::clone(&self.text)
    }

    /// The text form, as `Display` writes it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

/// What a zone adds to the text form.
fn suffix(zone: &Zone) -> String {
    if zone.is_utc() {
        String::new()
    } else {
        format!(" timezone {zone}")
    }
}

fn zoned<'a>(calendar: &'a Calendar, zone: &'a Zone) -> Zoned<'a> {
    let tz = zone.tz();
    Zoned { calendar, tz }
}

/// The whole second of an instant; the past one inside of it, before the epoch too.
fn second(at: Timestamp) -> i64 {
    at.as_second() - i64::from(at.subsec_nanosecond() < 0)
}

fn instant(second: i64) -> Option<Timestamp> {
    Timestamp::from_second(second).ok()
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

impl fmt::Debug for Schedule {
    /// The text form: the bits of an expression tell nobody anything.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Schedule({})", self.text)
    }
}

impl FromStr for Schedule {
    type Err = ScheduleError;

    /// Reads what `Display` writes.
    fn from_str(text: &str) -> Result<Self, ScheduleError> {
        let form = || ScheduleError::Form { text: text.to_owned() };
        let (trigger, zone) = match text.rsplit_once(" timezone ") {
            Some((trigger, zone)) => (trigger, Some(zone)),
            None => (text, None),
        };
        let misplaced = |zone: &str| zone.contains(['"', '\'']) || zone.contains(" days ");
        if zone.is_some_and(misplaced) {
            return Err(form());
        }
        let schedule = if let Some(period) = trigger.strip_prefix("every ") {
            let schedule = Self::every(period)?;
            if let Some(zone) = zone.filter(|zone| *zone != "UTC") {
                return Err(schedule.refuses(zone));
            }
            schedule
        } else {
            let parts = trigger.strip_prefix("cron \"").and_then(|rest| rest.rsplit_once('"'));
            let (expr, days) = parts.ok_or_else(form)?;
            let days = match days {
                "" => Days::Unsaid,
                " days or" => Days::Or,
                " days and" => Days::And,
                _ => return Err(form()),
            };
            Self::cron_with(expr, days)?
        };
        match zone {
            Some(name) => schedule.in_zone(Zone::new(name)?),
            None => Ok(schedule),
        }
    }
}

//! `assert_ticks!`: the ticks of a job on one day, against a list.

use std::cmp::Ordering;
use std::fmt::Write as _;

use jiff::civil::{Date, Time};
use jiff::tz::{AmbiguousOffset, Offset, TimeZone};
use jiff::{SignedDuration, Timestamp};

use crate::job::record::{Job, Trigger};
use crate::schedule::{Planned, Schedule, Zone};

/// More ticks than these are not all shown.
const SHOWN: usize = 40;

/// Asserts that the ticks of a job on a day are exactly these, in order.
///
/// The job is named by its handle, which has the name of the annotated function. The day is one of the schedule's zone (of UTC, when it has
/// none). Each tick is written as a time of the day in UTC (`"01:00Z"`), in the zone (`"02:30"`), or in the zone with its offset
/// (`"02:30+02:00"`), where a clock shows it twice; seconds may follow. It is the schedule of the attribute that is looked at, not what
/// code and environment make of it.
///
/// ```
/// use leader_core::leader_only;
/// use leader_core::testing::assert_ticks;
///
/// #[leader_only(cron = "30 2 * * *", timezone = "Europe/Berlin")]
/// async fn purge_sessions() {}
///
/// assert_ticks!(purge_sessions, "2026-03-28", ["01:30Z"]);
/// // Clocks go from 02:00 to 03:00: the tick is the end of the gap.
/// assert_ticks!(purge_sessions, "2026-03-29", ["01:00Z"]);
/// assert_ticks!(purge_sessions, "2026-03-29", ["03:00"]);
/// // Clocks go from 03:00 to 02:00: the first of the two.
/// assert_ticks!(purge_sessions, "2026-10-25", ["02:30+02:00"]);
/// ```
///
/// # Panics
/// When they are others, with both lists side by side, and why a tick is not where it was expected; when the day or a tick cannot be read, or the
/// job has no schedule.
#[macro_export]
macro_rules! assert_ticks {
    ($job:ty, $day:expr, [$($tick:expr),* $(,)?] $(,)?) => {{
        let expected: &[&str] = &[$($tick),*];
        $crate::testing::__assert_ticks::<$job>($day, expected)
    }};
}

/// What [`assert_ticks!`](crate::assert_ticks) calls.
#[doc(hidden)]
#[track_caller]
pub fn __assert_ticks<J: Job>(day: &str, expected: &[&str]) {
    if let Err(message) = check(J::NAME, &schedule::<J>(), day, expected) {
        panic!("{message}");
    }
}

#[track_caller]
fn schedule<J: Job>() -> Schedule {
    let record = J::RECORD;
    let schedule = match record.trigger {
        Trigger::Cron(expr) => Schedule::cron_with(expr, record.days)
            .and_then(|schedule| schedule.in_zone(record.timezone.map_or(Ok(Zone::UTC), Zone::new)?)),
        Trigger::Every(period) => Schedule::every(period),
        Trigger::Handler => {
            panic!(
                "`{}` has no ticks of its own: it runs for the schedules that are made for it",
                J::NAME
            )
        }
        Trigger::WhileLeading | Trigger::Call => {
            panic!("`{}` has no ticks: it lives as long as the leadership", J::NAME)
        }
    };
    schedule.unwrap_or_else(|error| panic!("`{}`: {error}", J::NAME))
}

fn check(job: &str, schedule: &Schedule, day: &str, expected: &[&str]) -> Result<(), String> {
    let date: Date = day
        .parse()
        .map_err(|_| format!("the day `{day}` cannot be read, write it as `2026-03-29`"))?;
    let wanted = expected.iter().map(|text| Wanted::read(text, date));
    let wanted = wanted.collect::<Result<Vec<_>, _>>()?;
    let day = Day::of(schedule, date)?;
    let found = day.ticks(schedule);
    let same = wanted.len() == found.len() && wanted.iter().zip(&found).all(|(wanted, found)| wanted.is(found));
    if same {
        return Ok(());
    }
    let mut text = format!("the ticks of `{job}` ({schedule}) on {date} are others\n");
    let rows = aligned(&wanted, expected, &found, &day);
    let all = rows.len();
    // Of a long list only what differs.
    let shown = rows.into_iter().filter(|row| all <= SHOWN || row.differs).take(SHOWN);
    for Row {
        differs,
        expected,
        found,
    } in shown
    {
        let mark = if differs { '!' } else { ' ' };
        let found = found.map_or_else(|| "none".to_owned(), ToString::to_string);
        // Writing to a string does not fail.
        let _ = writeln!(text, "{mark} expected {expected:<20} found {found}");
    }
    if all > SHOWN {
        let _ = writeln!(text, "… of {} expected and {} found", wanted.len(), found.len());
    }
    Err(text)
}

/// An expected and a found tick of one instant, or one of them alone.
struct Row<'a> {
    differs: bool,
    expected: &'a str,
    found: Option<&'a Planned>,
}

/// Both lists by their instants, so that one tick too many or too few is one row.
fn aligned<'a>(wanted: &[Wanted], expected: &[&'a str], found: &'a [Planned], day: &Day) -> Vec<Row<'a>> {
    let mut rows = Vec::new();
    let (mut wanted, mut found) = (wanted.iter().zip(expected).peekable(), found.iter().peekable());
    let mut last = Timestamp::MIN;
    loop {
        let at = wanted.peek().map(|(wanted, _)| day.instant(wanted, last));
        let order = match (at, found.peek()) {
            (None, None) => return rows,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(at), Some(found)) => at.cmp(&found.at),
        };
        let wanted = if order.is_le() { wanted.next() } else { None };
        let found = if order.is_ge() { found.next() } else { None };
        if let (Some(_), Some(at)) = (wanted, at) {
            last = at;
        }
        rows.push(Row {
            differs: !matches!((wanted, found), (Some((wanted, _)), Some(found)) if wanted.is(found)),
            expected: wanted.map_or("none", |(_, text)| *text),
            found,
        });
    }
}

/// A day of a schedule's zone, up to the next.
struct Day {
    date: Date,
    tz: TimeZone,
    start: Timestamp,
    end: Timestamp,
}

impl Day {
    fn of(schedule: &Schedule, date: Date) -> Result<Self, String> {
        let tz = schedule.zone().map_or(TimeZone::UTC, |zone| zone.tz().clone());
        let start = |date: Date| {
            let zoned = date.to_zoned_datetime(tz.clone());
            zoned.map(|zoned| zoned.timestamp())
        };
        let next = date.tomorrow().and_then(start);
        match (start(date), next) {
            (Ok(start), Ok(end)) => Ok(Self { date, tz, start, end }),
            _ => Err(format!("the day {date} is beyond the calendar")),
        }
    }

    fn ticks(&self, schedule: &Schedule) -> Vec<Planned> {
        let just_before = |at: Timestamp| at - SignedDuration::from_nanos(1);
        let (before, last) = (just_before(self.start), just_before(self.end));
        let count = usize::try_from(schedule.count(before, last)).unwrap_or(usize::MAX);
        schedule.preview(before, count)
    }

    /// The instant of an expected tick: of two the first after `last`, and the gap's end for a time that does not exist.
    fn instant(&self, wanted: &Wanted, last: Timestamp) -> Timestamp {
        let candidates: Vec<_> = match wanted {
            Wanted::Instant(at) => return *at,
            Wanted::Utc(time) => [self.date.yesterday(), Ok(self.date), self.date.tomorrow()]
                .into_iter()
                .filter_map(|date| Offset::UTC.to_timestamp(date.ok()?.to_datetime(*time)).ok())
                .filter(|at| (self.start..self.end).contains(at))
                .collect(),
            Wanted::Local(time) => {
                let local = self.date.to_datetime(*time);
                let at = |offset: Offset| offset.to_timestamp(local).ok();
                match self.tz.to_ambiguous_timestamp(local).offset() {
                    AmbiguousOffset::Unambiguous { offset } => at(offset).into_iter().collect(),
                    AmbiguousOffset::Fold { before, after } => [at(before), at(after)].into_iter().flatten().collect(),
                    AmbiguousOffset::Gap { before, .. } => {
                        let within = at(before).unwrap_or_default();
                        // Before the next second: the change may be right there.
                        let change = self.tz.preceding(within + SignedDuration::from_secs(1)).next();
                        vec![change.map_or(within, |change| change.timestamp())]
                    }
                }
            }
        };
        let first = candidates.iter().find(|at| **at > last).or(candidates.last());
        first.copied().unwrap_or(self.end)
    }
}

/// A tick as it was written.
#[derive(Debug)]
enum Wanted {
    Utc(Time),
    Local(Time),
    Instant(Timestamp),
}

impl Wanted {
    fn read(text: &str, date: Date) -> Result<Self, String> {
        // A date or an offset beside the time would be read and forgotten.
        let is_bare = |text: &&str| text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b':' | b'.'));
        let time = |text: &str| Some(text).filter(is_bare)?.parse::<Time>().ok();
        if let Some(time) = text.strip_suffix('Z').and_then(time) {
            return Ok(Self::Utc(time));
        }
        // With an offset, a time of the zone's day is an instant.
        if let Ok(instant) = format!("{date}T{text}").parse() {
            return Ok(Self::Instant(instant));
        }
        if let Some(time) = time(text) {
            return Ok(Self::Local(time));
        }
        text.parse().map(Self::Instant).map_err(|_| {
            format!(
                "the tick `{text}` cannot be read: write `01:00Z`, `02:30` in the schedule's zone, or `02:30+02:00`"
            )
        })
    }

    fn is(&self, found: &Planned) -> bool {
        let local = found.local.time();
        match self {
            Self::Utc(time) => Offset::UTC.to_datetime(found.at).time() == *time,
            Self::Local(time) => local == *time,
            Self::Instant(at) => found.at == *at,
        }
    }
}

#[cfg(test)]
mod tests;

//! `assert_ticks!`: the ticks of a job on one day, against a list.

use std::fmt::Write as _;

use jiff::civil::{Date, Time};
use jiff::tz::{Offset, TimeZone};
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
/// use leader_core::{assert_ticks, leader_only};
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
/// When they are others, with both lists, and why a tick is not where it was expected; when the day or a tick cannot be read, or the
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
        Trigger::Cron(expr) => Schedule::cron_with(expr, record.days).and_then(|schedule| {
            let zone = record.timezone.map(Zone::new).transpose();
            // The attribute's zone is checked when the program is compiled.
            schedule.in_zone(zone.ok().flatten().unwrap_or(Zone::UTC))
        }),
        Trigger::Every(period) => Schedule::every(period),
        Trigger::WhileLeading | Trigger::Call => {
            panic!("`{}` has no ticks: it lives as long as the leadership", J::NAME)
        }
    };
    schedule.unwrap_or_else(|error| panic!("`{}`: {error}", J::NAME))
}

fn check(job: &str, schedule: &Schedule, day: &str, expected: &[&str]) -> Result<(), String> {
    let date: Date = day
        .parse()
        .map_err(|error| format!("the day `{day}` cannot be read, write it as `2026-03-29`: {error}"))?;
    let wanted = expected.iter().map(|text| Wanted::read(text, date));
    let wanted = wanted.collect::<Result<Vec<_>, _>>()?;
    let found = of_day(schedule, date)?;
    let same = wanted.len() == found.len() && wanted.iter().zip(&found).all(|(wanted, found)| wanted.is(found));
    if same {
        return Ok(());
    }
    let mut text = format!("the ticks of `{job}` ({schedule}) on {date} are others\n");
    let rows = wanted.len().max(found.len());
    for row in 0..rows.min(SHOWN) {
        let (wanted, found) = (wanted.get(row), found.get(row));
        let mark = match (wanted, found) {
            (Some(wanted), Some(found)) if wanted.is(found) => ' ',
            _ => '!',
        };
        let expected = expected.get(row).copied().unwrap_or("none");
        let found = found.map_or_else(|| "none".to_owned(), ToString::to_string);
        // Writing to a string does not fail.
        let _ = writeln!(text, "{mark} expected {expected:<20} found {found}");
    }
    if rows > SHOWN {
        let _ = writeln!(text, "… of {} expected and {} found", wanted.len(), found.len());
    }
    Err(text)
}

/// The ticks of a day of the schedule's zone.
fn of_day(schedule: &Schedule, date: Date) -> Result<Vec<Planned>, String> {
    let tz = schedule.zone().map_or(TimeZone::UTC, |zone| zone.tz().clone());
    let start = |date: Date| {
        let zoned = date.to_zoned_datetime(tz.clone());
        zoned.map(|zoned| zoned.timestamp()).map_err(|error| error.to_string())
    };
    let before = start(date)? - SignedDuration::from_nanos(1);
    let end = start(date.tomorrow().map_err(|error| error.to_string())?)? - SignedDuration::from_nanos(1);
    let count = usize::try_from(schedule.count(before, end)).unwrap_or(usize::MAX);
    Ok(schedule.preview(before, count))
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
mod tests {
    use super::*;

    fn berlin(expr: &str) -> Schedule {
        let zone = Zone::new("Europe/Berlin").unwrap();
        Schedule::cron(expr).unwrap().in_zone(zone).unwrap()
    }

    #[test]
    fn a_day_is_one_of_the_zone() {
        let schedule = berlin("0,30 0,2,23 * * *");
        for ticks in [
            ["22:00Z", "22:30Z", "00:00Z", "00:30Z", "21:00Z", "21:30Z"],
            ["00:00", "00:30:00", "02:00", "02:30", "23:00", "23:30"],
            [
                "00:00+02",
                "00:30+02:00",
                "02:00+0200",
                "02:30+02",
                "23:00+02",
                "23:30+02:00",
            ],
            [
                "2026-05-31T22:00Z",
                "2026-06-01T00:30+02:00",
                "2026-06-01T02:00+02",
                "02:30",
                "23:00",
                "21:30Z",
            ],
        ] {
            assert_eq!(check("job", &schedule, "2026-06-01", &ticks), Ok(()));
        }
        assert_eq!(check("job", &berlin("0 0 L * *"), "2026-06-01", &[]), Ok(()));
        // A clock that shows an hour twice.
        let all = ["02:00+02", "02:30+02", "02:00+01", "02:30+01:00"];
        assert_eq!(check("job", &berlin("*/30 2 * * *"), "2026-10-25", &all), Ok(()));
        assert_eq!(check("job", &berlin("0,30 2 * * *"), "2026-10-25", &all[..2]), Ok(()));
        // A day without midnight, and one that was left out.
        let zone = |name| {
            Schedule::cron("0 0 * * *")
                .unwrap()
                .in_zone(Zone::new(name).unwrap())
                .unwrap()
        };
        assert_eq!(
            check("job", &zone("America/Santiago"), "2024-09-08", &["01:00-03"]),
            Ok(())
        );
        assert_eq!(check("job", &zone("Pacific/Apia"), "2011-12-30", &[]), Ok(()));
        // Periods are read in UTC.
        let every = Schedule::every("8h").unwrap();
        assert_eq!(
            check("job", &every, "2026-06-01", &["00:00", "08:00Z", "16:00:00+00"]),
            Ok(())
        );
    }

    #[test]
    fn what_differs_is_shown_with_its_reason() {
        let schedule = berlin("30 2,14 * * *");
        let told = check("nightly", &schedule, "2026-03-29", &["02:30", "14:30"]).unwrap_err();
        assert_eq!(
            told,
            "the ticks of `nightly` (cron \"30 2,14 * * *\" timezone Europe/Berlin) on 2026-03-29 are others\n\
             ! expected 02:30                found 2026-03-29 03:00:00 +02 Europe/Berlin: 02:30:00 does not exist, the clock goes from \
             02:00:00 to 03:00:00\n  expected 14:30                found 2026-03-29 14:30:00 +02 Europe/Berlin\n"
        );
        let told = check("nightly", &schedule, "2026-03-30", &["00:30Z"]).unwrap_err();
        assert!(told.contains("! expected none "), "{told}");
        let told = check("nightly", &schedule, "2026-03-30", &["00:30Z", "14:30", "15:00"]).unwrap_err();
        assert!(told.contains("found none"), "{told}");
        let told = check("minutely", &berlin("* * * * *"), "2026-03-30", &[]).unwrap_err();
        assert!(told.contains("… of 0 expected and 1440 found"), "{told}");
    }

    /// Whoever writes a date or an offset means it.
    #[test]
    fn a_tick_of_another_day_or_offset_is_another() {
        let schedule = berlin("30 2 * * *");
        let day = "2026-06-01";
        for right in [
            "2026-06-01T00:30Z",
            "2026-06-01T02:30+02:00",
            "2026-06-01 02:30+02:00",
            "2026-06-01 00:30Z",
        ] {
            assert_eq!(check("job", &schedule, day, &[right]), Ok(()), "{right}");
        }
        for wrong in [
            "1999-01-01T00:30Z",
            "1999-01-01 00:30Z",
            "1999-01-01T02:30",
            "1999-01-01 02:30",
            "2026-06-01T02:30+05:00",
            "2026-06-01 02:30+05:00",
            "1999-01-01 02:30+02:00",
            "02:30+05:00",
        ] {
            assert!(check("job", &schedule, day, &[wrong]).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_told() {
        let schedule = berlin("0 2 * * *");
        for (day, tick, part) in [
            ("29.3.2026", "01:00Z", "write it as `2026-03-29`"),
            ("2026-02-30", "01:00Z", "write it as `2026-03-29`"),
            ("2026-03-29", "1 o'clock", "write `01:00Z`"),
            ("2026-03-29", "25:00", "write `01:00Z`"),
            ("2026-03-29", "", "write `01:00Z`"),
        ] {
            let told = check("job", &schedule, day, &[tick]).unwrap_err();
            assert!(told.contains(part), "{day} {tick}: {told}");
        }
    }
}

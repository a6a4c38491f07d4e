//! Schedules in words. Only what is certainly right is said; everything else is shown as written.

use super::calendar::Calendar;
use super::every::Every;
use super::gate::{Cron, Days};
use super::zone::Zone;

const WEEKDAYS: [&str; 7] = [
    "Sundays",
    "Mondays",
    "Tuesdays",
    "Wednesdays",
    "Thursdays",
    "Fridays",
    "Saturdays",
];
const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
/// When the ticks of a period of days are.
const COUNTED: &str = " at 00:00 (UTC), counted from 1970-01-01";
/// More times than these are shown as written.
const MAX_TIMES: usize = 3;

pub(super) fn every(every: Every) -> String {
    let ms = every.period().as_millis();
    // Whole days from the epoch end at midnight, and it is of interest on which days.
    let days = if ms.is_multiple_of(86_400_000) { COUNTED } else { "" };
    for (size, unit) in [
        (86_400_000, "day"),
        (3_600_000, "hour"),
        (60_000, "minute"),
        (1000, "second"),
        (1, "millisecond"),
    ] {
        if ms.is_multiple_of(size) {
            return repeat(ms / size, unit) + days;
        }
    }
    format!("every {every}")
}

fn repeat(count: u128, unit: &str) -> String {
    if count == 1 {
        format!("every {unit}")
    } else {
        format!("every {count} {unit}s")
    }
}

/// `None`: show it as written.
pub(super) fn cron(calendar: &Calendar, zone: &Zone) -> Option<String> {
    let cron = calendar.cron();
    let days = days(cron)?;
    // Where it is so late matters to everything but even steps through all hours of all days.
    let place = format!(" ({zone})");
    let days_there = if days.is_empty() && zone.is_utc() {
        String::new()
    } else {
        days.clone() + &place
    };
    let (second, minute, hour) = cron.time();
    let hour = u64::from(hour);
    let (minutes, hours) = (values(minute), values(hour));
    if let Some(step) = step(second, 60)
        && step < 60
        && step_is(minute, 60, 1)
        && step_is(hour, 24, 1)
    {
        return Some(repeat(step, "second") + &days_there);
    }
    if second != 1 {
        return None;
    }
    if step_is(hour, 24, 1) {
        return match (step(minute, 60), &minutes[..]) {
            (Some(60), _) => Some(format!("every hour{days_there}")),
            (Some(step), _) => Some(repeat(step, "minute") + &days_there),
            (None, [minute]) => Some(format!("every hour at minute {minute}{days}{place}")),
            _ => None,
        };
    }
    if minute == 1
        && let Some(step) = step(hour, 24)
        && step < 12
    {
        return Some(repeat(step, "hour") + &days + &place);
    }
    let times: Vec<_> = hours
        .iter()
        .flat_map(|hour| minutes.iter().map(move |m| format!("{hour:02}:{m:02}")))
        .take(MAX_TIMES + 1)
        .collect();
    if times.len() > MAX_TIMES {
        return None;
    }
    let every_day = if days.is_empty() { " every day" } else { &days };
    Some(format!("at {}{every_day}{place}", join(&times)))
}

/// The days with a blank before them; empty for every day.
fn days(cron: &Cron) -> Option<String> {
    if !cron.every_year() || cron.days() != Days::Unsaid {
        return None;
    }
    let (days, weekdays) = (cron.plain_days()?, cron.plain_weekdays()?);
    let every_month = cron.months() == 0b1_1111_1111_1110;
    let every_day = days == u32::MAX - 1;
    let months = values(cron.months().into());
    Some(match (every_day, weekdays) {
        (true, 0b111_1111) if every_month => String::new(),
        (true, 0b011_1110) if every_month => " on weekdays".to_owned(),
        (true, 0b100_0001) if every_month => " on weekends".to_owned(),
        (true, some) if every_month && some != 0b111_1111 => {
            let names: Vec<_> = values(some.into())
                .into_iter()
                .map(|day| WEEKDAYS[day].to_owned())
                .collect();
            format!(" on {}", join(&names))
        }
        (false, 0b111_1111) => match (&values(days.into())[..], &months[..]) {
            // Not every month has the later ones.
            ([day @ ..=28], _) if every_month => format!(" on day {day} of every month"),
            ([day], [month]) => format!(" on {} {day}", MONTHS[month - 1]),
            _ => return None,
        },
        _ => return None,
    })
}

fn join(parts: &[String]) -> String {
    match parts {
        [] => String::new(),
        [one] => one.clone(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}

fn values(bits: u64) -> Vec<usize> {
    (0..64).filter(|value| bits >> value & 1 == 1).collect()
}

/// The distance of values that begin at 0 and divide `range` evenly: `range` itself for 0 alone.
fn step(bits: u64, range: u128) -> Option<u128> {
    (1..=range).find(|step| range.is_multiple_of(*step) && step_is(bits, range, *step))
}

fn step_is(bits: u64, range: u128, step: u128) -> bool {
    (0..range).all(|value| (bits >> value & 1 == 1) == value.is_multiple_of(step))
}

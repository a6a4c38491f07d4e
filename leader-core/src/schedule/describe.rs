//! Schedules in words. Only what is certainly right is said; everything else is shown as written.

use super::calendar::Calendar;
use super::every::Every;
use super::gate::{Cron, Days};
use super::zone::Zone;

const WEEKDAYS: [&str; 7] = [
    "Sunday",
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
];
const NTH: [&str; 5] = ["first", "second", "third", "fourth", "fifth"];
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
/// Longer lists are shown as written.
const MOST: usize = 3;

pub(super) fn every(every: Every) -> String {
    let ms = every.period().as_millis();
    if ms.is_multiple_of(86_400_000) {
        return every_days(ms / 86_400_000);
    }
    for (size, unit) in [
        (3_600_000, "hour"),
        (60_000, "minute"),
        (1000, "second"),
        (1, "millisecond"),
    ] {
        if ms.is_multiple_of(size) {
            return repeat(ms / size, unit);
        }
    }
    format!("every {every}")
}

/// Whole days from the epoch, which was a Thursday, end at midnight; and it is of interest on which days.
fn every_days(days: u128) -> String {
    let on = if days.is_multiple_of(7) { ", on Thursdays" } else { "" };
    let from = if matches!(days, 1 | 7) {
        ""
    } else {
        ", counted from 1970-01-01"
    };
    format!("{}{on} at 00:00 (UTC){from}", repeat(days, "day"))
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
    if hours.len() * minutes.len() > MOST {
        return Some(within(minute, &hours)? + &days + &place);
    }
    let times = hours
        .iter()
        .flat_map(|hour| minutes.iter().map(move |m| format!("{hour:02}:{m:02}")));
    let every_day = if days.is_empty() { " every day" } else { &days };
    Some(format!("at {}{every_day}{place}", join(&times.collect::<Vec<_>>())))
}

/// A step through an unbroken part of the day.
fn within(minute: u64, hours: &[usize]) -> Option<String> {
    let (first, last) = (*hours.first()?, *hours.last()?);
    if last - first + 1 != hours.len() {
        return None;
    }
    match step(minute, 60)? {
        60 => Some(format!("every hour from {first:02}:00 to {last:02}:00")),
        step => Some(repeat(step, "minute") + &format!(" from {first:02}:00 to {last:02}:{:02}", 60 - step)),
    }
}

/// The days with a blank before them; empty for every day.
fn days(cron: &Cron) -> Option<String> {
    if !cron.every_year() {
        return None;
    }
    let months = months(cron)?;
    let (all_days, all_weekdays) = (cron.days_are_all(), cron.weekdays_are_all());
    if cron.days() == Days::And && !all_days && !all_weekdays {
        return both(cron, &months);
    }
    // Where either may match and one of them always does, every day matches.
    let every_day = cron.days() == Days::Or && (all_days || all_weekdays);
    let of_month = if all_days || every_day {
        None
    } else {
        Some(days_of_month(cron, &months)?)
    };
    let of_week = if all_weekdays || every_day {
        None
    } else {
        Some(days_of_week(cron, &months)?)
    };
    Some(match (of_month, of_week) {
        (None, None) if months.is_empty() => String::new(),
        (None, None) => format!(" every day in {months}"),
        (Some(days), None) | (None, Some(days)) => format!(" on {days}"),
        // Either matches.
        (Some(days), Some(weekdays)) => format!(" on {days}, and on {weekdays} as well"),
    })
}

/// Weekdays within one run of days: `on Mondays that are one of the days 1 to 7 of a month`.
fn both(cron: &Cron, months: &str) -> Option<String> {
    let days = values(cron.plain_days()?.into());
    let (first, last) = (*days.first()?, *days.last()?);
    if last - first + 1 != days.len() || cron.plain_weekdays().is_none() {
        return None;
    }
    let weekdays = days_of_week(cron, months)?;
    Some(if first == last {
        format!(" on {weekdays} that are day {first} of a month")
    } else {
        format!(" on {weekdays} that are one of the days {first} to {last} of a month")
    })
}

/// The months; empty for every one.
fn months(cron: &Cron) -> Option<String> {
    let months = values(cron.months().into());
    match months.len() {
        12 => Some(String::new()),
        1..=MOST => {
            let names: Vec<_> = months.iter().map(|month| MONTHS[month - 1].to_owned()).collect();
            Some(join(&names))
        }
        _ => None,
    }
}

fn days_of_month(cron: &Cron, months: &str) -> Option<String> {
    let of_months = of(months);
    if let Some(days) = cron.plain_days() {
        let days = values(days.into());
        let one_month = !months.is_empty() && !months.contains(' ');
        return match &days[..] {
            [day] if one_month => Some(format!("{months} {day}")),
            // Not every month has the later ones.
            days if days.last().is_some_and(|day| *day > 28) => None,
            days if days.len() <= MOST => {
                let plural = if days.len() == 1 { "" } else { "s" };
                let days: Vec<_> = days.iter().map(ToString::to_string).collect();
                Some(format!("day{plural} {} of {of_months}", join(&days)))
            }
            _ => None,
        };
    }
    let what = match cron.special_days() {
        (true, false, 0) => "the last day".to_owned(),
        (false, true, 0) => "the last workday".to_owned(),
        (false, false, near) if near.is_power_of_two() && near < 1 << 29 => {
            format!("the workday nearest to day {}", near.trailing_zeros())
        }
        _ => return None,
    };
    // Together with plain days they are too many words.
    (cron.plain_days_beside() == 0).then(|| format!("{what} of {of_months}"))
}

fn days_of_week(cron: &Cron, months: &str) -> Option<String> {
    let in_months = if months.is_empty() {
        String::new()
    } else {
        format!(" in {months}")
    };
    if let Some(days) = cron.plain_weekdays() {
        return Some(match days {
            0b011_1110 => format!("weekdays{in_months}"),
            0b100_0001 => format!("weekends{in_months}"),
            some => {
                let names: Vec<_> = values(some.into())
                    .into_iter()
                    .map(|day| format!("{}s", WEEKDAYS[day]))
                    .collect();
                join(&names) + &in_months
            }
        });
    }
    let (last, nth) = cron.special_weekdays();
    let mut named = Vec::new();
    for (count, days) in NTH.iter().zip(nth) {
        named.extend(
            values(days.into())
                .into_iter()
                .map(|day| format!("the {count} {}", WEEKDAYS[day])),
        );
    }
    named.extend(
        values(last.into())
            .into_iter()
            .map(|day| format!("the last {}", WEEKDAYS[day])),
    );
    let short = named.len() <= MOST && cron.plain_weekdays_beside() == 0;
    short.then(|| format!("{} of {}", join(&named), of(months)))
}

fn of(months: &str) -> &str {
    if months.is_empty() { "every month" } else { months }
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

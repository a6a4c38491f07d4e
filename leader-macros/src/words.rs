//! The commonest schedules in words, for the documentation of the annotated function.
//!
//! Shapes of text and no grammar: the one parser of expressions is the core crate's, and it describes any. What is said here a test
//! of the workspace holds to its words; of everything else the expression is shown.

const WEEKDAYS: [&str; 7] = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];
const DAYS: [&str; 7] = [
    "Sundays",
    "Mondays",
    "Tuesdays",
    "Wednesdays",
    "Thursdays",
    "Fridays",
    "Saturdays",
];

/// A cron expression, without its zone: `at 09:00 on weekdays`.
pub(crate) fn cron(expression: &str) -> Option<String> {
    let nickname = match expression {
        "@hourly" => "every hour",
        "@daily" | "@midnight" => "at 00:00 every day",
        "@weekly" => "at 00:00 on Sundays",
        "@monthly" => "at 00:00 on day 1 of every month",
        "@yearly" | "@annually" => "at 00:00 on January 1",
        _ => "",
    };
    if !nickname.is_empty() {
        return Some(nickname.to_owned());
    }
    let fields: Vec<_> = expression.split_ascii_whitespace().collect();
    let [minute, hour, "*", "*", weekday] = fields[..] else {
        return None;
    };
    match (minute, hour, weekday) {
        ("*", "*", "*") => return Some("every minute".to_owned()),
        (_, "*", "*") if minute.starts_with("*/") => {
            let step = number(&minute[2..], 30).filter(|step| *step > 0 && 60 % step == 0)?;
            return Some(repeat(step, "minute"));
        }
        (_, "*", "*") => {
            return Some(match number(minute, 59)? {
                0 => "every hour".to_owned(),
                minute => format!("every hour at minute {minute}"),
            });
        }
        ("0", _, "*") if hour.starts_with("*/") => {
            let step = number(&hour[2..], 8).filter(|step| *step > 0 && 24 % step == 0)?;
            return Some(repeat(step, "hour"));
        }
        _ => {}
    }
    let (minute, hour) = (number(minute, 59)?, number(hour, 23)?);
    let days = match weekday.to_ascii_uppercase().as_str() {
        "*" => "every day".to_owned(),
        "MON-FRI" | "1-5" => "on weekdays".to_owned(),
        one => format!("on {}", DAYS[weekday_of(one)?]),
    };
    Some(format!("at {hour:02}:{minute:02} {days}"))
}

/// A period: `every 5 minutes`.
pub(crate) fn every(period: &str) -> Option<String> {
    let unit_at = period.find(|c: char| !c.is_ascii_digit())?;
    let count = number(&period[..unit_at], 1_000_000).filter(|count| *count > 0)?;
    let mut left = match &period[unit_at..] {
        "d" => count * 86_400,
        "h" => count * 3600,
        "m" => count * 60,
        "s" => count,
        "ms" => return (count % 1000 != 0).then(|| repeat(count, "millisecond")),
        _ => return None,
    };
    for (size, unit) in [(60, "second"), (60, "minute"), (24, "hour")] {
        if left % size != 0 {
            return Some(repeat(left, unit));
        }
        left /= size;
    }
    // The epoch was a Thursday.
    let on = if left % 7 == 0 { ", on Thursdays" } else { "" };
    let from = if matches!(left, 1 | 7) {
        ""
    } else {
        ", counted from 1970-01-01"
    };
    Some(format!("{}{on} at 00:00 (UTC){from}", repeat(left, "day")))
}

/// A duration such as `1h30m`; of what the core crate would refuse nothing is said.
pub(crate) fn milliseconds(duration: &str) -> Option<u64> {
    let mut total: u64 = 0;
    let mut rest = duration;
    while !rest.is_empty() {
        let unit_at = rest.find(|c: char| !c.is_ascii_digit())?;
        let unit_end = rest[unit_at..].find(|c: char| !c.is_ascii_alphabetic());
        let unit_end = unit_end.map_or(rest.len(), |length| unit_at + length);
        let size = match &rest[unit_at..unit_end] {
            "d" => 86_400_000,
            "h" => 3_600_000,
            "m" => 60_000,
            "s" => 1000,
            "ms" => 1,
            _ => return None,
        };
        total = total.checked_add(number(&rest[..unit_at], u64::MAX)?.checked_mul(size)?)?;
        rest = &rest[unit_end..];
    }
    Some(total)
}

fn repeat(count: u64, unit: &str) -> String {
    if count == 1 {
        format!("every {unit}")
    } else {
        format!("every {count} {unit}s")
    }
}

fn weekday_of(text: &str) -> Option<usize> {
    let named = WEEKDAYS.iter().position(|name| *name == text);
    named.or_else(|| Some(usize::try_from(number(text, 7)?).ok()? % 7))
}

/// Digits alone, without a sign.
fn number(text: &str, most: u64) -> Option<u64> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let value = digits.then(|| text.parse().ok()).flatten()?;
    (value <= most).then_some(value)
}

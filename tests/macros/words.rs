//! The macro's words for a schedule are those of the schedule itself: the macro crate has no parser, and knows only shapes of text.

use leader_core::{Schedule, Zone};

// The macro's own source: a macro crate exports nothing else.
#[allow(clippy::redundant_pub_crate, reason = "as in its own crate")]
#[path = "../../leader-macros/src/words.rs"]
mod written;

/// Expressions that the macro puts into words.
const TOLD: &[&str] = &[
    "* * * * *",
    "*/1 * * * *",
    "*/2 * * * *",
    "*/5 * * * *",
    "*/15  * * * *",
    "*/30 * * * *",
    "0 * * * *",
    "7 * * * *",
    "59 * * * *",
    "0 */1 * * *",
    "0 */2 * * *",
    "0 */6 * * *",
    "0 */8 * * *",
    "0 0 * * *",
    "30 2 * * *",
    "05 09 * * *",
    "59 23 * * *",
    "0 9 * * MON-FRI",
    "0 9 * * mon-fri",
    "15 18 * * 1-5",
    "0 9 * * 0",
    "0 9 * * 1",
    "0 9 * * 6",
    "0 9 * * 7",
    "0 9 * * SUN",
    "0 9 * * wed",
    "0 9 * * SAT",
    "@hourly",
    "@daily",
    "@midnight",
    "@weekly",
    "@monthly",
    "@yearly",
    "@annually",
];

/// Expressions that are shown as they are, though some have words in the core crate.
const SHOWN: &[&str] = &[
    "*/7 * * * *",
    "*/45 * * * *",
    "0,30 * * * *",
    "0 */5 * * *",
    "0 */12 * * *",
    "*/5 9 * * *",
    "0 9-17 * * *",
    "0 9 1 * *",
    "0 9 * 1 *",
    "0 9 * * MON,WED",
    "0 9 * * FRI#3",
    "0 9 * * SAT-SUN",
    "0 0 9 * * MON",
    "*/10 * * * * *",
    "0 9 1-7 * MON",
    "@Daily",
];

/// Nothing that the core crate refuses is described.
const REFUSED: &[&str] = &[
    "",
    "*/0 * * * *",
    "*/ * * * *",
    "60 * * * *",
    "+5 * * * *",
    "0 24 * * *",
    "0 9 * * 8",
    "0 9 * * MONDAY",
    "0 9 * * 5-1-",
    "@reboot",
    "0 */0 * * *",
    "99999999999999999999 * * * *",
];

#[test]
fn the_macros_words_are_the_schedules_own() {
    for zone in ["UTC", "Europe/Berlin"] {
        for expr in TOLD {
            let schedule = Schedule::cron(expr).unwrap().in_zone(Zone::new(zone).unwrap()).unwrap();
            let described = schedule.describe();
            let bare = described.strip_suffix(&format!(" ({zone})")).unwrap_or(&described);
            assert_eq!(written::cron(expr).as_deref(), Some(bare), "{expr}");
        }
    }
    for expr in SHOWN {
        assert!(Schedule::cron(expr).is_ok(), "{expr}");
        assert_eq!(written::cron(expr), None, "{expr}");
    }
    for expr in REFUSED {
        assert!(Schedule::cron(expr).is_err(), "{expr}");
        assert_eq!(written::cron(expr), None, "{expr}");
    }
}

/// Every field of the shapes, and what lies just outside of them: whatever is told is right.
#[test]
fn whatever_the_macro_tells_is_right() {
    let minutes = [
        "*", "0", "7", "59", "60", "*/1", "*/4", "*/5", "*/30", "*/60", "1-5", "1,2", "00",
    ];
    let hours = ["*", "0", "9", "23", "24", "*/1", "*/2", "*/5", "*/8", "*/12", "1-5"];
    let days = ["*", "?", "1", "L"];
    let months = ["*", "1", "JAN"];
    let weekdays = ["*", "?", "0", "5", "7", "8", "MON", "mon-FRI", "1-5", "FRI#3", "5-1"];
    let mut told = 0;
    for (minute, hour) in minutes
        .iter()
        .flat_map(|minute| hours.iter().map(move |hour| (minute, hour)))
    {
        for (day, month) in days.iter().flat_map(|day| months.iter().map(move |month| (day, month))) {
            for weekday in weekdays {
                let expr = format!("{minute} {hour} {day} {month} {weekday}");
                let Some(words) = written::cron(&expr) else { continue };
                told += 1;
                let described = Schedule::cron(&expr).unwrap_or_else(|error| panic!("{expr}: {error}"));
                let described = described.describe();
                assert_eq!(words, described.strip_suffix(" (UTC)").unwrap_or(&described), "{expr}");
            }
        }
    }
    assert!(told > 90, "{told}");
}

#[test]
fn durations_are_those_of_the_core_crate() {
    for text in ["5s", "1h30m", "250ms", "7d", "1d2h3m4s5ms", "0s"] {
        let read = leader_core::parse_duration(text).unwrap();
        assert_eq!(
            written::milliseconds(text).map(u128::from),
            Some(read.as_millis()),
            "{text}"
        );
    }
    for refused in ["5", "5x", "1.5s", "5 m", "-5s", "s", "99999999999999999999d"] {
        assert!(leader_core::parse_duration(refused).is_err(), "{refused}");
        assert_eq!(written::milliseconds(refused), None, "{refused}");
    }
}

#[test]
fn periods_are_told_in_the_same_words() {
    let mut told = 0;
    for count in [
        0, 1, 2, 5, 7, 24, 30, 60, 90, 100, 120, 250, 366, 1000, 1500, 1440, 3600, 86_400,
    ] {
        for unit in ["ms", "s", "m", "h", "d"] {
            let period = format!("{count}{unit}");
            let (Some(words), Ok(schedule)) = (written::every(&period), Schedule::every(&period)) else {
                continue;
            };
            told += 1;
            assert_eq!(words, schedule.describe(), "{period}");
        }
    }
    assert!(told > 60, "{told}");
    for shown in [
        "",
        "1h30m",
        "soon",
        "5",
        "0s",
        "1.5s",
        "-5s",
        "5 m",
        "5M",
        "99999999999999999999s",
    ] {
        assert_eq!(written::every(shown), None, "{shown}");
    }
}

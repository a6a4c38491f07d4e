//! Schedules against tables, properties, an independent reading of crontab(5), and other systems' reported faults.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::civil::Date;
use jiff::{Timestamp, ToSpan};
use proptest::prelude::*;

use super::*;

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn cron(expr: &str) -> Schedule {
    Schedule::cron(expr).unwrap_or_else(|error| panic!("{error}"))
}

fn in_zone(expr: &str, zone: &str) -> Schedule {
    cron(expr).in_zone(Zone::new(zone).unwrap()).unwrap()
}

/// The first ticks after an instant, as dates.
fn dates(schedule: &Schedule, after: &str, count: usize) -> Vec<String> {
    let mut tick = at(after);
    (0..count)
        .map(|_| {
            tick = schedule.next(tick).unwrap();
            tick.to_string()[..10].to_owned()
        })
        .collect()
}

/// Public bug reports about cron engines: source, expression, start, expected ticks.
#[test]
fn reported_cases_in_utc() {
    for (source, expr, from, expected) in [
        (
            "zslayton/cron#32",
            "0 0/10 * * * *",
            "2017-10-24T00:01:00Z",
            &["2017-10-24T00:10:00Z"][..],
        ),
        (
            "zslayton/cron#113",
            "0 13 * * 1-5",
            "2022-08-19T13:00:00Z",
            &["2022-08-22T13:00:00Z"],
        ),
        (
            "calfonso/rusternetes#110",
            "@weekly",
            "2026-08-01T00:00:00Z",
            &["2026-08-02T00:00:00Z"],
        ),
        (
            "calfonso/rusternetes#110",
            "0 0 * * 6",
            "2026-08-01T00:00:00Z",
            &["2026-08-08T00:00:00Z"],
        ),
        (
            "Hexagon/croner#284",
            "0 0 * * * *",
            "2025-10-05T02:00:00Z",
            &["2025-10-05T03:00:00Z"],
        ),
        (
            "Hexagon/croner#39",
            "* 17 * * *",
            "2022-01-31T12:35:42Z",
            &["2022-01-31T17:00:00Z"],
        ),
        (
            "Hexagon/croner#267",
            "0 0 1-31 * 4",
            "2024-12-01T00:00:00Z",
            &["2024-12-02T00:00:00Z", "2024-12-03T00:00:00Z"],
        ),
        (
            "taichino/croniter#55",
            "0 9 29 2 *",
            "2016-02-29T09:00:00Z",
            &["2020-02-29T09:00:00Z"],
        ),
        (
            "kelektiv/node-cron#358",
            "0 */10 * * * *",
            "2018-08-10T02:20:00.009Z",
            &["2018-08-10T02:30:00Z"],
        ),
        (
            "HangfireIO/Cronos#30",
            "25 23 */3 * *",
            "2020-09-30T00:00:00Z",
            &["2020-10-01T23:25:00Z", "2020-10-04T23:25:00Z"],
        ),
    ] {
        let schedule = cron(expr);
        let mut tick = at(from);
        for expected in expected {
            tick = schedule.next(tick).unwrap();
            assert_eq!(tick, at(expected), "{source}: {expr}");
        }
    }
    // pallets-eco/croniter#203
    let schedule = cron("0 0 29 * *");
    let tick = schedule.prev(at("2024-03-15T00:00:00Z")).unwrap();
    assert_eq!(tick, at("2024-02-29T00:00:00Z"));
    let before = tick.checked_sub(1.second()).unwrap();
    assert_eq!(schedule.prev(before), Some(at("2024-01-29T00:00:00Z")));
}

/// The `cron` crate takes month and day of a year that is not listed for the last ones of the listed year before it.
#[test]
fn backwards_from_a_year_that_is_not_listed() {
    let once = cron("0 0 12 30 12 ? 2011,2016");
    let last = [
        ("2012-01-01T00:00:00Z", 2011),
        ("2015-06-15T06:00:00Z", 2011),
        ("2300-01-01T00:00:00Z", 2016),
    ];
    for (asked, year) in last {
        let tick = format!("{year}-12-30T12:00:00Z");
        assert_eq!(once.prev(at(asked)), Some(at(&tick)), "from {asked}");
    }
    assert_eq!(once.prev(at("2011-12-30T11:59:59Z")), None);
    // Days that only the hull matches lead into such a year.
    let friday = cron("0 0 0 ? 1 FRI#5 1970-2100/3");
    assert_eq!(
        friday.prev(at("2021-01-20T00:00:00Z")),
        Some(at("2015-01-30T00:00:00Z"))
    );
}

#[test]
fn case_56_weekdays_are_unix_numbers() {
    // 2026-08-01 was a Saturday.
    for (field, first) in [("0", 2), ("7", 2), ("SUN", 2), ("1", 3), ("5", 7), ("6", 8), ("1-5", 3)] {
        let tick = cron(&format!("0 17 * * {field}")).next(at("2026-08-01T17:00:00Z"));
        assert_eq!(tick, Some(at(&format!("2026-08-{first:02}T17:00:00Z"))), "{field}");
    }
}

#[test]
fn case_57_rare_dates_are_found_quickly() {
    for (expr, days, after, expected) in [
        ("0 0 29 2 *", Days::Unsaid, "2096-02-29T00:00:00Z", None),
        (
            "0 0 29 2 *",
            Days::Unsaid,
            "2096-02-28T00:00:00Z",
            Some("2096-02-29T00:00:00Z"),
        ),
        (
            "0 0 29 2 MON",
            Days::And,
            "2024-03-01T00:00:00Z",
            Some("2044-02-29T00:00:00Z"),
        ),
        (
            "0 0 29 2 MON#5",
            Days::And,
            "2024-03-01T00:00:00Z",
            Some("2044-02-29T00:00:00Z"),
        ),
        (
            "0 0 LW 2 SUN",
            Days::Or,
            "2024-03-01T00:00:00Z",
            Some("2025-02-02T00:00:00Z"),
        ),
        (
            "0 0 31 2 1",
            Days::Unsaid,
            "2026-01-01T00:00:00Z",
            Some("2026-02-02T00:00:00Z"),
        ),
        ("0 0 0 1 1 ? 2020", Days::Unsaid, "2020-01-01T00:00:00Z", None),
    ] {
        let schedule = Schedule::cron_with(expr, days).unwrap();
        assert_eq!(schedule.next(at(after)), expected.map(at), "{expr}");
    }
}

#[test]
fn case_59_day_fields_or_rule() {
    let friday_13 = [
        "2026-02-06",
        "2026-02-13",
        "2026-02-20",
        "2026-02-27",
        "2026-03-06",
        "2026-03-13",
    ];
    assert_eq!(dates(&cron("0 0 13 * 5"), "2026-02-01T00:00:00Z", 6), friday_13);
    let both = Schedule::cron_with("0 0 13 * 5", Days::And).unwrap();
    assert_eq!(
        dates(&both, "2026-02-01T00:00:00Z", 3),
        ["2026-02-13", "2026-03-13", "2026-11-13"]
    );
    // A stepped star restricts, here to odd days: either these or Mondays.
    assert_eq!(
        dates(&cron("0 0 */2 * 1"), "2026-02-01T00:00:00Z", 5),
        ["2026-02-02", "2026-02-03", "2026-02-05", "2026-02-07", "2026-02-09"]
    );
    // Every day is one of 1-31.
    assert_eq!(
        dates(&cron("0 9 1-31 * 1"), "2026-02-01T09:00:00Z", 3),
        ["2026-02-02", "2026-02-03", "2026-02-04"]
    );
}

#[test]
fn days_counted_in_the_month() {
    let from = "2026-01-01T00:00:00Z";
    for (expr, expected) in [
        ("0 0 L * *", ["2026-01-31", "2026-02-28", "2026-03-31", "2026-04-30"]),
        // Saturday 31 January and Saturday 28 February go back, Sunday 31 May too.
        (
            "0 0 LW 1,2,3,5 *",
            ["2026-01-30", "2026-02-27", "2026-03-31", "2026-05-29"],
        ),
        ("0 0 L 2 *", ["2026-02-28", "2027-02-28", "2028-02-29", "2029-02-28"]),
        ("0 0 15W * *", ["2026-01-15", "2026-02-16", "2026-03-16", "2026-04-15"]),
        // The 1st of August 2026 is a Saturday, of November a Sunday.
        (
            "0 0 1W 8-11 *",
            ["2026-08-03", "2026-09-01", "2026-10-01", "2026-11-02"],
        ),
        // Sunday 31 May goes back to the 29th; months without a 31st have none.
        (
            "0 0 31W 4-8 *",
            ["2026-05-29", "2026-07-31", "2026-08-31", "2027-05-31"],
        ),
        ("0 0 * * FRIL", ["2026-01-30", "2026-02-27", "2026-03-27", "2026-04-24"]),
        ("0 0 * * 5L", ["2026-01-30", "2026-02-27", "2026-03-27", "2026-04-24"]),
        (
            "0 0 * * FRI#3",
            ["2026-01-16", "2026-02-20", "2026-03-20", "2026-04-17"],
        ),
        (
            "0 0 * * THU#5",
            ["2026-01-29", "2026-04-30", "2026-07-30", "2026-10-29"],
        ),
        ("0 0 * * 7#1", ["2026-01-04", "2026-02-01", "2026-03-01", "2026-04-05"]),
        ("0 0 1,L * *", ["2026-01-31", "2026-02-01", "2026-02-28", "2026-03-01"]),
        (
            "0 0 L * MON#1",
            ["2026-01-05", "2026-01-31", "2026-02-02", "2026-02-28"],
        ),
    ] {
        assert_eq!(dates(&cron(expr), from, 4), expected, "{expr}");
    }
}

#[test]
fn the_calendar_ends() {
    let daily = cron("@daily");
    assert_eq!(daily.next(at("2100-12-31T00:00:00Z")), None);
    assert_eq!(daily.next(Timestamp::MAX), None);
    assert_eq!(daily.prev(Timestamp::MAX), Some(at("2100-12-31T00:00:00Z")));
    assert_eq!(daily.next(Timestamp::MIN), Some(at("1970-01-01T00:00:00Z")));
    assert_eq!(
        daily.next(at("1969-12-31T23:59:59.5Z")),
        Some(at("1970-01-01T00:00:00Z"))
    );
    assert_eq!(daily.prev(at("1969-12-31T23:59:59.5Z")), None);
    assert_eq!(daily.prev(Timestamp::MIN), None);
    assert_eq!(daily.prev(at("1970-01-01T00:00:00Z")), Some(at("1970-01-01T00:00:00Z")));
    assert_eq!(daily.count(Timestamp::MIN, Timestamp::MAX), 47_847);
    let last = cron("59 59 23 31 DEC ?");
    assert_eq!(
        last.next(at("2100-12-31T23:59:58.9Z")),
        Some(at("2100-12-31T23:59:59Z"))
    );
    assert_eq!(last.next(at("2100-12-31T23:59:59Z")), None);
    assert_eq!(last.prev(at("2100-12-31T23:59:59Z")), Some(at("2100-12-31T23:59:59Z")));
    // A search backwards from beyond the last year begins at its end, not in the month of the same name.
    assert_eq!(
        cron("0 0 1 12 *").prev(at("2101-03-01T00:00:00Z")),
        Some(at("2100-12-01T00:00:00Z"))
    );
}

#[test]
fn a_year_of_seconds_is_counted_at_once() {
    let (from, until) = (at("2026-01-01T00:00:00Z"), at("2027-01-01T00:00:00Z"));
    assert_eq!(cron("* * * * * *").count(from, until), 31_536_000);
    assert_eq!(cron("* * * * * MON-FRI").count(from, until), 261 * 86_400);
    assert_eq!(cron("*/7 10-50/7 */5 * * *").count(from, until), 365 * 9 * 6 * 5);
    assert_eq!(cron("* * * * * *").count(until, from), 0);
    assert_eq!(cron("* * * * * *").count(from, from), 0);
}

#[test]
fn the_text_form_is_stable() {
    for (schedule, text) in [
        (cron("*/5 * * * *"), "cron \"*/5 * * * *\""),
        (cron("0 \t 9 *  * mon-fri"), "cron \"0 9 * * mon-fri\""),
        (cron("@daily"), "cron \"@daily\""),
        (cron("0 0 1 * MON"), "cron \"0 0 1 * MON\""),
        (
            Schedule::cron_with("0 0 1 * MON", Days::Or).unwrap(),
            "cron \"0 0 1 * MON\"",
        ),
        (
            Schedule::cron_with("0 0 1 * MON", Days::And).unwrap(),
            "cron \"0 0 1 * MON\" days and",
        ),
        (
            Schedule::cron_with("0 0 0 1 * MON", Days::Or).unwrap(),
            "cron \"0 0 0 1 * MON\" days or",
        ),
        (
            Schedule::cron_with("0 0 0 1 * MON", Days::And).unwrap(),
            "cron \"0 0 0 1 * MON\" days and",
        ),
        (lenient("0 0 0 1 * *", Days::And).unwrap(), "cron \"0 0 0 1 * *\""),
        (
            in_zone("30 2 * * *", "Europe/Berlin"),
            "cron \"30 2 * * *\" timezone Europe/Berlin",
        ),
        (
            Schedule::cron_with("0 0 0 1 * MON", Days::Or)
                .and_then(|schedule| schedule.in_zone(Zone::new("Etc/GMT-2").unwrap()))
                .unwrap(),
            "cron \"0 0 0 1 * MON\" days or timezone Etc/GMT-2",
        ),
        (in_zone("@daily", "UTC"), "cron \"@daily\""),
        (in_zone("@daily", "Etc/UTC"), "cron \"@daily\" timezone Etc/UTC"),
        (
            in_zone("@daily", "Europe/Berlin")
                .in_zone(Zone::new("Asia/Tokyo").unwrap())
                .unwrap(),
            "cron \"@daily\" timezone Asia/Tokyo",
        ),
        (
            in_zone("@daily", "Asia/Tokyo").in_zone(Zone::UTC).unwrap(),
            "cron \"@daily\"",
        ),
        (
            Schedule::every("90s").unwrap().in_zone(Zone::UTC).unwrap(),
            "every 1m30s",
        ),
        (Schedule::every("90s").unwrap(), "every 1m30s"),
        (Schedule::from_period(Duration::from_secs(30)).unwrap(), "every 30s"),
    ] {
        assert_eq!(schedule.to_string(), text);
        assert_eq!(text.parse::<Schedule>().unwrap(), schedule);
    }
    assert_ne!(cron("0 0 * * *"), cron("@daily"));
    assert_eq!(Schedule::every("60s").unwrap(), Schedule::every("1m").unwrap());
    for text in [
        "",
        "daily",
        "cron @daily",
        "cron \"@daily",
        "cron \"@daily\" days",
        "cron \"@daily\" ",
        "cron \"@daily\" timezone",
        "cron \"@daily\" Europe/Berlin",
    ] {
        assert!(
            matches!(text.parse::<Schedule>(), Err(ScheduleError::Form { .. })),
            "{text}"
        );
    }
}

#[test]
fn errors_own_what_they_show() {
    for (error, text) in [
        (
            Schedule::cron("75 * * * *"),
            "invalid cron expression: minute `75` is out of range 0-59\n  75 * * * *\n  ^^\nhelp: write 0-59",
        ),
        (
            Schedule::every("5x"),
            "invalid duration: `x` is not a unit\n  5x\n   ^\nhelp: ",
        ),
        (
            Schedule::every("1ms"),
            "invalid period: it is shorter than 100ms\n  1ms\n  ^^^\nhelp: every tick is claimed in the store",
        ),
        (
            Schedule::from_period(Duration::from_secs(400 * 86_400)),
            "invalid period: it is longer than 366d\n  34560000s\n  ^^^^^^^^^\nhelp: name the date with `cron`",
        ),
        (
            Schedule::cron_with("0 9 * * 1", Days::And),
            "`days` has no effect: it says how two restricted day fields combine, and the expression restricts at most one\n  0 9 * * 1",
        ),
        (
            "cron \"0 9 * * 1\" days or timezone Europe/Berlin".parse(),
            "`days` has no effect",
        ),
        (
            "x".parse(),
            "`x` is no schedule: write `cron \"…\"`, then `days or` or `days and` where two day fields need it, then `timezone …`",
        ),
        (
            "cron \"@daily\" timezone \"Europe/Berlin\"".parse(),
            "`cron \"@daily\" timezone \"Europe/Berlin\"` is no schedule: ",
        ),
        (
            "cron \"@daily\" timezone America/New York".parse(),
            "invalid time zone: `America/New York` is not in",
        ),
        (
            "every 1h timezone Mars".parse(),
            "`every 1h` has no time zone, and was given `Mars`: a period counts real time",
        ),
        ("every 1x timezone Mars".parse(), "invalid duration: "),
        (
            "cron \"@daily\" timezone europe/berlin".parse(),
            "invalid time zone: `europe/berlin` is not in the time zone database\n  europe/berlin\n  ^^^^^^^^^^^^^\n\
             help: did you mean `Europe/Berlin`?",
        ),
        (
            "cron \"@daily\" timezone Europe/Berlin days or".parse(),
            "`cron \"@daily\" timezone Europe/Berlin days or` is no schedule: ",
        ),
        (
            Schedule::every("7d").and_then(|schedule| schedule.in_zone(Zone::new("Europe/Berlin").unwrap())),
            "`every 7d` has no time zone, and was given `Europe/Berlin`: a period counts real time",
        ),
    ] {
        let error = error.unwrap_err().to_string();
        assert!(error.starts_with(text), "{error}");
    }
}

#[test]
fn what_both_day_fields_must_match_is_told_where_it_is_simple() {
    for (expr, words) in [
        (
            "0 9 1-7 * MON",
            "at 09:00 on Mondays that are one of the days 1 to 7 of a month (UTC)",
        ),
        ("0 0 13 * FRI", "at 00:00 on Fridays that are day 13 of a month (UTC)"),
        (
            "0 0 25-31 12 1-5",
            "at 00:00 on weekdays in December that are one of the days 25 to 31 of a month (UTC)",
        ),
        ("0 0 1-31 * MON", "at 00:00 on Mondays (UTC)"),
        ("0 0 1,15 * MON", "cron \"0 0 1,15 * MON\" days and"),
        ("0 0 L * FRI", "cron \"0 0 L * FRI\" days and"),
        ("0 0 1-7 * FRI#1", "cron \"0 0 1-7 * FRI#1\" days and"),
    ] {
        assert_eq!(
            Schedule::cron_with(expr, Days::And).unwrap().describe(),
            words,
            "{expr}"
        );
    }
}

#[test]
fn schedules_are_told_in_words_or_shown() {
    for (expr, words) in [
        ("* * * * * *", "every second"),
        ("*/15 * * * * *", "every 15 seconds"),
        ("* * * * *", "every minute"),
        ("*/5 * * * *", "every 5 minutes"),
        ("0,30 * * * *", "every 30 minutes"),
        ("*/5 * * * 1-5", "every 5 minutes on weekdays (UTC)"),
        ("@hourly", "every hour"),
        ("5 * * * *", "every hour at minute 5 (UTC)"),
        ("0 */6 * * *", "every 6 hours (UTC)"),
        ("@daily", "at 00:00 every day (UTC)"),
        ("0 9 * * 1-5", "at 09:00 on weekdays (UTC)"),
        ("0 9 * * SAT,SUN", "at 09:00 on weekends (UTC)"),
        ("30 8,17 * * *", "at 08:30 and 17:30 every day (UTC)"),
        (
            "0 9 * * MON,WED,FRI",
            "at 09:00 on Mondays, Wednesdays and Fridays (UTC)",
        ),
        ("@weekly", "at 00:00 on Sundays (UTC)"),
        ("@monthly", "at 00:00 on day 1 of every month (UTC)"),
        ("@yearly", "at 00:00 on January 1 (UTC)"),
        // Steps that do not divide the hour or the day evenly are no period.
        ("*/7 * * * *", "cron \"*/7 * * * *\""),
        ("*/59 * * * *", "cron \"*/59 * * * *\""),
        ("0 */5 * * *", "cron \"0 */5 * * *\""),
        ("5-59/5 * * * *", "cron \"5-59/5 * * * *\""),
        ("* 9 * * *", "every minute from 09:00 to 09:59 (UTC)"),
        (
            "*/5 9-17 * * MON-FRI",
            "every 5 minutes from 09:00 to 17:55 on weekdays (UTC)",
        ),
        ("0 9-17 * * *", "every hour from 09:00 to 17:00 (UTC)"),
        ("0 9,10,12,13 * * *", "cron \"0 9,10,12,13 * * *\""),
        ("7 9-17 * * *", "cron \"7 9-17 * * *\""),
        ("0 0 31 * *", "cron \"0 0 31 * *\""),
        ("0 0 1 */2 *", "cron \"0 0 1 */2 *\""),
        ("0 9 * 2 1", "at 09:00 on Mondays in February (UTC)"),
        ("0 9 * 2,3 *", "at 09:00 every day in February and March (UTC)"),
        ("0 9 1,15 * *", "at 09:00 on days 1 and 15 of every month (UTC)"),
        ("0 9 1 1,7 *", "at 09:00 on day 1 of January and July (UTC)"),
        ("0 0 31 1 *", "at 00:00 on January 31 (UTC)"),
        ("0 0 1-31 * *", "at 00:00 every day (UTC)"),
        ("0 0 1-31 * 4", "at 00:00 every day (UTC)"),
        ("0 0 13 * 0-6", "at 00:00 every day (UTC)"),
        (
            "0 0 13 * 5",
            "at 00:00 on day 13 of every month, and on Fridays as well (UTC)",
        ),
        ("0 0 L * *", "at 00:00 on the last day of every month (UTC)"),
        ("0 0 LW 3,6 *", "at 00:00 on the last workday of March and June (UTC)"),
        (
            "0 0 15W * *",
            "at 00:00 on the workday nearest to day 15 of every month (UTC)",
        ),
        ("0 0 31W * *", "cron \"0 0 31W * *\""),
        ("0 0 1,L * *", "cron \"0 0 1,L * *\""),
        ("0 0 * * FRIL", "at 00:00 on the last Friday of every month (UTC)"),
        (
            "0 0 * * MON#1,MON#3",
            "at 00:00 on the first Monday and the third Monday of every month (UTC)",
        ),
        ("0 0 * * MON,FRIL", "cron \"0 0 * * MON,FRIL\""),
        ("0 0 * * FRI#3", "at 00:00 on the third Friday of every month (UTC)"),
        ("0 0 0 1 1 ? 2030", "cron \"0 0 0 1 1 ? 2030\""),
        ("5 0 9 * * *", "cron \"5 0 9 * * *\""),
    ] {
        assert_eq!(cron(expr).describe(), words, "{expr}");
    }
    for (text, words) in [
        ("1s", "every second"),
        ("30s", "every 30 seconds"),
        ("90s", "every 90 seconds"),
        ("90m", "every 90 minutes"),
        ("24h", "every day at 00:00 (UTC)"),
        ("3d", "every 3 days at 00:00 (UTC), counted from 1970-01-01"),
        ("7d", "every 7 days, on Thursdays at 00:00 (UTC)"),
        (
            "14d",
            "every 14 days, on Thursdays at 00:00 (UTC), counted from 1970-01-01",
        ),
        ("36h", "every 36 hours"),
        ("250ms", "every 250 milliseconds"),
    ] {
        assert_eq!(Schedule::every(text).unwrap().describe(), words);
    }
    for (expr, words) in [
        ("*/5 * * * *", "every 5 minutes (Asia/Kolkata)"),
        ("@hourly", "every hour (Asia/Kolkata)"),
        ("0 9 * * 1-5", "at 09:00 on weekdays (Asia/Kolkata)"),
        ("0 0 1,L * *", "cron \"0 0 1,L * *\" timezone Asia/Kolkata"),
    ] {
        assert_eq!(in_zone(expr, "Asia/Kolkata").describe(), words, "{expr}");
    }
}

/// An evaluator written from crontab(5): sets of names and numbers, one civil date after the other. It shares no code with the gate.
mod naive {
    use super::*;

    pub(super) struct Naive {
        /// Seconds of the day.
        times: Vec<i64>,
        months: BTreeSet<i8>,
        days: Vec<Box<dyn Fn(Date) -> bool>>,
        weekdays: Vec<Box<dyn Fn(Date) -> bool>>,
        star: bool,
        both: bool,
    }

    impl Naive {
        pub(super) fn new(expr: &str, days: Days) -> Self {
            let mut fields: Vec<_> = expr.split_whitespace().collect();
            if fields.len() == 5 {
                fields.insert(0, "0");
            }
            let (seconds, minutes) = (set(fields[0], 0, 59), set(fields[1], 0, 59));
            let mut times = Vec::new();
            for hour in set(fields[2], 0, 23) {
                for minute in &minutes {
                    for second in &seconds {
                        let minutes = i64::from(hour) * 60 + i64::from(*minute);
                        times.push(minutes * 60 + i64::from(*second));
                    }
                }
            }
            Self {
                times,
                months: set(fields[4], 1, 12),
                days: fields[3].split(',').map(day_item).collect(),
                weekdays: fields[5].split(',').map(weekday_item).collect(),
                star: fields[3] == "*" || fields[5] == "*",
                both: days == Days::And,
            }
        }

        fn on(&self, date: Date) -> bool {
            if !self.months.contains(&date.month()) {
                return false;
            }
            let day = self.days.iter().any(|item| item(date));
            let weekday = self.weekdays.iter().any(|item| item(date));
            if self.star || self.both {
                day && weekday
            } else {
                day || weekday
            }
        }

        pub(super) fn next(&self, after: Timestamp) -> Option<Timestamp> {
            let mut date = date_of(after);
            while date.year() <= 2100 {
                if self.on(date) {
                    let midnight = midnight(date);
                    let mut ticks = self.times.iter().map(|time| second(midnight + time));
                    if let Some(tick) = ticks.find(|tick| *tick > after && tick.as_second() >= 0) {
                        return Some(tick);
                    }
                }
                date = date.tomorrow().unwrap();
            }
            None
        }

        pub(super) fn prev(&self, at: Timestamp) -> Option<Timestamp> {
            let mut date = date_of(at);
            while date.year() >= 1970 {
                if self.on(date) && date.year() <= 2100 {
                    let midnight = midnight(date);
                    let mut ticks = self.times.iter().rev().map(|time| second(midnight + time));
                    if let Some(tick) = ticks.find(|tick| *tick <= at) {
                        return Some(tick);
                    }
                }
                date = date.yesterday().unwrap();
            }
            None
        }
    }

    fn date_of(at: Timestamp) -> Date {
        at.to_string()[..10].parse().unwrap()
    }

    fn midnight(date: Date) -> i64 {
        at(&format!("{date}T00:00:00Z")).as_second()
    }

    fn second(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn set(field: &str, min: i8, max: i8) -> BTreeSet<i8> {
        field
            .split(',')
            .flat_map(|item| (min..=max).filter(move |value| plain(item, *value, min, max)))
            .collect()
    }

    /// `*`, `a`, `a-b`, each with an optional step.
    fn plain(item: &str, value: i8, min: i8, max: i8) -> bool {
        let (range, step) = item
            .split_once('/')
            .map_or((item, None), |(range, step)| (range, Some(step.parse::<i8>().unwrap())));
        let (low, high) = match range.split_once('-') {
            Some((low, high)) => (number(low), number(high)),
            None if range == "*" => (min, max),
            None if step.is_some() => (number(range), max),
            None => (number(range), number(range)),
        };
        let mut at = low;
        while at <= high {
            if at == value {
                return true;
            }
            at += step.unwrap_or(1);
        }
        false
    }

    fn number(word: &str) -> i8 {
        const NAMES: &str = "xxxJANFEBMARAPRMAYJUNJULAUGSEPOCTNOVDEC";
        const DAYS: &str = "SUNMONTUEWEDTHUFRISAT";
        word.parse().unwrap_or_else(|_| {
            let at = NAMES.find(word).or_else(|| DAYS.find(word)).unwrap();
            i8::try_from(at / 3).unwrap()
        })
    }

    fn weekday_number(date: Date) -> i8 {
        date.weekday().to_sunday_zero_offset()
    }

    fn is_workday(date: Date) -> bool {
        !matches!(weekday_number(date), 0 | 6)
    }

    fn day_item(item: &str) -> Box<dyn Fn(Date) -> bool> {
        if item == "L" {
            return Box::new(|date| date == date.last_of_month());
        }
        if item == "LW" {
            return Box::new(|date| {
                let mut day = date.last_of_month();
                while !is_workday(day) {
                    day = day.yesterday().unwrap();
                }
                date == day
            });
        }
        let Some(day) = item.strip_suffix('W') else {
            let days = set(item, 1, 31);
            return Box::new(move |date| days.contains(&date.day()));
        };
        let day: i8 = day.parse().unwrap();
        Box::new(move |date| {
            // A weekend is two days long, so that there is never a tie.
            let workdays = (1..=date.days_in_month()).filter(|day| {
                let date = Date::new(date.year(), date.month(), *day).unwrap();
                is_workday(date)
            });
            let nearest = workdays.min_by_key(|workday| (workday - day).abs());
            day <= date.days_in_month() && nearest == Some(date.day())
        })
    }

    fn weekday_item(item: &str) -> Box<dyn Fn(Date) -> bool> {
        if let Some((weekday, nth)) = item.split_once('#') {
            let (weekday, nth) = (number(weekday) % 7, nth.parse::<i8>().unwrap());
            return Box::new(move |date| weekday_number(date) == weekday && (date.day() + 6) / 7 == nth);
        }
        if let Some(weekday) = item.strip_suffix('L') {
            let weekday = number(weekday) % 7;
            return Box::new(move |date| weekday_number(date) == weekday && date.day() + 7 > date.days_in_month());
        }
        let mut days = BTreeSet::new();
        if let Some((low, high)) = item.split_once('-') {
            // Day by day, over the end of the week if need be.
            let (mut day, mut high) = (number(low), number(high));
            if high == 0 && day != 0 {
                high = 7;
            }
            days.insert(day % 7);
            while day != high {
                day = day % 7 + 1;
                days.insert(day % 7);
            }
        } else if item.starts_with('*') {
            days = set(item, 0, 6);
        } else {
            days.insert(number(item) % 7);
        }
        Box::new(move |date| days.contains(&weekday_number(date)))
    }
}

fn number_item(min: u32, max: u32) -> BoxedStrategy<String> {
    prop_oneof![
        3 => (min..=max).prop_map(|a| a.to_string()),
        2 => (min..=max, min..=max).prop_map(|(a, b)| format!("{}-{}", a.min(b), a.max(b))),
        1 => (min..=max, min..=max, 1..=max).prop_map(|(a, b, n)| format!("{}-{}/{n}", a.min(b), a.max(b))),
        1 => (min..=max, 1..=max).prop_map(|(a, n)| format!("{a}/{n}")),
        1 => (1..=max).prop_map(|n| format!("*/{n}")),
    ]
    .boxed()
}

fn list_of(item: BoxedStrategy<String>) -> BoxedStrategy<String> {
    prop_oneof![
        1 => Just("*".to_owned()),
        3 => prop::collection::vec(item, 1..4).prop_map(|items| items.join(",")),
    ]
    .boxed()
}

fn day_field() -> BoxedStrategy<String> {
    list_of(
        prop_oneof![
            4 => number_item(1, 31),
            1 => Just("L".to_owned()),
            1 => Just("LW".to_owned()),
            1 => (1..=31).prop_map(|day| format!("{day}W")),
        ]
        .boxed(),
    )
}

fn weekday_name() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"])
}

fn weekday_field(names_only: bool) -> BoxedStrategy<String> {
    let named = prop_oneof![
        weekday_name().prop_map(str::to_owned),
        (weekday_name(), weekday_name()).prop_map(|(a, b)| format!("{a}-{b}")),
        weekday_name().prop_map(|a| format!("{a}L")),
        (weekday_name(), 1..=5_u8).prop_map(|(a, n)| format!("{a}#{n}")),
    ];
    if names_only {
        list_of(named.boxed())
    } else {
        let numbers = prop_oneof![
            (0..=7_u8).prop_map(|a| a.to_string()),
            (0..=7_u8, 0..=7_u8).prop_map(|(a, b)| format!("{a}-{b}")),
            (0..=7_u8).prop_map(|a| format!("{a}L")),
            (0..=7_u8, 1..=5_u8).prop_map(|(a, n)| format!("{a}#{n}")),
        ];
        list_of(prop_oneof![named, numbers].boxed())
    }
}

fn month_field() -> BoxedStrategy<String> {
    let name = prop::sample::select(vec!["JAN", "FEB", "JUN", "DEC"]);
    list_of(
        prop_oneof![
            3 => number_item(1, 12),
            1 => name.prop_map(str::to_owned),
        ]
        .boxed(),
    )
}

fn expression() -> impl Strategy<Value = (String, Days)> {
    let sixty = || list_of(number_item(0, 59));
    let rest = || (list_of(number_item(0, 23)), day_field(), month_field());
    prop_oneof![
        (sixty(), rest(), weekday_field(false), prop::bool::ANY).prop_map(
            |(minute, (hour, day, month), weekday, both)| {
                let days = if both { Days::And } else { Days::Unsaid };
                (format!("{minute} {hour} {day} {month} {weekday}"), days)
            }
        ),
        (sixty(), sixty(), rest(), weekday_field(true), prop::bool::ANY).prop_map(
            |(second, minute, (hour, day, month), weekday, both)| {
                let days = if both { Days::And } else { Days::Or };
                (format!("{second} {minute} {hour} {day} {month} {weekday}"), days)
            }
        ),
    ]
}

fn instant_of_the_calendar() -> impl Strategy<Value = Timestamp> {
    // From 1969 to 2101, with fractions.
    (-86_400_000_i64..4_134_000_000_000, 0..3).prop_map(|(ms, fraction)| {
        let ms = if fraction == 0 { ms } else { ms / 1000 * 1000 };
        Timestamp::from_millisecond(ms).unwrap()
    })
}

/// The gate lets pass what has no effect.
fn lenient(expr: &str, days: Days) -> Result<Schedule, ScheduleError> {
    Ok(Schedule::from_cron(expr, Cron::parse_with(expr, days)?))
}

#[test]
fn debug_is_the_text_form() {
    let schedule = in_zone("0 9 * * *", "Europe/Berlin");
    assert_eq!(
        format!("{schedule:?}"),
        "Schedule(cron \"0 9 * * *\" timezone Europe/Berlin)"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn agrees_with_a_naive_reading_of_crontab((expr, days) in expression(), from in instant_of_the_calendar()) {
        let naive = naive::Naive::new(&expr, days);
        let Ok(schedule) = lenient(&expr, days) else {
            // The only fault that the generator makes is a date that never exists.
            prop_assert_eq!(naive.next(at("1970-01-01T00:00:00Z")), None, "{}", expr);
            return Ok(());
        };
        prop_assert_eq!(schedule.next(from), naive.next(from), "next of {} {:?} after {}", expr, days, from);
        prop_assert_eq!(schedule.prev(from), naive.prev(from), "prev of {} {:?} at {}", expr, days, from);
    }

    #[test]
    fn steps_forward_back_and_counts((expr, days) in expression(), from in instant_of_the_calendar()) {
        let Ok(schedule) = lenient(&expr, days) else {
            return Ok(());
        };
        let mut tick = from;
        for n in 1..=40 {
            let Some(next) = schedule.next(tick) else {
                prop_assert_eq!(schedule.count(tick, Timestamp::MAX), 0);
                break;
            };
            prop_assert!(next > tick);
            prop_assert_eq!(next.subsec_nanosecond(), 0);
            prop_assert_eq!(schedule.prev(next), Some(next));
            let just_before = next.checked_sub(1.nanosecond()).unwrap();
            if n > 1 {
                prop_assert_eq!(schedule.prev(just_before), Some(tick));
            }
            prop_assert_eq!(schedule.next(just_before), Some(next));
            prop_assert_eq!(schedule.count(from, next), n, "{} from {}", expr, from);
            prop_assert_eq!(schedule.count(from, just_before), n - 1);
            tick = next;
        }
        let text = schedule.to_string();
        prop_assert_eq!(text.parse::<Schedule>().unwrap(), schedule);
    }
}

/// The search backwards begins at the end of a listed year, wherever it is asked from in one that is not listed.
#[test]
fn years_that_are_not_listed_are_passed_over_backwards() {
    let schedule = Schedule::cron("0 0 12 15 6 * 2026,2030").unwrap();
    for (from, expected) in [
        ("2026-06-15T11:59:59Z", None),
        ("2026-12-31T23:59:59Z", Some("2026-06-15T12:00:00Z")),
        ("2027-01-01T00:00:00Z", Some("2026-06-15T12:00:00Z")),
        ("2029-12-31T23:59:59Z", Some("2026-06-15T12:00:00Z")),
        ("2030-01-01T00:00:00Z", Some("2026-06-15T12:00:00Z")),
        ("2030-12-31T23:59:59Z", Some("2030-06-15T12:00:00Z")),
        ("2031-01-01T00:00:00Z", Some("2030-06-15T12:00:00Z")),
    ] {
        assert_eq!(schedule.prev(at(from)), expected.map(at), "{from}");
    }
}

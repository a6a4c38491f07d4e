//! Gaps and folds by hand; the suite `schedules` compares far more with a reading of its own.

use jiff::Timestamp;

use crate::schedule::{Schedule, Zone};

/// Expression, zone, the instant asked about, the ticks that follow, in local time.
type Row = (&'static str, &'static str, &'static str, &'static [&'static str]);

const BERLIN: &str = "Europe/Berlin";

const TABLE: &[Row] = &[
    // Spring: 02:00 to 03:00 on 2026-03-29.
    (
        "30 2 * * *",
        BERLIN,
        "2026-03-28T12:00+01",
        &["2026-03-29T03:00+02", "2026-03-30T02:30+02"],
    ),
    (
        "30 2 * * *",
        BERLIN,
        "2026-03-29T01:59+01",
        &["2026-03-29T03:00+02", "2026-03-30T02:30+02"],
    ),
    ("30 2 * * *", BERLIN, "2026-03-29T03:00+02", &["2026-03-30T02:30+02"]),
    (
        "30 2,14 * * *",
        BERLIN,
        "2026-03-28T14:30+01",
        &["2026-03-29T03:00+02", "2026-03-29T14:30+02"],
    ),
    // Several times in one gap, and one at its end, are one tick.
    (
        "0,15,30,45 2,3 * * *",
        BERLIN,
        "2026-03-29T01:00+01",
        &["2026-03-29T03:00+02", "2026-03-29T03:15+02"],
    ),
    (
        "*/30 * * * *",
        BERLIN,
        "2026-03-29T01:00+01",
        &["2026-03-29T01:30+01", "2026-03-29T03:00+02", "2026-03-29T03:30+02"],
    ),
    // A wildcard that names nothing outside of the gap has no tick on that day.
    (
        "* 2 * * *",
        BERLIN,
        "2026-03-28T02:59+01",
        &["2026-03-30T02:00+02", "2026-03-30T02:01+02"],
    ),
    // Autumn: 03:00 to 02:00 on 2026-10-25.
    (
        "30 2 * * *",
        BERLIN,
        "2026-10-24T12:00+02",
        &["2026-10-25T02:30+02", "2026-10-26T02:30+01"],
    ),
    ("30 2 * * *", BERLIN, "2026-10-25T02:00+01", &["2026-10-26T02:30+01"]),
    (
        "0-59 2 * * *",
        BERLIN,
        "2026-10-25T02:58+02",
        &["2026-10-25T02:59+02", "2026-10-26T02:00+01"],
    ),
    (
        "0,30 * * * *",
        BERLIN,
        "2026-10-25T02:00+02",
        &[
            "2026-10-25T02:30+02",
            "2026-10-25T02:00+01",
            "2026-10-25T02:30+01",
            "2026-10-25T03:00+01",
        ],
    ),
    ("0,30 * * * *", BERLIN, "2026-10-25T02:10+01", &["2026-10-25T02:30+01"]),
    // Half an hour.
    (
        "15 2 * * *",
        "Australia/Lord_Howe",
        "2026-10-03T12:00+10:30",
        &["2026-10-04T02:30+11", "2026-10-05T02:15+11"],
    ),
    (
        "*/15 * * * *",
        "Australia/Lord_Howe",
        "2026-04-05T01:30+11",
        &[
            "2026-04-05T01:45+11",
            "2026-04-05T01:30+10:30",
            "2026-04-05T01:45+10:30",
        ],
    ),
    // Across the hour: 03:45 to 02:45.
    (
        "0 3 * * *",
        "Pacific/Chatham",
        "2026-04-04T12:00+13:45",
        &["2026-04-05T03:00+13:45", "2026-04-06T03:00+12:45"],
    ),
    // A day that was left out: 2011-12-30.
    (
        "0 12 * * *",
        "Pacific/Apia",
        "2011-12-29T12:00-10",
        &["2011-12-31T00:00+14", "2011-12-31T12:00+14"],
    ),
    (
        "0 */12 * * *",
        "Pacific/Apia",
        "2011-12-29T12:00-10",
        &["2011-12-31T00:00+14", "2011-12-31T12:00+14"],
    ),
    (
        "*/5 * 30 12 ?",
        "Pacific/Apia",
        "2011-12-01T00:00-10",
        &["2012-12-30T00:00+14"],
    ),
    // Midnight does not exist: 2024-09-08.
    (
        "0 0 * * *",
        "America/Santiago",
        "2024-09-07T12:00-04",
        &["2024-09-08T01:00-03", "2024-09-09T00:00-03"],
    ),
    (
        "0 0 8 9 *",
        "America/Santiago",
        "2024-01-01T00:00-03",
        &["2024-09-08T01:00-03", "2025-09-08T00:00-03"],
    ),
    // The rules go on after the last year of the tables.
    (
        "30 2 * * *",
        BERLIN,
        "2099-03-28T12:00+01",
        &["2099-03-29T03:00+02", "2099-03-30T02:30+02"],
    ),
];

fn at(text: &str) -> Timestamp {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn schedule(expr: &str, zone: &str) -> Schedule {
    Schedule::cron(expr).unwrap().in_zone(Zone::new(zone).unwrap()).unwrap()
}

#[test]
fn times_of_the_day_fire_once_and_all_others_follow_real_time() {
    for (expr, zone, from, expected) in TABLE {
        let schedule = schedule(expr, zone);
        let expected: Vec<_> = expected.iter().map(|tick| at(tick)).collect();
        let from = at(from);
        let found: Vec<_> = schedule.ticks(from).take(expected.len()).collect();
        assert_eq!(found, expected, "{expr} {zone} from {from}");
        // The same backwards, and counted.
        let last = expected[expected.len() - 1];
        let mut back = last;
        for expected in expected.iter().rev() {
            let found = schedule.prev(back).unwrap();
            assert_eq!(found, *expected, "{expr} {zone} back from {back}");
            back = found - jiff::SignedDuration::from_nanos(1);
        }
        assert!(
            schedule.prev(back).is_none_or(|tick| tick <= from),
            "{expr} {zone} back to {from}"
        );
        assert_eq!(
            schedule.count(from, last),
            expected.len() as u64,
            "{expr} {zone} from {from} to {last}"
        );
    }
}

#[test]
fn a_tick_asked_for_in_the_fold_never_lies_before() {
    for expr in ["30 2 * * *", "*/15 * * * *", "0-59 0-59 2 * * *", "* * * * * *"] {
        let schedule = schedule(expr, BERLIN);
        let from = at("2026-10-24T23:50:00Z");
        for second in (0..9_000).step_by(7) {
            let asked = from + jiff::SignedDuration::from_secs(second);
            let (next, prev) = (schedule.next(asked).unwrap(), schedule.prev(asked).unwrap());
            assert!(prev <= asked && asked < next, "{expr} {asked}: {prev} {next}");
            assert_eq!(schedule.count(prev, next), 1, "{expr} {asked}");
            assert_eq!(schedule.prev(next - jiff::SignedDuration::from_nanos(1)), Some(prev));
        }
    }
}

#[test]
fn the_calendar_ends_by_the_wall_clock() {
    // Kiritimati left out the day 1994-12-31, and the midnight of 1979-10-01.
    for (zone, offset, days, halves) in [
        ("Pacific/Kiritimati", "+14", 47_846, 2 * 47_846 - 1),
        ("Pacific/Pago_Pago", "-11", 47_847, 2 * 47_847),
    ] {
        for (expr, hour, count) in [("@daily", "00", days), ("0 */12 * * *", "12", halves)] {
            let schedule = schedule(expr, zone);
            let last = at(&format!("2100-12-31T{hour}:00{offset}"));
            assert_eq!(schedule.prev(Timestamp::MAX), Some(last), "{zone}");
            assert_eq!(schedule.next(last), None);
            assert_eq!(schedule.prev(Timestamp::MIN), None);
            let first = schedule.next(Timestamp::MIN).unwrap();
            let wall = schedule.zone().unwrap().tz().to_datetime(first);
            assert_eq!(wall.to_string(), "1970-01-01T00:00:00", "{zone}");
            assert_eq!(schedule.prev(first), Some(first));
            assert_eq!(schedule.count(Timestamp::MIN, Timestamp::MAX), count, "{zone}");
        }
    }
}

/// The bundled data, not the system's: Vancouver keeps its summer offset from November 2026 on.
#[test]
fn the_bundled_data_decides() {
    let schedule = schedule("0 5 * * *", "America/Vancouver");
    assert_eq!(
        schedule.next(at("2026-12-01T00:00:00Z")),
        Some(at("2026-12-01T12:00:00Z"))
    );
}

/// A time of the day at the very end of the hour that comes twice is counted from within it, once.
#[test]
fn what_the_clock_shows_again_is_counted_up_to_its_end() {
    let at = |text: &str| text.parse::<Timestamp>().unwrap();
    let zone: Zone = BERLIN.parse().unwrap();
    for (expr, after, until, expected) in [
        // 03:00 comes with the end of the second hour from two to three.
        ("0 3 * * *", "2026-10-25T01:00:00Z", "2026-10-25T02:00:00Z", 1),
        ("0 3 * * *", "2026-10-25T01:30:00Z", "2026-10-25T02:00:00Z", 1),
        ("0 3 * * *", "2026-10-25T00:00:00Z", "2026-10-25T02:00:00Z", 1),
        ("59 2 * * *", "2026-10-25T01:00:00Z", "2026-10-25T02:00:00Z", 0),
        ("59 2 * * *", "2026-10-25T00:00:00Z", "2026-10-25T02:00:00Z", 1),
        ("0 2 * * *", "2026-10-25T00:59:59Z", "2026-10-25T02:00:00Z", 0),
    ] {
        let schedule = Schedule::cron(expr).unwrap().in_zone(zone.clone()).unwrap();
        assert_eq!(schedule.count(at(after), at(until)), expected, "{expr} after {after}");
    }
}

/// The end of what the clock shows again belongs to what comes, in both directions.
#[test]
fn the_end_of_what_is_shown_again_is_found_from_within_it() {
    let at = |text: &str| text.parse::<Timestamp>().unwrap();
    let zone: Zone = BERLIN.parse().unwrap();
    let within = at("2026-10-25T01:15:00Z");
    for (expr, next, prev) in [
        ("0,30 2,3 * * *", "2026-10-25T02:00:00Z", "2026-10-25T00:30:00Z"),
        ("0 3 * * *", "2026-10-25T02:00:00Z", "2026-10-24T01:00:00Z"),
    ] {
        let schedule = Schedule::cron(expr).unwrap().in_zone(zone.clone()).unwrap();
        assert_eq!(
            (schedule.next(within), schedule.prev(within)),
            (Some(at(next)), Some(at(prev))),
            "{expr}"
        );
    }
}

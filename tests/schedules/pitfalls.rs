//! What other cron engines got wrong, one named case each, in zones.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp, ZonedDateTime};
use leader_core::{Cron, Days, Schedule, Zone};

use crate::meter::metered;
use crate::oracle;

/// No question takes longer; an unoptimised build is several times slower.
const BOUND: Duration = Duration::from_millis(if cfg!(debug_assertions) { 10 } else { 1 });

fn schedule(expr: &str, zone: &str) -> Schedule {
    with_days(expr, Days::Unsaid, zone)
}

fn with_days(expr: &str, days: Days, zone: &str) -> Schedule {
    let schedule = Schedule::cron_with(expr, days).unwrap();
    schedule.in_zone(Zone::new(zone).unwrap()).unwrap()
}

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// The first `count` ticks after an instant as the wall clock shows them.
fn preview(schedule: &Schedule, zone: &str, after: &str, count: usize) -> Vec<String> {
    let zone = oracle::zone(zone);
    let ticks = schedule.ticks(at(after)).take(count);
    ticks
        .map(|tick| {
            ZonedDateTime::new(tick, zone.clone())
                .strftime("%F %a %R%:z")
                .to_string()
        })
        .collect()
}

/// Runs a timer loop over a span of simulated time, as a scheduler would: sleep until the next tick, run, ask again.
///
/// The timer wakes too early now and then, and the loop asks again. Returns the ticks it ran; every question must be answered in time,
/// with an instant ahead.
fn loop_over(schedule: &Schedule, from: &str, until: &str) -> Vec<Timestamp> {
    let (mut now, until) = (at(from), at(until));
    let mut ran: Vec<Timestamp> = Vec::new();
    let mut questions = 0;
    loop {
        questions += 1;
        let (next, cost) = metered(BOUND, || schedule.next(now));
        assert!(cost <= BOUND, "{cost:?} for the next tick after {now}");
        let next = next.unwrap();
        assert!(next > now, "{next} is not after {now}");
        if next > until {
            break;
        }
        if questions % 3 == 0 && next - now > SignedDuration::from_millis(1) {
            now = next - SignedDuration::from_millis(1);
            continue;
        }
        assert!(ran.last().is_none_or(|last| *last < next), "{next} ran already");
        ran.push(next);
        now = next;
    }
    // One early waking for each two ticks at most.
    assert!(
        questions <= 2 * ran.len() + 2,
        "{questions} questions for {} ticks",
        ran.len()
    );
    ran
}

#[test]
fn case_56_weekdays_are_unix_numbers_of_the_wall_clock() {
    for zone in [
        "Asia/Taipei",
        "America/New_York",
        "Pacific/Auckland",
        "Pacific/Kiritimati",
        "UTC",
    ] {
        let weekdays = schedule("0 17 * * 1-5", zone);
        for tick in preview(&weekdays, zone, "2026-08-01T12:00:00Z", 40) {
            let day = tick.split(' ').nth(1).unwrap();
            assert!(["Mon", "Tue", "Wed", "Thu", "Fri"].contains(&day), "{tick} in {zone}");
            assert!(tick.contains("17:00"));
        }
        let sundays = schedule("0 0 * * SUN", zone);
        let expected = preview(&sundays, zone, "2026-08-01T12:00:00Z", 60);
        assert!(expected.iter().all(|tick| tick.contains("Sun 00:00")), "{expected:?}");
        for expr in [
            "0 0 * * 0",
            "0 0 * * 7",
            "0 0 * * sun",
            "0 0 * * 7-7",
            "0 0 0 ? * SUN",
            "@weekly",
        ] {
            let found = preview(&schedule(expr, zone), zone, "2026-08-01T12:00:00Z", 60);
            assert_eq!(found, expected, "`{expr}` in {zone}");
        }
    }
    // A working day in Taipei begins on the day before in UTC.
    let first = schedule("0 7 * * 1-5", "Asia/Taipei").next(at("2026-05-09T00:00:00Z"));
    assert_eq!(first, Some(at("2026-05-10T23:00:00Z")));
    // With seconds, dialects disagree on digits.
    for expr in [
        "0 0 17 * * 1-5",
        "0 0 0 * * 0",
        "0 0 0 * * 7",
        "0 0 0 * * 5L",
        "0 0 0 * * 5#3",
    ] {
        let error = Schedule::cron(expr).unwrap_err().to_string();
        assert!(
            error.contains("MON") || error.contains("SUN") || error.contains("FRI"),
            "{error}"
        );
    }
}

#[test]
fn case_57_impossible_dates_are_refused() {
    for expr in [
        "0 0 31 2 *",
        "0 0 31 4,6 *",
        "0 0 30 2 *",
        "0 0 31 4,6,9,11 *",
        "0 0 31W 2,4,6,9,11 *",
        "0 0 30W FEB *",
        "0 0 0 29 2 ? 2100",
        "0 0 0 29 2 ? 2001-2003,2005",
        "0 0 0 ? 2 MON#5 2026",
        "* * * 30 2 ?",
    ] {
        let (answer, cost) = metered(BOUND, || Cron::parse(expr));
        assert!(answer.is_err(), "`{expr}`");
        assert!(cost <= BOUND, "`{expr}`: {cost:?}");
    }
    assert!(Cron::parse_with("0 0 31 2 1", Days::And).is_err());
}

#[test]
fn case_57_what_never_comes_again_is_told_at_once() {
    let never = |expr: &str, zone: &str, after: &str| {
        let schedule = schedule(expr, zone);
        let (next, cost) = metered(BOUND, || schedule.next(at(after)));
        assert_eq!(next, None, "`{expr}` in {zone}");
        assert!(cost <= BOUND, "`{expr}` in {zone}: {cost:?}");
        let (count, cost) = metered(BOUND, || schedule.ticks(at(after)).count());
        assert_eq!(count, 0);
        assert!(cost <= BOUND, "`{expr}` in {zone}: {cost:?}");
    };
    never("0 0 29 2 *", "Europe/Berlin", "2096-02-28T23:00:00Z");
    never("0 0 0 29 2 ? 2024", "Pacific/Auckland", "2024-02-29T00:00:00Z");
    never("* * * * *", "America/New_York", "2101-01-01T04:59:00Z");
    // Dates that exist, at times that do not: these follow real time.
    never("0 */5 2 29 3 ? 2026", "Europe/Berlin", "1970-01-01T00:00:00Z");
    never("* * 2 8 3 ? 2026", "America/New_York", "1970-01-01T00:00:00Z");
    never("0 0 */6 30 12 ? 2011", "Pacific/Apia", "1970-01-01T00:00:00Z");
    let nothing = schedule("0 0 */6 30 12 ? 2011", "Pacific/Apia");
    assert_eq!(nothing.prev(at("2100-01-01T00:00:00Z")), None);
    assert_eq!(nothing.count(at("1970-01-01T00:00:00Z"), at("2100-01-01T00:00:00Z")), 0);
    // As a fixed time it is due when the day would have been.
    let once = schedule("0 0 12 30 12 ? 2011", "Pacific/Apia");
    assert_eq!(once.next(at("1970-01-01T00:00:00Z")), Some(at("2011-12-30T10:00:00Z")));
    assert_eq!(once.prev(at("2100-01-01T00:00:00Z")), Some(at("2011-12-30T10:00:00Z")));
    assert_eq!(once.next(at("2011-12-30T10:00:00Z")), None);
}

#[test]
fn case_59_two_day_fields_have_one_rule() {
    let zone = "America/Sao_Paulo";
    let days = |expr: &str, days: Days| -> String {
        let ticks = preview(&with_days(expr, days, zone), zone, "2026-01-01T12:00:00Z", 6);
        let days: Vec<_> = ticks.iter().map(|tick| &tick[5..14]).collect();
        days.join(", ")
    };
    // Five fields are crontab(5): either matches.
    let either = "01-02 Fri, 01-09 Fri, 01-13 Tue, 01-16 Fri, 01-23 Fri, 01-30 Fri";
    assert_eq!(days("0 0 13 * 5", Days::Unsaid), either);
    assert_eq!(days("0 0 13 * 5", Days::Or), either);
    assert_eq!(
        days("0 0 13 * 5", Days::And),
        "02-13 Fri, 03-13 Fri, 11-13 Fri, 08-13 Fri, 10-13 Fri, 04-13 Fri"
    );
    // Only a star alone is no restriction; Vixie cron looks at the first character.
    let odd_or_monday = "01-03 Sat, 01-05 Mon, 01-07 Wed, 01-09 Fri, 01-11 Sun, 01-12 Mon";
    assert_eq!(days("0 0 */2 * 1", Days::Unsaid), odd_or_monday);
    let every_day = "01-02 Fri, 01-03 Sat, 01-04 Sun, 01-05 Mon, 01-06 Tue, 01-07 Wed";
    assert_eq!(days("0 9 1-31 * 1", Days::Unsaid), every_day);
    assert_eq!(
        days("0 9 * * 1", Days::Unsaid),
        "01-05 Mon, 01-12 Mon, 01-19 Mon, 01-26 Mon, 02-02 Mon, 02-09 Mon"
    );
    // The date never exists, the Mondays do.
    assert_eq!(
        days("0 0 31 2 1", Days::Unsaid),
        "02-02 Mon, 02-09 Mon, 02-16 Mon, 02-23 Mon, 02-01 Mon, 02-08 Mon"
    );
    // With seconds, dialects disagree: it must be said.
    let error = Schedule::cron("0 0 0 13 * FRI").unwrap_err().to_string();
    assert!(error.contains("days"), "{error}");
    assert_eq!(days("0 0 0 13 * FRI", Days::Or), either);
}

#[test]
fn case_62_a_spring_gap_skips_nothing_and_never_spins() {
    let berlin = schedule("30 2 * * *", "Europe/Berlin");
    let expected = [
        "2026-03-28T02:30:00+01:00",
        "2026-03-29T03:00:00+02:00",
        "2026-03-30T02:30:00+02:00",
        "2026-03-31T02:30:00+02:00",
    ];
    assert_eq!(
        loop_over(&berlin, "2026-03-27T12:00:00Z", "2026-03-31T12:00:00Z"),
        expected.map(at)
    );
    let new_york = schedule("30 2 * * *", "America/New_York");
    let expected = [
        "2026-03-07T02:30:00-05:00",
        "2026-03-08T03:00:00-04:00",
        "2026-03-09T02:30:00-04:00",
    ];
    assert_eq!(
        loop_over(&new_york, "2026-03-06T17:00:00Z", "2026-03-09T17:00:00Z"),
        expected.map(at)
    );

    // Asked at any millisecond around the change, there is one answer.
    for (schedule, change) in [(&berlin, "2026-03-29T01:00:00Z"), (&new_york, "2026-03-08T07:00:00Z")] {
        let change = at(change);
        let before = schedule.prev(change - SignedDuration::from_nanos(1)).unwrap();
        let after = schedule.next(change).unwrap();
        assert!(change - before >= SignedDuration::from_hours(23) && after - change >= SignedDuration::from_hours(23));
        for millis in -2000..2000 {
            let now = change + SignedDuration::from_millis(millis);
            let (next, prev) = if millis < 0 { (change, before) } else { (after, change) };
            assert_eq!(
                (schedule.next(now), schedule.prev(now)),
                (Some(next), Some(prev)),
                "at {now}"
            );
        }
        assert_eq!(schedule.count(before, after), 2);
    }
}

#[test]
fn case_63_a_daily_job_runs_once_in_an_autumn_fold() {
    let berlin = schedule("0 2 * * *", "Europe/Berlin");
    let expected = [
        "2023-10-28T02:00:00+02:00",
        "2023-10-29T02:00:00+02:00",
        "2023-10-30T02:00:00+01:00",
    ];
    assert_eq!(
        loop_over(&berlin, "2023-10-27T12:00:00Z", "2023-10-30T12:00:00Z"),
        expected.map(at)
    );
    // Between the passings, at the second one and within it.
    for now in [
        "2023-10-29T00:00:00Z",
        "2023-10-29T00:59:59.999Z",
        "2023-10-29T01:00:00Z",
        "2023-10-29T01:30:00Z",
    ] {
        assert_eq!(berlin.next(at(now)), Some(at(expected[2])), "at {now}");
        assert_eq!(berlin.prev(at(now)), Some(at(expected[1])), "at {now}");
    }
    assert_eq!(berlin.count(at("2023-10-28T12:00:00Z"), at("2023-10-29T12:00:00Z")), 1);
    // A list of hours and a step over a written range are fixed times as well.
    for expr in ["30 1,13 * * *", "30 1-13/12 * * *", "0 30 1,13 * * *"] {
        let ticks = loop_over(
            &schedule(expr, "America/New_York"),
            "2026-11-01T04:00:00Z",
            "2026-11-02T05:00:00Z",
        );
        let expected = ["2026-11-01T01:30:00-04:00", "2026-11-01T13:30:00-05:00"];
        assert_eq!(ticks, expected.map(at), "`{expr}`");
    }
}

#[test]
fn case_64_what_follows_real_time_neither_stops_nor_storms_in_a_fold() {
    let changes = [
        ("Europe/Berlin", "2026-10-25T01:00:00Z"),
        ("America/New_York", "2026-11-01T06:00:00Z"),
        ("America/Los_Angeles", "2026-11-01T09:00:00Z"),
        ("Australia/Lord_Howe", "2026-04-04T15:00:00Z"),
        ("Pacific/Chatham", "2026-04-04T14:00:00Z"),
        ("Antarctica/Troll", "2026-10-25T01:00:00Z"),
        ("America/Santiago", "2026-04-05T03:00:00Z"),
        ("Europe/Berlin", "2026-03-29T01:00:00Z"),
        ("Australia/Lord_Howe", "2026-10-03T15:30:00Z"),
        ("Pacific/Apia", "2011-12-30T10:00:00Z"),
    ];
    for (zone, change) in changes {
        let (from, until) = (
            at(change) - SignedDuration::from_hours(4),
            at(change) + SignedDuration::from_hours(4),
        );
        let zoned = oracle::zone(zone);
        assert_ne!(
            oracle::offset(&zoned, from.as_second()),
            oracle::offset(&zoned, until.as_second()),
            "{zone} changes its clocks at {change}"
        );
        for (expr, every) in [("* * * * *", 60), ("*/5 * * * *", 300), ("*/20 * * * * *", 20)] {
            let ticks = loop_over(&schedule(expr, zone), &from.to_string(), &until.to_string());
            // From four hours before the change to four hours after it.
            let expected: Vec<_> = (1..=8 * 3600 / every)
                .map(|n| from + SignedDuration::from_secs(n * every))
                .collect();
            assert_eq!(ticks, expected, "`{expr}` in {zone}");
        }
        // Where clocks change by whole hours, so does an hourly job.
        if !["Australia/Lord_Howe", "Pacific/Chatham"].contains(&zone) {
            let ticks = loop_over(&schedule("0 * * * *", zone), &from.to_string(), &until.to_string());
            assert_eq!(ticks.len(), 8, "{zone}");
            assert!(
                ticks
                    .windows(2)
                    .all(|pair| pair[1] - pair[0] == SignedDuration::from_hours(1)),
                "{zone}: {ticks:?}"
            );
        }
    }
    // Half an hour is repeated: 01:00 and 02:00 lie one and a half hours apart.
    let ticks = loop_over(
        &schedule("0 * * * *", "Australia/Lord_Howe"),
        "2026-04-04T13:30:00Z",
        "2026-04-04T16:30:00Z",
    );
    let expected = [
        "2026-04-05T01:00:00+11:00",
        "2026-04-05T02:00:00+10:30",
        "2026-04-05T03:00:00+10:30",
    ];
    assert_eq!(ticks, expected.map(at));
    // Begun in the second passing of the hour, where one engine fired 2 670 001 times in 50 minutes.
    let quarters = schedule("0 */15 * * * *", "Europe/Berlin");
    assert_eq!(
        loop_over(&quarters, "2026-10-25T01:05:00Z", "2026-10-25T01:55:00Z").len(),
        3
    );
}

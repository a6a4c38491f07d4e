//! How long what must be quick takes at the most: the pure rooms, whose own tests ask no clock, measured from outside.

use std::time::Duration;

use jiff::Timestamp;
use jiff::civil::date;
use leader_core::__seam::Blackouts;
use leader_core::__seam::planner::{Planner, Rule};
use leader_core::{Calendar, Days, Missed, Schedule, Zone};

use crate::meter::metered;

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn within<T>(bound: Duration, what: &str, work: impl Fn() -> T) -> T {
    let (answer, took) = metered(bound, work);
    assert!(took <= bound, "{what}: {took:?}, and {bound:?} at the most");
    answer
}

const QUICK: Duration = Duration::from_millis(5);

#[test]
fn impossible_dates_are_refused_at_once() {
    for (expr, days) in [
        ("0 0 31 2 *", Days::Unsaid),
        ("0 0 30,31 FEB *", Days::Unsaid),
        ("0 0 31 4,6,9,11 *", Days::Unsaid),
        ("0 0 0 30 2 ?", Days::Unsaid),
        ("0 0 31W APR *", Days::Unsaid),
        ("0 0 0 29 FEB ? 2100", Days::Unsaid),
        ("0 0 0 29 FEB ? 2025-2027,2029", Days::Unsaid),
        ("0 0 31 2 1", Days::And),
        ("0 0 15W * SUN", Days::And),
        ("0 0 1-7 * FRI#2", Days::And),
    ] {
        within(QUICK, expr, || Schedule::cron_with(expr, days)).unwrap_err();
    }
}

#[test]
fn what_comes_rarely_is_found_at_once() {
    for (expr, days, after, found) in [
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
        ("0 0 0 1 1 ? 2020", Days::Unsaid, "2020-01-01T00:00:00Z", None),
    ] {
        let schedule = Schedule::cron_with(expr, days).unwrap();
        assert_eq!(
            within(QUICK, expr, || schedule.next(at(after))),
            found.map(at),
            "{expr}"
        );
    }
}

#[test]
fn a_year_of_seconds_is_one_step() {
    let bound = Duration::from_millis(100);
    let schedule = Schedule::cron("* * * * * *").unwrap();
    let (from, until) = (at("2026-01-01T00:00:00Z"), at("2027-01-01T00:00:00Z"));
    assert_eq!(within(bound, "a count", || schedule.count(from, until)), 31_536_000);
    for missed in [Missed::Skip, Missed::Latest, Missed::All] {
        let steps = within(bound, "a plan", || {
            let mut planner = Planner::default();
            let rule = Rule {
                missed,
                ..Rule::new(schedule.clone())
            };
            planner.begin(0, rule, from, None, until);
            planner.due(until, |_| false).remove(0).1
        });
        assert!(steps[0].passed[0].count > 31_535_000, "{missed:?}: {:?}", steps[0]);
    }
}

#[test]
fn a_search_leaps_over_years_that_are_covered() {
    let calendar = Calendar::new().days(date(2026, 1, 1), date(2050, 12, 31));
    let rule = Rule {
        blackouts: Blackouts::new([("freeze", &calendar)], &Zone::UTC),
        ..Rule::new(Schedule::every("1s").unwrap())
    };
    let found = within(Duration::from_millis(100), "a leap", || {
        (
            rule.next_open(at("2026-01-01T00:00:00Z")),
            rule.prev_open(at("2040-01-01T00:00:00Z")),
        )
    });
    assert_eq!(
        found,
        (Some(at("2051-01-01T00:00:00Z")), Some(at("2025-12-31T23:59:59Z")))
    );
}

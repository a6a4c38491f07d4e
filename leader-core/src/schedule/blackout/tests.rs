//! What calendars cover: whole civil days where clocks change, spans, and both together.

use jiff::civil::date;
use proptest::prelude::*;

use super::*;
use crate::schedule::Schedule;
use crate::schedule::missed::{MissedReason, PassedAs};
use crate::schedule::planner::{Planner, Rule, StepKind};

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn zone(name: &str) -> Zone {
    name.parse().unwrap()
}

fn covered(calendar: &Calendar, name: &str) -> Vec<(String, String)> {
    let spans = calendar.covered(&zone(name)).into_iter();
    spans
        .map(|(from, until)| (from.to_string(), until.to_string()))
        .collect()
}

fn hours(calendar: &Calendar, name: &str) -> i64 {
    let spans = calendar.covered(&zone(name)).into_iter();
    spans
        .map(|(from, until)| until.duration_since(from).as_secs())
        .sum::<i64>()
        / 3600
}

#[test]
fn a_day_has_the_hours_that_its_zone_gives_it() {
    for (day, name, length) in [
        (date(2026, 7, 1), "Europe/Berlin", 24),
        (date(2026, 3, 29), "Europe/Berlin", 23),
        (date(2026, 10, 25), "Europe/Berlin", 25),
        // The clock goes from 24:00 to 01:00: the day begins at 01:00.
        (date(2026, 4, 24), "Africa/Cairo", 23),
        // Samoa had no 30 December 2011.
        (date(2011, 12, 30), "Pacific/Apia", 0),
        (date(2011, 12, 31), "Pacific/Apia", 24),
        (date(2026, 1, 1), "UTC", 24),
    ] {
        assert_eq!(hours(&Calendar::new().day(day), name), length, "{day} {name}");
    }
    let berlin = covered(
        &Calendar::new().days(date(2026, 3, 29), date(2026, 3, 30)),
        "Europe/Berlin",
    );
    assert_eq!(
        berlin,
        [("2026-03-28T23:00:00Z".to_owned(), "2026-03-30T22:00:00Z".to_owned())]
    );
}

#[test]
fn a_clock_set_back_over_midnight_splits_two_days() {
    // 2005-10-30 00:01 goes back to 23:01 of the 29th.
    let spans = covered(&Calendar::new().day(date(2005, 10, 30)), "America/St_Johns");
    assert_eq!(spans.len(), 2, "{spans:?}");
    assert_eq!(
        spans[0],
        ("2005-10-30T02:30:00Z".to_owned(), "2005-10-30T02:31:00Z".to_owned())
    );
    assert_eq!(spans[1].0, "2005-10-30T03:30:00Z");
}

#[test]
fn spans_are_half_open_and_grow_together() {
    let calendar = Calendar::new()
        .between(at("2026-01-01T10:00:00Z"), at("2026-01-01T11:00:00Z"))
        .between(at("2026-01-01T11:00:00Z"), at("2026-01-01T12:00:00Z"))
        .between(at("2026-01-01T15:00:00Z"), at("2026-01-01T15:00:00Z"));
    let blackouts = Blackouts::new([("freeze", &calendar)], &Zone::UTC);
    let whole = Some((at("2026-01-01T10:00:00Z"), at("2026-01-01T12:00:00Z")));
    assert_eq!(blackouts.span_at(at("2026-01-01T10:00:00Z")), whole);
    assert_eq!(blackouts.span_at(at("2026-01-01T11:59:59.999Z")), whole);
    assert_eq!(blackouts.span_at(at("2026-01-01T12:00:00Z")), None);
    assert_eq!(blackouts.span_at(at("2026-01-01T15:00:00Z")), None);
    assert_eq!(
        blackouts.covering(at("2026-01-01T11:00:00Z")).collect::<Vec<_>>(),
        ["freeze"]
    );
    let reversed = Calendar::new().days(date(2026, 1, 2), date(2026, 1, 1)).reversed();
    assert_eq!(reversed, ["the days from 2026-01-02 to 2026-01-01"]);
}

fn rule(every: &str, calendar: &Calendar) -> Rule {
    let schedule = Schedule::every(every).unwrap();
    Rule {
        blackouts: Blackouts::new([("freeze", calendar)], &Zone::UTC),
        ..Rule::new(schedule)
    }
}

#[test]
fn a_search_leaps_over_a_year() {
    let calendar = Calendar::new().days(date(2026, 1, 1), date(2050, 12, 31));
    let rule = rule("1s", &calendar);
    assert_eq!(
        rule.next_open(at("2026-01-01T00:00:00Z")),
        Some(at("2051-01-01T00:00:00Z"))
    );
    assert_eq!(
        rule.prev_open(at("2040-01-01T00:00:00Z")),
        Some(at("2025-12-31T23:59:59Z"))
    );
    let mut planner = Planner::default();
    let cursor = at("2026-01-01T00:00:00Z");
    planner.begin(0, rule, cursor, None, cursor);
    let mut due = planner.due(at("2026-02-01T00:00:00Z"), |_| false);
    let steps = due.remove(0).1;
    // A month of a secondly job is one record.
    assert_eq!(steps.len(), 1);
    assert_eq!(
        (steps[0].kind, steps[0].tick),
        (StepKind::Settle, at("2026-02-01T00:00:00Z"))
    );
    let [span] = steps[0].passed.as_slice() else {
        panic!("{steps:?}")
    };
    assert_eq!((span.reason, span.count), (PassedAs::Blackout, 31 * 86_400));
    assert_eq!(
        (span.first, span.last),
        (at("2026-01-01T00:00:01Z"), at("2026-02-01T00:00:00Z"))
    );
}

#[test]
fn the_latest_tick_that_is_not_covered_is_owed() {
    let calendar = Calendar::new()
        .between(at("2026-01-01T10:00:00Z"), at("2026-01-01T10:10:00Z"))
        .between(at("2026-01-01T10:20:00Z"), at("2026-01-01T10:30:00Z"));
    let mut planner = Planner::default();
    let cursor = at("2026-01-01T09:55:00Z");
    planner.begin(0, rule("1m", &calendar), cursor, None, cursor);
    let now = at("2026-01-01T10:25:30Z");
    let step = planner.due(now, |_| false).remove(0).1.remove(0);
    assert_eq!((step.kind, step.tick), (StepKind::Owed, at("2026-01-01T10:19:00Z")));
    let told: Vec<_> = step.passed.iter().map(|span| (span.reason, span.count)).collect();
    let coalesced = PassedAs::Missed(MissedReason::Coalesced);
    assert_eq!(told, [(coalesced, 4), (PassedAs::Blackout, 10), (coalesced, 9)]);
    // While it runs the job rests; then what is covered is settled, and the next one runs in time.
    planner.rest(0, step.tick);
    planner.resume(0);
    let step = planner.due(now, |_| false).remove(0).1.remove(0);
    assert_eq!((step.kind, step.tick), (StepKind::Settle, at("2026-01-01T10:25:00Z")));
    assert_eq!(step.passed.iter().map(|span| span.count).sum::<u64>(), 6);
    planner.answered(0, step.tick);
    let step = planner.due(at("2026-01-01T10:30:00Z"), |_| false).remove(0).1.remove(0);
    assert_eq!((step.kind, step.tick), (StepKind::Run, at("2026-01-01T10:30:00Z")));
    assert_eq!((step.passed[0].reason, step.passed[0].count), (PassedAs::Blackout, 4));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Whatever the calendar, policy and lateness: every due tick has one place, in order, and the calendar alone says which are covered.
    #[test]
    fn every_tick_is_in_one_span_and_covered_ones_in_blackouts(
        spans in prop::collection::vec((0_i64..600, 0_i64..120), 0..8),
        policy in prop::sample::select(vec![crate::Missed::Skip, crate::Missed::Latest, crate::Missed::All]),
        most in 1_u32..20,
        period in 1_i64..20,
        jitter in 0_u64..3,
        steps in prop::collection::vec(1_i64..300, 1..12),
    ) {
        let start = at("2026-01-01T00:00:00Z");
        let second = |seconds: i64| start.checked_add(SignedDuration::from_secs(seconds)).unwrap();
        let mut calendar = Calendar::new();
        for (from, length) in spans {
            calendar = calendar.between(second(from), second(from + length));
        }
        let mut rule = rule(&format!("{period}s"), &calendar);
        rule.missed = policy;
        rule.max_missed = most;
        rule.jitter = std::time::Duration::from_secs(jitter);
        let mut planner = Planner::default();
        planner.begin(0, rule.clone(), start, None, start);
        let (mut cursor, mut now) = (start, 0);
        for step in steps {
            now += step;
            // Until nothing is due, with runs that end at once.
            for _ in 0..1000 {
                let due = planner.due(second(now), |_| false);
                let Some((_, decided)) = due.into_iter().next() else { break };
                for step in decided {
                    prop_assert_eq!(step.cursor, cursor);
                    for span in &step.passed {
                        prop_assert_eq!(Some(span.first), rule.schedule.next(cursor));
                        prop_assert_eq!(span.count, rule.schedule.count(cursor, span.last));
                        for tick in rule.schedule.ticks(cursor).take_while(|tick| *tick <= span.last) {
                            let covered = rule.blackouts.span_at(tick).is_some();
                            prop_assert_eq!(covered, span.reason == PassedAs::Blackout, "{}", tick);
                        }
                        cursor = span.last;
                    }
                    match step.kind {
                        StepKind::Settle => prop_assert_eq!(step.tick, cursor),
                        kind => {
                            prop_assert_eq!(Some(step.tick), rule.schedule.next(cursor));
                            prop_assert!(rule.blackouts.span_at(step.tick).is_none());
                            cursor = step.tick;
                            if kind == StepKind::Owed {
                                planner.rest(0, cursor);
                                planner.resume(0);
                                continue;
                            }
                        }
                    }
                    planner.answered(0, cursor);
                }
            }
            prop_assert_eq!(cursor.max(start), rule.newest_due(second(now)).unwrap().max(start));
        }
    }
}

#[test]
fn ranges_that_end_before_they_begin_are_named_and_no_others() {
    let (one, two) = (date(2026, 3, 2), date(2026, 3, 3));
    let (noon, one_o_clock) = (at("2026-03-02T12:00:00Z"), at("2026-03-02T13:00:00Z"));
    let fine = Calendar::new()
        .day(one)
        .days(one, two)
        .between(noon, noon)
        .between(noon, one_o_clock);
    assert_eq!(fine.reversed(), [""; 0]);
    let reversed = fine.days(two, one).between(one_o_clock, noon).reversed();
    assert_eq!(
        reversed,
        [
            "the days from 2026-03-03 to 2026-03-02",
            "the span from 2026-03-02T13:00:00Z to 2026-03-02T12:00:00Z",
        ]
    );
}

#[test]
fn days_can_be_collected() {
    let days = [date(2026, 3, 2), date(2026, 12, 25)];
    let by_hand = Calendar::new().day(days[0]).day(days[1]);
    assert_eq!(days.into_iter().collect::<Calendar>(), by_hand);
    let mut extended = Calendar::new().day(days[0]);
    extended.extend([days[1]]);
    assert_eq!(extended, by_hand);
}

/// The search for a stretch of open ticks begins and ends at these.
#[test]
fn spans_are_found_from_between_them() {
    let hour = |hour: u8| at(&format!("2026-03-02T{hour:02}:00:00Z"));
    let calendar = Calendar::new().between(hour(2), hour(3)).between(hour(8), hour(9));
    let blackouts = Blackouts::new([("upkeep", &calendar)], &zone("UTC"));
    for (at, begins_after, ended_before) in [
        (hour(1), Some(hour(2)), None),
        (hour(3), Some(hour(8)), Some(hour(3))),
        (hour(5), Some(hour(8)), Some(hour(3))),
        (hour(9), None, Some(hour(9))),
        (hour(23), None, Some(hour(9))),
    ] {
        assert_eq!(blackouts.begins_after(at), begins_after, "{at}");
        assert_eq!(blackouts.ended_before(at), ended_before, "{at}");
        assert_eq!(blackouts.span_at(at), None, "{at}");
    }
    // One that has begun is none that begins.
    assert_eq!(blackouts.begins_after(hour(2)), Some(hour(8)));
    assert_eq!(blackouts.span_at(hour(2)), Some((hour(2), hour(3))));
}

#[test]
fn what_covers_nothing_is_empty() {
    assert!(Blackouts::default().is_empty());
    let noon = at("2026-03-02T12:00:00Z");
    let nothing = Calendar::new().between(noon, noon);
    assert!(Blackouts::new([("upkeep", &nothing)], &zone("UTC")).is_empty());
    let day = Calendar::new().day(date(2026, 3, 2));
    assert!(!Blackouts::new([("upkeep", &day)], &zone("UTC")).is_empty());
}

#[test]
fn calendars_go_along_into_another_zone() {
    let day = Calendar::new().day(date(2026, 3, 2));
    let in_utc = Blackouts::new([("upkeep", &day)], &zone("UTC"));
    let in_berlin = in_utc.in_zone(&zone("Europe/Berlin"));
    assert_eq!(in_berlin, Blackouts::new([("upkeep", &day)], &zone("Europe/Berlin")));
    assert_ne!(in_berlin, in_utc);
    assert_eq!(in_berlin.in_zone(&zone("UTC")), in_utc);
}

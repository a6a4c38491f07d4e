//! Where the offsets lie, and that lateness is counted from when a tick is due.

use proptest::prelude::*;

use super::super::{Planner, Step, StepKind};
use super::*;
use crate::schedule::missed::{Missed, MissedReason};
use crate::schedule::{Schedule, Zone};

fn at(text: &str) -> Timestamp {
    format!("2026-03-02T{text}Z").parse().unwrap()
}

fn rule(schedule: Schedule, jitter: Duration) -> Rule {
    Rule {
        jitter,
        seed: seed("purge"),
        ..Rule::new(schedule)
    }
}

fn every_five_minutes(jitter: &str) -> Rule {
    let jitter = crate::schedule::parse_duration(jitter).unwrap();
    rule(Schedule::every("5m").unwrap(), jitter)
}

/// Periods, and cron expressions around changes of clocks and with gaps of years.
fn schedules() -> Vec<Schedule> {
    let cron = |expr: &str| Schedule::cron(expr).unwrap();
    let berlin = |expr: &str| cron(expr).in_zone(Zone::new("Europe/Berlin").unwrap()).unwrap();
    vec![
        Schedule::every("100ms").unwrap(),
        Schedule::every("1s").unwrap(),
        Schedule::every("7d").unwrap(),
        cron("* * * * * *"),
        cron("*/5 * * * *"),
        cron("0,1 3 * * *"),
        cron("0 0 29 2 *"),
        berlin("*/15 * * * *"),
        berlin("30 2 * * *"),
        berlin("0 1,2,3 * * *"),
    ]
}

/// Computed by another program, from the description alone: a change of these would move ticks between two versions of one fleet.
#[test]
fn offsets_are_those_of_every_build() {
    for (job, tick, short, long) in [
        ("purge", "2026-03-02T12:00:00Z", 20_855, 208_544),
        ("purge", "2026-03-02T12:05:00Z", 15_588, 155_882),
        ("purge", "2026-03-02T12:10:00Z", 21_610, 216_096),
        ("purge", "1969-12-31T23:55:00Z", 22_967, 229_671),
        ("invoices", "2026-03-02T12:00:00Z", 17_250, 172_503),
        ("invoices", "2026-03-02T12:05:00Z", 24_552, 245_512),
        ("invoices", "2026-03-02T12:10:00Z", 24_628, 246_272),
        ("invoices", "1969-12-31T23:55:00Z", 15_743, 157_429),
    ] {
        let tick = tick.parse().unwrap();
        for (jitter, offset) in [("30s", short), ("5m", long), ("2h", long), ("0s", 0)] {
            let rule = Rule {
                seed: seed(job),
                ..every_five_minutes(jitter)
            };
            assert_eq!(rule.offset(tick), offset, "{job} {tick} {jitter}");
        }
    }
}

#[test]
fn offsets_fill_their_range_evenly() {
    let rule = every_five_minutes("100s");
    let mut tenths = [0; 10];
    for tick in rule.schedule.ticks(at("00:00:00")).take(10_000) {
        let offset = usize::try_from(rule.offset(tick)).unwrap();
        assert!(offset <= 100_000);
        tenths[(offset / 10_000).min(9)] += 1;
    }
    assert!(tenths.iter().all(|count| (850..1150).contains(count)), "{tenths:?}");
    // Jobs of one schedule do not start together.
    let offset = |n: u32| {
        let seed = seed(&format!("job-{n}"));
        Rule { seed, ..rule.clone() }.offset(at("12:00:00"))
    };
    let mut offsets: Vec<_> = (0..1000).map(offset).collect();
    offsets.sort_unstable();
    offsets.dedup();
    assert!(offsets.len() > 980, "{} of 1000 are different", offsets.len());
}

#[test]
fn the_last_tick_is_held_by_its_jitter_alone() {
    let last = "2030-01-01T00:00:00Z".parse().unwrap();
    let rule = rule(
        Schedule::cron("0 0 0 1 1 * 2026,2030").unwrap(),
        Duration::from_secs(3600),
    );
    assert_eq!(rule.schedule.next(last), None);
    let due = rule.due(last);
    assert!(due > last && due <= last + SignedDuration::from_hours(1), "{due}");
    assert!(rule.is_in_time(last, due + SignedDuration::from_secs(5)));
    assert!(!rule.is_in_time(last, due + SignedDuration::from_millis(5001)));
}

proptest! {
    #[test]
    fn a_tick_is_due_from_its_instant_until_before_the_next(
        which in 0_usize..10,
        from in 1_700_000_000_i64..2_000_000_000,
        jitter in 0_u64..1_000_000_000,
    ) {
        let rule = rule(schedules().swap_remove(which), Duration::from_millis(jitter));
        let from = Timestamp::from_second(from).unwrap();
        for tick in rule.schedule.ticks(from).take(5) {
            let due = rule.due(tick);
            let next = rule.schedule.next(tick).unwrap();
            prop_assert!(tick <= due && due < next, "{tick} {due} {next}");
            prop_assert!(due.duration_since(tick) <= SignedDuration::from_millis(i64::try_from(jitter).unwrap()));
            prop_assert_eq!(due.subsec_nanosecond() % 1_000_000, 0);
            prop_assert_eq!(due, rule.clone().due(tick));
            let just_before = due - SignedDuration::from_nanos(1);
            prop_assert_eq!(rule.newest_due(due), Some(tick));
            prop_assert!(rule.newest_due(just_before).is_none_or(|newest| newest < tick));
            prop_assert_eq!(rule.first_due(due), Some(tick));
            prop_assert!(rule.first_due(due + SignedDuration::from_nanos(1)) == Some(next));
        }
    }

    /// Whatever is given, no tick simply runs when it is older than the distance to the next.
    #[test]
    fn grace_ends_with_the_distance_to_the_next_tick(
        which in 0_usize..10,
        from in 1_700_000_000_i64..2_000_000_000,
        grace in prop::sample::select(vec![0, 1, 5_000, 86_400_000, u64::MAX]),
        jitter in prop::sample::select(vec![0, 50, 30_000, 400_000_000_000]),
    ) {
        let mut rule = rule(schedules().swap_remove(which), Duration::from_millis(jitter));
        rule.grace = Duration::from_millis(grace);
        for tick in rule.schedule.ticks(Timestamp::from_second(from).unwrap()).take(5) {
            let due = rule.due(tick);
            let distance = rule.schedule.next(tick).unwrap().duration_since(tick);
            let end = distance.min(signed(rule.grace));
            prop_assert!(rule.is_in_time(tick, due) && rule.is_in_time(tick, due + end));
            prop_assert!(!rule.is_in_time(tick, due + end + SignedDuration::from_nanos(1)));
        }
    }
}

// The ticks of `purge`, every five minutes with a jitter of 30 s:
// 12:00 is due at 12:00:20.855, 12:05 at 12:05:15.588, 12:10 at 12:10:21.610.

fn planner(rule: Rule, cursor: &str, late_from: Option<&str>, now: &str) -> Planner {
    let mut planner = Planner::default();
    planner.begin(0, rule, at(cursor), late_from.map(at), at(now));
    planner
}

fn steps(planner: &mut Planner, now: &str) -> Vec<Step> {
    planner
        .due(at(now), |_| false)
        .pop()
        .map_or_else(Vec::new, |(_, steps)| steps)
}

type Shown = (String, StepKind, Option<(MissedReason, u64)>);

fn shown(planner: &mut Planner, now: &str) -> Vec<Shown> {
    let show = |step: Step| {
        let tick = step.tick.strftime("%H:%M:%S").to_string();
        let passed = step
            .passed
            .first()
            .map(|passed| (crate::schedule::planner::tests::missed(passed.reason), passed.count));
        (tick, step.kind, passed)
    };
    steps(planner, now).into_iter().map(show).collect()
}

fn run(tick: &str) -> Vec<Shown> {
    vec![(tick.to_owned(), StepKind::Run, None)]
}

#[test]
fn a_tick_runs_when_it_is_due_and_keeps_its_name() {
    let mut planner = planner(every_five_minutes("30s"), "11:58:00", None, "11:58:00");
    assert_eq!(planner.next_wake(), Some(at("12:00:20.855")));
    assert_eq!(steps(&mut planner, "12:00:20.854"), []);
    assert_eq!(shown(&mut planner, "12:00:20.855"), run("12:00:00"));
    planner.answered(0, at("12:00:00"));
    assert_eq!(planner.next_wake(), Some(at("12:05:15.588")));
    assert_eq!(shown(&mut planner, "12:05:16"), run("12:05:00"));
}

/// A successor that comes between the planned instant and the offset's end finds nothing late and nothing missed.
#[test]
fn a_take_over_before_a_tick_is_due_waits_for_it() {
    for missed in [Missed::Skip, Missed::Latest] {
        let rule = Rule {
            missed,
            ..every_five_minutes("30s")
        };
        let mut planner = planner(rule, "11:55:00", None, "12:00:10");
        assert_eq!(planner.next_wake(), Some(at("12:00:20.855")));
        assert_eq!(steps(&mut planner, "12:00:10"), []);
        assert_eq!(shown(&mut planner, "12:00:25.855"), run("12:00:00"));
    }
}

#[test]
fn a_tick_is_missed_by_its_age_since_it_was_due() {
    let decided = |missed: Missed, now: &str| {
        let rule = Rule {
            missed,
            ..every_five_minutes("30s")
        };
        shown(&mut planner(rule, "11:50:00", None, now), now)
    };
    let skipped = Some((MissedReason::Skipped, 2));
    assert_eq!(
        decided(Missed::Skip, "12:00:25.855"),
        [("12:00:00".to_owned(), StepKind::Run, Some((MissedReason::Skipped, 1)))]
    );
    assert_eq!(
        decided(Missed::Skip, "12:00:25.856"),
        [("12:00:00".to_owned(), StepKind::Settle, skipped)]
    );
    assert_eq!(
        decided(Missed::Latest, "12:00:25.856"),
        [(
            "12:00:00".to_owned(),
            StepKind::Owed,
            Some((MissedReason::Coalesced, 1))
        )]
    );
    // 12:05 is planned and not due: it is nobody's business yet.
    assert_eq!(
        decided(Missed::Skip, "12:05:15"),
        [("12:00:00".to_owned(), StepKind::Settle, skipped)]
    );
}

/// Offsets bring ticks nearer to each other than they are planned: of two that are due, both may be within their grace. They are
/// run one after the other.
#[test]
fn a_tick_within_its_grace_runs_though_the_next_is_due() {
    let rule = Rule {
        missed: Missed::Skip,
        grace: Duration::from_secs(30),
        ..every_five_minutes("5m")
    };
    let due_soon_after = |first: &Timestamp| {
        let second = rule.schedule.next(*first).unwrap();
        rule.due(second).duration_since(rule.due(*first)) < SignedDuration::from_secs(20)
    };
    let first = rule.schedule.ticks(at("12:00:00")).find(due_soon_after).unwrap();
    let second = rule.schedule.next(first).unwrap();
    let cursor = before(&rule.schedule, first).unwrap();
    let decided = |planner: &mut Planner, now: Timestamp| {
        let steps = planner.due(now, |_| false).pop().unwrap().1;
        let shown = |step: &Step| (step.tick, step.kind, step.passed.first().map(|passed| passed.count));
        steps.iter().map(shown).collect::<Vec<_>>()
    };
    let from = |cursor: Timestamp, now: Timestamp| {
        let mut planner = Planner::default();
        planner.begin(0, rule.clone(), cursor, None, now);
        let steps = decided(&mut planner, now);
        (planner, steps)
    };
    let now = rule.due(second);
    assert!(rule.is_in_time(first, now));
    let (mut planner, steps) = from(cursor, now);
    assert_eq!(steps, [(first, StepKind::Owed, None)]);
    planner.rest(0, first);
    planner.resume(0);
    // Whatever the first has taken.
    let later = rule.due(second) + SignedDuration::from_secs(40);
    assert_eq!(decided(&mut planner, later), [(second, StepKind::Run, None)]);
    // What is older is missed, and what was decided is not looked at again.
    let (_, steps) = from(before(&rule.schedule, cursor).unwrap(), now);
    assert_eq!(steps, [(first, StepKind::Owed, Some(1))]);
    assert_eq!(from(first, now).1, [(second, StepKind::Run, None)]);
    // Out of its grace it is missed like any other.
    let later = rule.due(first) + SignedDuration::from_secs(31);
    assert_eq!(from(cursor, later).1, [(second, StepKind::Run, Some(1))]);
}

/// What a drain kept from running is late by when it was due, wherever it was planned.
#[test]
fn what_fell_due_in_a_drain_is_late() {
    let rule = || Rule {
        missed: Missed::Skip,
        ..every_five_minutes("30s")
    };
    let owed = |tick: &str, passed| [(tick.to_owned(), StepKind::Owed, passed)];
    // Planned before the drain, due in it.
    let mut within = planner(rule(), "11:55:00", Some("12:00:10"), "12:01:00");
    assert_eq!(shown(&mut within, "12:01:00"), owed("12:00:00", None));
    // Due before it, and nobody ran it.
    let mut before = planner(rule(), "11:55:00", Some("12:00:21"), "12:06:00");
    let skipped = Some((MissedReason::Skipped, 1));
    assert_eq!(shown(&mut before, "12:06:00"), owed("12:05:00", skipped));
    // Planned in it, due after the take-over: like any other.
    let mut after = planner(rule(), "11:55:00", Some("11:59:00"), "12:00:10");
    assert_eq!(shown(&mut after, "12:00:21"), run("12:00:00"));
}

#[test]
fn ticks_behind_an_owed_run_keep_their_order_and_their_offsets() {
    let mut planner = planner(every_five_minutes("5m"), "11:55:00", None, "12:04:00");
    // 12:00 is due at 12:03:28.544, and missed by now.
    assert_eq!(
        shown(&mut planner, "12:04:00"),
        [("12:00:00".to_owned(), StepKind::Owed, None)]
    );
    planner.rest(0, at("12:00:00"));
    planner.resume(0);
    // 12:05 is due at 12:07:35.882.
    assert_eq!(planner.next_wake(), Some(at("12:07:35.882")));
    assert_eq!(shown(&mut planner, "12:12:00"), run("12:05:00"));
    planner.answered(0, at("12:05:00"));
    assert_eq!(planner.next_wake(), Some(at("12:13:36.096")));
}

/// Neither outlasts the distance to the next tick.
#[test]
fn grace_and_jitter_in_force_end_with_the_distance() {
    let seconds = Duration::from_secs;
    let rule = Rule {
        grace: seconds(60),
        jitter: seconds(30),
        ..Rule::new(Schedule::every("10s").unwrap())
    };
    let tick = Some(at("12:00:00"));
    assert_eq!(rule.in_force(tick), (seconds(10), Duration::from_millis(9_999)));
    assert_eq!(rule.in_force(None), (seconds(60), seconds(30)));
    let short = Rule {
        grace: seconds(5),
        jitter: seconds(2),
        ..rule
    };
    assert_eq!(short.in_force(tick), (seconds(5), seconds(2)));
}

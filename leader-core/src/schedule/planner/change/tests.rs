//! When another schedule comes into force, and that no tick of either is eaten, doubled or made up by that.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::*;
use crate::schedule::Zone;
use crate::schedule::blackout::{Blackouts, Calendar};
use crate::schedule::missed::Missed;
use crate::schedule::planner::seed;

fn at(text: &str) -> Timestamp {
    format!("2026-03-02T{text}Z").parse().unwrap()
}

fn cron(expr: &str) -> Schedule {
    Schedule::cron(expr).unwrap()
}

fn rule(schedule: Schedule, missed: Missed) -> Rule {
    Rule {
        missed,
        ..Rule::new(schedule)
    }
}

fn steps(planner: &mut Planner, now: &str) -> Vec<(String, StepKind)> {
    let due = planner.due(at(now), |_| false).pop();
    let show = |step: Step| (step.tick.strftime("%H:%M:%S%.f").to_string(), step.kind);
    due.map(|(_, steps)| steps.into_iter().map(show).collect())
        .unwrap_or_default()
}

fn planner(rule: Rule, cursor: &str, now: &str) -> Planner {
    let mut planner = Planner::default();
    planner.begin(0, rule, at(cursor), None, at(now));
    planner.change(0, Change::WhenDecided);
    planner
}

#[test]
fn with_nothing_due_the_change_is_made_at_once() {
    let mut planner = planner(rule(cron("0 9 * * *"), Missed::Latest), "00:00:00", "08:00:00.25");
    assert_eq!(
        steps(&mut planner, "08:00:00.25"),
        [("08:00:00.25".to_owned(), StepKind::Adopt)]
    );
    assert_eq!(steps(&mut planner, "08:00:01"), [], "busy until answered");
    planner.changed(0, cron("0 10 * * *"), at("08:00:00.25"));
    assert_eq!(planner.next_wake(), Some(at("10:00:00")));
}

/// An expression that is edited after its time does not fire for the past: `0 9` becomes `0 8` at 09:00:30, and the next is tomorrow.
#[test]
fn case_40_an_edit_never_fires_for_the_past() {
    let mut planner = planner(rule(cron("0 9 * * *"), Missed::Latest), "09:00:00", "09:00:30");
    assert_eq!(
        steps(&mut planner, "09:00:30"),
        [("09:00:30".to_owned(), StepKind::Adopt)]
    );
    planner.changed(0, cron("0 8 * * *"), at("09:00:30"));
    assert_eq!(
        planner.next_wake(),
        Some(at("08:00:00") + SignedDuration::from_hours(24))
    );
}

/// A tick of the schedule in force that is due when the leader comes is run first, whatever the new one says.
#[test]
fn what_is_due_by_the_present_schedule_is_decided_first() {
    for (missed, now, kind) in [
        (Missed::Latest, "09:00:00", StepKind::Run),
        (Missed::Latest, "09:00:00.5", StepKind::Run),
        (Missed::Latest, "11:00:00", StepKind::Owed),
        (Missed::All, "11:00:00", StepKind::Owed),
        (Missed::Skip, "11:00:00", StepKind::Settle),
    ] {
        let mut planner = planner(rule(cron("0 9 * * *"), missed), "00:00:00", now);
        assert_eq!(steps(&mut planner, now), [("09:00:00".to_owned(), kind)]);
        if kind == StepKind::Owed {
            planner.rest(0, at("09:00:00"));
            assert_eq!(steps(&mut planner, "12:00:00"), [], "an owed run is run through");
            planner.resume(0);
        } else {
            planner.answered(0, at("09:00:00"));
        }
        assert_eq!(
            steps(&mut planner, "12:00:00"),
            [("12:00:00".to_owned(), StepKind::Adopt)]
        );
    }
}

/// Planned, and not due yet: it belongs to the schedule that is in force at its planned instant.
#[test]
fn a_tick_that_jitter_holds_back_is_waited_for() {
    let rule = Rule {
        jitter: Duration::from_secs(1_800),
        seed: seed("job"),
        ..rule(cron("0 9 * * *"), Missed::Latest)
    };
    let due = rule.due(at("09:00:00"));
    assert!(due > at("09:00:01"), "the seed was chosen so: {due}");
    let mut planner = planner(rule, "00:00:00", "09:00:00.5");
    assert_eq!(steps(&mut planner, "09:00:00.5"), []);
    assert_eq!(planner.next_wake(), Some(due));
    let due_steps = planner.due(due, |_| false).remove(0).1;
    assert_eq!(due_steps[0].tick, at("09:00:00"));
    planner.answered(0, at("09:00:00"));
    assert_eq!(
        steps(&mut planner, "09:45:00"),
        [("09:45:00".to_owned(), StepKind::Adopt)]
    );
    // What the new one would have had in between was never in force.
    planner.changed(0, cron("5 9 * * *"), at("09:45:00"));
    assert_eq!(
        planner.next_wake(),
        (Some(
            planner
                .rule(0)
                .unwrap()
                .due(at("09:05:00") + SignedDuration::from_hours(24))
        ))
    );
}

#[test]
fn a_schedule_that_has_ended_is_changed_too_even_later() {
    let ended = Schedule::cron_with("0 0 0 1 1 * 2025", crate::schedule::Days::Unsaid).unwrap();
    let mut planner = Planner::default();
    planner.begin(0, rule(ended, Missed::Latest), at("00:00:00"), None, at("08:00:00"));
    assert_eq!(planner.next_wake(), None);
    planner.change(0, Change::WhenDecided);
    assert_eq!(
        steps(&mut planner, "08:00:00"),
        [("08:00:00".to_owned(), StepKind::Adopt)]
    );
}

/// The newer version is there again before the change was made.
#[test]
fn a_change_may_be_taken_back() {
    let mut planner = planner(rule(cron("0 9 * * *"), Missed::Latest), "00:00:00", "08:00:00");
    planner.change(0, Change::No);
    assert_eq!(steps(&mut planner, "08:00:00"), []);
    assert_eq!(planner.next_wake(), Some(at("09:00:00")));
}

#[test]
fn one_that_cannot_be_read_is_replaced_at_once_and_decides_nothing() {
    let mut planner = Planner::default();
    planner.begin(
        0,
        rule(cron("0 9 * * *"), Missed::All),
        at("00:00:00"),
        None,
        at("11:00:00"),
    );
    planner.change(0, Change::AtOnce);
    assert_eq!(
        steps(&mut planner, "11:00:00"),
        [("11:00:00".to_owned(), StepKind::Adopt)]
    );
}

/// Nothing is due by either before that, and the change can wait.
#[test]
fn a_cursor_in_the_future_is_where_the_change_is_made() {
    let mut planner = planner(rule(cron("0 9 * * *"), Missed::Latest), "15:00:00", "11:00:00");
    assert_eq!(steps(&mut planner, "11:00:00"), []);
    assert_eq!(planner.next_wake(), Some(at("15:00:00")));
    assert_eq!(
        steps(&mut planner, "15:00:00"),
        [("15:00:00".to_owned(), StepKind::Adopt)]
    );
}

#[test]
fn a_job_that_is_held_changes_all_the_same() {
    let mut planner = planner(rule(cron("0 9 * * *"), Missed::Latest), "00:00:00", "08:00:00");
    let due = planner.due(at("08:00:00"), |_| true);
    assert!(matches!(&due[..], [(0, steps)] if steps[0].kind == StepKind::Adopt));
}

/// splitmix64 (Steele, Lea and Flood, 2014).
struct Choice(u64);

impl Choice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }
}

/// The store of one job: what it keeps, and what was decided by whom.
struct World {
    cursor: Timestamp,
    schedule: Schedule,
    /// Each schedule and the instant after which its ticks are.
    history: Vec<(Timestamp, Schedule)>,
    decided: Vec<Timestamp>,
}

impl World {
    /// What a claim does, for a planner that has the job's own schedule `own`.
    fn answer(&mut self, planner: &mut Planner, own: &Schedule, step: &Step) {
        assert_eq!(step.cursor, self.cursor, "{step:?}");
        if step.kind == StepKind::Adopt {
            self.cursor = step.tick;
            self.schedule = own.clone();
            self.history.push((step.tick, own.clone()));
            planner.changed(0, own.clone(), step.tick);
            return;
        }
        let passed = step.passed.iter();
        for span in passed {
            let ticks = self.schedule.ticks(self.cursor).take_while(|tick| *tick <= span.last);
            let ticks: Vec<_> = ticks.filter(|tick| *tick >= span.first).collect();
            assert_eq!(ticks.len() as u64, span.count, "{span:?}");
            self.decided.extend(ticks);
        }
        if step.kind != StepKind::Settle {
            self.decided.push(step.tick);
        }
        self.cursor = step.tick;
        if step.kind == StepKind::Owed {
            planner.rest(0, step.tick);
            planner.resume(0);
        } else {
            planner.answered(0, step.tick);
        }
    }
}

/// Random edits, handovers and times: every tick of the schedule in force at its planned instant is decided exactly once, in order, and
/// none of another schedule is.
#[test]
fn exactly_the_ticks_of_the_schedule_in_force_are_decided_whatever_is_edited() {
    let schedules = [
        cron("0 9 * * *"),
        cron("0 10 * * *"),
        cron("*/20 9,10 * * *"),
        cron("30 2 * * *").in_zone("Europe/Berlin".parse().unwrap()).unwrap(),
        Schedule::every("37m").unwrap(),
        Schedule::every("7s").unwrap(),
    ];
    let (mut changes, mut ticks) = (0, 0);
    for sequence in 0..300 {
        let mut choice = Choice(sequence);
        let start = at("08:59:00");
        let first = schedules[0].clone();
        let mut world = World {
            cursor: start,
            schedule: first.clone(),
            history: vec![(start, first)],
            decided: Vec::new(),
        };
        let mut now = start;
        for _ in 0..40 {
            // A leader of its own build, which may have another schedule, policy and jitter.
            let own = &schedules[usize::try_from(choice.below(6)).unwrap()];
            let rule = Rule {
                missed: [Missed::Skip, Missed::Latest, Missed::All][usize::try_from(choice.below(3)).unwrap()],
                jitter: Duration::from_secs([0, 0, 5, 900][usize::try_from(choice.below(4)).unwrap()]),
                seed: seed("job"),
                ..Rule::new(world.schedule.clone())
            };
            let mut planner = Planner::default();
            let late_from = (choice.below(3) == 0).then_some(now - SignedDuration::from_secs(10));
            planner.begin(0, rule, world.cursor, late_from, now);
            if world.schedule != *own && choice.below(4) > 0 {
                planner.change(0, Change::WhenDecided);
            }
            for _ in 0..choice.below(6) {
                // Often exactly when something is due, or planned.
                now = match choice.below(4) {
                    0 => planner.next_wake().map_or(now, |wake| wake.max(now)),
                    1 => world.schedule.next(now).unwrap(),
                    2 => now + SignedDuration::from_millis(i64::try_from(choice.below(20_000)).unwrap()),
                    _ => now + SignedDuration::from_secs(i64::try_from(choice.below(9_000)).unwrap()),
                };
                for _ in 0..200 {
                    let due = planner.due(now, |_| false);
                    let Some((_, steps)) = due.first() else { break };
                    for step in steps {
                        world.answer(&mut planner, own, step);
                    }
                }
            }
        }
        changes += world.history.len() - 1;
        ticks += world.decided.len();
        let until = world.history.iter().skip(1).map(|(since, _)| *since);
        let until = until.chain([world.cursor]);
        let expected: Vec<_> = (world.history.iter().zip(until))
            .flat_map(|((since, schedule), until)| schedule.ticks(*since).take_while(move |tick| *tick <= until))
            .collect();
        assert_eq!(world.decided, expected, "sequence {sequence}: {:?}", world.history);
    }
    assert!(changes > 1_000 && ticks > 10_000, "{changes} changes, {ticks} ticks");
}

#[test]
fn a_job_that_is_forgotten_is_planned_no_more() {
    let mut planner = planner(rule(cron("0 9 * * *"), Missed::Latest), "00:00:00", "08:00:00");
    assert!(planner.rule(0).is_some());
    planner.forget(0);
    assert!(planner.rule(0).is_none());
    assert_eq!(planner.next_wake(), None);
}

/// The day of a calendar is that of the schedule's zone: Tokyo's begins at 15:00 UTC of the day before.
#[test]
fn calendars_go_over_to_the_zone_of_another_schedule() {
    let freeze = Calendar::new().day(jiff::civil::date(2026, 3, 3));
    let rule = Rule {
        blackouts: Blackouts::new([("freeze", &freeze)], &Zone::UTC),
        ..rule(cron("0 * * * *"), Missed::Latest)
    };
    assert_eq!(rule.next_open(at("15:00:00")), Some(at("16:00:00")));
    let tokyo = rule.with_schedule(cron("0 * * * *").in_zone(Zone::new("Asia/Tokyo").unwrap()).unwrap());
    assert_eq!(tokyo.next_open(at("13:30:00")), Some(at("14:00:00")));
    assert_eq!(
        tokyo.next_open(at("14:00:00")),
        Some("2026-03-03T15:00:00Z".parse().unwrap())
    );
}

//! Given a cursor and a time, exactly these steps.

use super::*;
use crate::schedule::missed::{MissedReason, PassedAs};

fn at(text: &str) -> Timestamp {
    format!("2026-03-02T{text}Z").parse().unwrap()
}

fn rule(schedule: Schedule, missed: Missed) -> Rule {
    Rule {
        missed,
        ..Rule::new(schedule)
    }
}

fn planner(every: &str, missed: Missed, cursor: &str, late_from: Option<&str>) -> Planner {
    let rule = rule(Schedule::every(every).unwrap(), missed);
    let mut planner = Planner::default();
    planner.begin(0, rule, at(cursor), late_from.map(at), at("12:00:38"));
    planner
}

pub(super) fn missed(reason: PassedAs) -> MissedReason {
    match reason {
        PassedAs::Missed(reason) => reason,
        PassedAs::Blackout => panic!("no calendar here"),
    }
}

type Shown = (String, StepKind, Option<(MissedReason, u64)>);

fn steps(planner: &mut Planner, now: &str) -> Vec<Shown> {
    let mut due = planner.due(at(now), |_| false);
    let steps = due.pop().map(|(_, steps)| steps).unwrap_or_default();
    let show = |step: Step| {
        let tick = step.tick.strftime("%H:%M:%S").to_string();
        assert!(step.passed.len() < 2, "{step:?}");
        let passed = step.passed.first().map(|passed| (missed(passed.reason), passed.count));
        (tick, step.kind, passed)
    };
    steps.into_iter().map(show).collect()
}

#[test]
fn a_tick_runs_when_it_is_due_and_not_before() {
    let mut planner = planner("10s", Missed::Latest, "12:00:00", None);
    assert_eq!(planner.next_wake(), Some(at("12:00:10")));
    assert_eq!(steps(&mut planner, "12:00:09.999"), []);
    assert_eq!(
        steps(&mut planner, "12:00:10"),
        [("12:00:10".to_owned(), StepKind::Run, None)]
    );
}

/// A timer that wakes early, or twice, never fires a tick twice (robfig/cron#94, kelektiv#243, node-cron PR 116, `good_job#1543`, sidekiq-cron#89).
#[test]
fn case_4_leases_29_an_early_timer_fires_nothing_twice() {
    let mut planner = planner("10s", Missed::Latest, "12:00:00", None);
    assert_eq!(steps(&mut planner, "12:00:09.999"), []);
    assert_eq!(planner.next_wake(), Some(at("12:00:10")));
    assert_eq!(steps(&mut planner, "12:00:10").len(), 1);
    assert_eq!(steps(&mut planner, "12:00:10.001"), [], "busy until answered");
    planner.answered(0, at("12:00:10"));
    assert_eq!(planner.next_wake(), Some(at("12:00:20")));
    assert_eq!(steps(&mut planner, "12:00:10.002"), []);
}

#[test]
fn within_grace_a_tick_is_late_and_simply_runs() {
    for missed in [Missed::Skip, Missed::Latest] {
        let mut planner = planner("10s", missed, "12:00:00", None);
        assert_eq!(
            steps(&mut planner, "12:00:15"),
            [("12:00:10".to_owned(), StepKind::Run, None)]
        );
    }
}

/// Hours down do not become hundreds of runs (Hangfire#1591, jobrunr#940).
#[test]
fn case_37_older_ticks_are_missed_and_the_policy_decides() {
    let mut skip = planner("10s", Missed::Skip, "12:00:00", None);
    assert_eq!(
        steps(&mut skip, "13:00:06"),
        [(
            "13:00:00".to_owned(),
            StepKind::Settle,
            Some((MissedReason::Skipped, 360))
        )]
    );
    let mut skip = planner("10s", Missed::Skip, "12:00:00", None);
    assert_eq!(
        steps(&mut skip, "13:00:02"),
        [("13:00:00".to_owned(), StepKind::Run, Some((MissedReason::Skipped, 359)))]
    );
    let mut latest = planner("10s", Missed::Latest, "12:00:00", None);
    assert_eq!(
        steps(&mut latest, "13:00:06"),
        [(
            "13:00:00".to_owned(),
            StepKind::Owed,
            Some((MissedReason::Coalesced, 359))
        )]
    );
}

#[test]
fn later_ticks_queue_behind_an_owed_run_as_late() {
    let mut planner = planner("10s", Missed::Latest, "12:00:00", None);
    // 12:00:30 is missed and owed, 12:00:40 is late and waits for it.
    let first = steps(&mut planner, "12:00:42");
    assert_eq!(
        first,
        [(
            "12:00:30".to_owned(),
            StepKind::Owed,
            Some((MissedReason::Coalesced, 2))
        )]
    );
    planner.rest(0, at("12:00:30"));
    assert_eq!(planner.next_wake(), None);
    assert_eq!(steps(&mut planner, "12:01:05"), []);
    planner.resume(0);
    let then = steps(&mut planner, "12:01:05");
    let ticks: Vec<_> = then.iter().map(|step| step.0.as_str()).collect();
    assert_eq!(ticks, ["12:00:40", "12:00:50", "12:01:00"]);
    assert!(then.iter().all(|step| step.1 == StepKind::Run && step.2.is_none()));
    planner.answered(0, at("12:01:00"));
    assert_eq!(planner.next_wake(), Some(at("12:01:10")));
}

/// What fell due while the predecessor drained is late, whatever the policy (sidekiq#6804, #6656; `good_job`#1484).
#[test]
fn case_35_ticks_of_a_drain_are_late() {
    for missed in [Missed::Skip, Missed::Latest] {
        let mut planner = planner("10s", missed, "12:00:00", Some("12:00:05"));
        for tick in ["12:00:10", "12:00:20", "12:00:30"] {
            assert_eq!(
                steps(&mut planner, "12:00:38"),
                [(tick.to_owned(), StepKind::Owed, None)]
            );
            planner.rest(0, at(tick));
            assert_eq!(planner.next_wake(), None, "one after another");
            planner.resume(0);
        }
        assert_eq!(
            steps(&mut planner, "12:00:40"),
            [("12:00:40".to_owned(), StepKind::Run, None)]
        );
    }
    let mut planner = planner("10s", Missed::Skip, "12:00:00", Some("12:00:15"));
    assert_eq!(
        steps(&mut planner, "12:00:38"),
        [("12:00:20".to_owned(), StepKind::Owed, Some((MissedReason::Skipped, 1))),]
    );
}

#[test]
fn a_long_queue_of_late_ticks_is_cut_into_decisions() {
    let mut planner = planner("1s", Missed::Latest, "12:00:00", None);
    // An owed run took five minutes.
    planner.rest(0, at("12:00:00"));
    planner.resume(0);
    let first = planner.due(at("12:05:00"), |_| false).pop().unwrap().1;
    assert_eq!(first.len(), AT_ONCE);
    planner.answered(0, first.last().unwrap().tick);
    let second = planner.due(at("12:05:00"), |_| false).pop().unwrap().1;
    assert_eq!(second[0].cursor, first.last().unwrap().tick);
    assert!(second.iter().all(|step| step.kind == StepKind::Run));
}

#[test]
fn a_held_job_is_decided_when_it_is_let_go() {
    let mut planner = planner("10s", Missed::Latest, "12:00:00", None);
    assert!(planner.due(at("12:00:10"), |_| true).is_empty());
    assert_eq!(planner.next_wake(), None);
    planner.release(0);
    assert_eq!(
        steps(&mut planner, "12:00:11"),
        [("12:00:10".to_owned(), StepKind::Run, None)]
    );
}

#[test]
fn a_forgotten_job_wakes_nobody() {
    let mut planner = planner("10s", Missed::Latest, "12:00:00", None);
    planner.end(0);
    assert_eq!(planner.next_wake(), None);
    planner.answered(0, at("12:00:10"));
    assert_eq!(planner.next_wake(), None);
}

#[test]
fn a_decision_that_was_not_carried_out_is_made_by_age() {
    let mut planner = planner("10s", Missed::Skip, "12:00:00", Some("12:00:05"));
    assert_eq!(steps(&mut planner, "12:00:12").len(), 1);
    planner.again(0);
    assert_eq!(
        steps(&mut planner, "12:00:38"),
        [(
            "12:00:30".to_owned(),
            StepKind::Settle,
            Some((MissedReason::Skipped, 3))
        )]
    );
}

/// A re-elected leader goes on from where others got to, never from where it stopped itself (sidekiq#3974, jobrunr#808).
#[test]
fn case_31_the_cursor_is_read_anew_at_each_term() {
    let mut planner = planner("10s", Missed::Latest, "12:00:00", None);
    planner.end(0);
    let rule = rule(Schedule::every("10s").unwrap(), Missed::Latest);
    planner.begin(0, rule, at("17:00:00"), None, at("17:00:00"));
    assert_eq!(steps(&mut planner, "17:00:03"), []);
    assert_eq!(planner.next_wake(), Some(at("17:00:10")));
}

/// What a store forgets, the instance that ran it does not.
#[test]
fn a_cursor_that_went_back_repeats_nothing_here() {
    let mut planner = planner("10s", Missed::Latest, "12:00:00", None);
    assert_eq!(steps(&mut planner, "12:00:10").len(), 1);
    planner.answered(0, at("12:00:10"));
    let rule = planner.plans[&0].rule.clone();
    planner.end(0);
    planner.begin(0, rule.clone(), at("12:00:00"), None, at("12:00:15"));
    assert_eq!(planner.next_wake(), Some(at("12:00:20")));
    planner.end(0);
    planner.begin(0, rule, at("12:00:30"), None, at("12:00:35"));
    assert_eq!(planner.next_wake(), Some(at("12:00:40")), "another has gone on");
}

/// Everything that passes, and the tick of the step.
type CatchUp = (Vec<(MissedReason, u64)>, Option<(String, StepKind)>);

fn catch_up(rule: Rule, cursor: &str, now: &str) -> CatchUp {
    let mut planner = Planner::default();
    planner.begin(0, rule, at(cursor), None, at(now));
    let (_, steps) = planner.due(at(now), |_| false).pop().unwrap();
    let passed = steps[0]
        .passed
        .iter()
        .map(|passed| (missed(passed.reason), passed.count));
    let step = steps
        .first()
        .map(|step| (step.tick.strftime("%H:%M:%S").to_string(), step.kind));
    // What passes is in order and without a gap.
    let mut ends: Vec<_> = steps[0]
        .passed
        .iter()
        .flat_map(|passed| [passed.first, passed.last])
        .collect();
    ends.push(steps[0].tick);
    assert!(ends.is_sorted(), "{steps:?}");
    (passed.collect(), step)
}

#[test]
fn all_missed_ticks_run_within_their_bounds_oldest_first() {
    use MissedReason::{Coalesced, OverLimit, TooOld};
    let every = || Schedule::every("10m").unwrap();
    let rule = |missed, max_missed, max_age: u64| Rule {
        missed,
        max_missed,
        max_age: Some(Duration::from_secs(60 * max_age)),
        ..Rule::new(every())
    };
    // 12 ticks are missed: 10:10 to 12:00.
    let owed = |tick: &str| Some((tick.to_owned(), StepKind::Owed));
    let settled = Some(("12:00:00".to_owned(), StepKind::Settle));
    for (missed, max_missed, max_age, passed, step) in [
        (Missed::All, 100, 1000, vec![], owed("10:10:00")),
        (Missed::All, 12, 1000, vec![], owed("10:10:00")),
        (Missed::All, 11, 1000, vec![(OverLimit, 1)], owed("10:20:00")),
        (Missed::All, 1, 1000, vec![(OverLimit, 11)], owed("12:00:00")),
        (Missed::All, 0, 1000, vec![(OverLimit, 12)], settled.clone()),
        // Older than half an hour at 12:05: up to 11:30.
        (Missed::All, 100, 30, vec![(TooOld, 9)], owed("11:40:00")),
        (Missed::All, 2, 30, vec![(TooOld, 9), (OverLimit, 1)], owed("11:50:00")),
        (Missed::All, 2, 4, vec![(TooOld, 12)], settled.clone()),
        (Missed::Latest, 100, 1000, vec![(Coalesced, 11)], owed("12:00:00")),
        (
            Missed::Latest,
            100,
            30,
            vec![(TooOld, 9), (Coalesced, 2)],
            owed("12:00:00"),
        ),
        (Missed::Latest, 100, 5, vec![(TooOld, 11)], owed("12:00:00")),
        (Missed::Latest, 100, 4, vec![(TooOld, 12)], settled.clone()),
        (Missed::Skip, 100, 4, vec![(MissedReason::Skipped, 12)], settled.clone()),
    ] {
        let decided = catch_up(rule(missed, max_missed, max_age), "10:00:00", "12:05:00");
        assert_eq!(decided, (passed, step), "{missed:?} {max_missed} {max_age}");
    }
}

/// Twenty of a day's ticks, in order; what falls due meanwhile is late and is not thrown away.
#[test]
fn a_catch_up_goes_on_from_tick_to_tick() {
    let rule = Rule {
        missed: Missed::All,
        max_missed: 20,
        ..Rule::new(Schedule::every("10m").unwrap())
    };
    let start: Timestamp = "2026-03-01T12:00:00Z".parse().unwrap();
    let mut now = start + SignedDuration::from_hours(24) + SignedDuration::from_mins(5);
    let mut planner = Planner::default();
    planner.begin(0, rule, start, None, now);
    let (mut owed, mut passed) = (Vec::new(), 0);
    while let Some((_, mut steps)) = planner.due(now, |_| false).pop() {
        let step = steps.remove(0);
        assert!(steps.is_empty(), "{steps:?}");
        passed += step.passed.iter().map(|passed| passed.count).sum::<u64>();
        assert_eq!(step.kind, StepKind::Owed);
        owed.push(step.tick);
        planner.rest(0, step.tick);
        now += SignedDuration::from_mins(1);
        planner.resume(0);
    }
    assert_eq!(passed, 144 - 20);
    assert_eq!(owed[0], start + SignedDuration::from_mins(125 * 10));
    // Two fell due while those ran, a minute each.
    assert_eq!(owed.len(), 22);
    let tick = |index: i64| start + SignedDuration::from_mins((125 + index) * 10);
    assert!(
        owed.iter().zip(0..).all(|(owed, index)| *owed == tick(index)),
        "{owed:?}"
    );
}

/// A year of seconds is one record, and is found without counting them one by one.
#[test]
fn a_year_off_is_one_span() {
    let schedule = Schedule::cron("* * * * * *").unwrap();
    let (start, now): (Timestamp, Timestamp) = ("2025-03-02T12:00:00Z".parse().unwrap(), at("12:00:00.5"));
    for missed in [Missed::Skip, Missed::Latest, Missed::All] {
        let mut planner = Planner::default();
        let rule = Rule {
            missed,
            ..Rule::new(schedule.clone())
        };
        planner.begin(0, rule, start, None, now);
        let (_, steps) = planner.due(now, |_| false).pop().unwrap();
        assert_eq!(steps[0].passed.len(), 1, "{missed:?}");
        assert!(steps[0].passed[0].count > 31_535_000, "{:?}", steps[0]);
    }
}

/// A tick whose claim may have to be made again is not overtaken by the next one.
#[test]
fn ticks_that_may_have_to_wait_are_claimed_one_at_a_time() {
    let rule = Rule {
        one_at_a_time: true,
        ..rule(Schedule::every("10s").unwrap(), Missed::Latest)
    };
    let mut planner = Planner::default();
    planner.begin(0, rule, at("12:00:00"), None, at("12:00:00"));
    let run = |tick: &str| [(tick.to_owned(), StepKind::Run, None)];
    assert_eq!(steps(&mut planner, "12:00:10"), run("12:00:10"));
    // It has to be asked for again, and the next one falls due meanwhile.
    planner.rest(0, at("12:00:00"));
    planner.look_when_ended(0, at("12:00:13"));
    assert_eq!(steps(&mut planner, "12:00:12"), []);
    for second in [21, 26, 47, 59] {
        let now = format!("12:00:{second}");
        assert_eq!(
            steps(&mut planner, &now),
            run("12:00:10"),
            "still the same: it is no missed one"
        );
        planner.rest(0, at("12:00:00"));
        planner.look_when_ended(0, at(&now));
    }
    assert_eq!(steps(&mut planner, "12:00:59"), run("12:00:10"));
    for tick in ["12:00:10", "12:00:20", "12:00:30", "12:00:40"] {
        planner.answered(0, at(tick));
        let next = (at(tick) + SignedDuration::from_secs(10))
            .strftime("%H:%M:%S")
            .to_string();
        assert_eq!(steps(&mut planner, "12:00:59"), run(&next));
    }
}

#[test]
fn a_tick_that_waits_is_looked_at_when_a_run_ends() {
    let mut planner = planner("10s", Missed::Latest, "12:00:00", None);
    assert_eq!(steps(&mut planner, "12:00:10").len(), 1);
    planner.answered(0, at("12:00:10"));
    planner.wait(0, at("12:00:10"), at("12:00:13"));
    let waited = [("12:00:10".to_owned(), StepKind::Waited, None)];
    assert_eq!(planner.next_wake(), Some(at("12:00:13")));
    assert_eq!(steps(&mut planner, "12:00:12"), []);
    planner.ended(0, at("12:00:12"));
    assert_eq!(steps(&mut planner, "12:00:12"), waited);
    assert_eq!(steps(&mut planner, "12:00:12"), [], "busy until answered");
    // Elsewhere something still runs.
    planner.wait(0, at("12:00:10"), at("12:00:15"));
    planner.answered(0, at("12:00:10"));
    assert_eq!(planner.next_wake(), Some(at("12:00:15")));
    // A tick that is due comes first.
    assert_eq!(
        steps(&mut planner, "12:00:20"),
        [("12:00:20".to_owned(), StepKind::Run, None)]
    );
    planner.answered(0, at("12:00:20"));
    assert_eq!(planner.waits_no_longer(0), Some(at("12:00:10")));
    assert_eq!(planner.waits_no_longer(0), None);
}

/// A job that waits for a place: what was in time when it came to wait is late, and so is what falls due behind it.
#[test]
fn what_waits_is_late_and_never_missed() {
    for missed in [Missed::Skip, Missed::Latest] {
        let mut planner = planner("10s", missed, "12:00:00", None);
        assert_eq!(planner.due(at("12:00:10"), |_| true), []);
        assert_eq!(planner.queue(0, at("12:00:10")), at("12:00:10"));
        assert_eq!(planner.next_wake(), None, "nothing wakes it but a place");
        assert_eq!(planner.due(at("12:00:31"), |_| false), []);
        planner.release(0);
        let ticks = ["12:00:10", "12:00:20", "12:00:30"].map(|tick| (tick.to_owned(), StepKind::Run, None));
        assert_eq!(steps(&mut planner, "12:00:31"), ticks);
        planner.answered(0, at("12:00:30"));
        // From then on by age again.
        let later = steps(&mut planner, "12:01:02");
        let missed = later.iter().filter(|step| step.1 != StepKind::Run || step.2.is_some());
        assert_eq!(missed.count(), 1, "{later:?}");
    }
}

#[test]
fn what_was_missed_before_the_wait_stays_the_policys() {
    let mut skip = planner("10s", Missed::Skip, "12:00:00", None);
    assert_eq!(skip.due(at("12:00:37"), |_| true), []);
    assert_eq!(skip.queue(0, at("12:00:37")), at("12:00:10"));
    skip.release(0);
    // 12:00:40 fell due during the wait.
    assert_eq!(
        steps(&mut skip, "12:00:49"),
        [("12:00:40".to_owned(), StepKind::Run, Some((MissedReason::Skipped, 3)))]
    );

    let mut latest = planner("10s", Missed::Latest, "12:00:00", None);
    assert_eq!(latest.due(at("12:00:33"), |_| true), []);
    assert_eq!(latest.queue(0, at("12:00:33")), at("12:00:10"));
    latest.release(0);
    // 12:00:30 was in time then.
    let owed = (
        "12:00:20".to_owned(),
        StepKind::Owed,
        Some((MissedReason::Coalesced, 1)),
    );
    assert_eq!(steps(&mut latest, "12:00:58"), [owed]);
    latest.rest(0, at("12:00:20"));
    latest.resume(0);
    let ticks = ["12:00:30", "12:00:40", "12:00:50"].map(|tick| (tick.to_owned(), StepKind::Run, None));
    assert_eq!(steps(&mut latest, "12:00:59"), ticks);
}

#[test]
fn a_wait_that_is_told_again_changes_nothing() {
    let mut planner = planner("10s", Missed::Skip, "12:00:00", None);
    for now in ["12:00:10", "12:00:21", "12:00:47"] {
        assert_eq!(planner.due(at(now), |_| true), []);
        assert_eq!(planner.queue(0, at(now)), at("12:00:10"));
        planner.release(0);
    }
    assert_eq!(steps(&mut planner, "12:00:47").len(), 4);
    assert_eq!(
        planner.queue(1, at("12:00:47")),
        at("12:00:47"),
        "a job that is not planned"
    );
}

/// The end of a run calls for a look only where somebody waits for it.
#[test]
fn the_end_of_a_run_wakes_nobody_who_does_not_wait_for_it() {
    let mut planner = planner("10s", Missed::Latest, "12:00:00", None);
    planner.ended(0, at("12:00:05"));
    assert_eq!(planner.next_wake(), Some(at("12:00:10")));
    // A decision is under way, and brings a look of its own.
    assert_eq!(steps(&mut planner, "12:00:10").len(), 1);
    planner.look_when_ended(0, at("12:00:20"));
    assert_eq!(steps(&mut planner, "12:00:20").len(), 1);
    planner.ended(0, at("12:00:21"));
    assert_eq!(planner.next_wake(), None);
}

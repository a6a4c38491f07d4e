//! Given a cursor and a time, exactly these steps.

use super::*;

fn at(text: &str) -> Timestamp {
    format!("2026-03-02T{text}Z").parse().unwrap()
}

fn rule(schedule: Schedule, missed: Missed) -> Rule {
    Rule {
        schedule,
        grace: DEFAULT_GRACE,
        missed,
        jitter: Duration::ZERO,
        seed: seed("job"),
    }
}

fn planner(every: &str, missed: Missed, cursor: &str, late_from: Option<&str>) -> Planner {
    let rule = rule(Schedule::every(every).unwrap(), missed);
    let mut planner = Planner::default();
    planner.begin(0, rule, at(cursor), late_from.map(at), at("12:00:38"));
    planner
}

type Shown = (String, StepKind, Option<(MissedReason, u64)>);

fn steps(planner: &mut Planner, now: &str) -> Vec<Shown> {
    let mut due = planner.due(at(now), |_| false);
    let steps = due.pop().map(|(_, steps)| steps).unwrap_or_default();
    let show = |step: Step| {
        let tick = step.tick.strftime("%H:%M:%S").to_string();
        (tick, step.kind, step.passed.map(|passed| (passed.reason, passed.count)))
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

/// A job that waits for a place: what was in time when it came to wait is late, and so is what falls due behind it.
#[test]
fn what_waits_is_late_and_never_missed() {
    for missed in [Missed::Skip, Missed::Latest] {
        let mut planner = planner("10s", missed, "12:00:00", None);
        assert_eq!(planner.due(at("12:00:10"), |_| true), []);
        assert_eq!(planner.wait(0, at("12:00:10")), at("12:00:10"));
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
    assert_eq!(skip.wait(0, at("12:00:37")), at("12:00:10"));
    skip.release(0);
    // 12:00:40 fell due during the wait.
    assert_eq!(
        steps(&mut skip, "12:00:49"),
        [("12:00:40".to_owned(), StepKind::Run, Some((MissedReason::Skipped, 3)))]
    );

    let mut latest = planner("10s", Missed::Latest, "12:00:00", None);
    assert_eq!(latest.due(at("12:00:33"), |_| true), []);
    assert_eq!(latest.wait(0, at("12:00:33")), at("12:00:10"));
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
        assert_eq!(planner.wait(0, at(now)), at("12:00:10"));
        planner.release(0);
    }
    assert_eq!(steps(&mut planner, "12:00:47").len(), 4);
    assert_eq!(
        planner.wait(1, at("12:00:47")),
        at("12:00:47"),
        "a job that is not planned"
    );
}

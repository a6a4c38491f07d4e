//! Blackout calendars: ticks that they cover are settled and never run.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use leader_core::{Calendar, MissedReason, Note, Outcome};
use leader_tests::eventually;

use crate::catch_up::{all_accounted_for, was_last_settled};
use crate::stage::{Ground, SOON, Stage, among_others};

on_each_store!(nothing_runs_while_a_calendar_covers_it);

async fn nothing_runs_while_a_calendar_covers_it(ground: Ground) {
    let stage = Stage::new();
    let (from, until) = {
        let now = Timestamp::now().as_second();
        let at = |seconds| Timestamp::from_second(now + seconds).unwrap();
        (at(-60), at(5))
    };
    let bootstrap = ground.instance("a", &stage, ["off"]);
    let bootstrap = bootstrap
        .calendar("freeze", Calendar::new().between(from, until))
        .job("rested", |job| job.except(["freeze"]));
    let instance = bootstrap.await.unwrap();
    let planned = instance.preview("rested", 1).unwrap().remove(0);
    assert_eq!(planned.note, Some(Note::Blackout { until }));
    stage.has_played("rested", 2).await;
    let played = stage.played("rested");
    assert_eq!(played[0].scheduled_at, until, "the end of a span is not covered");
    assert!(played[0].late < Duration::from_secs(2), "{played:?}");
    let ledger = instance.ledger("rested").await.unwrap();
    all_accounted_for(&instance, "rested", ledger.since.unwrap(), &ledger);
    let blackouts: Vec<_> = ledger
        .records
        .iter()
        .filter(|record| record.outcome == Outcome::Blackout)
        .collect();
    let [span] = blackouts.as_slice() else {
        panic!("{ledger:?}")
    };
    assert_eq!(Some(span.last), until.checked_sub(SignedDuration::from_secs(1)).ok());
    let covered = instance
        .count_ticks("rested", ledger.since.unwrap(), span.last)
        .unwrap();
    assert_eq!((span.count, ledger.counts[&Outcome::Blackout]), (covered, covered));
    instance.shutdown().await;
}

/// A year of seconds with two covered stretches: five records in order.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_catch_up_alternates() {
    let _among = among_others().await;
    let ground = Ground::redis().await;
    let Ground::Redis(server) = &ground else { unreachable!() };
    let day = |days: i64| SignedDuration::from_hours(24 * days);
    let since = was_last_settled(server, "rested", day(365)).await;
    let at = |days| Timestamp::from_second(since.checked_add(day(days)).unwrap().as_second()).unwrap();
    let calendar = Calendar::new().between(at(100), at(150)).between(at(200), at(300));
    let stage = Stage::new();
    let bootstrap = ground.instance("a", &stage, ["off"]).calendar("freeze", calendar);
    let instance = bootstrap.job("rested", |job| job.except(["freeze"])).await.unwrap();
    stage.has_played("rested", 2).await;
    let settled = || async { instance.ledger("rested").await.unwrap().pending() == 0 };
    eventually(SOON, "all is settled", settled).await;
    let ledger = instance.ledger("rested").await.unwrap();
    all_accounted_for(&instance, "rested", since, &ledger);
    let mut passed: Vec<_> = ledger
        .records
        .iter()
        .filter(|record| !record.outcome.is_ran())
        .collect();
    passed.reverse();
    let outcomes: Vec<_> = passed.iter().map(|record| record.outcome).collect();
    let skipped = Outcome::Missed(MissedReason::Skipped);
    assert_eq!(
        outcomes,
        [skipped, Outcome::Blackout, skipped, Outcome::Blackout, skipped]
    );
    for (span, days) in [(passed[1], (100, 150)), (passed[3], (200, 300))] {
        assert_eq!(span.first, at(days.0));
        assert_eq!(span.count, u64::try_from(86_400 * (days.1 - days.0)).unwrap());
    }
    instance.shutdown().await;
}

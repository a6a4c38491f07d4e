//! Blackout calendars: ticks that they cover are settled and never run.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use leader_core::{Calendar, Clock, Fate, MissedReason, Note, Outcome, testing};
use leader_tests::eventually;

use crate::catch_up::{all_accounted_for, was_last_settled};
use crate::stage::{Ground, SOON, Stage, among_others, leads};

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

/// Two builds whose job is due at the same instants, and whose days are not the same: the day of a tick is that of the zone it was planned in,
/// also where the next build decides it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_changed_zone_leaves_each_tick_the_day_it_was_planned_for() {
    let _among = among_others().await;
    let clock = Clock::ahead(SignedDuration::ZERO);
    let ground = Ground::Embedded(testing::__embedded_on(clock.clone()));
    let stage = Stage::new();
    let at = |text: &str| format!("2031-03-{text}Z").parse::<Timestamp>().unwrap();
    let build = |version: &'static str, cron: &'static str, zone: &'static str| {
        let calendar = Calendar::new().day("2031-03-05".parse().unwrap());
        let calendar = calendar.day("2031-03-08".parse().unwrap());
        let bootstrap = ground.instance("one", &stage, ["edited"]).version(version);
        let bootstrap = bootstrap.calendar("freeze", calendar);
        bootstrap.job("edited", move |job| job.cron(cron).timezone(zone).except(["freeze"]))
    };
    let until = |now: &str| clock.step_wall(at(now).duration_since(clock.wall()));
    let utc = || build("1", "0 20 * * *", "UTC");
    let tokyo = || build("2", "0 5 * * *", "Asia/Tokyo");

    until("04T12:00:00");
    let first = utc().await.unwrap();
    leads(&first, "edited").await;
    let has_begun = || async { first.ledger("edited").await.unwrap().since.is_some() };
    eventually(SOON, "the job is known", has_begun).await;
    first.shutdown().await;
    let mut decided = 0;
    // By UTC the 4th and the 5th, then in Tokyo the 7th, the 8th and the 9th.
    for (now, more) in [("06T00:30:00", 2), ("09T00:30:00", 3)] {
        until(now);
        let next = tokyo().await.unwrap();
        leads(&next, "edited").await;
        decided += more;
        let is_decided = || async {
            let ledger = next.ledger("edited").await.unwrap();
            ledger.decided() == decided && ledger.pending() == 0
        };
        eventually(SOON, "all is decided", is_decided).await;
        next.shutdown().await;
    }
    let asked = tokyo().await.unwrap();
    let fates = ["04", "05", "06", "07", "08"].map(|day| at(&format!("{day}T20:00:00")));
    let mut told = Vec::new();
    for tick in fates {
        told.push(asked.explain("edited", tick).await.unwrap());
    }
    for told in &told {
        println!("{told}");
    }
    let coalesced = |fate: &Fate| {
        matches!(
            fate,
            Fate::Missed {
                reason: MissedReason::Coalesced,
                ..
            }
        )
    };
    let covered = |fate: &Fate| matches!(fate, Fate::Blackout { calendars, .. } if *calendars == ["freeze"]);
    assert!(matches!(told[0].fate, Fate::Ran(_)), "the 4th by UTC: {}", told[0]);
    assert!(covered(&told[1].fate), "the 5th by UTC: {}", told[1]);
    assert!(coalesced(&told[2].fate), "the 7th in Tokyo: {}", told[2]);
    assert!(covered(&told[3].fate), "the 8th in Tokyo: {}", told[3]);
    assert!(matches!(told[4].fate, Fate::Ran(_)), "the 9th in Tokyo: {}", told[4]);
    let ran: Vec<_> = stage.played("edited").iter().map(|run| run.scheduled_at).collect();
    assert_eq!(ran, [fates[0], fates[4]]);
    asked.shutdown().await;
}

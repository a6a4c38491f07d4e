//! Runs: how they end, and that none holds another up.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use leader_core::{Embedded, Event, MissedReason, Origin, Outcome, Ran, Timing};
use leader_tests::eventually;
use tokio::sync::Notify;

use crate::stage::{Diary, Ground, SOON, Stage, among_others, jobs, leader_first, leads, ms};

async fn counts(instance: &leader_core::Instance, job: &str, outcome: Outcome) -> u64 {
    instance
        .ledger(job)
        .await
        .unwrap()
        .counts
        .get(&outcome)
        .copied()
        .unwrap_or(0)
}

on_each_store!(case_27_a_panic_is_that_runs_outcome_and_nothing_elses);

async fn case_27_a_panic_is_that_runs_outcome_and_nothing_elses(ground: Ground) {
    let stage = Stage::new();
    stage.part("first", |_| async { panic!("the water is over the gunwale") });
    let instance = ground.instance("a", &stage, ["pair"]).await.unwrap();
    let diary = Diary::of(&instance);
    leads(&instance, "pair").await;
    stage.has_played("first", 3).await;
    stage.has_played("second", 3).await;
    eventually(SOON, "it is recorded", || async {
        counts(&instance, "first", Outcome::Ran(Ran::Panic)).await >= 3
            && counts(&instance, "second", Outcome::Ran(Ran::Ok)).await >= 3
    })
    .await;
    let ledger = instance.ledger("first").await.unwrap();
    let panic = ledger
        .records
        .iter()
        .find(|record| record.outcome == Outcome::Ran(Ran::Panic))
        .unwrap();
    assert_eq!(panic.error, "the water is over the gunwale");
    assert!(
        diary
            .pick(|event| matches!(event, Event::Lost { .. }).then_some(()))
            .is_empty()
    );
    instance.shutdown().await;
}

/// The Show: a body blocks its thread for three leases on a runtime of two workers. The lease is kept and other jobs tick on time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn leases_17_case_48_a_body_that_blocks_its_thread_holds_nobody_up() {
    let _among = among_others().await;
    let ground = Ground::embedded();
    let ttl = ms(1_500);
    let (stage, woke) = (Stage::new(), Arc::new(AtomicBool::new(false)));
    let told = Arc::clone(&woke);
    stage.part("first", move |tick| {
        let told = Arc::clone(&told);
        async move {
            // The first run only: with both workers blocked nothing could tick.
            if !told.swap(true, Ordering::SeqCst) {
                std::thread::sleep(3 * Duration::from_millis(1_500));
                anyhow::ensure!(!tick.is_cancelled(), "the lease was lost meanwhile");
            }
            Ok(())
        }
    });
    let instance = ground
        .instance("a", &stage, ["pair"])
        .timing(Timing::from_ttl(ttl))
        .await
        .unwrap();
    let diary = Diary::of(&instance);
    leads(&instance, "pair").await;
    stage.has_played("first", 1).await;
    let blocked_at = stage.played("first")[0].at;
    stage.has_played("second", 7).await;
    eventually(SOON, "it is recorded", || async {
        counts(&instance, "first", Outcome::Ran(Ran::Ok)).await >= 1
    })
    .await;
    assert!(
        diary
            .pick(|event| matches!(event, Event::Lost { .. }).then_some(()))
            .is_empty()
    );
    assert!(instance.is_leader("pair"));
    let ledger = instance.ledger("first").await.unwrap();
    let blocked = ledger
        .records
        .iter()
        .filter(|record| record.outcome.is_ran())
        .min_by_key(|record| record.fence);
    assert_eq!(blocked.unwrap().error, "");
    assert!(ledger.counts[&Outcome::OverlapSkipped] >= 3, "{:?}", ledger.counts);
    let during: Vec<_> = stage
        .played("second")
        .into_iter()
        .filter(|played| played.at >= blocked_at)
        .collect();
    let latest = during.iter().map(|played| played.late).max().unwrap();
    println!(
        "{} other ticks during the block, the latest {latest:?} late",
        during.len()
    );
    assert!(latest < ms(500), "{latest:?} late");
    let mut ticks: Vec<_> = during.iter().map(|played| played.scheduled_at).collect();
    ticks.sort_unstable();
    assert!(
        ticks
            .windows(2)
            .all(|pair| pair[1].duration_since(pair[0]).as_secs() == 1),
        "{ticks:?}"
    );
    instance.shutdown().await;
}

#[tokio::test]
async fn a_run_past_its_timeout_is_dropped_and_recorded() {
    let _among = among_others().await;
    let ground = Ground::embedded();
    let stage = Stage::new();
    stage.part("bounded", |_| std::future::pending());
    let instance = ground.instance("a", &stage, ["bounded"]).await.unwrap();
    stage.has_played("bounded", 3).await;
    eventually(SOON, "it is recorded", || async {
        counts(&instance, "bounded", Outcome::Ran(Ran::TimedOut)).await >= 3
    })
    .await;
    assert_eq!(counts(&instance, "bounded", Outcome::OverlapSkipped).await, 0);
    instance.shutdown().await;
}

#[tokio::test]
async fn a_slow_jobs_next_ticks_are_skipped_and_counted() {
    let _among = among_others().await;
    let ground = Ground::embedded();
    let (stage, go_on) = (Stage::new(), Arc::new(Notify::new()));
    let wait = Arc::clone(&go_on);
    stage.part("steady", move |_| {
        let wait = Arc::clone(&wait);
        async move {
            wait.notified().await;
            Ok(())
        }
    });
    let instance = ground.instance("a", &stage, ["steady"]).await.unwrap();
    stage.has_played("steady", 1).await;
    eventually(SOON, "ticks are skipped", || async {
        counts(&instance, "steady", Outcome::OverlapSkipped).await >= 2
    })
    .await;
    assert_eq!(stage.played("steady").len(), 1);
    go_on.notify_one();
    stage.has_played("steady", 2).await;
    let ledger = instance.ledger("steady").await.unwrap();
    let due = instance
        .count_ticks("steady", ledger.since.unwrap(), ledger.cursor.unwrap())
        .unwrap();
    assert_eq!(ledger.decided() + ledger.pending(), due, "{ledger:?}");
    go_on.notify_one();
    instance.shutdown().await;
}

#[tokio::test]
async fn the_chain_of_an_error_is_recorded() {
    let _among = among_others().await;
    let ground = Ground::embedded();
    let stage = Stage::new();
    stage.part("steady", |_| async {
        let cause = std::io::Error::other("disk | full\nreally");
        Err(anyhow::Error::new(cause).context("no report").context("no mail"))
    });
    let instance = ground.instance("a", &stage, ["steady"]).await.unwrap();
    eventually(SOON, "it is recorded", || async {
        counts(&instance, "steady", Outcome::Ran(Ran::Error)).await >= 1
    })
    .await;
    let ledger = instance.ledger("steady").await.unwrap();
    let error = &ledger.records[ledger.records.len() - 1].error;
    for part in ["no mail", "no report", "disk | full\nreally"] {
        assert!(error.contains(part), "{part:?} is missing: {error:?}");
    }
    instance.shutdown().await;
}

#[tokio::test]
async fn on_a_store_for_tests_nothing_fires_but_by_hand() {
    let _among = among_others().await;
    let ground = Ground::Embedded(Embedded::for_test());
    let stage = Stage::new();
    stage.part("first", |_| async { anyhow::bail!("as it was told") });
    let a = ground.instance("a", &stage.of("a"), ["pair"]).await.unwrap();
    let b = ground.instance("b", &stage.of("b"), ["pair"]).await.unwrap();
    let (leader, standby) = leader_first(a, b, "pair").await;
    let diary = Diary::of(&leader);
    let at = "2026-03-02T03:00:00Z".parse().unwrap();
    let failed = leader.run_tick::<jobs::first>(at).await.unwrap();
    assert_eq!(failed, (Outcome::Ran(Ran::Error), "as it was told".to_owned()));
    let ran = leader.run_tick::<jobs::second>(at).await.unwrap();
    assert_eq!(ran, (Outcome::Ran(Ran::Ok), String::new()));
    // The same instant again is another run.
    leader.run_tick::<jobs::second>(at).await.unwrap();
    let refused = standby.run_tick::<jobs::second>(at).await.unwrap_err();
    assert!(refused.contains("does not lead"), "{refused}");
    let not_here = leader.run_tick::<jobs::steady>(at).await.unwrap_err();
    assert!(not_here.contains("does not lead"), "{not_here}");
    let refused = leader.run_tick::<jobs::standing>(at).await.unwrap_err();
    assert!(refused.contains("no scheduled job"), "{refused}");
    tokio::time::sleep(ms(1_500)).await;
    let played = stage.played("second");
    assert_eq!(played.len(), 2);
    assert!(
        played
            .iter()
            .all(|played| played.scheduled_at == at && played.on == leader.id().as_str())
    );
    assert_eq!(stage.played("first").len(), 1);
    let origins = |event: &Event| match event {
        Event::RunStarted { origin, .. } => Some(*origin),
        _ => None,
    };
    diary.shows("three runs by hand", origins, [Origin::Manual; 3]).await;
    leader.shutdown().await;
    standby.shutdown().await;
}

#[tokio::test]
async fn a_tick_by_hand_waits_for_no_earlier_run() {
    let _among = among_others().await;
    let ground = Ground::Embedded(Embedded::for_test());
    let (stage, go_on) = (Stage::new(), Arc::new(Notify::new()));
    let wait = Arc::clone(&go_on);
    stage.part("steady", move |_| {
        let wait = Arc::clone(&wait);
        async move {
            wait.notified().await;
            Ok(())
        }
    });
    let instance = ground.instance("a", &stage, ["steady"]).await.unwrap();
    let at = "2026-03-02T03:00:00Z".parse().unwrap();
    let running = {
        let instance = instance.clone();
        tokio::spawn(async move { instance.run_tick::<jobs::steady>(at).await })
    };
    stage.has_played("steady", 1).await;
    let busy = instance.run_tick::<jobs::steady>(at).await.unwrap_err();
    assert!(busy.contains("has not ended"), "{busy}");
    go_on.notify_one();
    assert_eq!(running.await.unwrap().unwrap().0, Outcome::Ran(Ran::Ok));
    instance.shutdown().await;
    let stopped = instance.run_tick::<jobs::steady>(at).await.unwrap_err();
    assert!(stopped.contains("stopped"), "{stopped}");
}

/// A job that nobody ran for a while: the policy decides, once, and everything is accounted for.
#[tokio::test]
async fn ticks_of_a_gap_are_decided_by_the_policy_once() {
    let _among = among_others().await;
    let ground = Ground::embedded();
    let stage = Stage::new();
    let first = ground.instance("a", &stage.of("a"), ["steady"]).await.unwrap();
    stage.has_played("steady", 1).await;
    first.shutdown().await;
    let played = stage.played("steady").len();
    // Ticks that fell due since the drain began are late, and run one after another: none finds another running.
    tokio::time::sleep(ms(3_300)).await;
    let second = ground.instance("b", &stage.of("b"), ["steady"]).await.unwrap();
    stage.has_played("steady", played + 1).await;
    eventually(SOON, "it has caught up", || async {
        let ledger = second.ledger("steady").await.unwrap();
        let now = jiff::Timestamp::now();
        second.count_ticks("steady", ledger.cursor.unwrap(), now).unwrap() == 0 && ledger.pending() == 0
    })
    .await;
    let ledger = second.ledger("steady").await.unwrap();
    let due = second
        .count_ticks("steady", ledger.since.unwrap(), ledger.cursor.unwrap())
        .unwrap();
    assert_eq!(ledger.decided(), due, "{ledger:?}");
    println!("after a gap of 3.3 s: {:?}", ledger.counts);
    let lost = [Ran::NotStarted, Ran::Lost, Ran::Cancelled].map(Outcome::Ran);
    assert!(
        lost.iter().all(|outcome| !ledger.counts.contains_key(outcome)),
        "{:?}",
        ledger.counts
    );
    for never in [Outcome::Fenced, Outcome::OverlapSkipped] {
        assert!(!ledger.counts.contains_key(&never), "{:?}", ledger.counts);
    }
    assert!(
        !ledger.counts.contains_key(&Outcome::Missed(MissedReason::Coalesced)),
        "{:?}",
        ledger.counts
    );
    let mut ticks: Vec<_> = stage
        .played("steady")
        .iter()
        .map(|played| played.scheduled_at)
        .collect();
    let count = ticks.len();
    ticks.sort_unstable();
    ticks.dedup();
    assert_eq!(ticks.len(), count, "none is run twice");
    second.shutdown().await;
}

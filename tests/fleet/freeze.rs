//! An instance that stands still for longer than a lease.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use leader_core::{Event, Lost, Moment, Outcome, Ran, Timing, testing};
use leader_tests::eventually;

use crate::stage::{Diary, Ground, SOON, Stage, among_others, leads, ms, now};

const TTL: Duration = Duration::from_millis(1_500);

/// A body that wants to be polled all the time, and keeps when it was.
async fn restless(polls: Arc<Mutex<Vec<Moment>>>) -> Result<(), anyhow::Error> {
    loop {
        polls.lock().unwrap().push(now());
        tokio::time::sleep(ms(1)).await;
    }
}

/// The framework's thread stands still, the body's runtime does not: its own clock ends it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fault_a_no_body_is_polled_after_its_trust() {
    let _among = among_others().await;
    let ground = Ground::embedded();
    let timing = Timing::from_ttl(TTL);
    let (polls, stage) = (Arc::new(Mutex::new(Vec::new())), Stage::new());
    let body = Arc::clone(&polls);
    stage.part("steady", move |_| restless(Arc::clone(&body)));
    let a = ground
        .instance("a", &stage.of("a"), ["steady"])
        .timing(timing)
        .await
        .unwrap();
    let diary = Diary::of(&a);
    leads(&a, "steady").await;
    stage.has_played("steady", 1).await;
    let b_stage = Stage::new();
    let b = ground
        .instance("b", &b_stage.of("b"), ["steady"])
        .timing(timing)
        .await
        .unwrap();
    let frozen = now();
    testing::freeze(&a, 3 * TTL);
    // Trust can have been renewed at the latest as the thread fell still.
    let trust_ends = frozen + timing.trust() + ms(50);
    eventually(SOON, "trust has ended", || async { !a.is_leader("steady") }).await;
    assert!(now() <= trust_ends + ms(200), "the gate shuts by itself");
    leads(&b, "steady").await;
    b_stage.has_played("steady", 1).await;
    let (term, ended) = diary
        .tells("the loss", |event| match event {
            Event::Lost {
                term,
                ended,
                reason: Lost::Expired,
                ..
            } => Some((*term, *ended)),
            _ => None,
        })
        .await;
    assert!(ended <= trust_ends, "told late, but when it was: {ended:?}");
    let last = *polls.lock().unwrap().iter().max().unwrap();
    assert!(last <= ended, "polled {:?} after its trust", last.since(ended));
    // Its tick is settled once, whoever did it.
    eventually(SOON, "the run is settled", || async {
        let ledger = b.ledger("steady").await.unwrap();
        let of_term = ledger
            .records
            .iter()
            .filter(|record| record.term == term && record.outcome.is_ran());
        of_term.count() == 1
    })
    .await;
    let ledger = b.ledger("steady").await.unwrap();
    let record = ledger
        .records
        .iter()
        .find(|record| record.term == term && record.outcome.is_ran())
        .unwrap();
    let outcome = record.outcome;
    assert!(matches!(outcome, Outcome::Ran(Ran::Cancelled | Ran::Lost)), "{outcome}");
    b.shutdown().await;
    a.shutdown().await;
}

/// A claim that was won before the freeze and answered after it starts nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_starts_after_a_freeze_before_the_next_grant() {
    let _among = among_others().await;
    let ground = Ground::embedded();
    let stage = Stage::new();
    let timing = Timing::from_ttl(TTL);
    let a = ground.instance("a", &stage, ["steady"]).timing(timing).await.unwrap();
    let diary = Diary::of(&a);
    let listening = jiff::Timestamp::now();
    for round in 0..3_u64 {
        leads(&a, "steady").await;
        let before = stage.played("steady").len();
        stage.has_played("steady", before + 1).await;
        // Into the moment of a tick, a little earlier each time.
        let until = 1_000 - u64::try_from(jiff::Timestamp::now().subsec_millisecond()).unwrap();
        tokio::time::sleep(ms(until.saturating_sub(round))).await;
        testing::freeze(&a, 2 * TTL);
        eventually(SOON, "trust has ended", || async { !a.is_leader("steady") }).await;
    }
    leads(&a, "steady").await;
    a.shutdown().await;
    diary
        .tells("the end", |event| matches!(event, Event::Stopped { .. }).then_some(()))
        .await;
    let mut ended: Option<Moment> = None;
    for stamped in diary.all() {
        match stamped.event {
            Event::Elected { .. } => ended = None,
            Event::Lost { ended: at, .. } => ended = Some(at),
            Event::RunStarted { .. } => assert!(ended.is_none(), "started after {ended:?}: {:?}", diary.all()),
            _ => {}
        }
    }
    let played = stage.played("steady");
    let mut ticks: Vec<_> = played.iter().map(|played| played.scheduled_at).collect();
    ticks.dedup();
    assert_eq!(ticks.len(), played.len(), "no tick is started twice");
    // Whatever is recorded was told, started or not.
    let told = diary.pick(|event| match event {
        Event::Decided { first, outcome, .. } => Some((*first, *outcome)),
        _ => None,
    });
    let reader = ground.instance("b", &Stage::new(), ["steady"]).await.unwrap();
    let ledger = reader.ledger("steady").await.unwrap();
    let recorded = ledger
        .records
        .iter()
        .filter(|record| record.instance == "a" && record.claimed_at > listening);
    let recorded: Vec<_> = recorded.map(|record| (record.first, record.outcome)).collect();
    assert!(recorded.len() >= 3, "{ledger:?}");
    for record in recorded {
        assert!(told.contains(&record), "{record:?} was not told: {told:?}");
    }
    reader.shutdown().await;
}

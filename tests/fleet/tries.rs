//! Runs that fail, or lose their runner, and are tried again.

use std::future::pending;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use leader_core::{Bootstrap, Event, FailedRun, Instance, JobLedger, Outcome, Ran, Timing, testing};
use leader_tests::{Direction, Proxy, RedisServer, eventually};

use crate::stage::{Diary, Ground, SOON, Stage, among_others, leader_first, leads, ms};

on_each_store!(
    a_failed_run_is_tried_again,
    a_run_whose_tries_are_used_up_is_decided_once,
    a_panic_is_tried_again,
    no_try_begins_after_the_next_tick,
    a_successor_goes_on_with_the_tries,
    the_successor_of_a_leader_that_dies_in_the_back_off_goes_on_with_the_tries,
    a_killed_runner_is_noticed_before_the_next_tick,
    the_run_of_a_killed_runner_is_tried_again_once,
);

/// Longer than the period.
const TICK: Duration = Duration::from_secs(45);

fn retried(ground: &Ground, id: &'static str, stage: &Stage, retries: u32, backoff: &str) -> Bootstrap {
    let backoff = backoff.to_owned();
    ground
        .instance(id, &stage.of(id), ["rare"])
        .timing(Timing::from_ttl(ms(2_000)))
        .job("rare", |job| job.retries(retries).backoff(&backoff))
}

/// A body that fails a few times, and the tries it was given.
fn fails(stage: &Stage, times: u32) -> Arc<Mutex<Vec<u32>>> {
    let tries = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&tries);
    stage.part("rare", move |tick| {
        let tries = Arc::clone(&tries);
        async move {
            tries.lock().unwrap().push(tick.attempt());
            anyhow::ensure!(tick.attempt() > times, "not yet");
            Ok(())
        }
    });
    seen
}

async fn ledger(instance: &Instance) -> JobLedger {
    instance.ledger("rare").await.unwrap()
}

async fn played(stage: &Stage, times: usize) {
    eventually(TICK, "a tick, and its tries", || async {
        stage.played("rare").len() >= times
    })
    .await;
}

async fn decided(instance: &Instance, times: u64) -> JobLedger {
    eventually(TICK, "the run is decided", || async {
        ledger(instance).await.decided() >= times
    })
    .await;
    ledger(instance).await
}

fn failures(event: &Event) -> Option<(u32, Outcome)> {
    match event {
        Event::RunFailed { attempt, outcome, .. } => Some((*attempt, *outcome)),
        _ => None,
    }
}

fn decisions(event: &Event) -> Option<Outcome> {
    match event {
        Event::Decided { outcome, .. } => Some(*outcome),
        _ => None,
    }
}

/// The hook's calls.
fn hooked(bootstrap: Bootstrap) -> (Bootstrap, Arc<Mutex<Vec<FailedRun>>>) {
    let calls = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&calls);
    (
        bootstrap.on_failure(move |run, _| kept.lock().unwrap().push(run)),
        calls,
    )
}

async fn a_failed_run_is_tried_again(ground: Ground) {
    let stage = Stage::new();
    let tries = fails(&stage, 2);
    let (bootstrap, calls) = hooked(retried(&ground, "a", &stage, 3, "500ms"));
    let diary = Diary::of_the_start(&bootstrap);
    let a = bootstrap.await.unwrap();
    let decided = decided(&a, 1).await;
    assert_eq!(*tries.lock().unwrap(), [1, 2, 3]);
    let played = stage.played("rare");
    for (pair, bound) in played.windows(2).zip([500, 1_000]) {
        assert!(pair[1].fence > pair[0].fence && pair[1].scheduled_at == pair[0].scheduled_at);
        let pause = pair[1].at - pair[0].at;
        // The pause is half of its bound at the least; telling the store takes some time.
        assert!(
            pause >= ms(bound / 2) && pause < ms(bound + 2_000),
            "{pause:?} of {bound} ms"
        );
    }
    assert_eq!((decided.counts.len(), decided.records.len()), (1, 1), "{decided:?}");
    let record = &decided.records[0];
    assert_eq!((record.outcome, record.tries), (Outcome::Ran(Ran::Ok), 3));
    assert_eq!(record.fence, played[2].fence);
    let error = Outcome::Ran(Ran::Error);
    diary.shows("decided once", decisions, [Outcome::Ran(Ran::Ok)]).await;
    diary.shows("each failed try", failures, [(1, error), (2, error)]).await;
    assert!(calls.lock().unwrap().is_empty(), "it is no failure in the end");
    a.shutdown().await;
}

async fn a_run_whose_tries_are_used_up_is_decided_once(ground: Ground) {
    let stage = Stage::new();
    let tries = fails(&stage, 9);
    let (bootstrap, calls) = hooked(retried(&ground, "a", &stage, 2, "100ms..200ms"));
    let diary = Diary::of_the_start(&bootstrap);
    let a = bootstrap.await.unwrap();
    let decided = decided(&a, 1).await;
    assert_eq!(*tries.lock().unwrap(), [1, 2, 3]);
    let record = &decided.records[0];
    assert_eq!((record.outcome, record.tries), (Outcome::Ran(Ran::Error), 3));
    assert_eq!((record.error.as_str(), decided.records.len()), ("not yet", 1));
    diary.shows("decided once", decisions, [Outcome::Ran(Ran::Error)]).await;
    eventually(SOON, "the hook is called", || async {
        !calls.lock().unwrap().is_empty()
    })
    .await;
    let attempts: Vec<_> = calls.lock().unwrap().iter().map(FailedRun::attempt).collect();
    assert_eq!(attempts, [3], "for the run's own end");
    a.shutdown().await;
}

async fn a_panic_is_tried_again(ground: Ground) {
    let stage = Stage::new();
    stage.part("rare", |tick| async move {
        assert!(tick.attempt() > 1, "the first panics");
        Ok(())
    });
    let a = retried(&ground, "a", &stage, 1, "100ms");
    let diary = Diary::of_the_start(&a);
    let a = a.await.unwrap();
    let decided = decided(&a, 1).await;
    assert_eq!(
        (decided.records[0].outcome, decided.records[0].tries),
        (Outcome::Ran(Ran::Ok), 2)
    );
    let panicked = [(1, Outcome::Ran(Ran::Panic))];
    diary.shows("the first try", failures, panicked).await;
    a.shutdown().await;
}

async fn no_try_begins_after_the_next_tick(ground: Ground) {
    let stage = Stage::new();
    fails(&stage, 9);
    // The pause would end after the next tick.
    let a = retried(&ground, "a", &stage, 5, "1m").await.unwrap();
    let decided = decided(&a, 1).await;
    let record = &decided.records[0];
    assert_eq!((record.outcome, record.tries), (Outcome::Ran(Ran::Error), 1));
    assert_eq!((stage.played("rare").len(), decided.pending()), (1, 0));
    a.shutdown().await;
}

async fn a_successor_goes_on_with_the_tries(ground: Ground) {
    let stage = Stage::new();
    let tries = fails(&stage, 1);
    let [a, b] = ["a", "b"].map(|id| retried(&ground, id, &stage, 3, "6s"));
    let diaries = [Diary::of_the_start(&a), Diary::of_the_start(&b)];
    let (a, b) = (a.await.unwrap(), b.await.unwrap());
    let (old, new) = leader_first(a, b, "rare").await;
    played(&stage, 1).await;
    let again_at = diaries[usize::from(old.id().as_str() == "b")]
        .tells("a try failed", |event| match event {
            Event::RunFailed { again_at, .. } => Some(*again_at),
            _ => None,
        })
        .await;
    // In the middle of the pause, which holds no drain up.
    let began = Instant::now();
    old.step_down("rare").await.unwrap();
    assert!(began.elapsed() < ms(1_500), "{:?}", began.elapsed());
    leads(&new, "rare").await;
    let now = ledger(&new).await;
    assert_eq!((now.open[0].again_at, now.open[0].tries), (Some(again_at), 1));
    let decided = decided(&new, 1).await;
    let played = stage.played("rare");
    assert_eq!((played.len(), played[1].on.as_str()), (2, new.id().as_str()));
    assert_eq!(*tries.lock().unwrap(), [1, 2]);
    let record = &decided.records[0];
    assert!(record.claimed_at >= again_at, "{record:?}");
    assert_eq!((record.outcome, record.tries), (Outcome::Ran(Ran::Ok), 2));
    old.shutdown().await;
    new.shutdown().await;
}

/// The one that waited for the next try's time is killed: nothing of that is lost with it, and the pause is no silence.
async fn the_successor_of_a_leader_that_dies_in_the_back_off_goes_on_with_the_tries(ground: Ground) {
    let stage = Stage::new();
    let tries = fails(&stage, 1);
    let [a, b] = ["a", "b"].map(|id| retried(&ground, id, &stage, 3, "6s"));
    let (a, b) = (a.await.unwrap(), b.await.unwrap());
    let (old, new) = leader_first(a, b, "rare").await;
    played(&stage, 1).await;
    eventually(SOON, "the run pauses", || async {
        ledger(&new).await.open.iter().any(|run| run.again_at.is_some())
    })
    .await;
    let again_at = ledger(&new).await.open[0].again_at.unwrap();
    testing::kill(&old);
    leads(&new, "rare").await;
    let decided = decided(&new, 1).await;
    let played = stage.played("rare");
    assert_eq!((played.len(), played[1].on.as_str()), (2, new.id().as_str()));
    assert_eq!(*tries.lock().unwrap(), [1, 2]);
    assert!(played[1].fence > played[0].fence);
    let record = &decided.records[0];
    assert!(record.claimed_at >= again_at, "{record:?}");
    assert_eq!(
        (record.outcome, record.tries, decided.records.len()),
        (Outcome::Ran(Ran::Ok), 2, 1)
    );
    new.shutdown().await;
}

/// The leader is killed while its body runs: who leads next, and the fence of that run.
async fn killed(ground: &Ground, stage: &Stage, retries: u32) -> (Instance, u64) {
    stage.part("rare", |tick| async move {
        if tick.attempt() == 1 {
            pending::<()>().await;
        }
        Ok(())
    });
    let start = |id| retried(ground, id, stage, retries, "200ms");
    let (a, b) = (start("a").await.unwrap(), start("b").await.unwrap());
    let (old, new) = leader_first(a, b, "rare").await;
    played(stage, 1).await;
    testing::kill(&old);
    leads(&new, "rare").await;
    (new, stage.played("rare")[0].fence)
}

async fn a_killed_runner_is_noticed_before_the_next_tick(ground: Ground) {
    let stage = Stage::new();
    let (new, fence) = killed(&ground, &stage, 0).await;
    let decided = decided(&new, 1).await;
    let record = &decided.records[0];
    assert_eq!((record.outcome, record.fence), (Outcome::Ran(Ran::Lost), fence));
    assert_eq!(
        (record.tries, stage.played("rare").len()),
        (1, 1),
        "no later tick has begun"
    );
    new.shutdown().await;
}

async fn the_run_of_a_killed_runner_is_tried_again_once(ground: Ground) {
    let stage = Stage::new();
    let (new, fence) = killed(&ground, &stage, 1).await;
    let decided = decided(&new, 1).await;
    let played = stage.played("rare");
    assert_eq!(played.len(), 2, "{played:?}");
    assert!(played[1].fence > fence && played[1].scheduled_at == played[0].scheduled_at);
    let record = &decided.records[0];
    assert_eq!((record.outcome, record.tries), (Outcome::Ran(Ran::Ok), 2));
    assert_eq!((record.fence, decided.records.len()), (played[1].fence, 1));
    new.shutdown().await;
}

/// The claim of a try is on its way when its leader begins to step down: what is claimed is run, as the try that it is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_try_that_is_claimed_while_a_drain_begins_keeps_its_number() {
    let _among = among_others().await;
    let server = RedisServer::start().await;
    let proxy = Proxy::start(server.port()).await;
    let stage = Stage::new();
    let tries = fails(&stage, 9);
    let bootstrap = Ground::instance_at(&proxy.url(), "a", &stage, ["rare"])
        .timing(Timing::from_ttl(ms(6_000)))
        .job("rare", |job| job.retries(2).backoff("100ms..200ms"));
    let diary = Diary::of_the_start(&bootstrap);
    let a = bootstrap.await.unwrap();
    let second = |event: &Event| failures(event).filter(|(attempt, _)| *attempt == 2);
    diary.tells("the second try failed", second).await;
    proxy.stall(Direction::ToServer);
    // By then the third one's time has come, and its claim is asked for again and again.
    tokio::time::sleep(ms(1_000)).await;
    let stepping = tokio::spawn({
        let a = a.clone();
        async move { a.step_down("rare").await }
    });
    let draining = |event: &Event| matches!(event, Event::Draining { .. }).then_some(());
    diary.tells("the drain begins", draining).await;
    proxy.heal();
    stepping.await.unwrap().unwrap();
    assert_eq!(*tries.lock().unwrap(), [1, 2, 3]);
    let decided = decided(&a, 1).await;
    let record = &decided.records[0];
    assert_eq!(
        (record.outcome, record.tries),
        (Outcome::Ran(Ran::Error), 3),
        "{decided:?}"
    );
    a.shutdown().await;
}

//! The end of an instance: bounded, in whatever order and on whatever runtime.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use leader_core::{Outcome, Ran, StepDownError, testing};
use leader_tests::eventually;

use crate::stage::{Ground, SOON, Stage, Stopwatch, among_others, leader_first, leads, ms};

on_each_store!(
    case_53_a_shutdown_may_be_asked_for_any_number_of_times,
    case_53_a_shutdown_returns_within_its_bound,
);

async fn case_53_a_shutdown_may_be_asked_for_any_number_of_times(ground: Ground) {
    let stage = Stage::new();
    let instance = ground.instance("a", &stage, ["steady", "pair"]).await.unwrap();
    leads(&instance, "steady").await;
    let watch = Stopwatch::start();
    let asked = (0..20).map(|_| {
        let instance = instance.clone();
        tokio::spawn(async move { instance.shutdown().await })
    });
    for asking in asked.collect::<Vec<_>>() {
        asking.await.unwrap();
    }
    instance.shutdown().await;
    instance.shutdown().await;
    watch.within(ms(5_000), "the shutdown of an idle instance");
    assert!(!instance.is_leader("steady"));
    assert!(matches!(
        instance.step_down("steady").await,
        Err(StepDownError::Stopped)
    ));
    assert!(instance.ledger("steady").await.is_err());
    // A handle that stepped down just before, or was dropped half way, changes nothing.
    let other = ground.instance("b", &stage, ["steady"]).await.unwrap();
    drop(tokio::time::timeout(ms(1), other.step_down("steady")).await);
    drop(tokio::time::timeout(Duration::ZERO, other.shutdown()).await);
    let watch = Stopwatch::start();
    other.shutdown().await;
    watch.within(ms(5_000), "the shutdown after a dropped one");
}

async fn case_53_a_shutdown_returns_within_its_bound(ground: Ground) {
    let stage = Stage::new();
    stage.part("steady", |_| std::future::pending());
    stage.part("finishing", |_| std::future::pending());
    let drain = ms(400);
    let instance = ground
        .instance("a", &stage, ["steady", "finishing"])
        .drain(drain)
        .await
        .unwrap();
    stage.has_played("steady", 1).await;
    stage.has_played("finishing", 1).await;
    let watch = Stopwatch::start();
    instance.shutdown().await;
    let took = watch.within(drain + ms(3_000), "the shutdown with bodies that do not listen");
    assert!(took >= drain, "they are waited for: {took:?}");
    // It has told how they ended, those included that might have finished: nobody has to find out.
    let next = ground
        .instance("b", &Stage::new(), ["steady"])
        .campaign(false)
        .await
        .unwrap();
    for job in ["steady", "finishing"] {
        let ledger = next.ledger(job).await.unwrap();
        assert!(ledger.open.is_empty(), "{job}: {ledger:?}");
        let cancelled = ledger.counts.get(&Outcome::Ran(Ran::Cancelled));
        assert_eq!(cancelled, Some(&1), "{job}: {:?}", ledger.counts);
    }
    next.shutdown().await;
}

#[tokio::test]
async fn case_53_after_a_kill_a_shutdown_has_nothing_to_do() {
    let _among = among_others().await;
    let ground = Ground::embedded();
    let instance = ground.instance("a", &Stage::new(), ["steady"]).await.unwrap();
    leads(&instance, "steady").await;
    testing::kill(&instance);
    let watch = Stopwatch::start();
    instance.shutdown().await;
    instance.shutdown().await;
    watch.within(ms(2_000), "the shutdown of a killed instance");
    assert!(!instance.is_leader("steady"));
    // A kill after a shutdown, and one more.
    testing::kill(&instance);
    testing::kill(&instance);
    instance.shutdown().await;
}

#[tokio::test(flavor = "current_thread")]
async fn case_53_a_runtime_of_one_thread_is_enough() {
    let _among = among_others().await;
    let ground = Ground::embedded();
    let stage = Stage::new();
    stage.part("steady", |tick| async move {
        tick.cancelled().await;
        Ok(())
    });
    let instance = ground.instance("a", &stage, ["steady"]).await.unwrap();
    stage.has_played("steady", 1).await;
    let watch = Stopwatch::start();
    instance.shutdown().await;
    watch.within(ms(5_000), "the shutdown");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_53_a_body_that_blocks_its_thread_is_not_waited_for_beyond_the_bound() {
    let _among = among_others().await;
    let ground = Ground::embedded();
    let (stage, over) = (Stage::new(), Arc::new(AtomicBool::new(false)));
    let wait = Arc::clone(&over);
    stage.part("steady", move |_| {
        let wait = Arc::clone(&wait);
        async move {
            while !wait.load(Ordering::SeqCst) {
                std::thread::sleep(ms(5));
            }
            Ok(())
        }
    });
    let drain = ms(300);
    let instance = ground.instance("a", &stage, ["steady"]).drain(drain).await.unwrap();
    stage.has_played("steady", 1).await;
    let watch = Stopwatch::start();
    instance.shutdown().await;
    watch.within(drain + ms(3_000), "the shutdown beside a blocked body");
    over.store(true, Ordering::SeqCst);
}

fn runtime(workers: usize) -> tokio::runtime::Runtime {
    let mut builder = if workers == 0 {
        tokio::runtime::Builder::new_current_thread()
    } else {
        tokio::runtime::Builder::new_multi_thread()
    };
    if workers > 0 {
        builder.worker_threads(workers);
    }
    builder.enable_all().build().unwrap()
}

/// The runtime of the bodies is gone: belief is cleared then and there, and the lease is given back.
#[test]
fn a_runtime_that_is_dropped_gives_its_leases_back() {
    let watching = runtime(2);
    let _among = watching.block_on(among_others());
    for workers in [0, 2] {
        let ground = Ground::embedded();
        let stage = Stage::new();
        stage.part("steady", |_| std::future::pending());
        let doomed = runtime(workers);
        let instance = doomed.block_on(async {
            let instance = ground.instance("a", &stage, ["steady"]).await.unwrap();
            stage.has_played("steady", 1).await;
            instance
        });
        let standby = watching.block_on(async { ground.instance("b", &Stage::new(), ["steady"]).await.unwrap() });
        assert!(instance.is_leader("steady") && !standby.is_leader("steady"));
        let watch = Stopwatch::start();
        drop(doomed);
        watch.within(ms(2_000), "the drop of the runtime");
        assert!(!instance.is_leader("steady"));
        watching.block_on(async {
            let took = eventually(SOON, "the other leads", || async { standby.is_leader("steady") }).await;
            // Not after the lease has ended: after it was given back.
            assert!(took < ms(1_000), "{took:?}");
            // The framework's thread has ended too.
            tokio::time::timeout(SOON, instance.shutdown())
                .await
                .expect("it has stopped");
            standby.shutdown().await;
        });
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_leader_is_followed_when_its_lease_ends() {
    let _among = among_others().await;
    let ground = Ground::embedded();
    let stage = Stage::new();
    stage.part("steady", |_| std::future::pending());
    let timing = leader_core::Timing::from_ttl(ms(2_000));
    let start = |id: &'static str| ground.instance(id, &stage.of(id), ["steady"]).timing(timing);
    let (a, b) = (start("a").await.unwrap(), start("b").await.unwrap());
    let (leader, standby) = leader_first(a, b, "steady").await;
    stage.has_played("steady", 1).await;
    let killed = Instant::now();
    testing::kill(&leader);
    eventually(SOON, "the standby leads", || async { standby.is_leader("steady") }).await;
    let took = killed.elapsed();
    println!("killed: the next leads after {took:?} of a lease of {:?}", timing.ttl());
    assert!(took <= timing.ttl() + ms(500), "{took:?}");
    // The broken run is lost, or was told as cancelled by a body that noticed; never both, never neither.
    eventually(SOON, "the run is settled", || async {
        let ledger = standby.ledger("steady").await.unwrap();
        let settled = |ran| ledger.counts.get(&Outcome::Ran(ran)).copied().unwrap_or(0);
        settled(Ran::Lost) == 1
    })
    .await;
    standby.shutdown().await;
}

//! A store that is gone, or hangs, under a living fleet.

use leader_core::{Event, Lost, MissedReason, Outcome, Timing};
use leader_tests::eventually;

use crate::stage::{Diary, Ground, SOON, Stage, Stopwatch, among_others, leads, ms};

fn timing() -> Timing {
    Timing::from_ttl(ms(2_000))
}

/// Redis dead: not leading within the lease, and every call returns within a bound.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fault_b_a_dead_store_closes_everybody_and_hangs_nobody() {
    let _among = among_others().await;
    let mut ground = Ground::redis().await;
    let stage = Stage::new();
    let instance = ground
        .instance("a", &stage, ["steady"])
        .timing(timing())
        .drain(ms(500))
        .await
        .unwrap();
    let diary = Diary::of(&instance);
    leads(&instance, "steady").await;
    let Ground::Redis(server) = &mut ground else {
        unreachable!()
    };
    server.kill().await;
    let watch = Stopwatch::start();
    eventually(SOON, "not leading", || async { !instance.is_leader("steady") }).await;
    watch.within(timing().ttl(), "the end of belief");
    let reason = diary.tells("the loss", |event| match event {
        Event::Lost { reason, .. } => Some(*reason),
        _ => None,
    });
    assert_eq!(reason.await, Lost::Expired);
    assert!(instance.ledger("steady").await.is_err());
    assert!(instance.step_down("steady").await.is_err());
    let watch = Stopwatch::start();
    instance.shutdown().await;
    watch.within(ms(5_000), "the shutdown without a store");
}

/// Accepts, and never answers (river PR 1251): also while the lease is held, and while it is given back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_22_fault_s_a_store_that_hangs_holds_nobody() {
    let _among = among_others().await;
    let ground = Ground::redis().await;
    let Ground::Redis(server) = &ground else { unreachable!() };
    let start = |id: &str| {
        ground
            .instance(id, &Stage::new(), ["yearly"])
            .timing(timing())
            .drain(ms(500))
    };
    let (a, b) = (start("a").await.unwrap(), start("b").await.unwrap());
    let (leader, standby) = crate::stage::leader_first(a, b, "yearly").await;
    server.pause();
    let watch = Stopwatch::start();
    let stepped = tokio::time::timeout(SOON, leader.step_down("yearly"))
        .await
        .expect("it returns");
    assert!(stepped.is_ok(), "belief is cleared first");
    eventually(SOON, "not leading", || async { !leader.is_leader("yearly") }).await;
    watch.within(timing().ttl() + ms(500), "the step-down");
    let watch = Stopwatch::start();
    leader.shutdown().await;
    standby.shutdown().await;
    watch.within(ms(10_000), "two shutdowns on a store that hangs");
    server.resume();
}

/// One failed renewal loses no leadership, and ends no renewing (redisson#775, redisson#3194).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fault_c_leases_11_one_failed_renewal_is_retried() {
    let _among = among_others().await;
    let ground = Ground::redis().await;
    let Ground::Redis(server) = &ground else { unreachable!() };
    let instance = ground.instance("a", &Stage::new(), ["yearly"]).await.unwrap();
    let diary = Diary::of(&instance);
    leads(&instance, "yearly").await;
    for round in 1..=3 {
        server
            .command(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"])
            .await;
        server.command(&["CLIENT", "PAUSE", "600", "ALL"]).await;
        eventually(SOON, "a renewal has failed", || async {
            diary
                .pick(|event| matches!(event, Event::RenewalFailed { .. }).then_some(()))
                .len()
                >= round
        })
        .await;
        let failed = Stopwatch::start();
        let ttl = instance.timing().ttl();
        tokio::time::sleep(ttl).await;
        assert!(
            instance.is_leader("yearly"),
            "after {:?}",
            failed.within(SOON, "the wait")
        );
    }
    assert!(
        diary
            .pick(|event| matches!(event, Event::Lost { .. }).then_some(()))
            .is_empty()
    );
    instance.shutdown().await;
}

/// The key vanishes, or names another: at the next renewal it is given up, and campaigned for again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn leases_9_a_lease_that_vanished_is_given_up_and_won_again() {
    let _among = among_others().await;
    let ground = Ground::redis().await;
    let Ground::Redis(server) = &ground else { unreachable!() };
    let timing = Timing::from_ttl(ms(1_000));
    let instance = ground
        .instance("a", &Stage::new(), ["yearly"])
        .timing(timing)
        .await
        .unwrap();
    let diary = Diary::of(&instance);
    leads(&instance, "yearly").await;
    let lost = |reason: Lost| {
        move |event: &Event| match event {
            Event::Lost { reason: told, term, .. } if *told == reason => Some(*term),
            _ => None,
        }
    };
    server.command(&["DEL", "leader:yearly"]).await;
    let watch = Stopwatch::start();
    let first = diary.tells("the loss", lost(Lost::Vanished)).await;
    watch.within(timing.ttl(), "the loss");
    leads(&instance, "yearly").await;
    server.command(&["SET", "leader:yearly", "pod-7", "PX", "1500"]).await;
    let second = diary.tells("the loss", lost(Lost::Taken)).await;
    assert!(second > first);
    let named = || async { instance.watch("yearly").unwrap().current().leader.as_deref() == Some("pod-7") };
    eventually(SOON, "the other is known", named).await;
    leads(&instance, "yearly").await;
    instance.shutdown().await;
}

/// A server that takes the question and gives no answer grants nothing (redbeat#208, jasonlvhit/gocron#160).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_17_an_acquisition_without_an_answer_is_none() {
    let _among = among_others().await;
    let ground = Ground::redis().await;
    let Ground::Redis(server) = &ground else { unreachable!() };
    let instance = ground.instance("a", &Stage::new(), ["yearly"]).timing(timing());
    server.pause();
    let watch = Stopwatch::start();
    let instance = instance.await.unwrap();
    watch.within(ms(5_000), "the start");
    let diary = Diary::of(&instance);
    let began = std::time::Instant::now();
    while began.elapsed() < 2 * timing().ttl() {
        assert!(!instance.is_leader("yearly"));
        tokio::time::sleep(ms(5)).await;
    }
    let elected = |event: &Event| match event {
        Event::Elected { term, .. } => Some(*term),
        _ => None,
    };
    assert!(diary.pick(elected).is_empty());
    // What the server was asked meanwhile it may do now; the lease is found as its own.
    server.resume();
    leads(&instance, "yearly").await;
    diary.tells("the grant", elected).await;
    instance.shutdown().await;
}

/// A store that renews leases and refuses claims, for want of memory: what could not be claimed in time is decided by the policy,
/// and never run long after its time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tick_that_cannot_be_claimed_in_time_is_missed() {
    let _among = among_others().await;
    let ground = Ground::redis().await;
    let Ground::Redis(server) = &ground else { unreachable!() };
    let stage = Stage::new();
    let instance = ground
        .instance("a", &stage, ["punctual"])
        .timing(timing())
        .await
        .unwrap();
    leads(&instance, "punctual").await;
    // Half a second before a tick.
    let now = u64::try_from(jiff::Timestamp::now().as_millisecond()).unwrap();
    tokio::time::sleep(ms(4_500 + 5_000 - now % 5_000)).await;
    let before = stage.played("punctual").len();
    server.command(&["CONFIG", "SET", "maxmemory", "1"]).await;
    tokio::time::sleep(ms(3_000)).await;
    assert!(instance.is_leader("punctual"), "renewals need no memory");
    server.command(&["CONFIG", "SET", "maxmemory", "0"]).await;
    let skipped = Outcome::Missed(MissedReason::Skipped);
    eventually(SOON, "the tick is decided", || async {
        instance.ledger("punctual").await.unwrap().counts.get(&skipped) == Some(&1)
    })
    .await;
    assert_eq!(stage.played("punctual").len(), before);
    instance.shutdown().await;
}

//! Requests from one instance to the leader on another.

use std::time::Duration;

use leader_core::{Event, Lost, StepDownError, Timing};
use leader_tests::eventually;

use crate::stage::{Diary, Ground, SOON, Stage, Stopwatch, among_others, leader_first, leads, ms};

on_each_store!(
    a_standby_may_end_the_lead_of_another,
    a_leader_that_asked_for_it_itself_and_one_that_is_asked_end_alike,
    a_leader_that_does_not_listen_is_waited_for_with_a_bound,
    an_instance_that_only_watches_may_ask,
);

fn timing() -> Timing {
    Timing::from_ttl(ms(2_000))
}

async fn a_standby_may_end_the_lead_of_another(ground: Ground) {
    let stage = Stage::new();
    let start = |id| ground.instance(id, &stage, ["yearly"]).timing(timing());
    let (a, b) = (start("a").await.unwrap(), start("b").await.unwrap());
    let (leader, standby) = leader_first(a, b, "yearly").await;
    let diary = Diary::of(&leader);
    let term = leader.watch("yearly").unwrap().current().term;
    // The hint makes it faster than the next renewal; without one it is no slower than that.
    let watch = Stopwatch::start();
    standby
        .step_down_because("yearly", "two\nlines of reason")
        .await
        .unwrap();
    watch.within(timing().renew() + ms(500), "the step-down");
    let (by, reason) = diary
        .tells("the request", |event| match event {
            Event::StepDownAsked {
                group,
                term: meant,
                by,
                reason,
                ..
            } if group.as_str() == "yearly" && *meant == term => Some((by.clone(), reason.clone())),
            _ => None,
        })
        .await;
    assert_eq!(
        (by.as_str(), reason.as_str()),
        (standby.id().as_str(), "two lines of reason")
    );
    let lost = |event: &Event| match event {
        Event::Lost { reason, term, .. } => Some((*reason, *term)),
        _ => None,
    };
    diary.shows("the loss", lost, [(Lost::SteppedDown, term)]).await;
    assert!(!leader.is_leader("yearly"));
    leads(&standby, "yearly").await;
    // The request ended with its term: the new leader is left alone.
    tokio::time::sleep(2 * timing().renew()).await;
    assert!(standby.is_leader("yearly"));
    leader.shutdown().await;
    standby.shutdown().await;
}

async fn a_leader_that_asked_for_it_itself_and_one_that_is_asked_end_alike(ground: Ground) {
    let stage = Stage::new();
    let start = |id| ground.instance(id, &stage, ["yearly"]).timing(timing());
    let (a, b) = (start("a").await.unwrap(), start("b").await.unwrap());
    let (leader, standby) = leader_first(a, b, "yearly").await;
    let diary = Diary::of(&leader);
    let (one, two) = tokio::join!(leader.step_down("yearly"), standby.step_down("yearly"));
    one.unwrap();
    // The one that came second may find the lease vacant already.
    assert!(two.is_ok() || matches!(two, Err(StepDownError::NotLed(_))), "{two:?}");
    let lost = |event: &Event| matches!(event, Event::Lost { .. }).then_some(());
    diary.shows("one loss", lost, [()]).await;
    leader.shutdown().await;
    standby.shutdown().await;
}

async fn a_leader_that_does_not_listen_is_waited_for_with_a_bound(ground: Ground) {
    let stage = Stage::new();
    let start = |id| ground.instance(id, &stage, ["yearly"]).timing(timing()).drain(ms(100));
    let (a, b) = (start("a").await.unwrap(), start("b").await.unwrap());
    let (leader, standby) = leader_first(a, b, "yearly").await;
    // Frozen, it cannot hear: its term ends by itself, and the request with it.
    leader_core::testing::freeze(&leader, 3 * timing().ttl());
    let watch = Stopwatch::start();
    standby.step_down("yearly").await.unwrap();
    watch.within(timing().ttl() + ms(1_500), "the end of a frozen leader's term");
    leads(&standby, "yearly").await;
    standby.shutdown().await;
    leader.shutdown().await;
}

async fn an_instance_that_only_watches_may_ask(ground: Ground) {
    let stage = Stage::new();
    let leader = ground.instance("a", &stage, ["yearly"]).timing(timing()).await.unwrap();
    leads(&leader, "yearly").await;
    let watcher = ground
        .instance("b", &stage, ["yearly"])
        .timing(timing())
        .campaign(false)
        .await
        .unwrap();
    let diary = Diary::of(&leader);
    watcher.step_down("yearly").await.unwrap();
    diary
        .tells("the loss", |event| matches!(event, Event::Lost { .. }).then_some(()))
        .await;
    // With nobody else to lead, it comes back after its cool-down.
    leads(&leader, "yearly").await;
    watcher.shutdown().await;
    leader.shutdown().await;
}

/// A store that is gone gives an error within a bound, and never "stepped down".
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_store_nobody_can_be_asked() {
    let _among = among_others().await;
    let mut ground = Ground::redis().await;
    let stage = Stage::new();
    let instance = ground
        .instance("a", &stage, ["yearly"])
        .timing(timing())
        .campaign(false)
        .await
        .unwrap();
    let Ground::Redis(server) = &mut ground else {
        unreachable!()
    };
    server.kill().await;
    let watch = Stopwatch::start();
    let error = instance.step_down("yearly").await.unwrap_err();
    watch.within(ms(2_000), "the error");
    assert!(matches!(error, StepDownError::Store { .. }), "{error:?}");
    assert!(std::error::Error::source(&error).is_some());
    assert!(instance.fleet().await.is_err());
    instance.shutdown().await;
}

/// Somebody else's lease: an event, and a request that says why it cannot be met.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_foreign_leader_is_respected_told_and_cannot_be_asked() {
    use leader_core::Oddity;
    let _among = among_others().await;
    let ground = Ground::redis().await;
    let Ground::Redis(server) = &ground else { unreachable!() };
    server.command(&["SET", "leader:yearly", "pod-7", "PX", "4000"]).await;
    let bootstrap = ground.instance("a", &Stage::new(), ["yearly"]).timing(timing());
    let mut events = bootstrap.events();
    let instance = bootstrap.await.unwrap();
    let odd = async {
        loop {
            if let Event::OddLease {
                group, holder, oddity, ..
            } = events.recv().await.unwrap().event
            {
                break (group, holder, oddity);
            }
        }
    };
    let (group, holder, oddity) = tokio::time::timeout(SOON, odd).await.unwrap();
    assert_eq!(
        (group.as_str(), holder.as_deref(), oddity),
        ("yearly", Some("pod-7"), Oddity::Foreign)
    );
    let error = instance.step_down("yearly").await.unwrap_err();
    assert!(error.to_string().contains("pod-7"), "{error}");
    assert!(matches!(error, StepDownError::Foreign { .. }), "{error:?}");
    // It goes, and the group is led here.
    leads(&instance, "yearly").await;
    eventually(Duration::from_secs(1), "nothing is odd any more", || async {
        instance.watch("yearly").unwrap().current().leader.as_deref() == Some("a")
    })
    .await;
    instance.shutdown().await;
}

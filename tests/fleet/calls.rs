//! Gated calls: who runs them, who does not, and what a drain does to them.

use std::sync::Arc;

use leader_core::{Instance, Lead, Role, Skipped, current, leader_only};
use leader_tests::eventually;
use tokio::sync::{Barrier, Notify};

use crate::stage::{Ground, SOON, Stage, Stopwatch, alone, among_others, leader_first, leads, ms};

#[leader_only(group = "calls")]
async fn lead() -> Option<Lead> {
    current()
}

#[leader_only(group = "calls")]
async fn held(entered: Arc<Barrier>, go_on: Arc<Notify>) -> Result<bool, Skipped> {
    entered.wait().await;
    go_on.notified().await;
    // Inside a body that is let finish, the body's own leadership decides.
    lead().await.map(|lead| lead.unwrap().is_leading())
}

async fn start(ground: &Ground, id: &str) -> Instance {
    let instance = ground.instance(id, &Stage::new(), ["calls"]);
    // A call in flight is waited for longer than a lease lasts.
    instance.drain(ms(10_000)).await.unwrap()
}

#[tokio::test]
async fn a_call_runs_on_the_leader_and_tells_who_leads_elsewhere() {
    let _among = among_others().await;
    let ground = Ground::embedded();
    let (a, b) = (start(&ground, "web-1").await, start(&ground, "web-2").await);
    let (leader, standby) = leader_first(a, b, "calls").await;
    let inside = leader.scope(lead()).await.unwrap().unwrap();
    assert_eq!(inside.group().as_str(), "calls");
    assert_eq!(inside.fence(), inside.term());
    assert!(inside.is_leading() && !inside.is_cancelled());
    assert!(current().is_none());

    let knows = || async { standby.watch("calls").unwrap().current().leader.is_some() };
    eventually(SOON, "the standby knows who leads", knows).await;
    let skipped = standby.scope(lead()).await.unwrap_err();
    let Skipped::NotLeader {
        group,
        leader: named,
        since,
    } = &skipped
    else {
        panic!("{skipped:?}");
    };
    assert_eq!(
        (group.as_ref(), named.as_deref()),
        ("calls", Some(leader.id().as_str()))
    );
    let since = since.unwrap();
    let text = format!("not leader of `calls`: {} leads since {since:.0}", leader.id());
    assert_eq!(skipped.to_string(), text);
    leader.shutdown().await;
    standby.shutdown().await;
}

#[tokio::test]
async fn with_several_instances_a_call_says_which_it_means() {
    let _alone = alone().await;
    let ground = Ground::embedded();
    assert_eq!(lead().await.unwrap_err(), Skipped::NotBootstrapped);
    let one = start(&ground, "web-1").await;
    leads(&one, "calls").await;
    assert!(lead().await.is_ok(), "the only one");
    let two = start(&ground, "web-2").await;
    assert_eq!(lead().await.unwrap_err(), Skipped::Ambiguous);
    assert!(one.scope(lead()).await.is_ok());
    assert!(matches!(two.scope(lead()).await, Err(Skipped::NotLeader { .. })));
    // The scope does not reach into a task of its own.
    let spawned = one.scope(async { tokio::spawn(lead()).await.unwrap() }).await;
    assert_eq!(spawned.unwrap_err(), Skipped::Ambiguous);
    // And the inner one counts.
    assert!(two.scope(one.scope(lead())).await.is_ok());
    two.shutdown().await;
    assert!(lead().await.is_ok(), "the only one again");
    one.shutdown().await;
    assert_eq!(lead().await.unwrap_err(), Skipped::NotBootstrapped);
}

#[tokio::test]
async fn a_leadership_is_known_inside_and_does_not_cross_a_spawn() {
    let _among = among_others().await;
    let ground = Ground::embedded();
    let instance = start(&ground, "web-1").await;
    leads(&instance, "calls").await;
    let group = instance.group("calls");
    let seen = group.run(async {
        let here = current().map(|lead| lead.group().to_string());
        let there = tokio::spawn(async { current().is_some() }).await.unwrap();
        let carried = current().unwrap();
        let carried = tokio::spawn(async move { carried.is_leading() }).await.unwrap();
        (here, there, carried)
    });
    assert_eq!(seen.await.unwrap(), (Some("calls".to_owned()), false, true));
    assert!(matches!(
        instance.group("steady").run(async {}).await,
        Err(Skipped::NotLeader { .. })
    ));
    assert!(matches!(
        instance.group("no such").run(async {}).await,
        Err(Skipped::NotLeader { leader: None, .. })
    ));
    instance.shutdown().await;
}

/// Lease released before the work has stopped is overlap at every deploy (kubernetes PR 71490, client-go#728).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_24_a_call_in_flight_holds_the_drain_up() {
    let _among = among_others().await;
    let ground = Ground::embedded();
    let (a, b) = (start(&ground, "web-1").await, start(&ground, "web-2").await);
    let (leader, standby) = leader_first(a, b, "calls").await;
    let (entered, go_on) = (Arc::new(Barrier::new(2)), Arc::new(Notify::new()));
    let call = tokio::spawn(leader.scope(held(Arc::clone(&entered), Arc::clone(&go_on))));
    entered.wait().await;
    let stepping = {
        let leader = leader.clone();
        tokio::spawn(async move { leader.step_down("calls").await })
    };
    eventually(SOON, "the gate is shut", || async { !leader.is_leader("calls") }).await;
    assert!(matches!(leader.scope(lead()).await, Err(Skipped::NotLeader { .. })));
    assert_eq!(leader.watch("calls").unwrap().current().role, Role::Draining);
    // Longer than a lease lasts: it is still renewed, and nobody else leads.
    tokio::time::sleep(leader.timing().ttl() + ms(500)).await;
    assert!(!stepping.is_finished() && !standby.is_leader("calls"));
    go_on.notify_one();
    assert_eq!(call.await.unwrap(), Ok(Ok(true)));
    stepping.await.unwrap().unwrap();
    leads(&standby, "calls").await;
    standby.shutdown().await;
    leader.shutdown().await;
}

#[tokio::test]
async fn a_watch_tells_every_role() {
    let _among = among_others().await;
    let ground = Ground::embedded();
    let instance = start(&ground, "web-1").await;
    let mut watch = instance.watch("calls").unwrap();
    assert!(instance.watch("no such").is_none());
    let mut roles = vec![watch.current().role];
    let stepping = instance.step_down("calls");
    let watching = async {
        while roles.last() != Some(&Role::Standby) {
            roles.push(watch.changed().await.unwrap().role);
        }
    };
    let (stepped, ()) = tokio::join!(stepping, watching);
    stepped.unwrap();
    // Two changes at once may be seen as one.
    assert!(roles.starts_with(&[Role::Leader]), "{roles:?}");
    instance.shutdown().await;
    drop(instance);
    let gone = tokio::time::timeout(SOON, async { while watch.changed().await.is_some() {} }).await;
    assert!(gone.is_ok(), "the watch of an instance that is gone ends");
}

#[tokio::test]
async fn case_20_a_lost_leadership_is_campaigned_for_again() {
    let _among = among_others().await;
    let ground = Ground::embedded();
    let timing = leader_core::Timing::from_ttl(ms(2_000)).with_cool_down(ms(100));
    let instance = ground
        .instance("web-1", &Stage::new(), ["calls"])
        .timing(timing)
        .await
        .unwrap();
    for _ in 0..3 {
        leads(&instance, "calls").await;
        leader_core::testing::freeze(&instance, 2 * timing.ttl());
        let watch = Stopwatch::start();
        eventually(SOON, "trust has ended", || async { !instance.is_leader("calls") }).await;
        watch.within(ms(3_000), "the end of trust");
        leads(&instance, "calls").await;
        instance.step_down("calls").await.unwrap();
    }
    leads(&instance, "calls").await;
    instance.shutdown().await;
}

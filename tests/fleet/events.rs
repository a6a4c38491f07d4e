//! What is told of an instance, and in which order.

use std::collections::BTreeMap;

use leader_core::{Event, EventsError, Outcome, Ran, Timing, testing};
use leader_tests::eventually;

use crate::stage::{Diary, Ground, SOON, Stage, among_others, leads, ms};

/// Acquired = lost + current, always; and nothing runs before its leader was elected.
#[tokio::test]
async fn every_elected_has_one_lost_and_runs_lie_between() {
    let _among = among_others().await;
    let ground = Ground::embedded();
    let timing = Timing::from_ttl(ms(2_000)).with_cool_down(ms(50));
    let stage = Stage::new();
    let instance = ground.instance("a", &stage, ["steady"]).timing(timing).await.unwrap();
    let diary = Diary::of(&instance);
    // The events of the start may be past already; those of every later leadership are not.
    for round in 0..3 {
        leads(&instance, "steady").await;
        let before = stage.played("steady").len();
        stage.has_played("steady", before + 1).await;
        if round == 1 {
            testing::freeze(&instance, 2 * timing.ttl());
            eventually(SOON, "trust has ended", || async { !instance.is_leader("steady") }).await;
        } else {
            instance.step_down("steady").await.unwrap();
        }
    }
    leads(&instance, "steady").await;
    instance.shutdown().await;
    diary
        .tells("the end", |event| matches!(event, Event::Stopped { .. }).then_some(()))
        .await;

    let mut led: Option<u64> = None;
    let (mut elected, mut lost) = (BTreeMap::new(), BTreeMap::new());
    for stamped in diary.all() {
        match stamped.event {
            Event::Elected { term, .. } => {
                assert_eq!(led.replace(term), None, "one leadership at a time");
                *elected.entry(term).or_insert(0) += 1;
            }
            Event::Lost { term, ended, .. } => {
                assert_eq!(led.take().unwrap_or(term), term);
                assert!(ended <= stamped.at, "belief ends before it is told");
                *lost.entry(term).or_insert(0) += 1;
            }
            Event::RunStarted { term, fence, .. } => {
                assert!(elected.is_empty() || led == Some(term), "{term} ran, {led:?} leads");
                assert!(fence > term);
            }
            _ => {}
        }
    }
    assert_eq!(elected.len(), 3, "{elected:?}");
    assert!(
        elected.keys().all(|term| lost.contains_key(term)),
        "{elected:?} {lost:?}"
    );
    assert!(
        elected.values().chain(lost.values()).all(|count| *count == 1),
        "{elected:?} {lost:?}"
    );
}

#[tokio::test]
async fn each_tick_is_started_once_and_decided_once() {
    let _among = among_others().await;
    let ground = Ground::embedded();
    let stage = Stage::new();
    stage.part("second", |_| async { anyhow::bail!("no") });
    let instance = ground.instance("a", &stage, ["pair"]).await.unwrap();
    let diary = Diary::of(&instance);
    stage.has_played("first", 3).await;
    stage.has_played("second", 3).await;
    instance.shutdown().await;
    diary
        .tells("the end", |event| matches!(event, Event::Stopped { .. }).then_some(()))
        .await;
    let started = diary.pick(|event| match event {
        Event::RunStarted {
            job,
            scheduled_at,
            fence,
            ..
        } => Some((*fence, (job.to_string(), *scheduled_at))),
        _ => None,
    });
    let decided = diary.pick(|event| match event {
        Event::Decided {
            job,
            first,
            fence,
            outcome,
            ..
        } => Some((*fence, (job.to_string(), *first), *outcome)),
        _ => None,
    });
    assert!(started.len() >= 6);
    for (fence, tick) in &started {
        let of_run: Vec<_> = decided.iter().filter(|(other, ..)| other == fence).collect();
        let wanted = if tick.0 == "first" { Ran::Ok } else { Ran::Error };
        assert_eq!(of_run, [&(*fence, tick.clone(), Outcome::Ran(wanted))]);
    }
    let mut ticks: Vec<_> = started.iter().map(|(_, tick)| tick).collect();
    ticks.sort();
    ticks.dedup();
    assert_eq!(ticks.len(), started.len(), "no tick is started twice");
}

/// A reader's loop ends with the instance, whoever still holds a handle.
#[tokio::test]
async fn the_last_event_is_the_last() {
    let _among = among_others().await;
    let ground = Ground::embedded();
    let instance = ground.instance("a", &Stage::new(), ["steady"]).await.unwrap();
    let mut events = instance.events();
    instance.shutdown().await;
    let reading = async {
        let mut last = None;
        loop {
            match events.recv().await {
                Ok(event) => last = Some(event.event),
                Err(end) => return (last, end),
            }
        }
    };
    let (last, end) = tokio::time::timeout(SOON, reading).await.expect("the events end");
    assert!(matches!(last, Some(Event::Stopped { .. })), "{last:?}");
    assert_eq!(end, EventsError::Stopped);
    let none = tokio::time::timeout(SOON, instance.events().recv())
        .await
        .expect("nor are there any later");
    assert_eq!(none.unwrap_err(), EventsError::Stopped);
}

/// What a program gave to its jobs is its own again when the instance is gone.
#[tokio::test]
async fn states_are_dropped_with_the_instance() {
    let _among = among_others().await;
    let pool = std::sync::Arc::new(());
    let weak = std::sync::Arc::downgrade(&pool);
    let ground = Ground::embedded();
    let instance = ground
        .instance("a", &Stage::new(), ["steady"])
        .state(pool)
        .await
        .unwrap();
    instance.shutdown().await;
    assert!(weak.upgrade().is_some(), "the handle keeps it");
    drop(instance);
    eventually(SOON, "nobody keeps it", || async { weak.upgrade().is_none() }).await;
}

//! An instance as a whole, on the embedded store.

use std::time::Duration;

use crate::clock::Clock;
use crate::store::embedded::Embedded;
use crate::timing::MIN_TTL;
use crate::{Event, Lost, Timing, bootstrap};

/// A drain goes on for several roster intervals: the lease is renewed all along, and the instance stops when the work has ended.
#[tokio::test]
async fn a_long_drain_keeps_the_lease_and_ends() {
    let bootstrap = bootstrap(Embedded::new())
        .timing(Timing::from_ttl(MIN_TTL))
        .state(7_u64);
    let mut events = bootstrap.events();
    let instance = bootstrap.await.unwrap();
    let worker = instance.clone();
    let work = tokio::spawn(async move {
        let work = tokio::time::sleep(MIN_TTL + MIN_TTL / 2);
        worker.group("default").run(work).await
    });
    tokio::task::yield_now().await;
    let stopped = tokio::time::timeout(Duration::from_secs(8), instance.shutdown()).await;
    assert_eq!(stopped, Ok(()), "the shutdown hangs");
    assert_eq!(work.await.unwrap(), Ok(()));
    loop {
        match events.recv().await.unwrap().event {
            Event::Lost { group, reason, .. } => assert_eq!(reason, Lost::Shutdown, "{group}"),
            Event::Stopped { .. } => break,
            _ => {}
        }
    }
}

/// What a body has captured is dropped on the runtime of the bodies: it may block or panic, and the leases live on.
#[tokio::test]
async fn a_captured_value_is_dropped_where_bodies_run() {
    struct Captured(std::sync::mpsc::Sender<Option<String>>);
    impl Drop for Captured {
        fn drop(&mut self) {
            let _ = self.0.send(std::thread::current().name().map(str::to_owned));
        }
    }
    let instance = bootstrap(Embedded::new()).state(7_u64).await.unwrap();
    let mut events = instance.events();
    let (tell, told) = std::sync::mpsc::channel();
    let captured = Captured(tell);
    let body = instance
        .while_leading("default", move |_| {
            let _ = &captured;
            async {}
        })
        .unwrap();
    // Between two starts nobody else holds it.
    while !matches!(events.recv().await.unwrap().event, Event::BodyEnded { .. }) {}
    body.stop();
    let told = tokio::task::spawn_blocking(move || told.recv_timeout(Duration::from_secs(8)));
    let thread = told.await.unwrap().expect("it is dropped");
    assert_ne!(thread.as_deref(), Some("leader-core"));
    instance.shutdown().await;
}

/// A fleet that was stopped for days owes what the policy says, however well it was stopped (Hangfire#1591).
#[cfg(feature = "macros")]
#[tokio::test]
async fn a_drain_excuses_no_outage() {
    let clock = Clock::manual("2026-03-02T12:30:00Z".parse().unwrap());
    let store = Embedded::with_clock(clock.clone());
    let start = || bootstrap(store.clone()).state(7_u64);
    let first = start().await.unwrap();
    while first.ledger("scheduled").await.unwrap().since.is_none() {
        tokio::task::yield_now().await;
    }
    first.shutdown().await;
    clock.advance(Duration::from_secs(72 * 3600));
    let second = start().await.unwrap();
    let decided = async {
        loop {
            let ledger = second.ledger("scheduled").await.unwrap();
            if ledger.decided() >= 72 {
                return ledger;
            }
            tokio::task::yield_now().await;
        }
    };
    let ledger = tokio::time::timeout(Duration::from_secs(8), decided).await.unwrap();
    let skipped = crate::Outcome::Missed(crate::MissedReason::Skipped);
    assert_eq!(ledger.counts, [(skipped, 72)].into());
    second.shutdown().await;
}

/// An engine that waited for an answer which never comes would stand still for ever.
#[cfg(feature = "testing")]
#[tokio::test]
async fn a_question_that_panics_is_a_panic_of_the_engine() {
    use super::Request;

    let timing = Timing::from_ttl(MIN_TTL);
    let instance = bootstrap(Embedded::new()).timing(timing).state(7_u64).await.unwrap();
    let mut events = instance.events();
    instance.request(Request::Panic { in_a_question: true });
    let mut told = Vec::new();
    while !matches!(told.last(), Some(Event::Elected { .. })) {
        let event = tokio::time::timeout(Duration::from_secs(8), events.recv()).await;
        let event = event.expect("it leads again").unwrap().event;
        // The bodies of other tests' tokens have their own say.
        if !matches!(event, Event::BodyEnded { .. }) {
            told.push(event);
        }
    }
    let panic = Event::EnginePanicked {
        error: "a panic of the store".to_owned(),
        again_in: Some(Duration::from_secs(1)),
    };
    assert_eq!(told.first(), Some(&panic), "{told:?}");
    assert!(told.iter().any(|event| matches!(
        event,
        Event::Lost {
            reason: Lost::EnginePanicked,
            ..
        }
    )));
    instance.shutdown().await;
}

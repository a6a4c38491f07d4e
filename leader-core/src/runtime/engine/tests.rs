//! An instance as a whole, on the embedded store.

use std::time::Duration;

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

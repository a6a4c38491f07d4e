//! A Redis that goes away, and one that forgets.

use std::collections::BTreeSet;
use std::future::IntoFuture;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use leader_core::{Ran, TaskStatus};
use leader_tests::RedisServer;

use crate::stage::{Ground, QUEUE, SOON, Stage, comes_to, counts, ms, order, tasks};

/// The server of a fleet.
fn server(ground: &mut Ground) -> &mut RedisServer {
    match ground {
        Ground::Redis(server) => server,
        Ground::Embedded(_) => unreachable!("these tests are of Redis"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_outage_loses_nothing() {
    let server_of = RedisServer::options().appendonly(true).start().await;
    let mut ground = Ground::Redis(Box::new(server_of));
    let stage = Stage::new();
    let (told, went_on) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let counters = (Arc::clone(&told), Arc::clone(&went_on));
    stage.part("long", move |_, task| {
        let (told, went_on) = counters.clone();
        async move {
            if task.attempt() == 1 {
                task.cancelled().await;
                told.fetch_add(1, Ordering::SeqCst);
                // Longer than trust can last from then on.
                tokio::time::sleep(ms(1_500)).await;
                went_on.fetch_add(1, Ordering::SeqCst);
            }
            Ok(())
        }
    });
    let a = ground
        .instance("a", &stage)
        .tasks(|tasks| tasks.concurrency(4))
        .await
        .unwrap();
    let b = ground
        .instance("b", &stage)
        .tasks(|tasks| tasks.concurrency(4))
        .await
        .unwrap();
    let tasks = a.tasks();
    let long = (0..8).map(|number| order("long", number));
    let long = tasks.enqueue_many::<tasks::act, _>(long).await.unwrap();
    stage.has_played(8).await;
    // Some wait for a worker, some for their time: it comes in the outage.
    tasks
        .enqueue_many::<tasks::act, _>((8..30).map(|number| order("", number)))
        .await
        .unwrap();
    counts(&tasks, "they are dispatched", |figures| figures.dispatched == 22).await;
    let later = (30..50).map(|number| order("", number));
    tasks
        .enqueue_many::<tasks::act, _>(later)
        .after(Duration::from_secs(3))
        .await
        .unwrap();
    server(&mut ground).stop().await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(
        told.load(Ordering::SeqCst),
        8,
        "all bodies were told that they are no longer heard of"
    );
    assert_eq!(went_on.load(Ordering::SeqCst), 0, "a body went on without trust");
    server(&mut ground).restart(true).await;
    counts(&tasks, "all are done", |figures| {
        figures.counts.done == 50 && figures.backlog() == 0
    })
    .await;
    for one in &long {
        let task = comes_to(&tasks, &one.id, TaskStatus::Done).await;
        assert_eq!(task.attempts, 2, "{task:?}");
        assert!(matches!(task.history[0].ran, Ran::Lost | Ran::Cancelled), "{task:?}");
    }
    let numbers: BTreeSet<_> = stage.played().into_iter().map(|played| played.number).collect();
    assert_eq!(numbers, (0..50).collect());
    let figures = tasks.figures(QUEUE).await.unwrap();
    assert_eq!((figures.counts.failed, figures.counts.dead), (0, 0), "{figures:?}");
    b.shutdown().await;
    a.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn new_tasks_run_after_the_server_has_forgotten_everything() {
    let mut ground = Ground::redis().await;
    let stage = Stage::new();
    let a = ground.instance("a", &stage).await.unwrap();
    let b = ground.instance("b", &stage).await.unwrap();
    let tasks = a.tasks();
    let later = Duration::from_secs(600);
    let kept = tasks
        .enqueue::<tasks::act>(&order("", 1))
        .unique("k")
        .after(later)
        .await
        .unwrap();
    tasks.enqueue::<tasks::act>(&order("", 2)).await.unwrap();
    counts(&tasks, "one is done", |figures| figures.counts.done == 1).await;
    let fence = stage.played()[0].fence;
    server(&mut ground).command(&["FLUSHALL"]).await;
    let again = tasks.enqueue::<tasks::act>(&order("", 3)).unique("k").await.unwrap();
    assert!(again.is_new, "the key was forgotten, too");
    let many = (4..54).map(|number| order("", number));
    b.tasks().enqueue_many::<tasks::act, _>(many).await.unwrap();
    let figures = counts(&tasks, "all are done", |figures| figures.counts.done == 51).await;
    assert_eq!((figures.pending, figures.counts.enqueued), (0, 51));
    assert!(tasks.get(&kept.id).await.unwrap().is_none());
    let played = stage.played();
    assert_eq!(played.len(), 52);
    assert!(
        played[1..]
            .iter()
            .all(|played| played.fence > fence && played.attempt == 1),
        "{played:?}"
    );
    b.shutdown().await;
    a.shutdown().await;
}

/// A queue of two parts, whose second one began its tasks anew when the server had forgotten that there are two.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_does_not_know_how_many_parts_there_were_stores_all_the_same() {
    let mut ground = Ground::redis().await;
    let stage = Stage::new();
    let a = ground.instance("a", &stage).tasks(|tasks| tasks.shards(QUEUE, 2));
    let a = a.await.unwrap();
    let orders = |from| (from..from + 20).map(|number| order("", number));
    a.tasks().enqueue_many::<tasks::act, _>(orders(0)).await.unwrap();
    counts(&a.tasks(), "all are done", |figures| figures.counts.done == 20).await;
    server(&mut ground).command(&["FLUSHALL"]).await;
    // Its parts know their generation again by these, and the queue does not.
    a.tasks().enqueue_many::<tasks::act, _>(orders(20)).await.unwrap();
    let b = ground.instance("b", &stage).await.unwrap();
    let stored = b.tasks().enqueue_many::<tasks::act, _>(orders(40)).into_future();
    let stored = tokio::time::timeout(SOON, stored).await;
    assert_eq!(stored.expect("it comes to an end").unwrap().len(), 20);
    stage.has_played(60).await;
    b.shutdown().await;
    a.shutdown().await;
}

//! What one shard, one caller or one payload does to the others.

use std::sync::{Arc, Barrier, mpsc};
use std::time::{Duration, Instant};

use leader_core::{EnqueueError, TaskStatus};
use leader_tests::RedisServer;

use crate::stage::{Ground, QUEUE, SOON, Stage, comes_to, counts, ms, order, tasks};

async fn ground() -> (Ground, Stage) {
    (Ground::redis().await, Stage::new())
}

fn server(ground: &Ground) -> &RedisServer {
    match ground {
        Ground::Redis(server) => server,
        Ground::Embedded(_) => unreachable!("these tests are of Redis"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shard_that_takes_no_steps_holds_no_other_up() {
    let (ground, stage) = ground().await;
    let attempts = format!("{{leader:dispatch:{QUEUE}:0}}:attempts");
    server(&ground).command(&["SET", &attempts, "x"]).await;
    let a = ground.instance("a", &stage).await.unwrap();
    let tasks = a.tasks();
    for number in 0..5 {
        let id = tasks.enqueue::<tasks::single>(&order("", number)).await.unwrap().id;
        comes_to(&tasks, &id, TaskStatus::Done).await;
    }
    server(&ground).command(&["DEL", &attempts]).await;
    let id = tasks.enqueue::<tasks::act>(&order("", 9)).await.unwrap().id;
    comes_to(&tasks, &id, TaskStatus::Done).await;
    a.shutdown().await;
}

/// Whoever is told to enqueue again must not double what is stored all the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_told_to_have_failed_is_not_stored_afterwards() {
    let (ground, stage) = ground().await;
    let a = ground
        .instance("a", &stage)
        .tasks(|tasks| tasks.work(false).shards(QUEUE, 4));
    let a = a.await.unwrap();
    let tasks = a.tasks();
    tasks
        .enqueue::<tasks::act>(&order("", 0))
        .unique("there")
        .await
        .unwrap();
    for shard in 0..4 {
        let unique = format!("{{leader:dispatch:{QUEUE}:{shard}}}:unique");
        if shard == 2 {
            server(&ground).command(&["DEL", &unique]).await;
            server(&ground).command(&["SET", &unique, "x"]).await;
        }
    }
    let before = tasks.figures(QUEUE).await.map(|figures| figures.counts.enqueued);
    let later = (0..20_000).map(|number| order("", number));
    let failed = tasks
        .enqueue_many::<tasks::act, _>(later)
        .after(Duration::from_secs(600))
        .await;
    let Err(EnqueueError::Store {
        stored, all, unknown, ..
    }) = failed
    else {
        panic!("{failed:?}");
    };
    assert_eq!((all, unknown), (20_000, false));
    let stored = stored as u64;
    assert!(stored < 20_000, "{stored}");
    // Whatever was under way is over: another one of each shard is stored behind it.
    server(&ground)
        .command(&["DEL", &format!("{{leader:dispatch:{QUEUE}:2}}:unique")])
        .await;
    let others = (0..64).map(|number| order("", number));
    tasks
        .enqueue_many::<tasks::act, _>(others)
        .after(Duration::from_secs(600))
        .await
        .unwrap();
    let figures = tasks.figures(QUEUE).await.unwrap();
    assert_eq!(figures.counts.enqueued, before.unwrap() + stored + 64);
    a.shutdown().await;
}

/// Each is told when the store has not answered for as long as one is asked again, however many wait; and who waits no longer is not stored.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn callers_of_a_store_that_stands_still_are_told_in_time() {
    let (ground, stage) = ground().await;
    let a = ground
        .instance("a", &stage)
        .tasks(|tasks| tasks.work(false))
        .await
        .unwrap();
    let tasks = a.tasks();
    tasks.enqueue::<tasks::act>(&order("", 0)).after(SOON).await.unwrap();
    server(&ground).pause();
    let began = Instant::now();
    let mut callers = tokio::task::JoinSet::new();
    for number in 0..3_000 {
        let tasks = tasks.clone();
        callers.spawn(async move {
            tasks
                .enqueue::<tasks::act>(&order("", number))
                .after(SOON)
                .await
                .map(|_| ())
        });
    }
    // These wait no longer than that.
    for number in 0..1_000 {
        let tasks = tasks.clone();
        callers.spawn(async move {
            let enqueued = tasks.enqueue::<tasks::single>(&order("", number)).after(SOON);
            let gone = tokio::time::timeout(ms(50), async { enqueued.await.map(|_| ()) }).await;
            assert!(gone.is_err());
            Ok(())
        });
    }
    while let Some(told) = callers.join_next().await {
        let _ = told.unwrap();
    }
    let took = began.elapsed();
    // A batch under way, and what waited behind it.
    assert!(took < Duration::from_secs(8), "{took:?}");
    server(&ground).resume();
    let of = |queue: &'static str| {
        let tasks = tasks.clone();
        async move { tasks.figures(queue).await.unwrap().counts.enqueued }
    };
    tasks.enqueue::<tasks::single>(&order("", 0)).after(SOON).await.unwrap();
    // Of those whom nobody waited for, at most the batches that were under way by then.
    let single = of("single").await;
    assert!(single <= 1 + 2 * 256, "{single}");
    a.shutdown().await;
}

/// A time-out is of a body that runs, and not of one that the program's runtime has not begun.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_that_could_not_begin_has_not_timed_out() {
    let (ground, stage) = ground().await;
    let a = ground.instance("a", &stage).await.unwrap();
    let tasks = a.tasks();
    // Both threads of the runtime stand still for longer than the time-out of `brief`, and shorter than anybody is lost in.
    let (both, (stands, stand)) = (Arc::new(Barrier::new(2)), mpsc::channel());
    let blocked: Vec<_> = (0..2)
        .map(|_| {
            let (both, stands) = (Arc::clone(&both), stands.clone());
            tokio::spawn(async move {
                both.wait();
                stands.send(()).unwrap();
                std::thread::sleep(ms(700));
            })
        })
        .collect();
    assert_eq!(stand.iter().take(2).count(), 2);
    let ids = tasks
        .enqueue_many::<tasks::brief, _>((0..2).map(|number| order("", number)))
        .await
        .unwrap();
    for enqueued in ids {
        let done = comes_to(&tasks, &enqueued.id, TaskStatus::Done).await;
        assert_eq!((done.attempts, done.history.len()), (1, 1), "{done:?}");
    }
    for one in blocked {
        one.await.unwrap();
    }
    counts(&tasks, "nothing was handed back", |figures| {
        figures.counts.handed_back == 0
    })
    .await;
    a.shutdown().await;
}

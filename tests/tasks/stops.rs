//! The end of an instance: what runs ends or is handed back, and nothing new begins.

use std::time::Duration;

use leader_core::{EnqueueError, Ran, TaskError, TaskStatus};
use tokio::time::Instant;

use crate::stage::{GROUP, Ground, Mark, QUEUE, SOON, Stage, TTL, comes_to, counts, leads, ms, order, tasks};

on_each_store!(
    what_does_not_end_in_the_drain_is_handed_back,
    nothing_is_stored_after_the_end,
    enqueueing_that_meets_the_end_is_answered,
    what_waits_outlives_the_fleet,
);

/// The drain of these instances.
const DRAIN: Duration = Duration::from_secs(2);

async fn what_does_not_end_in_the_drain_is_handed_back(ground: Ground) {
    let stage = Stage::new();
    let mark = Mark::default();
    stage.part("willing", |_, task| async move {
        task.cancelled().await;
        Ok(())
    });
    stage.part("unwilling", |_, task| async move {
        if task.attempt() == 1 {
            task.cancelled().await;
            return Err("was told to stop".to_owned());
        }
        Ok(())
    });
    let held = mark.clone();
    stage.part("stubborn", move |_, task| {
        let held = held.clone();
        async move {
            if task.attempt() == 1 {
                held.hang().await;
            }
            Ok(())
        }
    });
    let d = ground
        .instance("d", &stage)
        .tasks(|tasks| tasks.work(false))
        .await
        .unwrap();
    leads(&d, GROUP).await;
    let a = ground.instance("a", &stage).campaign(false);
    let a = a.tasks(|tasks| tasks.concurrency(3)).await.unwrap();
    let tasks = d.tasks();
    let mut ids = Vec::new();
    for (number, part) in (1..).zip(["willing", "unwilling", "stubborn"]) {
        // Handed back is not failed: a task without retries goes on as well.
        ids.push(tasks.enqueue::<tasks::act>(&order(part, number)).await.unwrap().id);
    }
    stage.has_played(3).await;
    let waiting = (4..9).map(|number| order("", number));
    tasks.enqueue_many::<tasks::act, _>(waiting).await.unwrap();
    counts(&tasks, "the others wait", |figures| figures.dispatched == 5).await;
    let began = Instant::now();
    a.shutdown().await;
    let took = began.elapsed();
    let timing = leader_core::Timing::from_ttl(TTL);
    let last_words = 2 * (timing.operation() + timing.retry());
    assert!(took >= DRAIN && took < DRAIN + last_words + ms(300), "{took:?}");
    assert_eq!(stage.played().len(), 3, "something new was begun");
    stage.part("stubborn", |_, _| async { Ok(()) });
    mark.is_alone("the body is dropped").await;
    let willing = tasks.get(&ids[0]).await.unwrap().unwrap();
    assert_eq!((willing.status, willing.attempts), (TaskStatus::Done, 1));
    for id in &ids[1..] {
        let task = tasks.get(id).await.unwrap().unwrap();
        assert_eq!((task.attempts, task.history[0].ran), (1, Ran::Cancelled), "{task:?}");
    }
    let figures = tasks.figures(QUEUE).await.unwrap();
    let counts = figures.counts;
    assert_eq!(
        (counts.handed_back, counts.failed, counts.lost, counts.done),
        (2, 0, 0, 1)
    );
    let b = ground.instance("b", &stage).campaign(false).await.unwrap();
    for id in &ids[1..] {
        let task = comes_to(&tasks, id, TaskStatus::Done).await;
        assert_eq!(task.attempts, 2, "{task:?}");
    }
    let played = stage.has_played(10).await;
    assert!(played[3..].iter().all(|played| played.on == "b"), "{played:?}");
    b.shutdown().await;
    d.shutdown().await;
}

async fn nothing_is_stored_after_the_end(ground: Ground) {
    let stage = Stage::new();
    let a = ground.instance("a", &stage).await.unwrap();
    let b = ground.instance("b", &stage).await.unwrap();
    let tasks = a.tasks();
    let later = TTL * 100;
    let id = tasks
        .enqueue::<tasks::act>(&order("", 1))
        .after(later)
        .await
        .unwrap()
        .id;
    a.shutdown().await;
    let refused = tasks.enqueue::<tasks::act>(&order("", 2)).await.unwrap_err();
    assert!(matches!(refused, EnqueueError::Stopped), "{refused:?}");
    let many = (3..9).map(|number| order("", number));
    let refused = tasks.enqueue_many::<tasks::act, _>(many).await.unwrap_err();
    assert!(matches!(refused, EnqueueError::Stopped), "{refused:?}");
    assert!(matches!(tasks.get(&id).await, Err(TaskError::Stopped)));
    assert!(matches!(tasks.cancel(&id).await, Err(TaskError::Stopped)));
    assert!(matches!(tasks.figures(QUEUE).await, Err(TaskError::Stopped)));
    let figures = b.tasks().figures(QUEUE).await.unwrap();
    assert_eq!((figures.counts.enqueued, figures.pending), (1, 1));
    b.shutdown().await;
}

async fn enqueueing_that_meets_the_end_is_answered(ground: Ground) {
    let stage = Stage::new();
    let a = ground.instance("a", &stage).await.unwrap();
    let b = ground
        .instance("b", &stage)
        .tasks(|tasks| tasks.work(false))
        .await
        .unwrap();
    let mut stored = tokio::task::JoinSet::new();
    for number in 0..20 {
        let tasks = a.tasks();
        // Until it is refused.
        stored.spawn(async move {
            let mut ids = Vec::new();
            loop {
                match tasks.enqueue::<tasks::act>(&order("", number)).after(TTL * 100).await {
                    Ok(one) => ids.push(one.id),
                    Err(EnqueueError::Stopped | EnqueueError::Ended) => return ids,
                    Err(error) => panic!("{error}"),
                }
            }
        });
    }
    counts(&b.tasks(), "some are stored", |figures| figures.pending > 100).await;
    a.shutdown().await;
    let stored = tokio::time::timeout(SOON, stored.join_all()).await;
    let stored: Vec<_> = stored.expect("every call is answered").into_iter().flatten().collect();
    for id in &stored {
        let task = b.tasks().get(id).await.unwrap();
        assert!(task.is_some(), "`{id}` was said to be stored");
    }
    b.shutdown().await;
}

async fn what_waits_outlives_the_fleet(ground: Ground) {
    let stage = Stage::new();
    let a = ground
        .instance("a", &stage)
        .tasks(|tasks| tasks.work(false))
        .await
        .unwrap();
    let tasks = a.tasks();
    let due = tasks.enqueue::<tasks::act>(&order("", 1)).await.unwrap().id;
    let pending = tasks
        .enqueue::<tasks::act>(&order("", 2))
        .after(ms(300))
        .await
        .unwrap()
        .id;
    comes_to(&tasks, &due, TaskStatus::Dispatched).await;
    a.shutdown().await;
    let b = ground.instance("b", &stage).await.unwrap();
    for id in [due, pending] {
        let task = comes_to(&b.tasks(), &id, TaskStatus::Done).await;
        assert_eq!(task.attempts, 1, "{task:?}");
    }
    b.shutdown().await;
}

//! One task from its storing to its end.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use leader_core::{Priority, Ran, TaskError, TaskQuery, TaskStatus};
use leader_tests::eventually;

use crate::stage::{Ground, SOON, Stage, ms, order, tasks};

on_each_store!(
    a_task_runs_once_on_some_worker,
    none_begins_before_it_is_due,
    what_fails_is_tried_again_and_then_dead,
    one_unfinished_task_of_a_key,
    what_is_cancelled_does_not_run,
);

async fn a_task_runs_once_on_some_worker(ground: Ground) {
    let stage = Stage::new();
    let a = ground.instance("a", &stage).await.unwrap();
    let b = ground.instance("b", &stage).await.unwrap();
    let tasks = a.tasks();
    let stored = tasks.enqueue::<tasks::act>(&order("", 1)).await.unwrap();
    assert!(stored.is_new);
    let played = stage.has_played(1).await.remove(0);
    assert_eq!((played.id, played.attempt), (stored.id.clone(), 1));
    assert!(played.fence > 0);
    let id = stored.id;
    eventually(SOON, "it is done", async || {
        let task = b.tasks().get(&id).await.unwrap().unwrap();
        task.status == TaskStatus::Done
    })
    .await;
    let task = b.tasks().get(&id).await.unwrap().unwrap();
    assert_eq!((task.attempts, task.history.len()), (1, 1));
    assert_eq!((task.history[0].ran, task.history[0].fence), (Ran::Ok, played.fence));
    let many: Vec<_> = (0..1000).map(|number| order("", number)).collect();
    let stored = tasks.enqueue_many::<tasks::act, _>(many).await.unwrap();
    assert_eq!(stored.len(), 1000);
    eventually(SOON, "all are done", async || {
        let figures = tasks.figures("work").await.unwrap();
        figures.counts.done == 1001 && figures.backlog() == 0
    })
    .await;
    let played = stage.played();
    assert_eq!(played.len(), 1001);
    assert!(played.iter().all(|played| ["a", "b"].contains(&played.on.as_str())));
    b.shutdown().await;
    a.shutdown().await;
}

async fn none_begins_before_it_is_due(ground: Ground) {
    let stage = Stage::new();
    let a = ground.instance("a", &stage).await.unwrap();
    let tasks = a.tasks();
    let due = Timestamp::now() + SignedDuration::from_millis(700);
    tasks.enqueue::<tasks::act>(&order("", 1)).at(due).await.unwrap();
    tasks.enqueue::<tasks::act>(&order("", 2)).after(ms(400)).await.unwrap();
    tasks
        .enqueue::<tasks::act>(&order("", 3))
        .priority(Priority::Low)
        .await
        .unwrap();
    let played = stage.has_played(3).await;
    assert_eq!(played.iter().map(|played| played.number).collect::<Vec<_>>(), [3, 2, 1]);
    for played in played {
        assert!(played.at >= played.due, "{played:?}");
        let late = played.at.duration_since(played.due);
        assert!(late < SignedDuration::from_secs(1), "{played:?}");
    }
    a.shutdown().await;
}

async fn what_fails_is_tried_again_and_then_dead(ground: Ground) {
    let stage = Stage::new();
    stage.part("fail", |_, _| async { Err("no\nway".to_owned()) });
    let a = ground.instance("a", &stage).await.unwrap();
    let tasks = a.tasks();
    let id = tasks.enqueue::<tasks::act>(&order("fail", 1)).await.unwrap().id;
    eventually(SOON, "it is dead", async || {
        tasks.get(&id).await.unwrap().unwrap().status == TaskStatus::Dead
    })
    .await;
    let task = tasks.get(&id).await.unwrap().unwrap();
    assert_eq!((task.attempts, task.history.len()), (3, 3), "{task:?}");
    assert_eq!(task.last_error(), Some("no\nway"));
    let fences: Vec<_> = stage.played().iter().map(|played| played.fence).collect();
    assert!(fences.is_sorted_by(|a, b| a < b), "{fences:?}");
    let dead = tasks.list("work", &TaskQuery::of(TaskStatus::Dead)).await.unwrap();
    assert_eq!(dead.tasks.iter().map(|task| &task.id).collect::<Vec<_>>(), [&id]);
    stage.part("fail", |_, _| async { Ok(()) });
    tasks.retry(&id).await.unwrap();
    eventually(SOON, "it is done", async || {
        tasks.get(&id).await.unwrap().unwrap().status == TaskStatus::Done
    })
    .await;
    a.shutdown().await;
}

async fn one_unfinished_task_of_a_key(ground: Ground) {
    let stage = Stage::new();
    let a = ground.instance("a", &stage).await.unwrap();
    let tasks = a.tasks();
    let later = Duration::from_secs(60);
    let first = tasks
        .enqueue::<tasks::act>(&order("", 1))
        .unique("invoice-42")
        .after(later)
        .await
        .unwrap();
    let second = tasks
        .enqueue::<tasks::act>(&order("", 2))
        .unique("invoice-42")
        .after(later)
        .await
        .unwrap();
    assert!(first.is_new && !second.is_new);
    assert_eq!(first.id, second.id);
    tasks.reschedule(&first.id, Timestamp::now()).await.unwrap();
    eventually(SOON, "it is done", async || {
        tasks.get(&first.id).await.unwrap().unwrap().status == TaskStatus::Done
    })
    .await;
    let third = tasks
        .enqueue::<tasks::act>(&order("", 3))
        .unique("invoice-42")
        .await
        .unwrap();
    assert!(third.is_new);
    stage.has_played(2).await;
    a.shutdown().await;
}

async fn what_is_cancelled_does_not_run(ground: Ground) {
    let stage = Stage::new();
    stage.part("long", |_, task| async move {
        task.cancelled().await;
        Err("told".to_owned())
    });
    let a = ground.instance("a", &stage).await.unwrap();
    let tasks = a.tasks();
    let waits = tasks
        .enqueue::<tasks::act>(&order("", 1))
        .after(Duration::from_secs(60))
        .await
        .unwrap()
        .id;
    tasks.cancel(&waits).await.unwrap();
    let task = tasks.get(&waits).await.unwrap().unwrap();
    assert_eq!((task.status, task.payload), (TaskStatus::Cancelled, None));
    let again = tasks.cancel(&waits).await.unwrap_err();
    assert!(
        matches!(
            again,
            TaskError::Untimely {
                status: TaskStatus::Cancelled,
                ..
            }
        ),
        "{again}"
    );
    let runs = tasks.enqueue::<tasks::act>(&order("long", 2)).await.unwrap().id;
    stage.has_played(1).await;
    tasks.cancel(&runs).await.unwrap();
    eventually(SOON, "it is cancelled", async || {
        tasks.get(&runs).await.unwrap().unwrap().status == TaskStatus::Cancelled
    })
    .await;
    assert_eq!(stage.played().len(), 1);
    a.shutdown().await;
}

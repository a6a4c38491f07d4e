//! Workers that vanish with what they run.

use std::collections::BTreeMap;
use std::future::pending;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use leader_core::testing::{freeze, kill};
use leader_core::{Instance, Ran, TaskNews, TaskStatus};
use leader_tests::eventually;
use tokio::time::Instant;

use crate::stage::{GROUP, Ground, Mark, News, SOON, Stage, TTL, comes_to, counts, leads, ms, order, tasks};

on_each_store!(
    what_a_killed_worker_had_is_taken_over,
    a_late_result_is_refused,
    what_kills_its_worker_each_time_dies,
    a_killed_dispatcher_costs_nothing,
);

async fn what_a_killed_worker_had_is_taken_over(ground: Ground) {
    let stage = Stage::new();
    let mark = Mark::default();
    let held = mark.clone();
    stage.part("hang", move |_, task| {
        let held = held.clone();
        async move {
            if task.attempt() == 1 {
                held.hang().await;
            }
            Ok(())
        }
    });
    let a = ground
        .instance("a", &stage)
        .tasks(|tasks| tasks.work(false))
        .await
        .unwrap();
    leads(&a, GROUP).await;
    let news = News::of(&a);
    let b = ground.instance("b", &stage).campaign(false).await.unwrap();
    let tasks = a.tasks();
    let id = tasks.enqueue::<tasks::act>(&order("hang", 1)).await.unwrap().id;
    stage.has_played(1).await;
    let c = ground.instance("c", &stage).campaign(false).await.unwrap();
    kill(&b);
    let killed = Instant::now();
    let played = stage.has_played(2).await;
    let took = killed.elapsed();
    assert!(took < TTL + ms(1_500), "{took:?}");
    // Its body was dropped with it; only the part itself has the other copy.
    stage.part("hang", |_, _| async { Ok(()) });
    mark.is_alone("the body of a killed instance is dropped").await;
    assert_eq!((played[0].on.as_str(), played[1].on.as_str()), ("b", "c"));
    assert_eq!((played[1].attempt, &played[1].id), (2, &id));
    assert!(played[1].fence > played[0].fence, "{played:?}");
    let task = comes_to(&tasks, &id, TaskStatus::Done).await;
    let ended: Vec<_> = task
        .history
        .iter()
        .map(|attempt| (attempt.ran, attempt.fence))
        .collect();
    assert_eq!(ended, [(Ran::Lost, played[0].fence), (Ran::Ok, played[1].fence)]);
    assert_eq!(task.history[0].holder.instance(), "b");
    news.tells(
        "the loss",
        |news| matches!(news, TaskNews::Lost { instance, attempt: 1, dead: false, .. } if instance == "b"),
    )
    .await;
    let counts = tasks.figures("work").await.unwrap().counts;
    assert_eq!((counts.lost, counts.started, counts.done, counts.late), (1, 2, 1, 0));
    c.shutdown().await;
    a.shutdown().await;
}

/// A worker stands still, its task is done elsewhere, and then it goes on.
async fn a_late_result_is_refused(ground: Ground) {
    let stage = Stage::new();
    let went_on = Arc::new(AtomicBool::new(false));
    let (seen, flag) = (stage.clone(), Arc::clone(&went_on));
    stage.part("slow", move |_, task| {
        let (seen, flag) = (seen.clone(), Arc::clone(&flag));
        async move {
            if task.attempt() == 1 {
                // It polls all the time, but may not be polled when its trust has ended.
                seen.has_played(2).await;
                flag.store(true, Ordering::SeqCst);
            }
            Ok(())
        }
    });
    let a = ground
        .instance("a", &stage)
        .tasks(|tasks| tasks.work(false))
        .await
        .unwrap();
    leads(&a, GROUP).await;
    let b = ground.instance("b", &stage).campaign(false).await.unwrap();
    let news = News::of(&b);
    let tasks = a.tasks();
    let id = tasks.enqueue::<tasks::act>(&order("slow", 1)).await.unwrap().id;
    stage.has_played(1).await;
    let c = ground.instance("c", &stage).campaign(false).await.unwrap();
    freeze(&b, 2 * TTL);
    let played = stage.has_played(2).await;
    assert_eq!((played[1].on.as_str(), played[1].attempt), ("c", 2));
    let task = comes_to(&tasks, &id, TaskStatus::Done).await;
    assert_eq!(task.history[0].ran, Ran::Lost);
    counts(&tasks, "the late result was refused", |figures| {
        figures.counts.late == 1
    })
    .await;
    let fence = played[0].fence;
    news.tells(
        "the refusal",
        |news| matches!(news, TaskNews::Refused { fence: of, .. } if *of == fence),
    )
    .await;
    assert!(!went_on.load(Ordering::SeqCst), "a body went on without trust");
    let again = tasks.get(&id).await.unwrap().unwrap();
    assert_eq!(again, task, "a refused result changes nothing");
    // Both work on.
    for number in 2..12 {
        tasks.enqueue::<tasks::act>(&order("", number)).await.unwrap();
    }
    counts(&tasks, "all are done", |figures| figures.counts.done == 11).await;
    c.shutdown().await;
    b.shutdown().await;
    a.shutdown().await;
}

async fn what_kills_its_worker_each_time_dies(ground: Ground) {
    let stage = Stage::new();
    let workers: Arc<Mutex<BTreeMap<String, Instance>>> = Arc::default();
    let (known, seen) = (Arc::clone(&workers), stage.clone());
    stage.part("poison", move |_, _| {
        let on = seen.played().last().unwrap().on.clone();
        kill(&known.lock().unwrap()[&on]);
        pending()
    });
    let a = ground
        .instance("a", &stage)
        .tasks(|tasks| tasks.work(false))
        .await
        .unwrap();
    leads(&a, GROUP).await;
    let news = News::of(&a);
    for number in 1..=5 {
        let id = format!("b{number}");
        let worker = ground.instance(&id, &stage).campaign(false).await.unwrap();
        workers.lock().unwrap().insert(id, worker);
    }
    let tasks = a.tasks();
    let poison = tasks
        .enqueue::<tasks::act>(&order("poison", 1))
        .unique("bottle")
        .await
        .unwrap()
        .id;
    let task = comes_to(&tasks, &poison, TaskStatus::Dead).await;
    assert_eq!((task.attempts, task.history.len()), (4, 4), "{task:?}");
    assert!(task.history.iter().all(|attempt| attempt.ran == Ran::Lost), "{task:?}");
    assert_eq!(task.last_error(), Some("the worker fell silent"));
    let on: std::collections::BTreeSet<_> = stage.played().into_iter().map(|played| played.on).collect();
    assert_eq!(on.len(), 4, "{on:?}");
    news.tells("the death", |news| {
        matches!(
            news,
            TaskNews::Lost {
                attempt: 4,
                dead: true,
                ..
            }
        )
    })
    .await;
    let figures = tasks.figures("work").await.unwrap();
    assert_eq!((figures.counts.lost, figures.counts.dead, figures.dead), (4, 1, 1));
    assert_eq!(figures.counts.failed, 0, "what is lost has not failed");
    // The one that is left works on, and the key is free.
    let next = tasks
        .enqueue::<tasks::act>(&order("", 2))
        .unique("bottle")
        .await
        .unwrap();
    assert!(next.is_new);
    comes_to(&tasks, &next.id, TaskStatus::Done).await;
    let left: Vec<_> = workers.lock().unwrap().values().cloned().collect();
    let left: Vec<_> = left
        .into_iter()
        .filter(|worker| !on.contains(worker.id().as_str()))
        .collect();
    assert_eq!(left.len(), 1);
    left[0].shutdown().await;
    a.shutdown().await;
}

async fn a_killed_dispatcher_costs_nothing(ground: Ground) {
    const ALL: u64 = 300;
    let stage = Stage::new();
    let a = ground.instance("a", &stage).await.unwrap();
    leads(&a, GROUP).await;
    let b = ground
        .instance("b", &stage)
        .tasks(|tasks| tasks.concurrency(4))
        .await
        .unwrap();
    let tasks = b.tasks();
    let due = jiff::Timestamp::now() + jiff::SignedDuration::from_millis(500);
    let orders = (0..ALL).map(|number| order("", number));
    tasks.enqueue_many::<tasks::act, _>(orders).at(due).await.unwrap();
    stage.has_played(1).await;
    kill(&a);
    leads(&b, GROUP).await;
    counts(&tasks, "all are done", |figures| {
        figures.counts.done == ALL && figures.backlog() == 0
    })
    .await;
    eventually(SOON, "every one was played", async || {
        let numbers: std::collections::BTreeSet<_> = stage.played().into_iter().map(|played| played.number).collect();
        numbers.len() == usize::try_from(ALL).unwrap()
    })
    .await;
    b.shutdown().await;
}

//! Workers wait without asking again and again, and one is woken for each task.

use std::time::Duration;

use leader_core::__seam::{AwaitTasks, TaskEnding};
use leader_tests::eventually;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::bench::{CHARGE, TaskBench, keys, lane, new, of_lane, task_name, usual};
use crate::bench::{BOUND, Bench};

on_each_store!(
    a_wait_ends_with_its_bound,
    who_waits_is_woken_by_a_move,
    what_waits_already_is_not_waited_for,
    who_knows_another_task_waits_on,
    who_leaves_something_wakes_another,
);

fn wish(tasks: &TaskBench, name: &str, bound: Duration) -> AwaitTasks {
    AwaitTasks {
        shards: vec![tasks.shard.clone()],
        tasks: vec![task_name(name)],
        bound,
    }
}

/// Waits longer than the test may. A process has one wait at a time.
fn waits(tasks: &TaskBench, name: &str) -> JoinHandle<()> {
    let (store, wish) = (tasks.bench.of_another_process(), wish(tasks, name, 10 * BOUND));
    tokio::spawn(async move { store.tasks().await_tasks(wish).await.unwrap() })
}

async fn ends(waiting: JoinHandle<()>) {
    timeout(BOUND, waiting).await.expect("it is woken").unwrap();
}

async fn a_wait_ends_with_its_bound(bench: Bench) {
    let tasks = TaskBench::on(bench).await;
    let began = std::time::Instant::now();
    let bound = Duration::from_millis(50);
    timeout(BOUND, tasks.store().await_tasks(wish(&tasks, CHARGE, bound)))
        .await
        .expect("the bound is kept")
        .unwrap();
    assert!(
        began.elapsed() >= bound / 2,
        "nothing was there after {:?}",
        began.elapsed()
    );
}

async fn who_waits_is_woken_by_a_move(bench: Bench) {
    let tasks = TaskBench::on(bench).await;
    for round in 0..20 {
        // Before or after the move: no wait may fall between the two.
        let waiting = waits(&tasks, CHARGE);
        if round % 2 == 0 {
            tokio::task::yield_now().await;
        }
        tasks.store_all(vec![new(&format!("{round}"))]).await;
        assert_eq!(tasks.dispatch().await.moved, 1);
        ends(waiting).await;
        for taken in tasks.take("worker", 9).await {
            tasks.finish(&taken, TaskEnding::Done).await;
        }
    }
}

async fn what_waits_already_is_not_waited_for(bench: Bench) {
    let tasks = TaskBench::on(bench).await;
    tasks.store_all(vec![new("a")]).await;
    tasks.dispatch().await;
    ends(waits(&tasks, CHARGE)).await;
    assert_eq!(keys(&tasks.take("worker", 9).await), ["a"]);
}

async fn who_knows_another_task_waits_on(bench: Bench) {
    let tasks = TaskBench::on(bench).await;
    let (mail, charge) = (waits(&tasks, "mail"), waits(&tasks, CHARGE));
    let mails = lane(leader_core::__seam::Priority::High, "mail");
    tasks.store_all(vec![new("a")]).await;
    tasks.dispatch().await;
    ends(charge).await;
    assert!(!mail.is_finished(), "it knows no task of this name");
    tasks.store_all(vec![of_lane("m", mails)]).await;
    tasks.dispatch().await;
    ends(mail).await;
}

async fn who_leaves_something_wakes_another(bench: Bench) {
    let tasks = TaskBench::on(bench).await;
    let both = [waits(&tasks, CHARGE), waits(&tasks, CHARGE)];
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
    tasks.store_all(vec![new("a")]).await;
    tasks.dispatch().await;
    // One is woken for one task, and dies before it takes it.
    eventually(BOUND, "one is woken", || async {
        both.iter().any(JoinHandle::is_finished)
    })
    .await;
    let reply = tasks.take_by(tasks.wish("worker", 0, &[usual()])).await;
    assert_eq!((reply.taken, reply.more), (Vec::new(), true));
    for waiting in both {
        ends(waiting).await;
    }
    assert_eq!(keys(&tasks.take("worker", 9).await), ["a"]);
}

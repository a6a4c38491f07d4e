//! What people may make of a task, in each state of its life.

use std::time::Duration;

use leader_core::__seam::{Changed, Due, FinishReply, Taken, TaskChange, TaskEnding, TaskStatus};

use super::bench::{LATER, TaskBench, bury, due_in, new, retry, unique, usual};
use crate::bench::Bench;

on_each_store!(
    each_state_has_what_may_be_done_in_it,
    what_is_cancelled_before_its_time_never_runs,
    a_cancelled_one_leaves_its_stream_at_once,
    who_runs_is_told_and_may_still_be_done,
    another_time_is_kept_and_keeps_what_happened,
    a_dead_letter_lives_again_with_all_its_attempts_before_it,
    a_dead_letter_whose_unique_key_is_anothers_stays_dead,
    who_waits_for_the_next_attempt_need_not,
);

/// One task in each state, by its name.
async fn one_of_each(tasks: &TaskBench) -> Taken {
    tasks.live("done", TaskEnding::Done).await;
    tasks.live("dead", bury()).await;
    tasks.live("failed", retry(LATER)).await;
    tasks
        .store_all(vec![due_in("pending", LATER), due_in("cancelled", LATER)])
        .await;
    let cancelled = tasks.change("cancelled", TaskChange::Cancel).await;
    assert_eq!(cancelled, Changed::Done(TaskStatus::Pending));
    let running = tasks.begin(new("running")).await;
    tasks.store_all(vec![new("dispatched")]).await;
    assert_eq!(tasks.dispatch().await.moved, 1);
    running
}

async fn each_state_has_what_may_be_done_in_it(bench: Bench) {
    use TaskStatus::{Cancelled, Dead, Dispatched, Done, Failed, Pending, Running};
    let tasks = TaskBench::on(bench).await;
    one_of_each(&tasks).await;
    for status in TaskStatus::ALL {
        assert_eq!(tasks.status(status.as_str()).await, *status);
    }
    let wanted = || TaskChange::Reschedule(Due::After(2 * LATER));
    for status in [Dispatched, Running, Done, Dead, Cancelled] {
        let before = tasks.task(status.as_str()).await;
        assert_eq!(tasks.change(status.as_str(), wanted()).await, Changed::Not(status));
        assert_eq!(tasks.task(status.as_str()).await, before);
    }
    for status in [Pending, Dispatched, Running, Done, Cancelled] {
        let before = tasks.task(status.as_str()).await;
        assert_eq!(
            tasks.change(status.as_str(), TaskChange::Retry).await,
            Changed::Not(status)
        );
        assert_eq!(tasks.task(status.as_str()).await, before);
    }
    for status in [Done, Dead, Cancelled] {
        let before = tasks.task(status.as_str()).await;
        assert_eq!(
            tasks.change(status.as_str(), TaskChange::Cancel).await,
            Changed::Not(status)
        );
        assert_eq!(tasks.task(status.as_str()).await, before);
    }
    for status in [Pending, Failed] {
        assert_eq!(tasks.change(status.as_str(), wanted()).await, Changed::Done(status));
        assert_eq!(tasks.status(status.as_str()).await, status);
    }
    for status in [Pending, Failed, Dispatched] {
        assert_eq!(
            tasks.change(status.as_str(), TaskChange::Cancel).await,
            Changed::Done(status)
        );
        assert_eq!(tasks.status(status.as_str()).await, Cancelled);
    }
    assert_eq!(tasks.change("running", TaskChange::Cancel).await, Changed::Asked);
    for what in [TaskChange::Cancel, TaskChange::Retry, wanted()] {
        assert_eq!(tasks.change("never", what).await, Changed::Unknown);
    }
    assert_eq!(tasks.figures().await.unfinished, [(1, 1)].into(), "who runs is left");
}

async fn what_is_cancelled_before_its_time_never_runs(bench: Bench) {
    let tasks = TaskBench::on(bench).await;
    tasks.store_all(vec![unique("a", "u"), new("b")]).await;
    assert_eq!(
        tasks.change("a", TaskChange::Cancel).await,
        Changed::Done(TaskStatus::Pending)
    );
    assert_eq!(tasks.dispatch().await.moved, 1);
    let task = tasks.task("a").await;
    assert!(
        task.ended.is_some() && task.payload.is_none() && task.history.is_empty(),
        "{task:?}"
    );
    assert_eq!(tasks.store().unique(&tasks.shard, "u").await.unwrap(), None);
    let figures = tasks.figures().await;
    assert_eq!((figures.counts.cancelled, figures.unfinished), (1, [(1, 1)].into()));
}

async fn a_cancelled_one_leaves_its_stream_at_once(bench: Bench) {
    let tasks = TaskBench::on(bench).await;
    tasks.store_all(["a", "b", "c"].map(new).to_vec()).await;
    tasks.dispatch().await;
    tasks.change("b", TaskChange::Cancel).await;
    assert_eq!(tasks.figures().await.dispatched, 2);
    assert_eq!(tasks.list(TaskStatus::Dispatched).await, ["a", "c"]);
    // Its place is another's.
    let step = || {
        let mut step = tasks.step();
        step.room = 3;
        step
    };
    tasks.store_all(vec![new("d"), new("e")]).await;
    let moves = tasks.dispatch_by(step()).await;
    assert_eq!((moves.moved, moves.full), (1, true));
    for key in ["a", "c", "d"] {
        tasks.change(key, TaskChange::Cancel).await;
    }
    assert_eq!(
        (tasks.figures().await.dispatched, tasks.take("worker", 9).await.len()),
        (0, 0)
    );
    assert_eq!(tasks.dispatch_by(step()).await.moved, 1);
    assert_eq!(tasks.list(TaskStatus::Dispatched).await, ["e"]);
}

async fn who_runs_is_told_and_may_still_be_done(bench: Bench) {
    let tasks = TaskBench::on(bench).await;
    let taken = tasks.begin(new("a")).await;
    for _ in 0..2 {
        assert_eq!(tasks.change("a", TaskChange::Cancel).await, Changed::Asked);
    }
    assert_eq!(tasks.status("a").await, TaskStatus::Running);
    assert_eq!(tasks.figures().await.counts.cancelled, 0);
    assert_eq!(tasks.finish(&taken, TaskEnding::Done).await, FinishReply::Taken);
    assert_eq!(
        tasks.change("a", TaskChange::Cancel).await,
        Changed::Not(TaskStatus::Done)
    );
}

async fn another_time_is_kept_and_keeps_what_happened(bench: Bench) {
    let tasks = TaskBench::on(bench).await;
    tasks.live("a", retry(LATER)).await;
    tasks.store_all(vec![due_in("b", LATER)]).await;
    let at = "2200-01-01T00:00:00Z".parse().unwrap();
    for key in ["a", "b"] {
        let before = tasks.task(key).await;
        let changed = tasks.change(key, TaskChange::Reschedule(Due::At(at))).await;
        assert_eq!(changed, Changed::Done(before.status));
        let mut expected = before;
        expected.due = at;
        assert_eq!(tasks.task(key).await, expected);
    }
    assert_eq!(tasks.dispatch().await.next, Some(at));
    let soon = TaskChange::Reschedule(Due::After(Duration::ZERO));
    assert_eq!(tasks.change("b", soon).await, Changed::Done(TaskStatus::Pending));
    assert_eq!(tasks.dispatch().await.moved, 1);
    assert_eq!(tasks.figures().await.pending, 1);
}

async fn a_dead_letter_lives_again_with_all_its_attempts_before_it(bench: Bench) {
    let tasks = TaskBench::on(bench).await;
    let first = tasks.begin(unique("a", "u")).await;
    tasks.finish(&first, bury()).await;
    let before = tasks.task("a").await;
    assert_eq!(
        tasks.change("a", TaskChange::Retry).await,
        Changed::Done(TaskStatus::Dead)
    );
    let task = tasks.task("a").await;
    assert_eq!(
        (task.status, task.ended, task.history),
        (TaskStatus::Failed, None, before.history)
    );
    assert_eq!(
        tasks.store().unique(&tasks.shard, "u").await.unwrap().as_deref(),
        Some("a")
    );
    let figures = tasks.figures().await;
    assert_eq!((figures.dead, figures.pending, figures.due), (0, 1, 1));
    assert_eq!(figures.unfinished, [(1, 1)].into());
    assert_eq!(tasks.list(TaskStatus::Dead).await, [""; 0]);
    let again = tasks.begin_again("a", usual()).await;
    assert_eq!((again.attempt, again.failed, &*again.payload), (2, 0, "\"a\""));
    assert_eq!(tasks.finish(&again, TaskEnding::Done).await, FinishReply::Taken);
    assert_eq!(tasks.list(TaskStatus::Done).await, ["a"]);
    assert_eq!(tasks.figures().await.counts.dead, 1, "that it had died is so");
}

async fn a_dead_letter_whose_unique_key_is_anothers_stays_dead(bench: Bench) {
    let tasks = TaskBench::on(bench).await;
    let dead = tasks.begin(unique("a", "u")).await;
    tasks.finish(&dead, bury()).await;
    tasks.store_all(vec![unique("b", "u")]).await;
    let taken = Changed::UniqueTaken("b".to_owned());
    assert_eq!(tasks.change("a", TaskChange::Retry).await, taken);
    assert_eq!(tasks.status("a").await, TaskStatus::Dead);
    tasks.change("b", TaskChange::Cancel).await;
    assert_eq!(
        tasks.change("a", TaskChange::Retry).await,
        Changed::Done(TaskStatus::Dead)
    );
    assert_eq!(tasks.status("a").await, TaskStatus::Failed);
}

async fn who_waits_for_the_next_attempt_need_not(bench: Bench) {
    let tasks = TaskBench::on(bench).await;
    tasks.live("a", retry(LATER)).await;
    assert_eq!(tasks.dispatch().await.moved, 0);
    assert_eq!(
        tasks.change("a", TaskChange::Retry).await,
        Changed::Done(TaskStatus::Failed)
    );
    let again = tasks.begin_again("a", usual()).await;
    assert_eq!((again.attempt, again.failed), (2, 1), "a failure is one still");
}

//! Attempts end once, and what comes too late is refused.

use std::sync::Arc;
use std::time::Duration;

use jiff::SignedDuration;
use leader_core::__seam::{BeatReply, FinishReply, KEPT_ATTEMPTS, TaskChange, TaskCounts, TaskEnding, TaskStatus};
use leader_core::Ran;
use leader_tests::eventually;

use super::bench::{LATER, TaskBench, bury, end_of, new, retry, unique, usual};
use crate::bench::{BOUND, Bench, holder};
use crate::heard::Heard;

on_each_store!(
    what_is_done_is_kept_without_its_payload,
    a_failed_attempt_is_followed_by_another_after_its_pause,
    what_is_buried_keeps_its_payload,
    what_is_handed_back_is_due_at_once_and_has_not_failed,
    what_was_cancelled_is_so_whatever_else_became_of_it,
    the_last_end_may_be_told_again_while_another_attempt_runs,
    what_is_due_first_again_is_told,
    an_end_that_is_told_again_is_taken_again_and_changes_nothing,
    a_late_end_is_refused,
    the_newest_attempts_are_kept,
    ends_of_a_batch_are_judged_one_by_one,
);

async fn what_is_done_is_kept_without_its_payload(bench: Bench) {
    let tasks = TaskBench::on(bench).await;
    let taken = tasks.begin(unique("a", "u")).await;
    assert_eq!(tasks.finish(&taken, TaskEnding::Done).await, FinishReply::Taken);
    let task = tasks.task("a").await;
    assert_eq!(
        (task.status, task.payload, task.running),
        (TaskStatus::Done, None, None)
    );
    assert!(task.ended.is_some_and(|ended| ended >= task.created));
    let last = task.history.last().unwrap();
    assert_eq!((last.ran, last.fence, last.attempt), (Ran::Ok, taken.fence, 1));
    assert_eq!((&last.holder, last.error.as_str()), (&holder("worker"), ""));
    assert_eq!(Some(last.ended), task.ended);
    let figures = tasks.figures().await;
    assert_eq!((figures.running, figures.unfinished.len()), (0, 0));
    let expected = TaskCounts {
        enqueued: 1,
        dispatched: 1,
        started: 1,
        done: 1,
        ..TaskCounts::default()
    };
    assert_eq!(figures.counts, expected);
    assert_eq!(tasks.beat("a", taken.fence).await, BeatReply::Gone);
}

async fn a_failed_attempt_is_followed_by_another_after_its_pause(bench: Bench) {
    let tasks = TaskBench::on(bench).await;
    let taken = tasks.begin(unique("a", "u")).await;
    assert_eq!(tasks.finish(&taken, retry(LATER)).await, FinishReply::Taken);
    let task = tasks.task("a").await;
    let last = &task.history[0];
    assert_eq!(
        (task.status, last.ran, last.error.as_str()),
        (TaskStatus::Failed, Ran::Error, "no money")
    );
    assert_eq!(task.due.duration_since(last.ended), SignedDuration::from_secs(3_600));
    assert_eq!((task.ended, task.payload.as_deref()), (None, Some("\"a\"")));
    assert_eq!(tasks.dispatch().await.next, Some(task.due));
    let figures = tasks.figures().await;
    assert_eq!((figures.pending, figures.counts.failed, figures.counts.dead), (1, 1, 0));
    assert_eq!(figures.unfinished, [(1, 1)].into());
    tasks.change("a", TaskChange::Retry).await;
    let again = tasks.begin_again("a", usual()).await;
    assert_eq!((again.attempt, again.failed), (2, 1));
    assert!(again.fence > taken.fence);
}

async fn what_is_buried_keeps_its_payload(bench: Bench) {
    let tasks = TaskBench::on(bench).await;
    let taken = tasks.begin(new("a")).await;
    assert_eq!(tasks.finish(&taken, bury()).await, FinishReply::Taken);
    let task = tasks.task("a").await;
    let last = &task.history[0];
    assert_eq!(
        (task.status, last.ran, last.error.as_str()),
        (TaskStatus::Dead, Ran::Panic, "out of bounds")
    );
    assert_eq!((task.ended, task.payload.as_deref()), (Some(last.ended), Some("\"a\"")));
    let figures = tasks.figures().await;
    assert_eq!((figures.dead, figures.counts.dead, figures.counts.failed), (1, 1, 1));
    assert_eq!((figures.pending, figures.unfinished.len()), (0, 0));
}

async fn what_is_handed_back_is_due_at_once_and_has_not_failed(bench: Bench) {
    let tasks = TaskBench::on(bench).await;
    let taken = tasks.begin(new("a")).await;
    tasks.tick().await;
    assert_eq!(tasks.finish(&taken, TaskEnding::HandBack).await, FinishReply::Taken);
    let task = tasks.task("a").await;
    let last = &task.history[0];
    assert_eq!(
        (task.status, last.ran, task.due),
        (TaskStatus::Failed, Ran::Cancelled, last.ended)
    );
    let again = tasks.begin_again("a", usual()).await;
    assert_eq!((again.attempt, again.failed), (2, 0));
    let counts = tasks.figures().await.counts;
    assert_eq!((counts.handed_back, counts.failed), (1, 0));
}

async fn what_was_cancelled_is_so_whatever_else_became_of_it(bench: Bench) {
    let tasks = TaskBench::on(bench).await;
    let ends = [
        ("own", TaskEnding::Cancelled, false),
        ("told", TaskEnding::Cancelled, true),
        ("retry", retry(Duration::ZERO), true),
        ("bury", bury(), true),
        ("back", TaskEnding::HandBack, true),
    ];
    for (key, how, asked) in ends {
        let taken = tasks.begin(new(key)).await;
        if asked {
            tasks.change(key, TaskChange::Cancel).await;
            assert_eq!(tasks.beat(key, taken.fence).await, BeatReply::Cancel);
        }
        assert_eq!(tasks.finish(&taken, how).await, FinishReply::Taken);
        let task = tasks.task(key).await;
        assert_eq!((task.status, task.payload), (TaskStatus::Cancelled, None), "{key}");
        assert_eq!(task.history.last().map(|last| last.fence), Some(taken.fence));
    }
    // What is done is done.
    let taken = tasks.begin(new("done")).await;
    tasks.change("done", TaskChange::Cancel).await;
    tasks.finish(&taken, TaskEnding::Done).await;
    assert_eq!(tasks.status("done").await, TaskStatus::Done);
    let figures = tasks.figures().await;
    let counts = figures.counts;
    assert_eq!(
        (counts.cancelled, counts.done, counts.failed, counts.handed_back),
        (5, 1, 0, 0)
    );
    assert_eq!((figures.pending, figures.dead, figures.unfinished.len()), (0, 0, 0));
}

async fn an_end_that_is_told_again_is_taken_again_and_changes_nothing(bench: Bench) {
    let tasks = TaskBench::on(bench).await;
    let all = [
        ("done", TaskEnding::Done),
        ("retry", retry(LATER)),
        ("bury", bury()),
        ("cancelled", TaskEnding::Cancelled),
        ("back", TaskEnding::HandBack),
    ];
    for (key, how) in all {
        let taken = tasks.begin(new(key)).await;
        assert_eq!(tasks.finish(&taken, how.clone()).await, FinishReply::Taken);
        let (task, counts) = (tasks.task(key).await, tasks.figures().await.counts);
        for _ in 0..2 {
            assert_eq!(tasks.finish(&taken, how.clone()).await, FinishReply::Taken, "{key}");
        }
        assert_eq!((tasks.task(key).await, tasks.figures().await.counts), (task, counts));
        // As it was told first.
        assert_eq!(tasks.finish(&taken, bury()).await, FinishReply::Taken);
        assert_eq!(tasks.figures().await.counts, counts);
    }
}

/// Its answer was lost, and the task is another's by now.
async fn the_last_end_may_be_told_again_while_another_attempt_runs(bench: Bench) {
    let tasks = TaskBench::on(bench).await;
    for how in [retry(Duration::ZERO), TaskEnding::HandBack] {
        let key = format!("{how:?}");
        let first = tasks.begin(new(&key)).await;
        tasks.finish(&first, how.clone()).await;
        let second = tasks.begin_again(&key, usual()).await;
        let (task, counts) = (tasks.task(&key).await, tasks.figures().await.counts);
        assert_eq!(tasks.finish(&first, how).await, FinishReply::Taken);
        assert_eq!(tasks.finish(&first, TaskEnding::Done).await, FinishReply::Taken);
        assert_eq!((tasks.task(&key).await, tasks.figures().await.counts), (task, counts));
        assert_eq!(tasks.finish(&second, TaskEnding::Done).await, FinishReply::Taken);
        assert_eq!(tasks.finish(&first, TaskEnding::Done).await, FinishReply::Late);
    }
}

async fn what_is_due_first_again_is_told(bench: Bench) {
    let tasks = TaskBench::on(bench).await;
    let ears = Arc::new(Heard::default());
    let (store, told) = (Arc::clone(&tasks.bench.store), Arc::clone(&ears));
    let listening = tokio::spawn(async move { store.listen(told).await });
    let heard = || ears.due.lock().unwrap().clone();
    tasks.store_all(["a", "b", "c", "d"].map(new).to_vec()).await;
    tasks.dispatch().await;
    let taken = tasks.take("worker", 9).await;
    // Each is due a little before the one before, until somebody listens.
    let mut hours = 1_000;
    eventually(BOUND, "a first due is heard", || {
        hours -= 1;
        let (tasks, heard) = (&tasks, &heard);
        async move {
            let task = super::bench::due_in(&hours.to_string(), LATER * hours);
            tasks.store_all(vec![task]).await;
            !heard().is_empty()
        }
    })
    .await;
    let group = tasks.shard.group().to_string();
    // Neither is this one the first, nor are those told together more than once.
    tasks.finish(&taken[0], retry(LATER * 2_000)).await;
    let ends = [(1, 20), (2, 10)].map(|(n, hours)| end_of(&taken[n], retry(LATER * hours)));
    tasks.finish_all(ends.to_vec()).await;
    let failed = (group.clone(), tasks.task("c").await.due);
    tasks.finish(&taken[3], TaskEnding::HandBack).await;
    let back = (group, tasks.task("d").await.due);
    eventually(BOUND, "all are told", || async { heard().last() == Some(&back) }).await;
    let heard = heard();
    assert!(heard.ends_with(&[failed, back]), "{heard:?}");
    let others = [tasks.task("a").await.due, tasks.task("b").await.due];
    assert!(!heard.iter().any(|(_, due)| others.contains(due)), "{heard:?}");
    listening.abort();
}

async fn a_late_end_is_refused(bench: Bench) {
    let tasks = TaskBench::on(bench).await;
    let first = tasks.begin(new("a")).await;
    tasks.finish(&first, retry(Duration::ZERO)).await;
    let second = tasks.begin_again("a", usual()).await;
    tasks.finish(&second, retry(Duration::ZERO)).await;
    // Not its last attempt any more.
    assert_eq!(tasks.finish(&first, TaskEnding::Done).await, FinishReply::Late);
    let third = tasks.begin_again("a", usual()).await;
    assert_eq!(tasks.finish(&first, TaskEnding::Done).await, FinishReply::Late);
    assert_eq!(tasks.finish(&third, TaskEnding::Done).await, FinishReply::Taken);
    // Nobody has ever had this.
    let mut unknown = third.clone();
    unknown.key = new("x").key;
    assert_eq!(tasks.finish(&unknown, TaskEnding::Done).await, FinishReply::Late);
    let mut wrong = third;
    wrong.fence += 1;
    assert_eq!(tasks.finish(&wrong, TaskEnding::Done).await, FinishReply::Late);
    let counts = tasks.figures().await.counts;
    assert_eq!((counts.late, counts.done, counts.failed), (4, 1, 2));
}

async fn the_newest_attempts_are_kept(bench: Bench) {
    let tasks = TaskBench::on(bench).await;
    tasks.store_all(vec![new("a")]).await;
    let all = KEPT_ATTEMPTS + 3;
    let mut fences = Vec::new();
    for _ in 0..all {
        let taken = tasks.begin_again("a", usual()).await;
        fences.push(taken.fence);
        assert_eq!(tasks.finish(&taken, retry(Duration::ZERO)).await, FinishReply::Taken);
    }
    let task = tasks.task("a").await;
    assert_eq!(task.attempts as usize, all);
    let kept: Vec<_> = task.history.iter().map(|past| past.fence).collect();
    assert_eq!(kept, fences[3..]);
    assert_eq!(task.history[0].attempt, 4);
    let last = tasks.begin_again("a", usual()).await;
    assert_eq!(last.failed as usize, all);
    tasks.finish(&last, TaskEnding::Done).await;
    let task = tasks.task("a").await;
    assert_eq!(
        (task.history.len(), task.history.last().unwrap().ran),
        (KEPT_ATTEMPTS, Ran::Ok)
    );
}

async fn ends_of_a_batch_are_judged_one_by_one(bench: Bench) {
    use FinishReply::{Late, Taken};

    let tasks = TaskBench::on(bench).await;
    tasks.store_all(["a", "b", "c"].map(new).to_vec()).await;
    tasks.dispatch().await;
    let taken = tasks.take("worker", 9).await;
    let mut gone = end_of(&taken[1], TaskEnding::Done);
    gone.fence -= 1;
    let ends = vec![
        end_of(&taken[0], TaskEnding::Done),
        gone,
        end_of(&taken[2], retry(LATER)),
        end_of(&taken[2], retry(LATER)),
    ];
    assert_eq!(tasks.finish_all(ends).await, [Taken, Late, Taken, Taken]);
    let mut statuses = Vec::new();
    for key in ["a", "b", "c"] {
        statuses.push(tasks.status(key).await);
    }
    assert_eq!(statuses, [TaskStatus::Done, TaskStatus::Running, TaskStatus::Failed]);
    assert_eq!(tasks.finish_all(Vec::new()).await, []);
}

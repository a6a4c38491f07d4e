//! Attempts whose workers fall silent are lost, and their tasks are not.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use leader_core::__seam::{BeatReply, FinishReply, LostAttempt, PastAttempt, TaskChange, TaskEnding, TaskStatus};
use leader_core::Ran;

use super::bench::{TaskBench, keys, new, unique, usual};
use crate::bench::{Bench, LONG, holder};

on_each_store!(
    a_silent_attempt_is_lost_and_its_task_is_tried_again,
    nobody_judges_a_silence_that_he_would_not_have_heard,
    a_sign_of_life_keeps_an_attempt,
    a_task_that_is_lost_too_often_is_dead,
    the_longest_silent_are_lost_first_and_not_all_at_once,
    what_was_to_be_cancelled_is_not_tried_again,
);

/// As much as is not taken for the difference of two clocks.
async fn pass(tasks: &TaskBench) {
    for _ in 0..5 {
        tasks.tick().await;
    }
}

/// A silence may be measured by another clock than instants are told by.
fn is_about(told: Timestamp, expected: Timestamp) -> bool {
    told.duration_since(expected).abs() <= SignedDuration::from_millis(1)
}

async fn a_silent_attempt_is_lost_and_its_task_is_tried_again(bench: Bench) {
    let tasks = TaskBench::on(bench).await;
    let lost = tasks.begin(unique("a", "u")).await;
    let moves = tasks.dispatch_by(tasks.impatient()).await;
    let expected = LostAttempt {
        key: "a".to_owned(),
        lane: usual(),
        attempt: 1,
        holder: holder("worker"),
        dead: false,
    };
    // It is due in that very step.
    assert_eq!(
        (moves.lost, moves.moved, moves.first_due),
        (vec![expected], 1, Some(moves.now))
    );
    assert_eq!(moves.silent_at, None);
    let task = tasks.task("a").await;
    assert_eq!(
        (task.status, task.due, task.running),
        (TaskStatus::Dispatched, moves.now, None)
    );
    let past = PastAttempt {
        attempt: 1,
        fence: lost.fence,
        holder: holder("worker"),
        began: task.history[0].began,
        ended: moves.now,
        ran: Ran::Lost,
        error: "the worker fell silent".to_owned(),
    };
    assert_eq!(task.history, [past]);
    let again = tasks.take("other", 9).await.pop().unwrap();
    assert!(again.fence > lost.fence);
    // What was lost counts for no failure.
    assert_eq!((again.attempt, again.failed), (2, 0));
    assert_eq!(tasks.beat("a", lost.fence).await, BeatReply::Gone);
    assert_eq!(tasks.finish(&lost, TaskEnding::Done).await, FinishReply::Late);
    assert_eq!(tasks.beat("a", again.fence).await, BeatReply::Heard);
    assert_eq!(tasks.finish(&again, TaskEnding::Done).await, FinishReply::Taken);
    let counts = tasks.figures().await.counts;
    assert_eq!((counts.lost, counts.failed, counts.late, counts.done), (1, 0, 1, 1));
    assert_eq!(counts.dispatched, 2);
}

async fn nobody_judges_a_silence_that_he_would_not_have_heard(bench: Bench) {
    let tasks = TaskBench::on(bench).await;
    let taken = tasks.begin(new("a")).await;
    let mut step = tasks.step();
    step.silence = Duration::from_millis(2);
    let over = tasks.dispatch_by(step.clone()).await.silent_at.unwrap();
    let heard = tasks.task("a").await.running.unwrap().heard;
    assert!(is_about(over, heard + step.silence), "{over} of {heard}");
    while tasks.figures().await.now <= over {
        tasks.tick().await;
    }
    step.connected = Duration::from_millis(1);
    let moves = tasks.dispatch_by(step.clone()).await;
    assert!(moves.lost.is_empty(), "{moves:?}");
    let told = moves.silent_at.expect("it is told, and has passed");
    assert!(is_about(told, over), "{moves:?}");
    step.connected = step.silence;
    let lost = tasks.dispatch_by(step).await.lost;
    assert_eq!((lost.len(), tasks.beat("a", taken.fence).await), (1, BeatReply::Gone));
}

async fn a_sign_of_life_keeps_an_attempt(bench: Bench) {
    let tasks = TaskBench::on(bench).await;
    tasks.store_all(vec![new("a"), new("b")]).await;
    tasks.dispatch().await;
    let a = tasks.take("worker", 1).await.pop().unwrap();
    pass(&tasks).await;
    let b = tasks.take("worker", 1).await.pop().unwrap();
    let mut step = tasks.step();
    (step.silence, step.connected) = (LONG, LONG);
    let silent_after = async |key: &str| {
        let moves = tasks.dispatch_by(step.clone()).await;
        let heard = tasks.task(key).await.running.unwrap().heard;
        let told = moves.silent_at.unwrap();
        assert!(
            moves.lost.is_empty() && is_about(told, heard + LONG),
            "{key}: {moves:?}"
        );
        heard
    };
    let before = silent_after("a").await;
    pass(&tasks).await;
    assert_eq!(tasks.beat("a", a.fence).await, BeatReply::Heard);
    // Now the other one was heard of longest ago.
    silent_after("b").await;
    pass(&tasks).await;
    assert_eq!(tasks.beat("b", b.fence).await, BeatReply::Heard);
    assert!(silent_after("a").await > before);
}

async fn a_task_that_is_lost_too_often_is_dead(bench: Bench) {
    let tasks = TaskBench::on(bench).await;
    tasks.store_all(vec![unique("a", "u")]).await;
    tasks.dispatch().await;
    let mut step = tasks.impatient();
    step.losses = 2;
    for attempt in 1..=3 {
        let taken = tasks.take("worker", 9).await;
        assert_eq!((keys(&taken), taken[0].attempt), (vec!["a"], attempt));
        let moves = tasks.dispatch_by(step.clone()).await;
        let dead = attempt == 3;
        assert_eq!((moves.lost[0].dead, moves.lost[0].attempt), (dead, attempt));
        assert_eq!(moves.moved, u32::from(!dead));
    }
    let task = tasks.task("a").await;
    assert_eq!((task.status, task.attempts), (TaskStatus::Dead, 3));
    assert_eq!(task.history.len(), 3);
    assert_eq!(task.history[2].error, "the worker fell silent");
    assert_eq!(task.payload.as_deref(), Some("\"a\""), "it may be wanted again");
    let figures = tasks.figures().await;
    assert_eq!((figures.dead, figures.counts.dead, figures.counts.lost), (1, 1, 3));
    assert!(figures.unfinished.is_empty());
    assert_eq!(tasks.store().unique(&tasks.shard, "u").await.unwrap(), None);
    // Who asks for it gives it all its losses back.
    tasks.change("a", TaskChange::Retry).await;
    tasks.begin_again("a", usual()).await;
    assert!(!tasks.dispatch_by(step).await.lost[0].dead);
}

async fn the_longest_silent_are_lost_first_and_not_all_at_once(bench: Bench) {
    let tasks = TaskBench::on(bench).await;
    tasks
        .store_all((0..120).map(|n| new(&format!("{n:03}"))).collect())
        .await;
    tasks.dispatch().await;
    // The second half is heard of longer ago.
    let late = tasks.take("worker", 60).await;
    tasks.take("worker", 60).await;
    tasks.tick().await;
    for taken in &late {
        assert_eq!(tasks.beat(&taken.key, taken.fence).await, BeatReply::Heard);
    }
    let mut step = tasks.impatient();
    step.most = 0;
    let lost = async || -> Vec<String> {
        let lost = tasks.dispatch_by(step.clone()).await.lost;
        lost.into_iter().map(|lost| lost.key).collect()
    };
    let first = lost().await;
    let names = |range: std::ops::Range<u32>| range.map(|n| format!("{n:03}")).collect::<Vec<_>>();
    assert_eq!((first.len(), &first[..60]), (100, &names(60..120)[..]));
    assert_eq!(first[60..], names(0..40));
    assert_eq!(lost().await, names(40..60));
    assert_eq!(lost().await, [""; 0]);
    assert_eq!((tasks.figures().await.pending, tasks.figures().await.running), (120, 0));
}

async fn what_was_to_be_cancelled_is_not_tried_again(bench: Bench) {
    let tasks = TaskBench::on(bench).await;
    let taken = tasks.begin(new("a")).await;
    tasks.change("a", TaskChange::Cancel).await;
    // Not even where it would be dead otherwise.
    let mut step = tasks.impatient();
    step.losses = 0;
    let moves = tasks.dispatch_by(step).await;
    assert_eq!((moves.lost.len(), moves.lost[0].dead, moves.moved), (1, false, 0));
    let task = tasks.task("a").await;
    assert_eq!((task.status, task.history[0].ran), (TaskStatus::Cancelled, Ran::Lost));
    assert_eq!(tasks.finish(&taken, TaskEnding::Done).await, FinishReply::Late);
    let figures = tasks.figures().await;
    assert_eq!(
        (figures.counts.lost, figures.counts.cancelled, figures.unfinished.len()),
        (1, 1, 0)
    );
}

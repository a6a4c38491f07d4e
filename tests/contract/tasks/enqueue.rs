//! Tasks are stored once, whatever is asked again.

use std::sync::Arc;
use std::time::Duration;

use jiff::SignedDuration;
use leader_core::__seam::{Due, EnqueueReply, FinishReply, TaskChange, TaskCounts, TaskEnding, TaskKeep, TaskStatus};
use leader_tests::eventually;

use super::bench::{CHARGE, LATER, TaskBench, bury, due_in, new, once, unique, usual};
use crate::bench::{BOUND, Bench, holder};
use crate::heard::Heard;

on_each_store!(
    what_is_stored_can_be_read,
    a_batch_that_is_asked_again_stores_nothing_more,
    numbers_are_each_producers_own,
    a_key_that_is_known_is_not_stored_again,
    a_unique_key_belongs_to_one_unfinished_task,
    of_two_with_one_unique_key_in_a_batch_the_first_is_stored,
    a_repetition_names_who_has_the_unique_key,
    a_repetition_is_answered_as_the_batch_was_whatever_has_ended_since,
    what_is_stored_once_is_remembered_until_it_is_forgotten,
    a_batch_of_an_earlier_generation_is_refused,
    instants_are_whole_milliseconds,
    the_first_due_is_told,
    shards_share_nothing,
);

async fn what_is_stored_can_be_read(bench: Bench) {
    let tasks = TaskBench::on(bench).await;
    assert_eq!(tasks.look("a").await, None);
    assert_eq!(tasks.figures().await.counts, TaskCounts::default());
    let mut task = unique("a", "invoice-42");
    task.due = Due::After(LATER);
    let before = tasks.figures().await.now;
    tasks.store_all(vec![task]).await;
    let stored = tasks.task("a").await;
    assert!(stored.created >= before, "{stored:?}");
    assert_eq!(
        stored.due.duration_since(stored.created),
        SignedDuration::from_secs(3_600)
    );
    assert_eq!(
        (stored.lane, stored.status, stored.ended),
        (usual(), TaskStatus::Pending, None)
    );
    assert_eq!(stored.unique.as_deref(), Some("invoice-42"));
    assert_eq!((stored.attempts, stored.running, stored.history), (0, None, Vec::new()));
    assert_eq!(stored.payload.as_deref(), Some("\"a\""));
    let figures = tasks.figures().await;
    assert_eq!((figures.pending, figures.due, figures.oldest_due), (1, 0, None));
    assert_eq!(figures.unfinished, [(1, 1)].into());
    assert_eq!(figures.counts.enqueued, 1);
}

async fn a_batch_that_is_asked_again_stores_nothing_more(bench: Bench) {
    let tasks = TaskBench::on(bench).await;
    let earlier = tasks.batch(vec![new("z")]);
    let batch = tasks.batch(vec![new("a"), new("b")]);
    for _ in 0..2 {
        assert_eq!(tasks.send(batch.clone()).await, [None, None]);
    }
    // Its own one before, on its way for so long.
    assert_eq!(tasks.send(earlier).await, [None]);
    assert_eq!(tasks.look("z").await, None);
    let figures = tasks.figures().await;
    assert_eq!((figures.pending, figures.counts.enqueued), (2, 2));
    // Also when they have ended, and nothing is known of them any more.
    tasks.dispatch().await;
    for taken in tasks.take("worker", 2).await {
        assert_eq!(tasks.finish(&taken, TaskEnding::Done).await, FinishReply::Taken);
    }
    let mut forgets = tasks.step();
    forgets.keep.ended = 0;
    tasks.dispatch_by(forgets).await;
    assert_eq!(tasks.look("a").await, None);
    assert_eq!(tasks.send(batch).await, [None, None]);
    assert_eq!(tasks.figures().await.counts.enqueued, 2);
}

async fn numbers_are_each_producers_own(bench: Bench) {
    let tasks = TaskBench::on(bench).await;
    let first = tasks.batch(vec![new("a")]);
    let mut second = first.clone();
    second.producer = holder("another");
    second.tasks = vec![new("b")];
    tasks.send(first).await;
    tasks.send(second).await;
    assert_eq!(tasks.list(TaskStatus::Pending).await, ["a", "b"]);
}

async fn a_key_that_is_known_is_not_stored_again(bench: Bench) {
    let tasks = TaskBench::on(bench).await;
    let again = || {
        let mut again = due_in("a", LATER);
        again.payload = "\"other\"".into();
        vec![again]
    };
    tasks.store_all(vec![due_in("a", LATER)]).await;
    let stored = tasks.task("a").await;
    assert_eq!(tasks.enqueue(again()).await, [None]);
    assert_eq!(tasks.task("a").await, stored);
    tasks.change("a", TaskChange::Cancel).await;
    assert_eq!(tasks.status("a").await, TaskStatus::Cancelled);
    // What has ended is no longer known by that.
    assert_eq!(tasks.enqueue(again()).await, [None]);
    let task = tasks.task("a").await;
    assert_eq!(
        (task.status, task.payload.as_deref()),
        (TaskStatus::Pending, Some("\"other\""))
    );
    tasks.live("b", bury()).await;
    assert_eq!(tasks.enqueue(vec![new("b")]).await, [None]);
    assert_eq!(tasks.status("b").await, TaskStatus::Dead);
    assert_eq!(tasks.figures().await.counts.enqueued, 3);
}

async fn a_unique_key_belongs_to_one_unfinished_task(bench: Bench) {
    let tasks = TaskBench::on(bench).await;
    let holds = async || tasks.store().unique(&tasks.shard, "u").await.unwrap();
    let other = |key: &str| Some(key.to_owned());
    assert_eq!(holds().await, None);
    let a = tasks.begin(unique("a", "u")).await;
    assert_eq!(a.unique.as_deref(), Some("u"));
    assert_eq!(holds().await, other("a"));
    assert_eq!(
        tasks.enqueue(vec![unique("b", "u"), new("c")]).await,
        [other("a"), None]
    );
    assert_eq!(
        (tasks.look("b").await, tasks.status("c").await),
        (None, TaskStatus::Pending)
    );
    // Its own is no other's.
    assert_eq!(tasks.enqueue(vec![unique("a", "u")]).await, [None]);
    // One that waits for its next attempt is unfinished.
    tasks.finish(&a, super::bench::retry(LATER)).await;
    assert_eq!(tasks.enqueue(vec![unique("b", "u")]).await, [other("a")]);
    tasks.change("a", TaskChange::Cancel).await;
    assert_eq!(holds().await, None);
    tasks.store_all(vec![unique("d", "u")]).await;
    assert_eq!(holds().await, other("d"));
    tasks.change("d", TaskChange::Cancel).await;
    tasks.change("c", TaskChange::Cancel).await;
    for (key, how) in [("e", TaskEnding::Done), ("f", bury())] {
        let taken = tasks.begin(unique(key, "u")).await;
        assert_eq!(tasks.finish(&taken, how).await, FinishReply::Taken);
        assert_eq!(holds().await, None, "after {key}");
    }
}

async fn of_two_with_one_unique_key_in_a_batch_the_first_is_stored(bench: Bench) {
    let tasks = TaskBench::on(bench).await;
    let answers = tasks
        .enqueue(vec![unique("a", "u"), unique("b", "u"), unique("c", "v")])
        .await;
    assert_eq!(answers, [None, Some("a".to_owned()), None]);
    assert_eq!(tasks.list(TaskStatus::Pending).await, ["a", "c"]);
}

async fn a_repetition_names_who_has_the_unique_key(bench: Bench) {
    let tasks = TaskBench::on(bench).await;
    tasks.store_all(vec![unique("a", "u")]).await;
    let batch = tasks.batch(vec![unique("b", "u"), unique("c", "v")]);
    for _ in 0..2 {
        assert_eq!(tasks.send(batch.clone()).await, [Some("a".to_owned()), None]);
    }
}

async fn a_repetition_is_answered_as_the_batch_was_whatever_has_ended_since(bench: Bench) {
    let tasks = TaskBench::on(bench).await;
    tasks.store_all(vec![unique("a", "u"), once("o")]).await;
    let batch = tasks.batch(vec![unique("b", "u"), new("c"), once("o"), unique("d", "v")]);
    let said = [Some("a".to_owned()), None, Some("o".to_owned()), None];
    assert_eq!(tasks.send(batch.clone()).await, said);
    for key in ["a", "c", "d", "o"] {
        tasks.change(key, TaskChange::Cancel).await;
    }
    let keys = vec!["o".to_owned()];
    tasks.store().forget_once(&tasks.shard, keys).await.unwrap();
    for _ in 0..2 {
        assert_eq!(tasks.send(batch.clone()).await, said);
    }
    // Also while another has the key that one of them had.
    tasks.store_all(vec![unique("e", "v")]).await;
    let mut forgets = tasks.step();
    forgets.keep.ended = 0;
    tasks.dispatch_by(forgets).await;
    assert_eq!(
        tasks.send(batch).await,
        [None, None, None, None],
        "it is not the last any more"
    );
    assert_eq!(tasks.list(TaskStatus::Dispatched).await, ["e"]);
    assert_eq!(tasks.figures().await.counts.enqueued, 5);
}

async fn what_is_stored_once_is_remembered_until_it_is_forgotten(bench: Bench) {
    let tasks = TaskBench::on(bench).await;
    let batch = tasks.batch(vec![once("job@tick")]);
    for _ in 0..2 {
        assert_eq!(tasks.send(batch.clone()).await, [None]);
    }
    assert_eq!(
        tasks.enqueue(vec![once("job@tick")]).await,
        [Some("job@tick".to_owned())]
    );
    let taken = tasks.begin_again("job@tick", usual()).await;
    tasks.finish(&taken, TaskEnding::Done).await;
    let mut forgets = tasks.step();
    forgets.keep.ended = 0;
    tasks.dispatch_by(forgets).await;
    assert_eq!(tasks.look("job@tick").await, None);
    assert_eq!(
        tasks.enqueue(vec![once("job@tick")]).await,
        [Some("job@tick".to_owned())]
    );
    assert_eq!(tasks.figures().await.counts.enqueued, 1);
    for _ in 0..2 {
        let keys = vec!["job@tick".to_owned(), "never".to_owned()];
        tasks.store().forget_once(&tasks.shard, keys).await.unwrap();
    }
    tasks.store_all(vec![once("job@tick")]).await;
    assert_eq!(tasks.status("job@tick").await, TaskStatus::Pending);
    // Of others nothing is remembered.
    tasks.change("job@tick", TaskChange::Cancel).await;
    tasks.live("plain", TaskEnding::Done).await;
    let mut forgets = tasks.step();
    forgets.keep.ended = 0;
    tasks.dispatch_by(forgets).await;
    tasks.store_all(vec![once("plain")]).await;
    assert_eq!(tasks.status("plain").await, TaskStatus::Pending);
}

async fn a_batch_of_an_earlier_generation_is_refused(bench: Bench) {
    let tasks = TaskBench::on(bench).await;
    let of = |generation, keys: &[&str]| {
        let mut batch = tasks.batch(keys.iter().map(|key| due_in(key, LATER)).collect());
        batch.generation = generation;
        batch
    };
    tasks.send(of(1, &["a"])).await;
    // A batch without tasks tells of the generation too.
    assert!(tasks.send(of(3, &[])).await.is_empty());
    let late = of(2, &["b"]);
    let moved = EnqueueReply::Moved { generation: 3 };
    assert_eq!(tasks.store().enqueue(late.clone()).await.unwrap(), moved);
    assert_eq!(tasks.look("b").await, None);
    // What was refused was not taken: under its number the same may come by the new generation.
    let mut again = late;
    again.generation = 3;
    assert_eq!(tasks.send(again).await, [None]);
    tasks.send(of(4, &["c", "d"])).await;
    assert_eq!(tasks.figures().await.unfinished, [(1, 1), (3, 1), (4, 2)].into());
    let moved = EnqueueReply::Moved { generation: 4 };
    assert_eq!(tasks.store().enqueue(of(3, &["e"])).await.unwrap(), moved);
    for key in ["a", "c"] {
        tasks.change(key, TaskChange::Cancel).await;
    }
    assert_eq!(tasks.figures().await.unfinished, [(3, 1), (4, 1)].into());
}

async fn instants_are_whole_milliseconds(bench: Bench) {
    let tasks = TaskBench::on(bench).await;
    let mut at = new("at");
    at.due = Due::At("2200-01-01T00:00:00.0125Z".parse().unwrap());
    let after = due_in("after", LATER + Duration::from_micros(999));
    tasks.store_all(vec![at, after]).await;
    // None early: a part is a whole one.
    let whole = "2200-01-01T00:00:00.013Z".parse().unwrap();
    assert_eq!(tasks.task("at").await.due, whole);
    let after = tasks.task("after").await;
    assert_eq!(
        after.due.duration_since(after.created),
        SignedDuration::from_millis(3_600_001)
    );
}

async fn the_first_due_is_told(bench: Bench) {
    let tasks = TaskBench::on(bench).await;
    let ears = Arc::new(Heard::default());
    let (store, told) = (Arc::clone(&tasks.bench.store), Arc::clone(&ears));
    let listening = tokio::spawn(async move { store.listen(told).await });
    let heard = || ears.due.lock().unwrap().clone();
    let group = tasks.shard.group().to_string();
    // Each is due a little before the one before, until somebody listens.
    let mut hours = 1_000;
    let hour = |hours: u32| Duration::from_secs(3_600) * hours;
    eventually(BOUND, "a first due is heard", || {
        hours -= 1;
        let (tasks, heard) = (&tasks, &heard);
        async move {
            tasks.store_all(vec![due_in(&format!("{hours}"), hour(hours))]).await;
            !heard().is_empty()
        }
    })
    .await;
    // What is due later, or at that very instant, is no news.
    let first = tasks.task(&hours.to_string()).await.due;
    let mut same = new("same");
    same.due = Due::At(first);
    tasks.store_all(vec![same, due_in("later", hour(1_001))]).await;
    tasks.store_all(vec![due_in("x", hour(2)), due_in("y", hour(1))]).await;
    let y = tasks.task("y").await.due;
    tasks
        .change("x", TaskChange::Reschedule(Due::After(Duration::from_secs(60))))
        .await;
    let x = tasks.task("x").await.due;
    let last = [(group.clone(), first), (group.clone(), y), (group, x)];
    eventually(BOUND, "all are told", || async { heard().last() == last.last() }).await;
    let heard = heard();
    assert!(heard.ends_with(&last), "{heard:?}");
    assert_eq!(heard.iter().filter(|told| **told == last[0]).count(), 1, "{heard:?}");
    listening.abort();
}

async fn shards_share_nothing(bench: Bench) {
    let tasks = TaskBench::on(bench).await;
    tasks.store_all(vec![unique("a", "u")]).await;
    let mut other = tasks.batch(vec![unique("b", "u")]);
    other.shard.index = 1;
    let shard = other.shard.clone();
    assert_eq!(tasks.send(other).await, [None]);
    assert_eq!((tasks.look("b").await, tasks.dispatch().await.moved), (None, 1));
    let figures = tasks.store().task_figures(&shard).await.unwrap();
    assert_eq!(
        (figures.pending, figures.dispatched, figures.counts.dispatched),
        (1, 0, 0)
    );
    let stored = tasks.store().task(&shard, "b").await.unwrap().unwrap();
    assert_eq!((stored.lane.task.as_str(), stored.key.as_str()), (CHARGE, "b"));
    assert_ne!(TaskKeep::default().ended, 0);
}

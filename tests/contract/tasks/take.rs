//! Attempts begin under fences, once each, and give signs of life.

use std::sync::Arc;
use std::time::Duration;

use leader_core::__seam::{
    BeatReply, Changed, FinishReply, Lane, LaneRoom, Priority, RunningAttempt, TAKE_BYTES, TakeReply, TaskBeats,
    TaskChange, TaskEnding, TaskStatus,
};

use super::bench::{LATER, TaskBench, due_in, keys, lane, new, of_lane, retry, unique, usual};
use crate::bench::{Bench, holder};

on_each_store!(
    an_attempt_begins_under_a_fence_above_every_number_before_it,
    the_same_number_gets_the_same_attempts,
    a_step_that_comes_late_begins_nothing,
    an_earlier_copy_of_an_empty_step_begins_nothing,
    lanes_are_read_in_the_order_asked_for,
    each_lane_and_all_of_them_have_a_most,
    who_is_told_of_more_may_take_it,
    what_is_taken_at_once_is_bounded_in_bytes,
    a_cancelled_one_is_never_begun,
    signs_of_life_are_judged_one_by_one,
    two_workers_never_get_the_same,
);

async fn an_attempt_begins_under_a_fence_above_every_number_before_it(bench: Bench) {
    let tasks = TaskBench::on(bench).await;
    tasks.store_all(vec![unique("a", "u")]).await;
    let stored = tasks.task("a").await;
    tasks.dispatch().await;
    let before = tasks.figures().await.now;
    let a = tasks.take("worker", 9).await.pop().unwrap();
    assert!(a.fence > tasks.term);
    assert_eq!((a.key.as_str(), &a.lane, a.attempt, a.failed), ("a", &usual(), 1, 0));
    assert_eq!((a.due, a.created, a.generation), (stored.due, stored.created, 1));
    assert_eq!((a.unique.as_deref(), &*a.payload), (Some("u"), "\"a\""));
    let task = tasks.task("a").await;
    let running = task.running.clone().unwrap();
    assert!(running.began >= before && running.heard == running.began, "{running:?}");
    let expected = RunningAttempt {
        fence: a.fence,
        holder: holder("worker"),
        ..running
    };
    assert_eq!(
        (task.status, task.attempts, running),
        (TaskStatus::Running, 1, expected)
    );
    let figures = tasks.figures().await;
    assert_eq!((figures.pending, figures.dispatched, figures.running), (0, 0, 1));
    assert_eq!(figures.counts.started, 1);

    assert_eq!(tasks.finish(&a, retry(Duration::ZERO)).await, FinishReply::Taken);
    let again = tasks.begin_again("a", usual()).await;
    assert_eq!((again.attempt, again.failed), (2, 1));
    assert!(again.fence > a.fence);
    // A term that comes after is above them all.
    tasks.bench.release(&tasks.leader, tasks.term, None).await;
    assert!(tasks.bench.acquire(&holder("other")).await > again.fence);
}

async fn the_same_number_gets_the_same_attempts(bench: Bench) {
    let tasks = TaskBench::on(bench).await;
    tasks.store_all(["a", "b", "c"].map(new).to_vec()).await;
    tasks.dispatch().await;
    let mut wish = tasks.wish("worker", 2, &[usual()]);
    let first = tasks.take_by(wish.clone()).await;
    assert_eq!((keys(&first.taken), first.more), (vec!["a", "b"], true));
    for _ in 0..2 {
        assert_eq!(tasks.take_by(wish.clone()).await, first);
    }
    assert_eq!(tasks.figures().await.counts.started, 2);
    tasks.finish(&first.taken[0], TaskEnding::Done).await;
    assert_eq!(tasks.take_by(wish.clone()).await.taken, first.taken[1..]);
    // One that was lost, and is another's by now.
    tasks.dispatch_by(tasks.impatient()).await;
    let others = tasks.take("other", 2).await;
    assert_eq!(keys(&others), ["c", "b"]);
    assert_eq!(tasks.take_by(wish.clone()).await.taken, []);
    // Another worker's numbers are its own.
    tasks.store_all(vec![new("d")]).await;
    tasks.dispatch().await;
    wish.holder = holder("third");
    assert_eq!(keys(&tasks.take_by(wish).await.taken), ["d"]);
}

/// Its worker has gone on, and would not know of what it begins.
async fn a_step_that_comes_late_begins_nothing(bench: Bench) {
    let tasks = TaskBench::on(bench).await;
    tasks.store_all(["a", "b", "c"].map(new).to_vec()).await;
    tasks.dispatch().await;
    let wishes = [(); 3].map(|()| tasks.wish("worker", 1, &[usual()]));
    assert_eq!(keys(&tasks.take_by(wishes[1].clone()).await.taken), ["a"]);
    for _ in 0..2 {
        let reply = tasks.take_by(wishes[0].clone()).await;
        assert_eq!((reply.taken, reply.more), (Vec::new(), true));
    }
    assert_eq!(tasks.status("b").await, TaskStatus::Dispatched);
    assert_eq!(keys(&tasks.take_by(wishes[2].clone()).await.taken), ["b"]);
    // It is no repetition any more either.
    assert_eq!(tasks.take_by(wishes[1].clone()).await.taken, []);
    // Of another worker that number may be the first.
    let mut other = wishes[0].clone();
    other.holder = holder("other");
    assert_eq!(keys(&tasks.take_by(other).await.taken), ["c"]);
    assert_eq!(tasks.figures().await.counts.started, 3);
}

/// A step that was asked twice and began nothing is remembered too, before the queue has held anything.
async fn an_earlier_copy_of_an_empty_step_begins_nothing(bench: Bench) {
    let tasks = TaskBench::on(bench).await;
    let [first, second, third] = [(); 3].map(|()| tasks.wish("worker", 1, &[usual()]));
    let mut again = first.clone();
    again.again = true;
    let mut later = third.clone();
    later.again = true;
    assert_eq!(tasks.take_by(again).await, TakeReply::default());
    tasks.store_all(["a", "b"].map(new).to_vec()).await;
    tasks.dispatch().await;
    let reply = tasks.take_by(first).await;
    assert_eq!((reply.taken, reply.more), (Vec::new(), true));
    assert_eq!(keys(&tasks.take_by(second).await.taken), ["a"]);
    // Asked again as well, and something was there: it is begun, and told once more.
    for _ in 0..2 {
        assert_eq!(keys(&tasks.take_by(later.clone()).await.taken), ["b"]);
    }
    assert_eq!(tasks.figures().await.counts.started, 2);
}

async fn lanes_are_read_in_the_order_asked_for(bench: Bench) {
    let tasks = TaskBench::on(bench).await;
    let (low, mail) = (lane(Priority::Low, "charge"), lane(Priority::High, "mail"));
    let all = [
        new("n1"),
        new("n2"),
        of_lane("low", low.clone()),
        of_lane("mail", mail.clone()),
    ];
    tasks.store_all(all.to_vec()).await;
    tasks.dispatch().await;
    let taken = tasks.take_by(tasks.wish("worker", 2, &[low, usual()])).await;
    assert_eq!((keys(&taken.taken), taken.more), (vec!["low", "n1"], true));
    // What nobody asks for stays.
    let rest = tasks.take_by(tasks.wish("worker", 9, &[usual()])).await;
    assert_eq!((keys(&rest.taken), rest.more), (vec!["n2"], false));
    assert_eq!(tasks.status("mail").await, TaskStatus::Dispatched);
    assert_eq!(
        keys(&tasks.take_by(tasks.wish("worker", 9, &[mail])).await.taken),
        ["mail"]
    );
}

async fn each_lane_and_all_of_them_have_a_most(bench: Bench) {
    let tasks = TaskBench::on(bench).await;
    let high = lane(Priority::High, "charge");
    let of = |lane: &Lane, name: &str| -> Vec<_> {
        let one = |n| of_lane(&format!("{name}{n}"), lane.clone());
        (0..4).map(one).collect()
    };
    tasks.store_all([of(&high, "h"), of(&usual(), "n")].concat()).await;
    tasks.dispatch().await;
    let mut wish = tasks.wish("worker", 4, &[]);
    let room = |lane, most| LaneRoom { lane, most };
    wish.lanes = vec![room(high.clone(), 1), room(usual(), 3)];
    let taken = tasks.take_by(wish).await;
    assert_eq!((keys(&taken.taken), taken.more), (vec!["h0", "n0", "n1", "n2"], true));
    let mut wish = tasks.wish("worker", 2, &[]);
    wish.lanes = vec![room(high, 9), room(usual(), 9)];
    assert_eq!(keys(&tasks.take_by(wish).await.taken), ["h1", "h2"]);
    let none = tasks.take_by(tasks.wish("worker", 0, &[usual()])).await;
    assert_eq!((none.taken, none.more), (Vec::new(), true));
}

async fn who_is_told_of_more_may_take_it(bench: Bench) {
    let tasks = TaskBench::on(bench).await;
    tasks.store_all((0..7).map(|n| new(&format!("{n}"))).collect()).await;
    tasks.dispatch().await;
    let mut taken = Vec::new();
    loop {
        let reply = tasks.take_by(tasks.wish("worker", 3, &[usual()])).await;
        taken.push(reply.taken.len());
        if !reply.more {
            break;
        }
    }
    assert_eq!(taken, [3, 3, 1]);
}

/// A worker that is told more than comes through in time would never hear of what it has begun.
async fn what_is_taken_at_once_is_bounded_in_bytes(bench: Bench) {
    let tasks = TaskBench::on(bench).await;
    let carrying = |(n, bytes): (usize, usize)| {
        let payload = format!("\"{}\"", "x".repeat(bytes - 2)).into();
        leader_core::__seam::NewTask {
            payload,
            ..new(&format!("{n}"))
        }
    };
    let high = lane(Priority::High, "charge");
    let sizes = [
        9,
        TAKE_BYTES,
        400_000,
        400_000,
        TAKE_BYTES - 802_000,
        9_000,
        TAKE_BYTES + 7,
        2,
        2,
    ];
    for task in sizes.into_iter().enumerate().map(carrying) {
        tasks.store_all(vec![task]).await;
    }
    tasks.store_all(vec![of_lane("h", high.clone())]).await;
    tasks.dispatch().await;
    let mut taken = Vec::new();
    loop {
        let reply = tasks.take_by(tasks.wish("worker", 100, &[high.clone(), usual()])).await;
        taken.push(keys(&reply.taken).join(" "));
        if !reply.more {
            break;
        }
    }
    assert_eq!(taken, ["h 0", "1", "2 3 4", "5", "6", "7 8"]);
}

async fn a_cancelled_one_is_never_begun(bench: Bench) {
    let tasks = TaskBench::on(bench).await;
    tasks.store_all(["a", "b", "c"].map(new).to_vec()).await;
    tasks.dispatch().await;
    for key in ["a", "c"] {
        assert_eq!(
            tasks.change(key, TaskChange::Cancel).await,
            Changed::Done(TaskStatus::Dispatched)
        );
    }
    let reply = tasks.take_by(tasks.wish("worker", 1, &[usual()])).await;
    assert_eq!(keys(&reply.taken), ["b"]);
    let reply = tasks.take_by(tasks.wish("worker", 9, &[usual()])).await;
    assert_eq!((reply.taken, reply.more), (Vec::new(), false));
    assert_eq!(tasks.figures().await.counts.started, 1);
    // Nor is one of the same name that is not due, once the first is forgotten.
    tasks.store_all(vec![new("d")]).await;
    tasks.dispatch().await;
    tasks.change("d", TaskChange::Cancel).await;
    let mut forgets = tasks.step();
    forgets.keep.ended = 0;
    tasks.dispatch_by(forgets).await;
    tasks.store_all(vec![due_in("d", LATER)]).await;
    assert_eq!(tasks.take("worker", 9).await, []);
    assert_eq!(tasks.status("d").await, TaskStatus::Pending);
}

async fn signs_of_life_are_judged_one_by_one(bench: Bench) {
    use BeatReply::{Cancel, Gone, Heard};

    let tasks = TaskBench::on(bench).await;
    tasks.store_all(["a", "b", "c"].map(new).to_vec()).await;
    tasks.dispatch().await;
    let taken = tasks.take("worker", 9).await;
    let fence = |n: usize| taken[n].fence;
    assert_eq!(tasks.change("b", TaskChange::Cancel).await, Changed::Asked);
    tasks.finish(&taken[2], TaskEnding::Done).await;
    tasks.tick().await;
    let beats = TaskBeats {
        shard: tasks.shard.clone(),
        attempts: [
            ("a", fence(0)),
            ("a", fence(1)),
            ("b", fence(1)),
            ("c", fence(2)),
            ("x", 1),
        ]
        .map(|(key, fence)| (key.to_owned(), fence))
        .to_vec(),
    };
    for _ in 0..2 {
        let replies = tasks.store().beat_tasks(beats.clone()).await.unwrap();
        assert_eq!(replies, [Heard, Gone, Cancel, Gone, Gone]);
    }
    // Who is told to end is heard of all the same.
    for key in ["a", "b"] {
        let running = tasks.task(key).await.running.unwrap();
        assert!(running.heard > running.began, "{running:?}");
    }
    // Of a shard that has never had any.
    let mut elsewhere = beats;
    elsewhere.shard.index = 7;
    assert_eq!(tasks.store().beat_tasks(elsewhere).await.unwrap(), [Gone; 5]);
}

async fn two_workers_never_get_the_same(bench: Bench) {
    let tasks = TaskBench::on(bench).await;
    tasks
        .store_all((0..100).map(|n| new(&format!("{n:02}"))).collect())
        .await;
    tasks.dispatch().await;
    let takes: Vec<_> = (0..40)
        .map(|n| {
            let wish = tasks.wish(&format!("worker-{n}"), 3, &[usual()]);
            let store = Arc::clone(&tasks.bench.store);
            tokio::spawn(async move { store.tasks().take(wish).await.unwrap().taken })
        })
        .collect();
    let mut all = Vec::new();
    for take in takes {
        all.extend(take.await.unwrap().into_iter().map(|taken| (taken.key, taken.fence)));
    }
    let mut names: Vec<_> = all.iter().map(|(key, _)| key).collect();
    let mut fences: Vec<_> = all.iter().map(|(_, fence)| fence).collect();
    names.sort_unstable();
    names.dedup();
    fences.sort_unstable();
    fences.dedup();
    assert_eq!((names.len(), fences.len(), all.len()), (100, 100, 100));
}

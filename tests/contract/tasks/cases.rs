//! Reports on other systems that are about the steps of a task.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use leader_core::__seam::{
    BeatReply, DispatchReply, FinishReply, Left, Store, Taken, TaskEnding, TaskStatus, in_namespace,
};
use leader_core::Clock;
use leader_core::testing::__server_on;

use super::bench::{TaskBench, end_of, keys, new, retry, usual};
use crate::bench::{Bench, holder};

on_each_store!(
    case_8_four_pollers_of_ten_thousand_due_tasks_get_each_once,
    case_9_what_nobody_was_handed_is_still_there,
    case_10_what_is_added_while_its_instant_is_drained_is_not_lost,
    case_12_what_is_overdue_after_an_outage_comes_in_bounded_steps,
    leases_17_a_worker_that_was_blocked_too_long_ends_nothing,
    leases_21_an_entry_that_is_taken_again_is_never_with_two,
);

/// Four pollers, each of which moves and takes, on one set of ten thousand (oxana#39, laravel#5707).
async fn case_8_four_pollers_of_ten_thousand_due_tasks_get_each_once(bench: Bench) {
    const ALL: usize = 10_000;
    let tasks = Arc::new(TaskBench::on(bench).await);
    for chunk in 0..10 {
        let one = |n| new(&format!("{chunk}-{n:03}"));
        tasks.store_all((0..ALL / 10).map(one).collect()).await;
    }
    let pollers: Vec<_> = ["a", "b", "c", "d"]
        .into_iter()
        .map(|poller| {
            let tasks = Arc::clone(&tasks);
            tokio::spawn(async move {
                let mut mine = Vec::new();
                loop {
                    let mut step = tasks.step();
                    (step.most, step.room) = (97, 300);
                    let moves = tasks.dispatch_by(step).await;
                    let taken = tasks.take(poller, 41).await;
                    if taken.is_empty() && moves.next.is_none() && !moves.full {
                        return mine;
                    }
                    let ends = taken.iter().map(|taken| end_of(taken, TaskEnding::Done)).collect();
                    for reply in tasks.finish_all(ends).await {
                        assert_eq!(reply, FinishReply::Taken);
                    }
                    mine.extend(taken.into_iter().map(|taken| (taken.key, taken.attempt)));
                }
            })
        })
        .collect();
    let mut all = Vec::new();
    for poller in pollers {
        all.extend(poller.await.unwrap());
    }
    assert_eq!(all.len(), ALL);
    assert!(all.iter().all(|(_, attempt)| *attempt == 1));
    let different: BTreeSet<_> = all.iter().map(|(key, _)| key).collect();
    assert_eq!(different.len(), ALL);
    let figures = tasks.figures().await;
    let counts = figures.counts;
    assert_eq!(
        (counts.dispatched, counts.started, counts.done),
        (10_000, 10_000, 10_000)
    );
    assert_eq!((figures.pending, figures.dispatched, figures.running), (0, 0, 0));
}

/// Whoever is killed between "taken from what is due" and "handed to a worker", at each place there is: nothing is between (sidekiq#843, gkit#157,
/// rq-scheduler#223, hermes#108945).
async fn case_9_what_nobody_was_handed_is_still_there(bench: Bench) {
    let tasks = TaskBench::on(bench).await;
    tasks.store_all(vec![new("a")]).await;
    // The dispatcher dies after its step, and hears no answer; another leads.
    drop(tasks.store().dispatch(tasks.step()).await.unwrap());
    tasks.bench.release(&tasks.leader, tasks.term, None).await;
    let term = tasks.bench.acquire(&holder("other")).await;
    let mut step = tasks.impatient();
    (step.holder, step.term) = (holder("other"), term);
    assert_eq!(tasks.status("a").await, TaskStatus::Dispatched);
    // The worker dies before it hears what it was handed.
    drop(tasks.take("dead", 9).await);
    let moves = tasks.dispatch_by(step.clone()).await;
    assert_eq!((moves.lost.len(), moves.moved), (1, 1));
    // And one whose answer is lost asks again.
    let wish = tasks.wish("worker", 9, &[usual()]);
    drop(tasks.take_by(wish.clone()).await);
    let taken = tasks.take_by(wish).await.taken;
    assert_eq!((keys(&taken), taken[0].attempt), (vec!["a"], 2));
    assert_eq!(tasks.finish(&taken[0], TaskEnding::Done).await, FinishReply::Taken);
    assert_eq!(tasks.dispatch_by(step).await.moved, 0);
}

/// One drains what is due at an instant, again and again, while another adds to the very same instant (resque-scheduler#46).
async fn case_10_what_is_added_while_its_instant_is_drained_is_not_lost(bench: Bench) {
    let tasks = Arc::new(TaskBench::on(bench).await);
    let instant: jiff::Timestamp = "2026-03-02T12:00:00Z".parse().unwrap();
    let adds = Arc::clone(&tasks);
    let adding = tokio::spawn(async move {
        for n in 0..300 {
            let mut task = new(&format!("{n:03}"));
            task.due = leader_core::__seam::Due::At(instant);
            adds.store_all(vec![task]).await;
        }
    });
    let mut done = BTreeSet::new();
    loop {
        let added = adding.is_finished();
        tasks.dispatch().await;
        let taken = tasks.take("worker", 1_000).await;
        if taken.is_empty() && added {
            break;
        }
        for taken in taken {
            assert_eq!(tasks.finish(&taken, TaskEnding::Done).await, FinishReply::Taken);
            assert!(done.insert(taken.key), "twice");
        }
    }
    adding.await.unwrap();
    assert_eq!(done.len(), 300);
}

/// Nothing was dispatched for long: what is overdue is moved in steps that have their bounds, however much it is, and a crash of who has taken
/// some loses none (sidekiq#843).
async fn case_12_what_is_overdue_after_an_outage_comes_in_bounded_steps(bench: Bench) {
    const ALL: u64 = 20_000;
    let tasks = TaskBench::on(bench).await;
    for chunk in 0..ALL / 1_000 {
        tasks
            .store_all((0..1_000).map(|n| new(&format!("{chunk}-{n}"))).collect())
            .await;
    }
    let mut step = tasks.step();
    (step.most, step.room) = (500, 800);
    let (mut done, mut steps) = (0, 0);
    while done < ALL {
        let moves = tasks.dispatch_by(step.clone()).await;
        assert!(moves.moved <= 500, "{moves:?}");
        if steps == 3 {
            // Who has some of them vanishes with it.
            assert_eq!(tasks.take("gone", 100).await.len(), 100);
            let mut judges = step.clone();
            judges.silence = Duration::ZERO;
            let moves = tasks.dispatch_by(judges).await;
            assert_eq!(
                (moves.lost.len(), moves.lost.iter().filter(|lost| lost.dead).count()),
                (100, 0)
            );
        }
        let figures = tasks.figures().await;
        assert!(figures.dispatched + figures.running <= 800, "{figures:?}");
        assert_eq!(figures.pending + figures.dispatched + figures.running + done, ALL);
        let taken = tasks.take("worker", 1_000).await;
        let ends = taken.iter().map(|taken| end_of(taken, TaskEnding::Done)).collect();
        let replies = tasks.finish_all(ends).await;
        assert!(replies.iter().all(|reply| *reply == FinishReply::Taken));
        done += replies.len() as u64;
        steps += 1;
    }
    let figures = tasks.figures().await;
    assert_eq!(
        (figures.counts.done, figures.counts.lost, figures.pending),
        (ALL, 100, 0)
    );
}

/// A worker's process stands still for longer than its attempts may be silent: they are tried elsewhere, and what it tells when it wakes is
/// refused (bullmq#3183, bull#308).
async fn leases_17_a_worker_that_was_blocked_too_long_ends_nothing(bench: Bench) {
    let tasks = TaskBench::on(bench).await;
    let blocked = tasks.begin(new("a")).await;
    assert_eq!(tasks.dispatch_by(tasks.impatient()).await.lost.len(), 1);
    let other = tasks.take("other", 1).await.pop().unwrap();
    for how in [TaskEnding::Done, retry(Duration::ZERO), TaskEnding::HandBack] {
        assert_eq!(tasks.beat("a", blocked.fence).await, BeatReply::Gone);
        assert_eq!(tasks.finish(&blocked, how).await, FinishReply::Late);
        let task = tasks.task("a").await;
        assert_eq!(
            task.running.map(|running| running.fence),
            Some(other.fence),
            "it is the other's"
        );
    }
    assert_eq!(tasks.finish(&other, TaskEnding::Done).await, FinishReply::Taken);
    assert_eq!(tasks.finish(&blocked, TaskEnding::Done).await, FinishReply::Late);
    assert_eq!(tasks.status("a").await, TaskStatus::Done);
}

/// Many workers, and a dispatcher that takes every one of them for lost at each moment: each attempt is one worker's alone, and of each task
/// one end counts (redis#13956).
async fn leases_21_an_entry_that_is_taken_again_is_never_with_two(bench: Bench) {
    const ALL: usize = 60;
    let tasks = Arc::new(TaskBench::on(bench).await);
    tasks
        .store_all((0..ALL).map(|n| new(&format!("{n:02}"))).collect())
        .await;
    let work = |name: &'static str| {
        let tasks = Arc::clone(&tasks);
        tokio::spawn(async move {
            let mut attempts: Vec<(Taken, FinishReply)> = Vec::new();
            while tasks.figures().await.counts.done < ALL as u64 {
                for taken in tasks.take(name, 2).await {
                    tokio::task::yield_now().await;
                    let reply = tasks.finish(&taken, TaskEnding::Done).await;
                    attempts.push((taken, reply));
                }
            }
            attempts
        })
    };
    let workers: Vec<_> = ["a", "b", "c", "d", "e", "f", "g", "h"].into_iter().map(work).collect();
    let mut lost = 0;
    while tasks.figures().await.counts.done < ALL as u64 {
        match tasks.store().dispatch(tasks.impatient()).await.unwrap() {
            DispatchReply::Yours(moves) => lost += moves.lost.len(),
            DispatchReply::NotYours => panic!("not ours"),
        }
        tokio::task::yield_now().await;
    }
    let (mut seen, mut fences) = (BTreeMap::<_, u32>::new(), BTreeSet::new());
    let mut refused = 0;
    for worker in workers {
        for (taken, reply) in worker.await.unwrap() {
            assert!(fences.insert(taken.fence), "one fence twice: {taken:?}");
            let attempt = seen.entry((taken.key.clone(), taken.attempt)).or_default();
            *attempt += 1;
            assert_eq!(*attempt, 1, "one attempt with two: {taken:?}");
            match reply {
                FinishReply::Taken => *seen.entry((taken.key, 0)).or_default() += 1,
                FinishReply::Late => refused += 1,
            }
        }
    }
    let counts = tasks.figures().await.counts;
    assert_eq!((counts.done, counts.late), (ALL as u64, refused));
    assert_eq!(counts.lost, lost as u64);
    // An end that was told to the last attempt's record is none that was refused.
    let ended = seen.iter().filter(|((_, attempt), _)| *attempt == 0);
    assert_eq!(ended.count(), ALL);
}

/// What was acknowledged comes back after a fail-over: the attempt that had ended runs again, its end told once more changes nothing twice, and
/// whoever takes it anew has a higher fence than any before (redis#5433).
#[tokio::test]
async fn leases_19_an_end_that_a_fail_over_forgot_may_be_told_again() {
    let server = __server_on(Clock::system());
    let bench = Bench::embedded();
    let store: Arc<dyn Store> = Arc::new(in_namespace(server.store(), &bench.namespace));
    let tasks = TaskBench::on(Bench { store, ..bench }).await;
    tasks.store_all(vec![new("a"), new("b")]).await;
    tasks.dispatch().await;
    let taken = tasks.take("worker", 2).await;
    let lags = server.snapshot();
    for taken in &taken {
        assert_eq!(tasks.finish(taken, TaskEnding::Done).await, FinishReply::Taken);
    }
    server.restart(Left::AsOf(lags));
    assert_eq!(tasks.status("a").await, TaskStatus::Running, "it is forgotten");
    for _ in 0..2 {
        assert_eq!(tasks.finish(&taken[0], TaskEnding::Done).await, FinishReply::Taken);
    }
    assert_eq!(tasks.figures().await.counts.done, 1);
    // Of the other one nobody tells again.
    let moves = tasks.dispatch_by(tasks.impatient()).await;
    assert_eq!((moves.lost.len(), moves.moved), (1, 1));
    let again = tasks.take("other", 1).await.pop().unwrap();
    assert_eq!((again.key.as_str(), again.attempt), ("b", 2));
    assert!(again.fence > taken.iter().map(|taken| taken.fence).max().unwrap());
    assert_eq!(tasks.finish(&taken[1], TaskEnding::Done).await, FinishReply::Late);
}

//! What is kept of tasks that have ended and of processes that are gone, and for how long.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use leader_core::__seam::{FinishReply, TaskEnding, TaskKeep, TaskStatus};

use super::bench::{TaskBench, bury, due_in, end_of, keys, new, usual};
use crate::bench::{Bench, holder};
use crate::machine::{INSTANT, Machine};

on_each_server!(
    never_fewer_are_kept_than_asked_for_and_a_tenth_more_at_the_most,
    what_has_ended_is_kept_for_its_time,
    what_has_ended_is_read_in_order_across_its_parts,
    of_several_lives_the_last_is_told,
    producers_that_are_gone_for_a_day_are_forgotten,
    workers_that_are_gone_for_a_day_are_forgotten,
);

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

async fn tasks_of(machine: &Machine) -> TaskBench {
    let bench = &machine.bench;
    TaskBench::on(Bench {
        store: Arc::clone(&bench.store),
        namespace: bench.namespace.clone(),
        group: bench.group.clone(),
        server: None,
    })
    .await
}

impl Machine {
    fn is_exact(&self) -> bool {
        matches!(self.kind, crate::machine::Kind::Embedded(_))
    }
}

/// Has tasks of these names end together.
async fn end_all(tasks: &TaskBench, names: &[String]) {
    tasks.store_all(names.iter().map(|name| new(name)).collect()).await;
    tasks.dispatch().await;
    let taken = tasks.take("worker", u32::try_from(names.len()).unwrap()).await;
    assert_eq!(keys(&taken), names);
    let ends = taken.iter().map(|taken| end_of(taken, TaskEnding::Done)).collect();
    let replies = tasks.finish_all(ends).await;
    assert!(replies.iter().all(|reply| *reply == FinishReply::Taken));
}

/// However parts come to their end: because they are full, or because of their age.
async fn never_fewer_are_kept_than_asked_for_and_a_tenth_more_at_the_most(machine: Machine) {
    const KEPT_FOR: Duration = Duration::from_secs(200);
    const STEP: Duration = Duration::from_secs(20);

    let mut tasks = tasks_of(&machine).await;
    for (round, kept) in [1_u32, 7, 100].into_iter().enumerate() {
        tasks.shard.index = u32::try_from(round).unwrap();
        tasks.bench.group = tasks.shard.group();
        tasks.keep = TaskKeep {
            ended: kept,
            ended_for: KEPT_FOR,
            ..TaskKeep::default()
        };
        let mut all: Vec<(String, Timestamp)> = Vec::new();
        let mut largest = 0;
        for step in 0..60_usize {
            // At times nothing ends for long, then much at once.
            let count = [1, 1, 2, 5, 13, 30][step % 6].min(1 + kept as usize);
            machine.pass(match step % 10 {
                3 | 4 => STEP,
                8 => STEP / 2,
                _ => INSTANT,
            });
            tasks.term = tasks.bench.acquire(&tasks.leader).await;
            largest = largest.max(count);
            let names: Vec<_> = (0..count).map(|n| format!("{:04}", all.len() + n)).collect();
            end_all(&tasks, &names).await;
            let now = tasks.dispatch().await.now;
            all.extend(names.into_iter().map(|name| (name, now)));
            let listed = tasks.list(TaskStatus::Done).await;

            let age = |ended: Timestamp| Duration::try_from(now.duration_since(ended)).unwrap();
            let young = all.iter().rev().take_while(|(_, ended)| age(*ended) < KEPT_FOR);
            let wanted: Vec<_> = young.take(kept as usize).map(|(name, _)| name.clone()).collect();
            let newest: Vec<_> = listed.iter().rev().take(wanted.len()).cloned().collect();
            assert_eq!(newest, wanted, "of {kept} in step {step}");
            let most = if machine.is_exact() {
                wanted.len()
            } else {
                // What ended together goes together.
                (kept + kept.div_ceil(10)) as usize + largest
            };
            assert!(listed.len() <= most, "{} of {kept} in step {step}", listed.len());
            let ended: BTreeMap<_, _> = all.iter().cloned().collect();
            let oldest = listed.first().map_or(Duration::ZERO, |name| age(ended[name]));
            // Nothing goes between two steps.
            assert!(oldest <= KEPT_FOR + KEPT_FOR / 10 + 2 * STEP, "{oldest:?} of {kept}");
        }
    }
}

async fn what_has_ended_is_kept_for_its_time(machine: Machine) {
    const KEPT_FOR: Duration = Duration::from_secs(100);

    let mut tasks = tasks_of(&machine).await;
    tasks.keep.ended_for = KEPT_FOR;
    tasks.live("done", TaskEnding::Done).await;
    tasks.dispatch().await;
    machine.pass(KEPT_FOR.checked_sub(INSTANT).unwrap());
    tasks.dispatch().await;
    assert_eq!(tasks.list(TaskStatus::Done).await, ["done"]);
    machine.pass(INSTANT + KEPT_FOR / 10);
    for _ in 0..2 {
        tasks.dispatch().await;
    }
    machine.pass(KEPT_FOR);
    tasks.dispatch().await;
    assert_eq!(tasks.list(TaskStatus::Done).await, [""; 0]);
    assert_eq!(tasks.look("done").await, None);
    // Nor is anything kept where nothing shall be.
    tasks.live("other", TaskEnding::Done).await;
    tasks.keep.ended = 0;
    tasks.dispatch().await;
    assert_eq!(tasks.look("other").await, None);
    tasks.live("third", TaskEnding::Done).await;
    tasks.dispatch().await;
    assert_eq!(tasks.list(TaskStatus::Done).await, [""; 0]);
}

async fn what_has_ended_is_read_in_order_across_its_parts(machine: Machine) {
    let mut tasks = tasks_of(&machine).await;
    tasks.keep.ended = 20;
    let mut expected = Vec::new();
    for step in 0..13 {
        let names: Vec<_> = (0..=step % 3).map(|n| format!("{step:02}-{n}")).collect();
        end_all(&tasks, &names).await;
        expected.extend(names);
        machine.pass(INSTANT);
    }
    tasks.dispatch().await;
    let listed = tasks.list(TaskStatus::Done).await;
    assert!((20..=24).contains(&listed.len()), "{}", listed.len());
    assert_eq!(listed, expected[expected.len() - listed.len()..]);
    for most in [1, 2, 3, 7, 20, 21, 1_000] {
        let mut request = tasks.all(TaskStatus::Done);
        request.most = most;
        assert_eq!(tasks.list_by(request).await, listed, "by {most}");
    }
    let page = tasks.page(tasks.all(TaskStatus::Done)).await;
    assert_eq!(page.next, None);
    for task in page.tasks {
        assert_eq!(tasks.task(&task.key).await, task);
        assert_eq!((task.status, task.attempts), (TaskStatus::Done, 1));
    }
    let gone = &expected[0];
    assert_eq!(tasks.look(gone).await, None);
}

/// A name may come again when what had it has ended: then only that is told.
async fn of_several_lives_the_last_is_told(machine: Machine) {
    let mut tasks = tasks_of(&machine).await;
    (tasks.keep.ended, tasks.keep.dead) = (20, 1);
    let names = |range: std::ops::Range<u32>| range.map(|n| format!("{n}")).collect::<Vec<_>>();
    end_all(&tasks, &names(0..6)).await;
    machine.pass(INSTANT);
    end_all(&tasks, &names(6..9)).await;
    machine.pass(INSTANT);
    end_all(&tasks, &names(3..5)).await;
    for most in [1, 2, 1_000] {
        let mut request = tasks.all(TaskStatus::Done);
        request.most = most;
        let listed = tasks.list_by(request).await;
        assert_eq!(listed, ["0", "1", "2", "5", "6", "7", "8", "3", "4"], "by {most}");
    }
    // One that waits, and one that dies and is forgotten.
    tasks.store_all(vec![due_in("0", DAY)]).await;
    tasks.live("6", bury()).await;
    tasks.live("x", bury()).await;
    assert_eq!(tasks.status("0").await, TaskStatus::Pending);
    machine.pass(INSTANT);
    tasks.dispatch().await;
    assert_eq!(tasks.list(TaskStatus::Dead).await, ["x"]);
    assert_eq!(tasks.look("6").await, None);
    assert_eq!(tasks.list(TaskStatus::Done).await, ["1", "2", "5", "7", "8", "3", "4"]);
}

async fn producers_that_are_gone_for_a_day_are_forgotten(machine: Machine) {
    let tasks = tasks_of(&machine).await;
    let by = |producer: &str, key: &str| {
        let mut batch = tasks.batch(vec![due_in(key, 100 * DAY)]);
        batch.producer = holder(producer);
        batch
    };
    let (first, second) = (by("first", "a"), by("second", "b"));
    tasks.send(first.clone()).await;
    tasks.change("a", leader_core::__seam::TaskChange::Cancel).await;
    let stored_again = async || {
        tasks.send(first.clone()).await;
        tasks.status("a").await == TaskStatus::Pending
    };
    machine.pass(DAY);
    tasks.send(second).await;
    assert!(!stored_again().await, "a day is not too long");
    machine.pass(INSTANT);
    tasks.send(by("second", "c")).await;
    assert!(!stored_again().await, "nobody new has come");
    tasks.send(by("third", "d")).await;
    assert!(stored_again().await);
    // Who has said something since is known.
    tasks.send(by("second", "e")).await;
    assert_eq!(tasks.figures().await.counts.enqueued, 6);
}

async fn workers_that_are_gone_for_a_day_are_forgotten(machine: Machine) {
    let tasks = tasks_of(&machine).await;
    tasks.store_all(["a", "b", "c", "d", "e"].map(new).to_vec()).await;
    tasks.dispatch().await;
    let wish = |worker: &str| tasks.wish(worker, 1, &[usual()]);
    let (first, second) = (wish("first"), wish("second"));
    let again = wish("second");
    let third = wish("third");
    assert_eq!(keys(&tasks.take_by(first.clone()).await.taken), ["a"]);
    machine.pass(DAY);
    assert_eq!(keys(&tasks.take_by(second).await.taken), ["b"]);
    assert_eq!(keys(&tasks.take_by(first.clone()).await.taken), ["a"], "as it was told");
    machine.pass(INSTANT);
    assert_eq!(keys(&tasks.take_by(again.clone()).await.taken), ["c"]);
    assert_eq!(keys(&tasks.take_by(first.clone()).await.taken), ["a"]);
    assert_eq!(keys(&tasks.take_by(third).await.taken), ["d"]);
    assert_eq!(keys(&tasks.take_by(first).await.taken), ["e"]);
    assert_eq!(keys(&tasks.take_by(again).await.taken), ["c"]);
    assert_eq!(tasks.figures().await.running, 5);
}

//! Queues of several parts, and dispatchers that change.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use leader_core::{Instance, TaskQuery, TaskStatus};
use leader_tests::eventually;

use crate::stage::{GROUP, Ground, QUEUE, SOON, Stage, counts, order, tasks};

on_each_store!(
    every_part_is_dispatched_and_seen,
    another_number_of_parts_loses_nothing,
    who_runs_on_with_fewer_parts_stores_in_the_new_ones,
    a_dispatcher_that_steps_down_loses_nothing,
);

const LATER: Duration = Duration::from_secs(3_600);

async fn with_parts(ground: &Ground, id: &str, stage: &Stage, parts: u32) -> Instance {
    let instance = ground.instance(id, stage).tasks(|tasks| tasks.shards(QUEUE, parts));
    instance.await.unwrap()
}

/// All tasks of a status, page by page.
async fn all(instance: &Instance, status: TaskStatus) -> Vec<leader_core::TaskDetails> {
    let (mut found, mut query) = (Vec::new(), TaskQuery::of(status).limit(7));
    loop {
        let page = instance.tasks().list(QUEUE, &query).await.unwrap();
        assert!(page.tasks.len() <= 7);
        found.extend(page.tasks);
        match page.next {
            Some(next) => query = query.after(next),
            None => return found,
        }
    }
}

async fn every_part_is_dispatched_and_seen(ground: Ground) {
    let stage = Stage::new();
    let a = with_parts(&ground, "a", &stage, 4).await;
    let b = with_parts(&ground, "b", &stage, 4).await;
    let tasks = a.tasks();
    assert_eq!(tasks.queues()[QUEUE], 4);
    let orders = |count| (0..count).map(|number| order("", number));
    let stored = tasks.enqueue_many::<tasks::act, _>(orders(400)).await.unwrap();
    let mut parts: BTreeMap<u32, usize> = BTreeMap::new();
    for one in &stored {
        *parts.entry(one.id.shard()).or_default() += 1;
    }
    assert_eq!(parts.len(), 4, "{parts:?}");
    counts(&b.tasks(), "all are done", |figures| {
        figures.counts.done == 400 && figures.backlog() == 0
    })
    .await;
    assert_eq!(stage.played().len(), 400);
    for part in 0..4 {
        let group = format!("dispatch:{QUEUE}:{part}");
        assert!(a.is_leader(&group) || b.is_leader(&group), "nobody leads {group}");
    }
    let waiting = tasks
        .enqueue_many::<tasks::act, _>(orders(40))
        .after(LATER)
        .await
        .unwrap();
    let figures = b.tasks().figures(QUEUE).await.unwrap();
    assert_eq!((figures.pending, figures.due, figures.counts.enqueued), (40, 0, 440));
    let found: BTreeSet<_> = all(&b, TaskStatus::Pending)
        .await
        .into_iter()
        .map(|task| task.id)
        .collect();
    assert_eq!(found, waiting.into_iter().map(|one| one.id).collect());
    assert_eq!(all(&a, TaskStatus::Done).await.len(), 400);
    b.shutdown().await;
    a.shutdown().await;
}

fn keyed(numbers: std::ops::Range<u64>) -> impl Iterator<Item = (String, crate::stage::Order)> {
    numbers.map(|number| (format!("invoice-{number}"), order("", number)))
}

async fn another_number_of_parts_loses_nothing(ground: Ground) {
    let stage = Stage::new();
    let a = with_parts(&ground, "a", &stage, 4).await;
    let first = keyed(0..20);
    let first = a
        .tasks()
        .enqueue_many_unique::<tasks::act, _>(first)
        .after(LATER)
        .await
        .unwrap();
    a.shutdown().await;

    let b = with_parts(&ground, "b", &stage, 2).await;
    let second = keyed(0..40);
    let second = b
        .tasks()
        .enqueue_many_unique::<tasks::act, _>(second)
        .after(LATER)
        .await
        .unwrap();
    assert!(
        second[..20]
            .iter()
            .zip(&first)
            .all(|(one, kept)| !one.is_new && one.id == kept.id),
        "{second:?}"
    );
    assert!(
        second[20..].iter().all(|one| one.is_new && one.id.shard() < 2),
        "{second:?}"
    );
    assert_eq!(b.tasks().figures(QUEUE).await.unwrap().pending, 40);
    b.shutdown().await;

    let c = with_parts(&ground, "c", &stage, 8).await;
    let tasks = c.tasks();
    let third = keyed(0..60);
    let third = tasks
        .enqueue_many_unique::<tasks::act, _>(third)
        .after(LATER)
        .await
        .unwrap();
    assert!(
        third[..40]
            .iter()
            .zip(&second)
            .all(|(one, kept)| !one.is_new && one.id == kept.id),
        "{third:?}"
    );
    assert!(third[40..].iter().all(|one| one.is_new));
    assert_eq!(all(&c, TaskStatus::Pending).await.len(), 60);
    for one in &third {
        tasks.reschedule(&one.id, Timestamp::now()).await.unwrap();
    }
    counts(&tasks, "all are done", |figures| {
        figures.counts.done == 60 && figures.backlog() == 0
    })
    .await;
    let numbers: Vec<_> = stage.played().into_iter().map(|played| played.number).collect();
    assert_eq!((numbers.len(), numbers.iter().collect::<BTreeSet<_>>().len()), (60, 60));
    // What is done has given its key back, whatever part it was in.
    let again = tasks.enqueue_many_unique::<tasks::act, _>(keyed(0..60)).await.unwrap();
    assert!(again.iter().all(|one| one.is_new), "{again:?}");
    counts(&tasks, "all are done again", |figures| figures.counts.done == 120).await;
    c.shutdown().await;
}

async fn who_runs_on_with_fewer_parts_stores_in_the_new_ones(ground: Ground) {
    let stage = Stage::new();
    let a = with_parts(&ground, "a", &stage, 1).await;
    let before = a
        .tasks()
        .enqueue_many_unique::<tasks::act, _>(keyed(0..10))
        .after(LATER)
        .await
        .unwrap();
    let b = with_parts(&ground, "b", &stage, 4).await;
    // Stored by who has not heard of it, before and after somebody has stored in the new parts.
    let unheard = a
        .tasks()
        .enqueue_many_unique::<tasks::act, _>(keyed(10..20))
        .after(LATER)
        .await
        .unwrap();
    assert!(unheard.iter().all(|one| one.is_new), "{unheard:?}");
    let new = b
        .tasks()
        .enqueue_many_unique::<tasks::act, _>(keyed(0..40))
        .after(LATER)
        .await
        .unwrap();
    let kept = before.iter().chain(&unheard);
    assert!(
        new.iter().zip(kept).all(|(one, kept)| !one.is_new && one.id == kept.id),
        "{new:?}"
    );
    assert!(new[20..].iter().all(|one| one.is_new), "{new:?}");
    let again = a
        .tasks()
        .enqueue_many_unique::<tasks::act, _>(keyed(0..60))
        .after(LATER)
        .await
        .unwrap();
    assert!(
        again
            .iter()
            .zip(&new)
            .all(|(one, kept)| !one.is_new && one.id == kept.id),
        "{again:?}"
    );
    assert!(
        again[40..].iter().any(|one| one.id.shard() > 0),
        "it has not heard of the new parts: {again:?}"
    );
    for one in &again {
        a.tasks().reschedule(&one.id, Timestamp::now()).await.unwrap();
    }
    counts(&a.tasks(), "all are done", |figures| figures.counts.done == 60).await;
    assert_eq!(stage.played().len(), 60);
    b.shutdown().await;
    a.shutdown().await;
}

async fn a_dispatcher_that_steps_down_loses_nothing(ground: Ground) {
    const ALL: u64 = 6_000;
    let stage = Stage::new();
    let a = ground
        .instance("a", &stage)
        .tasks(|tasks| tasks.concurrency(8))
        .await
        .unwrap();
    let b = ground
        .instance("b", &stage)
        .tasks(|tasks| tasks.concurrency(8))
        .await
        .unwrap();
    let tasks = a.tasks();
    let due = Timestamp::now() + jiff::SignedDuration::from_secs(2);
    let orders = (0..ALL).map(|number| order("", number));
    tasks.enqueue_many::<tasks::act, _>(orders).at(due).await.unwrap();
    stage.has_played(1).await;
    let mut terms = BTreeSet::new();
    for _ in 0..3 {
        let leader = || [&a, &b].into_iter().find(|instance| instance.is_leader(GROUP));
        eventually(SOON, "somebody dispatches", async || leader().is_some()).await;
        if let Some(leader) = leader() {
            terms.insert(leader.watch(GROUP).unwrap().current().term);
            // It may have given it up in this very moment.
            let _ = leader.step_down(GROUP).await;
        }
    }
    assert!(terms.len() > 1, "{terms:?}");
    counts(&tasks, "all are done", |figures| {
        figures.counts.done == ALL && figures.backlog() == 0
    })
    .await;
    let numbers: Vec<_> = stage.played().into_iter().map(|played| played.number).collect();
    assert_eq!(
        numbers.len(),
        numbers.iter().collect::<BTreeSet<_>>().len(),
        "one ran twice"
    );
    assert_eq!(numbers.len(), usize::try_from(ALL).unwrap());
    b.shutdown().await;
    a.shutdown().await;
}

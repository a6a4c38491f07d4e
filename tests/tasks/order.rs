//! Which task runs next, where, and how many at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use leader_core::__private::TaskRecord;
use leader_core::{PayloadOf, Priority, TaskHandler, TaskQuery, TaskStatus, Timing};
use tokio::time::Instant;

use crate::stage::{Door, Ground, Order, QUEUE, Stage, comes_to, counts, ms, order, tasks};

on_each_store!(
    tasks_wait_for_an_instance_that_works,
    what_nobody_knows_waits_and_holds_nothing_up,
    another_queue_is_served_by_those_that_have_it,
    the_high_come_first,
    no_more_run_at_once_than_may,
    a_place_that_is_free_again_is_taken_at_once,
    a_task_at_its_bound_holds_no_other_up,
    a_queue_without_end_holds_no_other_up,
    each_has_its_turn_where_there_is_room_for_one,
    who_does_not_campaign_works_all_the_same,
);

async fn tasks_wait_for_an_instance_that_works(ground: Ground) {
    let stage = Stage::new();
    let a = ground
        .instance("a", &stage)
        .tasks(|tasks| tasks.work(false))
        .await
        .unwrap();
    let tasks = a.tasks();
    let id = tasks.enqueue::<tasks::act>(&order("", 1)).await.unwrap().id;
    comes_to(&tasks, &id, TaskStatus::Dispatched).await;
    assert!(stage.played().is_empty());
    let b = ground.instance("b", &stage).await.unwrap();
    let played = stage.has_played(1).await;
    assert_eq!((played[0].on.as_str(), played[0].attempt), ("b", 1));
    comes_to(&tasks, &id, TaskStatus::Done).await;
    b.shutdown().await;
    a.shutdown().await;
}

/// A task of another version of the program: nobody here has it.
#[derive(Debug)]
enum Newcomer {}

impl TaskHandler for Newcomer {
    const NAME: &'static str = "newcomer";
    const QUEUE: &'static str = QUEUE;
    type Payload = Order;
    const RECORD: TaskRecord = <tasks::act as TaskHandler>::RECORD;
}

impl PayloadOf<Newcomer> for Order {}

async fn what_nobody_knows_waits_and_holds_nothing_up(ground: Ground) {
    let stage = Stage::new();
    let a = ground
        .instance("a", &stage)
        .tasks(|tasks| tasks.concurrency(1))
        .await
        .unwrap();
    let tasks = a.tasks();
    let unknown: Vec<_> = (0..20).map(|number| order("", number)).collect();
    let unknown = tasks
        .enqueue_many::<Newcomer, _>(unknown)
        .priority(Priority::High)
        .await
        .unwrap();
    counts(&tasks, "they are dispatched", |figures| figures.dispatched == 20).await;
    for number in 100..110 {
        tasks.enqueue::<tasks::act>(&order("", number)).await.unwrap();
    }
    counts(&tasks, "the others are done", |figures| figures.counts.done == 10).await;
    assert!(stage.played().iter().all(|played| played.number >= 100));
    let waiting = TaskQuery::of(TaskStatus::Dispatched).name("newcomer");
    assert_eq!(tasks.list(QUEUE, &waiting).await.unwrap().tasks.len(), 20);
    tasks.cancel(&unknown[0].id).await.unwrap();
    comes_to(&tasks, &unknown[0].id, TaskStatus::Cancelled).await;
    let figures = tasks.figures(QUEUE).await.unwrap();
    assert_eq!((figures.dispatched, figures.counts.started), (19, 10));
    a.shutdown().await;
}

async fn another_queue_is_served_by_those_that_have_it(ground: Ground) {
    let stage = Stage::new();
    let a = ground.instance("a", &stage).await.unwrap();
    let id = a
        .tasks()
        .enqueue::<tasks::act>(&order("", 1))
        .queue("aside")
        .await
        .unwrap()
        .id;
    assert_eq!(id.queue().as_str(), "aside");
    let b = ground
        .instance("b", &stage)
        .tasks(|tasks| tasks.queue("aside"))
        .await
        .unwrap();
    comes_to(&a.tasks(), &id, TaskStatus::Done).await;
    assert_eq!(stage.played()[0].on, "b");
    assert_eq!(a.tasks().figures("aside").await.unwrap().counts.done, 1);
    b.shutdown().await;
    a.shutdown().await;
}

async fn the_high_come_first(ground: Ground) {
    let stage = Stage::new();
    let door = Door::shut();
    let at = door.clone();
    stage.part("door", move |_, _| {
        let at = at.clone();
        async move {
            at.pass().await;
            Ok(())
        }
    });
    let a = ground
        .instance("a", &stage)
        .tasks(|tasks| tasks.concurrency(1))
        .await
        .unwrap();
    let tasks = a.tasks();
    tasks.enqueue::<tasks::act>(&order("door", 0)).await.unwrap();
    stage.has_played(1).await;
    // One by one, so that their order within a priority is told.
    let mut waiting = 0;
    for (priority, first) in [(Priority::Low, 300), (Priority::Normal, 200), (Priority::High, 100)] {
        for number in first..first + 4 {
            let order = order("", number);
            tasks.enqueue::<tasks::act>(&order).priority(priority).await.unwrap();
            waiting += 1;
            counts(&tasks, "it is dispatched", |figures| figures.dispatched == waiting).await;
        }
    }
    door.open();
    let played = stage.has_played(13).await;
    let numbers: Vec<_> = played.iter().skip(1).map(|played| played.number).collect();
    assert_eq!(numbers, [100, 101, 102, 103, 200, 201, 202, 203, 300, 301, 302, 303]);
    a.shutdown().await;
}

/// How many there are at once, and were.
#[derive(Clone, Default)]
struct Crowd(Arc<(AtomicUsize, AtomicUsize)>);

impl Crowd {
    async fn stay(self, span: Duration) {
        let now = self.0.0.fetch_add(1, Ordering::SeqCst) + 1;
        self.0.1.fetch_max(now, Ordering::SeqCst);
        tokio::time::sleep(span).await;
        self.0.0.fetch_sub(1, Ordering::SeqCst);
    }

    fn most(&self) -> usize {
        self.0.1.load(Ordering::SeqCst)
    }
}

async fn no_more_run_at_once_than_may(ground: Ground) {
    let stage = Stage::new();
    let (all, brief) = (Crowd::default(), Crowd::default());
    let within = all.clone();
    stage.part("act", move |_, _| {
        let all = within.clone();
        async move {
            all.stay(ms(20)).await;
            Ok(())
        }
    });
    let within = (all.clone(), brief.clone());
    stage.part("brief", move |_, _| {
        let (all, brief) = within.clone();
        async move {
            tokio::join!(all.stay(ms(20)), brief.stay(ms(20)));
            Ok(())
        }
    });
    let a = ground
        .instance("a", &stage)
        .tasks(|tasks| tasks.work(false))
        .await
        .unwrap();
    let tasks = a.tasks();
    let of = |part: &'static str, count| (0..count).map(move |number| order(part, number));
    // Those that may only be two at once are before the others.
    tasks
        .enqueue_many::<tasks::brief, _>(of("brief", 40))
        .priority(Priority::High)
        .await
        .unwrap();
    tasks.enqueue_many::<tasks::act, _>(of("act", 60)).await.unwrap();
    counts(&tasks, "all are dispatched", |figures| figures.dispatched == 100).await;
    let b = ground
        .instance("b", &stage)
        .tasks(|tasks| tasks.concurrency(5))
        .await
        .unwrap();
    counts(&tasks, "all are done", |figures| figures.counts.done == 100).await;
    assert_eq!((all.most(), brief.most()), (5, 2));
    b.shutdown().await;
    a.shutdown().await;
}

/// Of a task that may run twice at once many wait: nothing else wakes the worker than the end of one.
async fn a_place_that_is_free_again_is_taken_at_once(ground: Ground) {
    const ALL: u64 = 80;
    let stage = Stage::new();
    stage.part("short", |_, _| async {
        tokio::time::sleep(ms(5)).await;
        Ok(())
    });
    let a = ground
        .instance("a", &stage)
        .tasks(|tasks| tasks.work(false))
        .await
        .unwrap();
    let tasks = a.tasks();
    let orders = (0..ALL).map(|number| order("short", number));
    tasks.enqueue_many::<tasks::brief, _>(orders).await.unwrap();
    counts(&tasks, "all are dispatched", |figures| figures.dispatched == ALL).await;
    // Renewals are far apart, so that none of them helps.
    let b = ground
        .instance("b", &stage)
        .timing(Timing::from_ttl(Duration::from_secs(20)));
    let b = b.campaign(false).await.unwrap();
    let began = Instant::now();
    counts(&tasks, "all are done", |figures| figures.counts.done == ALL).await;
    let took = began.elapsed();
    assert!(took < Duration::from_secs(3), "{took:?}");
    b.shutdown().await;
    a.shutdown().await;
}

/// One that runs for long, and of which more wait, in a queue of its own: those of the other queue go on.
async fn a_task_at_its_bound_holds_no_other_up(ground: Ground) {
    let stage = Stage::new();
    let door = Door::shut();
    let at = door.clone();
    stage.part("door", move |_, _| {
        let at = at.clone();
        async move {
            at.pass().await;
            Ok(())
        }
    });
    // Renewals are far apart, so that none of them helps.
    let a = ground
        .instance("a", &stage)
        .timing(Timing::from_ttl(Duration::from_secs(20)));
    let a = a.await.unwrap();
    let tasks = a.tasks();
    let singles = (0..3).map(|number| order("door", number));
    tasks.enqueue_many::<tasks::single, _>(singles).await.unwrap();
    stage.has_played(1).await;
    let began = Instant::now();
    for number in 10..30 {
        tasks.enqueue::<tasks::act>(&order("", number)).await.unwrap();
        counts(&tasks, "it is done", |figures| figures.counts.done == number - 9).await;
    }
    let took = began.elapsed();
    assert!(took < Duration::from_secs(4), "{took:?}");
    assert_eq!(stage.played().len(), 21);
    door.open();
    stage.has_played(23).await;
    a.shutdown().await;
}

async fn a_queue_without_end_holds_no_other_up(ground: Ground) {
    const ALL: u64 = 4_000;
    let stage = Stage::new();
    stage.part("slow", |_, _| async {
        tokio::time::sleep(ms(5)).await;
        Ok(())
    });
    let a = ground
        .instance("a", &stage)
        .tasks(|tasks| tasks.concurrency(2))
        .await
        .unwrap();
    let tasks = a.tasks();
    let orders = (0..ALL).map(|number| order("slow", number));
    tasks.enqueue_many::<tasks::act, _>(orders).await.unwrap();
    stage.has_played(10).await;
    let began = Instant::now();
    let id = tasks.enqueue::<tasks::single>(&order("", ALL)).await.unwrap().id;
    comes_to(&tasks, &id, TaskStatus::Done).await;
    let took = began.elapsed();
    assert!(took < Duration::from_secs(2), "{took:?}");
    let figures = tasks.figures(QUEUE).await.unwrap();
    assert!(figures.backlog() > 0, "the other queue has ended before: {figures:?}");
    a.shutdown().await;
}

/// Three tasks in two queues, each of which has more than can be run: each comes as often as the others, nearly.
async fn each_has_its_turn_where_there_is_room_for_one(ground: Ground) {
    let stage = Stage::new();
    stage.part("slow", |_, _| async {
        tokio::time::sleep(ms(2)).await;
        Ok(())
    });
    let a = ground
        .instance("a", &stage)
        .tasks(|tasks| tasks.concurrency(1).work(false))
        .await
        .unwrap();
    let tasks = a.tasks();
    let orders = |from: u64| (from..from + 200).map(|number| order("slow", number));
    tasks.enqueue_many::<tasks::act, _>(orders(0)).await.unwrap();
    tasks.enqueue_many::<tasks::brief, _>(orders(1_000)).await.unwrap();
    tasks.enqueue_many::<tasks::single, _>(orders(2_000)).await.unwrap();
    counts(&tasks, "two are dispatched", |figures| figures.dispatched == 400).await;
    let b = ground.instance("b", &stage).campaign(false);
    let b = b.tasks(|tasks| tasks.concurrency(1)).await.unwrap();
    let played = stage.has_played(90).await;
    let of = |kind: u64| {
        played
            .iter()
            .take(90)
            .filter(|played| played.number / 1_000 == kind)
            .count()
    };
    let each = [of(0), of(1), of(2)];
    assert!(each.iter().all(|count| *count >= 15), "{each:?}");
    b.shutdown().await;
    a.shutdown().await;
}

async fn who_does_not_campaign_works_all_the_same(ground: Ground) {
    let stage = Stage::new();
    let slow = |_, _| async {
        tokio::time::sleep(ms(5)).await;
        Ok(())
    };
    stage.part("slow", slow);
    let a = ground
        .instance("a", &stage)
        .tasks(|tasks| tasks.work(false))
        .await
        .unwrap();
    let start = |id| {
        ground
            .instance(id, &stage)
            .campaign(false)
            .tasks(|tasks| tasks.concurrency(4))
    };
    let (b, c) = (start("b").await.unwrap(), start("c").await.unwrap());
    // They store, too.
    b.tasks()
        .enqueue_many::<tasks::act, _>((0..200).map(|number| order("slow", number)))
        .await
        .unwrap();
    counts(&c.tasks(), "all are done", |figures| figures.counts.done == 200).await;
    let played = stage.played();
    assert_eq!(played.len(), 200);
    for on in ["b", "c"] {
        assert!(played.iter().any(|played| played.on == on), "{on} has done nothing");
    }
    for instance in [b, c, a] {
        instance.shutdown().await;
    }
}

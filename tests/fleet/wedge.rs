//! A runtime of the bodies that runs nothing: its instance gives up what it leads, and comes back.

use std::future::IntoFuture;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use leader_core::{Bootstrap, Event, Instance, Lost, Moment, Outcome, Ran, Role, Timing, testing};
use leader_tests::eventually;
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

use crate::stage::{Diary, Ground, SOON, Stage, Stopwatch, among_others, leads, ms, now};

const TTL: Duration = Duration::from_secs(2);

fn timing() -> Timing {
    Timing::from_ttl(TTL).with_cool_down(ms(200))
}

/// A user's runtime of its own, beside that of the test: what blocks there does not blind the test.
struct Users {
    handle: Handle,
    end: Option<oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Users {
    /// With so many workers; none is a runtime of one thread.
    fn new(workers: usize) -> Self {
        let runtime = match workers {
            0 => Builder::new_current_thread().enable_all().build().unwrap(),
            _ => Builder::new_multi_thread()
                .worker_threads(workers)
                .enable_all()
                .build()
                .unwrap(),
        };
        let handle = runtime.handle().clone();
        let (end, over) = oneshot::channel::<()>();
        let thread = std::thread::spawn(move || {
            let _ = runtime.block_on(over);
        });
        Self {
            handle,
            end: Some(end),
            thread: Some(thread),
        }
    }

    async fn start(&self, bootstrap: Bootstrap) -> Instance {
        self.handle.spawn(bootstrap.into_future()).await.unwrap().unwrap()
    }

    /// Blocks so many workers, and returns when they are.
    async fn block(&self, workers: usize, span: Duration) {
        let blocked = Arc::new(AtomicUsize::new(0));
        for _ in 0..workers {
            let blocked = Arc::clone(&blocked);
            self.handle.spawn(async move {
                blocked.fetch_add(1, Ordering::SeqCst);
                std::thread::sleep(span);
            });
        }
        eventually(SOON, "the workers are blocked", || async {
            blocked.load(Ordering::SeqCst) == workers
        })
        .await;
    }

    /// Waits until the runtime has ended.
    async fn end(mut self) {
        drop(self.end.take());
        let thread = self.thread.take().unwrap();
        tokio::task::spawn_blocking(move || thread.join().unwrap())
            .await
            .unwrap();
    }
}

fn wedged(event: &Event) -> Option<Moment> {
    match event {
        Event::RuntimeWedged { since, .. } => Some(*since),
        _ => None,
    }
}

fn recovered(event: &Event) -> Option<()> {
    matches!(event, Event::RuntimeRecovered).then_some(())
}

fn lost(event: &Event) -> Option<Lost> {
    match event {
        Event::Lost { reason, .. } => Some(*reason),
        _ => None,
    }
}

fn role(instance: &Instance, group: &str) -> Role {
    instance.watch(group).unwrap().current().role
}

on_each_store!(
    a_runtime_whose_every_worker_is_blocked_gives_its_leases_up_and_comes_back,
    a_blocked_runtime_of_one_thread_is_wedged_too,
    one_blocked_worker_of_two_is_no_wedge,
    a_body_that_finishes_outlives_a_wedge,
    a_run_that_never_began_keeps_no_slot,
);

async fn a_runtime_whose_every_worker_is_blocked_gives_its_leases_up_and_comes_back(ground: Ground) {
    let (stage, users) = (Stage::new(), Users::new(2));
    let (told, went_on) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let block = Arc::new(AtomicBool::new(false));
    let (see, go, wait) = (Arc::clone(&told), Arc::clone(&went_on), Arc::clone(&block));
    stage.standing(move |lead| {
        let (see, go, wait) = (Arc::clone(&see), Arc::clone(&go), Arc::clone(&wait));
        async move {
            while !wait.load(Ordering::SeqCst) {
                tokio::time::sleep(ms(5)).await;
            }
            std::thread::sleep(2 * TTL);
            see.store(lead.is_cancelled(), Ordering::SeqCst);
            tokio::task::yield_now().await;
            go.store(true, Ordering::SeqCst);
            Ok(())
        }
    });
    let groups = ["standing", "yearly"];
    let a = users.start(ground.instance("a", &stage, groups).timing(timing())).await;
    leads(&a, "standing").await;
    leads(&a, "yearly").await;
    let diary = Diary::of(&a);
    let b = ground
        .instance("b", &Stage::new(), groups)
        .timing(timing())
        .await
        .unwrap();

    // A body holds one worker and a task the other.
    users.block(1, 2 * TTL).await;
    block.store(true, Ordering::SeqCst);
    let (watch, blocked) = (Stopwatch::start(), now());
    for group in groups {
        leads(&b, group).await;
    }
    let took = watch.within(
        TTL + 2 * timing().renew() + ms(300),
        "the hand-over of a wedged instance",
    );
    println!("blocked: the other leads after {took:?} of a TTL of {TTL:?}");
    let since = diary.tells("the wedge", wedged).await;
    assert!(since + ms(50) >= blocked, "counted from a probe of after the block");
    diary
        .shows("both leads are lost", lost, [Lost::Wedged, Lost::Wedged])
        .await;
    for group in groups {
        assert!(!a.is_leader(group));
        assert_eq!(role(&a, group), Role::Standby);
    }
    let known = || async {
        let fleet = b.fleet().await.unwrap();
        fleet.iter().any(|member| member.instance == "a" && member.wedged)
    };
    eventually(SOON, "its fleet knows", known).await;
    assert!(diary.pick(recovered).is_empty(), "it is still blocked");

    diary.tells("the recovery", recovered).await;
    watch.within(2 * TTL + ms(500), "the recovery");
    eventually(SOON, "the body is told", || async { told.load(Ordering::SeqCst) }).await;
    // A candidate again.
    for group in groups {
        b.step_down(group).await.unwrap();
        leads(&a, group).await;
    }
    assert!(!went_on.load(Ordering::SeqCst), "it was dropped at its next poll");
    assert_eq!(diary.pick(wedged).len(), 1, "told once");
    block.store(false, Ordering::SeqCst);
    a.shutdown().await;
    b.shutdown().await;
    users.end().await;
}

/// Claimed on a runtime that runs nothing, it never begins, and the job goes on elsewhere while the runtime is still blocked.
async fn a_run_that_never_began_keeps_no_slot(ground: Ground) {
    let users = Users::new(0);
    let stage = Stage::new();
    let a = users
        .start(ground.instance("a", &stage.of("a"), ["steady"]).timing(timing()))
        .await;
    leads(&a, "steady").await;
    stage.has_played("steady", 1).await;
    let b = ground
        .instance("b", &stage.of("b"), ["steady"])
        .timing(timing())
        .await
        .unwrap();
    let diary = Diary::of(&a);
    users.block(1, 5 * TTL).await;
    leads(&b, "steady").await;
    eventually(SOON, "the other runs the job", || async {
        stage.played("steady").iter().any(|played| played.on == "b")
    })
    .await;
    assert!(diary.pick(recovered).is_empty(), "it is still blocked");
    a.shutdown().await;
    b.shutdown().await;
    users.end().await;
}

async fn a_blocked_runtime_of_one_thread_is_wedged_too(ground: Ground) {
    let users = Users::new(0);
    let a = users
        .start(ground.instance("a", &Stage::new(), ["yearly"]).timing(timing()))
        .await;
    leads(&a, "yearly").await;
    let diary = Diary::of(&a);
    let b = ground
        .instance("b", &Stage::new(), ["yearly"])
        .timing(timing())
        .await
        .unwrap();
    users.block(1, 2 * TTL).await;
    let watch = Stopwatch::start();
    leads(&b, "yearly").await;
    watch.within(
        TTL + 2 * timing().renew() + ms(300),
        "the hand-over of a wedged instance",
    );
    diary.shows("the lead is lost", lost, [Lost::Wedged]).await;
    // Its handle is not: whoever asks from elsewhere is answered while it is wedged.
    assert!(a.ledger("yearly").await.is_ok());
    diary.tells("the recovery", recovered).await;
    b.shutdown().await;
    leads(&a, "yearly").await;
    // A shutdown in the middle of a wedge ends as well.
    users.block(1, 2 * TTL).await;
    eventually(SOON, "wedged again", || async { diary.pick(wedged).len() == 2 }).await;
    let watch = Stopwatch::start();
    a.shutdown().await;
    watch.within(ms(1_000), "the shutdown of a wedged instance");
    users.end().await;
}

async fn one_blocked_worker_of_two_is_no_wedge(ground: Ground) {
    let (stage, users) = (Stage::new(), Users::new(2));
    let a = users
        .start(ground.instance("a", &stage, ["steady"]).timing(timing()))
        .await;
    leads(&a, "steady").await;
    let diary = Diary::of(&a);
    users.block(1, 3 * TTL).await;
    let watch = Stopwatch::start();
    let before = stage.played("steady").len();
    // Its ticks go on for longer than a wedge would take to be seen.
    stage.has_played("steady", before + 5).await;
    watch.within(3 * TTL, "five ticks beside a blocked worker");
    assert!(a.is_leader("steady"));
    assert!(diary.pick(wedged).is_empty() && diary.pick(lost).is_empty());
    a.shutdown().await;
    users.end().await;
}

/// Its lease goes on at once, its slot does not: heartbeats come from the framework's own thread.
async fn a_body_that_finishes_outlives_a_wedge(ground: Ground) {
    let (stage, users) = (Stage::new(), Users::new(0));
    let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let part = |stage: &Stage, span: Duration| {
        let (running, most) = (Arc::clone(&running), Arc::clone(&most));
        stage.part("finishing", move |_| {
            let (running, most) = (Arc::clone(&running), Arc::clone(&most));
            async move {
                let at_once = running.fetch_add(1, Ordering::SeqCst) + 1;
                most.fetch_max(at_once, Ordering::SeqCst);
                std::thread::sleep(span);
                tokio::task::yield_now().await;
                running.fetch_sub(1, Ordering::SeqCst);
                Ok(())
            }
        });
    };
    part(&stage, 2 * TTL);
    let b_stage = Stage::new();
    part(&b_stage, ms(1));
    let a = users
        .start(ground.instance("a", &stage, ["finishing"]).timing(timing()))
        .await;
    let diary = Diary::of(&a);
    stage.has_played("finishing", 1).await;
    let watch = Stopwatch::start();
    let b = ground
        .instance("b", &b_stage, ["finishing"])
        .timing(timing())
        .await
        .unwrap();
    leads(&b, "finishing").await;
    watch.within(
        TTL + 2 * timing().renew() + ms(300),
        "the hand-over of a wedged instance",
    );
    diary.shows("the lead is lost", lost, [Lost::Wedged]).await;
    assert_eq!(running.load(Ordering::SeqCst), 1, "the body goes on");
    b_stage.has_played("finishing", 2).await;
    assert_eq!(most.load(Ordering::SeqCst), 1, "never two at once");
    let first = stage.played("finishing").remove(0);
    eventually(SOON, "its result is recorded", || async {
        let ledger = b.ledger("finishing").await.unwrap();
        let mut records = ledger.records.iter();
        records.any(|record| record.fence == first.fence && record.outcome == Outcome::Ran(Ran::Ok))
    })
    .await;
    a.shutdown().await;
    b.shutdown().await;
    users.end().await;
}

/// The thread that watches stood still itself: nothing is known of the runtime that it watches.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_frozen_process_is_no_wedged_runtime() {
    let _among = among_others().await;
    let ground = Ground::embedded();
    let users = Users::new(2);
    let a = users
        .start(ground.instance("a", &Stage::new(), ["yearly"]).timing(timing()))
        .await;
    leads(&a, "yearly").await;
    let diary = Diary::of(&a);
    // A probe is under way when the thread falls still, and is not answered when it wakes, nor for a while.
    let (before, after) = (timing().renew() + ms(150), TTL / 2);
    users.block(2, before + 2 * TTL + after).await;
    tokio::time::sleep(before).await;
    assert!(a.is_leader("yearly"));
    testing::freeze(&a, 2 * TTL);
    let reason = diary.tells("the loss", lost).await;
    assert_eq!(reason, Lost::Expired);
    leads(&a, "yearly").await;
    // The runtime runs again, for as long as a wedge would have taken to be seen.
    users.handle.spawn(async {}).await.unwrap();
    tokio::time::sleep(TTL).await;
    assert!(diary.pick(wedged).is_empty(), "{:?}", diary.all());
    assert_eq!(diary.pick(lost), [Lost::Expired]);
    a.shutdown().await;
    users.end().await;
}

/// A new start of the framework's own work does not forget that the runtime runs nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_panic_during_a_wedge_does_not_end_it() {
    let _among = among_others().await;
    let ground = Ground::embedded();
    let users = Users::new(1);
    let a = users
        .start(ground.instance("a", &Stage::new(), ["yearly"]).timing(timing()))
        .await;
    leads(&a, "yearly").await;
    let diary = Diary::of(&a);
    users.block(1, 3 * TTL).await;
    diary.tells("the wedge", wedged).await;
    testing::panic(&a);
    diary.tells("the recovery", recovered).await;
    leads(&a, "yearly").await;
    let order = |event: &Event| match event {
        Event::RuntimeWedged { .. } => Some("wedged"),
        Event::EnginePanicked { .. } => Some("panicked"),
        Event::RuntimeRecovered => Some("recovered"),
        Event::Elected { .. } => Some("elected"),
        _ => None,
    };
    let expected = ["wedged", "panicked", "recovered", "elected"];
    diary.shows("the order", order, expected).await;
    a.shutdown().await;
    users.end().await;
}

/// Nobody drives the runtime of the bodies any more, though it lives: what it would run does not run.
#[test]
fn a_runtime_that_nobody_drives_is_wedged() {
    let watching = Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let _among = watching.block_on(among_others());
    let ground = Ground::embedded();
    let left = Builder::new_current_thread().enable_all().build().unwrap();
    let stage = Stage::new();
    let a = left.block_on(async {
        let a = ground.instance("a", &stage, ["steady"]).timing(timing()).await.unwrap();
        leads(&a, "steady").await;
        a
    });
    watching.block_on(async {
        let watch = Stopwatch::start();
        eventually(SOON, "it is given up", || async { !a.is_leader("steady") }).await;
        watch.within(TTL + 2 * timing().renew() + ms(300), "the end of belief");
    });
    let before = stage.played("steady").len();
    left.block_on(async {
        leads(&a, "steady").await;
        stage.has_played("steady", before + 1).await;
        a.shutdown().await;
    });
}

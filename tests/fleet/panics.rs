//! A panic of the framework's own work: a loss, told, and a new start after a growing pause.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use leader_core::{Event, Instance, Lost, Role, StepDownError, Timing, testing};
use leader_tests::eventually;

use crate::stage::{Diary, Ground, Played, SOON, Stage, Stopwatch, among_others, leads, ms};

const TTL: Duration = Duration::from_secs(2);

fn timing() -> Timing {
    Timing::from_ttl(TTL).with_cool_down(ms(200))
}

/// What was told of each panic: its text, and the pause.
fn panicked(event: &Event) -> Option<(String, Option<Duration>)> {
    match event {
        Event::EnginePanicked { error, again_in, .. } => Some((error.clone(), *again_in)),
        _ => None,
    }
}

fn lost(event: &Event) -> Option<Lost> {
    match event {
        Event::Lost { reason, .. } => Some(*reason),
        _ => None,
    }
}

fn elected(event: &Event) -> Option<u64> {
    match event {
        Event::Elected { term, .. } => Some(*term),
        _ => None,
    }
}

fn role(instance: &Instance, group: &str) -> Role {
    instance.watch(group).unwrap().current().role
}

/// No tick was run twice, and fences rose in the order in which the runs were started.
fn each_once(played: &[Played]) {
    let ticks: BTreeSet<_> = played.iter().map(|played| played.scheduled_at).collect();
    assert_eq!(ticks.len(), played.len(), "no tick is run twice: {played:?}");
    assert!(played.is_sorted_by(|a, b| a.fence < b.fence), "{played:?}");
}

/// Counts the bodies that have not been dropped.
struct Alive(Arc<AtomicUsize>);

impl Alive {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(count))
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

on_each_store!(
    case_27_a_panic_of_the_framework_is_a_loss_and_it_starts_again,
    case_27_panics_in_a_row_pause_longer_and_another_leads,
    a_panic_during_a_shutdown_does_not_lengthen_it,
    a_shutdown_in_the_pause_gives_the_lease_back,
    a_panic_answers_the_step_down_that_is_under_way,
);

async fn case_27_a_panic_of_the_framework_is_a_loss_and_it_starts_again(ground: Ground) {
    let stage = Stage::new();
    let (runs, lives, most) = <(Arc<AtomicUsize>, Arc<AtomicUsize>, Arc<AtomicUsize>)>::default();
    let count = Arc::clone(&runs);
    let first = AtomicUsize::new(0);
    stage.part("steady", move |_| {
        let alive = Alive::new(&count);
        let hangs = first.fetch_add(1, Ordering::SeqCst) == 0;
        async move {
            let _alive = alive;
            if hangs {
                std::future::pending::<()>().await;
            }
            Ok(())
        }
    });
    let groups = ["steady", "standing"];
    let a = ground.instance("a", &stage, groups).timing(timing()).await.unwrap();
    // One that was added while the instance lived.
    let (count, highest) = (Arc::clone(&lives), Arc::clone(&most));
    a.while_leading("standing", move |lead| {
        let alive = Alive::new(&count);
        highest.fetch_max(count.load(Ordering::SeqCst), Ordering::SeqCst);
        async move {
            let _alive = alive;
            lead.cancelled().await;
            std::future::pending::<()>().await;
        }
    })
    .unwrap();
    let diary = Diary::of(&a);
    stage.has_played("steady", 1).await;
    eventually(SOON, "the standing body stands", || async {
        lives.load(Ordering::SeqCst) == 1
    })
    .await;

    testing::panic(&a);
    let watch = Stopwatch::start();
    let told = diary.tells("the panic", panicked).await;
    watch.within(ms(500), "the panic is told");
    assert_eq!(told, ("a panic on request".to_owned(), Some(Duration::from_secs(1))));
    eventually(SOON, "both leads are lost", || async { diary.pick(lost).len() == 2 }).await;
    assert_eq!(diary.pick(lost), [Lost::EnginePanicked, Lost::EnginePanicked]);
    for group in groups {
        assert!(!a.is_leader(group));
        assert_eq!(role(&a, group), Role::Standby);
    }
    let dropped = || async { runs.load(Ordering::SeqCst) + lives.load(Ordering::SeqCst) == 0 };
    eventually(SOON, "its bodies are dropped", dropped).await;
    // Whoever asks is answered while it pauses.
    assert!(a.ledger("steady").await.is_ok());
    assert_eq!(a.fleet().await.unwrap().len(), 1, "its roster line stays");
    let (asking, term) = (a.clone(), a.watch("standing").unwrap().current().term);
    let step_down = tokio::spawn(async move { asking.step_down("standing").await });
    watch.within(ms(950), "all that");
    assert!(diary.pick(elected).is_empty(), "it pauses");

    for group in groups {
        leads(&a, group).await;
    }
    // The leadership that was to be given up is no more.
    let answer = tokio::time::timeout(SOON, step_down).await.expect("it is answered");
    assert!(answer.unwrap().is_ok());
    assert!(a.watch("standing").unwrap().current().term > term);
    // Its own lease is found as its own: not after it has ended.
    let took = watch.within(ms(1_000) + TTL / 2, "the new start");
    assert!(took >= ms(990), "not without the pause: {took:?}");
    let before = stage.played("steady").len();
    stage.has_played("steady", before + 3).await;
    each_once(&stage.played("steady"));
    eventually(SOON, "the standing body stands again", || async {
        lives.load(Ordering::SeqCst) == 1
    })
    .await;
    assert_eq!(most.load(Ordering::SeqCst), 1, "never two at once");
    // The run that was broken off has exactly one outcome.
    let broken = stage.played("steady").remove(0);
    eventually(SOON, "the broken run is settled", || async {
        let ledger = a.ledger("steady").await.unwrap();
        let of_tick = ledger.records.iter().filter(|record| record.fence == broken.fence);
        of_tick.filter(|record| record.outcome.is_ran()).count() == 1
    })
    .await;
    let started = diary.pick(|event| matches!(event, Event::Started { .. }).then_some(()));
    assert!(started.is_empty(), "it never left its fleet");
    diary
        .shows("both leads are lost", lost, [Lost::EnginePanicked; 2])
        .await;
    a.shutdown().await;
    assert!(matches!(a.step_down("steady").await, Err(StepDownError::Stopped)));
}

async fn case_27_panics_in_a_row_pause_longer_and_another_leads(ground: Ground) {
    let stage = Stage::new();
    let start = |id: &'static str| ground.instance(id, &stage.of(id), ["steady"]).timing(timing());
    let a = start("a").await.unwrap();
    leads(&a, "steady").await;
    let b = start("b").await.unwrap();
    let (diary, others) = (Diary::of(&a), Diary::of(&b));
    stage.has_played("steady", 1).await;
    let watch = Stopwatch::start();
    (0..3).for_each(|_| testing::panic(&a));
    let three = || async { diary.pick(panicked).len() == 3 };
    eventually(SOON, "three panics are told", three).await;
    let took = watch.within(SOON, "three panics");
    assert!(took >= Duration::from_secs(3), "1 s and 2 s lie between them: {took:?}");
    let pauses: Vec<_> = diary.pick(panicked).into_iter().map(|(_, pause)| pause).collect();
    assert_eq!(pauses, [1, 2, 4].map(|pause| Some(Duration::from_secs(pause))));
    // The second start panicked at once: it led nothing. Four transitions at the most, not thousands.
    assert!(diary.pick(lost).len() <= 2, "{:?}", diary.pick(lost));
    leads(&b, "steady").await;
    assert!(!a.is_leader("steady"), "it pauses");
    let before = stage.played("steady").len();
    stage.has_played("steady", before + 2).await;
    // It is a candidate again after its pause.
    tokio::time::timeout(SOON, async {
        while !a.is_leader("steady") {
            let _ = b.step_down("steady").await;
            tokio::time::sleep(ms(100)).await;
        }
    })
    .await
    .expect("it leads again");
    let before = stage.played("steady").len();
    stage.has_played("steady", before + 2).await;
    each_once(&stage.played("steady"));
    assert!(others.pick(panicked).is_empty());
    a.shutdown().await;
    b.shutdown().await;
}

async fn a_panic_during_a_shutdown_does_not_lengthen_it(ground: Ground) {
    let (stage, next) = (Stage::new(), Stage::new());
    stage.part("steady", |_| std::future::pending());
    let drain = Duration::from_secs(10);
    let a = ground
        .instance("a", &stage, ["steady"])
        .timing(timing())
        .drain(drain)
        .await
        .unwrap();
    stage.has_played("steady", 1).await;
    let diary = Diary::of(&a);
    let b = ground.instance("b", &next, ["steady"]).timing(timing()).await.unwrap();
    let stopping = a.clone();
    let shutdown = tokio::spawn(async move { stopping.shutdown().await });
    let draining = |event: &Event| matches!(event, Event::Draining { .. }).then_some(());
    diary.tells("the drain", draining).await;
    let watch = Stopwatch::start();
    (0..3).for_each(|_| testing::panic(&a));
    tokio::time::timeout(SOON, shutdown).await.expect("it ends").unwrap();
    watch.within(ms(1_500), "the shutdown after a panic");
    assert!(!a.is_leader("steady"));
    let end = diary.tells("the end", |event| matches!(event, Event::Stopped { .. }).then_some(()));
    end.await;
    assert_eq!(diary.pick(panicked), [("a panic on request".to_owned(), None)]);
    assert_eq!(diary.pick(lost), [Lost::EnginePanicked]);
    a.shutdown().await;
    assert!(matches!(a.step_down("steady").await, Err(StepDownError::Stopped)));
    // Given back, not left to its end.
    leads(&b, "steady").await;
    b.shutdown().await;
}

async fn a_shutdown_in_the_pause_gives_the_lease_back(ground: Ground) {
    let a = ground
        .instance("a", &Stage::new(), ["yearly"])
        .timing(Timing::from_ttl(ms(8_000)))
        .await
        .unwrap();
    leads(&a, "yearly").await;
    let diary = Diary::of(&a);
    let b = ground
        .instance("b", &Stage::new(), ["yearly"])
        .timing(Timing::from_ttl(ms(8_000)))
        .await
        .unwrap();
    testing::panic(&a);
    diary.tells("the panic", panicked).await;
    let watch = Stopwatch::start();
    tokio::join!(a.shutdown(), a.shutdown(), a.shutdown());
    watch.within(ms(700), "the shutdown in a pause");
    leads(&b, "yearly").await;
    watch.within(ms(2_500), "the next lead");
    b.shutdown().await;
}

async fn a_panic_answers_the_step_down_that_is_under_way(ground: Ground) {
    let stage = Stage::new();
    stage.part("steady", |_| std::future::pending());
    let a = ground.instance("a", &stage, ["steady"]).timing(timing()).await.unwrap();
    stage.has_played("steady", 1).await;
    let diary = Diary::of(&a);
    let stepping = a.clone();
    let step_down = tokio::spawn(async move { stepping.step_down("steady").await });
    let draining = |event: &Event| matches!(event, Event::Draining { .. }).then_some(());
    diary.tells("the drain", draining).await;
    let watch = Stopwatch::start();
    testing::panic(&a);
    let answer = tokio::time::timeout(SOON, step_down).await.expect("it is answered");
    watch.within(ms(500), "the answer");
    assert!(answer.unwrap().is_ok(), "it leads no longer");
    assert!(!a.is_leader("steady"));
    a.shutdown().await;
}

/// What the instance has seen of its groups is not forgotten: a new start is not the first start ever.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_start_after_a_panic_is_no_first_start() {
    let _among = among_others().await;
    let ground = Ground::redis().await;
    let Ground::Redis(server) = &ground else { unreachable!() };
    let a = ground.instance("a", &Stage::new(), ["yearly"]);
    let a = a.timing(timing()).first_start(true).await.unwrap();
    leads(&a, "yearly").await;
    let diary = Diary::of(&a);
    testing::panic(&a);
    diary.tells("the panic", panicked).await;
    // Its own data is gone meanwhile, and who else may have led?
    server.command(&["FLUSHALL"]).await;
    let quarantined = |event: &Event| matches!(event, Event::Quarantined { .. }).then_some(());
    diary.tells("the quarantine", quarantined).await;
    assert!(diary.pick(elected).is_empty(), "{:?}", diary.all());
    leads(&a, "yearly").await;
    a.shutdown().await;
}

/// On a store that hangs the last steps have their bound as well.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_panic_during_a_shutdown_on_a_store_that_hangs_is_bounded() {
    let _among = among_others().await;
    let ground = Ground::redis().await;
    let Ground::Redis(server) = &ground else { unreachable!() };
    let a = ground
        .instance("a", &Stage::new(), ["yearly"])
        .timing(timing())
        .await
        .unwrap();
    leads(&a, "yearly").await;
    let diary = Diary::of(&a);
    server.pause();
    testing::panic(&a);
    diary.tells("the panic", panicked).await;
    let watch = Stopwatch::start();
    a.shutdown().await;
    watch.within(ms(1_500), "the shutdown in a pause, without a store");
    server.resume();
}

/// A kill needs no engine.
#[tokio::test]
async fn a_kill_in_the_pause_is_the_end() {
    let _among = among_others().await;
    let ground = Ground::embedded();
    let a = ground.instance("a", &Stage::new(), ["yearly"]).await.unwrap();
    let diary = Diary::of(&a);
    testing::panic(&a);
    diary.tells("the panic", panicked).await;
    testing::kill(&a);
    let watch = Stopwatch::start();
    a.shutdown().await;
    watch.within(ms(700), "the shutdown of a killed instance");
}

//! Failure hooks: told once of each run that ended badly, and whatever they do, they hurt nobody.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use leader_core::{Event, FailedRun, Instance, JobError, LedgerRecord, Origin, Outcome, Ran, Timing, testing};
use leader_tests::eventually;
use tokio::sync::Notify;

use crate::stage::{Diary, Ground, SOON, Stage, Stopwatch, leads, ms};

on_each_store!(
    a_failed_run_is_told_once_when_it_is_recorded,
    a_refused_result_is_told_as_such,
    hooks_that_panic_block_or_hang_hurt_nobody,
    a_shutdown_waits_for_a_hook_under_way,
);

/// What hooks were told.
#[derive(Clone, Default)]
struct Calls(Arc<Mutex<Vec<(FailedRun, String)>>>);

impl Calls {
    fn note(&self, run: FailedRun, error: &JobError) {
        self.0.lock().unwrap().push((run, error.to_string()));
    }

    fn of(&self, job: &str) -> Vec<(FailedRun, String)> {
        let all = self.0.lock().unwrap().clone();
        all.into_iter().filter(|(run, _)| run.job().as_str() == job).collect()
    }
}

/// Sets a body free, even where a test fails: a blocked thread would hold its runtime for ever.
struct Free(Arc<AtomicBool>);

impl Drop for Free {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

async fn a_failed_run_is_told_once_when_it_is_recorded(ground: Ground) {
    let (stage, plain, later) = (Stage::new(), Calls::default(), Calls::default());
    stage.part("first", |_| async { anyhow::bail!("no paper") });
    stage.part("second", |_| async { panic!("no ink") });
    stage.part("bounded", |_| std::future::pending());
    // Cut off by the drain, and no failure.
    stage.part("finishing", |_| std::future::pending());
    let handle = Arc::new(OnceLock::<Instance>::new());
    let unrecorded = Arc::new(AtomicUsize::new(0));
    let (noting, recording) = (plain.clone(), later.clone());
    let (asked, missing) = (Arc::clone(&handle), Arc::clone(&unrecorded));
    let instance = ground
        .instance("a", &stage, ["pair", "bounded", "steady", "finishing"])
        .drain(ms(300))
        .on_failure(move |run, error| noting.note(run, &error))
        .on_failure(move |run, error| {
            let (recording, asked, missing) = (recording.clone(), Arc::clone(&asked), Arc::clone(&missing));
            async move {
                // Before the handle is there nobody can look.
                if let Some(instance) = asked.get() {
                    let ledger = instance.ledger(run.job().as_str()).await.unwrap();
                    let is_this = |record: &LedgerRecord| {
                        (record.fence, record.outcome, record.first) == (run.fence(), run.outcome(), run.scheduled_at())
                    };
                    missing.fetch_add(usize::from(!ledger.records.iter().any(is_this)), Ordering::SeqCst);
                }
                recording.note(run, &error);
            }
        })
        .await
        .unwrap();
    let term = instance.watch("pair").unwrap().current().term;
    handle.set(instance.clone()).unwrap();
    for job in ["first", "second", "bounded"] {
        eventually(SOON, job, || async {
            plain.of(job).len() >= 3 && later.of(job).len() >= 3
        })
        .await;
    }
    stage.has_played("steady", 3).await;
    stage.has_played("finishing", 1).await;
    instance.shutdown().await;

    let next = ground.instance("b", &Stage::new(), ["yearly"]).await.unwrap();
    for (job, ran, text) in [
        ("first", Ran::Error, "no paper"),
        ("second", Ran::Panic, "no ink"),
        (
            "bounded",
            Ran::TimedOut,
            "it took longer than the job's timeout, and was dropped",
        ),
    ] {
        let ledger = next.ledger(job).await.unwrap();
        let recorded = ledger
            .records
            .iter()
            .filter(|record| record.outcome == Outcome::Ran(ran));
        let mut fences: Vec<_> = recorded.map(|record| record.fence).collect();
        fences.sort_unstable();
        for calls in [&plain, &later] {
            let calls = calls.of(job);
            let mut told: Vec<_> = calls.iter().map(|(run, _)| run.fence()).collect();
            told.sort_unstable();
            assert_eq!(told, fences, "each {job} once");
            assert!(calls.iter().all(|(run, error)| {
                error == text
                    && (run.ran(), run.outcome()) == (ran, Outcome::Ran(ran))
                    && (run.origin(), run.attempt()) == (Origin::Schedule, 1)
            }));
        }
    }
    assert!(
        plain
            .of("first")
            .iter()
            .all(|(run, _)| run.term() == term && run.group().as_str() == "pair")
    );
    for job in ["steady", "finishing"] {
        assert_eq!((plain.of(job).len(), later.of(job).len()), (0, 0), "{job}");
    }
    assert_eq!(unrecorded.load(Ordering::SeqCst), 0, "told before it was recorded");
    next.shutdown().await;
}

/// A leader that stood still, and whose run was settled as lost meanwhile, finishes it: that is nobody's result.
async fn a_refused_result_is_told_as_such(ground: Ground) {
    let (stage, calls, go_on) = (Stage::new(), Calls::default(), Arc::new(Notify::new()));
    let timing = Timing::from_ttl(ms(2_000));
    let start = |id: &'static str| {
        let calls = calls.clone();
        ground
            .instance(id, &stage.of(id), ["finishing"])
            .timing(timing)
            .on_failure(move |run, error| calls.note(run, &error))
    };
    let wait = Arc::clone(&go_on);
    stage.part("finishing", move |_| {
        let wait = Arc::clone(&wait);
        async move {
            wait.notified().await;
            Ok(())
        }
    });
    let first = start("a").await.unwrap();
    stage.has_played("finishing", 1).await;
    let run = stage.played("finishing").remove(0);
    let second = start("b").await.unwrap();
    testing::freeze(&first, 4 * timing.ttl());
    // The successor's ticks wait for the dead run to be settled.
    eventually(SOON, "the successor finds it lost", || async {
        let ledger = second.ledger("finishing").await.unwrap();
        ledger.counts.contains_key(&Outcome::Ran(Ran::Lost))
    })
    .await;
    go_on.notify_waiters();
    eventually(SOON, "the first is told", || async {
        !calls.of("finishing").is_empty()
    })
    .await;
    let told = calls.of("finishing");
    let (refused, error) = &told[0];
    assert_eq!((refused.fence(), refused.scheduled_at()), (run.fence, run.scheduled_at));
    assert_eq!((refused.ran(), refused.outcome()), (Ran::Ok, Outcome::Fenced));
    assert!(error.contains("refused"), "{error}");
    go_on.notify_one();
    go_on.notify_one();
    first.shutdown().await;
    second.shutdown().await;
    // Nobody is told of the lost run as such.
    assert!(calls.of("finishing").iter().all(|(run, _)| run.ran() != Ran::Lost));
}

async fn hooks_that_panic_block_or_hang_hurt_nobody(ground: Ground) {
    let (stage, calls) = (Stage::new(), Calls::default());
    let free = Free(Arc::default());
    stage.part("first", |_| async { anyhow::bail!("as it was told") });
    let (block, noting) = (Arc::clone(&free.0), calls.clone());
    let drain = ms(1_200);
    let instance = ground
        .instance("a", &stage.of("a"), ["pair"])
        .drain(drain)
        .on_failure(|_, _| -> () { panic!("a plain hook") })
        .on_failure(|_, _| async { panic!("an async hook") })
        .on_failure(move |_, _| {
            while !block.load(Ordering::SeqCst) {
                std::thread::sleep(ms(5));
            }
        })
        .on_failure(|_, _| std::future::pending())
        .on_failure(move |run, error| {
            let noting = noting.clone();
            async move { noting.note(run, &error) }
        })
        .await
        .unwrap();
    let diary = Diary::of(&instance);
    eventually(SOON, "the last hook is called each time", || async {
        calls.of("first").len() >= 4
    })
    .await;
    stage.has_played("second", 4).await;
    let latest = stage.played("second").iter().map(|played| played.late).max().unwrap();
    println!("beside such hooks the latest tick was {latest:?} late");
    assert!(latest < ms(500), "{latest:?}");
    assert!(instance.is_leader("pair"));
    assert!(
        diary
            .pick(|event| matches!(event, Event::Lost { .. }).then_some(()))
            .is_empty()
    );

    // No lease is held for a hook, and a shutdown gives up on them at the drain bound.
    let standby = ground.instance("b", &stage.of("b"), ["pair"]).await.unwrap();
    let watch = Stopwatch::start();
    let leaving = tokio::spawn({
        let instance = instance.clone();
        async move { instance.shutdown().await }
    });
    leads(&standby, "pair").await;
    watch.within(ms(1_000), "the hand-over beside hooks that hang");
    leaving.await.unwrap();
    let took = watch.within(drain + ms(1_000), "the shutdown beside hooks that hang");
    assert!(took >= drain, "they are waited for: {took:?}");
    drop(free);
    standby.shutdown().await;
}

async fn a_shutdown_waits_for_a_hook_under_way(ground: Ground) {
    let (stage, calls) = (Stage::new(), Calls::default());
    let begun = Arc::new(AtomicUsize::new(0));
    stage.part("steady", |_| async { anyhow::bail!("as it was told") });
    let (noting, count) = (calls.clone(), Arc::clone(&begun));
    let instance = ground
        .instance("a", &stage, ["steady"])
        .on_failure(move |run, error| {
            let (noting, count) = (noting.clone(), Arc::clone(&count));
            async move {
                count.fetch_add(1, Ordering::SeqCst);
                tokio::time::sleep(ms(400)).await;
                noting.note(run, &error);
            }
        })
        .await
        .unwrap();
    eventually(SOON, "a hook is called", || async { begun.load(Ordering::SeqCst) > 0 }).await;
    let watch = Stopwatch::start();
    instance.shutdown().await;
    // Long before the drain bound.
    watch.within(ms(4_000), "the shutdown");
    assert_eq!(calls.of("steady").len(), begun.load(Ordering::SeqCst));
}

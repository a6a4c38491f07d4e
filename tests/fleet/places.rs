//! Places: no more bodies at once than an instance was given, and no tick lost for want of one.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use leader_core::{Embedded, Event, Instance, Origin, Outcome, Ran, testing};
use leader_tests::eventually;
use tokio::sync::Notify;

use crate::stage::{Diary, Ground, SOON, Stage, among_others, jobs, leads, ms};

on_each_store!(
    with_one_place_the_jobs_of_each_second_run_one_after_another,
    behind_a_body_that_hangs_the_others_wait_unclaimed,
    a_timeout_gives_the_place_to_the_next,
    what_waits_is_taken_by_the_next_leader,
    a_job_that_overlaps_itself_needs_no_place,
    runs_beside_each_other_need_a_place_each,
    a_tick_behind_its_own_run_finds_a_place,
);

/// All due each second.
const JOBS: [&str; 5] = ["bounded", "finishing", "first", "second", "steady"];
const GROUPS: [&str; 4] = ["bounded", "finishing", "pair", "steady"];

/// Every tick of a job has one outcome, and none was missed.
async fn is_accounted_for(instance: &Instance, job: &str) {
    let ledger = instance.ledger(job).await.unwrap();
    let (since, cursor) = (ledger.since.unwrap(), ledger.cursor.unwrap());
    let due = instance.count_ticks(job, since, cursor).unwrap();
    assert_eq!(ledger.decided() + ledger.pending(), due, "{job}: {ledger:?}");
    assert!(
        ledger.counts.keys().all(|outcome| !outcome.is_missed()),
        "{job}: {:?}",
        ledger.counts
    );
}

/// Bodies that take so long, and how many of all of them there were at once.
fn slow<const N: usize>(stage: &Stage, jobs: [(&'static str, Duration); N]) -> Arc<AtomicUsize> {
    struct Within(Arc<AtomicUsize>);
    impl Drop for Within {
        fn drop(&mut self) {
            self.0.fetch_sub(1, Ordering::SeqCst);
        }
    }
    let (at_once, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    for (job, takes) in jobs {
        let (at_once, most) = (Arc::clone(&at_once), Arc::clone(&most));
        stage.part(job, move |_| {
            let (at_once, most) = (Arc::clone(&at_once), Arc::clone(&most));
            async move {
                most.fetch_max(at_once.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                let _within = Within(at_once);
                tokio::time::sleep(takes).await;
                Ok(())
            }
        });
    }
    most
}

/// A body that waits for a word, and goes on with all later ones.
fn hangs(stage: &Stage, job: &'static str) -> Arc<Notify> {
    let go_on = Arc::new(Notify::new());
    let wait = Arc::clone(&go_on);
    stage.part(job, move |_| {
        let wait = Arc::clone(&wait);
        async move {
            wait.notified().await;
            Ok(())
        }
    });
    go_on
}

async fn with_one_place_the_jobs_of_each_second_run_one_after_another(ground: Ground) {
    let stage = Stage::new();
    let most = slow(&stage, JOBS.map(|job| (job, ms(50))));
    let instance = ground
        .instance("a", &stage, GROUPS)
        .max_concurrent_jobs(1)
        .await
        .unwrap();
    let diary = Diary::of(&instance);
    assert_eq!(instance.load().limit, Some(1));
    for job in JOBS {
        stage.has_played(job, 5).await;
    }
    assert!(
        diary
            .pick(|event| matches!(event, Event::Lost { .. }).then_some(()))
            .is_empty()
    );
    instance.shutdown().await;
    assert_eq!(most.load(Ordering::SeqCst), 1, "bodies at once");

    let mut all: Vec<_> = JOBS.iter().flat_map(|job| stage.played(job)).collect();
    all.sort_by_key(|played| played.at);
    for pair in all.windows(2) {
        assert!(
            pair[0].scheduled_at <= pair[1].scheduled_at,
            "the oldest first: {pair:?}"
        );
    }
    let next = ground.instance("b", &Stage::new(), ["yearly"]).await.unwrap();
    let mut claims = Vec::new();
    for job in JOBS {
        is_accounted_for(&next, job).await;
        let ledger = next.ledger(job).await.unwrap();
        println!("{job}: {:?}", ledger.counts);
        let mut ticks: Vec<_> = stage.played(job).iter().map(|played| played.scheduled_at).collect();
        let count = ticks.len();
        ticks.dedup();
        assert_eq!(ticks.len(), count, "none is run twice");
        claims.extend(
            ledger
                .records
                .iter()
                .filter(|record| record.outcome.is_ran())
                .map(|record| record.claimed_at),
        );
    }
    // No claim before there is a place: each comes after the body before it, which took its time.
    claims.sort_unstable();
    for pair in claims.windows(2) {
        let between = pair[1].duration_since(pair[0]).as_millis();
        assert!(between >= 45, "claimed {between} ms apart");
    }
    next.shutdown().await;
}

async fn behind_a_body_that_hangs_the_others_wait_unclaimed(ground: Ground) {
    let stage = Stage::new();
    let go_on = hangs(&stage, "steady");
    let instance = ground
        .instance("a", &stage, ["steady", "pair", "punctual"])
        .job("first", |job| job.every("3s"))
        .max_concurrent_jobs(1)
        .await
        .unwrap();
    let diary = Diary::of(&instance);
    stage.has_played("steady", 1).await;
    let hung = stage.played("steady")[0].scheduled_at;
    // Others may have run before it; from now on nothing starts.
    eventually(SOON, "the others wait", || async {
        let load = instance.load();
        (load.running, load.waiting) == (1, 3)
    })
    .await;
    let before = ["first", "second", "punctual"].map(|job| stage.played(job).len());
    let waiting_since = jiff::Timestamp::now();
    // Longer than the grace of any, and than a lease.
    tokio::time::sleep(instance.timing().ttl() + ms(500)).await;
    assert_eq!(
        ["first", "second", "punctual"].map(|job| stage.played(job).len()),
        before
    );
    for job in ["first", "second", "punctual"] {
        let ledger = instance.ledger(job).await.unwrap();
        assert!(ledger.open.is_empty(), "{job} is claimed: {ledger:?}");
        assert!(ledger.cursor.unwrap() <= waiting_since, "{job} is decided: {ledger:?}");
    }
    assert!(
        ["steady", "pair", "punctual"]
            .iter()
            .all(|group| instance.is_leader(group))
    );
    assert!(
        diary
            .pick(|event| matches!(event, Event::Lost { .. } | Event::RenewalFailed { .. }).then_some(()))
            .is_empty()
    );
    // The job itself goes on deciding its ticks.
    let own = instance.ledger("steady").await.unwrap();
    assert!(
        own.counts
            .get(&Outcome::OverlapSkipped)
            .is_some_and(|count| *count >= 3),
        "{own:?}"
    );

    stage.part("steady", |_| async { Ok(()) });
    go_on.notify_one();
    for (job, before) in ["first", "second", "punctual"].iter().zip(before) {
        stage.has_played(job, before + 2).await;
        let late = &stage.played(job)[before];
        assert!(
            late.scheduled_at <= waiting_since,
            "the tick that waited runs: {late:?}"
        );
        assert!(late.scheduled_at >= hung, "{late:?}");
        assert!(late.late >= ms(1_000), "{late:?}");
        is_accounted_for(&instance, job).await;
    }
    is_accounted_for(&instance, "steady").await;
    instance.shutdown().await;
}

async fn a_timeout_gives_the_place_to_the_next(ground: Ground) {
    let stage = Stage::new();
    // Every time: 200 ms of each second.
    stage.part("bounded", |_| std::future::pending());
    let instance = ground
        .instance("a", &stage, ["bounded", "pair"])
        .max_concurrent_jobs(1)
        .await
        .unwrap();
    for job in ["bounded", "first", "second"] {
        stage.has_played(job, 4).await;
    }
    for job in ["first", "second"] {
        is_accounted_for(&instance, job).await;
    }
    let timed_out = instance.ledger("bounded").await.unwrap().counts;
    assert!(
        timed_out
            .get(&Outcome::Ran(Ran::TimedOut))
            .is_some_and(|count| *count >= 3),
        "{timed_out:?}"
    );
    instance.shutdown().await;
    let mut all: Vec<_> = ["bounded", "first", "second"]
        .iter()
        .flat_map(|job| stage.played(job))
        .collect();
    all.sort_by_key(|played| played.at);
    for pair in all.windows(2).filter(|pair| pair[0].job == "bounded") {
        let after = pair[1].at - pair[0].at;
        assert!(after >= ms(195), "beside a body that had not ended: {after:?}");
    }
}

/// A tick that waits is nobody's yet.
async fn what_waits_is_taken_by_the_next_leader(ground: Ground) {
    let stage = Stage::new();
    let go_on = hangs(&stage, "steady");
    let a = ground
        .instance("a", &stage.of("a"), ["steady", "pair"])
        .max_concurrent_jobs(1)
        .await
        .unwrap();
    stage.has_played("steady", 1).await;
    eventually(SOON, "the others wait", || async { a.load().waiting == 2 }).await;
    let b = ground.instance("b", &stage.of("b"), ["pair"]).await.unwrap();
    a.step_down("pair").await.unwrap();
    leads(&b, "pair").await;
    eventually(SOON, "nothing waits any more", || async { a.load().waiting == 0 }).await;
    let before = stage.played("first").len() + stage.played("second").len();
    stage.has_played("first", 2).await;
    stage.has_played("second", 2).await;
    let played: Vec<_> = ["first", "second"].iter().flat_map(|job| stage.played(job)).collect();
    let late = played.iter().filter(|played| played.on == "b");
    assert!(late.count() >= played.len().saturating_sub(before), "{played:?}");
    for job in ["first", "second"] {
        let ledger = b.ledger(job).await.unwrap();
        let (since, cursor) = (ledger.since.unwrap(), ledger.cursor.unwrap());
        assert_eq!(
            ledger.decided() + ledger.pending(),
            b.count_ticks(job, since, cursor).unwrap(),
            "{ledger:?}"
        );
        assert!(
            !ledger.counts.contains_key(&Outcome::Ran(Ran::NotStarted)),
            "{ledger:?}"
        );
    }
    assert_eq!(a.load().running, 1);
    go_on.notify_one();
    a.shutdown().await;
    b.shutdown().await;
}

/// A job whose own run is under way: its ticks are skipped at once, as they are without a limit.
async fn a_job_that_overlaps_itself_needs_no_place(ground: Ground) {
    let stage = Stage::new();
    let go_on = hangs(&stage, "steady");
    let instance = ground
        .instance("a", &stage, ["steady"])
        .max_concurrent_jobs(1)
        .await
        .unwrap();
    stage.has_played("steady", 1).await;
    eventually(SOON, "ticks are skipped", || async {
        let counts = instance.ledger("steady").await.unwrap().counts;
        counts.get(&Outcome::OverlapSkipped).is_some_and(|count| *count >= 2)
    })
    .await;
    assert_eq!((instance.load().running, instance.load().waiting), (1, 0));
    go_on.notify_one();
    stage.has_played("steady", 2).await;
    is_accounted_for(&instance, "steady").await;
    go_on.notify_one();
    instance.shutdown().await;
}

async fn runs_beside_each_other_need_a_place_each(ground: Ground) {
    let stage = Stage::new();
    // Two and a half at once, had they as many places as they wanted.
    let most = slow(&stage, [("beside", ms(2_500))]);
    let instance = ground
        .instance("a", &stage, ["beside"])
        .max_concurrent_jobs(2)
        .await
        .unwrap();
    stage.has_played("beside", 7).await;
    assert_eq!(most.load(Ordering::SeqCst), 2, "bodies at once");
    is_accounted_for(&instance, "beside").await;
    let counts = instance.ledger("beside").await.unwrap().counts;
    assert!(
        counts.keys().all(|outcome| *outcome == Outcome::Ran(Ran::Ok)),
        "{counts:?}"
    );
    // Each tick in its turn, however late.
    let ticks: Vec<_> = stage
        .played("beside")
        .iter()
        .map(|played| played.scheduled_at)
        .collect();
    for pair in ticks.windows(2) {
        assert_eq!(pair[1].duration_since(pair[0]).as_secs(), 1, "{ticks:?}");
    }
    instance.shutdown().await;
}

/// One that waits for the run before it comes in its turn, and one that takes its place has it at once.
async fn a_tick_behind_its_own_run_finds_a_place(ground: Ground) {
    let stage = Stage::new();
    let jobs = [
        ("waits", ms(1_300)),
        ("replaces", ms(60_000)),
        ("first", ms(20)),
        ("second", ms(20)),
    ];
    let most = slow(&stage, jobs);
    let waiting = ground
        .instance("a", &stage.of("a"), ["waits", "pair"])
        .max_concurrent_jobs(1)
        .await
        .unwrap();
    for job in ["waits", "first", "second"] {
        stage.has_played(job, 4).await;
    }
    assert_eq!(most.load(Ordering::SeqCst), 1, "bodies at once");
    for job in ["first", "second"] {
        is_accounted_for(&waiting, job).await;
    }
    waiting.shutdown().await;
    let replacing = ground
        .instance("b", &stage.of("b"), ["replaces"])
        .max_concurrent_jobs(1)
        .await
        .unwrap();
    stage.has_played("replaces", 4).await;
    assert_eq!(most.load(Ordering::SeqCst), 1, "bodies at once");
    let counts = replacing.ledger("replaces").await.unwrap().counts;
    assert!(
        counts
            .get(&Outcome::Ran(Ran::Cancelled))
            .is_some_and(|count| *count >= 2),
        "{counts:?}"
    );
    testing::kill(&replacing);
}

#[tokio::test]
async fn a_run_by_hand_waits_for_a_place_and_goes_first() {
    let _among = among_others().await;
    let ground = Ground::Embedded(Embedded::for_test());
    let stage = Stage::new();
    let go_on = hangs(&stage, "steady");
    let instance = ground
        .instance("a", &stage, ["steady", "pair"])
        .max_concurrent_jobs(1)
        .await
        .unwrap();
    let diary = Diary::of(&instance);
    let at: jiff::Timestamp = "2026-03-02T03:00:00Z".parse().unwrap();
    let by_hand = |job: &'static str| {
        let instance = instance.clone();
        tokio::spawn(async move {
            match job {
                "steady" => instance.run_tick::<jobs::steady>(at).await,
                "first" => instance.run_tick::<jobs::first>(at).await,
                _ => instance.run_tick::<jobs::second>(at).await,
            }
        })
    };
    let hanging = by_hand("steady");
    stage.has_played("steady", 1).await;
    // It has its place: whether it is busy is the store's to say, at once.
    let busy = instance.run_tick::<jobs::steady>(at).await.unwrap_err();
    assert!(busy.contains("has not ended"), "{busy}");
    let first = by_hand("first");
    eventually(SOON, "it waits", || async { instance.load().waiting == 1 }).await;
    let second = by_hand("second");
    eventually(SOON, "both wait", || async { instance.load().waiting == 2 }).await;
    assert!(stage.played("first").is_empty() && stage.played("second").is_empty());
    go_on.notify_one();
    for waiting in [hanging, first, second] {
        assert_eq!(waiting.await.unwrap().unwrap().0, Outcome::Ran(Ran::Ok));
    }
    let order = |event: &Event| match event {
        Event::RunStarted { job, origin, .. } => Some((job.to_string(), *origin)),
        _ => None,
    };
    let expected = ["steady", "first", "second"].map(|job| (job.to_owned(), Origin::Manual));
    diary.shows("one after the other", order, expected).await;
    // One that waits when the instance ends is told so.
    let hanging = by_hand("steady");
    stage.has_played("steady", 2).await;
    let never = by_hand("first");
    eventually(SOON, "it waits", || async { instance.load().waiting == 1 }).await;
    let leaving = tokio::spawn({
        let instance = instance.clone();
        async move { instance.shutdown().await }
    });
    let refused = never.await.unwrap().unwrap_err();
    assert!(refused.contains("does not lead"), "{refused}");
    go_on.notify_one();
    assert_eq!(hanging.await.unwrap().unwrap().0, Outcome::Ran(Ran::Ok));
    leaving.await.unwrap();
}

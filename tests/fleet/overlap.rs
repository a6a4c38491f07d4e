//! A tick that falls due while its job still runs, on this instance or on another.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use leader_core::{Instance, JobLedger, MissedReason, Outcome, Ran, Timing};
use leader_tests::{Proxy, Request, eventually};

use crate::stage::{Ground, SOON, Stage, among_others, leader_first, leads, ms};

on_each_store!(
    a_tick_is_skipped_beside_a_run_of_another_instance,
    a_tick_waits_for_the_run_before_it,
    a_tick_waits_for_a_run_of_another_instance,
    a_body_of_a_patient_instance_keeps_its_slot_beside_impatient_ones,
    a_waiting_tick_is_taken_over,
    a_tick_takes_the_place_of_the_run_before_it,
    a_tick_takes_the_place_of_a_run_of_another_instance,
    a_body_that_does_not_listen_is_replaced_all_the_same,
    runs_may_be_beside_each_other,
    runs_of_two_instances_may_be_beside_each_other,
);

/// Bodies that take so long, and how many there were at once.
fn slow(stage: &Stage, job: &'static str, takes: Duration) -> Arc<AtomicUsize> {
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let seen = Arc::clone(&most);
    stage.part(job, move |_| {
        let (now, most) = (Arc::clone(&now), Arc::clone(&most));
        async move {
            struct Within(Arc<AtomicUsize>);
            impl Drop for Within {
                fn drop(&mut self) {
                    self.0.fetch_sub(1, Ordering::SeqCst);
                }
            }
            let at_once = now.fetch_add(1, Ordering::SeqCst) + 1;
            let _within = Within(now);
            most.fetch_max(at_once, Ordering::SeqCst);
            tokio::time::sleep(takes).await;
            Ok(())
        }
    });
    seen
}

async fn ledger(instance: &Instance, job: &str) -> JobLedger {
    instance.ledger(job).await.unwrap()
}

/// Every tick since the job is known has one outcome, or will have one.
fn all_accounted_for(instance: &Instance, job: &str, ledger: &JobLedger) {
    let (since, cursor) = (ledger.since.unwrap(), ledger.cursor.unwrap());
    let due = instance.count_ticks(job, since, cursor).unwrap();
    assert_eq!(ledger.decided() + ledger.pending(), due, "{ledger:?}");
}

fn count(ledger: &JobLedger, outcome: Outcome) -> u64 {
    ledger.counts.get(&outcome).copied().unwrap_or_default()
}

const COALESCED: Outcome = Outcome::Missed(MissedReason::Coalesced);

/// Signs of life come as often as the runner's own TTL asks for: whoever has a shorter one waits as long as the longest of the fleet.
async fn a_body_of_a_patient_instance_keeps_its_slot_beside_impatient_ones(ground: Ground) {
    let stage = Stage::new();
    let go_on = Arc::new(tokio::sync::Semaphore::new(0));
    let gate = Arc::clone(&go_on);
    stage.part("finishing", move |_| {
        let gate = Arc::clone(&gate);
        async move {
            gate.acquire().await?.forget();
            Ok(())
        }
    });
    let patient = ground.instance("patient", &stage.of("patient"), ["finishing"]);
    let patient = patient.timing(Timing::from_ttl(ms(12_000))).await.unwrap();
    stage.has_played("finishing", 1).await;
    let hasty = ground.instance("hasty", &stage.of("hasty"), ["finishing"]);
    let hasty = hasty.timing(Timing::from_ttl(ms(1_500))).await.unwrap();
    patient.step_down("finishing").await.unwrap();
    leads(&hasty, "finishing").await;
    let before = count(&ledger(&hasty, "finishing").await, Outcome::OverlapSkipped);
    eventually(
        SOON,
        "ticks are skipped for longer than between two signs of life",
        || async {
            let now = ledger(&hasty, "finishing").await;
            count(&now, Outcome::OverlapSkipped) >= before + 5 || stage.played("finishing").len() > 1
        },
    )
    .await;
    assert_eq!(
        stage.played("finishing").len(),
        1,
        "{:?}",
        ledger(&hasty, "finishing").await
    );
    go_on.add_permits(100);
    stage.has_played("finishing", 2).await;
    let now = ledger(&hasty, "finishing").await;
    assert_eq!(count(&now, Outcome::Ran(Ran::Lost)), 0, "{now:?}");
    patient.shutdown().await;
    hasty.shutdown().await;
}

async fn a_tick_waits_for_the_run_before_it(ground: Ground) {
    let stage = Stage::new();
    let most = slow(&stage, "waits", ms(2_300));
    let a = ground.instance("a", &stage, ["waits"]).await.unwrap();
    stage.has_played("waits", 4).await;
    let now = ledger(&a, "waits").await;
    all_accounted_for(&a, "waits", &now);
    assert_eq!(most.load(Ordering::SeqCst), 1, "never two at once");
    assert!(count(&now, COALESCED) >= 3, "{:?}", now.counts);
    assert_eq!(count(&now, Outcome::OverlapSkipped), 0);
    // One begins as the other ends, and not at the next look.
    let played = stage.played("waits");
    for pair in played.windows(2) {
        let pause = pair[1].at.duration_since(pair[0].at).saturating_sub(ms(2_300));
        assert!(pause < ms(500), "{pause:?} between {pair:?}");
        assert!(pair[1].scheduled_at > pair[0].scheduled_at && pair[1].fence > pair[0].fence);
    }
    a.shutdown().await;
}

/// Two instances with a job whose run goes on at the one that led: the old leader, the new one.
async fn handed_over(ground: &Ground, stages: [&Stage; 2], job: &'static str) -> (Instance, Instance) {
    let start = |id, stage: &Stage| ground.instance(id, stage, [job]);
    let a = start("a", stages[0]).await.unwrap();
    leads(&a, job).await;
    let b = start("b", stages[1]).await.unwrap();
    let (old, new) = leader_first(a, b, job).await;
    stages[0].has_played(job, 1).await;
    old.step_down(job).await.unwrap();
    leads(&new, job).await;
    (old, new)
}

async fn a_tick_is_skipped_beside_a_run_of_another_instance(ground: Ground) {
    let (first, second) = (Stage::new().of("a"), Stage::new().of("b"));
    slow(&first, "finishing", ms(4_000));
    let (old, new) = handed_over(&ground, [&first, &second], "finishing").await;
    second.has_played("finishing", 1).await;
    let run = first.played("finishing").pop().unwrap();
    let began = &second.played("finishing")[0];
    assert!(began.at >= run.at + ms(3_950), "never two at once");
    assert!(began.at < run.at + ms(5_500), "the next tick after its end");
    let now = ledger(&new, "finishing").await;
    let between = began.scheduled_at.duration_since(run.scheduled_at).as_secs() - 1;
    assert_eq!(
        count(&now, Outcome::OverlapSkipped),
        u64::try_from(between).unwrap(),
        "{now:?}"
    );
    let record = now.records.iter().find(|record| record.fence == run.fence).unwrap();
    assert_eq!(record.outcome, Outcome::Ran(Ran::Ok), "its result counts");
    all_accounted_for(&new, "finishing", &now);
    old.shutdown().await;
    new.shutdown().await;
}

async fn a_tick_waits_for_a_run_of_another_instance(ground: Ground) {
    let (first, second) = (Stage::new().of("a"), Stage::new().of("b"));
    slow(&first, "waits", ms(4_000));
    let (old, new) = handed_over(&ground, [&first, &second], "waits").await;
    eventually(SOON, "a tick waits", || async {
        ledger(&new, "waits").await.waiting.is_some()
    })
    .await;
    assert_eq!(second.played("waits").len(), 0, "it still runs elsewhere");
    second.has_played("waits", 1).await;
    let run = &first.played("waits")[0];
    assert!(second.played("waits")[0].at >= run.at + ms(3_950));
    let now = ledger(&new, "waits").await;
    let record = now.records.iter().find(|record| record.fence == run.fence).unwrap();
    assert_eq!(record.outcome, Outcome::Ran(Ran::Ok), "its result counts");
    second.has_played("waits", 3).await;
    all_accounted_for(&new, "waits", &ledger(&new, "waits").await);
    old.shutdown().await;
    new.shutdown().await;
}

async fn a_waiting_tick_is_taken_over(ground: Ground) {
    let (first, second) = (Stage::new().of("a"), Stage::new().of("b"));
    slow(&first, "waits", ms(3_500));
    let a = ground.instance("a", &first, ["waits"]).await.unwrap();
    first.has_played("waits", 1).await;
    eventually(SOON, "a tick waits", || async {
        ledger(&a, "waits").await.waiting.is_some()
    })
    .await;
    let b = ground.instance("b", &second, ["waits"]).await.unwrap();
    a.step_down("waits").await.unwrap();
    leads(&b, "waits").await;
    second.has_played("waits", 2).await;
    all_accounted_for(&b, "waits", &ledger(&b, "waits").await);
    assert_eq!(first.played("waits").len(), 1);
    a.shutdown().await;
    b.shutdown().await;
}

async fn a_tick_takes_the_place_of_the_run_before_it(ground: Ground) {
    let stage = Stage::new();
    let most = slow(&stage, "replaces", ms(30_000));
    let a = ground.instance("a", &stage, ["replaces"]).await.unwrap();
    stage.has_played("replaces", 4).await;
    let now = ledger(&a, "replaces").await;
    all_accounted_for(&a, "replaces", &now);
    assert!(count(&now, Outcome::Ran(Ran::Cancelled)) >= 3, "{:?}", now.counts);
    assert_eq!(most.load(Ordering::SeqCst), 1, "the old one ends first");
    let played = stage.played("replaces");
    for pair in played.windows(2) {
        let between = pair[1].at.duration_since(pair[0].at);
        assert!(between < ms(1_800), "each tick, and without a wait: {between:?}");
    }
    a.shutdown().await;
}

async fn a_tick_takes_the_place_of_a_run_of_another_instance(ground: Ground) {
    let (first, second) = (Stage::new().of("a"), Stage::new().of("b"));
    slow(&first, "replaces", ms(60_000));
    let (old, new) = handed_over(&ground, [&first, &second], "replaces").await;
    second.has_played("replaces", 1).await;
    let run = first.played("replaces").pop().unwrap();
    eventually(SOON, "the old run has an outcome", || async {
        let now = ledger(&new, "replaces").await;
        let mut records = now.records.iter();
        records.any(|record| record.fence == run.fence && record.outcome == Outcome::Ran(Ran::Cancelled))
    })
    .await;
    assert!(second.played("replaces")[0].fence > run.fence);
    all_accounted_for(&new, "replaces", &ledger(&new, "replaces").await);
    old.shutdown().await;
    new.shutdown().await;
}

/// It blocks its thread, and cannot be dropped: its place is taken after two renewal intervals, and its result counts no more.
async fn a_body_that_does_not_listen_is_replaced_all_the_same(ground: Ground) {
    let (first, second) = (Stage::new().of("a"), Stage::new().of("b"));
    first.part("replaces", |_| async {
        std::thread::sleep(ms(5_000));
        Ok(())
    });
    let (old, new) = handed_over(&ground, [&first, &second], "replaces").await;
    let run = first.played("replaces").pop().unwrap();
    second.has_played("replaces", 1).await;
    let began = second.played("replaces")[0].clone();
    assert!(began.at < run.at + ms(4_900), "{:?}", began.at.duration_since(run.at));
    let now = ledger(&new, "replaces").await;
    let record = now.records.iter().find(|record| record.fence == run.fence).unwrap();
    assert_eq!(record.outcome, Outcome::Ran(Ran::Cancelled));
    assert!(record.error.contains("replaced by a later tick"), "{record:?}");
    all_accounted_for(&new, "replaces", &now);
    old.shutdown().await;
    new.shutdown().await;
}

async fn runs_may_be_beside_each_other(ground: Ground) {
    let stage = Stage::new();
    let most = slow(&stage, "beside", ms(2_500));
    let a = ground.instance("a", &stage, ["beside"]).await.unwrap();
    stage.has_played("beside", 5).await;
    assert!(most.load(Ordering::SeqCst) >= 2);
    let now = ledger(&a, "beside").await;
    all_accounted_for(&a, "beside", &now);
    assert_eq!(count(&now, Outcome::OverlapSkipped), 0);
    for pair in stage.played("beside").windows(2) {
        let between = pair[1].at.duration_since(pair[0].at);
        assert!(between < ms(1_800), "each tick, and without a wait: {between:?}");
    }
    a.shutdown().await;
    let now = ledger(&ground.instance("b", &Stage::new(), []).await.unwrap(), "beside").await;
    assert_eq!(now.pending(), 0, "all have ended");
}

async fn runs_of_two_instances_may_be_beside_each_other(ground: Ground) {
    let (first, second) = (Stage::new().of("a"), Stage::new().of("b"));
    slow(&first, "beside", ms(4_000));
    let (old, new) = handed_over(&ground, [&first, &second], "beside").await;
    second.has_played("beside", 2).await;
    let run = first.played("beside").pop().unwrap();
    assert!(second.played("beside")[0].at < run.at + ms(4_000), "beside it");
    eventually(SOON, "the old run's result counts", || async {
        let now = ledger(&new, "beside").await;
        let mut records = now.records.iter();
        records.any(|record| record.fence == run.fence && record.outcome == Outcome::Ran(Ran::Ok))
    })
    .await;
    all_accounted_for(&new, "beside", &ledger(&new, "beside").await);
    old.shutdown().await;
    new.shutdown().await;
}

/// The store has noted that the tick waits, and its leader does not hear of it: it finds out as it asks again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tick_whose_leader_did_not_hear_that_it_waits_is_started() {
    let _among = among_others().await;
    let ground = Ground::redis().await;
    let Ground::Redis(server) = &ground else { unreachable!() };
    let proxy = Proxy::start(server.port()).await;
    let stage = Stage::new();
    slow(&stage, "waits", ms(1_700));
    let a = Ground::instance_at(&proxy.url(), "a", &stage, ["waits"]).await.unwrap();
    stage.has_played("waits", 1).await;
    proxy.reset_after_request(Request::Claim.marker(), 1);
    stage.has_played("waits", 2).await;
    assert_eq!(proxy.hits(), 1);
    let played = stage.played("waits");
    let between = played[1].scheduled_at.duration_since(played[0].scheduled_at);
    assert_eq!(
        between,
        jiff::SignedDuration::from_secs(1),
        "the tick that waited: {played:?}"
    );
    all_accounted_for(&a, "waits", &ledger(&a, "waits").await);
    a.shutdown().await;
}

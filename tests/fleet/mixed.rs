//! Deploys in which a job comes to need no leader, and go back: both versions live, and share what is kept of it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use jiff::SignedDuration;
use leader_core::{Instance, Job, JobLedger, Outcome, Ran, Timing};
use leader_tests::eventually;

use crate::stage::{Ground, SOON, Stage, jobs, leads, ms};

on_each_store!(
    each_tick_runs_once_whichever_version_is_first,
    the_runs_of_one_version_are_alive_to_the_other,
    a_run_of_a_killed_runner_is_lost_to_a_leader,
);

const TTL: Duration = Duration::from_millis(1_500);

async fn version<J: Job>(ground: &Ground, stage: &Stage, on: &'static str, other: &str) -> Instance {
    let instance = ground.instance(on, &stage.of(on), ["mixed"]).spread(false);
    let instance = instance.timing(Timing::from_ttl(TTL)).disable(other);
    instance.__as::<J>("mixed", &[]).await.unwrap()
}

/// The one whose ticks need a leader, which leads, and the one whose ticks need none.
async fn both(ground: &Ground, stage: &Stage) -> (Instance, Instance) {
    let led = version::<jobs::mixed_led>(ground, stage, "led", "mixed_any").await;
    leads(&led, "mixed").await;
    let any = version::<jobs::mixed_any>(ground, stage, "any", "mixed_led").await;
    (led, any)
}

async fn accounted_for(instance: &Instance) -> JobLedger {
    let ledger = instance.ledger("mixed").await.unwrap();
    let (since, cursor) = (ledger.since.unwrap(), ledger.cursor.unwrap());
    let due = instance.count_ticks("mixed", since, cursor).unwrap();
    assert_eq!(ledger.decided() + ledger.pending(), due, "{ledger:?}");
    ledger
}

fn ran(ledger: &JobLedger, ran: Ran) -> u64 {
    ledger.counts.get(&Outcome::Ran(ran)).copied().unwrap_or_default()
}

struct Within(Arc<AtomicUsize>);

impl Drop for Within {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Bodies that take so long; how many there were at once.
fn slow(stage: &Stage, takes: Duration) -> Arc<AtomicUsize> {
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let seen = Arc::clone(&most);
    stage.part("mixed", move |_| {
        let (now, most) = (Arc::clone(&now), Arc::clone(&most));
        async move {
            most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            let _within = Within(now);
            tokio::time::sleep(takes).await;
            Ok(())
        }
    });
    seen
}

async fn each_tick_runs_once_whichever_version_is_first(ground: Ground) {
    let stage = Stage::new();
    let (led, any) = both(&ground, &stage).await;
    stage.has_played("mixed", 3).await;
    for (from, to) in [(&led, &any), (&any, &led)] {
        from.step_down("mixed").await.unwrap();
        leads(to, "mixed").await;
        let played = stage.played("mixed").len();
        stage.has_played("mixed", played + 3).await;
    }
    let mut played = stage.played("mixed");
    played.sort_by_key(|played| played.scheduled_at);
    let second = SignedDuration::from_secs(1);
    assert!(
        played.is_sorted_by(|a, b| a.scheduled_at + second == b.scheduled_at && a.fence < b.fence),
        "{played:?}"
    );
    let ledger = accounted_for(&led).await;
    assert_eq!(
        ran(&ledger, Ran::Ok) + ledger.pending(),
        ledger.decided() + ledger.pending()
    );
    any.shutdown().await;
    led.shutdown().await;
}

/// Bodies go on for longer than a lease, and the leadership changes meanwhile.
async fn the_runs_of_one_version_are_alive_to_the_other(ground: Ground) {
    let stage = Stage::new();
    let most = slow(&stage, 2 * TTL + ms(300));
    let (led, any) = both(&ground, &stage).await;
    stage.has_played("mixed", 1).await;
    for (from, to) in [(&led, &any), (&any, &led)] {
        let played = stage.played("mixed").len();
        stage.has_played("mixed", played + 1).await;
        if from.is_leader("mixed") {
            from.step_down("mixed").await.unwrap();
        }
        leads(to, "mixed").await;
    }
    let played = stage.played("mixed").len();
    stage.has_played("mixed", played + 1).await;
    assert_eq!(most.load(Ordering::SeqCst), 1, "{:?}", stage.played("mixed"));
    let ledger = accounted_for(&led).await;
    assert_eq!(ran(&ledger, Ran::Lost), 0, "{ledger:?}");
    any.shutdown().await;
    led.shutdown().await;
}

async fn a_run_of_a_killed_runner_is_lost_to_a_leader(ground: Ground) {
    let stage = Stage::new();
    let (led, any) = both(&ground, &stage).await;
    let on_any = || {
        let played = stage.played("mixed").into_iter();
        played
            .filter(|played| played.on == "any")
            .map(|played| played.fence)
            .collect::<BTreeSet<_>>()
    };
    let before = on_any().len();
    // It wins every race from here on: the leader's own runs end before the next tick.
    stage.part("mixed", |tick| async move {
        if tick.term() == 0 {
            std::future::pending::<()>().await;
        }
        Ok(())
    });
    eventually(SOON, "a run that needs no leader", || async { on_any().len() > before }).await;
    leader_core::testing::kill(&any);
    let played = stage.played("mixed").len();
    stage.has_played("mixed", played + 2).await;
    let ledger = accounted_for(&led).await;
    assert_eq!(ran(&ledger, Ran::Lost), 1, "{ledger:?}");
    led.shutdown().await;
}

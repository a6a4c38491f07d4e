//! Reports on other systems about registering again, stalls, and ends under load.

use std::time::Duration;

use jiff::SignedDuration;
use leader_core::{BootstrapError, Fault, MissedReason, Outcome, Ran, Timing, testing};
use leader_tests::eventually;

use crate::stage::{Ground, SOON, Stage, Stopwatch, among_others, jobs, leads, ms};

on_each_store!(
    case_46_a_body_of_an_instance_that_shuts_down_keeps_its_slot_until_it_ends,
    case_49_starting_again_on_the_same_store_fires_each_tick_once,
    case_52_a_stall_of_ten_periods_makes_no_burst,
    case_53_a_shutdown_under_load_returns_within_its_bound,
);

/// An instance that shuts down gives its group back at once and goes on telling that its body lives: the successor runs nothing beside it, for
/// longer than any silence that would make it lost, and the result counts (db-scheduler#365).
async fn case_46_a_body_of_an_instance_that_shuts_down_keeps_its_slot_until_it_ends(ground: Ground) {
    let timing = Timing::from_ttl(ms(2_000));
    let (stage, second) = (Stage::new(), Stage::new());
    let takes = 3 * timing.ttl();
    stage.part("finishing", move |_| async move {
        tokio::time::sleep(takes).await;
        Ok(())
    });
    let start = |id, stage: &Stage| ground.instance(id, stage, ["finishing"]).timing(timing);
    let old = start("a", &stage).drain(2 * takes).await.unwrap();
    stage.has_played("finishing", 1).await;
    let new = start("b", &second).await.unwrap();
    let run = stage.played("finishing").remove(0);
    let watch = Stopwatch::start();
    let stopping = tokio::spawn(async move { old.shutdown().await });
    leads(&new, "finishing").await;
    watch.within(ms(1_500), "the hand-over, which the body does not hold up");
    second.has_played("finishing", 1).await;
    let next = second.played("finishing").remove(0);
    assert!(next.at >= run.at + takes, "never two at once");
    stopping.await.unwrap();
    let ledger = new.ledger("finishing").await.unwrap();
    let record = ledger.records.iter().find(|record| record.fence == run.fence).unwrap();
    assert_eq!(record.outcome, Outcome::Ran(Ran::Ok), "{ledger:?}");
    assert!(!ledger.counts.contains_key(&Outcome::Ran(Ran::Lost)), "{ledger:?}");
    new.shutdown().await;
    assert_eq!(stage.played("finishing").len(), 1);
}

/// A job that is registered again replaces itself, or is refused: it never ticks twice (spacebot PR 81, BullMQ#2876, BullMQ#2889).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_49_a_job_that_is_given_again_ticks_once_by_its_last_schedule() {
    let _among = among_others().await;
    let ground = Ground::embedded();
    let stage = Stage::new();
    let mut bootstrap = ground.instance("a", &stage, ["steady"]);
    for every in ["1s", "3s", "700ms", "2s", "500ms"] {
        bootstrap = bootstrap.job("steady", |job| job.every(every));
    }
    let instance = bootstrap.await.unwrap();
    let of_name = |job: &&leader_core::JobStatus| job.name.as_str() == "steady";
    let known = instance.jobs();
    let known: Vec<_> = known.iter().filter(of_name).map(|job| job.schedule.as_str()).collect();
    assert_eq!(known, ["every 500ms"]);
    stage.has_played("steady", 5).await;
    for pair in stage.played("steady").windows(2) {
        let between = pair[1].scheduled_at.duration_since(pair[0].scheduled_at);
        assert_eq!(between, SignedDuration::from_millis(500), "{pair:?}");
    }
    instance.shutdown().await;
}

/// Two records of one name are an error of the start, told once for each.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_49_a_job_that_is_recorded_again_is_refused() {
    let _among = among_others().await;
    let ground = Ground::embedded();
    let mut bootstrap = ground.instance("a", &Stage::new(), ["steady"]);
    for _ in 0..5 {
        bootstrap = bootstrap.__copies::<jobs::steady>(1);
    }
    let Err(BootstrapError::Invalid(faults)) = bootstrap.await else {
        panic!("it was taken");
    };
    let doubled: Vec<_> = faults
        .iter()
        .filter_map(|fault| match fault {
            Fault::DoubledJob { job, .. } => Some(*job),
            _ => None,
        })
        .collect();
    assert_eq!(
        (doubled.as_slice(), faults.len()),
        (&["steady-0"; 4][..], 4),
        "{faults:?}"
    );
    assert!(
        faults[0].to_string().contains("two jobs are named `steady-0`"),
        "{}",
        faults[0]
    );
}

/// The same program starts its instance five times over, and drops the handles: they share the ticks.
async fn case_49_starting_again_on_the_same_store_fires_each_tick_once(ground: Ground) {
    let stage = Stage::new();
    for _ in 0..4 {
        drop(ground.instance("again", &stage, ["steady"]).await.unwrap());
    }
    let last = ground.instance("again", &stage, ["steady"]).await.unwrap();
    stage.has_played("steady", 5).await;
    let played = stage.played("steady");
    for pair in played.windows(2) {
        let between = pair[1].scheduled_at.duration_since(pair[0].scheduled_at);
        assert_eq!(between, SignedDuration::from_secs(1), "{played:?}");
    }
    let ledger = last.ledger("steady").await.unwrap();
    let due = last.count_ticks("steady", ledger.since.unwrap(), ledger.cursor.unwrap());
    assert_eq!(ledger.decided() + ledger.pending(), due.unwrap(), "{ledger:?}");
    last.shutdown().await;
}

/// The framework's thread stands still for ten periods, while the lease lasts: what is within the grace and what the policy wants is run, and
/// nothing else (spacebot PR 81).
async fn case_52_a_stall_of_ten_periods_makes_no_burst(ground: Ground) {
    let stage = Stage::new();
    let instance = ground
        .instance("a", &stage, ["steady"])
        .timing(Timing::from_ttl(ms(20_000)));
    let instance = instance.job("steady", |job| job.every("200ms")).await.unwrap();
    leads(&instance, "steady").await;
    stage.has_played("steady", 2).await;
    testing::freeze(&instance, ms(2_000));
    let before = stage.played("steady").len();
    eventually(SOON, "the stall is over, and some ticks later", || async {
        stage.played("steady").len() >= before + 8
    })
    .await;
    let played = stage.played("steady");
    let gap = played.windows(2).max_by_key(|pair| pair[1].at - pair[0].at).unwrap();
    assert!(gap[1].at - gap[0].at >= ms(1_500), "it stood still: {gap:?}");
    let woken = gap[1].at;
    let burst = played
        .iter()
        .filter(|run| run.at >= woken && run.at < woken + ms(150))
        .count();
    // The one that stands for all that were missed, those that are late by less than a period, and the next one.
    assert!(burst <= 3, "{burst} bodies at once after the stall");
    let ledger = instance.ledger("steady").await.unwrap();
    let coalesced = ledger.counts.get(&Outcome::Missed(MissedReason::Coalesced)).copied();
    assert!(
        coalesced.is_some_and(|count| (6..=10).contains(&count)),
        "{:?}",
        ledger.counts
    );
    instance.shutdown().await;
}

/// A period of no length is a typed error of the start, with the way out (rustango#1256).
#[tokio::test]
async fn case_52_a_period_of_nothing_is_refused() {
    let _among = among_others().await;
    for period in ["0s", "0ms", "99ms"] {
        let bootstrap = Ground::embedded().instance("a", &Stage::new(), ["steady"]);
        let refused = bootstrap.job("steady", |job| job.every(period)).await;
        let Err(BootstrapError::Invalid(faults)) = refused else {
            panic!("{period} was taken");
        };
        assert!(
            matches!(faults.as_slice(), [Fault::Schedule { job, .. }] if job == "steady"),
            "{faults:?}"
        );
        println!("{}", faults[0]);
    }
}

/// 200 jobs a second, each with a body that listens to nothing: the end is asked for by many at once, beside step-downs, and takes no longer than
/// the drain and what telling the store takes (gocron#355, gocron#566, gocron#818).
async fn case_53_a_shutdown_under_load_returns_within_its_bound(ground: Ground) {
    let stage = Stage::new();
    stage.part("steady", |_| std::future::pending());
    let drain = ms(500);
    let bootstrap = ground.instance("a", &stage, ["steady"]).drain(drain);
    let instance = bootstrap.__copies::<jobs::steady>(199).await.unwrap();
    leads(&instance, "steady").await;
    stage.has_played("steady-0", 1).await;
    let watch = Stopwatch::start();
    let asked: Vec<_> = (0..20)
        .map(|n| {
            let instance = instance.clone();
            tokio::spawn(async move {
                if n % 4 == 0 {
                    let _ = instance.step_down("steady").await;
                }
                instance.shutdown().await;
            })
        })
        .collect();
    for asking in asked {
        asking.await.unwrap();
    }
    watch.within(drain + Duration::from_secs(5), "the shutdown under load");
    instance.shutdown().await;
    assert!(!instance.is_leader("steady"));
    let begun = stage.played("steady").len();
    tokio::time::sleep(ms(1_200)).await;
    assert_eq!(stage.played("steady").len(), begun, "nothing begins after the end");
}

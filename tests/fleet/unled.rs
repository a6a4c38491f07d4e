//! Jobs whose ticks need no leader: whoever is first runs them.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use leader_core::{
    Event, Instance, JobLedger, Moment, Origin, Outcome, Ran, Skipped, Target, Timing, leader_only, testing,
};
use leader_tests::eventually;

use crate::stage::{Diary, Ground, SOON, Stage, Stopwatch, jobs, leader_first, leads, ms, now};

on_each_store!(
    each_tick_is_run_once_by_whoever_is_first,
    nothing_waits_for_an_election,
    a_frozen_runner_is_cut_off_and_its_run_taken_again,
    the_run_of_a_killed_runner_is_taken_again,
    a_failed_run_is_tried_again_where_it_failed,
    a_tick_waits_for_a_run_elsewhere,
    a_run_elsewhere_makes_way,
    a_pause_holds_for_everybody,
    who_ran_the_job_in_a_pause_races_on_after_it,
    what_is_asked_for_is_run_once,
    who_has_no_place_leaves_ticks_to_others,
    a_shutdown_waits_for_a_body_and_drops_it_at_its_bound,
    a_step_down_ends_bodies_of_the_group,
    a_body_leads_nothing,
    an_engine_that_panics_takes_no_old_claim_for_a_new_one,
);

const TTL: Duration = Duration::from_millis(1_500);
/// Longer than the period of the rare job.
const TICK: Duration = Duration::from_secs(25);

async fn fleet<const N: usize>(ground: &Ground, stage: &Stage, ids: [&'static str; N], group: &str) -> [Instance; N] {
    let mut all = Vec::new();
    for id in ids {
        let instance = ground
            .instance(id, &stage.of(id), [group])
            .timing(Timing::from_ttl(TTL));
        all.push(instance.await.unwrap());
    }
    all.try_into().unwrap()
}

/// Everything that fell due up to the cursor has one outcome, or is pending.
async fn accounted_for(instance: &Instance, job: &str) -> JobLedger {
    let ledger = instance.ledger(job).await.unwrap();
    let (since, cursor) = (ledger.since.unwrap(), ledger.cursor.unwrap());
    let due = instance.count_ticks(job, since, cursor).unwrap();
    assert_eq!(ledger.decided() + ledger.pending(), due, "{job}: {ledger:?}");
    ledger
}

fn count(ledger: &JobLedger, outcome: Outcome) -> u64 {
    ledger.counts.get(&outcome).copied().unwrap_or_default()
}

async fn stop(instances: impl IntoIterator<Item = Instance>) {
    for instance in instances {
        instance.shutdown().await;
    }
}

fn runs(event: &Event) -> Option<(u64, u64)> {
    match event {
        Event::RunStarted { fence, term, .. } => Some((*fence, *term)),
        _ => None,
    }
}

async fn each_tick_is_run_once_by_whoever_is_first(ground: Ground) {
    let stage = Stage::new();
    let terms = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&terms);
    stage.part("anywhere", move |tick| {
        seen.lock().unwrap().push(tick.term());
        async { Ok(()) }
    });
    let all = fleet(&ground, &stage, ["a", "b", "c"], "any").await;
    let diaries = all.each_ref().map(Diary::of);
    stage.has_played("anywhere", 4).await;
    let played = stage.played("anywhere");
    let ticks: BTreeSet<_> = played.iter().map(|run| run.scheduled_at).collect();
    assert_eq!(ticks.len(), played.len(), "{played:?}");
    assert!(
        played.is_sorted_by_key(|run| (run.scheduled_at, run.fence)),
        "{played:?}"
    );
    assert!(terms.lock().unwrap().iter().all(|term| *term == 0));
    let told: Vec<_> = diaries.iter().flat_map(|diary| diary.pick(runs)).collect();
    assert!(told.iter().all(|(_, term)| *term == 0), "{told:?}");
    let ledger = accounted_for(&all[0], "anywhere").await;
    assert!(
        ledger.counts.keys().all(|outcome| *outcome == Outcome::Ran(Ran::Ok)),
        "{ledger:?}"
    );
    stop(all).await;
}

/// The leader is killed, and the ticks of the very next seconds are run.
async fn nothing_waits_for_an_election(ground: Ground) {
    let stage = Stage::new();
    let [a, b] = fleet(&ground, &stage, ["a", "b"], "any").await;
    let (leader, other) = leader_first(a, b, "any").await;
    stage.has_played("anywhere", 2).await;
    let before = stage.played("anywhere").len();
    testing::kill(&leader);
    stage.has_played("anywhere", before + 3).await;
    let ledger = accounted_for(&other, "anywhere").await;
    assert!(ledger.counts.keys().all(|outcome| !outcome.is_missed()), "{ledger:?}");
    other.shutdown().await;
}

async fn a_frozen_runner_is_cut_off_and_its_run_taken_again(ground: Ground) {
    let stage = Stage::new();
    let polls = Arc::new(Mutex::new(Vec::<(u64, Moment)>::new()));
    let kept = Arc::clone(&polls);
    stage.part("anywhere_rare", move |tick| {
        let polls = Arc::clone(&kept);
        async move {
            while tick.attempt() == 1 {
                polls.lock().unwrap().push((tick.fence(), now()));
                tokio::time::sleep(ms(1)).await;
            }
            Ok(())
        }
    });
    let all = fleet(&ground, &stage, ["a", "b", "c"], "any-rare").await;
    eventually(TICK, "a run", || async { !stage.played("anywhere_rare").is_empty() }).await;
    let first = stage.played("anywhere_rare").remove(0);
    let frozen = all.iter().find(|instance| instance.id().as_str() == first.on).unwrap();
    let diary = Diary::of(frozen);
    let frozen_at = now();
    testing::freeze(frozen, 4 * TTL);
    eventually(SOON, "the run is taken again", || async {
        stage.played("anywhere_rare").len() >= 2
    })
    .await;
    let taken = stage.played("anywhere_rare").remove(1);
    assert_eq!(taken.scheduled_at, first.scheduled_at);
    assert!(taken.fence > first.fence && taken.on != first.on, "{first:?} {taken:?}");
    let last = polls.lock().unwrap().last().unwrap().1;
    // A sign of life can have been sent at the latest as the thread fell still.
    let trusted_until = frozen_at + Timing::from_ttl(TTL).trust() + ms(100);
    assert!(
        last <= trusted_until,
        "polled {:?} after its trust",
        last.since(trusted_until)
    );
    let fenced = |event: &Event| match event {
        Event::Decided { fence, outcome, .. } => Some((*fence, *outcome)),
        _ => None,
    };
    eventually(SOON, "the frozen one's end is refused", || async {
        diary.pick(fenced).contains(&(first.fence, Outcome::Fenced))
    })
    .await;
    let ledger = accounted_for(&all[0], "anywhere_rare").await;
    let record = ledger
        .records
        .iter()
        .find(|record| record.first == first.scheduled_at)
        .unwrap();
    assert_eq!(
        (record.fence, record.tries, record.outcome),
        (taken.fence, 2, Outcome::Ran(Ran::Ok))
    );
    stop(all).await;
}

async fn the_run_of_a_killed_runner_is_taken_again(ground: Ground) {
    let stage = Stage::new();
    stage.part("anywhere_rare", |tick| async move {
        if tick.attempt() == 1 {
            std::future::pending::<()>().await;
        }
        Ok(())
    });
    let all = fleet(&ground, &stage, ["a", "b", "c"], "any-rare").await;
    eventually(TICK, "a run", || async { !stage.played("anywhere_rare").is_empty() }).await;
    let first = stage.played("anywhere_rare").remove(0);
    let (killed, left): (Vec<_>, Vec<_>) = all.into_iter().partition(|one| one.id().as_str() == first.on);
    testing::kill(&killed[0]);
    eventually(SOON, "the run is taken again", || async {
        stage.played("anywhere_rare").len() >= 2
    })
    .await;
    let taken = stage.played("anywhere_rare").remove(1);
    assert_eq!(taken.scheduled_at, first.scheduled_at);
    assert!(taken.fence > first.fence);
    eventually(SOON, "it is recorded", || async {
        let ledger = left[0].ledger("anywhere_rare").await.unwrap();
        count(&ledger, Outcome::Ran(Ran::Ok)) >= 1
    })
    .await;
    let ledger = accounted_for(&left[0], "anywhere_rare").await;
    assert_eq!(count(&ledger, Outcome::Ran(Ran::Lost)), 0, "{ledger:?}");
    stop(left).await;
}

async fn a_failed_run_is_tried_again_where_it_failed(ground: Ground) {
    let stage = Stage::new();
    stage.part("anywhere_rare", |tick| async move {
        anyhow::ensure!(tick.attempt() > 2, "not yet");
        Ok(())
    });
    let all = fleet(&ground, &stage, ["a", "b"], "any-rare").await;
    eventually(TICK, "the tries", || async { stage.played("anywhere_rare").len() >= 3 }).await;
    let tries = stage.played("anywhere_rare");
    assert!(
        tries
            .iter()
            .all(|one| one.on == tries[0].on && one.scheduled_at == tries[0].scheduled_at)
    );
    assert!(tries.is_sorted_by_key(|one| one.fence));
    eventually(SOON, "it is recorded", || async {
        let ledger = all[0].ledger("anywhere_rare").await.unwrap();
        count(&ledger, Outcome::Ran(Ran::Ok)) == 1
    })
    .await;
    let record = all[0].ledger("anywhere_rare").await.unwrap().records.remove(0);
    assert_eq!(record.tries, 3);
    stop(all).await;
}

async fn a_tick_waits_for_a_run_elsewhere(ground: Ground) {
    let stage = Stage::new();
    let (at_once, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let seen = Arc::clone(&most);
    stage.part("anywhere_waits", move |_| {
        let (at_once, most) = (Arc::clone(&at_once), Arc::clone(&most));
        async move {
            most.fetch_max(at_once.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            tokio::time::sleep(ms(1_300)).await;
            at_once.fetch_sub(1, Ordering::SeqCst);
            Ok(())
        }
    });
    let all = fleet(&ground, &stage, ["a", "b", "c"], "any-waits").await;
    stage.has_played("anywhere_waits", 4).await;
    assert_eq!(seen.load(Ordering::SeqCst), 1);
    let ledger = accounted_for(&all[0], "anywhere_waits").await;
    assert_eq!(count(&ledger, Outcome::OverlapSkipped), 0, "{ledger:?}");
    let played = stage.played("anywhere_waits");
    // What waits begins when the run before it ends.
    for pair in played.windows(2) {
        let between = pair[1].at.duration_since(pair[0].at);
        assert!(between < ms(2_300), "{between:?}: {played:?}");
    }
    stop(all).await;
}

async fn a_run_elsewhere_makes_way(ground: Ground) {
    let stage = Stage::new();
    stage.part("anywhere_replaces", |_| std::future::pending());
    let all = fleet(&ground, &stage, ["a", "b", "c"], "any-replaces").await;
    stage.has_played("anywhere_replaces", 4).await;
    let ledger = accounted_for(&all[0], "anywhere_replaces").await;
    assert!(count(&ledger, Outcome::Ran(Ran::Cancelled)) >= 3, "{ledger:?}");
    stop(all).await;
}

async fn a_pause_holds_for_everybody(ground: Ground) {
    let stage = Stage::new();
    let all = fleet(&ground, &stage, ["a", "b", "c"], "any").await;
    stage.has_played("anywhere", 1).await;
    let pause = all[1].control().pause(Target::of::<jobs::anywhere>());
    let since = pause.await.unwrap()[0].at;
    eventually(SOON, "ticks are paused", || async {
        count(&all[0].ledger("anywhere").await.unwrap(), Outcome::Paused) >= 2
    })
    .await;
    let later = |stage: &Stage| {
        stage
            .played("anywhere")
            .iter()
            .filter(|run| run.scheduled_at > since)
            .count()
    };
    assert_eq!(later(&stage), 0);
    accounted_for(&all[0], "anywhere").await;
    all[2].control().resume(Target::job("anywhere")).await.unwrap();
    eventually(SOON, "they run again", || async { later(&stage) >= 2 }).await;
    // What is owed is decided at the resume, once.
    let since = all[0].control().pause(Target::group("any")).owed().await.unwrap()[0].at;
    eventually(SOON, "nothing is decided any more", || async {
        let cursor = all[0].ledger("anywhere").await.unwrap().cursor.unwrap();
        jiff::Timestamp::now().duration_since(cursor) >= jiff::SignedDuration::from_secs(3)
    })
    .await;
    let of_the_pause = stage
        .played("anywhere")
        .into_iter()
        .filter(|run| run.scheduled_at > since);
    assert_eq!(of_the_pause.count(), 0);
    let ran = stage.played("anywhere").len();
    all[1].control().resume(Target::group("any")).await.unwrap();
    stage.has_played("anywhere", ran + 2).await;
    let ledger = accounted_for(&all[0], "anywhere").await;
    let ticks: BTreeSet<_> = stage.played("anywhere").iter().map(|run| run.scheduled_at).collect();
    assert_eq!(ticks.len(), stage.played("anywhere").len(), "{ledger:?}");
    stop(all).await;
}

/// Only a leader reads what people have asked: whoever runs the job as its ticks are held must not wait to hear of the end.
async fn who_ran_the_job_in_a_pause_races_on_after_it(ground: Ground) {
    let stage = Stage::new();
    let full = ground
        .instance("full", &stage.of("full"), ["any", "steady"])
        .timing(Timing::from_ttl(TTL))
        .max_concurrent_jobs(1)
        .spread(false);
    stage.part("steady", |_| std::future::pending());
    let full = full.await.unwrap();
    leads(&full, "any").await;
    stage.has_played("steady", 1).await;
    let before = stage.played("anywhere").len();
    let go_on = Arc::new(tokio::sync::Semaphore::new(0));
    let gate = Arc::clone(&go_on);
    stage.part("anywhere", move |_| {
        let gate = Arc::clone(&gate);
        async move {
            gate.acquire().await?.forget();
            Ok(())
        }
    });
    let runner = ground.instance("runner", &stage.of("runner"), ["any"]);
    let runner = runner.timing(Timing::from_ttl(TTL)).spread(false).await.unwrap();
    stage.has_played("anywhere", before + 1).await;
    full.control()
        .pause(Target::of::<jobs::anywhere>())
        .owed()
        .await
        .unwrap();
    // The length of the pause: two ticks are held in it while the body runs.
    tokio::time::sleep(ms(2_200)).await;
    go_on.add_permits(100);
    full.control().resume(Target::job("anywhere")).await.unwrap();
    stage.has_played("anywhere", before + 3).await;
    stop([runner, full]).await;
}

async fn what_is_asked_for_is_run_once(ground: Ground) {
    let stage = Stage::new();
    let all = fleet(&ground, &stage, ["a", "b", "c"], "any-rare").await;
    let origins = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&origins);
    stage.part("anywhere_rare", move |tick| {
        seen.lock().unwrap().push((tick.origin(), tick.term()));
        async { Ok(()) }
    });
    for instance in &all {
        instance.control().trigger::<jobs::anywhere_rare>().await.unwrap();
    }
    let manual = || {
        origins
            .lock()
            .unwrap()
            .iter()
            .filter(|(origin, _)| *origin == Origin::Manual)
            .count()
    };
    eventually(SOON, "three runs that were asked for", || async { manual() >= 3 }).await;
    tokio::time::sleep(TTL).await;
    assert_eq!(manual(), 3);
    assert!(origins.lock().unwrap().iter().all(|(_, term)| *term == 0));
    accounted_for(&all[0], "anywhere_rare").await;
    stop(all).await;
}

async fn who_has_no_place_leaves_ticks_to_others(ground: Ground) {
    let stage = Stage::new();
    let full = ground
        .instance("full", &stage.of("full"), ["any", "steady"])
        .timing(Timing::from_ttl(TTL))
        .max_concurrent_jobs(1)
        .await
        .unwrap();
    stage.part("steady", |_| std::future::pending());
    leads(&full, "steady").await;
    stage.has_played("steady", 1).await;
    let before = stage.played("anywhere").len();
    let free = ground
        .instance("free", &stage.of("free"), ["any"])
        .timing(Timing::from_ttl(TTL))
        .await
        .unwrap();
    stage.has_played("anywhere", before + 3).await;
    let played = stage.played("anywhere").split_off(before);
    assert!(played.iter().all(|run| run.on == "free"), "{played:?}");
    assert_eq!(full.load().waiting, 0, "it waits for no place");
    stop([free, full]).await;
}

async fn a_shutdown_waits_for_a_body_and_drops_it_at_its_bound(ground: Ground) {
    let stage = Stage::new();
    let told = Arc::new(Mutex::new(None));
    let seen = Arc::clone(&told);
    stage.part("anywhere", move |tick| {
        let told = Arc::clone(&seen);
        async move {
            tick.cancelled().await;
            *told.lock().unwrap() = Some(now());
            std::future::pending().await
        }
    });
    let instance = ground
        .instance("a", &stage, ["any"])
        .timing(Timing::from_ttl(TTL))
        .drain(ms(600));
    let instance = instance.await.unwrap();
    stage.has_played("anywhere", 1).await;
    let (watch, asked) = (Stopwatch::start(), now());
    instance.shutdown().await;
    let took = watch.within(ms(3_000), "the shutdown");
    assert!(took >= ms(500), "it waited for {took:?}");
    let told = told.lock().unwrap().unwrap();
    assert!(told.since(asked) < ms(400), "told after {:?}", told.since(asked));
    let reader = ground.instance("b", &Stage::new(), ["any"]).await.unwrap();
    let ledger = reader.ledger("anywhere").await.unwrap();
    assert_eq!(count(&ledger, Outcome::Ran(Ran::Cancelled)), 1, "{ledger:?}");
    reader.shutdown().await;
}

async fn a_step_down_ends_bodies_of_the_group(ground: Ground) {
    let stage = Stage::new();
    stage.part("anywhere", |tick| async move {
        tick.cancelled().await;
        Ok(())
    });
    let [alone] = fleet(&ground, &stage, ["a"], "any").await;
    leads(&alone, "any").await;
    stage.has_played("anywhere", 1).await;
    alone.step_down("any").await.unwrap();
    let ledger = accounted_for(&alone, "anywhere").await;
    assert_eq!(count(&ledger, Outcome::Ran(Ran::Ok)), 1, "{ledger:?}");
    // It races on, whoever leads.
    let before = stage.played("anywhere").len();
    stage.has_played("anywhere", before + 1).await;
    alone.shutdown().await;
}

#[leader_only(group = "any")]
async fn gated() -> u8 {
    7
}

/// A body may run where its group is not led, and what it calls is asked of that instance.
async fn a_body_leads_nothing(ground: Ground) {
    let stage = Stage::new();
    let calls = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&calls);
    stage.part("anywhere", move |tick| {
        let calls = Arc::clone(&seen);
        async move {
            let lead = leader_core::current().unwrap();
            assert_eq!((lead.term(), lead.fence()), (0, tick.fence()));
            assert!(lead.is_leading());
            let call = gated().await;
            calls.lock().unwrap().push(call);
            Ok(())
        }
    });
    let leader = ground.instance("leader", &stage, ["any"]).timing(Timing::from_ttl(TTL));
    // It may run nothing itself.
    let leader = leader.disable("anywhere").await.unwrap();
    leads(&leader, "any").await;
    let [runner] = fleet(&ground, &stage, ["runner"], "any").await;
    stage.has_played("anywhere", 2).await;
    eventually(SOON, "the call", || async { !calls.lock().unwrap().is_empty() }).await;
    let calls = calls.lock().unwrap().clone();
    let refused = |call: &Result<u8, Skipped>| matches!(call, Err(Skipped::NotLeader { .. }));
    assert!(calls.iter().all(refused), "{calls:?}");
    stop([runner, leader]).await;
}

/// Claims are numbered, and without terms only the number tells a new one from an old one of the same process.
async fn an_engine_that_panics_takes_no_old_claim_for_a_new_one(ground: Ground) {
    let stage = Stage::new();
    stage.part("anywhere", |_| std::future::pending());
    let [alone] = fleet(&ground, &stage, ["a"], "any").await;
    stage.has_played("anywhere", 1).await;
    testing::panic(&alone);
    stage.has_played("anywhere", 2).await;
    let played = stage.played("anywhere");
    assert!(
        played[0].scheduled_at < played[1].scheduled_at && played[0].fence < played[1].fence,
        "{played:?}"
    );
    // It had begun, and nobody knows how far it came.
    let first = played[0].scheduled_at;
    let outcome = async || {
        let ledger = alone.ledger("anywhere").await.unwrap();
        let mut records = ledger.records.into_iter();
        records.find(|record| record.last == first).map(|record| record.outcome)
    };
    eventually(SOON, "its outcome", || async { outcome().await.is_some() }).await;
    assert_eq!(outcome().await, Some(Outcome::Ran(Ran::Lost)));
    accounted_for(&alone, "anywhere").await;
    alone.shutdown().await;
}

//! Steering a fleet from any of its instances: pauses, runs outside the schedule, and who did it.

use std::future::IntoFuture;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use leader_core::{ControlError, Event, Gap, Instance, JobLedger, Origin, Outcome, Ran, Target, Timing};
use leader_tests::eventually;

use crate::stage::{Diary, Ground, SOON, Stage, among_others, jobs, leader_first, leads, ms};

on_each_store!(
    a_pause_from_a_standby_is_obeyed_at_once,
    what_is_owed_is_decided_at_the_resume,
    a_pause_ends_by_itself,
    a_pause_that_is_over_before_anybody_leads_again_has_skipped_its_ticks,
    a_trigger_is_run_while_paused,
    a_trigger_outlives_the_leader_that_should_have_met_it,
    a_past_span_is_run_in_order_across_leaders,
    two_that_pause_at_once_are_both_kept,
    a_withdrawn_request_is_run_no_further,
    what_cannot_be_done_says_why,
);

fn timing() -> Timing {
    Timing::from_ttl(ms(2_000))
}

async fn pair(ground: &Ground, stage: &Stage, group: &'static str) -> (Instance, Instance) {
    let start = |id| ground.instance(id, stage, [group]).timing(timing());
    let (a, b) = (start("a").await.unwrap(), start("b").await.unwrap());
    leader_first(a, b, group).await
}

fn count(ledger: &JobLedger, outcome: Outcome) -> u64 {
    ledger.counts.get(&outcome).copied().unwrap_or_default()
}

/// Everything that fell due up to the cursor has one outcome, or is pending.
async fn accounted_for(instance: &Instance, job: &str) -> JobLedger {
    let ledger = instance.ledger(job).await.unwrap();
    let (since, cursor) = (ledger.since.unwrap(), ledger.cursor.unwrap());
    let due = instance.count_ticks(job, since, cursor).unwrap();
    assert_eq!(ledger.decided() + ledger.pending(), due, "{job}: {ledger:?}");
    ledger
}

fn acts(event: &Event) -> Option<(&'static str, String, String)> {
    match event {
        Event::Paused { pause, .. } => Some(("paused", pause.by.clone(), pause.reason.clone())),
        Event::Resumed { by, reason, .. } => Some(("resumed", by.clone(), reason.clone())),
        Event::Requested { request, .. } => Some(("requested", request.by.clone(), request.reason.clone())),
        _ => None,
    }
}

async fn a_pause_from_a_standby_is_obeyed_at_once(ground: Ground) {
    let stage = Stage::new();
    let (leader, standby) = pair(&ground, &stage, "steady").await;
    let diary = Diary::of(&leader);
    stage.has_played("steady", 1).await;
    let pause = standby.control().pause(Target::of::<jobs::steady>());
    let done = pause.because("a\nmigration").by("ann@example.org").await.unwrap();
    assert_eq!(
        (done.len(), done[0].group.as_str(), &done[0].before),
        (1, "steady", &None)
    );
    let since = done[0].at;
    eventually(SOON, "ticks are paused", || async {
        count(&standby.ledger("steady").await.unwrap(), Outcome::Paused) >= 3
    })
    .await;
    let late: Vec<_> = stage
        .played("steady")
        .into_iter()
        .filter(|run| run.scheduled_at > since)
        .collect();
    assert!(late.is_empty(), "since {since}: {late:?}");
    accounted_for(&leader, "steady").await;
    let kept = standby.control().state().await.unwrap();
    let pauses = &kept["steady"].pauses;
    assert_eq!(
        (pauses.len(), pauses[0].by.as_str(), pauses[0].gap),
        (1, "ann@example.org", Gap::Skip)
    );
    // A leader that comes later obeys it as well.
    leader.step_down("steady").await.unwrap();
    leads(&standby, "steady").await;
    let before = count(&standby.ledger("steady").await.unwrap(), Outcome::Paused);
    eventually(SOON, "the successor pauses ticks", || async {
        count(&standby.ledger("steady").await.unwrap(), Outcome::Paused) >= before + 2
    })
    .await;
    let ran = stage.played("steady").len();
    let done = leader.control().resume(Target::job("steady")).await.unwrap();
    assert_eq!(done[0].before.as_ref().map(|pause| pause.since), Some(since));
    stage.has_played("steady", ran + 2).await;
    let ledger = accounted_for(&standby, "steady").await;
    assert_eq!(count(&ledger, Outcome::Ran(Ran::Lost)), 0);
    let told = ("paused", "ann@example.org".to_owned(), "a migration".to_owned());
    diary
        .shows(
            "who and why",
            |event| acts(event).filter(|act| act.0 == "paused"),
            [told],
        )
        .await;
    leader.shutdown().await;
    standby.shutdown().await;
}

async fn what_is_owed_is_decided_at_the_resume(ground: Ground) {
    let stage = Stage::new();
    let (leader, standby) = pair(&ground, &stage, "pair").await;
    let diary = Diary::of(&leader);
    stage.has_played("first", 1).await;
    let since = standby.control().pause(Target::group("pair")).owed().await.unwrap()[0].at;
    eventually(SOON, "nothing runs any more", || async {
        let cursor = leader.ledger("first").await.unwrap().cursor.unwrap();
        Timestamp::now().duration_since(cursor) >= SignedDuration::from_secs(4)
    })
    .await;
    for job in ["first", "second"] {
        assert!(stage.played(job).iter().all(|run| run.scheduled_at <= since));
        let ledger = accounted_for(&leader, job).await;
        assert_eq!(count(&ledger, Outcome::Paused), 0);
    }
    let (first, second) = (stage.played("first").len(), stage.played("second").len());
    standby.control().resume(Target::group("pair")).by("bob").await.unwrap();
    stage.has_played("first", first + 2).await;
    stage.has_played("second", second + 2).await;
    for job in ["first", "second"] {
        let ledger = accounted_for(&leader, job).await;
        // `missed = "latest"`: one stands for them all.
        let coalesced = Outcome::Missed(leader_core::MissedReason::Coalesced);
        assert!(count(&ledger, coalesced) >= 2, "{ledger:?}");
    }
    let resumed = diary
        .tells("the resume", |event| acts(event).filter(|act| act.0 == "resumed"))
        .await;
    assert_eq!(resumed.1, "bob");
    leader.shutdown().await;
    standby.shutdown().await;
}

async fn a_pause_ends_by_itself(ground: Ground) {
    let stage = Stage::new();
    let instance = ground.instance("a", &stage, ["steady"]).timing(timing()).await.unwrap();
    leads(&instance, "steady").await;
    stage.has_played("steady", 1).await;
    // The store keeps whole milliseconds.
    let until = Timestamp::from_millisecond(Timestamp::now().as_millisecond() + 2_500).unwrap();
    let pause = instance.control().pause(Target::all()).owed().until(until);
    let done = pause.await.unwrap();
    assert!(done.iter().any(|done| done.group.as_str() == "steady"), "{done:?}");
    assert!(done.len() > 1, "every group that is known");
    let since = done.iter().find(|done| done.group.as_str() == "steady").unwrap().at;
    eventually(SOON, "it runs again", || async {
        stage.played("steady").iter().any(|run| run.scheduled_at > until)
    })
    .await;
    let early = |run: &leader_core::LedgerRecord| run.first >= since && run.claimed_at < until && run.fence > 0;
    let ledger = accounted_for(&instance, "steady").await;
    assert!(!ledger.records.iter().any(early), "{ledger:?}");
    assert!(instance.control().state().await.unwrap()["steady"].pauses.is_empty());
    assert!(matches!(
        instance.control().resume(Target::group("steady")).await,
        Err(ControlError::NotPaused { .. })
    ));
    instance.shutdown().await;
}

/// Everything is paused for a maintenance, the fleet is stopped, and what was paused is resumed before the first instance leads again.
async fn a_pause_that_is_over_before_anybody_leads_again_has_skipped_its_ticks(ground: Ground) {
    let stage = Stage::new();
    let watcher = ground.instance("w", &stage, ["pair"]).campaign(false).timing(timing());
    let watcher = watcher.await.unwrap();
    let leader = ground.instance("a", &stage, ["pair"]).timing(timing()).await.unwrap();
    leads(&leader, "pair").await;
    stage.has_played("first", 1).await;
    let since = watcher.control().pause(Target::group("pair")).await.unwrap()[0].at;
    leader.shutdown().await;
    let ran = stage.played("first").len();
    eventually(SOON, "ticks fall due while nobody leads", || async {
        Timestamp::now().duration_since(since) >= SignedDuration::from_secs(4)
    })
    .await;
    let until = watcher.control().resume(Target::group("pair")).await.unwrap()[0].at;
    let leader = ground.instance("b", &stage, ["pair"]).timing(timing()).await.unwrap();
    leads(&leader, "pair").await;
    stage.has_played("first", ran + 1).await;
    let ledger = accounted_for(&leader, "first").await;
    let skipped = leader.count_ticks("first", since, until).unwrap();
    assert!(
        skipped >= 3 && count(&ledger, Outcome::Paused) >= skipped - 1,
        "{ledger:?}"
    );
    let in_it = |run: &leader_core::LedgerRecord| run.fence > 0 && since < run.first && run.first < until;
    assert!(!ledger.records.iter().any(in_it), "{ledger:?}");
    watcher.shutdown().await;
    leader.shutdown().await;
}

async fn a_trigger_is_run_while_paused(ground: Ground) {
    let stage = Stage::new();
    let (leader, standby) = pair(&ground, &stage, "yearly").await;
    let diary = Diary::of(&leader);
    standby.control().pause(Target::of::<jobs::yearly>()).await.unwrap();
    let asked = standby
        .control()
        .trigger::<jobs::yearly>()
        .by("ann")
        .because("now")
        .await
        .unwrap();
    stage.has_played("yearly", 1).await;
    assert_eq!(stage.played("yearly")[0].scheduled_at, asked.at);
    eventually(SOON, "it is recorded", || async {
        let ledger = standby.ledger("yearly").await.unwrap();
        ledger
            .records
            .iter()
            .any(|run| run.first == asked.at && run.origin == Origin::Manual && run.outcome == Outcome::Ran(Ran::Ok))
    })
    .await;
    let requested = diary
        .tells("the request", |event| acts(event).filter(|act| act.0 == "requested"))
        .await;
    assert_eq!(requested, ("requested", "ann".to_owned(), "now".to_owned()));
    let kept = standby.control().state().await.unwrap();
    assert!(kept["yearly"].requests.is_empty());
    assert_eq!(kept["yearly"].acts.len(), 2);
    // Another one while a run is under way waits for its end.
    stage.part("yearly", |_| async {
        tokio::time::sleep(ms(300)).await;
        Ok(())
    });
    for _ in 0..3 {
        standby.control().trigger_named("yearly").await.unwrap();
    }
    stage.has_played("yearly", 4).await;
    let runs = stage.played("yearly");
    assert!(
        runs[1..].windows(2).all(|pair| pair[1].at - pair[0].at >= ms(300)),
        "{runs:?}"
    );
    leader.shutdown().await;
    standby.shutdown().await;
    assert_eq!(stage.played("yearly").len(), 4);
}

async fn a_trigger_outlives_the_leader_that_should_have_met_it(ground: Ground) {
    let stage = Stage::new();
    let (leader, standby) = pair(&ground, &stage, "yearly").await;
    leader_core::testing::kill(&leader);
    let asked = standby.control().trigger::<jobs::yearly>().await.unwrap();
    stage.has_played("yearly", 1).await;
    assert!(standby.is_leader("yearly"));
    eventually(SOON, "it is recorded", || async {
        let ledger = standby.ledger("yearly").await.unwrap();
        ledger.records.iter().any(|run| run.first == asked.at)
    })
    .await;
    standby.shutdown().await;
    assert_eq!(stage.played("yearly").len(), 1);
}

async fn a_past_span_is_run_in_order_across_leaders(ground: Ground) {
    let stage = Stage::new();
    stage.part("newest", |_| async {
        tokio::time::sleep(ms(30)).await;
        Ok(())
    });
    let start = |id| ground.instance(id, &stage, ["off"]).timing(timing());
    let (a, b) = (start("a").await.unwrap(), start("b").await.unwrap());
    let (first, second) = leader_first(a, b, "off").await;
    // 20 ticks of a job each 10 minutes.
    let to = Timestamp::from_second(Timestamp::now().as_second() / 600 * 600 - 600).unwrap();
    let from = to - SignedDuration::from_mins(190);
    let backfill = second.control().backfill::<jobs::newest>(from, to).await.unwrap();
    assert_eq!((backfill.runs, backfill.at), (20, from));
    let expected: Vec<_> = (0..20).map(|n| from + SignedDuration::from_mins(10 * n)).collect();
    let span = || -> Vec<Timestamp> {
        let played = stage.played("newest").into_iter().map(|run| run.scheduled_at);
        played.filter(|at| *at <= to).collect()
    };
    for ended in [3, 8, 13] {
        eventually(SOON, "some of the span is run", || async { span().len() >= ended }).await;
        let leader = if first.is_leader("off") { &first } else { &second };
        leader.step_down("off").await.unwrap();
    }
    eventually(SOON, "all of the span is run", || async {
        let kept = second.control().state().await.unwrap();
        span().len() >= 20 && kept["off"].requests.is_empty()
    })
    .await;
    let told = second.explain("newest", from).await.unwrap();
    assert_eq!(told.asked_for.len(), 1, "{told}");
    assert!(
        told.to_string()
            .contains(" was asked for (backfill), and came to `ran.ok` on "),
        "{told}"
    );
    // "Until now", by a clock that is a little ahead.
    let ahead = Timestamp::now() + SignedDuration::from_secs(2);
    let behind = to + SignedDuration::from_secs(1);
    let backfill = second.control().backfill::<jobs::newest>(behind, ahead).await.unwrap();
    assert!((1..=2).contains(&backfill.runs), "{backfill:?}");
    let kept = second.control().state().await.unwrap();
    assert!(kept["off"].acts[0].at >= to && kept["off"].acts.iter().any(|act| act.number == backfill.id));
    first.shutdown().await;
    second.shutdown().await;
    assert_eq!(span(), expected);
}

async fn two_that_pause_at_once_are_both_kept(ground: Ground) {
    let stage = Stage::new();
    let (leader, standby) = pair(&ground, &stage, "pair").await;
    let (one, two) = tokio::join!(
        leader.control().pause(Target::job("first")).into_future(),
        standby.control().pause(Target::job("first")).owed().into_future(),
    );
    let (one, two) = (one.unwrap().remove(0), two.unwrap().remove(0));
    assert_ne!(one.number, two.number);
    let replaced = [&one, &two].into_iter().filter(|done| done.before.is_some()).count();
    assert_eq!(replaced, 1, "{one:?} {two:?}");
    let kept = leader.control().state().await.unwrap();
    assert_eq!(kept["pair"].acts.len(), 2);
    assert_eq!(kept["pair"].pauses[0].number, one.number.max(two.number));
    leader.shutdown().await;
    standby.shutdown().await;
}

async fn a_withdrawn_request_is_run_no_further(ground: Ground) {
    let stage = Stage::new();
    let instance = ground.instance("a", &stage, ["off"]).timing(timing()).await.unwrap();
    leads(&instance, "off").await;
    stage.part("newest", |tick| async move {
        tick.cancelled().await;
        Ok(())
    });
    let to = Timestamp::now();
    let asked = instance
        .control()
        .backfill_named("newest", to - SignedDuration::from_hours(5), to)
        .await
        .unwrap();
    stage.has_played("newest", 1).await;
    let cancel = || instance.control().cancel("off", asked.id);
    cancel().await.unwrap();
    assert!(matches!(cancel().await, Err(ControlError::NotOpen { .. })));
    assert!(instance.control().state().await.unwrap()["off"].requests.is_empty());
    instance.shutdown().await;
    assert_eq!(stage.played("newest").len(), 1);
}

async fn what_cannot_be_done_says_why(ground: Ground) {
    let stage = Stage::new();
    let instance = ground.instance("a", &stage, ["yearly"]).timing(timing()).await.unwrap();
    let control = instance.control();
    let now = Timestamp::now();
    let hour = SignedDuration::from_hours(1);
    let errors = [
        control.pause(Target::job("nobody's")).await.unwrap_err(),
        control.pause(Target::job("standing")).await.unwrap_err(),
        control.pause(Target::group("nowhere")).await.unwrap_err(),
        control
            .pause(Target::job("yearly"))
            .until(now - hour)
            .await
            .unwrap_err(),
        control.resume(Target::all()).await.unwrap_err(),
        control.backfill_named("steady", now - 4 * hour, now).await.unwrap_err(),
        control
            .backfill_named("newest", now - hour, now + hour)
            .await
            .unwrap_err(),
        control.backfill_named("yearly", now - hour, now).await.unwrap_err(),
        control.backfill_named("newest", now, now - hour).await.unwrap_err(),
        control.cancel("yearly", 7).await.unwrap_err(),
    ];
    let said: Vec<_> = errors.iter().map(ToString::to_string).collect();
    for (error, part) in said.iter().zip([
        "`nobody's` is no scheduled job",
        "`standing` is no scheduled job",
        "`nowhere` is no group",
        "is over already",
        "every group is not paused",
        "has 14400 ticks in the span, and one request runs 10000",
        "is not past yet",
        "has no tick from",
        "has no tick from",
        "request 7 of `yearly` is not open",
    ]) {
        assert!(error.contains(part), "{error}");
    }
    assert!(
        control
            .state()
            .await
            .unwrap()
            .values()
            .all(|group| group.acts.is_empty())
    );
    instance.shutdown().await;
    assert!(matches!(
        instance.control().pause(Target::all()).await,
        Err(ControlError::Stopped)
    ));
}

/// An observer steers jobs that it does not have.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_instance_without_the_job_steers_it() {
    let _among = among_others().await;
    let ground = Ground::redis().await;
    let stage = Stage::new();
    let leader = ground.instance("a", &stage, ["steady"]).timing(timing()).await.unwrap();
    leads(&leader, "steady").await;
    let watcher = ground
        .instance("b", &stage, [])
        .campaign(false)
        .disable("steady")
        .timing(timing())
        .await
        .unwrap();
    stage.has_played("steady", 1).await;
    let since = watcher.control().pause(Target::job("steady")).await.unwrap()[0].at;
    watcher.control().trigger_named("steady").await.unwrap();
    let error = watcher
        .control()
        .backfill_named("steady", since, since)
        .await
        .unwrap_err();
    assert!(matches!(error, ControlError::NotHere { .. }), "{error:?}");
    eventually(SOON, "the triggered run", || async {
        stage.played("steady").iter().any(|run| run.scheduled_at >= since)
    })
    .await;
    eventually(SOON, "ticks are paused", || async {
        count(&leader.ledger("steady").await.unwrap(), Outcome::Paused) >= 2
    })
    .await;
    assert_eq!(
        stage
            .played("steady")
            .iter()
            .filter(|run| run.scheduled_at >= since)
            .count(),
        1
    );
    watcher.shutdown().await;
    leader.shutdown().await;
}

/// The store is gone: an error within a bound.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_store_nothing_is_steered() {
    let _among = among_others().await;
    let mut ground = Ground::redis().await;
    let instance = ground
        .instance("a", &Stage::new(), ["yearly"])
        .timing(timing())
        .await
        .unwrap();
    let Ground::Redis(server) = &mut ground else {
        unreachable!()
    };
    server.kill().await;
    let asked = tokio::time::timeout(
        Duration::from_secs(5),
        instance.control().trigger_named("yearly").into_future(),
    );
    assert!(matches!(asked.await.unwrap(), Err(ControlError::Store { .. })));
    instance.shutdown().await;
}

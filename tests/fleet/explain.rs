//! "Why did it not run?", asked on an instance that leads nothing and runs nothing.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use leader_core::{Explanation, Fate, Instance, MissedReason, Outcome, Ran, Target, testing};
use leader_tests::eventually;
use tokio::sync::watch;

use crate::catch_up::was_last_settled;
use crate::stage::{Ground, SOON, Stage, among_others, leads, ms};

on_each_store!(
    a_run_and_what_it_skips_are_told_elsewhere,
    the_run_of_a_leader_that_was_killed_is_told_as_lost,
    what_a_pause_holds_or_skips_names_who_paused_it_and_why,
);

async fn why(instance: &Instance, job: &str, at: Timestamp) -> Explanation {
    let told = instance.explain(job, at).await.unwrap();
    println!("{told}");
    told
}

/// Explains on `instance` until it is this.
async fn becomes(instance: &Instance, job: &str, at: Timestamp, wanted: impl Fn(&Fate) -> bool) -> Explanation {
    eventually(SOON, "it is explained so", || async {
        wanted(&instance.explain(job, at).await.unwrap().fate)
    })
    .await;
    why(instance, job, at).await
}

fn later(at: Timestamp, seconds: i64) -> Timestamp {
    at.checked_add(SignedDuration::from_secs(seconds)).unwrap()
}

async fn a_run_and_what_it_skips_are_told_elsewhere(ground: Ground) {
    let stage = Stage::new();
    let (ends, end) = watch::channel(false);
    stage.part("steady", move |_| {
        let mut end = end.clone();
        async move {
            end.wait_for(|end| *end).await?;
            Ok(())
        }
    });
    let a = ground.instance("a", &stage, ["steady"]).await.unwrap();
    leads(&a, "steady").await;
    let other = ground.instance("other", &stage, ["elsewhere"]).await.unwrap();
    stage.has_played("steady", 1).await;
    let run = stage.played("steady").remove(0);
    let told = becomes(&other, "steady", run.scheduled_at, |fate| {
        matches!(fate, Fate::Running(_))
    })
    .await;
    let Fate::Running(running) = &told.fate else {
        panic!("{told:?}")
    };
    assert_eq!((running.fence, running.instance.as_str()), (run.fence, "a"));
    assert!(told.to_string().contains("runs now on a since "), "{told}");

    let skipped = later(run.scheduled_at, 1);
    let told = becomes(&other, "steady", skipped, |fate| {
        matches!(fate, Fate::OverlapSkipped { .. })
    })
    .await;
    let Fate::OverlapSkipped {
        behind: Some(behind), ..
    } = &told.fate
    else {
        panic!("{told:?}")
    };
    assert_eq!(
        (behind.tick, behind.fence, behind.until),
        (run.scheduled_at, run.fence, None)
    );
    let to_come = later(Timestamp::from_second(Timestamp::now().as_second()).unwrap(), 3600);
    assert!(matches!(
        why(&other, "steady", to_come).await.fate,
        Fate::NotYetDue { .. }
    ));
    let beside = skipped.checked_add(SignedDuration::from_millis(500)).unwrap();
    let between = (Some(skipped), Some(later(skipped, 1)));
    assert!(
        matches!(why(&other, "steady", beside).await.fate, Fate::NotATick { before, after } if (before, after) == between)
    );
    let long_ago = later(run.scheduled_at, -3600);
    assert!(matches!(
        why(&other, "steady", long_ago).await.fate,
        Fate::BeforeFirstSeen { since: Some(_) }
    ));

    ends.send(true).unwrap();
    let told = becomes(&other, "steady", run.scheduled_at, |fate| matches!(fate, Fate::Ran(_))).await;
    assert!(
        matches!(&told.fate, Fate::Ran(record) if record.fence == run.fence && record.outcome == Outcome::Ran(Ran::Ok))
    );
    // The run that was in the way has ended since.
    let told = why(&other, "steady", skipped).await;
    assert!(
        matches!(&told.fate, Fate::OverlapSkipped { behind: Some(behind), .. } if behind.fence == run.fence && behind.until.is_some())
    );

    let history = other
        .history::<crate::stage::jobs::steady>()
        .outcome(Outcome::Ran(Ran::Ok))
        .await
        .unwrap();
    let oldest = history.last().unwrap();
    assert_eq!((oldest.fence, oldest.first), (run.fence, run.scheduled_at));
    assert!(oldest.duration() >= Duration::from_secs(1), "{oldest:?}");
    let newest = other
        .history_of("steady")
        .newest(1)
        .before(later(skipped, 1))
        .await
        .unwrap();
    assert_eq!(newest.iter().map(|record| record.last).collect::<Vec<_>>(), [skipped]);
    other.shutdown().await;
    a.shutdown().await;
}

async fn the_run_of_a_leader_that_was_killed_is_told_as_lost(ground: Ground) {
    let stage = Stage::new();
    let (first, second) = (stage.of("a"), stage.of("b"));
    stage.part("steady", |_| async {
        tokio::time::sleep(Duration::from_secs(60)).await;
        Ok(())
    });
    let a = ground.instance("a", &first, ["steady"]).await.unwrap();
    leads(&a, "steady").await;
    stage.has_played("steady", 1).await;
    let run = stage.played("steady").remove(0);
    let b = ground.instance("b", &second, ["steady"]).await.unwrap();
    let other = ground.instance("other", &stage, ["elsewhere"]).await.unwrap();
    testing::kill(&a);
    // Until somebody leads again nobody decides what falls due.
    let due = later(Timestamp::from_second(Timestamp::now().as_second()).unwrap(), 1);
    becomes(&other, "steady", due, |fate| matches!(fate, Fate::Undecided { .. })).await;
    leads(&b, "steady").await;
    let told = becomes(&other, "steady", run.scheduled_at, |fate| matches!(fate, Fate::Ran(_))).await;
    assert!(
        matches!(&told.fate, Fate::Ran(record) if record.outcome == Outcome::Ran(Ran::Lost) && record.instance == "a")
    );
    assert!(
        told.to_string()
            .contains("and was lost: its runner gave no sign of life"),
        "{told}"
    );
    let failures = other.history_of("steady").failures().await.unwrap();
    assert_eq!(
        failures.iter().map(|record| record.fence).collect::<Vec<_>>(),
        [run.fence]
    );
    // What fell due meanwhile was decided by the successor.
    let told = becomes(&other, "steady", due, |fate| !matches!(fate, Fate::Undecided { .. })).await;
    assert!(!matches!(told.fate, Fate::Unrecorded | Fate::NotATick { .. }), "{told}");
    other.shutdown().await;
    testing::kill(&b);
    a.shutdown().await;
    b.shutdown().await;
}

async fn what_a_pause_holds_or_skips_names_who_paused_it_and_why(ground: Ground) {
    let stage = Stage::new();
    let a = ground.instance("a", &stage, ["steady"]).await.unwrap();
    leads(&a, "steady").await;
    stage.has_played("steady", 1).await;
    let other = ground.instance("other", &stage, ["elsewhere"]).await.unwrap();
    // What falls due stays open, and is told so at once: nobody has to decide anything for it.
    let pause = other.control().pause(Target::group("steady")).owed().by("ann");
    let until = later(
        Timestamp::from_millisecond(Timestamp::now().as_millisecond()).unwrap(),
        600,
    );
    let since = pause.until(until).because("the invoices").await.unwrap()[0].at;
    let due = later(Timestamp::from_second(since.as_second()).unwrap(), 2);
    let told = becomes(&other, "steady", due, |fate| matches!(fate, Fate::Held { .. })).await;
    let Fate::Held { pauses, .. } = &told.fate else {
        panic!("{told:?}")
    };
    let facts = (pauses.len(), pauses[0].by.as_str(), pauses[0].until, &pauses[0].job);
    assert_eq!(facts, (1, "ann", Some(until), &None));
    let words = format!(
        "because ann paused the group `steady` at {since} until {until} (\"the invoices\"); when that ends it runs"
    );
    assert!(told.to_string().contains(&words), "{told}");

    // Another that skips beside it gives up nothing; alone it does. What is due when a pause begins is within it.
    eventually(SOON, "the tick is past", || async { Timestamp::now() > due + ms(10) }).await;
    let pause = a.control().pause(Target::job("steady")).by("bob").because("the audit");
    let skips = pause.await.unwrap()[0].at;
    assert!(skips > due);
    assert!(matches!(&why(&other, "steady", due).await.fate, Fate::Held { pauses, .. } if pauses[0].by == "ann"));
    other.control().resume(Target::group("steady")).await.unwrap();
    let skipped = later(Timestamp::from_second(skips.as_second()).unwrap(), 2);
    let is_paused = |fate: &Fate| matches!(fate, Fate::Paused { .. });
    becomes(&other, "steady", skipped, is_paused).await;
    let resumed = a.control().resume(Target::job("steady")).by("carl").await.unwrap()[0].at;
    let told = why(&other, "steady", skipped).await;
    let Fate::Paused { pause: Some(pause), .. } = &told.fate else {
        panic!("{told:?}")
    };
    let facts = (pause.by.as_str(), pause.reason.as_str(), pause.since);
    assert_eq!(facts, ("bob", "the audit", skips), "though it is over");
    let words = format!("because bob paused the job at {skips} until {resumed} (\"the audit\"); a recorded it");
    assert!(told.to_string().contains(&words), "{told}");
    // What was held is decided now, by age.
    becomes(&other, "steady", due, |fate| {
        matches!(fate, Fate::Missed { .. } | Fate::Ran(_))
    })
    .await;
    a.shutdown().await;
    other.shutdown().await;
}

/// A fleet that was off for an hour.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn missed_ticks_are_told_with_the_policy_that_decided() {
    let _among = among_others().await;
    let ground = Ground::redis().await;
    let Ground::Redis(server) = &ground else { unreachable!() };
    let hour = SignedDuration::from_hours(1);
    let since = was_last_settled(server, "skipping", hour).await;
    was_last_settled(server, "newest", hour).await;
    let stage = Stage::new();
    let other = ground.instance("other", &stage, ["elsewhere"]).await.unwrap();
    let tick = |job: &str, n: usize| {
        other.preview(job, 1).unwrap()[0].at - SignedDuration::from_mins(10) * i32::try_from(n).unwrap()
    };
    let missed = tick("skipping", 3);
    assert!(missed > since);
    assert!(matches!(
        why(&other, "skipping", missed).await.fate,
        Fate::Undecided { .. }
    ));
    let a = ground.instance("a", &stage, ["off"]).await.unwrap();
    leads(&a, "off").await;
    for (job, wanted) in [("skipping", MissedReason::Skipped), ("newest", MissedReason::Coalesced)] {
        let reason = |fate: &Fate| matches!(fate, Fate::Missed { reason, .. } if *reason == wanted);
        let told = becomes(&other, job, missed, reason).await.to_string();
        assert!(told.contains("did not run: a found it at"), "{told}");
    }
    a.shutdown().await;
    other.shutdown().await;
}

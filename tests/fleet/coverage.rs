//! Jobs that come and go: leaders that lack them, fleets that give them up, and jobs that have another name.

use jiff::{SignedDuration, Timestamp};
use leader_core::{AbsenceKind, Bootstrap, Event, Fate, Instance, JobLedger, MissedReason, Outcome, Ran};
use leader_tests::eventually;

use crate::catch_up::{all_accounted_for, was_last_settled};
use crate::stage::{Diary, Ground, SOON, Stage, among_others, jobs, leader_first, leads, ms};

on_each_store!(
    a_renamed_job_goes_back_and_forth_with_the_leadership,
    what_a_leader_lacks_is_recorded_as_uncovered,
    a_job_that_is_taken_out_and_comes_back_starts_anew,
);

fn count(ledger: &JobLedger, reason: MissedReason) -> u64 {
    ledger.counts.get(&Outcome::Missed(reason)).copied().unwrap_or_default()
}

async fn ledger(instance: &Instance, job: &str) -> JobLedger {
    instance.ledger(job).await.unwrap()
}

/// Waits until no tick of the job is left that was due at `at`.
async fn decided_up_to(instance: &Instance, job: &str, at: Timestamp) -> JobLedger {
    eventually(SOON, &format!("{job} is decided up to {at}"), || async {
        let ledger = ledger(instance, job).await;
        ledger
            .cursor
            .is_some_and(|cursor| cursor + SignedDuration::from_secs(1) > at)
    })
    .await;
    ledger(instance, job).await
}

fn uncovered(diary: &Diary) -> Vec<String> {
    diary.pick(|event| match event {
        Event::Uncovered { job, .. } => Some(job.clone()),
        _ => None,
    })
}

/// Two versions of a program; the newer has given its job another name. Between them nothing is eaten, and nothing run twice.
async fn a_renamed_job_goes_back_and_forth_with_the_leadership(ground: Ground) {
    let stage = Stage::new();
    let build = |on: &'static str, name, was| -> Bootstrap {
        let instance = ground
            .instance(on, &stage.of(on), ["steady"])
            .spread(false)
            .disable("steady");
        instance.__as::<jobs::steady>(name, was)
    };
    let old = build("v1", "purge", &[]).await.unwrap();
    let told_old = Diary::of(&old);
    leads(&old, "steady").await;
    stage.has_played("purge", 2).await;
    let new = build("v2", "sweep", &["purge"]).await.unwrap();
    let told_new = Diary::of(&new);
    assert_eq!(ledger(&new, "sweep").await, JobLedger::default(), "it has not led yet");
    for _ in 0..2 {
        for (from, to, job) in [(&old, &new, "sweep"), (&new, &old, "purge")] {
            from.step_down("steady").await.unwrap();
            leads(to, "steady").await;
            let played = stage.played(job).len();
            stage.has_played(job, played + 2).await;
            // Both names tell of one past.
            assert_eq!(
                ledger(from, if job == "purge" { "sweep" } else { "purge" }).await.since,
                ledger(to, job).await.since
            );
        }
    }
    // The last run's result may be on its way.
    eventually(SOON, "all is settled", || async {
        ledger(&new, "sweep").await.pending() == 0
    })
    .await;
    let ledger = ledger(&new, "sweep").await;
    let due = new
        .count_ticks("sweep", ledger.since.unwrap(), ledger.cursor.unwrap())
        .unwrap();
    let ran = ledger.counts.get(&Outcome::Ran(Ran::Ok)).copied().unwrap_or_default();
    assert_eq!(
        (ledger.decided() + ledger.pending(), ran + ledger.pending()),
        (due, due),
        "{:?}",
        ledger.counts
    );
    let mut played: Vec<_> = [stage.played("purge"), stage.played("sweep")].concat();
    played.sort_by_key(|played| played.scheduled_at);
    let second = SignedDuration::from_secs(1);
    assert!(
        played.is_sorted_by(|a, b| a.scheduled_at + second == b.scheduled_at && a.fence < b.fence),
        "{played:?}"
    );
    // The past of the old name is that of the new one, and neither lacks what the other has.
    let history = new.history_of("sweep").outcome(Outcome::Ran(Ran::Ok)).await.unwrap();
    assert!(
        history.iter().any(|record| record.instance == "v1") && history.iter().any(|record| record.instance == "v2")
    );
    let first = played.first().unwrap();
    let told = new.explain("sweep", first.scheduled_at).await.unwrap();
    assert!(
        matches!(&told.fate, Fate::Ran(record) if record.fence == first.fence),
        "{told}"
    );
    assert_eq!((uncovered(&told_old), uncovered(&told_new)), (vec![], vec![]));
    assert_eq!(ledger.absences, []);
    new.shutdown().await;
    // Rolled back altogether, the old version goes on.
    leads(&old, "steady").await;
    let played = stage.played("purge").len();
    stage.has_played("purge", played + 2).await;
    old.shutdown().await;
}

/// Each of two lacks one of the group's jobs, which a third had.
async fn what_a_leader_lacks_is_recorded_as_uncovered(ground: Ground) {
    let stage = Stage::new();
    let start = |id, without: &str| {
        let instance = ground.instance(id, &stage, ["pair"]).spread(false);
        if without.is_empty() {
            instance
        } else {
            instance.disable(without)
        }
    };
    let all = start("all", "").await.unwrap();
    leads(&all, "pair").await;
    stage.has_played("first", 1).await;
    stage.has_played("second", 1).await;
    let (one, two) = (
        start("one", "second").await.unwrap(),
        start("two", "first").await.unwrap(),
    );
    all.shutdown().await;
    let (leader, other) = leader_first(one, two, "pair").await;
    let (lacked, had) = if leader.id().as_str() == "one" {
        ("second", "first")
    } else {
        ("first", "second")
    };
    eventually(SOON, "what it lacks is shown", || async {
        leader.uncovered("pair").get(lacked).map(String::as_str) == Some(other.id().as_str())
    })
    .await;
    assert!(other.uncovered("pair").is_empty());
    // Nobody decides what falls due, and it is told why.
    let due = Timestamp::from_second(Timestamp::now().as_second() + 1).unwrap();
    eventually(SOON, "it is due and undecided", || async {
        let told = other.explain(lacked, due).await.unwrap();
        matches!(
            told.fate,
            Fate::Undecided {
                lacked_since: Some(_),
                ..
            }
        ) && told.to_string().contains("have lacked the job since")
    })
    .await;
    let before = stage.played(lacked).len();
    let played = stage.played(had).len();
    stage.has_played(had, played + 5).await;
    assert_eq!(stage.played(lacked).len(), before);
    leader.step_down("pair").await.unwrap();
    leads(&other, "pair").await;
    stage.has_played(lacked, before + 2).await;
    let told = other.explain(lacked, due).await.unwrap();
    assert!(
        matches!(
            told.fate,
            Fate::Missed {
                reason: MissedReason::Uncovered,
                ..
            }
        ),
        "{told}"
    );
    assert!(
        told.to_string()
            .contains("because no instance that led the group had the job"),
        "{told}"
    );
    let ledger = ledger(&other, lacked).await;
    assert!(count(&ledger, MissedReason::Uncovered) >= 3, "{:?}", ledger.counts);
    all_accounted_for(&other, lacked, ledger.since.unwrap(), &ledger);
    // None of them was owed.
    let ran = stage.played(lacked);
    assert!(ran.iter().all(|played| played.late < ms(5_000)), "{ran:?}");
    leader.shutdown().await;
    other.shutdown().await;
}

async fn a_job_that_is_taken_out_and_comes_back_starts_anew(ground: Ground) {
    let stage = Stage::new();
    let start = |id| ground.instance(id, &stage, ["pair"]);
    let a = start("a").await.unwrap();
    stage.has_played("second", 2).await;
    a.shutdown().await;
    let b = start("b").disable("second").await.unwrap();
    leads(&b, "pair").await;
    let before = stage.played("second").len();
    let first = stage.played("first").len();
    stage.has_played("first", first + 4).await;
    b.shutdown().await;
    let c = start("c").await.unwrap();
    leads(&c, "pair").await;
    stage.has_played("second", before + 2).await;
    let ledger = ledger(&c, "second").await;
    let removed: Vec<_> = ledger
        .absences
        .iter()
        .filter(|absence| absence.kind == AbsenceKind::Removed)
        .collect();
    let [removed] = removed.as_slice() else {
        panic!("{:?}", ledger.absences)
    };
    let until = removed.until.unwrap();
    let ran = stage.played("second");
    assert!(
        ran.iter()
            .all(|played| played.scheduled_at <= removed.from || played.scheduled_at > until)
    );
    // What the fleet was without is not due; all else has its outcome.
    let of = |from, to| c.count_ticks("second", from, to).unwrap();
    let due = of(ledger.since.unwrap(), ledger.cursor.unwrap()) - of(removed.from, until);
    assert!(of(removed.from, until) >= 3);
    assert_eq!(ledger.decided() + ledger.pending(), due, "{:?}", ledger.counts);
    let within = Timestamp::from_second(removed.from.as_second() + 2).unwrap();
    let told = c.explain("second", within).await.unwrap();
    assert!(matches!(told.fate, Fate::Removed { until: Some(_), .. }), "{told}");
    assert!(
        told.to_string()
            .contains("no living instance of the fleet had the job from"),
        "{told}"
    );
    c.shutdown().await;
}

/// Removed by a deploy, and back after 30 recorded days.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_month_without_the_job_nothing_is_owed() {
    let _among = among_others().await;
    let ground = Ground::redis().await;
    let Ground::Redis(server) = &ground else { unreachable!() };
    let stage = Stage::new();
    // Its last tick was decided an hour before the deploy that took it out.
    let month = SignedDuration::from_hours(30 * 24);
    let since = was_last_settled(server, "everything", month + SignedDuration::from_hours(1)).await;
    let removed = Timestamp::from_millisecond((Timestamp::now() - month).as_millisecond()).unwrap();
    let mark = format!("r|{}|", removed.as_millisecond());
    server
        .command(&["HSET", "{leader:off}:coverage", "everything", &mark])
        .await;
    // The deploy's leaders still lack it.
    let b = ground
        .instance("b", &stage, ["off"])
        .disable("everything")
        .await
        .unwrap();
    leads(&b, "off").await;
    stage.has_played("rested", 1).await;
    b.shutdown().await;
    let c = ground.instance("c", &stage, ["off"]).await.unwrap();
    leads(&c, "off").await;
    let now = Timestamp::now();
    eventually(SOON, "its past is decided", || async {
        let ledger = ledger(&c, "everything").await;
        let fresh = c.count_ticks("everything", ledger.cursor.unwrap(), now).unwrap();
        fresh == 0
    })
    .await;
    let ledger = ledger(&c, "everything").await;
    assert_eq!(
        stage
            .played("everything")
            .iter()
            .filter(|played| played.late > ms(10_000))
            .count(),
        0
    );
    let spans = &ledger.absences;
    assert_eq!(
        (spans.len(), spans[0].kind, spans[0].from),
        (1, AbsenceKind::Removed, removed)
    );
    let until = spans[0].until.unwrap();
    let of = |from, to| c.count_ticks("everything", from, to).unwrap();
    assert!(of(removed, until) >= 4_319);
    // The six of the hour before are nobody's any more.
    assert_eq!(count(&ledger, MissedReason::Uncovered), of(since, removed));
    let due = of(since, ledger.cursor.unwrap()) - of(removed, until);
    assert_eq!(ledger.decided() + ledger.pending(), due, "{:?}", ledger.counts);
    c.shutdown().await;
}

/// Another implementation of the scheme takes the plain lease for some seconds.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ticks_under_another_implementation_are_its_own() {
    let _among = among_others().await;
    let ground = Ground::redis().await;
    let Ground::Redis(server) = &ground else { unreachable!() };
    let stage = Stage::new();
    let a = ground.instance("a", &stage, ["steady"]).await.unwrap();
    stage.has_played("steady", 2).await;
    server
        .command(&["SET", "leader:steady", "java-7", "PX", "600000"])
        .await;
    eventually(SOON, "it sees that it leads no more", || async {
        !a.is_leader("steady")
    })
    .await;
    let watch = a.watch("steady").unwrap();
    eventually(SOON, "it knows the other", || async {
        watch.current().leader.as_deref() == Some("java-7")
    })
    .await;
    let before = stage.played("steady").len();
    // So long it leads.
    tokio::time::sleep(ms(4_000)).await;
    assert_eq!(stage.played("steady").len(), before);
    let due = Timestamp::from_second(Timestamp::now().as_second() - 1).unwrap();
    server.command(&["DEL", "leader:steady"]).await;
    leads(&a, "steady").await;
    stage.has_played("steady", before + 2).await;
    let told = a.explain("steady", due).await.unwrap();
    assert!(
        matches!(
            told.fate,
            Fate::Missed {
                reason: MissedReason::ForeignLeader,
                ..
            }
        ),
        "{told}"
    );
    let ledger = decided_up_to(&a, "steady", due).await;
    assert!(count(&ledger, MissedReason::ForeignLeader) >= 4, "{:?}", ledger.counts);
    all_accounted_for(&a, "steady", ledger.since.unwrap(), &ledger);
    // None of its ticks was owed.
    assert!(stage.played("steady").iter().all(|played| played.late < ms(2_000)));
    a.shutdown().await;
}

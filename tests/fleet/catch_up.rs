//! A fleet that comes back after a long time: what was missed is decided by each job's policy, and all of it is accounted for.

use jiff::{SignedDuration, Timestamp};
use leader_core::{Instance, JobLedger, MissedReason, Outcome, Ran};
use leader_tests::{RedisServer, eventually};

use crate::stage::{Ground, SOON, Stage, among_others, leads};

/// As if the job's last tick had been settled so long ago. Not while a tick of a job each 10 minutes is within its grace of 5 s: it would be
/// late, and not missed.
pub(crate) async fn was_last_settled(server: &RedisServer, job: &str, ago: SignedDuration) -> Timestamp {
    eventually(SOON, "no tick is within its grace", || async {
        Timestamp::now().as_second() % 600 >= 6
    })
    .await;
    let cursor = Timestamp::now() - ago;
    let millis = cursor.as_millisecond().to_string();
    let key = format!("{{leader:off}}:job:{job}");
    server
        .command(&["HSET", &key, "cursor", &millis, "since", &millis])
        .await;
    Timestamp::from_millisecond(cursor.as_millisecond()).unwrap()
}

fn count(ledger: &JobLedger, reason: MissedReason) -> u64 {
    ledger.counts.get(&Outcome::Missed(reason)).copied().unwrap_or_default()
}

fn ran(ledger: &JobLedger) -> u64 {
    ledger.counts.get(&Outcome::Ran(Ran::Ok)).copied().unwrap_or_default()
}

/// Everything that fell due has an outcome, whatever fell due meanwhile.
pub(crate) fn all_accounted_for(instance: &Instance, job: &str, since: Timestamp, ledger: &JobLedger) {
    let due = instance.count_ticks(job, since, ledger.cursor.unwrap()).unwrap();
    assert_eq!(ledger.decided() + ledger.pending(), due, "{job}: {:?}", ledger.counts);
}

/// 24 hours of a job each 10 minutes (Hangfire#1591, jobrunr#940, quantum-core#322, apscheduler#463).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_37_a_day_off_is_decided_by_the_policy() {
    let _among = among_others().await;
    let ground = Ground::redis().await;
    let Ground::Redis(server) = &ground else { unreachable!() };
    let day = SignedDuration::from_hours(24);
    let jobs = ["skipping", "newest", "everything", "young"];
    let mut since = Vec::new();
    for job in jobs {
        since.push(was_last_settled(server, job, day).await);
    }
    let stage = Stage::new();
    let instance = ground.instance("a", &stage, ["off"]).await.unwrap();
    leads(&instance, "off").await;
    // Those that fall due during the test come on top.
    stage.has_played("everything", 20).await;
    stage.has_played("young", 9).await;
    stage.has_played("newest", 1).await;
    let settled = || async {
        let mut all = Vec::new();
        for job in jobs {
            all.push(instance.ledger(job).await.unwrap());
        }
        all.iter()
            .all(|ledger| ledger.decided() >= 144 && ledger.pending() == 0)
    };
    eventually(SOON, "all is settled", settled).await;
    for (job, since) in jobs.into_iter().zip(since) {
        let ledger = instance.ledger(job).await.unwrap();
        all_accounted_for(&instance, job, since, &ledger);
        let fresh = ledger.decided() - 144;
        assert!(fresh <= 1, "{job}: {:?}", ledger.counts);
        let (runs, passed) = match job {
            "skipping" => (0, count(&ledger, MissedReason::Skipped)),
            "newest" => (1, count(&ledger, MissedReason::Coalesced)),
            "everything" => (20, count(&ledger, MissedReason::OverLimit)),
            _ => (ran(&ledger) - fresh, count(&ledger, MissedReason::TooOld)),
        };
        assert_eq!((ran(&ledger), passed), (runs + fresh, 144 - runs), "{job}");
        println!("{job}: {runs} of 144 missed ticks ran");
        let played = stage.played(job);
        assert!(
            played.is_sorted_by(|a, b| a.scheduled_at < b.scheduled_at),
            "in order: {played:?}"
        );
        assert!(
            played.is_sorted_by(|a, b| a.fence < b.fence),
            "one after another: {played:?}"
        );
    }
    let oldest = stage.played("young").remove(0);
    assert!(
        oldest.late <= std::time::Duration::from_secs(95 * 60 + 20),
        "{oldest:?}"
    );
    assert!((9..=10).contains(&stage.played("young").len()));
    instance.shutdown().await;
}

/// Owed ticks wait until the run before them has ended, its tries included.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn owed_ticks_wait_for_the_tries_of_the_run_before_them() {
    let _among = among_others().await;
    let ground = Ground::redis().await;
    let Ground::Redis(server) = &ground else { unreachable!() };
    let since = was_last_settled(server, "everything", SignedDuration::from_mins(65)).await;
    let stage = Stage::new();
    stage.part("everything", |tick| async move {
        anyhow::ensure!(tick.attempt() > 1, "the first fails");
        Ok(())
    });
    let instance = ground
        .instance("a", &stage, ["off"])
        .job("everything", |job| job.retries(1).backoff("200ms"))
        .await
        .unwrap();
    eventually(SOON, "all is settled", || async {
        let ledger = instance.ledger("everything").await.unwrap();
        ledger.decided() >= 6 && ledger.pending() == 0
    })
    .await;
    let ledger = instance.ledger("everything").await.unwrap();
    all_accounted_for(&instance, "everything", since, &ledger);
    assert_eq!(ran(&ledger), ledger.decided(), "{:?}", ledger.counts);
    assert!(ledger.records.iter().all(|record| record.tries == 2), "{ledger:?}");
    let played = stage.played("everything");
    assert_eq!(played.len() as u64, 2 * ledger.decided());
    for pair in played.chunks(2) {
        assert_eq!(pair[0].scheduled_at, pair[1].scheduled_at, "none between: {played:?}");
    }
    assert!(played.is_sorted_by(|a, b| a.fence < b.fence && a.scheduled_at <= b.scheduled_at));
    instance.shutdown().await;
}

/// A year of seconds.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_year_off_is_one_record() {
    let _among = among_others().await;
    let ground = Ground::redis().await;
    let Ground::Redis(server) = &ground else { unreachable!() };
    let since = was_last_settled(server, "rested", SignedDuration::from_hours(24 * 365)).await;
    let stage = Stage::new();
    let instance = ground.instance("a", &stage, ["off"]).await.unwrap();
    stage.has_played("rested", 2).await;
    let ledger = instance.ledger("rested").await.unwrap();
    all_accounted_for(&instance, "rested", since, &ledger);
    let missed: Vec<_> = ledger
        .records
        .iter()
        .filter(|record| !record.outcome.is_ran())
        .collect();
    let [span] = missed.as_slice() else {
        panic!("{missed:?}")
    };
    assert_eq!(span.outcome, Outcome::Missed(MissedReason::Skipped));
    assert!((31_535_990..=31_536_010).contains(&span.count), "{span:?}");
    instance.shutdown().await;
}

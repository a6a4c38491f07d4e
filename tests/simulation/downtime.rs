//! A fleet that is off for a day, or a year, in virtual time: what was missed is decided by each job's policy, in order, and all of it is accounted
//! for. (The same on a real Redis is in the suite `fleet`, in `catch_up`.)

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use leader_core::{
    Bootstrap, Embedded, Instance, JobLedger, LedgerRecord, MissedReason, Outcome, Ran, State, Tick, leader_only,
};
use leader_tests::eventually;

use crate::hand_overs::Bodies;

const SOON: Duration = Duration::from_secs(120);
const DAY: Duration = Duration::from_secs(86_400);

/// A body's start: job, tick, fence, when.
type Start = (String, Timestamp, u64, Timestamp);
type Starts = Arc<Mutex<Vec<Start>>>;

fn note(tick: &Tick, starts: Option<State<Starts>>) {
    let Some(State(starts)) = starts else { return };
    let start = (
        tick.job().to_string(),
        tick.scheduled_at(),
        tick.fence(),
        tick.started_at(),
    );
    starts.lock().unwrap().push(start);
}

/// One group for each case.
mod jobs {
    use super::{Duration, Starts, State, Tick, leader_only, note};

    macro_rules! jobs {
        ($($name:ident, $group:tt, $every:tt $(, $option:ident = $value:tt)*;)*) => {
            $(
                #[leader_only(group = $group, every = $every $(, $option = $value)*)]
                async fn $name(tick: Tick, starts: Option<State<Starts>>) {
                    note(&tick, starts);
                }
            )*
        };
    }

    jobs! {
        day_skips, "day", "10m", missed = "skip";
        day_newest, "day", "10m";
        day_all, "day", "10m", missed = "all", max_missed = 20;
        day_young, "day", "10m", missed = "all", max_age = "95m";
        year_skips, "year", "1s", missed = "skip";
        year_newest, "year", "1s";
        year_all, "year", "1s", missed = "all", max_missed = 20;
    }

    /// Takes three periods.
    #[leader_only(group = "slow", every = "5m", grace = "150s")]
    async fn slow(tick: Tick, starts: Option<State<Starts>>) {
        note(&tick, starts);
        tokio::time::sleep(Duration::from_secs(15 * 60 + 1)).await;
    }

    /// Never ends.
    #[leader_only(group = "hung", every = "1m")]
    async fn hung(tick: Tick, starts: Option<State<Starts>>) {
        note(&tick, starts);
        std::future::pending::<()>().await;
    }

    #[leader_only(group = "hung", every = "1m")]
    async fn beside_hung(tick: Tick, starts: Option<State<Starts>>) {
        note(&tick, starts);
    }
}

fn bootstrap(store: &Embedded, starts: &Starts, group: &'static str) -> Bootstrap {
    leader_core::bootstrap(store.clone())
        .state(Arc::clone(starts))
        // The other jobs of this suite need it.
        .state(Bodies::default())
        .instance_id("one")
        .service("downtime")
        .single_process()
        .first_start(true)
        .groups([group])
        .campaign_only([group])
}

async fn leads(instance: &Instance, group: &str) {
    eventually(SOON, "it leads", || async { instance.is_leader(group) }).await;
}

/// Leads a group, is off for so long, and comes back.
async fn off_for(store: &Embedded, starts: &Starts, group: &'static str, span: Duration) -> Instance {
    let first = bootstrap(store, starts, group).await.unwrap();
    leads(&first, group).await;
    // Every job is known by then.
    tokio::time::sleep(Duration::from_millis(500)).await;
    first.shutdown().await;
    starts.lock().unwrap().clear();
    tokio::time::sleep(span).await;
    let second = bootstrap(store, starts, group).await.unwrap();
    leads(&second, group).await;
    second
}

async fn settled(instance: &Instance, job: &str, ticks: u64) -> JobLedger {
    eventually(SOON, &format!("all ticks of {job} are decided"), || async {
        let ledger = instance.ledger(job).await.unwrap();
        ledger.decided() >= ticks && ledger.pending() == 0
    })
    .await;
    let ledger = instance.ledger(job).await.unwrap();
    let due = instance.count_ticks(job, ledger.since.unwrap(), ledger.cursor.unwrap());
    assert_eq!(
        ledger.decided() + ledger.pending(),
        due.unwrap(),
        "{job}: {:?}",
        ledger.counts
    );
    ledger
}

fn of<'a>(starts: &'a [Start], job: &str) -> Vec<&'a Start> {
    starts.iter().filter(|start| start.0 == job).collect()
}

fn ran(ledger: &JobLedger) -> u64 {
    ledger.counts.get(&Outcome::Ran(Ran::Ok)).copied().unwrap_or_default()
}

/// 24 hours of a job each 10 minutes: 144 ticks (Hangfire#1591, jobrunr#940, quantum-core#322, apscheduler#463).
#[tokio::test(start_paused = true)]
async fn case_37_a_virtual_day_off_is_decided_by_the_policy() {
    let (clock, store) = super::store();
    let starts = Starts::default();
    let instance = off_for(&store, &starts, "day", DAY).await;
    let back = clock.wall();
    let missed = |reason| Outcome::Missed(reason);
    for (job, runs, passed) in [
        ("day_skips", 0, missed(MissedReason::Skipped)),
        ("day_newest", 1, missed(MissedReason::Coalesced)),
        ("day_all", 20, missed(MissedReason::OverLimit)),
        ("day_young", 9, missed(MissedReason::TooOld)),
    ] {
        let ledger = settled(&instance, job, 144).await;
        let starts = starts.lock().unwrap();
        let starts = of(&starts, job);
        let ticks: Vec<_> = starts.iter().map(|start| start.1).collect();
        println!("{job}: {} of 144 missed ticks ran, {:?}", ran(&ledger), ledger.counts);
        assert_eq!((ran(&ledger), ticks.len() as u64), (runs, runs), "{job}");
        let counts = [(Outcome::Ran(Ran::Ok), runs), (passed, 144 - runs)];
        let counts = counts.into_iter().filter(|(_, count)| *count > 0).collect();
        assert_eq!(ledger.counts, counts, "{job}");
        // The newest, in order and one after another.
        let newest = ledger.cursor.unwrap();
        let wanted = (0..runs)
            .rev()
            .map(|n| newest - SignedDuration::from_mins(10) * i32::try_from(n).unwrap());
        assert_eq!(ticks, wanted.collect::<Vec<_>>(), "{job}");
        assert!(starts.is_sorted_by(|a, b| a.2 < b.2 && a.3 <= b.3), "{job}: {starts:?}");
        if job == "day_young" {
            let age = back.duration_since(ticks[0]);
            assert!(age <= SignedDuration::from_mins(95), "{age}");
        }
        let ranges = ledger.records.iter().filter(|record| !record.outcome.is_ran());
        assert_eq!(ranges.count(), 1, "{job}: one record of the rest");
    }
    instance.shutdown().await;
}

/// 31,536,000 ticks.
#[tokio::test(start_paused = true)]
async fn case_37_a_virtual_year_off_is_one_record_in_milliseconds() {
    let (clock, store) = super::store();
    let starts = Starts::default();
    let year = 365 * DAY;
    let instance = off_for(&store, &starts, "year", year).await;
    let began = Instant::now();
    for (job, reason) in [
        ("year_skips", MissedReason::Skipped),
        ("year_newest", MissedReason::Coalesced),
        ("year_all", MissedReason::OverLimit),
    ] {
        let ledger = settled(&instance, job, 31_535_990).await;
        let range = |record: &&LedgerRecord| record.outcome == Outcome::Missed(reason) && record.count > 1_000;
        let ranges: Vec<_> = ledger.records.iter().filter(range).collect();
        let [range] = ranges.as_slice() else {
            panic!("{job}: {ranges:?}")
        };
        assert!((31_535_900..=31_536_010).contains(&range.count), "{job}: {range:?}");
        println!("{job}: {} ticks in one record, {:?}", range.count, ledger.counts);
    }
    let took = began.elapsed();
    println!(
        "a year of three secondly jobs, up to {}, decided in {took:?} of real time",
        clock.wall()
    );
    assert!(took < Duration::from_secs(5), "{took:?}");
    instance.shutdown().await;
}

/// A job each 5 minutes takes 15, with a grace of 150 s: what falls due meanwhile is skipped, and the next tick after each end runs; nothing is
/// skipped for ever (hermes PR 50062, tokio-cron-scheduler#113).
#[tokio::test(start_paused = true)]
async fn case_38_a_job_that_takes_longer_than_period_and_grace_runs_again_after_each_end() {
    let (_, store) = super::store();
    let starts = Starts::default();
    let instance = bootstrap(&store, &starts, "slow").await.unwrap();
    leads(&instance, "slow").await;
    tokio::time::sleep(DAY / 3).await;
    let starts = starts.lock().unwrap().clone();
    // Each takes 15 minutes and a second: every fourth tick.
    assert!((23..=25).contains(&starts.len()), "{} runs", starts.len());
    for pair in starts.windows(2) {
        assert_eq!(
            pair[1].1.duration_since(pair[0].1),
            SignedDuration::from_mins(20),
            "{pair:?}"
        );
        let late = pair[1].3.duration_since(pair[1].1);
        assert!(late < SignedDuration::from_secs(1), "{late}");
    }
    let ledger = instance.ledger("slow").await.unwrap();
    let due = instance.count_ticks("slow", ledger.since.unwrap(), ledger.cursor.unwrap());
    assert_eq!(ledger.decided() + ledger.pending(), due.unwrap());
    assert!(ledger.counts[&Outcome::OverlapSkipped] > 65, "{:?}", ledger.counts);
    instance.shutdown().await;
}

/// A body that never ends, and another job of the same leader (goclaw PR 820, spacebot PR 186, hermes#37179).
#[tokio::test(start_paused = true)]
async fn case_48_a_hung_job_stops_no_other() {
    let (_, store) = super::store();
    let starts = Starts::default();
    let instance = bootstrap(&store, &starts, "hung").await.unwrap();
    leads(&instance, "hung").await;
    tokio::time::sleep(DAY / 6).await;
    let starts = starts.lock().unwrap().clone();
    assert_eq!(of(&starts, "hung").len(), 1);
    let beside = of(&starts, "beside_hung");
    assert!((239..=241).contains(&beside.len()), "{} runs", beside.len());
    for start in &beside {
        let late = start.3.duration_since(start.1);
        assert!(late < SignedDuration::from_secs(1), "{late} late: {start:?}");
    }
    instance.shutdown().await;
}

//! Processes that are killed, or frozen for longer than a lease, in the middle of a run that may be tried again: their successor runs it, once,
//! under a higher fence, and what is left of the old run is refused by every place and by the ledger.

use std::time::{Duration, Instant};

use anyhow::Error;
use leader_core::fencing::Fenced;
use leader_core::fencing::http::RequestFence;
use leader_core::{GroupName, Instance, JobLedger, LedgerRecord, Outcome, Ran, leader_only};
use leader_tests::eventually;
use rustix::process::Signal;

use crate::half::{Half, Resources};
use crate::places::{PLACES, Places, SOON, Told, all_refused, has_told, told};
use crate::programs::Process;

/// The processes' job, for who reads its ledger here.
#[leader_only(group = "rerun", name = "rerun", cron = "0 0 29 2 *")]
async fn is_read() {}

/// The only tick that is owed: that of 2024-02-29.
const CURSOR: &str = "1700000000000";

/// Two processes, the first of which is in the middle of its run; and who reads the ledger.
async fn in_the_middle(places: &Places, retries: u32) -> (Process, Process, Instance, u64) {
    let key = "{frozen:leader:rerun}:job:rerun";
    places
        .redis
        .command(&["HSET", key, "cursor", CURSOR, "since", CURSOR])
        .await;
    let a = places.start("a", "rerun", retries);
    let first = has_told(&a, "first", "a has done the first half").await;
    assert!(first.values().all(|write| write.refusal.is_none()), "{first:?}");
    let b = places.start("b", "rerun", retries);
    b.says(SOON, "b is there", |line| line == "ready").await;
    let reader = leader_core::bootstrap(places.redis.url()).namespace("frozen");
    let reader = reader.service("fenced_writer").campaign(false).await.unwrap();
    let fence = first["redis"].fence;
    assert_eq!(begun(&a), [format!("begins {fence} as try 1")]);
    (a, b, reader, fence)
}

fn lines(process: &Process, word: &str) -> Vec<String> {
    let mut lines = process.out();
    lines.retain(|line| line.starts_with(word));
    lines
}

fn begun(process: &Process) -> Vec<String> {
    lines(process, "begins ")
}

async fn ledger(reader: &Instance) -> JobLedger {
    reader.ledger("rerun").await.unwrap()
}

/// The run's only record, once it is decided.
async fn decided(reader: &Instance) -> LedgerRecord {
    eventually(SOON, "the run is decided", || async {
        let ledger = ledger(reader).await;
        ledger.decided() > 0 && ledger.open.is_empty()
    })
    .await;
    let ledger = ledger(reader).await;
    assert_eq!((ledger.decided(), ledger.records.len()), (1, 1), "{ledger:?}");
    ledger.records[0].clone()
}

/// The fence of the only run that a process has begun, as its second try.
async fn second_try(process: &Process) -> u64 {
    let line = process
        .says(SOON, "the successor runs it again", |line| line.starts_with("begins "))
        .await;
    let (fence, which) = line["begins ".len()..].split_once(' ').unwrap();
    assert_eq!(which, "as try 2");
    fence.parse().unwrap()
}

/// Stops a process, which has begun no further run by then.
async fn stop(mut process: Process, runs: usize) {
    process.signal(Signal::TERM);
    assert!(process.ended(SOON).await.success());
    assert_eq!(begun(&process).len(), runs, "{:?}", process.out());
}

#[tokio::test]
async fn case_44_a_run_whose_process_is_killed_is_recorded_as_lost() {
    let places = Places::open().await;
    let (mut a, b, reader, fence) = in_the_middle(&places, 0).await;
    let killed = Instant::now();
    a.signal(Signal::KILL);
    a.ended(SOON).await;
    let record = decided(&reader).await;
    println!("lost after {:?}", killed.elapsed());
    assert_eq!(
        (record.outcome, record.fence, record.tries),
        (Outcome::Ran(Ran::Lost), fence, 1)
    );
    assert_eq!(record.instance, "a");
    stop(b, 0).await;
    reader.shutdown().await;
}

#[tokio::test]
async fn a_run_whose_process_is_killed_is_tried_again_once_and_the_old_fence_is_refused() {
    let places = Places::open().await;
    places.let_go("b").await;
    let (mut a, b, reader, old) = in_the_middle(&places, 1).await;
    let killed = Instant::now();
    a.signal(Signal::KILL);
    a.ended(SOON).await;
    let new = second_try(&b).await;
    println!("run again after {:?}", killed.elapsed());
    assert!(new > old, "{new} after {old}");
    let whole = has_told(&b, "second", "b is done").await;
    assert!(whole.values().all(|write| write.refusal.is_none()), "{whole:?}");
    let record = decided(&reader).await;
    assert_eq!(
        (record.outcome, record.fence, record.tries),
        (Outcome::Ran(Ran::Ok), new, 2)
    );
    assert_eq!(record.instance, "b");

    // What the dead process had sent, or a client of its sends once more.
    let (connection, tasks) = (places.database.client().await, places.redis.url());
    let redis = redis::Client::open(tasks).unwrap();
    let half = Half {
        to: Resources {
            database: std::sync::Arc::new(tokio::sync::Mutex::new(connection)),
            redis: redis.get_multiplexed_async_connection().await.unwrap(),
            server: places.server,
        },
        fence: old,
        sent: RequestFence::new(GroupName::new("rerun").unwrap(), old),
        text: format!("second half under {old}"),
    };
    let of_server = half.clone();
    let server = tokio::task::spawn_blocking(move || of_server.to_server())
        .await
        .unwrap();
    let written = [
        half.to_database().await,
        half.to_redis().await,
        server,
        half.to_guarded_table().await,
    ];
    let late = PLACES.iter().zip(written).map(|(place, written)| {
        let error = written.expect_err(place);
        let is_fenced = Error::is::<Fenced>(&error);
        (
            (*place).to_owned(),
            Told::refused(place, old, error.to_string(), is_fenced),
        )
    });
    all_refused(&late.collect(), old);
    places.nothing_stands_of(old).await;
    stop(b, 1).await;
    reader.shutdown().await;
}

#[tokio::test]
async fn a_run_whose_process_is_frozen_is_tried_again_and_what_wakes_of_it_is_refused() {
    let places = Places::open().await;
    places.let_go("b").await;
    let (a, b, reader, old) = in_the_middle(&places, 1).await;
    a.signal(Signal::STOP);
    eventually(SOON, "a stands still", || async { a.is_still() }).await;
    let polls = lines(&a, "polled ").len();
    assert!(polls > 0, "the body was polled before");
    let new = second_try(&b).await;
    assert!(new > old, "{new} after {old}");
    let record = decided(&reader).await;

    // Its tasks may go on as soon as the process does; its body may not.
    places.let_go("a").await;
    a.signal(Signal::CONT);
    all_refused(&has_told(&a, "second", "a has tried the second half").await, old);
    places.nothing_stands_of(old).await;
    let refused = format!("decided {old} as fenced");
    a.says(SOON, "its result is refused", |line| line == refused).await;
    // The freeze may have cut one step in two, between the guard's look at the clock and the body's own.
    let late = lines(&a, "polled ").len() - polls;
    assert!(late <= 1, "{late} polls after the freeze");
    assert_eq!(
        ledger(&reader).await.records,
        vec![record.clone()],
        "one run, one record"
    );
    assert_eq!(
        (record.outcome, record.fence, record.tries),
        (Outcome::Ran(Ran::Ok), new, 2)
    );
    assert_eq!(told(&a, "first").len(), PLACES.len());
    stop(b, 1).await;
    stop(a, 1).await;
    tokio::time::timeout(Duration::from_secs(5), reader.shutdown())
        .await
        .unwrap();
}

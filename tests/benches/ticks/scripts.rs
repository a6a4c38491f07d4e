//! How long one script holds the server up, by the server's own account.

use std::time::Duration;

use jiff::Timestamp;
use leader_core::__seam::{
    Campaign, Claim, ClaimBatch, ClaimReply, Claimed, End, Overlap, RedisStore, SettleBatch, Store, TakeOver, Want,
    Writer, parse,
};
use leader_core::{GroupName, Holder, InstanceId, JobName, Namespace, Ran};
use leader_tests::RedisServer;
use tokio::runtime::Runtime;

use crate::meter::command;

/// As many as the store puts into one script.
const CLAIMS: usize = 128;
const ROUNDS: u64 = 100;

/// The most that a history at its bounds, without texts of errors, may take of the server's memory: some 200 bytes a record.
const MEMORY: usize = 512 * 1024;
/// The longest that it may take to read and parse it, at best.
const READ: Duration = Duration::from_millis(20);

/// A job's history at its bounds, 1,000 runs and as many other records.
struct Full {
    /// What it takes of the server's memory, in bytes.
    memory: usize,
    /// How long it takes to read and parse it, at best.
    read: Duration,
    records: usize,
}

/// Each run with an error of so many bytes.
async fn full_ledger(server: &RedisServer, error: usize) -> Full {
    server.command(&["FLUSHALL"]).await;
    let error = "e".repeat(error);
    let line = |n: usize, outcome: &str, error: &str| {
        let at = 1_790_000_000_000 + 1_000 * n;
        format!("{at}|{at}|1|{outcome}|schedule|{n}|7|bench#0000000000000001|{at}|{at}|{error}|1")
    };
    let mut memory = 0;
    for (list, outcome, error) in [("ran", "ran.error", error.as_str()), ("passed", "overlap_skipped", "")] {
        let key = format!("{{leader:default}}:{list}:job-0");
        for n in 0..1000 {
            server.command(&["LPUSH", &key, &line(n, outcome, error)]).await;
        }
        match server.command(&["MEMORY", "USAGE", &key, "SAMPLES", "0"]).await {
            redis::Value::Int(bytes) => memory += usize::try_from(bytes).expect("no debt"),
            other => panic!("MEMORY USAGE: {other:?}"),
        }
    }
    let info = parse(&server.url()).expect("a URL");
    let store = RedisStore::new(&info, &Namespace::default(), Duration::from_secs(1));
    let (group, job) = (
        GroupName::new("default").expect("legal"),
        JobName::new("job-0").expect("legal"),
    );
    let mut full = Full {
        memory,
        read: Duration::MAX,
        records: 0,
    };
    for _ in 0..20 {
        let begun = std::time::Instant::now();
        let ledger = store.ledger(&group, &job).await.expect("the server is there");
        full.read = full.read.min(begun.elapsed());
        full.records = ledger.records.len();
    }
    full
}

pub fn measure(runtime: &Runtime, server: &RedisServer) {
    let (claim, settle) = runtime.block_on(rounds(server));
    for error in [0, 200] {
        let Full { memory, read, records } = runtime.block_on(full_ledger(server, error));
        println!(
            "a history of {records} records, its runs with errors of {error} bytes: {memory} bytes of the server's memory, read and parsed \
             in {read:?} at best"
        );
        assert_eq!(records, 2_000, "every record is read");
        assert!(error > 0 || memory <= MEMORY, "{memory} bytes are more than {MEMORY}");
        assert!(read <= READ, "{read:?} are more than {READ:?}");
    }
    println!("one script on the server: {CLAIMS} claims {claim:.0} µs, {CLAIMS} results {settle:.0} µs");
}

/// The mean microseconds of a script that claims, and of one that settles.
#[allow(clippy::too_many_lines, reason = "one measurement, step by step")]
async fn rounds(server: &RedisServer) -> (f64, f64) {
    server.command(&["FLUSHALL"]).await;
    let info = parse(&server.url()).expect("a URL");
    let store = RedisStore::new(&info, &Namespace::default(), Duration::from_secs(1));
    let group = GroupName::new("default").expect("a legal name");
    let holder = Holder::new(&InstanceId::new("bench").expect("a legal name"), 1);
    let jobs: Vec<_> = (0..CLAIMS)
        .map(|n| JobName::new(format!("job-{n}")).expect("a legal name"))
        .collect();
    let campaign = Campaign {
        group: group.clone(),
        holder: holder.clone(),
        ttl: Duration::from_secs(600),
        longest: Duration::from_secs(600),
        known: 0,
        first_start: true,
        only_one: false,
        yields: Duration::ZERO,
    };
    let answer = store
        .campaign(vec![campaign])
        .await
        .remove(0)
        .expect("the server is there");
    let leader_core::__seam::Verdict::Acquired { term } = answer.verdict else {
        panic!("an empty server elects whoever comes: {answer:?}");
    };
    let take_over = TakeOver {
        group: group.clone(),
        holder: holder.clone(),
        term,
        jobs: jobs.clone(),
        schedules: jobs.iter().map(|_| "every 1s".into()).collect(),
        writer: Writer::default(),
        elsewhere: None,
        was: Vec::new(),
        beside: Vec::new(),
    };
    store.take_over(take_over).await.expect("the server is there");
    let mut cursor = Timestamp::from_second(Timestamp::now().as_second() + 1).expect("a time of today");
    let (mut claiming, mut settling) = (0.0, 0.0);
    for round in 0..ROUNDS {
        let tick = cursor + Duration::from_secs(1);
        let claim = |(n, job): (u64, &JobName)| Claim {
            overlap: Overlap::Skip,
            job: job.clone(),
            number: round * CLAIMS as u64 + n,
            tick,
            cursor,
            want: Want::Run,
            passed: Vec::new(),
            meets: None,
            alive: Vec::new(),
            further: None,
            schedule: "every 1s".into(),
            adopts: "".into(),
        };
        let batch = ClaimBatch {
            patience: Duration::ZERO,
            group: group.clone(),
            holder: holder.clone(),
            term,
            known: 0,
            claiming: round * CLAIMS as u64,
            first: 0,
            silence: Duration::from_secs(600),
            connected: Duration::ZERO,
            writer: Writer::default(),
            claims: (0..).zip(&jobs).map(claim).collect(),
        };
        let before = command(server, "eval").await.1;
        let claimed = store.claim(vec![batch]).await.remove(0).expect("the server is there");
        let between = command(server, "eval").await.1;
        let Claimed::Yours(replies) = claimed else {
            panic!("the lease is held");
        };
        let end = |(job, reply): (&JobName, ClaimReply)| {
            let ClaimReply::Won { fence } = reply else {
                panic!("nobody else claims: {reply:?}");
            };
            let (job, ran, error) = (job.clone(), Ran::Ok, String::new());
            End {
                job,
                fence,
                ran,
                error,
                again_in: None,
            }
        };
        let ends = jobs.iter().zip(replies).map(end).collect();
        let group = group.clone();
        store
            .settle(vec![SettleBatch { group, ends }])
            .await
            .remove(0)
            .expect("the server is there");
        let after = command(server, "eval").await.1;
        claiming += between - before;
        settling += after - between;
        cursor = tick;
    }
    #[allow(clippy::cast_precision_loss, reason = "a small number")]
    let rounds = ROUNDS as f64;
    (claiming / rounds, settling / rounds)
}

//! A store that is away for four leases while bodies run that finish whoever leads: afterwards none of them is lost, and each outcome is recorded.
//!
//! With `LEADER_CHAOS=full` the lease is the usual one of 10 s, and the outage takes 40 s.

use std::time::Instant;

use leader_core::{Event, Instance, JobLedger, Outcome, Ran, Timing};
use leader_tests::{RedisServer, eventually};
use tokio::sync::watch;

use crate::stage::{Diary, Ground, SOON, Stage, among_others, leader_first, ms};

/// How many leases the store is away.
const AWAY: u32 = 4;

fn timing() -> Timing {
    let full = std::env::var("LEADER_CHAOS").is_ok_and(|word| word == "full");
    Timing::from_ttl(ms(if full { 10_000 } else { 2_000 }))
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    /// It takes questions and gives no answer.
    Hangs,
    /// It is killed, and comes back with its data.
    Killed,
}

async fn breaks(server: &mut RedisServer, fault: Fault) {
    match fault {
        Fault::Hangs => server.pause(),
        Fault::Killed => server.kill().await,
    }
}

async fn comes_back(server: &mut RedisServer, fault: Fault) {
    match fault {
        Fault::Hangs => server.resume(),
        Fault::Killed => server.restart(true).await,
    }
}

/// A body of `finishing` that ends when it is told to, after the outage; one of `waits` ends in the middle of it.
async fn outlives(fault: Fault) {
    let _among = among_others().await;
    let server = RedisServer::options().appendonly(true).start().await;
    let mut ground = Ground::Redis(Box::new(server));
    let away = AWAY * timing().ttl();
    let stage = Stage::new();
    let [after, during] = ["finishing", "waits"].map(|job| {
        let ends = watch::Sender::new(false);
        let end = ends.subscribe();
        stage.part(job, move |_| {
            let mut end = end.clone();
            async move {
                end.wait_for(|end| *end).await?;
                Ok(())
            }
        });
        ends
    });
    let groups = ["finishing", "waits"];
    let a = ground
        .instance("a", &stage.of("a"), groups)
        .timing(timing())
        .await
        .unwrap();
    let diary = Diary::of(&a);
    for job in groups {
        stage.has_played(job, 1).await;
    }
    let b = ground
        .instance("b", &stage.of("b"), groups)
        .timing(timing())
        .await
        .unwrap();
    let runs = groups.map(|job| stage.played(job).remove(0));
    assert!(runs.iter().all(|run| run.on == "a"), "{runs:?}");

    let Ground::Redis(server) = &mut ground else {
        unreachable!()
    };
    breaks(server, fault).await;
    tokio::time::sleep(away / 2).await;
    assert!(!groups.iter().any(|group| a.is_leader(group) || b.is_leader(group)));
    during.send_replace(true);
    tokio::time::sleep(away / 2).await;
    comes_back(server, fault).await;

    // Whoever leads now, it may judge dead runs only after it has listened for a whole bound: that passes before the body ends.
    let (leader, _) = leader_first(a.clone(), b.clone(), "finishing").await;
    println!("{fault:?}: {} leads `finishing` after the outage", leader.id());
    let end = Instant::now() + 3 * timing().ttl();
    while Instant::now() < end {
        let open = ledger(&leader, "finishing").await.open;
        assert!(open.iter().any(|run| run.fence == runs[0].fence), "it lives: {open:?}");
        tokio::time::sleep(ms(100)).await;
    }
    assert_eq!(stage.played("finishing").len(), 1, "never two at once");
    after.send_replace(true);
    for (job, run) in groups.into_iter().zip(runs) {
        eventually(SOON, &format!("the run of {job} is recorded"), || async {
            let ledger = ledger(&leader, job).await;
            ledger.records.iter().any(|record| record.fence == run.fence)
        })
        .await;
        let ledger = ledger(&leader, job).await;
        let of_run: Vec<_> = ledger
            .records
            .iter()
            .filter(|record| record.fence == run.fence)
            .collect();
        assert_eq!(of_run.len(), 1, "{job}: {of_run:?}");
        assert_eq!(of_run[0].outcome, Outcome::Ran(Ran::Ok), "{job}: {ledger:?}");
        assert!(
            !ledger.counts.contains_key(&Outcome::Ran(Ran::Lost)),
            "{job}: {:?}",
            ledger.counts
        );
        let (since, cursor) = (ledger.since.unwrap(), ledger.cursor.unwrap());
        let due = leader.count_ticks(job, since, cursor).unwrap();
        assert_eq!(ledger.decided() + ledger.pending(), due, "{job}: {ledger:?}");
    }
    let lost = |event: &Event| matches!(event, Event::Lost { .. }).then_some(());
    assert!(diary.pick(lost).len() >= 2, "both groups were lost in the outage");
    // The next ones run as ever.
    for job in groups {
        let before = stage.played(job).len();
        stage.has_played(job, before + 1).await;
    }
    a.shutdown().await;
    b.shutdown().await;
}

/// The first questions after an outage may still be put to a connection that is dead.
async fn ledger(instance: &Instance, job: &str) -> JobLedger {
    let began = Instant::now();
    loop {
        match instance.ledger(job).await {
            Ok(ledger) => return ledger,
            Err(error) => assert!(began.elapsed() < SOON, "{error}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bodies_that_finish_outlive_a_store_that_hangs() {
    outlives(Fault::Hangs).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bodies_that_finish_outlive_a_store_that_was_killed() {
    outlives(Fault::Killed).await;
}

//! Runs that nobody can tell the end of any more are settled by the next claim of their job.

use std::time::Duration;

use jiff::Timestamp;
use leader_core::__seam::{Claim, ClaimReply, Claimed, Settled, Want};
use leader_core::{Holder, Origin, Outcome, Ran};

use crate::bench::{Bench, LONG, after, claim, holder};

on_each_store!(
    case_44_a_silent_run_of_a_lower_term_is_lost,
    a_silence_is_judged_only_by_one_that_would_have_heard,
    a_run_that_was_just_heard_of_is_alive,
    case_46_heartbeats_keep_a_run_alive,
    a_run_that_lives_here_is_alive_however_silent,
    a_run_of_this_term_that_nobody_runs_never_began,
    a_heartbeat_revives_nothing,
    only_runs_of_the_claimed_job_are_judged,
    a_dead_run_is_settled_by_a_refused_claim_too,
    a_dead_run_of_another_origin_counts_outside_the_schedule,
);

/// What a claim says of its leader.
#[derive(Clone, Copy)]
struct Heard {
    silence: Duration,
    connected: Duration,
}

/// Any run that is a millisecond old has been silent too long.
const IMPATIENT: Heard = Heard {
    silence: Duration::ZERO,
    connected: LONG,
};

async fn claims(bench: &Bench, holder: &Holder, term: u64, wish: Claim, heard: Heard) -> ClaimReply {
    let mut batch = bench.batch(holder, term, vec![wish]);
    (batch.silence, batch.connected) = (heard.silence, heard.connected);
    match bench.claim_batch(batch).await {
        Claimed::Yours(mut replies) => replies.pop().unwrap(),
        Claimed::NotYours => panic!("not yours"),
    }
}

/// A's run of the first tick, and B's term after A is gone.
async fn orphan(bench: &Bench, want: Want) -> (Holder, u64, Timestamp, u64) {
    let (a, b) = (holder("a"), holder("b"));
    let term = bench.acquire(&a).await;
    let cursor = bench.cursor(&a, term, "job").await;
    let tick = if matches!(want, Want::Extra(_)) {
        cursor
    } else {
        after(cursor, 1)
    };
    let fence = bench.win(&a, term, claim("job", 1, cursor, tick, want)).await;
    bench.release(&a, term, None).await;
    let term = bench.acquire(&b).await;
    // Both clocks of liveness count in milliseconds.
    tokio::time::sleep(Duration::from_millis(5)).await;
    (b, term, tick, fence)
}

/// The slot of a killed runner is free as soon as it has been silent (laravel#24194, pelican PR 2555).
async fn case_44_a_silent_run_of_a_lower_term_is_lost(bench: Bench) {
    let (b, term, tick, fence) = orphan(&bench, Want::Run).await;
    let next = claim("job", 1, tick, after(tick, 1), Want::Run);
    let won = claims(&bench, &b, term, next, IMPATIENT).await;
    assert!(matches!(won, ClaimReply::Won { fence: new } if new > fence), "{won:?}");
    let ledger = bench.ledger("job").await;
    assert_eq!(ledger.counts, [(Outcome::Ran(Ran::Lost), 1)].into());
    let record = ledger.records.iter().find(|record| record.fence == fence).unwrap();
    assert_eq!((record.instance.as_str(), record.first), ("a", tick));
    assert!(record.term < term, "{record:?}");
    // Its runner was alive after all, and is told.
    assert_eq!(bench.settle("job", fence, Ran::Ok).await, Settled::Fenced);
}

async fn a_silence_is_judged_only_by_one_that_would_have_heard(bench: Bench) {
    let (b, term, tick, fence) = orphan(&bench, Want::Run).await;
    let just_connected = Heard {
        silence: Duration::from_millis(1),
        connected: Duration::ZERO,
    };
    let owed = claim("job", 1, tick, after(tick, 1), Want::Owed);
    assert_eq!(
        claims(&bench, &b, term, owed.clone(), just_connected).await,
        ClaimReply::Busy
    );
    assert_eq!(bench.settle("job", fence, Ran::Ok).await, Settled::Yes);
}

async fn a_run_that_was_just_heard_of_is_alive(bench: Bench) {
    let (b, term, tick, _) = orphan(&bench, Want::Run).await;
    let patient = Heard {
        silence: LONG,
        connected: LONG,
    };
    let owed = claim("job", 1, tick, after(tick, 1), Want::Owed);
    assert_eq!(claims(&bench, &b, term, owed, patient).await, ClaimReply::Busy);
}

/// A runner that no longer leads still tells that its body runs (db-scheduler#365).
async fn case_46_heartbeats_keep_a_run_alive(bench: Bench) {
    let (b, term, tick, fence) = orphan(&bench, Want::Run).await;
    let second = Heard {
        silence: Duration::from_secs(2),
        connected: LONG,
    };
    tokio::time::sleep(Duration::from_millis(2_100)).await;
    let began = std::time::Instant::now();
    bench.beat(&[fence, fence + 1]).await;
    let owed = claim("job", 1, tick, after(tick, 1), Want::Owed);
    let reply = claims(&bench, &b, term, owed.clone(), second).await;
    assert!(began.elapsed() < second.silence, "the machine stood still");
    assert_eq!(reply, ClaimReply::Busy);
    tokio::time::sleep(Duration::from_millis(2_100)).await;
    let reply = claims(&bench, &b, term, owed, second).await;
    assert!(matches!(reply, ClaimReply::Won { .. }), "{reply:?}");
}

async fn a_run_that_lives_here_is_alive_however_silent(bench: Bench) {
    let (b, term, tick, fence) = orphan(&bench, Want::Run).await;
    let mut owed = claim("job", 1, tick, after(tick, 1), Want::Owed);
    owed.alive = vec![fence - 1, fence];
    assert_eq!(claims(&bench, &b, term, owed, IMPATIENT).await, ClaimReply::Busy);
    assert_eq!(bench.settle("job", fence, Ran::Ok).await, Settled::Yes);
}

async fn a_run_of_this_term_that_nobody_runs_never_began(bench: Bench) {
    let a = holder("a");
    let term = bench.acquire(&a).await;
    let cursor = bench.cursor(&a, term, "job").await;
    let (first, second) = (after(cursor, 1), after(cursor, 2));
    let fence = bench.win(&a, term, claim("job", 1, cursor, first, Want::Run)).await;
    // Fresh as it is: its own leader says that it does not run.
    let new = bench.win(&a, term, claim("job", 2, first, second, Want::Run)).await;
    let ledger = bench.ledger("job").await;
    assert_eq!(ledger.counts, [(Outcome::Ran(Ran::NotStarted), 1)].into());
    assert_eq!(ledger.open.iter().map(|run| run.fence).collect::<Vec<_>>(), [new]);
    assert_eq!(bench.settle("job", fence, Ran::Ok).await, Settled::Fenced);
}

async fn a_heartbeat_revives_nothing(bench: Bench) {
    let (b, term, tick, fence) = orphan(&bench, Want::Run).await;
    let next = claim("job", 1, tick, after(tick, 1), Want::Run);
    claims(&bench, &b, term, next, IMPATIENT).await;
    let before = bench.ledger("job").await;
    bench.beat(&[fence]).await;
    assert_eq!(bench.ledger("job").await, before);
    assert_eq!(bench.settle("job", fence, Ran::Ok).await, Settled::Fenced);
    assert_eq!(bench.ledger("job").await, before);
}

async fn only_runs_of_the_claimed_job_are_judged(bench: Bench) {
    let (b, term, _, fence) = orphan(&bench, Want::Run).await;
    let cursor = bench.cursor(&b, term, "other").await;
    let other = claim("other", 1, cursor, after(cursor, 1), Want::Run);
    claims(&bench, &b, term, other, IMPATIENT).await;
    assert_eq!(bench.settle("job", fence, Ran::Ok).await, Settled::Yes);
}

async fn a_dead_run_is_settled_by_a_refused_claim_too(bench: Bench) {
    let (b, term, tick, fence) = orphan(&bench, Want::Run).await;
    let again = claim("job", 1, tick, tick, Want::Run);
    assert_eq!(
        claims(&bench, &b, term, again, IMPATIENT).await,
        ClaimReply::Moved {
            cursor: tick,
            waiting: None
        }
    );
    let ledger = bench.ledger("job").await;
    assert_eq!(
        (ledger.pending(), ledger.counts),
        (0, [(Outcome::Ran(Ran::Lost), 1)].into())
    );
    assert_eq!(bench.settle("job", fence, Ran::Ok).await, Settled::Fenced);
}

async fn a_dead_run_of_another_origin_counts_outside_the_schedule(bench: Bench) {
    let (b, term, cursor, fence) = orphan(&bench, Want::Extra(Origin::Backfill)).await;
    let next = claim("job", 1, cursor, after(cursor, 1), Want::Run);
    claims(&bench, &b, term, next, IMPATIENT).await;
    let ledger = bench.ledger("job").await;
    assert_eq!((ledger.decided(), ledger.pending()), (0, 1));
    let record = ledger.records.iter().find(|record| record.fence == fence).unwrap();
    assert_eq!(
        (record.outcome, record.origin),
        (Outcome::Ran(Ran::Lost), Origin::Backfill)
    );
}

/// The beats of runs that have ended are not kept, however they ended, and however late one comes.
#[tokio::test]
async fn beats_end_with_their_runs() {
    let bench = Bench::redis().await;
    let beats = format!("{{{}:leader:cleanup}}:beats", bench.namespace);
    let kept = || async {
        let server = bench.server.as_ref().unwrap();
        server.command(&["HLEN", &beats]).await
    };
    let (b, term, tick, lost) = orphan(&bench, Want::Run).await;
    assert_eq!(kept().await, ::redis::Value::Int(1));
    let next = claim("job", 1, tick, after(tick, 1), Want::Run);
    let ClaimReply::Won { fence } = claims(&bench, &b, term, next, IMPATIENT).await else {
        panic!("not won");
    };
    assert_eq!(kept().await, ::redis::Value::Int(1));
    bench.settle("job", fence, Ran::Ok).await;
    assert_eq!(kept().await, ::redis::Value::Int(0));
    bench.beat(&[lost, fence]).await;
    assert_eq!(kept().await, ::redis::Value::Int(0));
}

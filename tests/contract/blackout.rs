//! Ticks that a calendar covers: settled, never run, and one record for each stretch.

use jiff::Timestamp;
use leader_core::__seam::{Claim, ClaimReply, PassedAs, Want};
use leader_core::{MissedReason, Outcome, Ran};

use crate::bench::{Bench, after, claim, holder, passed};

on_each_store!(
    a_blackout_that_goes_on_is_one_record,
    what_comes_between_begins_another_record,
    a_new_leader_begins_another_record,
);

/// The next tick, which is covered.
fn covered(number: u64, cursor: Timestamp) -> Claim {
    let mut wish = claim("job", number, cursor, after(cursor, 1), Want::Settle);
    wish.passed = vec![passed(PassedAs::Blackout, after(cursor, 1), after(cursor, 1), 1)];
    wish
}

/// The spans of the records, oldest first, in seconds after `since`.
async fn spans(bench: &Bench, since: Timestamp) -> Vec<(Outcome, i64, i64, u64)> {
    let ledger = bench.ledger("job").await;
    let seconds = |at: Timestamp| at.duration_since(since).as_secs();
    let span = |record: &leader_core::LedgerRecord| {
        assert_eq!(record.settled_at, record.claimed_at);
        (
            record.outcome,
            seconds(record.first),
            seconds(record.last),
            record.count,
        )
    };
    ledger.records.iter().rev().map(span).collect()
}

async fn a_blackout_that_goes_on_is_one_record(bench: Bench) {
    let a = holder("a");
    let term = bench.acquire(&a).await;
    let since = bench.cursor(&a, term, "job").await;
    for n in 0..50 {
        let wish = covered(n, after(since, i64::try_from(n).unwrap()));
        assert_eq!(bench.claim(&a, term, wish.clone()).await, ClaimReply::Passed);
        // Asked again it has moved, and counts nothing.
        assert!(matches!(bench.claim(&a, term, wish).await, ClaimReply::Moved { .. }));
    }
    let ledger = bench.ledger("job").await;
    assert_eq!((ledger.decided(), ledger.pending()), (50, 0));
    assert_eq!(ledger.cursor, Some(after(since, 50)));
    assert_eq!(spans(&bench, since).await, [(Outcome::Blackout, 1, 50, 50)]);
}

async fn what_comes_between_begins_another_record(bench: Bench) {
    let a = holder("a");
    let term = bench.acquire(&a).await;
    let since = bench.cursor(&a, term, "job").await;
    let missed = MissedReason::Skipped;
    // Alternating spans of one claim, then one that goes on from the last.
    let mut wish = claim("job", 1, since, after(since, 30), Want::Settle);
    wish.passed = vec![
        passed(PassedAs::Blackout, after(since, 1), after(since, 10), 10),
        passed(missed, after(since, 11), after(since, 20), 10),
        passed(PassedAs::Blackout, after(since, 21), after(since, 30), 10),
    ];
    assert_eq!(bench.claim(&a, term, wish).await, ClaimReply::Passed);
    assert_eq!(
        bench.claim(&a, term, covered(2, after(since, 30))).await,
        ClaimReply::Passed
    );
    // A run ends the stretch, although its record is in another list.
    let fence = bench
        .win(&a, term, claim("job", 3, after(since, 31), after(since, 32), Want::Run))
        .await;
    bench.settle("job", fence, Ran::Ok).await;
    assert_eq!(
        bench.claim(&a, term, covered(4, after(since, 32))).await,
        ClaimReply::Passed
    );
    let expected = [
        (Outcome::Blackout, 1, 10, 10),
        (Outcome::Missed(missed), 11, 20, 10),
        (Outcome::Blackout, 21, 31, 11),
        (Outcome::Blackout, 33, 33, 1),
    ];
    let found = spans_without_runs(&bench, since).await;
    assert_eq!(found, expected);
    let ledger = bench.ledger("job").await;
    assert_eq!(ledger.counts[&Outcome::Blackout], 22);
    assert_eq!(ledger.decided(), 33);
}

async fn spans_without_runs(bench: &Bench, since: Timestamp) -> Vec<(Outcome, i64, i64, u64)> {
    let ledger = bench.ledger("job").await;
    let seconds = |at: Timestamp| at.duration_since(since).as_secs();
    let others = ledger.records.iter().rev().filter(|record| !record.outcome.is_ran());
    others
        .map(|record| {
            (
                record.outcome,
                seconds(record.first),
                seconds(record.last),
                record.count,
            )
        })
        .collect()
}

async fn a_new_leader_begins_another_record(bench: Bench) {
    let (a, b) = (holder("a"), holder("b"));
    let term = bench.acquire(&a).await;
    let since = bench.cursor(&a, term, "job").await;
    bench.claim(&a, term, covered(1, since)).await;
    bench.release(&a, term, None).await;
    let term = bench.acquire(&b).await;
    bench.claim(&b, term, covered(1, after(since, 1))).await;
    bench.claim(&b, term, covered(2, after(since, 2))).await;
    let expected = [(Outcome::Blackout, 1, 1, 1), (Outcome::Blackout, 2, 3, 2)];
    assert_eq!(spans(&bench, since).await, expected);
    assert_eq!(bench.ledger("job").await.records[0].instance, "b");
}

//! What a claim makes of earlier runs that have not ended, wherever they run.

use std::time::Duration;

use jiff::Timestamp;
use leader_core::__seam::{Beats, Claim, ClaimReply, Claimed, Overlap, Replaced, Settled, TakenOver, Want};
use leader_core::{Holder, MissedReason, Outcome, Ran};

use crate::bench::{Bench, COARSE, LONG, after, claim, holder};

on_each_store!(
    a_run_beside_another_where_that_is_allowed,
    a_tick_waits_and_a_later_one_stands_for_it,
    a_waiting_tick_outlives_its_leader,
    who_is_told_that_the_cursor_has_moved_hears_what_waits,
    a_waiting_tick_that_nobody_started_is_coalesced,
    what_waits_is_asked_for_by_its_tick,
    a_settled_gap_leaves_what_waits,
    a_replaced_run_is_told_with_its_next_beat,
    a_replaced_run_that_does_not_end_is_closed,
    owed_ticks_and_runs_by_hand_wait_under_every_policy,
);

fn with(overlap: Overlap, claim: Claim) -> Claim {
    Claim { overlap, ..claim }
}

/// A leader with a run that goes on: its term, its cursor, the run's fence.
async fn busy(bench: &Bench, leader: &Holder) -> (u64, Timestamp, u64) {
    let term = bench.acquire(leader).await;
    let cursor = bench.cursor(leader, term, "job").await;
    let tick = after(cursor, 1);
    let fence = bench.win(leader, term, claim("job", 1, cursor, tick, Want::Run)).await;
    (term, tick, fence)
}

/// A claim of the next tick, while the runs of `alive` live here.
fn next(number: u64, cursor: Timestamp, overlap: Overlap, alive: &[u64]) -> Claim {
    let tick = after(cursor, 1);
    Claim {
        alive: alive.to_vec(),
        ..with(overlap, claim("job", number, cursor, tick, Want::Run))
    }
}

async fn a_run_beside_another_where_that_is_allowed(bench: Bench) {
    let a = holder("a");
    let (term, cursor, first) = busy(&bench, &a).await;
    let second = bench.win(&a, term, next(2, cursor, Overlap::Allow, &[first])).await;
    assert!(second > first);
    let ledger = bench.ledger("job").await;
    assert_eq!((ledger.open.len(), ledger.pending(), ledger.decided()), (2, 2, 0));
    // In any order, each under its own fence.
    assert_eq!(bench.settle("job", second, Ran::Ok).await, Settled::Yes);
    assert_eq!(bench.settle("job", first, Ran::Error).await, Settled::Yes);
    let ledger = bench.ledger("job").await;
    assert_eq!((ledger.pending(), ledger.decided()), (0, 2));
}

async fn a_tick_waits_and_a_later_one_stands_for_it(bench: Bench) {
    let a = holder("a");
    let (term, cursor, first) = busy(&bench, &a).await;
    let reply = bench.claim(&a, term, next(2, cursor, Overlap::Wait, &[first])).await;
    assert_eq!(reply, ClaimReply::Waits);
    let (one, two) = (after(cursor, 1), after(cursor, 2));
    let ledger = bench.ledger("job").await;
    assert_eq!((ledger.cursor, ledger.waiting), (Some(one), Some(one)));
    assert_eq!((ledger.pending(), ledger.decided()), (2, 0), "it runs, and one waits");
    let reply = bench.claim(&a, term, next(3, one, Overlap::Wait, &[first])).await;
    assert_eq!(reply, ClaimReply::Waits);
    let ledger = bench.ledger("job").await;
    assert_eq!((ledger.cursor, ledger.waiting), (Some(two), Some(two)));
    let coalesced = Outcome::Missed(MissedReason::Coalesced);
    assert_eq!(ledger.counts.get(&coalesced), Some(&1));
    assert_eq!(ledger.records[0].first, one);
    // While the first runs it cannot begin; then it does, under a higher fence and its own instant.
    let waited = |number| Claim {
        alive: vec![first],
        ..with(Overlap::Wait, claim("job", number, two, two, Want::Waited))
    };
    assert_eq!(bench.claim(&a, term, waited(4)).await, ClaimReply::Busy);
    bench.settle("job", first, Ran::Ok).await;
    let second = bench.win(&a, term, waited(5)).await;
    assert!(second > first);
    assert_eq!(bench.win(&a, term, waited(5)).await, second, "asked again");
    let ledger = bench.ledger("job").await;
    assert_eq!(
        (ledger.waiting, ledger.open[0].tick, ledger.cursor),
        (None, two, Some(two))
    );
    assert_eq!((ledger.pending(), ledger.decided()), (1, 2));
}

async fn a_waiting_tick_outlives_its_leader(bench: Bench) {
    let (a, b) = (holder("a"), holder("b"));
    let (term, cursor, first) = busy(&bench, &a).await;
    bench.claim(&a, term, next(2, cursor, Overlap::Wait, &[first])).await;
    bench.release(&a, term, None).await;
    let term = bench.acquire(&b).await;
    let TakenOver::Yours { cursors, waiting, .. } = bench.take_over(&b, term, &["other", "job"]).await else {
        panic!("not yours");
    };
    let tick = after(cursor, 1);
    assert_eq!((cursors[1], waiting), (tick, vec![None, Some(tick)]));
    let waited = |number| with(Overlap::Wait, claim("job", number, tick, tick, Want::Waited));
    assert_eq!(
        bench.claim(&b, term, waited(1)).await,
        ClaimReply::Busy,
        "the other still runs"
    );
    bench.settle("job", first, Ran::Ok).await;
    bench.win(&b, term, waited(2)).await;
}

/// The first answer may have been lost.
async fn who_is_told_that_the_cursor_has_moved_hears_what_waits(bench: Bench) {
    let a = holder("a");
    let (term, cursor, first) = busy(&bench, &a).await;
    let (one, claim) = (after(cursor, 1), next(2, cursor, Overlap::Wait, &[first]));
    let moved = ClaimReply::Moved {
        cursor: one,
        waiting: Some(one),
    };
    assert_eq!(bench.claim(&a, term, claim.clone()).await, ClaimReply::Waits);
    assert_eq!(bench.claim(&a, term, claim.clone()).await, moved);
    bench.settle("job", first, Ran::Ok).await;
    assert_eq!(bench.claim(&a, term, claim.clone()).await, moved);
    let waited = with(Overlap::Wait, self::claim("job", 3, one, one, Want::Waited));
    bench.win(&a, term, waited).await;
    let moved = ClaimReply::Moved {
        cursor: one,
        waiting: None,
    };
    assert_eq!(bench.claim(&a, term, claim).await, moved);
}

async fn a_waiting_tick_that_nobody_started_is_coalesced(bench: Bench) {
    let a = holder("a");
    let (term, cursor, first) = busy(&bench, &a).await;
    bench.claim(&a, term, next(2, cursor, Overlap::Wait, &[first])).await;
    bench.settle("job", first, Ran::Ok).await;
    let one = after(cursor, 1);
    // Under whatever policy the next one comes.
    let second = bench.win(&a, term, next(3, one, Overlap::Skip, &[])).await;
    let ledger = bench.ledger("job").await;
    assert_eq!((ledger.waiting, ledger.open[0].tick), (None, after(cursor, 2)));
    assert_eq!((ledger.decided(), ledger.pending()), (2, 1));
    let waited = Claim {
        alive: vec![second],
        ..with(Overlap::Wait, claim("job", 4, one, one, Want::Waited))
    };
    assert_eq!(bench.claim(&a, term, waited).await, ClaimReply::Passed);
    assert_eq!(bench.ledger("job").await.decided(), 2, "counted once");
}

async fn what_waits_is_asked_for_by_its_tick(bench: Bench) {
    let a = holder("a");
    let (term, cursor, first) = busy(&bench, &a).await;
    bench.claim(&a, term, next(2, cursor, Overlap::Wait, &[first])).await;
    bench.settle("job", first, Ran::Ok).await;
    for tick in [cursor, after(cursor, 2)] {
        let other = with(Overlap::Wait, claim("job", 3, tick, tick, Want::Waited));
        assert_eq!(bench.claim(&a, term, other).await, ClaimReply::Passed);
    }
    let ledger = bench.ledger("job").await;
    assert_eq!((ledger.waiting, ledger.open.len()), (Some(after(cursor, 1)), 0));
    let unheard_of = with(Overlap::Wait, claim("never", 4, cursor, cursor, Want::Waited));
    assert_eq!(bench.claim(&a, term, unheard_of).await, ClaimReply::Passed);
}

async fn a_settled_gap_leaves_what_waits(bench: Bench) {
    let a = holder("a");
    let (term, cursor, first) = busy(&bench, &a).await;
    bench.claim(&a, term, next(2, cursor, Overlap::Wait, &[first])).await;
    let one = after(cursor, 1);
    let settle = claim("job", 3, one, after(one, 9), Want::Settle);
    assert_eq!(bench.claim(&a, term, settle).await, ClaimReply::Passed);
    assert_eq!(bench.ledger("job").await.waiting, Some(one));
}

async fn a_replaced_run_is_told_with_its_next_beat(bench: Bench) {
    let (a, b) = (holder("a"), holder("b"));
    let (term, cursor, first) = busy(&bench, &a).await;
    let beats = || Beats {
        group: bench.group.clone(),
        fences: vec![first],
    };
    assert_eq!(bench.beats(beats()).await, []);
    // The next leader is another instance.
    bench.release(&a, term, None).await;
    let term = bench.acquire(&b).await;
    let replace = |number| next(number, cursor, Overlap::Replace, &[]);
    assert_eq!(bench.claim(&b, term, replace(1)).await, ClaimReply::Replacing);
    let ledger = bench.ledger("job").await;
    assert_eq!(
        (ledger.cursor, ledger.open.len()),
        (Some(cursor), 1),
        "nothing else is done"
    );
    let told = [Replaced {
        group: bench.group.clone(),
        fence: first,
    }];
    assert_eq!(bench.beats(beats()).await, told);
    assert_eq!(bench.beats(beats()).await, told, "as often as it gives signs of life");
    assert_eq!(bench.claim(&b, term, replace(2)).await, ClaimReply::Replacing);
    assert_eq!(bench.settle("job", first, Ran::Cancelled).await, Settled::Yes);
    assert_eq!(bench.beats(beats()).await, []);
    let second = bench.win(&b, term, replace(3)).await;
    assert!(second > first);
    let ledger = bench.ledger("job").await;
    assert_eq!((ledger.decided(), ledger.pending()), (1, 1));
    // The mark does not outlive the run.
    let beats = Beats {
        group: bench.group.clone(),
        fences: vec![second],
    };
    assert_eq!(bench.beats(beats).await, []);
}

async fn a_replaced_run_that_does_not_end_is_closed(bench: Bench) {
    let a = holder("a");
    let (term, cursor, first) = busy(&bench, &a).await;
    let asks = |number, patience| {
        let mut batch = bench.batch(&a, term, vec![next(number, cursor, Overlap::Replace, &[first])]);
        batch.patience = patience;
        batch
    };
    let asked = bench.claim_batch(asks(2, Duration::from_millis(1))).await;
    assert_eq!(asked, Claimed::Yours(vec![ClaimReply::Replacing]), "asked just now");
    tokio::time::sleep(COARSE).await;
    let asked = bench.claim_batch(asks(3, LONG)).await;
    assert_eq!(asked, Claimed::Yours(vec![ClaimReply::Replacing]), "it has time");
    let Claimed::Yours(replies) = bench.claim_batch(asks(4, Duration::from_millis(1))).await else {
        panic!("not yours");
    };
    let [ClaimReply::Won { fence }] = replies.as_slice() else {
        panic!("{replies:?}");
    };
    assert!(*fence > first);
    let ledger = bench.ledger("job").await;
    assert_eq!(ledger.counts.get(&Outcome::Ran(Ran::Cancelled)), Some(&1));
    assert!(
        ledger.records[0].error.contains("replaced by a later tick"),
        "{ledger:?}"
    );
    assert_eq!((ledger.decided(), ledger.pending()), (1, 1));
    // What it comes to in the end counts no more.
    assert_eq!(bench.settle("job", first, Ran::Ok).await, Settled::Fenced);
}

async fn owed_ticks_and_runs_by_hand_wait_under_every_policy(bench: Bench) {
    let a = holder("a");
    let (term, cursor, first) = busy(&bench, &a).await;
    let mut number = 1;
    for overlap in [Overlap::Skip, Overlap::Wait, Overlap::Replace, Overlap::Allow] {
        for want in [Want::Owed, Want::Extra(leader_core::Origin::Manual)] {
            number += 1;
            let tick = after(cursor, 1);
            let claim = Claim {
                alive: vec![first],
                ..with(overlap, claim("job", number, cursor, tick, want))
            };
            assert_eq!(
                bench.claim(&a, term, claim).await,
                ClaimReply::Busy,
                "{overlap:?} {want:?}"
            );
        }
    }
    assert_eq!(bench.ledger("job").await.open.len(), 1);
}

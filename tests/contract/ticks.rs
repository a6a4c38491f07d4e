//! Taking over and claiming.

use jiff::{SignedDuration, Timestamp};
use leader_core::__seam::{Claim, ClaimReply, Claimed, Found, Settled, TakenOver, Want};
use leader_core::{MissedReason, Origin, Outcome, Ran};

use crate::bench::{Bench, after, claim, end, holder, passed};

on_each_store!(
    an_unknown_job_starts_now,
    case_31_a_cursor_outlives_its_leader,
    a_job_that_was_claimed_before_it_was_taken_over_keeps_its_cursor,
    a_claim_moves_the_cursor_and_opens_a_run,
    a_tick_behind_the_cursor_has_moved,
    fault_g_a_tick_is_never_won_twice,
    a_run_that_has_not_ended_is_not_overlapped,
    an_owed_tick_waits_for_the_run_before_it,
    settling_moves_the_cursor_and_runs_nothing,
    a_repeated_claim_gets_its_answer_again,
    several_ticks_of_one_job_are_decided_in_order,
    a_run_whose_claim_is_under_way_elsewhere_is_left_alone,
    a_leaders_cursor_may_be_ahead_of_the_stores,
    passed_ticks_are_counted_once,
    a_refused_claim_counts_nothing,
    a_claim_needs_holder_and_term,
    a_run_of_its_own_origin_leaves_the_schedule_alone,
    a_batch_is_taken_whatever_its_size,
    jobs_are_apart,
);

async fn an_unknown_job_starts_now(bench: Bench) {
    let a = holder("a");
    let term = bench.acquire(&a).await;
    let TakenOver::Yours {
        now,
        late_from,
        cursors,
        waiting,
        open,
        control: 0,
        ..
    } = bench.take_over(&a, term, &["one", "two"]).await
    else {
        panic!("not yours");
    };
    assert_eq!((late_from, cursors.as_slice()), (None, &[now, now][..]));
    assert_eq!(waiting, [None, None]);
    assert_eq!(open, [Found::default(), Found::default()]);
    let ledger = bench.ledger("one").await;
    assert_eq!((ledger.since, ledger.cursor), (Some(now), Some(now)));
    assert_eq!((ledger.decided(), ledger.pending()), (0, 0));
    // Asked again, and with others: in the order asked.
    let TakenOver::Yours {
        now: later, cursors, ..
    } = bench.take_over(&a, term, &["new", "two", "one"]).await
    else {
        panic!("not yours");
    };
    assert_eq!(cursors, [later, now, now]);
    assert_eq!(bench.ledger("unheard-of").await, leader_core::JobLedger::default());
}

/// A re-elected leader plans from the store's cursor (sidekiq#3974, jobrunr#808).
async fn case_31_a_cursor_outlives_its_leader(bench: Bench) {
    let (a, b) = (holder("a"), holder("b"));
    let term = bench.acquire(&a).await;
    let since = bench.cursor(&a, term, "job").await;
    bench.release(&a, term, None).await;
    let term = bench.acquire(&b).await;
    assert_eq!(bench.cursor(&b, term, "job").await, since);
    let tick = after(since, 5 * 86_400);
    bench.win(&b, term, claim("job", 1, since, tick, Want::Run)).await;
    bench.release(&b, term, None).await;
    let term = bench.acquire(&a).await;
    assert_eq!(bench.cursor(&a, term, "job").await, tick);
    let ledger = bench.ledger("job").await;
    assert_eq!((ledger.since, ledger.cursor), (Some(since), Some(tick)));
}

async fn a_job_that_was_claimed_before_it_was_taken_over_keeps_its_cursor(bench: Bench) {
    let a = holder("a");
    let term = bench.acquire(&a).await;
    let cursor: Timestamp = "2026-03-02T12:00:00Z".parse().unwrap();
    bench
        .win(&a, term, claim("job", 1, cursor, after(cursor, 1), Want::Run))
        .await;
    assert_eq!(bench.cursor(&a, term, "job").await, after(cursor, 1));
    assert_eq!(bench.ledger("job").await.since, None, "when it began is not known");
}

async fn a_claim_moves_the_cursor_and_opens_a_run(bench: Bench) {
    let a = holder("a");
    let term = bench.acquire(&a).await;
    let cursor = bench.cursor(&a, term, "job").await;
    let tick = after(cursor, 1);
    let fence = bench.win(&a, term, claim("job", 1, cursor, tick, Want::Run)).await;
    assert!(fence > term);
    let ledger = bench.ledger("job").await;
    assert_eq!((ledger.cursor, ledger.decided(), ledger.pending()), (Some(tick), 0, 1));
    let [run] = ledger.open.as_slice() else {
        panic!("{ledger:?}");
    };
    assert_eq!((run.tick, run.fence, run.term), (tick, fence, term));
    assert_eq!((run.origin, run.instance.as_str()), (Origin::Schedule, "a"));
    let age = Timestamp::now().duration_since(run.claimed_at).abs();
    assert!(age < SignedDuration::from_secs(10), "{age}");
}

async fn a_tick_behind_the_cursor_has_moved(bench: Bench) {
    let a = holder("a");
    let term = bench.acquire(&a).await;
    let since = bench.cursor(&a, term, "job").await;
    let cursor = after(since, 10);
    bench
        .claim(&a, term, claim("job", 1, since, cursor, Want::Settle))
        .await;
    let before = bench.ledger("job").await;
    let moved = ClaimReply::Moved { cursor, waiting: None };
    for (number, want) in [(2, Want::Run), (3, Want::Owed), (4, Want::Settle)] {
        // Planned from an older cursor, even for a later tick; and a tick that is not after the cursor.
        for (from, tick) in [(since, after(since, 5)), (since, after(since, 20)), (cursor, cursor)] {
            assert_eq!(
                bench.claim(&a, term, claim("job", number, from, tick, want)).await,
                moved
            );
        }
    }
    assert_eq!(bench.ledger("job").await, before);
}

/// A restart or a hand-over inside the minute fires nothing a second time.
async fn fault_g_a_tick_is_never_won_twice(bench: Bench) {
    let (a, b) = (holder("a"), holder("b"));
    let term = bench.acquire(&a).await;
    let cursor = bench.cursor(&a, term, "job").await;
    let tick = after(cursor, 1);
    let fence = bench.win(&a, term, claim("job", 1, cursor, tick, Want::Run)).await;
    bench.settle("job", fence, Ran::Ok).await;
    bench.release(&a, term, None).await;
    let term = bench.acquire(&b).await;
    for (number, want) in [(1, Want::Run), (2, Want::Owed), (1, Want::Settle)] {
        let again = bench.claim(&b, term, claim("job", number, cursor, tick, want)).await;
        assert_eq!(
            again,
            ClaimReply::Moved {
                cursor: tick,
                waiting: None
            }
        );
    }
    // Nor by the same process under another term, with the same number.
    bench.release(&b, term, None).await;
    let term = bench.acquire(&a).await;
    let again = bench.claim(&a, term, claim("job", 1, cursor, tick, Want::Run)).await;
    assert_eq!(
        again,
        ClaimReply::Moved {
            cursor: tick,
            waiting: None
        }
    );
    assert_eq!(bench.ledger("job").await.decided(), 1);
}

async fn a_run_that_has_not_ended_is_not_overlapped(bench: Bench) {
    let a = holder("a");
    let term = bench.acquire(&a).await;
    let cursor = bench.cursor(&a, term, "job").await;
    let (first, second, third) = (after(cursor, 1), after(cursor, 2), after(cursor, 3));
    let fence = bench.win(&a, term, claim("job", 1, cursor, first, Want::Run)).await;
    let mut next = claim("job", 2, first, second, Want::Run);
    next.alive = vec![fence];
    assert_eq!(bench.claim(&a, term, next).await, ClaimReply::Overlapped);
    let ledger = bench.ledger("job").await;
    assert_eq!((ledger.cursor, ledger.pending()), (Some(second), 1));
    assert_eq!(ledger.counts, [(Outcome::OverlapSkipped, 1)].into());
    bench.settle("job", fence, Ran::Ok).await;
    bench.win(&a, term, claim("job", 3, second, third, Want::Run)).await;
}

async fn an_owed_tick_waits_for_the_run_before_it(bench: Bench) {
    let a = holder("a");
    let term = bench.acquire(&a).await;
    let cursor = bench.cursor(&a, term, "job").await;
    let (first, second) = (after(cursor, 1), after(cursor, 5));
    let fence = bench.win(&a, term, claim("job", 1, cursor, first, Want::Run)).await;
    let before = bench.ledger("job").await;
    let mut owed = claim("job", 2, first, second, Want::Owed);
    owed.alive = vec![fence];
    owed.passed = vec![passed(MissedReason::Coalesced, after(cursor, 2), after(cursor, 4), 3)];
    assert_eq!(bench.claim(&a, term, owed.clone()).await, ClaimReply::Busy);
    assert_eq!(bench.ledger("job").await, before);
    bench.settle("job", fence, Ran::Error).await;
    owed.number = 3;
    bench.win(&a, term, owed).await;
    let ledger = bench.ledger("job").await;
    let missed = Outcome::Missed(MissedReason::Coalesced);
    assert_eq!(ledger.counts, [(Outcome::Ran(Ran::Error), 1), (missed, 3)].into());
}

async fn settling_moves_the_cursor_and_runs_nothing(bench: Bench) {
    let a = holder("a");
    let term = bench.acquire(&a).await;
    let cursor = bench.cursor(&a, term, "job").await;
    let fence = bench
        .win(&a, term, claim("job", 1, cursor, after(cursor, 1), Want::Run))
        .await;
    // Also beside a run that has not ended.
    let mut settle = claim("job", 2, after(cursor, 1), after(cursor, 9), Want::Settle);
    settle.alive = vec![fence];
    settle.passed = vec![passed(MissedReason::Skipped, after(cursor, 2), after(cursor, 9), 8)];
    assert_eq!(bench.claim(&a, term, settle).await, ClaimReply::Passed);
    let ledger = bench.ledger("job").await;
    assert_eq!((ledger.cursor, ledger.pending()), (Some(after(cursor, 9)), 1));
    assert_eq!(ledger.counts, [(Outcome::Missed(MissedReason::Skipped), 8)].into());
}

async fn a_repeated_claim_gets_its_answer_again(bench: Bench) {
    let a = holder("a");
    let term = bench.acquire(&a).await;
    let cursor = bench.cursor(&a, term, "job").await;
    let mut first = claim("job", 1, cursor, after(cursor, 3), Want::Run);
    first.passed = vec![passed(MissedReason::Skipped, after(cursor, 1), after(cursor, 2), 2)];
    let fence = bench.win(&a, term, first.clone()).await;
    let extra = claim("job", 2, cursor, cursor, Want::Extra(Origin::Manual));
    let before = bench.ledger("job").await;
    for _ in 0..3 {
        assert_eq!(bench.win(&a, term, first.clone()).await, fence);
        assert_eq!(bench.ledger("job").await, before, "nothing is counted twice");
    }
    bench.settle("job", fence, Ran::Ok).await;
    let other = bench.win(&a, term, extra.clone()).await;
    assert_eq!(bench.win(&a, term, extra).await, other);
    // The first is over, and is not run again.
    let again = bench.claim(&a, term, first).await;
    assert_eq!(
        again,
        ClaimReply::Moved {
            cursor: after(cursor, 3),
            waiting: None,
        }
    );
}

/// Several late ticks of one job in one step: the first is a run of the step's own, and no dead one.
async fn several_ticks_of_one_job_are_decided_in_order(bench: Bench) {
    let a = holder("a");
    let term = bench.acquire(&a).await;
    let cursor = bench.cursor(&a, term, "job").await;
    let step = |n: i64| {
        let number = u64::try_from(n).unwrap();
        claim("job", number, after(cursor, n - 1), after(cursor, n), Want::Run)
    };
    let claims: Vec<_> = (1..=300).map(step).collect();
    let replies = bench.claim_all(&a, term, claims.clone()).await;
    let ClaimReply::Won { fence } = replies[0] else {
        panic!("{:?}", replies[0]);
    };
    assert!(
        replies[1..].iter().all(|reply| *reply == ClaimReply::Overlapped),
        "{replies:?}"
    );
    let ledger = bench.ledger("job").await;
    assert_eq!(ledger.open.iter().map(|run| run.fence).collect::<Vec<_>>(), [fence]);
    assert_eq!(ledger.counts, [(Outcome::OverlapSkipped, 299)].into());
    assert_eq!(ledger.cursor, Some(after(cursor, 300)));
    // The answer was lost: the same again changes nothing.
    let again = bench.claim_all(&a, term, claims).await;
    assert_eq!(again[0], ClaimReply::Won { fence });
    let mut after_all = bench.ledger("job").await;
    after_all.records.clone_from(&ledger.records);
    assert_eq!(after_all, ledger);
    assert_eq!(bench.settle("job", fence, Ran::Ok).await, Settled::Yes);
}

/// A claim whose answer is still awaited is not judged by another one of the same leader.
async fn a_run_whose_claim_is_under_way_elsewhere_is_left_alone(bench: Bench) {
    let a = holder("a");
    let term = bench.acquire(&a).await;
    let cursor = bench.cursor(&a, term, "job").await;
    let awaited = claim("job", 5, cursor, after(cursor, 1), Want::Run);
    let fence = bench.win(&a, term, awaited.clone()).await;
    let extra = claim("job", 6, cursor, cursor, Want::Extra(Origin::Manual));
    let mut batch = bench.batch(&a, term, vec![extra.clone()]);
    batch.claiming = 5;
    assert_eq!(bench.claim_batch(batch).await, Claimed::Yours(vec![ClaimReply::Busy]));
    assert_eq!(bench.win(&a, term, awaited).await, fence);
    // When it is no longer awaited, and does not run either, its run never began.
    let mut batch = bench.batch(&a, term, vec![extra]);
    batch.claiming = 6;
    let Claimed::Yours(replies) = bench.claim_batch(batch).await else {
        panic!("not yours");
    };
    assert!(matches!(replies[..], [ClaimReply::Won { .. }]), "{replies:?}");
    assert_eq!(bench.settle("job", fence, Ran::Ok).await, Settled::Fenced);
}

/// A store that lost its last writes does not make its leader go back.
async fn a_leaders_cursor_may_be_ahead_of_the_stores(bench: Bench) {
    let a = holder("a");
    let term = bench.acquire(&a).await;
    let stored = bench.cursor(&a, term, "job").await;
    let seen = after(stored, 10);
    for tick in [after(stored, 5), seen] {
        let reply = bench.claim(&a, term, claim("job", 1, seen, tick, Want::Run)).await;
        assert_eq!(
            reply,
            ClaimReply::Moved {
                cursor: seen,
                waiting: None
            }
        );
    }
    assert_eq!(bench.ledger("job").await.cursor, Some(stored));
    bench
        .win(&a, term, claim("job", 2, seen, after(seen, 1), Want::Run))
        .await;
    assert_eq!(bench.ledger("job").await.cursor, Some(after(seen, 1)));
}

async fn passed_ticks_are_counted_once(bench: Bench) {
    let a = holder("a");
    let term = bench.acquire(&a).await;
    let cursor = bench.cursor(&a, term, "job").await;
    let mut wish = claim("job", 1, cursor, after(cursor, 1_000), Want::Run);
    wish.passed = vec![
        passed(MissedReason::TooOld, after(cursor, 1), after(cursor, 600), 600),
        passed(MissedReason::Coalesced, after(cursor, 601), after(cursor, 999), 399),
    ];
    let fence = bench.win(&a, term, wish.clone()).await;
    bench.claim(&a, term, wish).await;
    bench.settle("job", fence, Ran::Ok).await;
    let ledger = bench.ledger("job").await;
    let expected = [
        (Outcome::Ran(Ran::Ok), 1),
        (Outcome::Missed(MissedReason::Coalesced), 399),
        (Outcome::Missed(MissedReason::TooOld), 600),
    ];
    assert_eq!(ledger.counts, expected.into());
    let spans: Vec<_> = ledger
        .records
        .iter()
        .map(|r| (r.first, r.last, r.count, r.fence))
        .collect();
    let expected = [
        (after(cursor, 1_000), after(cursor, 1_000), 1, fence),
        (after(cursor, 601), after(cursor, 999), 399, 0),
        (after(cursor, 1), after(cursor, 600), 600, 0),
    ];
    assert_eq!(spans, expected);
}

async fn a_refused_claim_counts_nothing(bench: Bench) {
    let a = holder("a");
    let term = bench.acquire(&a).await;
    let cursor = bench.cursor(&a, term, "job").await;
    let mut wish = claim("job", 1, after(cursor, -5), after(cursor, 3), Want::Run);
    wish.passed = vec![passed(MissedReason::Skipped, after(cursor, 1), after(cursor, 2), 2)];
    assert_eq!(
        bench.claim(&a, term, wish).await,
        ClaimReply::Moved { cursor, waiting: None }
    );
    let ledger = bench.ledger("job").await;
    assert_eq!((ledger.decided(), ledger.records.len()), (0, 0));
}

async fn a_claim_needs_holder_and_term(bench: Bench) {
    let (a, b) = (holder("a"), holder("b"));
    let term = bench.acquire(&a).await;
    let cursor = bench.cursor(&a, term, "job").await;
    // A run of an earlier term, silent: not even that is settled by one who does not lead.
    bench
        .win(&a, term, claim("job", 1, cursor, after(cursor, 1), Want::Run))
        .await;
    let term = bench.acquire(&a).await;
    let before = bench.ledger("job").await;
    let wish = claim("job", 2, after(cursor, 1), after(cursor, 2), Want::Run);
    // No term is the last one: 0 is that of who needs no lease.
    for (who, carried) in [(&b, term), (&a, term - 1), (&a, term + 1), (&b, u64::MAX)] {
        let mut batch = bench.batch(who, carried, vec![wish.clone()]);
        (batch.silence, batch.connected) = (std::time::Duration::ZERO, crate::bench::LONG);
        assert_eq!(bench.claim_batch(batch).await, Claimed::NotYours, "{who} {carried}");
        // The size of a batch does not matter.
        let empty = bench.claim_batch(bench.batch(who, carried, Vec::new())).await;
        assert_eq!(empty, Claimed::NotYours, "{who} {carried}");
    }
    assert_eq!(bench.ledger("job").await, before);
    let empty = bench.claim_batch(bench.batch(&a, term, Vec::new())).await;
    assert_eq!(empty, Claimed::Yours(Vec::new()));
}

async fn a_run_of_its_own_origin_leaves_the_schedule_alone(bench: Bench) {
    let a = holder("a");
    let term = bench.acquire(&a).await;
    let cursor = bench.cursor(&a, term, "job").await;
    for (number, origin) in [(1, Origin::Manual), (2, Origin::Backfill)] {
        // Any instant, also one long decided.
        let tick = after(cursor, -3_600);
        let fence = bench
            .win(&a, term, claim("job", number, tick, tick, Want::Extra(origin)))
            .await;
        let ledger = bench.ledger("job").await;
        assert_eq!(
            (ledger.cursor, ledger.pending(), ledger.open.len()),
            (Some(cursor), 0, 1)
        );
        assert_eq!((ledger.open[0].origin, ledger.open[0].tick), (origin, tick));
        // It holds the slot: another one waits, a tick is skipped.
        let mut other = claim("job", number + 10, cursor, tick, Want::Extra(Origin::Manual));
        other.alive = vec![fence];
        assert_eq!(bench.claim(&a, term, other).await, ClaimReply::Busy);
        bench.settle("job", fence, Ran::Ok).await;
        let ledger = bench.ledger("job").await;
        assert_eq!((ledger.cursor, ledger.decided()), (Some(cursor), 0));
        assert_eq!(ledger.records.iter().find(|r| r.fence == fence).unwrap().origin, origin);
    }
    bench
        .win(&a, term, claim("job", 30, cursor, after(cursor, 1), Want::Run))
        .await;
}

async fn a_batch_is_taken_whatever_its_size(bench: Bench) {
    let a = holder("a");
    let term = bench.acquire(&a).await;
    let names: Vec<String> = (0..300).map(|n| format!("job-{n}")).collect();
    let borrowed: Vec<&str> = names.iter().map(String::as_str).collect();
    let TakenOver::Yours { cursors, .. } = bench.take_over(&a, term, &borrowed).await else {
        panic!("not yours");
    };
    assert_eq!(cursors.len(), 300);
    let wish =
        |(n, name): (usize, &String)| -> Claim { claim(name, n as u64, cursors[n], after(cursors[n], 1), Want::Run) };
    let replies = bench
        .claim_all(&a, term, names.iter().enumerate().map(wish).collect())
        .await;
    let fences: Vec<u64> = replies
        .iter()
        .map(|reply| match reply {
            ClaimReply::Won { fence } => *fence,
            other => panic!("{other:?}"),
        })
        .collect();
    assert!(fences.is_sorted_by(|a, b| a < b), "strictly rising");
    let ends = names
        .iter()
        .zip(&fences)
        .map(|(name, fence)| end(name, *fence, Ran::Ok));
    assert_eq!(bench.settle_all(ends.collect()).await, vec![Settled::Yes; 300]);
    assert!(bench.settle_all(Vec::new()).await.is_empty());
    for name in [&names[0], &names[127], &names[128], &names[299]] {
        let ledger = bench.ledger(name).await;
        assert_eq!((ledger.decided(), ledger.pending()), (1, 0));
    }
}

async fn jobs_are_apart(bench: Bench) {
    let a = holder("a");
    let term = bench.acquire(&a).await;
    let cursor = bench.cursor(&a, term, "one").await;
    let fence = bench
        .win(&a, term, claim("one", 1, cursor, after(cursor, 1), Want::Run))
        .await;
    let other = bench.cursor(&a, term, "two").await;
    bench
        .win(&a, term, claim("two", 2, other, after(other, 1), Want::Run))
        .await;
    assert_eq!(bench.settle("two", fence, Ran::Ok).await, Settled::Fenced);
    assert_eq!(bench.settle("three", fence, Ran::Ok).await, Settled::Fenced);
    assert_eq!(bench.settle("one", fence, Ran::Ok).await, Settled::Yes);
    assert_eq!(bench.ledger("two").await.pending(), 1);
}

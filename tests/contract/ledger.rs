//! What is recorded of runs and ticks.

use jiff::Timestamp;
use leader_core::__seam::{End, KEPT, Settled, Want};
use leader_core::{MissedReason, Origin, Outcome, Ran};

use crate::bench::{Bench, after, claim, end, holder, job, passed};

on_each_store!(
    a_settled_run_is_recorded_once,
    every_ending_is_kept,
    texts_of_errors_survive,
    a_run_may_be_settled_by_one_that_leads_no_longer,
    every_due_tick_is_decided_or_pending,
    records_are_newest_first_and_bounded,
    a_slow_runs_record_takes_its_place_by_its_tick,
);

async fn a_settled_run_is_recorded_once(bench: Bench) {
    let a = holder("a");
    let term = bench.acquire(&a).await;
    let cursor = bench.cursor(&a, term, "job").await;
    let tick = after(cursor, 1);
    let fence = bench.win(&a, term, claim("job", 1, cursor, tick, Want::Run)).await;
    let claimed_at = bench.ledger("job").await.open[0].claimed_at;
    let twice = vec![end("job", fence, Ran::Ok), end("job", fence, Ran::Error)];
    assert_eq!(bench.settle_all(twice).await, [Settled::Yes, Settled::Fenced]);
    assert_eq!(bench.settle("job", fence, Ran::Ok).await, Settled::Fenced);
    assert_eq!(bench.settle("job", fence + 1, Ran::Ok).await, Settled::Fenced);
    let ledger = bench.ledger("job").await;
    assert_eq!((ledger.decided(), ledger.pending()), (1, 0));
    let [record] = ledger.records.as_slice() else {
        panic!("{ledger:?}");
    };
    assert_eq!((record.first, record.last, record.count), (tick, tick, 1));
    assert_eq!(
        (record.outcome, record.origin),
        (Outcome::Ran(Ran::Ok), Origin::Schedule)
    );
    assert_eq!(
        (record.fence, record.term, record.instance.as_str()),
        (fence, term, "a")
    );
    assert_eq!((record.claimed_at, record.error.as_str()), (claimed_at, ""));
    assert!(record.settled_at >= claimed_at);
}

async fn every_ending_is_kept(bench: Bench) {
    let a = holder("a");
    let term = bench.acquire(&a).await;
    let mut cursor = bench.cursor(&a, term, "job").await;
    for (number, ran) in (0_u64..).zip(Ran::ALL) {
        let tick = after(cursor, 1);
        let fence = bench.win(&a, term, claim("job", number, cursor, tick, Want::Run)).await;
        assert_eq!(bench.settle("job", fence, *ran).await, Settled::Yes);
        cursor = tick;
    }
    let ledger = bench.ledger("job").await;
    let each = Ran::ALL.iter().map(|ran| (Outcome::Ran(*ran), 1));
    assert_eq!(ledger.counts, each.collect());
}

async fn texts_of_errors_survive(bench: Bench) {
    let a = holder("a");
    let term = bench.acquire(&a).await;
    let mut cursor = bench.cursor(&a, term, "job").await;
    let long = "é|".repeat(2_000);
    let texts = [
        "",
        " ",
        "|",
        "a|b||c|",
        "first\nsecond\r\n\tthird\n",
        "Grüße, 数据库 🦀 \u{0}\u{1b}[31m",
        "'\"\\ %s %d {} $1 ]]",
        &long,
    ];
    for (number, text) in (0_u64..).zip(texts) {
        let tick = after(cursor, 1);
        let fence = bench.win(&a, term, claim("job", number, cursor, tick, Want::Run)).await;
        let end = End {
            again_in: None,
            job: job("job"),
            fence,
            ran: Ran::Error,
            error: text.to_owned(),
        };
        assert_eq!(bench.settle_all(vec![end]).await, [Settled::Yes]);
        cursor = tick;
    }
    let ledger = bench.ledger("job").await;
    let found: Vec<_> = ledger
        .records
        .iter()
        .rev()
        .map(|record| record.error.as_str())
        .collect();
    assert_eq!(found, texts);
}

/// What counts is the run's own fence: a finishing body's result is taken.
async fn a_run_may_be_settled_by_one_that_leads_no_longer(bench: Bench) {
    let (a, b) = (holder("a"), holder("b"));
    let term = bench.acquire(&a).await;
    let cursor = bench.cursor(&a, term, "job").await;
    let tick = after(cursor, 1);
    let fence = bench.win(&a, term, claim("job", 1, cursor, tick, Want::Run)).await;
    bench.release(&a, term, None).await;
    let next = bench.acquire(&b).await;
    // It keeps the slot while it is heard of.
    let overlapped = bench
        .claim(&b, next, claim("job", 1, tick, after(tick, 1), Want::Run))
        .await;
    assert_eq!(overlapped, leader_core::__seam::ClaimReply::Overlapped);
    assert_eq!(bench.settle("job", fence, Ran::Ok).await, Settled::Yes);
    let ledger = bench.ledger("job").await;
    let record = ledger.records.iter().find(|record| record.fence == fence).unwrap();
    assert_eq!((record.term, record.instance.as_str()), (term, "a"));
}

async fn every_due_tick_is_decided_or_pending(bench: Bench) {
    let a = holder("a");
    let term = bench.acquire(&a).await;
    let since = bench.cursor(&a, term, "job").await;
    let mut cursor = since;
    let mut open = Vec::new();
    for number in 1..=40_u64 {
        let step = i64::try_from(number % 4).unwrap() + 1;
        let tick = after(cursor, step);
        let want = if number % 7 == 0 { Want::Settle } else { Want::Run };
        let mut wish = claim("job", number, cursor, tick, want);
        wish.alive.clone_from(&open);
        let last = if want == Want::Settle { tick } else { after(tick, -1) };
        let count = u64::try_from(last.duration_since(cursor).as_secs()).unwrap();
        if count > 0 {
            wish.passed = vec![passed(MissedReason::Skipped, after(cursor, 1), last, count)];
        }
        if let leader_core::__seam::ClaimReply::Won { fence } = bench.claim(&a, term, wish).await {
            open.push(fence);
        }
        cursor = tick;
        if number % 3 == 0
            && let Some(fence) = open.pop()
        {
            bench.settle("job", fence, Ran::Ok).await;
        }
        let ledger = bench.ledger("job").await;
        let due = u64::try_from(cursor.duration_since(since).as_secs()).unwrap();
        assert_eq!(
            ledger.decided() + ledger.pending(),
            due,
            "after claim {number}: {ledger:?}"
        );
        assert_eq!((ledger.since, ledger.cursor), (Some(since), Some(cursor)));
    }
}

async fn records_are_newest_first_and_bounded(bench: Bench) {
    let a = holder("a");
    let term = bench.acquire(&a).await;
    let mut cursor = bench.cursor(&a, term, "job").await;
    let rounds = KEPT as u64 + 20;
    for number in 0..rounds {
        let tick = after(cursor, 2);
        let mut wish = claim("job", number, cursor, tick, Want::Run);
        wish.passed = vec![passed(MissedReason::Skipped, after(cursor, 1), after(cursor, 1), 1)];
        let fence = bench.win(&a, term, wish).await;
        bench.settle("job", fence, Ran::Ok).await;
        cursor = tick;
    }
    let ledger = bench.ledger("job").await;
    assert_eq!(ledger.decided(), 2 * rounds, "counts are never cut");
    let (ran, others): (Vec<_>, Vec<_>) = ledger.records.iter().partition(|record| record.outcome.is_ran());
    assert_eq!((ran.len(), others.len()), (KEPT, KEPT));
    let instants: Vec<Timestamp> = ledger.records.iter().map(|record| record.last).collect();
    assert!(instants.is_sorted_by(|a, b| a > b), "{instants:?}");
    assert_eq!(instants[0], cursor);
    assert_eq!(
        *instants.last().unwrap(),
        after(cursor, 1 - 2 * i64::try_from(KEPT).unwrap())
    );
}

async fn a_slow_runs_record_takes_its_place_by_its_tick(bench: Bench) {
    let a = holder("a");
    let term = bench.acquire(&a).await;
    let cursor = bench.cursor(&a, term, "job").await;
    let fence = bench
        .win(&a, term, claim("job", 1, cursor, after(cursor, 1), Want::Run))
        .await;
    for n in 1..=i64::try_from(KEPT).unwrap() + 5 {
        let number = u64::try_from(n).unwrap() + 1;
        let mut wish = claim("job", number, after(cursor, n), after(cursor, n + 1), Want::Run);
        wish.alive = vec![fence];
        bench.claim(&a, term, wish).await;
    }
    bench.settle("job", fence, Ran::Ok).await;
    let ledger = bench.ledger("job").await;
    assert_eq!(ledger.records.len(), KEPT + 1);
    assert_eq!(ledger.records.last().unwrap().fence, fence);
    assert_eq!(ledger.records[0].outcome, Outcome::OverlapSkipped);
}

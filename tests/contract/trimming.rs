//! What is kept of the past, and how the store tells what is not.

use std::time::Duration;

use jiff::Timestamp;
use leader_core::__seam::Want;
use leader_core::{Keep, MissedReason, Ran};
use leader_tests::eventually;

use crate::bench::{Bench, after, claim, holder, passed};

on_each_store!(
    runs_and_others_have_bounds_of_their_own,
    a_slow_run_that_is_trimmed_takes_nothing_back,
    old_records_go_with_the_next_write_and_the_newest_stays,
    what_was_kept_under_a_wider_bound_is_cut,
);

/// One run after another, each with a missed tick before it.
async fn rounds(bench: &Bench, term: u64, since: Timestamp, from: u64, count: u64) -> Timestamp {
    let a = holder("a");
    let mut cursor = since;
    for number in from..from + count {
        let tick = after(cursor, 2);
        let mut wish = claim("job", number, cursor, tick, Want::Run);
        wish.passed = vec![passed(MissedReason::Skipped, after(cursor, 1), after(cursor, 1), 1)];
        let fence = bench.win(&a, term, wish).await;
        bench.settle("job", fence, Ran::Ok).await;
        cursor = tick;
    }
    cursor
}

async fn runs_and_others_have_bounds_of_their_own(bench: Bench) {
    let bench = bench.keeping(Keep::default().runs(5).others(3));
    let term = bench.acquire(&holder("a")).await;
    let since = bench.cursor(&holder("a"), term, "job").await;
    let cursor = rounds(&bench, term, since, 1, 3).await;
    let trimmed = bench.ledger("job").await.trimmed;
    assert_eq!((trimmed.runs, trimmed.others), (None, None), "nothing is gone yet");
    let cursor = rounds(&bench, term, cursor, 4, 17).await;
    assert_eq!(cursor, after(since, 40));
    let ledger = bench.ledger("job").await;
    assert_eq!(ledger.decided(), 40);
    let runs = ledger.records.iter().filter(|record| record.outcome.is_ran()).count();
    assert_eq!((runs, ledger.records.len()), (5, 8));
    // The runs were those of the even seconds, and the last five of them are there.
    assert_eq!(ledger.trimmed.runs, Some(after(since, 30)));
    assert_eq!(ledger.trimmed.others, Some(after(since, 33)));
}

async fn a_slow_run_that_is_trimmed_takes_nothing_back(bench: Bench) {
    let bench = bench.keeping(Keep::default().runs(2));
    let a = holder("a");
    let term = bench.acquire(&a).await;
    let since = bench.cursor(&a, term, "job").await;
    let slow = bench
        .win(&a, term, claim("job", 1, since, after(since, 1), Want::Run))
        .await;
    let mut cursor = after(since, 1);
    for number in 2..=6 {
        let mut wish = claim("job", number, cursor, after(cursor, 1), Want::Run);
        wish.overlap = leader_core::__seam::Overlap::Allow;
        wish.alive = vec![slow];
        let fence = bench.win(&a, term, wish).await;
        bench.settle("job", fence, Ran::Ok).await;
        cursor = after(cursor, 1);
    }
    // Written last, of the oldest tick: it goes after those, and what is told stays the latest tick.
    bench.settle("job", slow, Ran::Ok).await;
    assert_eq!(bench.ledger("job").await.trimmed.runs, Some(after(since, 5)));
    for number in 7..=8 {
        let fence = bench
            .win(&a, term, claim("job", number, cursor, after(cursor, 1), Want::Run))
            .await;
        bench.settle("job", fence, Ran::Ok).await;
        cursor = after(cursor, 1);
    }
    let ledger = bench.ledger("job").await;
    assert!(ledger.records.iter().all(|record| record.fence != slow));
    assert_eq!(ledger.trimmed.runs, Some(after(since, 6)));
}

async fn old_records_go_with_the_next_write_and_the_newest_stays(bench: Bench) {
    let age = Duration::from_millis(300);
    let bench = bench.keeping(Keep::default().age(age));
    let term = bench.acquire(&holder("a")).await;
    let since = bench.cursor(&holder("a"), term, "job").await;
    let cursor = rounds(&bench, term, since, 1, 4).await;
    let newest = bench.ledger("job").await.records[0].settled_at;
    let is_old = || async { Timestamp::now().duration_since(newest) > jiff::SignedDuration::from_millis(320) };
    eventually(Duration::from_secs(10), "the records are old", is_old).await;
    assert_eq!(bench.ledger("job").await.records.len(), 8, "reading drops nothing");
    rounds(&bench, term, cursor, 5, 1).await;
    let ledger = bench.ledger("job").await;
    assert_eq!((ledger.records.len(), ledger.decided()), (2, 10));
    assert_eq!(ledger.trimmed.runs, Some(after(since, 8)));
    assert_eq!(ledger.trimmed.others, Some(after(since, 7)));
}

async fn what_was_kept_under_a_wider_bound_is_cut(bench: Bench) {
    let term = bench.acquire(&holder("a")).await;
    let since = bench.cursor(&holder("a"), term, "job").await;
    rounds(&bench, term, since, 1, 30).await;
    let Some(server) = &bench.server else { return };
    // The same keys by a store that keeps less.
    let narrow = leader_core::__seam::RedisStore::new(&server.info(), &bench.namespace, crate::bench::BOUND);
    let narrow = Bench {
        store: std::sync::Arc::new(narrow.keeping(Keep::default().runs(4))),
        namespace: bench.namespace.clone(),
        group: bench.group.clone(),
        server: bench.server.clone(),
    };
    rounds(&narrow, term, after(since, 60), 31, 1).await;
    let ledger = bench.ledger("job").await;
    assert_eq!(
        ledger.records.iter().filter(|record| record.outcome.is_ran()).count(),
        4
    );
    assert_eq!(ledger.trimmed.runs, Some(after(since, 54)));
    assert_eq!(ledger.trimmed.others, None);
}

//! Commands whose senders gave up on them long ago, executed after a hand-over.

use jiff::Timestamp;
use leader_core::__seam::{Claimed, Renewed, TakenOver, Verdict, Want};
use leader_core::Ran;

use crate::bench::{Bench, after, claim, holder};

on_each_store!(
    late_commands_after_a_hand_over_change_nothing,
    late_commands_on_a_vacant_lease_change_nothing,
    late_commands_of_an_earlier_term_of_the_same_holder_change_nothing,
    fault_d_a_lost_reply_locks_nobody_out,
);

async fn late_commands_after_a_hand_over_change_nothing(bench: Bench) {
    let (a, b) = (holder("a"), holder("b"));
    let old = bench.acquire(&a).await;
    let cursor = bench.cursor(&a, old, "job").await;
    bench.release(&a, old, None).await;
    let term = bench.acquire(&b).await;
    let fence = bench
        .win(&b, term, claim("job", 1, cursor, after(cursor, 1), Want::Run))
        .await;
    let before = bench.ledger("job").await;

    let ghost = claim("job", 9, cursor, after(cursor, 2), Want::Run);
    let late = bench.claim_batch(bench.batch(&a, old, vec![ghost])).await;
    assert_eq!(late, Claimed::NotYours);
    assert_eq!(bench.take_over(&a, old, &["job", "other"]).await, TakenOver::NotYours);
    assert!(matches!(bench.renew(&a, old).await, Renewed::NotYours { .. }));
    bench.release(&a, old, Some(Timestamp::now())).await;
    for known in [0, old] {
        assert!(matches!(bench.campaign(&a, known).await.verdict, Verdict::Held { .. }));
    }

    assert!(bench.is_led_by(&b, term).await);
    assert_eq!(bench.ledger("job").await, before);
    assert_eq!(bench.ledger("other").await.since, None);
    assert_eq!(
        bench.settle("job", fence, Ran::Ok).await,
        leader_core::__seam::Settled::Yes
    );
    // The ghost's drain is handed on to nobody.
    bench.release(&b, term, None).await;
    let term = bench.acquire(&a).await;
    let TakenOver::Yours { late_from, .. } = bench.take_over(&a, term, &[]).await else {
        panic!("not yours");
    };
    assert_eq!(late_from, None);
}

async fn late_commands_on_a_vacant_lease_change_nothing(bench: Bench) {
    let (a, b) = (holder("a"), holder("b"));
    let term = bench.acquire(&a).await;
    let cursor = bench.cursor(&a, term, "job").await;
    bench.release(&a, term, None).await;
    let ghost = claim("job", 1, cursor, after(cursor, 1), Want::Run);
    assert!(matches!(
        bench.renew(&a, term).await,
        Renewed::NotYours { holder: None, .. }
    ));
    assert_eq!(
        bench.claim_batch(bench.batch(&a, term, vec![ghost])).await,
        Claimed::NotYours
    );
    // The campaign that won carried less than what it won.
    assert!(matches!(
        bench.campaign(&a, term - 1).await.verdict,
        Verdict::Stale { .. }
    ));
    assert!(bench.ledger("job").await.open.is_empty());
    assert!(matches!(
        bench.campaign(&b, term).await.verdict,
        Verdict::Acquired { .. }
    ));
}

/// A leads, steps down, leads again: the first release arrives only now.
async fn late_commands_of_an_earlier_term_of_the_same_holder_change_nothing(bench: Bench) {
    let a = holder("a");
    let first = bench.acquire(&a).await;
    let cursor = bench.cursor(&a, first, "job").await;
    let second = bench.acquire(&a).await;
    assert!(second > first);
    let ghost = claim("job", 1, cursor, after(cursor, 1), Want::Run);
    assert_eq!(
        bench.claim_batch(bench.batch(&a, first, vec![ghost])).await,
        Claimed::NotYours
    );
    assert!(matches!(bench.campaign(&a, first).await.verdict, Verdict::Stale { .. }));
    bench.release(&a, first, None).await;
    assert!(bench.is_led_by(&a, second).await);
}

async fn fault_d_a_lost_reply_locks_nobody_out(bench: Bench) {
    let a = holder("a");
    // Granted, and the answer lost: the candidate knows nothing of its term.
    let lost = bench.acquire(&a).await;
    let Verdict::Stale { term } = bench.campaign(&a, 0).await.verdict else {
        panic!("granted on what a ghost would carry");
    };
    assert_eq!(term, lost);
    assert!(matches!(
        bench.campaign(&a, term).await.verdict,
        Verdict::Acquired { .. }
    ));
}

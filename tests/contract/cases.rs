//! Reports on other systems that are about one step of the store.

use std::time::Duration;

use ::redis::Value;
use jiff::SignedDuration;
use leader_core::__seam::{ClaimReply, Settled, Verdict, Want};
use leader_core::{Holder, Outcome, Ran};

use crate::bench::{BOUND, Bench, LONG, after, claim, holder};

on_each_store!(
    case_6_two_evaluators_of_one_slow_run_advance_once_for_each_tick,
    case_43_the_end_of_an_old_run_leaves_the_new_one_open,
);

/// After one slow run both of two evaluators move on from the same tick: one is told where the other is, and no tick is doubled or passed over
/// (paseo#2819).
async fn case_6_two_evaluators_of_one_slow_run_advance_once_for_each_tick(bench: Bench) {
    let (a, b) = (holder("a"), holder("b"));
    let term = bench.acquire(&a).await;
    let start = bench.cursor(&a, term, "job").await;
    let tick = |n: i64| after(start, n);
    let slow = bench.win(&a, term, claim("job", 1, start, tick(1), Want::Run)).await;
    bench.release(&a, term, None).await;
    let term = bench.acquire(&b).await;
    let moved = |n: i64| ClaimReply::Moved {
        cursor: tick(n),
        waiting: None,
    };
    // The same slot, and the one after it as planned before the slot was taken.
    for planned in [1, 2] {
        let late = claim("job", 1, start, tick(planned), Want::Run);
        assert_eq!(bench.claim(&b, term, late).await, moved(1), "tick {planned}");
    }
    let beside = bench
        .claim(&b, term, claim("job", 2, tick(1), tick(2), Want::Run))
        .await;
    assert_eq!(beside, ClaimReply::Overlapped);
    assert_eq!(bench.settle("job", slow, Ran::Ok).await, Settled::Yes);
    // Both ask for the next one; the second names it by another number.
    let next = bench.win(&b, term, claim("job", 3, tick(2), tick(3), Want::Run)).await;
    let mut again = claim("job", 4, tick(2), tick(3), Want::Run);
    again.alive = vec![next];
    assert_eq!(bench.claim(&b, term, again).await, moved(3));
    let ledger = bench.ledger("job").await;
    assert_eq!(ledger.open.iter().map(|run| run.fence).collect::<Vec<_>>(), [next]);
    let counts = [(Outcome::Ran(Ran::Ok), 1), (Outcome::OverlapSkipped, 1)];
    assert_eq!(ledger.counts, counts.into());
    assert_eq!((ledger.decided() + ledger.pending(), ledger.cursor), (3, Some(tick(3))));
}

/// A run outlives its slot, a second one begins, and then the first one ends: it gives up nothing of the second one's (laravel#53342,
/// quartznet#1236).
async fn case_43_the_end_of_an_old_run_leaves_the_new_one_open(bench: Bench) {
    let (a, b) = (holder("a"), holder("b"));
    let term = bench.acquire(&a).await;
    let start = bench.cursor(&a, term, "job").await;
    let old = bench
        .win(&a, term, claim("job", 1, start, after(start, 1), Want::Run))
        .await;
    bench.release(&a, term, None).await;
    let term = bench.acquire(&b).await;
    tokio::time::sleep(Duration::from_millis(5)).await;
    let mut batch = bench.batch(
        &b,
        term,
        vec![claim("job", 1, after(start, 1), after(start, 2), Want::Run)],
    );
    (batch.silence, batch.connected) = (Duration::ZERO, LONG);
    let claimed = bench.claim_batch(batch).await;
    let leader_core::__seam::Claimed::Yours(replies) = claimed else {
        panic!("not yours")
    };
    let ClaimReply::Won { fence: new } = replies[0] else {
        panic!("{replies:?}")
    };
    let before = bench.ledger("job").await;
    for ran in [Ran::Ok, Ran::Error] {
        assert_eq!(bench.settle("job", old, ran).await, Settled::Fenced);
    }
    assert_eq!(bench.ledger("job").await, before, "nothing has changed");
    assert_eq!(before.open.iter().map(|run| run.fence).collect::<Vec<_>>(), [new]);
    // The slot is the new one's still, until that ends.
    let mut third = claim("job", 2, after(start, 2), after(start, 3), Want::Run);
    third.alive = vec![new];
    assert_eq!(bench.claim(&b, term, third).await, ClaimReply::Overlapped);
    assert_eq!(bench.settle("job", new, Ran::Ok).await, Settled::Yes);
    let fourth = claim("job", 3, after(start, 3), after(start, 4), Want::Run);
    bench.win(&b, term, fourth).await;
}

/// Whatever told of the run of a tick is gone before the slowest of the fleet comes for the same tick: there is no claim that could expire, and
/// even a job that is forgotten altogether starts now (the remark in `good_job#743`).
#[tokio::test]
async fn case_3_a_tick_whose_claim_is_forgotten_is_not_run_by_the_next() {
    let bench = Bench::redis().await;
    let (a, b) = (holder("a"), holder("b"));
    let term = bench.acquire(&a).await;
    let cursor = bench.cursor(&a, term, "job").await;
    let tick = cursor + SignedDuration::from_millis(1);
    tokio::time::sleep(Duration::from_millis(10)).await;
    let fence = bench.win(&a, term, claim("job", 1, cursor, tick, Want::Run)).await;
    assert_eq!(bench.settle("job", fence, Ran::Ok).await, Settled::Yes);
    let server = bench.server.as_ref().unwrap();
    let key = |part: &str| format!("{{{}:leader:cleanup}}:{part}", bench.namespace);
    for forgotten in ["ran:job", "passed:job", "beats", "job:job"] {
        server.command(&["DEL", &key(forgotten)]).await;
        bench.release(&a, term, None).await;
        let term = bench.acquire(&b).await;
        let found = bench.cursor(&b, term, "job").await;
        assert!(found >= tick, "{forgotten}: {found} before {tick}");
        let late = claim("job", 1, cursor, tick, Want::Run);
        let told = ClaimReply::Moved {
            cursor: found,
            waiting: None,
        };
        assert_eq!(bench.claim(&b, term, late).await, told, "{forgotten}");
        bench.release(&b, term, None).await;
    }
}

/// Whichever keys of a group are evicted, or deleted by hand, the next leader's term and fences are above all that were given before, though
/// it has learnt none of them (redbeat#163, RedLock.net#101).
#[tokio::test]
async fn case_19_whatever_key_vanishes_terms_and_fences_only_rise() {
    let bench = Bench::redis().await;
    let server = bench.server.as_ref().unwrap();
    let lease = format!("{}:leader:cleanup", bench.namespace);
    let part = |part: &str| format!("{{{lease}}}:{part}");
    let all = ["lease", "fence", "beats", "job:job-5"].map(part);
    let vanish = [
        vec![lease.clone()],
        vec![part("lease")],
        vec![part("fence")],
        vec![part("beats")],
        vec![part("job:job-4")],
        all.into_iter().chain([lease.clone()]).collect(),
        Vec::new(),
    ];
    let (mut last, mut number) = (0, 0);
    for (round, gone) in vanish.into_iter().enumerate() {
        let leader = holder(if round % 2 == 0 { "a" } else { "b" });
        let term = elected(&bench, &leader).await;
        assert!(term > last, "round {round}: term {term} after {last}");
        let name = format!("job-{round}");
        let cursor = bench.cursor(&leader, term, &name).await;
        number += 1;
        let tick = claim(&name, number, cursor, after(cursor, 1), Want::Run);
        last = bench.win(&leader, term, tick).await;
        assert!(last > term, "round {round}: fence {last} of term {term}");
        for key in gone {
            assert_eq!(server.command(&["DEL", &key]).await, Value::Int(1), "{key}");
        }
    }
}

/// Campaigns for a short lease without any memory, until it is granted.
async fn elected(bench: &Bench, who: &Holder) -> u64 {
    let began = std::time::Instant::now();
    let mut known = 0;
    loop {
        match bench
            .ask(bench.wish(who, Duration::from_millis(300), known))
            .await
            .verdict
        {
            Verdict::Acquired { term } => return term,
            Verdict::Stale { term } => known = term,
            _ => tokio::time::sleep(Duration::from_millis(5)).await,
        }
        assert!(began.elapsed() < BOUND, "it is not granted");
    }
}

//! Who may take a vacant lease at once, and who leaves it to others for a while.

use std::time::{Duration, Instant};

use leader_core::__seam::Verdict;
use leader_core::Holder;
use leader_tests::eventually;

use crate::bench::{BOUND, Bench, COARSE, LONG, holder, process};

on_each_store!(
    a_vacancy_is_left_to_others_for_as_long_as_is_said,
    an_old_vacancy_is_taken_at_once,
    a_held_lease_is_not_waited_for_and_the_own_one_neither,
    a_first_start_is_left_to_others_too,
    the_only_process_of_an_id_takes_over_its_predecessors_lease,
    another_process_of_an_id_waits_without_that_promise,
);

async fn verdict(bench: &Bench, who: &Holder, known: u64, yields: Duration) -> Verdict {
    let mut wish = bench.wish(who, LONG, known);
    wish.yields = yields;
    bench.ask(wish).await.verdict
}

async fn a_vacancy_is_left_to_others_for_as_long_as_is_said(bench: Bench) {
    let (a, b, c) = (holder("a"), holder("b"), holder("c"));
    let term = bench.acquire(&a).await;
    bench.release(&a, term, None).await;
    let began = Instant::now();
    let yields = Duration::from_millis(300);
    let Verdict::Yielded { remaining, term: told } = verdict(&bench, &b, term, yields).await else {
        panic!("it did not yield");
    };
    assert!(remaining <= yields && remaining > Duration::ZERO, "{remaining:?}");
    assert_eq!(told, term);
    eventually(BOUND, "the vacancy is taken", || async {
        matches!(verdict(&bench, &b, term, yields).await, Verdict::Acquired { .. })
    })
    .await;
    assert!(began.elapsed() + COARSE >= yields);
    // Whoever yields to nobody does not wait for those who do.
    let term = bench.acquire(&b).await;
    bench.release(&b, term, None).await;
    assert!(matches!(verdict(&bench, &a, term, LONG).await, Verdict::Yielded { .. }));
    assert!(matches!(
        verdict(&bench, &c, term, Duration::ZERO).await,
        Verdict::Acquired { .. }
    ));
}

async fn an_old_vacancy_is_taken_at_once(bench: Bench) {
    let (a, b) = (holder("a"), holder("b"));
    let yields = Duration::from_millis(100);
    let mut term = bench.acquire(&a).await;
    bench.release(&a, term, None).await;
    tokio::time::sleep(yields + COARSE).await;
    match verdict(&bench, &b, term, yields).await {
        Verdict::Acquired { term: next } => term = next,
        other => panic!("{other:?}"),
    }
    // The same after a lease that ended by itself: its end is where the vacancy began.
    let short = Duration::from_millis(50);
    bench.renew_for(&b, term, short).await;
    tokio::time::sleep(short + yields + COARSE).await;
    assert!(matches!(
        verdict(&bench, &a, term, yields).await,
        Verdict::Acquired { .. }
    ));
}

async fn a_held_lease_is_not_waited_for_and_the_own_one_neither(bench: Bench) {
    let (a, b) = (holder("a"), holder("b"));
    let term = bench.acquire(&a).await;
    assert!(matches!(verdict(&bench, &b, term, LONG).await, Verdict::Held { .. }));
    assert!(matches!(
        verdict(&bench, &a, term, LONG).await,
        Verdict::Acquired { .. }
    ));
}

async fn a_first_start_is_left_to_others_too(bench: Bench) {
    let (a, b) = (holder("a"), holder("b"));
    assert!(matches!(verdict(&bench, &a, 0, LONG).await, Verdict::Yielded { .. }));
    assert!(matches!(
        verdict(&bench, &b, 0, Duration::ZERO).await,
        Verdict::Acquired { .. }
    ));
}

async fn the_only_process_of_an_id_takes_over_its_predecessors_lease(bench: Bench) {
    let (old, new, other) = (process("web", 1), process("web", 2), process("web-2", 1));
    let term = bench.acquire(&old).await;
    let promised = async |who: &Holder, known: u64| {
        let mut wish = bench.wish(who, LONG, known);
        wish.only_one = true;
        bench.ask(wish).await
    };
    // The promise is about one id: another's lease is another's.
    assert!(matches!(promised(&other, term).await.verdict, Verdict::Held { .. }));
    // A process that was just started knows no term.
    assert_eq!(promised(&new, 0).await.verdict, Verdict::Stale { term });
    let Verdict::Acquired { term: next } = promised(&new, term).await.verdict else {
        panic!("not taken over");
    };
    assert!(next > term);
    assert!(!bench.is_led_by(&old, term).await && bench.is_led_by(&new, next).await);
}

async fn another_process_of_an_id_waits_without_that_promise(bench: Bench) {
    let (old, new) = (process("web", 1), process("web", 2));
    let term = bench.acquire(&old).await;
    assert!(matches!(bench.campaign(&new, term).await.verdict, Verdict::Held { .. }));
    assert!(bench.is_led_by(&old, term).await);
}

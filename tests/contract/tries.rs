//! Runs that are tried again: a run that pauses is open on, whoever leads, and a later tick ends it.

use std::time::Duration;

use jiff::Timestamp;
use leader_core::__seam::{
    Claim, ClaimReply, Claimed, End, Found, Further, JobLedger, Overlap, Pausing, Settled, TakenOver, Want,
};
use leader_core::{Holder, Origin, Outcome, Ran};

use crate::bench::{Bench, COARSE, LONG, after, claim, end, holder};

on_each_store!(
    a_run_pauses_and_is_tried_again,
    a_try_is_refused_before_its_time,
    the_old_fence_counts_for_nothing_once_the_run_is_tried_again,
    a_repeated_end_changes_nothing,
    a_runner_that_comes_back_during_the_pause_settles_its_run,
    every_later_tick_settles_a_run_that_pauses,
    a_run_pauses_on_beside_another_where_that_is_allowed,
    a_run_by_hand_waits_for_a_run_that_pauses,
    the_next_leader_hears_what_pauses_and_what_runs,
    a_look_finds_a_silent_run_and_has_it_tried_again,
    a_look_says_how_long_a_run_may_be_silent,
    a_lost_run_without_tries_is_settled_by_a_look,
    a_lost_run_pauses_longer_each_time,
    a_dead_run_is_not_tried_again_after_a_later_tick,
    a_run_of_this_term_that_never_began_is_tried_again,
);

const INSTANT: Duration = Duration::from_millis(1);

fn again(name: &str, fence: u64, ran: Ran, error: &str, pause: Duration) -> End {
    End {
        error: error.to_owned(),
        again_in: Some(pause),
        ..end(name, fence, ran)
    }
}

fn retry(number: u64, tick: Timestamp, fence: u64) -> Claim {
    claim("job", number, tick, tick, Want::Retry { fence, tries: 1 })
}

fn look(number: u64, tick: Timestamp, further: Option<Further>) -> Claim {
    Claim {
        further,
        ..claim("job", number, tick, tick, Want::Look)
    }
}

#[allow(clippy::unnecessary_wraps, reason = "as a claim carries it")]
fn further(retries: u32, first: Duration) -> Option<Further> {
    let most = LONG;
    Some(Further { retries, first, most })
}

/// A leader with a run whose first try failed: its term, the tick, the fence of that try, and what it was told.
async fn failed(bench: &Bench, leader: &Holder, pause: Duration) -> (u64, Timestamp, u64, Timestamp) {
    let term = bench.acquire(leader).await;
    let cursor = bench.cursor(leader, term, "job").await;
    let tick = after(cursor, 1);
    let fence = bench.win(leader, term, claim("job", 1, cursor, tick, Want::Run)).await;
    let ends = vec![again("job", fence, Ran::Error, "a|b\n\"ü\" |", pause)];
    let [Settled::Again { at }] = bench.settle_all(ends).await[..] else {
        panic!("not taken");
    };
    tokio::time::sleep(COARSE).await;
    (term, tick, fence, at)
}

/// What a claim comes to for a leader that takes a silence of a millisecond for too long.
async fn impatient(bench: &Bench, leader: &Holder, term: u64, wish: Claim) -> ClaimReply {
    let mut batch = bench.batch(leader, term, vec![wish]);
    (batch.silence, batch.connected) = (Duration::ZERO, LONG);
    match bench.claim_batch(batch).await {
        Claimed::Yours(mut replies) => replies.pop().unwrap(),
        Claimed::NotYours => panic!("not yours"),
    }
}

fn count(ledger: &JobLedger, ran: Ran) -> u64 {
    ledger.counts.get(&Outcome::Ran(ran)).copied().unwrap_or_default()
}

async fn a_run_pauses_and_is_tried_again(bench: Bench) {
    let a = holder("a");
    let (term, tick, first, at) = failed(&bench, &a, INSTANT).await;
    let ledger = bench.ledger("job").await;
    let [open] = ledger.open.as_slice() else {
        panic!("{ledger:?}");
    };
    assert_eq!((open.tick, open.fence, open.tries), (tick, first, 1));
    assert_eq!((open.again_at, open.last), (Some(at), Some(Ran::Error)));
    assert_eq!(open.error, "a|b\n\"ü\" |");
    assert_eq!((ledger.pending(), ledger.decided(), ledger.records.len()), (1, 0, 0));

    let second = bench.win(&a, term, retry(2, tick, first)).await;
    assert!(second > first);
    assert_eq!(bench.win(&a, term, retry(2, tick, first)).await, second, "asked again");
    let other = Claim {
        alive: vec![second],
        ..retry(3, tick, first)
    };
    let other = bench.claim(&a, term, other).await;
    assert_eq!(other, ClaimReply::Passed, "it is tried once");
    let ledger = bench.ledger("job").await;
    assert_eq!((ledger.open[0].fence, ledger.open[0].tries), (second, 2));
    assert_eq!((ledger.open[0].again_at, ledger.open[0].error.as_str()), (None, ""));
    assert_eq!((ledger.pending(), ledger.decided()), (1, 0));

    assert_eq!(bench.settle("job", second, Ran::Ok).await, Settled::Yes);
    let ledger = bench.ledger("job").await;
    assert_eq!((ledger.pending(), ledger.decided(), count(&ledger, Ran::Ok)), (0, 1, 1));
    let [record] = ledger.records.as_slice() else {
        panic!("{ledger:?}");
    };
    assert_eq!((record.fence, record.tries, record.first), (second, 2, tick));
    // A pause is none of a run that has ended.
    assert_eq!(bench.claim(&a, term, retry(4, tick, second)).await, ClaimReply::Passed);
    assert_eq!(
        bench
            .settle_all(vec![again("job", second, Ran::Error, "", INSTANT)])
            .await,
        [Settled::Fenced]
    );
}

async fn a_try_is_refused_before_its_time(bench: Bench) {
    let a = holder("a");
    let (term, tick, first, _) = failed(&bench, &a, LONG).await;
    let ClaimReply::Early { left } = bench.claim(&a, term, retry(2, tick, first)).await else {
        panic!("too early");
    };
    assert!(left > LONG / 2 && left <= LONG, "{left:?}");
    let ledger = bench.ledger("job").await;
    assert_eq!(
        (ledger.open[0].fence, ledger.open[0].tries),
        (first, 1),
        "nothing is done"
    );
    // A run that is under way is not tried a second time.
    let running = bench
        .win(&a, term, claim("other", 3, tick, after(tick, 1), Want::Run))
        .await;
    let wish = claim(
        "other",
        4,
        tick,
        tick,
        Want::Retry {
            fence: running,
            tries: 1,
        },
    );
    assert_eq!(
        bench
            .claim(
                &a,
                term,
                Claim {
                    alive: vec![running],
                    ..wish
                }
            )
            .await,
        ClaimReply::Passed
    );
}

async fn the_old_fence_counts_for_nothing_once_the_run_is_tried_again(bench: Bench) {
    let a = holder("a");
    let (term, tick, first, _) = failed(&bench, &a, INSTANT).await;
    let second = bench.win(&a, term, retry(2, tick, first)).await;
    assert_eq!(bench.settle("job", first, Ran::Ok).await, Settled::Fenced);
    assert_eq!(
        bench
            .settle_all(vec![again("job", first, Ran::Error, "", INSTANT)])
            .await,
        [Settled::Fenced]
    );
    assert_eq!(bench.settle("job", second, Ran::Ok).await, Settled::Yes);
}

/// Its answer was lost.
async fn a_repeated_end_changes_nothing(bench: Bench) {
    let a = holder("a");
    let (_, _, first, at) = failed(&bench, &a, LONG).await;
    let repeated = bench
        .settle_all(vec![again("job", first, Ran::Panic, "other", INSTANT)])
        .await;
    assert_eq!(repeated, [Settled::Again { at }]);
    let ledger = bench.ledger("job").await;
    assert_eq!((ledger.open[0].last, ledger.open[0].tries), (Some(Ran::Error), 1));
}

async fn a_runner_that_comes_back_during_the_pause_settles_its_run(bench: Bench) {
    let a = holder("a");
    let (term, tick, first, _) = failed(&bench, &a, INSTANT).await;
    assert_eq!(bench.settle("job", first, Ran::Ok).await, Settled::Yes);
    assert_eq!(bench.claim(&a, term, retry(2, tick, first)).await, ClaimReply::Passed);
    let ledger = bench.ledger("job").await;
    assert_eq!((ledger.pending(), ledger.decided(), ledger.records[0].tries), (0, 1, 1));
}

async fn every_later_tick_settles_a_run_that_pauses(bench: Bench) {
    let a = holder("a");
    let mut number = 10;
    for (overlap, want) in [
        (Overlap::Skip, Want::Run),
        (Overlap::Wait, Want::Run),
        (Overlap::Replace, Want::Run),
        (Overlap::Skip, Want::Owed),
        (Overlap::Skip, Want::Settle),
    ] {
        let (term, tick, first, _) = failed(&bench, &a, LONG).await;
        number += 1;
        let next = Claim {
            overlap,
            ..claim("job", number, tick, after(tick, 1), want)
        };
        let reply = bench.claim(&a, term, next).await;
        let won = match reply {
            ClaimReply::Won { fence } => Some(fence),
            ClaimReply::Passed if want == Want::Settle => None,
            other => panic!("{overlap:?} {want:?}: {other:?}"),
        };
        let ledger = bench.ledger("job").await;
        let record = ledger.records.iter().find(|record| record.fence == first).unwrap();
        assert_eq!((record.outcome, record.tries), (Outcome::Ran(Ran::Error), 1));
        assert_eq!(record.error, "a|b\n\"ü\" |");
        assert_eq!(ledger.pending(), u64::from(won.is_some()), "{overlap:?} {want:?}");
        assert_eq!(
            bench.claim(&a, term, retry(number + 100, tick, first)).await,
            ClaimReply::Passed
        );
        if let Some(fence) = won {
            bench.settle("job", fence, Ran::Ok).await;
        }
        bench.release(&a, term, None).await;
    }
}

async fn a_run_pauses_on_beside_another_where_that_is_allowed(bench: Bench) {
    let a = holder("a");
    let (term, tick, first, _) = failed(&bench, &a, INSTANT).await;
    let next = Claim {
        overlap: Overlap::Allow,
        ..claim("job", 2, tick, after(tick, 1), Want::Run)
    };
    let beside = bench.win(&a, term, next).await;
    assert_eq!(bench.ledger("job").await.pending(), 2);
    let second = Claim {
        overlap: Overlap::Allow,
        alive: vec![beside],
        ..retry(3, tick, first)
    };
    let second = bench.win(&a, term, second).await;
    assert!(second > beside, "fences rise with each try");
    for fence in [second, beside] {
        assert_eq!(bench.settle("job", fence, Ran::Ok).await, Settled::Yes);
    }
    let ledger = bench.ledger("job").await;
    assert_eq!((ledger.pending(), ledger.decided()), (0, 2));
}

async fn a_run_by_hand_waits_for_a_run_that_pauses(bench: Bench) {
    let a = holder("a");
    let (term, tick, first, _) = failed(&bench, &a, INSTANT).await;
    let by_hand = claim("job", 2, tick, tick, Want::Extra(Origin::Manual));
    assert_eq!(bench.claim(&a, term, by_hand).await, ClaimReply::Busy);
    bench.win(&a, term, retry(3, tick, first)).await;
}

async fn the_next_leader_hears_what_pauses_and_what_runs(bench: Bench) {
    let (a, b) = (holder("a"), holder("b"));
    let (term, tick, first, at) = failed(&bench, &a, INSTANT).await;
    bench
        .win(&a, term, claim("runs", 2, tick, after(tick, 1), Want::Run))
        .await;
    bench.release(&a, term, None).await;
    let term = bench.acquire(&b).await;
    let TakenOver::Yours { open, .. } = bench.take_over(&b, term, &["job", "new", "runs"]).await else {
        panic!("not yours");
    };
    let pausing = vec![Pausing {
        fence: first,
        tick,
        tries: 1,
        again_at: at,
        ran: Ran::Error,
    }];
    assert_eq!(
        open[0],
        Found {
            silent_in: None,
            pausing
        }
    );
    assert_eq!(open[1], Found::default());
    assert!(open[2].silent_in.is_some() && open[2].pausing.is_empty(), "{open:?}");
    let second = bench.win(&b, term, retry(1, tick, first)).await;
    let ledger = bench.ledger("job").await;
    assert_eq!((ledger.open[0].instance.as_str(), ledger.open[0].tries), ("b", 2));
    assert_eq!(ledger.open[0].term, term);
    assert_eq!(bench.settle("job", second, Ran::Ok).await, Settled::Yes);
}

/// A's run, and B's term after A is gone.
async fn orphan(bench: &Bench) -> (Holder, u64, Timestamp, u64) {
    let (a, b) = (holder("a"), holder("b"));
    let term = bench.acquire(&a).await;
    let cursor = bench.cursor(&a, term, "job").await;
    let tick = after(cursor, 1);
    let fence = bench.win(&a, term, claim("job", 1, cursor, tick, Want::Run)).await;
    bench.release(&a, term, None).await;
    let term = bench.acquire(&b).await;
    tokio::time::sleep(COARSE).await;
    (b, term, tick, fence)
}

async fn a_look_finds_a_silent_run_and_has_it_tried_again(bench: Bench) {
    let (b, term, tick, first) = orphan(&bench).await;
    let ClaimReply::Looked(found) = impatient(&bench, &b, term, look(1, tick, further(1, INSTANT))).await else {
        panic!("looked");
    };
    let [pausing] = found.pausing[..] else {
        panic!("{found:?}");
    };
    assert_eq!((pausing.fence, pausing.tries, pausing.ran), (first, 1, Ran::Lost));
    assert_eq!(found.silent_in, None);
    let ledger = bench.ledger("job").await;
    assert_eq!((ledger.pending(), ledger.decided(), ledger.cursor), (1, 0, Some(tick)));
    tokio::time::sleep(COARSE).await;
    let second = bench.win(&b, term, retry(2, tick, first)).await;
    assert!(second > first);
    // The old process was frozen, and tells of it now.
    assert_eq!(bench.settle("job", first, Ran::Ok).await, Settled::Fenced);
    assert_eq!(bench.settle("job", second, Ran::Ok).await, Settled::Yes);
    let ledger = bench.ledger("job").await;
    assert_eq!((count(&ledger, Ran::Ok), count(&ledger, Ran::Lost)), (1, 0));
    assert_eq!(ledger.records[0].tries, 2);
}

async fn a_look_says_how_long_a_run_may_be_silent(bench: Bench) {
    let (b, term, tick, fence) = orphan(&bench).await;
    for (connected, alive) in [(LONG, false), (Duration::ZERO, false), (LONG, true)] {
        let wish = Claim {
            alive: if alive { vec![fence] } else { Vec::new() },
            ..look(1, tick, further(1, INSTANT))
        };
        let mut batch = bench.batch(&b, term, vec![wish]);
        batch.connected = connected;
        let Claimed::Yours(replies) = bench.claim_batch(batch).await else {
            panic!("not yours");
        };
        let [ClaimReply::Looked(found)] = &replies[..] else {
            panic!("{replies:?}");
        };
        assert!(found.pausing.is_empty(), "{found:?}");
        match found.silent_in {
            Some(left) => assert!(!alive && left > LONG / 2 && left <= LONG, "{left:?}"),
            None => assert!(alive),
        }
    }
    assert_eq!(bench.ledger("job").await.open.len(), 1);
    let unheard_of = claim("never", 2, tick, tick, Want::Look);
    assert_eq!(
        bench.claim(&b, term, unheard_of).await,
        ClaimReply::Looked(Found::default())
    );
}

async fn a_lost_run_without_tries_is_settled_by_a_look(bench: Bench) {
    for (n, tries) in [None, further(0, INSTANT)].into_iter().enumerate() {
        let (b, term, tick, _) = orphan(&bench).await;
        let looked = impatient(&bench, &b, term, look(1, tick, tries)).await;
        assert_eq!(looked, ClaimReply::Looked(Found::default()));
        let ledger = bench.ledger("job").await;
        assert_eq!((count(&ledger, Ran::Lost), ledger.pending()), (n as u64 + 1, 0));
        assert_eq!((ledger.records[0].tries, ledger.cursor), (1, Some(tick)));
        bench.release(&b, term, None).await;
    }
}

async fn a_lost_run_pauses_longer_each_time(bench: Bench) {
    let (mut leader, mut term, tick, mut fence) = orphan(&bench).await;
    let mut number = 1;
    for (tries, pause) in [(1, 10), (2, 20), (3, 25)] {
        let most = Duration::from_millis(25);
        let first = Duration::from_millis(10);
        let further = Some(Further {
            retries: 3,
            first,
            most,
        });
        let looked = impatient(&bench, &leader, term, look(number, tick, further)).await;
        let ClaimReply::Looked(found) = looked else {
            panic!("{looked:?}");
        };
        assert_eq!((found.pausing[0].tries, found.pausing[0].ran), (tries, Ran::Lost));
        tokio::time::sleep(Duration::from_millis(pause) + COARSE).await;
        fence = bench.win(&leader, term, retry(number + 1, tick, fence)).await;
        let again_at = found.pausing[0].again_at;
        assert!(bench.ledger("job").await.open[0].claimed_at >= again_at);
        bench.release(&leader, term, None).await;
        leader = holder(["c", "d", "e"][tries as usize - 1]);
        term = bench.acquire(&leader).await;
        number += 2;
        tokio::time::sleep(COARSE).await;
    }
    // The fourth was the last.
    let looked = impatient(&bench, &leader, term, look(number, tick, further(3, INSTANT))).await;
    assert_eq!(looked, ClaimReply::Looked(Found::default()));
    let ledger = bench.ledger("job").await;
    assert_eq!((ledger.records[0].fence, ledger.records[0].tries), (fence, 4));
}

async fn a_dead_run_is_not_tried_again_after_a_later_tick(bench: Bench) {
    let (b, term, tick, fence) = orphan(&bench).await;
    // While it might have been alive, the next tick was decided.
    let next = claim("job", 1, tick, after(tick, 1), Want::Run);
    assert_eq!(bench.claim(&b, term, next).await, ClaimReply::Overlapped);
    let looked = impatient(&bench, &b, term, look(2, tick, further(1, INSTANT))).await;
    assert_eq!(looked, ClaimReply::Looked(Found::default()));
    let ledger = bench.ledger("job").await;
    assert_eq!((count(&ledger, Ran::Lost), ledger.pending()), (1, 0));
    assert_eq!(
        ledger
            .records
            .iter()
            .find(|record| record.fence == fence)
            .unwrap()
            .tries,
        1
    );
}

async fn a_run_of_this_term_that_never_began_is_tried_again(bench: Bench) {
    let a = holder("a");
    let term = bench.acquire(&a).await;
    let cursor = bench.cursor(&a, term, "job").await;
    let tick = after(cursor, 1);
    let first = bench.win(&a, term, claim("job", 1, cursor, tick, Want::Run)).await;
    let ClaimReply::Looked(found) = bench.claim(&a, term, look(2, tick, further(1, INSTANT))).await else {
        panic!("looked");
    };
    assert_eq!((found.pausing[0].fence, found.pausing[0].ran), (first, Ran::NotStarted));
    tokio::time::sleep(COARSE).await;
    bench.win(&a, term, retry(3, tick, first)).await;
}

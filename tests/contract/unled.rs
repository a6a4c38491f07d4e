//! Jobs whose ticks need no leader: whoever comes first wins, and trusts a run for as long as it gives signs of life.

use std::time::Duration;

use leader_core::__seam::{
    Beats, Claim, ClaimBatch, ClaimReply, Claimed, Found, Further, Pausing, Settled, TakenOver, UNLED, Want,
};
use leader_core::{Origin, Outcome, Ran};

use crate::bench::{Bench, COARSE, LONG, after, claim, holder, process};

on_each_store!(
    a_tick_is_won_by_whoever_comes_first,
    a_new_job_starts_now_whoever_asks,
    a_leader_and_its_lease_have_no_say,
    processes_are_told_apart_by_their_holder_and_not_by_their_numbers,
    a_claim_that_is_given_up_is_found_by_its_own_process_alone,
    a_run_of_an_engine_that_is_gone_is_lost_by_its_silence,
    an_expired_run_is_taken_again_under_a_higher_fence,
    a_sign_of_life_says_whose_the_run_is,
    who_was_cut_off_may_still_tell_what_is_dead,
    who_was_cut_off_cannot_tell_that_a_leaders_run_is_dead,
    a_run_that_lives_is_left_alone,
    the_next_tick_settles_what_is_dead,
);

const SILENCE: Duration = Duration::from_millis(20);

fn again() -> Further {
    Further {
        retries: 1,
        first: Duration::from_millis(1),
        most: LONG,
    }
}

/// A batch that judges silences by a short one.
fn impatient(bench: &Bench, instance: &str, claim: Claim) -> ClaimBatch {
    ClaimBatch {
        silence: SILENCE,
        ..bench.batch(&holder(instance), UNLED, vec![claim])
    }
}

async fn reply(bench: &Bench, batch: ClaimBatch) -> ClaimReply {
    match bench.claim_batch(batch).await {
        Claimed::Yours(mut replies) => replies.pop().unwrap(),
        Claimed::NotYours => panic!("it needs no lease"),
    }
}

async fn a_tick_is_won_by_whoever_comes_first(bench: Bench) {
    let cursor = bench.cursor(&holder("a"), UNLED, "job").await;
    assert_eq!(bench.cursor(&holder("b"), UNLED, "job").await, cursor);
    let tick = after(cursor, 1);
    let fence = bench
        .win(&holder("b"), UNLED, claim("job", 1, cursor, tick, Want::Run))
        .await;
    for other in ["a", "c"] {
        let lost = bench
            .claim(&holder(other), UNLED, claim("job", 1, cursor, tick, Want::Run))
            .await;
        let moved = ClaimReply::Moved {
            cursor: tick,
            waiting: None,
        };
        assert_eq!(lost, moved, "{other}");
    }
    let ledger = bench.ledger("job").await;
    assert_eq!((ledger.open.len(), ledger.cursor), (1, Some(tick)));
    let run = &ledger.open[0];
    assert_eq!((run.fence, run.term, run.instance.as_str()), (fence, UNLED, "b"));
    assert_eq!(bench.settle("job", fence, Ran::Ok).await, Settled::Yes);
    let ledger = bench.ledger("job").await;
    assert_eq!(
        (
            ledger.counts.get(&Outcome::Ran(Ran::Ok)),
            ledger.decided(),
            ledger.pending()
        ),
        (Some(&1), 1, 0)
    );
}

async fn a_new_job_starts_now_whoever_asks(bench: Bench) {
    let TakenOver::Yours { now, cursors, .. } = bench.take_over(&holder("a"), UNLED, &["new"]).await else {
        panic!("it needs no lease");
    };
    assert_eq!(cursors, [now]);
    let ledger = bench.ledger("new").await;
    assert_eq!((ledger.since, ledger.cursor), (Some(now), Some(now)));
    assert!(ledger.schedule.is_some());
}

async fn a_leader_and_its_lease_have_no_say(bench: Bench) {
    let term = bench.acquire(&holder("a")).await;
    let cursor = bench.cursor(&holder("b"), UNLED, "job").await;
    let tick = after(cursor, 1);
    let fence = bench
        .win(&holder("b"), UNLED, claim("job", 1, cursor, tick, Want::Run))
        .await;
    assert!(fence > term, "they have one counter");
    assert!(bench.is_led_by(&holder("a"), term).await);
    // What needs the lease needs it on.
    let led = bench.claim_batch(bench.batch(&holder("b"), term, Vec::new())).await;
    assert_eq!(led, Claimed::NotYours);
    assert_eq!(bench.take_over(&holder("b"), term, &["job"]).await, TakenOver::NotYours);
}

/// Every process counts its claims from one.
async fn processes_are_told_apart_by_their_holder_and_not_by_their_numbers(bench: Bench) {
    let (one, twin) = (process("a", 1), process("a", 2));
    let cursor = bench.cursor(&one, UNLED, "job").await;
    let tick = after(cursor, 1);
    let fence = bench.win(&one, UNLED, claim("job", 1, cursor, tick, Want::Run)).await;
    let same = claim("job", 1, cursor, tick, Want::Run);
    assert!(matches!(
        bench.claim(&twin, UNLED, same.clone()).await,
        ClaimReply::Moved { .. }
    ));
    // Its answer was lost.
    assert_eq!(bench.claim(&one, UNLED, same).await, ClaimReply::Won { fence });
    let next = claim("job", 2, tick, after(tick, 1), Want::Run);
    assert_eq!(bench.claim(&twin, UNLED, next).await, ClaimReply::Overlapped);
}

async fn a_claim_that_is_given_up_is_found_by_its_own_process_alone(bench: Bench) {
    let cursor = bench.cursor(&holder("a"), UNLED, "job").await;
    let tick = after(cursor, 1);
    bench
        .win(&holder("a"), UNLED, claim("job", 1, cursor, tick, Want::Run))
        .await;
    let other = claim("job", 5, tick, after(tick, 1), Want::Run);
    assert_eq!(bench.claim(&holder("b"), UNLED, other).await, ClaimReply::Overlapped);
    let own = claim("job", 2, after(tick, 1), after(tick, 2), Want::Run);
    bench.win(&holder("a"), UNLED, own).await;
    let ledger = bench.ledger("job").await;
    assert_eq!(ledger.counts.get(&Outcome::Ran(Ran::NotStarted)), Some(&1));
}

/// The engine that has claimed it has panicked: its body may have begun, and may still hold a thread.
async fn a_run_of_an_engine_that_is_gone_is_lost_by_its_silence(bench: Bench) {
    let a = holder("a");
    let cursor = bench.cursor(&a, UNLED, "job").await;
    let tick = after(cursor, 1);
    let fence = bench.win(&a, UNLED, claim("job", 7, cursor, tick, Want::Run)).await;
    let look = |number, silence| ClaimBatch {
        claiming: number,
        first: 8,
        silence,
        ..bench.batch(&a, UNLED, vec![claim("job", number, tick, tick, Want::Look)])
    };
    let ClaimReply::Looked(found) = reply(&bench, look(8, LONG)).await else {
        panic!("not looked");
    };
    assert!(found.silent_in.is_some_and(|left| left > COARSE), "{found:?}");
    assert_eq!(bench.ledger("job").await.open.len(), 1);
    tokio::time::sleep(2 * SILENCE).await;
    let looked = reply(&bench, look(9, SILENCE)).await;
    assert_eq!(looked, ClaimReply::Looked(Found::default()));
    let ledger = bench.ledger("job").await;
    assert_eq!(ledger.counts, [(Outcome::Ran(Ran::Lost), 1)].into());
    assert_eq!(bench.settle("job", fence, Ran::Ok).await, Settled::Fenced);
}

async fn an_expired_run_is_taken_again_under_a_higher_fence(bench: Bench) {
    let cursor = bench.cursor(&holder("a"), UNLED, "job").await;
    let tick = after(cursor, 1);
    let old = bench
        .win(&holder("a"), UNLED, claim("job", 1, cursor, tick, Want::Run))
        .await;
    let look = |number| Claim {
        further: Some(again()),
        ..claim("job", number, tick, tick, Want::Look)
    };
    let ClaimReply::Looked(found) = bench.claim(&holder("b"), UNLED, look(1)).await else {
        panic!("not looked");
    };
    assert!(found.silent_in.is_some_and(|left| left > LONG / 2) && found.pausing.is_empty());
    tokio::time::sleep(SILENCE + COARSE).await;
    let ClaimReply::Looked(Found {
        silent_in: None,
        pausing,
    }) = reply(&bench, impatient(&bench, "b", look(2))).await
    else {
        panic!("not found dead");
    };
    let [
        Pausing {
            fence,
            tries: 1,
            ran: Ran::Lost,
            ..
        },
    ] = pausing.as_slice()
    else {
        panic!("{pausing:?}");
    };
    assert_eq!(*fence, old);
    tokio::time::sleep(COARSE).await;
    let retry = claim("job", 3, tick, tick, Want::Retry { fence: old, tries: 1 });
    let new = bench.win(&holder("b"), UNLED, retry.clone()).await;
    assert!(new > old);
    assert_eq!(
        bench.claim(&holder("c"), UNLED, retry).await,
        ClaimReply::Passed,
        "once"
    );
    assert_eq!(bench.settle("job", old, Ran::Ok).await, Settled::Fenced);
    assert_eq!(bench.settle("job", new, Ran::Ok).await, Settled::Yes);
    let ledger = bench.ledger("job").await;
    assert_eq!((ledger.records.len(), ledger.decided()), (1, 1));
    let record = &ledger.records[0];
    assert_eq!((record.fence, record.tries, record.instance.as_str()), (new, 2, "b"));
}

async fn a_sign_of_life_says_whose_the_run_is(bench: Bench) {
    let cursor = bench.cursor(&holder("a"), UNLED, "job").await;
    let tick = after(cursor, 1);
    let fence = bench
        .win(&holder("a"), UNLED, claim("job", 1, cursor, tick, Want::Run))
        .await;
    let beats = |fences: &[u64]| Beats {
        group: bench.group.clone(),
        fences: fences.to_vec(),
    };
    assert!(bench.told(beats(&[fence])).await.gone.is_empty());
    tokio::time::sleep(SILENCE + COARSE).await;
    let look = Claim {
        further: Some(again()),
        ..claim("job", 1, tick, tick, Want::Look)
    };
    reply(&bench, impatient(&bench, "b", look)).await;
    let gone = bench.told(beats(&[fence, fence + 7])).await.gone;
    let gone: Vec<_> = gone.iter().map(|run| (run.group.clone(), run.fence)).collect();
    assert_eq!(gone, [(bench.group.clone(), fence), (bench.group.clone(), fence + 7)]);
}

/// A leader must have been connected for the whole silence, because its predecessor's body may go on; a run of its own trust does not.
async fn who_was_cut_off_may_still_tell_what_is_dead(bench: Bench) {
    let term = bench.acquire(&holder("a")).await;
    let cursor = bench.cursor(&holder("a"), term, "led").await;
    // Read a moment later: a cursor behind the store's would be refused.
    let cursor = bench.cursor(&holder("a"), UNLED, "unled").await.max(cursor);
    let tick = after(cursor, 1);
    bench
        .win(&holder("b"), UNLED, claim("unled", 1, cursor, tick, Want::Run))
        .await;
    bench
        .win(&holder("a"), term, claim("led", 1, cursor, tick, Want::Run))
        .await;
    let next = bench.acquire(&holder("a")).await;
    tokio::time::sleep(SILENCE + COARSE).await;
    let later = |name| claim(name, 9, tick, after(tick, 1), Want::Run);
    let led = ClaimBatch {
        silence: SILENCE,
        ..bench.batch(&holder("a"), next, vec![later("led")])
    };
    assert_eq!(reply(&bench, led).await, ClaimReply::Overlapped);
    let won = reply(&bench, impatient(&bench, "c", later("unled"))).await;
    assert!(matches!(won, ClaimReply::Won { .. }), "{won:?}");
}

/// While a job comes to need no leader, the runs of leaders are open beside the others: those are told from before they were sent, and
/// may go on longer than anybody's trust.
async fn who_was_cut_off_cannot_tell_that_a_leaders_run_is_dead(bench: Bench) {
    let a = holder("a");
    let term = bench.acquire(&a).await;
    let cursor = bench.cursor(&a, term, "job").await;
    let tick = after(cursor, 1);
    let fence = bench.win(&a, term, claim("job", 1, cursor, tick, Want::Run)).await;
    tokio::time::sleep(SILENCE + COARSE).await;
    let look = || claim("job", 1, tick, tick, Want::Look);
    let next = |number, at| claim("job", number, after(tick, at), after(tick, at + 1), Want::Run);
    let found = reply(&bench, impatient(&bench, "b", look())).await;
    assert!(
        matches!(&found, ClaimReply::Looked(found) if found.silent_in == Some(SILENCE)),
        "{found:?}"
    );
    assert_eq!(
        reply(&bench, impatient(&bench, "b", next(2, 0))).await,
        ClaimReply::Overlapped
    );
    let connected = ClaimBatch {
        connected: SILENCE,
        ..impatient(&bench, "b", next(3, 1))
    };
    let won = reply(&bench, connected).await;
    assert!(matches!(won, ClaimReply::Won { .. }), "{won:?}");
    assert_eq!(bench.settle("job", fence, Ran::Ok).await, Settled::Fenced);
}

async fn a_run_that_lives_is_left_alone(bench: Bench) {
    let cursor = bench.cursor(&holder("a"), UNLED, "job").await;
    let tick = after(cursor, 1);
    let fence = bench
        .win(&holder("a"), UNLED, claim("job", 1, cursor, tick, Want::Run))
        .await;
    tokio::time::sleep(SILENCE + COARSE).await;
    bench.beat(&[fence]).await;
    let next = ClaimBatch {
        silence: LONG,
        ..impatient(&bench, "b", claim("job", 1, tick, after(tick, 1), Want::Run))
    };
    assert_eq!(reply(&bench, next).await, ClaimReply::Overlapped);
    assert_eq!(bench.settle("job", fence, Ran::Ok).await, Settled::Yes);
}

async fn the_next_tick_settles_what_is_dead(bench: Bench) {
    let cursor = bench.cursor(&holder("a"), UNLED, "job").await;
    let tick = after(cursor, 1);
    let old = bench
        .win(&holder("a"), UNLED, claim("job", 1, cursor, tick, Want::Run))
        .await;
    tokio::time::sleep(SILENCE + COARSE).await;
    let next = Claim {
        further: Some(again()),
        ..claim("job", 1, tick, after(tick, 1), Want::Run)
    };
    let won = reply(&bench, impatient(&bench, "b", next)).await;
    assert!(matches!(won, ClaimReply::Won { fence } if fence > old), "{won:?}");
    let ledger = bench.ledger("job").await;
    // The time for another try of the first is over.
    assert_eq!(ledger.counts.get(&Outcome::Ran(Ran::Lost)), Some(&1));
    assert_eq!((ledger.open.len(), ledger.open[0].origin), (1, Origin::Schedule));
    assert_eq!(bench.settle("job", old, Ran::Ok).await, Settled::Fenced);
}

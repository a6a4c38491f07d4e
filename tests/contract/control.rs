//! Control: pauses and requests, judged in the step that would begin a run.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use leader_core::__seam::{
    ActRequest, Acted, Claim, ClaimReply, Deed, Gap, GroupControl, KEPT_ACTS, KEPT_ENDED, Meets, OPEN_REQUESTS,
    Overlap, Renewed, TakenOver, Want,
};
use leader_core::{Holder, MissedReason, Origin, Outcome, Ran};
use leader_tests::eventually;

use crate::bench::{BOUND, Bench, after, claim, holder, job, passed};
use crate::heard::Heard;

on_each_store!(
    an_act_is_kept_numbered_and_told,
    a_pause_that_skips_settles_what_falls_due_as_paused,
    a_span_over_the_beginning_of_a_pause_is_settled_by_its_parts,
    a_pause_that_owes_leaves_everything_open,
    a_pause_ends_by_itself,
    what_fell_due_in_a_pause_is_paused_after_its_end,
    a_span_over_pauses_that_are_over_is_settled_by_its_parts,
    so_many_ended_pauses_are_kept,
    of_two_pauses_the_one_that_owes_counts,
    a_tick_that_waits_is_paused_or_stays,
    a_trigger_is_met_once_whatever_answer_is_lost,
    a_span_is_run_in_order_one_after_another_and_by_whoever_leads,
    runs_outside_the_schedule_respect_others,
    requests_are_bounded_and_can_be_withdrawn,
    what_cannot_be_done_changes_nothing,
    only_the_newest_acts_are_kept,
);

async fn act(bench: &Bench, on: Option<&str>, deed: Deed) -> Acted {
    let request = ActRequest {
        group: bench.group.clone(),
        job: on.map(job),
        deed,
        by: "ann@example.org".to_owned(),
        reason: "a | reason".to_owned(),
    };
    bench.store.act(request).await.unwrap()
}

async fn done(bench: &Bench, on: Option<&str>, deed: Deed) -> (u64, Timestamp) {
    match act(bench, on, deed).await {
        Acted::Done { number, at, .. } => (number, at),
        other => panic!("not done: {other:?}"),
    }
}

async fn state(bench: &Bench) -> GroupControl {
    bench.store.control(&bench.group).await.unwrap()
}

/// A pause from now on: its beginning.
async fn pause(bench: &Bench, on: Option<&str>, gap: Gap) -> Timestamp {
    done(bench, on, Deed::pause(gap, None)).await.1
}

async fn led(bench: &Bench) -> (Holder, u64, Timestamp) {
    let a = holder("a");
    let term = bench.acquire(&a).await;
    let cursor = bench.cursor(&a, term, "job").await;
    (a, term, cursor)
}

fn met(name: &str, number: u64, tick: Timestamp, origin: Origin, request: u64, more: bool) -> Claim {
    Claim {
        meets: Some(Meets { request, more }),
        ..claim(name, number, tick, tick, Want::Extra(origin))
    }
}

async fn an_act_is_kept_numbered_and_told(bench: Bench) {
    let (a, term, _) = led(&bench).await;
    assert_eq!(state(&bench).await, GroupControl::default());
    let number = |renewed| match renewed {
        Renewed::Yes { control, .. } => control,
        Renewed::NotYours { .. } => panic!("not led"),
    };
    assert_eq!(number(bench.renew(&a, term).await), 0);
    let ears = Arc::new(Heard::default());
    let (store, told) = (Arc::clone(&bench.store), Arc::clone(&ears));
    let listening = tokio::spawn(async move { store.listen(told).await });
    let (first, since) = done(&bench, Some("job"), Deed::pause(Gap::Skip, None)).await;
    let read = state(&bench).await;
    assert_eq!((read.number, read.pauses.len(), read.acts.len()), (first, 1, 1));
    let pause = &read.pauses[0];
    assert_eq!(
        (pause.job.clone(), pause.since, pause.until),
        (Some(job("job")), since, None)
    );
    assert_eq!(
        (pause.by.as_str(), pause.reason.as_str()),
        ("ann@example.org", "a | reason")
    );
    let replaced = act(&bench, Some("job"), Deed::pause(Gap::Owed, None)).await;
    let Acted::Done {
        number: second,
        before: Some(before),
        ..
    } = replaced
    else {
        panic!("{replaced:?}")
    };
    assert_eq!(&before, pause);
    assert!(second > first);
    assert_eq!(number(bench.renew(&a, term).await), second);
    assert!(matches!(
        bench.take_over(&a, term, &["job"]).await,
        TakenOver::Yours { control, .. } if control == second
    ));
    eventually(BOUND, "an act is heard", || async {
        done(&bench, None, Deed::pause(Gap::Skip, None)).await;
        !ears.controlled.lock().unwrap().is_empty()
    })
    .await;
    listening.abort();
    let acts = state(&bench).await.acts;
    let (group, heard) = ears.controlled.lock().unwrap()[0].clone();
    assert_eq!(group, "cleanup");
    assert!(acts.iter().any(|act| act.number == heard));
    assert!(
        acts.windows(2).all(|pair| pair[0].number > pair[1].number),
        "newest first"
    );
    assert_eq!(acts[0].job, None);
    let Acted::Done {
        before: Some(ended), ..
    } = act(&bench, Some("job"), Deed::Resume).await
    else {
        panic!("it was paused")
    };
    assert_eq!((ended.number, ended.gap), (second, Gap::Owed));
    assert_eq!(act(&bench, Some("job"), Deed::Resume).await, Acted::Nothing);
}

async fn a_pause_that_skips_settles_what_falls_due_as_paused(bench: Bench) {
    let (a, term, cursor) = led(&bench).await;
    let other = bench.cursor(&a, term, "other").await;
    tokio::time::sleep(Duration::from_millis(10)).await;
    let since = pause(&bench, Some("job"), Gap::Skip).await;
    // The leader has not heard: it claims as ever. The first tick fell due before the pause, the others did not.
    let early = since - SignedDuration::from_millis(1);
    let fence = bench.win(&a, term, claim("job", 1, cursor, early, Want::Run)).await;
    bench.settle("job", fence, Ran::Ok).await;
    let cursor = early;
    let ticks = [since, after(since, 1), after(since, 2)];
    let claims = vec![
        claim("job", 2, cursor, ticks[0], Want::Run),
        claim("job", 3, ticks[0], ticks[1], Want::Owed),
        claim("other", 4, other, after(since, 1), Want::Run),
    ];
    let replies = bench.claim_all(&a, term, claims.clone()).await;
    assert_eq!(replies[..2], vec![ClaimReply::Paused { since }; 2]);
    assert!(matches!(replies[2], ClaimReply::Won { .. }), "another job runs");
    // The answer was lost: nothing is settled twice.
    assert!(matches!(
        bench.claim_all(&a, term, claims).await[0],
        ClaimReply::Moved { cursor, .. } if cursor == ticks[1]
    ));
    let settle = Claim {
        passed: vec![passed(MissedReason::Skipped, after(since, 2), after(since, 4), 3)],
        ..claim("job", 5, ticks[1], after(since, 4), Want::Settle)
    };
    assert_eq!(bench.claim(&a, term, settle).await, ClaimReply::Paused { since });
    let ledger = bench.ledger("job").await;
    assert_eq!(ledger.counts.get(&Outcome::Paused), Some(&5));
    assert_eq!(ledger.cursor, Some(after(since, 4)));
    assert_eq!(ledger.counts.get(&Outcome::Missed(MissedReason::Skipped)), None);
    done(&bench, Some("job"), Deed::Resume).await;
    bench
        .win(&a, term, claim("job", 6, after(since, 4), after(since, 5), Want::Run))
        .await;
}

async fn a_span_over_the_beginning_of_a_pause_is_settled_by_its_parts(bench: Bench) {
    let (a, term, cursor) = led(&bench).await;
    tokio::time::sleep(Duration::from_millis(20)).await;
    let since = pause(&bench, None, Gap::Skip).await;
    let ms = |ms| since + SignedDuration::from_millis(ms);
    assert!(ms(-10) > cursor);
    let whole = Claim {
        passed: vec![passed(MissedReason::Coalesced, ms(-10), ms(10), 21)],
        ..claim("job", 1, cursor, ms(11), Want::Owed)
    };
    let behind = claim("job", 2, ms(11), ms(12), Want::Run);
    // Neither is done: the later one must not overtake.
    let replies = bench.claim_all(&a, term, vec![whole, behind]).await;
    assert_eq!(replies, vec![ClaimReply::Split { since }; 2]);
    assert_eq!(bench.ledger("job").await.decided(), 0);
    let parts = Claim {
        passed: vec![
            passed(MissedReason::Coalesced, ms(-10), ms(-1), 10),
            passed(MissedReason::Coalesced, since, ms(10), 11),
        ],
        ..claim("job", 3, cursor, ms(11), Want::Owed)
    };
    assert_eq!(bench.claim(&a, term, parts).await, ClaimReply::Paused { since });
    let ledger = bench.ledger("job").await;
    assert_eq!(ledger.counts.get(&Outcome::Paused), Some(&12));
    assert_eq!(ledger.counts.get(&Outcome::Missed(MissedReason::Coalesced)), Some(&10));
}

async fn a_pause_that_owes_leaves_everything_open(bench: Bench) {
    let (a, term, cursor) = led(&bench).await;
    pause(&bench, Some("job"), Gap::Owed).await;
    let next = after(cursor, 60);
    let settle = Claim {
        passed: vec![passed(MissedReason::Skipped, next, next, 1)],
        ..claim("job", 3, cursor, next, Want::Settle)
    };
    let claims = vec![
        claim("job", 1, cursor, next, Want::Run),
        claim("job", 2, next, after(next, 1), Want::Run),
        settle,
    ];
    let replies = bench.claim_all(&a, term, claims).await;
    assert_eq!(replies, vec![ClaimReply::Held { until: None }; 3]);
    let ledger = bench.ledger("job").await;
    assert_eq!(
        (ledger.decided(), ledger.pending(), ledger.cursor),
        (0, 0, Some(cursor))
    );
    done(&bench, Some("job"), Deed::Resume).await;
    bench.win(&a, term, claim("job", 4, cursor, next, Want::Owed)).await;
}

async fn a_pause_ends_by_itself(bench: Bench) {
    let (a, term, cursor) = led(&bench).await;
    let (_, began) = done(&bench, None, Deed::pause(Gap::Skip, None)).await;
    let until = began + SignedDuration::from_millis(300);
    done(&bench, None, Deed::pause(Gap::Owed, Some(until))).await;
    let held = bench
        .claim(&a, term, claim("job", 1, cursor, after(cursor, 60), Want::Run))
        .await;
    assert_eq!(held, ClaimReply::Held { until: Some(until) });
    let tried = std::sync::atomic::AtomicU64::new(1);
    eventually(BOUND, "the pause has ended", || async {
        let number = tried.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 1;
        let reply = bench
            .claim(&a, term, claim("job", number, cursor, after(cursor, 60), Want::Run))
            .await;
        matches!(reply, ClaimReply::Won { .. })
    })
    .await;
    let read = state(&bench).await;
    assert!(read.pauses.is_empty(), "{read:?}");
    // It is no pause any more that could be ended.
    assert_eq!(act(&bench, None, Deed::Resume).await, Acted::Nothing);
}

/// Nobody led during the pause: it is over when its ticks are decided.
async fn what_fell_due_in_a_pause_is_paused_after_its_end(bench: Bench) {
    let (a, term, cursor) = led(&bench).await;
    tokio::time::sleep(Duration::from_millis(20)).await;
    let since = pause(&bench, Some("job"), Gap::Skip).await;
    tokio::time::sleep(Duration::from_millis(20)).await;
    // It is replaced by one that ends by itself.
    let began = pause(&bench, Some("job"), Gap::Skip).await;
    let until = began + SignedDuration::from_millis(50);
    done(&bench, Some("job"), Deed::pause(Gap::Skip, Some(until))).await;
    eventually(BOUND, "the pause is over", || async {
        state(&bench).await.pauses.is_empty()
    })
    .await;
    let ended = state(&bench).await.ended;
    assert!(ended.iter().any(|pause| pause.until == Some(until)), "{ended:?}");
    assert!(
        ended.windows(2).all(|pair| pair[0].number > pair[1].number),
        "newest first"
    );
    let tick = |ms| since + SignedDuration::from_millis(ms);
    let settle = Claim {
        passed: vec![passed(MissedReason::Skipped, tick(-2), tick(-1), 2)],
        ..claim("job", 1, cursor, tick(-1), Want::Settle)
    };
    assert_eq!(bench.claim(&a, term, settle).await, ClaimReply::Passed);
    let reply = bench
        .claim(&a, term, claim("job", 2, tick(-1), since, Want::Owed))
        .await;
    assert_eq!(reply, ClaimReply::Paused { since });
    // Spans of it are, by whatever claim they are settled.
    let reply = bench
        .claim(
            &a,
            term,
            Claim {
                passed: vec![passed(MissedReason::Coalesced, tick(1), tick(2), 2)],
                ..claim("job", 3, since, until, Want::Owed)
            },
        )
        .await;
    assert!(matches!(reply, ClaimReply::Won { .. }), "the end is outside: {reply:?}");
    let ledger = bench.ledger("job").await;
    assert_eq!(ledger.counts.get(&Outcome::Paused), Some(&3));
    assert_eq!(ledger.counts.get(&Outcome::Missed(MissedReason::Skipped)), Some(&2));
    assert_eq!(ledger.counts.get(&Outcome::Missed(MissedReason::Coalesced)), None);
    // Another job was never paused.
    let other = bench.cursor(&a, term, "other").await;
    let at = other.max(tick(1));
    let free = bench.claim(&a, term, claim("other", 4, cursor, at, Want::Owed)).await;
    assert!(
        matches!(free, ClaimReply::Won { .. } | ClaimReply::Moved { .. }),
        "{free:?}"
    );
    // One that owes leaves nothing behind.
    let kept = state(&bench).await.ended.len();
    pause(&bench, Some("job"), Gap::Owed).await;
    done(&bench, Some("job"), Deed::Resume).await;
    assert_eq!(state(&bench).await.ended.len(), kept);
}

async fn a_span_over_pauses_that_are_over_is_settled_by_its_parts(bench: Bench) {
    let (a, term, cursor) = led(&bench).await;
    tokio::time::sleep(Duration::from_millis(20)).await;
    let since = pause(&bench, None, Gap::Skip).await;
    tokio::time::sleep(Duration::from_millis(20)).await;
    let (_, until) = done(&bench, None, Deed::Resume).await;
    let ms = |at: Timestamp, ms| at + SignedDuration::from_millis(ms);
    let spans = [
        (ms(since, -10), ms(since, -1)),
        (since, ms(until, -1)),
        (until, ms(until, 10)),
    ];
    let whole = |first: usize, last: usize, number| Claim {
        passed: vec![passed(MissedReason::Coalesced, spans[first].0, spans[last].1, 9)],
        ..claim("job", number, cursor, ms(until, 11), Want::Owed)
    };
    for (number, (first, last)) in (1..).zip([(0, 2), (0, 1), (1, 2)]) {
        let at = spans[last].0;
        assert_eq!(
            bench.claim(&a, term, whole(first, last, number)).await,
            ClaimReply::Split {
                since: if last == 2 && first == 0 { since } else { at }
            }
        );
    }
    let parts = Claim {
        passed: (1..)
            .zip(spans)
            .map(|(count, (first, last))| passed(MissedReason::Coalesced, first, last, count))
            .collect(),
        ..whole(0, 2, 9)
    };
    bench.win(&a, term, parts).await;
    let ledger = bench.ledger("job").await;
    assert_eq!(ledger.counts.get(&Outcome::Paused), Some(&2));
    assert_eq!(ledger.counts.get(&Outcome::Missed(MissedReason::Coalesced)), Some(&4));
}

async fn so_many_ended_pauses_are_kept(bench: Bench) {
    let mut numbers = Vec::new();
    for _ in 0..KEPT_ENDED + 3 {
        numbers.push(done(&bench, Some("job"), Deed::pause(Gap::Skip, None)).await.0);
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let ended: Vec<_> = state(&bench).await.ended.iter().map(|pause| pause.number).collect();
    let newest: Vec<_> = numbers.iter().rev().skip(1).take(KEPT_ENDED).copied().collect();
    assert_eq!(ended, newest);
}

async fn of_two_pauses_the_one_that_owes_counts(bench: Bench) {
    let (a, term, cursor) = led(&bench).await;
    let tick = after(cursor, 60);
    let mut number = 0;
    let mut reply = async |bench: &Bench| {
        number += 1;
        bench
            .claim(&a, term, claim("job", number, cursor, tick, Want::Run))
            .await
    };
    let since = pause(&bench, None, Gap::Skip).await;
    pause(&bench, Some("job"), Gap::Owed).await;
    assert_eq!(reply(&bench).await, ClaimReply::Held { until: None });
    let group = pause(&bench, None, Gap::Owed).await;
    assert!(group >= since);
    done(&bench, Some("job"), Deed::pause(Gap::Skip, None)).await;
    assert_eq!(reply(&bench).await, ClaimReply::Held { until: None });
    // Two that skip count from the earlier one.
    done(&bench, None, Deed::Resume).await;
    let (_, job_since) = done(&bench, Some("job"), Deed::pause(Gap::Skip, None)).await;
    tokio::time::sleep(Duration::from_millis(5)).await;
    pause(&bench, None, Gap::Skip).await;
    assert_eq!(reply(&bench).await, ClaimReply::Paused { since: job_since });
}

async fn a_tick_that_waits_is_paused_or_stays(bench: Bench) {
    let (a, term, cursor) = led(&bench).await;
    let waits = |claim| Claim {
        overlap: Overlap::Wait,
        ..claim
    };
    let (one, two) = (after(cursor, 1), after(cursor, 2));
    let fence = bench.win(&a, term, claim("job", 1, cursor, one, Want::Run)).await;
    let alive = |claim| Claim {
        alive: vec![fence],
        ..claim
    };
    let reply = bench
        .claim(&a, term, alive(waits(claim("job", 2, one, two, Want::Run))))
        .await;
    assert_eq!(reply, ClaimReply::Waits);
    bench.settle("job", fence, Ran::Ok).await;
    pause(&bench, None, Gap::Owed).await;
    let waited = |number| waits(claim("job", number, two, two, Want::Waited));
    assert_eq!(bench.claim(&a, term, waited(3)).await, ClaimReply::Held { until: None });
    assert_eq!(bench.ledger("job").await.waiting, Some(two));
    let since = pause(&bench, None, Gap::Skip).await;
    assert_eq!(bench.claim(&a, term, waited(4)).await, ClaimReply::Paused { since });
    let ledger = bench.ledger("job").await;
    assert_eq!((ledger.waiting, ledger.pending(), ledger.decided()), (None, 0, 2));
    assert_eq!(ledger.counts.get(&Outcome::Paused), Some(&1));
    assert_eq!(bench.claim(&a, term, waited(5)).await, ClaimReply::Passed);
}

async fn a_trigger_is_met_once_whatever_answer_is_lost(bench: Bench) {
    let (a, term, cursor) = led(&bench).await;
    pause(&bench, Some("job"), Gap::Skip).await;
    let (id, at) = done(&bench, Some("job"), Deed::Trigger).await;
    let (second, later) = done(&bench, Some("job"), Deed::Trigger).await;
    assert!(later > at && second > id, "each has an instant of its own");
    let run = met("job", 1, at, Origin::Manual, id, false);
    let fence = bench.win(&a, term, run.clone()).await;
    assert_eq!(bench.win(&a, term, run).await, fence, "the same claim again");
    // Another claim of it, by this leader or by the next one, finds it met.
    assert_eq!(
        bench
            .claim(&a, term, met("job", 2, at, Origin::Manual, id, false))
            .await,
        ClaimReply::Gone
    );
    let b = holder("b");
    bench.release(&a, term, None).await;
    let term = bench.acquire(&b).await;
    assert_eq!(
        bench
            .claim(&b, term, met("job", 1, at, Origin::Manual, id, false))
            .await,
        ClaimReply::Gone
    );
    let open: Vec<_> = state(&bench).await.requests.iter().map(|request| request.id).collect();
    assert_eq!(open, [second]);
    // Of another job, of another kind, at another instant: not what was asked for.
    for wrong in [
        met("other", 5, later, Origin::Manual, second, false),
        met("job", 6, later, Origin::Backfill, second, false),
        met("job", 7, at, Origin::Manual, second, false),
    ] {
        assert_eq!(bench.claim(&b, term, wrong).await, ClaimReply::Gone);
    }
    bench.settle("job", fence, Ran::Ok).await;
    let ledger = bench.ledger("job").await;
    assert_eq!(
        (ledger.cursor, ledger.decided(), ledger.pending()),
        (Some(cursor), 0, 0)
    );
    assert_eq!(
        (ledger.records[0].origin, ledger.records[0].first),
        (Origin::Manual, at)
    );
}

async fn a_span_is_run_in_order_one_after_another_and_by_whoever_leads(bench: Bench) {
    let (a, term, cursor) = led(&bench).await;
    let past = |second: i64| after(cursor, second - 100);
    let (id, _) = done(&bench, Some("job"), Deed::backfill(past(0), past(9))).await;
    let run = |number, second, more| met("job", number, past(second), Origin::Backfill, id, more);
    let first = bench.win(&a, term, run(1, 0, true)).await;
    let beside = Claim {
        alive: vec![first],
        overlap: Overlap::Allow,
        ..run(2, 1, true)
    };
    assert_eq!(bench.claim(&a, term, beside).await, ClaimReply::Busy, "one at a time");
    bench.settle("job", first, Ran::Ok).await;
    let second = bench.win(&a, term, run(3, 1, true)).await;
    bench.settle("job", second, Ran::Ok).await;
    assert_eq!(state(&bench).await.requests[0].done, Some(past(1)));
    // A successor that has read it earlier cannot run one again.
    let b = holder("b");
    bench.release(&a, term, None).await;
    let term = bench.acquire(&b).await;
    assert_eq!(bench.claim(&b, term, run(1, 1, true)).await, ClaimReply::Gone);
    assert_eq!(
        bench.claim(&b, term, run(2, 10, true)).await,
        ClaimReply::Gone,
        "behind its end"
    );
    // A pause holds it, of whatever kind.
    for gap in [Gap::Skip, Gap::Owed] {
        pause(&bench, None, gap).await;
        assert_eq!(
            bench.claim(&b, term, run(3, 2, true)).await,
            ClaimReply::Held { until: None }
        );
    }
    done(&bench, None, Deed::Resume).await;
    bench.win(&b, term, run(4, 9, false)).await;
    assert!(state(&bench).await.requests.is_empty(), "met");
    assert_eq!(bench.ledger("job").await.cursor, Some(cursor));
}

async fn runs_outside_the_schedule_respect_others(bench: Bench) {
    let (a, term, cursor) = led(&bench).await;
    let fence = bench
        .win(&a, term, claim("job", 1, cursor, after(cursor, 1), Want::Run))
        .await;
    let (id, at) = done(&bench, Some("job"), Deed::Trigger).await;
    let alive = |claim| Claim {
        alive: vec![fence],
        ..claim
    };
    let run = |number| alive(met("job", number, at, Origin::Manual, id, false));
    assert_eq!(bench.claim(&a, term, run(2)).await, ClaimReply::Busy);
    assert_eq!(state(&bench).await.requests.len(), 1, "it stays");
    let beside = Claim {
        overlap: Overlap::Allow,
        ..run(3)
    };
    let manual = bench.win(&a, term, beside).await;
    bench.settle("job", fence, Ran::Ok).await;
    // And a regular tick sees the run like any other.
    let next = Claim {
        alive: vec![manual],
        ..claim("job", 4, after(cursor, 1), after(cursor, 2), Want::Run)
    };
    assert_eq!(bench.claim(&a, term, next).await, ClaimReply::Overlapped);
}

async fn requests_are_bounded_and_can_be_withdrawn(bench: Bench) {
    let mut ids = Vec::new();
    for _ in 0..OPEN_REQUESTS {
        ids.push(done(&bench, Some("job"), Deed::Trigger).await.0);
    }
    assert_eq!(
        act(&bench, Some("job"), Deed::Trigger).await,
        Acted::Full { open: OPEN_REQUESTS }
    );
    let cancel = Deed::cancel(ids[7]);
    done(&bench, None, cancel).await;
    assert_eq!(act(&bench, None, cancel).await, Acted::Nothing);
    let left = state(&bench).await.requests;
    assert_eq!(left.len(), OPEN_REQUESTS - 1);
    assert!(left.iter().all(|request| request.id != ids[7]));
    done(&bench, Some("job"), Deed::Trigger).await;
}

async fn what_cannot_be_done_changes_nothing(bench: Bench) {
    let (_, now) = done(&bench, None, Deed::pause(Gap::Skip, None)).await;
    let before = state(&bench).await;
    for deed in [
        Deed::pause(Gap::Owed, Some(now - SignedDuration::from_secs(1))),
        Deed::backfill(now, after(now, 3_600)),
    ] {
        assert!(
            matches!(act(&bench, Some("job"), deed).await, Acted::Untimely { .. }),
            "{deed:?}"
        );
    }
    assert_eq!(act(&bench, Some("job"), Deed::Resume).await, Acted::Nothing);
    assert_eq!(act(&bench, Some("job"), Deed::cancel(7)).await, Acted::Nothing);
    assert_eq!(state(&bench).await, before);
}

async fn only_the_newest_acts_are_kept(bench: Bench) {
    let mut last = 0;
    for _ in 0..KEPT_ACTS + 3 {
        last = done(&bench, None, Deed::pause(Gap::Skip, None)).await.0;
    }
    let read = state(&bench).await;
    assert_eq!(
        (read.acts.len(), read.acts[0].number, read.pauses.len()),
        (KEPT_ACTS, last, 1)
    );
}

/// Lines that no version of this crate has written, in the places of pauses and requests: they stop nobody, and hide nothing.
#[tokio::test]
async fn what_cannot_be_read_stops_nobody() {
    let bench = Bench::redis().await;
    let (a, term, cursor) = led(&bench).await;
    let since = pause(&bench, Some("paused"), Gap::Skip).await;
    let (id, at) = done(&bench, Some("job"), Deed::Trigger).await;
    let server = bench.server.clone().unwrap();
    let part = |part: &str| format!("{{{}:leader:cleanup}}:{part}", bench.namespace);
    let control = part("control");
    for (field, line) in [
        ("p:", "soon"),
        ("p:job", "1|maybe|2|3|4|5"),
        ("p:no name", "1|skip|0||a|b"),
        ("r:x", "manual|job|1|1||1|a|b"),
        ("r:7", "manual"),
        ("r:8", "never|job|1|1||1|a|b"),
        ("what", "ever"),
    ] {
        server.command(&["HSET", &control, field, line]).await;
    }
    server.command(&["LPUSH", &part("acts"), "not an act"]).await;
    let read = state(&bench).await;
    assert_eq!(
        (read.pauses.len(), read.requests.len(), read.acts.len()),
        (1, 1, 2),
        "{read:?}"
    );
    let fence = bench
        .win(&a, term, claim("job", 1, cursor, after(cursor, 60), Want::Run))
        .await;
    bench.settle("job", fence, Ran::Ok).await;
    bench.win(&a, term, met("job", 2, at, Origin::Manual, id, false)).await;
    let other = bench.cursor(&a, term, "paused").await;
    let reply = bench
        .claim(&a, term, claim("paused", 3, other, after(other, 60), Want::Run))
        .await;
    assert_eq!(reply, ClaimReply::Paused { since });
    // Another kind of key: what was asked is lost, and ticks go on.
    server.command(&["DEL", &control]).await;
    server.command(&["SET", &control, "7"]).await;
    bench
        .win(&a, term, claim("third", 4, cursor, after(cursor, 60), Want::Run))
        .await;
    assert!(bench.store.control(&bench.group).await.is_err());
}

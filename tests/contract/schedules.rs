//! The schedules that a store keeps of its jobs: exactly one is in force at each instant, and only the leader changes it.

use jiff::Timestamp;
use leader_core::__seam::{Claim, ClaimReply, TakeOver, TakenOver, Want, Writer};
use leader_core::{Holder, StoredSchedule};

use crate::bench::{Bench, SCHEDULE, after, claim, holder, job};

on_each_store!(
    a_new_job_is_written_with_its_schedule,
    a_known_schedule_is_told_and_left_as_it_is,
    a_change_moves_the_cursor_and_keeps_the_old_one,
    a_change_repeated_gets_the_same_answer,
    only_the_holder_changes_a_schedule,
    a_change_from_another_cursor_or_schedule_does_nothing,
    a_tick_of_another_schedule_is_not_claimed,
    a_schedule_that_is_lost_is_written_again_with_the_next_claim,
    who_stands_for_a_schedule_may_change_without_it,
    earlier_schedules_are_kept_up_to_a_bound,
);

const DAILY: &str = "cron \"0 9 * * *\"";
const LATER: &str = "cron \"0 10 * * *\" timezone Europe/Berlin";

fn adopt(number: u64, cursor: Timestamp, at: Timestamp, from: &str, to: &str) -> Claim {
    Claim {
        schedule: from.into(),
        adopts: to.into(),
        ..claim("job", number, cursor, at, Want::Adopt)
    }
}

async fn take_over(
    bench: &Bench,
    holder: &Holder,
    term: u64,
    text: &str,
    version: &str,
) -> (Timestamp, StoredSchedule) {
    let request = TakeOver {
        group: bench.group.clone(),
        holder: holder.clone(),
        term,
        jobs: vec![job("job")],
        schedules: vec![text.into()],
        writer: Writer::new(version, "2026f"),
        elsewhere: None,
        was: Vec::new(),
        beside: Vec::new(),
    };
    match bench.store.take_over(request).await.unwrap() {
        TakenOver::Yours {
            cursors, mut schedules, ..
        } => (cursors[0], schedules.remove(0)),
        TakenOver::NotYours => panic!("not led by {holder}"),
    }
}

async fn change(bench: &Bench, a: &Holder, term: u64, version: &str, wish: Claim) -> ClaimReply {
    let batch = leader_core::__seam::ClaimBatch {
        writer: Writer::new(version, "2026g"),
        ..bench.batch(a, term, vec![wish])
    };
    match bench.claim_batch(batch).await {
        leader_core::__seam::Claimed::Yours(replies) => replies[0].clone(),
        leader_core::__seam::Claimed::NotYours => panic!("not led by {a}"),
    }
}

fn spelled(kept: &StoredSchedule) -> (&str, &str, &str, &str) {
    (&kept.text, &kept.version, &kept.time_zones, &kept.by)
}

async fn a_new_job_is_written_with_its_schedule(bench: Bench) {
    let a = holder("a");
    let term = bench.acquire(&a).await;
    let (cursor, kept) = take_over(&bench, &a, term, DAILY, "1.4").await;
    assert_eq!(spelled(&kept), (DAILY, "1.4", "2026f", "a"));
    assert_eq!(kept.since, Some(cursor));
    let ledger = bench.ledger("job").await;
    assert_eq!((ledger.schedule, ledger.schedules.len()), (Some(kept), 0));
}

async fn a_known_schedule_is_told_and_left_as_it_is(bench: Bench) {
    let (a, b) = (holder("a"), holder("b"));
    let term = bench.acquire(&a).await;
    let first = take_over(&bench, &a, term, DAILY, "2").await;
    bench.release(&a, term, None).await;
    let term = bench.acquire(&b).await;
    assert_eq!(take_over(&bench, &b, term, LATER, "3").await, first);
}

async fn a_change_moves_the_cursor_and_keeps_the_old_one(bench: Bench) {
    let a = holder("a");
    let term = bench.acquire(&a).await;
    let (cursor, old) = take_over(&bench, &a, term, DAILY, "1|\n").await;
    assert_eq!(old.version, "1  ", "what would break a line is left out");
    let at = after(cursor, 60);
    let reply = change(&bench, &a, term, "2", adopt(1, cursor, at, DAILY, LATER)).await;
    assert_eq!(reply, ClaimReply::Adopted { cursor: at });
    let ledger = bench.ledger("job").await;
    assert_eq!(ledger.cursor, Some(at));
    let kept = ledger.schedule.unwrap();
    assert_eq!((spelled(&kept), kept.since), ((LATER, "2", "2026g", "a"), Some(at)));
    assert_eq!(ledger.schedules.len(), 1);
    assert_eq!((&ledger.schedules[0].schedule, ledger.schedules[0].until), (&old, at));
    assert_eq!(ledger.counts.len(), 0, "nothing is decided by a change");
}

async fn a_change_repeated_gets_the_same_answer(bench: Bench) {
    let a = holder("a");
    let term = bench.acquire(&a).await;
    let (cursor, _) = take_over(&bench, &a, term, DAILY, "1").await;
    let at = after(cursor, 60);
    for (number, at_again) in [(1, at), (1, at), (2, after(at, 5))] {
        let wish = adopt(number, cursor, at_again, DAILY, LATER);
        let reply = change(&bench, &a, term, "2", wish).await;
        assert_eq!(reply, ClaimReply::Adopted { cursor: at });
    }
    let ledger = bench.ledger("job").await;
    assert_eq!((ledger.schedules.len(), ledger.schedule.unwrap().since), (1, Some(at)));
}

async fn only_the_holder_changes_a_schedule(bench: Bench) {
    let (a, b) = (holder("a"), holder("b"));
    let term = bench.acquire(&a).await;
    let (cursor, old) = take_over(&bench, &a, term, DAILY, "1").await;
    for (who, term) in [(&b, term), (&a, term - 1)] {
        let wish = adopt(1, cursor, after(cursor, 60), DAILY, LATER);
        let batch = bench.batch(who, term, vec![wish]);
        assert_eq!(bench.claim_batch(batch).await, leader_core::__seam::Claimed::NotYours);
    }
    assert_eq!(bench.ledger("job").await.schedule, Some(old));
}

async fn a_change_from_another_cursor_or_schedule_does_nothing(bench: Bench) {
    let a = holder("a");
    let term = bench.acquire(&a).await;
    let (start, old) = take_over(&bench, &a, term, SCHEDULE, "1").await;
    let cursor = after(start, 1);
    bench.win(&a, term, claim("job", 1, start, cursor, Want::Run)).await;
    let moved = ClaimReply::Moved { cursor, waiting: None };
    let at = after(start, 60);
    assert_eq!(
        change(&bench, &a, term, "", adopt(2, start, at, SCHEDULE, LATER)).await,
        moved
    );
    assert_eq!(
        change(&bench, &a, term, "", adopt(3, cursor, at, DAILY, LATER)).await,
        ClaimReply::OtherSchedule
    );
    // Before the last decided tick nothing can be changed any more.
    assert_eq!(
        change(&bench, &a, term, "", adopt(4, cursor, start, SCHEDULE, LATER)).await,
        moved
    );
    let ledger = bench.ledger("job").await;
    assert_eq!((ledger.cursor, ledger.schedule), (Some(cursor), Some(old)));
}

async fn a_tick_of_another_schedule_is_not_claimed(bench: Bench) {
    let a = holder("a");
    let term = bench.acquire(&a).await;
    let (cursor, _) = take_over(&bench, &a, term, SCHEDULE, "1").await;
    let tick = after(cursor, 1);
    for want in [Want::Run, Want::Owed, Want::Settle] {
        let other = Claim {
            schedule: DAILY.into(),
            ..claim("job", 1, cursor, tick, want)
        };
        assert_eq!(bench.claim(&a, term, other).await, ClaimReply::OtherSchedule);
    }
    let ledger = bench.ledger("job").await;
    assert_eq!((ledger.cursor, ledger.open.len()), (Some(cursor), 0));
    bench.win(&a, term, claim("job", 2, cursor, tick, Want::Run)).await;
}

/// The claim is of a job that the store knows nothing of, as after a loss of its data while the leader lives on.
async fn a_schedule_that_is_lost_is_written_again_with_the_next_claim(bench: Bench) {
    let a = holder("a");
    let term = bench.acquire(&a).await;
    let (cursor, _) = take_over(&bench, &a, term, SCHEDULE, "1").await;
    let tick = after(cursor, 1);
    bench.win(&a, term, claim("lost", 1, cursor, tick, Want::Run)).await;
    let ledger = bench.ledger("lost").await;
    let kept = ledger.schedule.unwrap();
    assert_eq!((spelled(&kept), kept.since), ((SCHEDULE, "", "", "a"), Some(cursor)));
    assert_eq!(ledger.cursor, Some(tick));
}

async fn who_stands_for_a_schedule_may_change_without_it(bench: Bench) {
    let a = holder("a");
    let term = bench.acquire(&a).await;
    let (cursor, old) = take_over(&bench, &a, term, DAILY, "1").await;
    let wish = adopt(1, cursor, after(cursor, 60), DAILY, DAILY);
    assert_eq!(
        change(&bench, &a, term, "2", wish).await,
        ClaimReply::Adopted { cursor }
    );
    let ledger = bench.ledger("job").await;
    let kept = ledger.schedule.unwrap();
    assert_eq!((spelled(&kept), kept.since), ((DAILY, "2", "2026g", "a"), old.since));
    assert_eq!((ledger.cursor, ledger.schedules.len()), (Some(cursor), 0));
}

async fn earlier_schedules_are_kept_up_to_a_bound(bench: Bench) {
    let a = holder("a");
    let term = bench.acquire(&a).await;
    let (mut cursor, kept) = take_over(&bench, &a, term, DAILY, "1").await;
    let mut text = kept.text;
    for n in 1..=40 {
        let (at, to) = (after(cursor, 1), format!("every {n}s"));
        let reply = change(&bench, &a, term, "1", adopt(n, cursor, at, &text, &to)).await;
        assert_eq!(reply, ClaimReply::Adopted { cursor: at });
        (cursor, text) = (at, to);
    }
    let ledger = bench.ledger("job").await;
    let texts: Vec<_> = ledger.schedules.iter().map(|kept| kept.schedule.text.clone()).collect();
    let newest: Vec<_> = (8..40).rev().map(|n| format!("every {n}s")).collect();
    assert_eq!(texts, newest);
    // They follow one upon the other.
    let ends = ledger.schedules.iter().map(|earlier| Some(earlier.until));
    let begins = std::iter::once(ledger.schedule.as_ref().unwrap().since)
        .chain(ledger.schedules.iter().map(|earlier| earlier.schedule.since));
    assert!(ends.zip(begins).all(|(end, begin)| end == begin));
}

//! What a server forgets, and what happens to its clock: on the embedded store made as a server, and on a real one whose clock is moved by
//! hand, so that nobody waits.

use std::sync::Arc;
use std::time::Duration;

use jiff::SignedDuration;
use leader_core::__seam::{
    ActRequest, ClaimReply, Claimed, Deed, Gap, MakeRequest, Making, Oddity, Part, Renewed, TakeOver, TakenOver, UNLED,
    Verdict, Want, Writer, Written, in_namespace,
};
use leader_core::{AbsenceKind, Holder, MissedReason, Ran, StoreErrorKind};
use leader_tests::eventually;

use crate::bench::{BOUND, LONG, SCHEDULE, after, claim, group, holder, job, passed};
use crate::heard::Heard;
use crate::machine::{INSTANT, Kind, Machine, TTL, just_before};

on_each_server!(
    a_first_start_waits_one_ttl_unless_it_is_promised_to_be_one,
    the_longest_ttl_decides_the_quarantine,
    after_a_loss_of_all_data_nobody_acquires_for_one_ttl,
    a_birth_mark_of_the_future_counts_from_now,
    a_restarted_server_lets_only_the_present_leader_go_on,
    a_hand_over_on_a_server_that_was_just_restarted_waits,
    what_a_restarted_server_may_have_forgotten_is_waited_for,
    a_restarted_server_whose_clock_is_behind_has_seen_no_renewal,
    a_server_that_was_never_restarted_makes_nobody_wait,
    a_clock_behind_the_servers_start_is_no_restart,
    a_restart_without_its_data_is_a_loss_of_all_data,
    a_snapshot_older_than_the_last_leader_tells_of_none,
    a_lease_that_was_taken_away_is_waited_for_until_its_end,
    an_own_lease_lasts_no_longer_than_it_was_granted_for,
    a_clock_that_is_set_forward_ends_leases_early,
    a_lead_ends_when_it_is_given_back_or_its_lease_ends,
    a_foreign_holder_is_respected,
    a_key_without_an_end_or_of_another_type_is_never_taken,
    a_lost_counter_still_rises,
    a_lost_state_ends_the_lead,
    a_silence_counts_from_when_the_clock_was_set_back,
    renewals_and_releases_need_no_memory,
    signs_of_life_need_no_memory,
    a_replica_takes_no_writes_and_answers_what_it_knows,
    a_pause_outlives_a_lost_state_and_what_is_made_after_it,
    what_is_over_is_withdrawn_renamed_and_counted_as_what_is_in_force,
    records_that_have_outlived_their_job_stay_where_there_are_no_others,
    a_schedule_made_at_run_time_whose_job_was_lost_ends_all_the_same,
    a_lease_that_has_ended_is_not_loaded_from_a_snapshot,
);

async fn a_first_start_waits_one_ttl_unless_it_is_promised_to_be_one(machine: Machine) {
    let (a, b) = (holder("a"), holder("b"));
    assert_eq!(machine.quarantined(&a, 0).await, TTL);
    machine.pass(TTL / 2);
    // A promise that comes after the mark does not shorten it, nor does anybody else's question.
    let promised = machine.bench.ask(machine.bench.wish(&b, TTL, 0)).await.verdict;
    assert_eq!(
        promised,
        Verdict::Quarantined {
            remaining: TTL / 2,
            term: 0
        }
    );
    machine.waits(&b, 0, TTL / 2).await;
    let mut fresh = machine.bench.wish(&a, TTL, 0);
    fresh.group = group("other");
    assert!(matches!(
        machine.bench.ask(fresh).await.verdict,
        Verdict::Acquired { .. }
    ));
}

/// The longest lease that anybody asks for is what everybody waits.
async fn the_longest_ttl_decides_the_quarantine(machine: Machine) {
    let mut wish = machine.bench.wish(&holder("a"), TTL, 0);
    (wish.first_start, wish.longest) = (false, LONG);
    assert!(matches!(
        machine.bench.ask(wish).await.verdict,
        Verdict::Quarantined { .. }
    ));
    machine.waits(&holder("b"), 0, LONG).await;
}

async fn after_a_loss_of_all_data_nobody_acquires_for_one_ttl(mut machine: Machine) {
    let (a, b) = (holder("a"), holder("b"));
    let term = machine.bench.acquire_for(&a, TTL).await;
    let cursor = machine.bench.cursor(&a, term, "job").await;
    let wish = claim("job", 1, cursor, after(cursor, 1), Want::Run);
    let fence = machine.bench.win(&a, term, wish).await;
    machine.flush().await;
    assert_eq!(
        machine.bench.renew_for(&a, term, TTL).await,
        Renewed::NotYours { holder: None, term: 0 }
    );
    assert_eq!(machine.quarantined(&a, fence).await, TTL);
    let next = machine.waits(&b, 0, TTL).await;
    assert!(next > fence, "terms and fences rise though the counter is gone");
    assert!(
        machine.bench.cursor(&b, next, "job").await > cursor,
        "jobs start at now"
    );
}

async fn a_birth_mark_of_the_future_counts_from_now(machine: Machine) {
    let a = holder("a");
    assert_eq!(machine.quarantined(&a, 0).await, TTL);
    machine.step(-SignedDuration::from_mins(1));
    machine.waits(&a, 0, TTL).await;
}

/// A restarted server may have rolled back: only a renewal with the store's own term extends.
async fn a_restarted_server_lets_only_the_present_leader_go_on(mut machine: Machine) {
    let (a, b) = (holder("a"), holder("b"));
    let term = machine.bench.acquire_for(&a, TTL).await;
    let cursor = machine.bench.cursor(&a, term, "job").await;
    let wish = claim("job", 1, cursor, after(cursor, 1), Want::Run);
    let fence = machine.bench.win(&a, term, wish).await;
    machine.restart(true).await;
    // Not even its own lease, for one that only campaigns.
    machine.quarantined(&a, fence).await;
    assert!(matches!(machine.ask(&b, fence).await, Verdict::Held { .. }));
    assert!(!machine.bench.is_led_by(&a, term - 1).await && !machine.bench.is_led_by(&b, term).await);
    assert!(matches!(
        machine.bench.renew_for(&a, term, TTL).await,
        Renewed::Yes { .. }
    ));
    // What it ran is known still, and is not run again.
    assert_eq!(
        machine.bench.settle("job", fence, Ran::Ok).await,
        leader_core::__seam::Settled::Yes
    );
    assert_eq!(machine.bench.cursor(&a, term, "job").await, after(cursor, 1));
}

/// Given back at once: what the server may have forgotten is still to be waited for, whoever led. It counts whole seconds, one less than
/// have passed.
async fn a_hand_over_on_a_server_that_was_just_restarted_waits(mut machine: Machine) {
    let (a, b) = (holder("a"), holder("b"));
    let term = machine.bench.acquire_for(&a, TTL).await;
    machine.restart(true).await;
    assert!(matches!(
        machine.bench.renew_for(&a, term, TTL).await,
        Renewed::Yes { .. }
    ));
    machine.bench.release(&a, term, None).await;
    assert_eq!(machine.quarantined(&b, term).await, TTL + Duration::from_secs(1));
    machine.pass(TTL + Duration::from_secs(1));
    machine.acquires(&b, term).await;
}

/// An append-only file loses two seconds at the most, of which a candidate that knows of a later term tells that they mattered; a
/// snapshot may have lost anything.
async fn what_a_restarted_server_may_have_forgotten_is_waited_for(mut machine: Machine) {
    let (a, b) = (holder("a"), holder("b"));
    let since_start = TTL + Duration::from_secs(1);
    let lost = machine.bench.acquire_for(&a, TTL).await;
    machine.pass(TTL + Duration::from_secs(2) + INSTANT);
    machine.restart(true).await;
    // It may have forgotten a renewal just before the lease's end, and others in the two seconds after that.
    let since_renewal = just_before(TTL);
    let expected = if machine.appendonly() {
        since_renewal
    } else {
        since_start
    };
    assert_eq!(machine.quarantined(&a, lost).await, expected);
    machine.pass(expected);
    let term = machine.acquires(&a, lost).await;
    machine.pass(2 * TTL + Duration::from_secs(2));
    machine.restart(true).await;
    assert_eq!(machine.quarantined(&b, term + 1).await, since_start);
    if machine.appendonly() {
        // Its outage was longer than any trust, as far as anybody knows.
        machine.acquires(&b, term).await;
    } else {
        assert_eq!(machine.quarantined(&b, term).await, since_start);
        machine.pass(since_start);
        machine.acquires(&b, term).await;
    }
}

/// The mark of the last renewal lies ahead of a server that was restarted with its clock behind: that is no renewal since.
async fn a_restarted_server_whose_clock_is_behind_has_seen_no_renewal(mut machine: Machine) {
    let a = holder("a");
    let term = machine.bench.acquire_for(&a, TTL).await;
    machine.pass(TTL / 2);
    assert!(matches!(
        machine.bench.renew_for(&a, term, TTL).await,
        Renewed::Yes { .. }
    ));
    machine.bench.release(&a, term, None).await;
    machine.step(-SignedDuration::from_secs(4));
    machine.restart(true).await;
    for _ in 0..2 {
        let left = machine.quarantined(&holder("b"), term).await;
        assert_eq!(left, TTL + Duration::from_secs(1));
    }
    machine.pass(TTL + Duration::from_secs(1));
    machine.acquires(&holder("b"), term).await;
}

async fn a_server_that_was_never_restarted_makes_nobody_wait(mut machine: Machine) {
    machine.restart(true).await;
    let (a, b) = (holder("a"), holder("b"));
    let mut term = machine.bench.acquire_for(&a, TTL).await;
    for (last, who) in [(&a, &b), (&b, &a), (&a, &b)] {
        machine.bench.release(last, term, None).await;
        term = machine.acquires(who, term).await;
    }
}

/// It counts how long it has run by that clock, and then nobody can read it.
async fn a_clock_behind_the_servers_start_is_no_restart(machine: Machine) {
    let (a, b) = (holder("a"), holder("b"));
    let mut term = machine.bench.acquire_for(&a, TTL).await;
    machine.step(-SignedDuration::try_from(2 * LONG).unwrap());
    machine.bench.release(&a, term, None).await;
    // The birth mark lies ahead, and counts from now.
    term = machine.waits(&b, term, TTL).await;
    machine.bench.release(&b, term, None).await;
    machine.acquires(&a, term).await;
}

async fn a_restart_without_its_data_is_a_loss_of_all_data(mut machine: Machine) {
    let a = holder("a");
    let term = machine.bench.acquire_for(&a, TTL).await;
    machine.restart(false).await;
    assert_eq!(
        machine.bench.renew(&a, term).await,
        Renewed::NotYours { holder: None, term: 0 }
    );
    machine.waits(&holder("b"), 0, TTL).await;
}

/// Nothing in it tells of a leader, and whoever led before the restart may believe until one TTL after it.
async fn a_snapshot_older_than_the_last_leader_tells_of_none(mut machine: Machine) {
    if machine.appendonly() {
        // The file has everything.
        return;
    }
    let (a, b, c) = (holder("a"), holder("b"), holder("c"));
    let old = machine.bench.acquire_for(&a, TTL).await;
    machine.bench.release(&a, old, None).await;
    let saved = machine.save().await;
    let term = machine.bench.acquire_for(&b, TTL).await;
    // Long enough for the mark of the last renewal to say nothing.
    machine.pass(2 * TTL);
    machine.restart_as_of(saved).await;
    assert_eq!(
        machine.bench.renew_for(&b, term, TTL).await,
        Renewed::NotYours {
            holder: None,
            term: old
        }
    );
    assert_eq!(machine.quarantined(&c, old).await, TTL + Duration::from_secs(1));
    machine.pass(TTL + Duration::from_secs(1));
    assert!(machine.acquires(&c, old).await > term);
}

async fn a_lease_that_was_taken_away_is_waited_for_until_its_end(mut machine: Machine) {
    let (a, b) = (holder("a"), holder("b"));
    let term = machine.bench.acquire_for(&a, TTL).await;
    machine.pass(TTL / 4);
    machine.lose(Part::Lease).await;
    assert_eq!(machine.quarantined(&b, term).await, 3 * TTL / 4);
    // Its last holder believes no longer when it asks and knows its term; without that it may be a late ghost.
    assert_eq!(machine.quarantined(&a, term - 1).await, 3 * TTL / 4);
    let own = machine.acquires(&a, term).await;
    machine.bench.release(&a, own, None).await;
    // One that was given back is nobody's to wait for.
    machine.acquires(&b, own).await;
}

async fn an_own_lease_lasts_no_longer_than_it_was_granted_for(mut machine: Machine) {
    let (a, b) = (holder("a"), holder("b"));
    let term = machine.bench.acquire_for(&a, TTL).await;
    machine.step(-SignedDuration::from_hours(1));
    let clamped = machine.bench.ask(machine.bench.wish(&b, TTL, term)).await;
    assert_eq!(clamped.oddity, Some(Oddity::Clamped));
    let held = |remaining| Verdict::Held {
        remaining: Some(remaining),
        term,
    };
    assert_eq!(clamped.verdict, held(TTL));
    machine.pass(TTL / 2);
    assert_eq!(machine.ask(&b, term).await, held(TTL / 2));
    // Somebody takes the end away.
    machine.write_lease(Written::Holder(a.clone(), None)).await;
    let clamped = machine.bench.ask(machine.bench.wish(&b, TTL, term)).await;
    assert_eq!((clamped.oddity, clamped.verdict), (Some(Oddity::Clamped), held(TTL)));
}

/// Not promised otherwise: its leader believes on, for one TTL at the most.
async fn a_clock_that_is_set_forward_ends_leases_early(machine: Machine) {
    let (a, b) = (holder("a"), holder("b"));
    let term = machine.bench.acquire_for(&a, TTL).await;
    machine.step(SignedDuration::try_from(TTL + INSTANT).unwrap());
    let next = machine.acquires(&b, term).await;
    assert_eq!(
        machine.bench.renew(&a, term).await,
        Renewed::NotYours {
            holder: Some(b),
            term: next
        }
    );
}

/// What its leader lacked is covered from then on.
async fn a_lead_ends_when_it_is_given_back_or_its_lease_ends(machine: Machine) {
    let (a, b) = (holder("a"), holder("b"));
    let mut term = 0;
    for gives_back in [true, false] {
        term = machine.bench.acquire_for(&a, TTL).await.max(term);
        machine.bench.take_over(&a, term, &["job", "other"]).await;
        let cover = machine.bench.covers_one(&a, term);
        assert!(machine.bench.store.cover(cover).await.unwrap());
        let began = machine.clock.wall();
        let mut led_for = TTL;
        machine.pass(TTL / 2);
        if gives_back {
            machine.bench.release(&a, term, None).await;
            led_for = TTL / 2;
        }
        machine.pass(TTL);
        term = machine.acquires(&b, term).await;
        let TakenOver::Yours { absences, .. } = machine.bench.take_over(&b, term, &["other"]).await else {
            panic!("not yours");
        };
        let last = absences[0].last().unwrap();
        let until = began + SignedDuration::try_from(led_for).unwrap();
        assert_eq!(
            (last.kind, last.until),
            (AbsenceKind::Uncovered, Some(until)),
            "{absences:?}"
        );
        machine.bench.release(&b, term, None).await;
        // The other one settles nothing meanwhile.
        machine.pass(INSTANT);
    }
}

async fn a_foreign_holder_is_respected(mut machine: Machine) {
    let (a, foreign) = (holder("a"), Holder::from_store("pod-7"));
    let term = machine.bench.acquire_for(&a, TTL).await;
    let cursor = machine.bench.cursor(&a, term, "job").await;
    machine.pass(TTL / 2);
    machine.write_lease(Written::Holder(foreign.clone(), Some(LONG))).await;
    let answer = machine.bench.ask(machine.bench.wish(&a, TTL, term)).await;
    assert_eq!((&answer.holder, answer.oddity), (&Some(foreign), Some(Oddity::Foreign)));
    let remaining = Some(LONG);
    assert_eq!(answer.verdict, Verdict::Held { remaining, term });
    assert!(!machine.bench.is_led_by(&a, term).await);
    machine.bench.release(&a, term, None).await;
    assert!(matches!(machine.ask(&a, term).await, Verdict::Held { .. }));
    // It goes, and its span is told to the next leader.
    machine.pass(LONG + INSTANT);
    let term = machine.acquires(&a, term).await;
    let TakenOver::Yours { absences, cursors, .. } = machine.bench.take_over(&a, term, &["job"]).await else {
        panic!("not yours");
    };
    let [absence] = absences[0].as_slice() else {
        panic!("{absences:?}")
    };
    assert_eq!(absence.kind, AbsenceKind::ForeignLeader);
    // It may have led from the last renewal on.
    assert_eq!((absence.from, cursors[0]), (cursor, cursor));
    let until = absence.until.unwrap();
    assert_eq!(
        until.duration_since(cursor),
        SignedDuration::try_from(TTL / 2 + LONG).unwrap()
    );
}

async fn a_key_without_an_end_or_of_another_type_is_never_taken(mut machine: Machine) {
    let a = holder("a");
    let term = machine.bench.acquire_for(&a, TTL).await;
    let foreign = Holder::from_store("for-ever");
    for (written, name, oddity) in [
        (Written::Holder(foreign.clone(), None), Some(&foreign), Oddity::Endless),
        (Written::OtherType, None, Oddity::WrongType),
    ] {
        machine.write_lease(written).await;
        machine.pass(LONG);
        let answer = machine.bench.ask(machine.bench.wish(&a, TTL, term)).await;
        assert_eq!((answer.holder.as_ref(), answer.oddity), (name, Some(oddity)));
        assert_eq!(answer.verdict, Verdict::Held { remaining: None, term });
        assert!(!machine.bench.is_led_by(&a, term).await);
        machine.bench.release(&a, term, None).await;
        assert_eq!(machine.bench.take_over(&a, term, &["job"]).await, TakenOver::NotYours);
        let none = machine
            .bench
            .claim_batch(machine.bench.batch(&a, term, Vec::new()))
            .await;
        assert_eq!(none, Claimed::NotYours);
    }
}

async fn a_lost_counter_still_rises(mut machine: Machine) {
    let a = holder("a");
    let seen = u64::try_from(machine.clock.wall().as_microsecond()).unwrap() + 3_600_000_000;
    let term = machine.bench.acquire_for(&a, TTL).await;
    let cursor = machine.bench.cursor(&a, term, "job").await;
    machine.lose(Part::Fence).await;
    let mut batch = machine
        .bench
        .batch(&a, term, vec![claim("job", 1, cursor, after(cursor, 1), Want::Run)]);
    batch.known = seen;
    assert_eq!(
        machine.bench.claim_batch(batch).await,
        Claimed::Yours(vec![ClaimReply::Won { fence: seen + 1 }])
    );
    machine.lose(Part::Fence).await;
    machine.bench.release(&a, term, None).await;
    machine.pass(INSTANT);
    assert!(machine.acquires(&a, term).await > term);
}

async fn a_lost_state_ends_the_lead(mut machine: Machine) {
    let (a, b) = (holder("a"), holder("b"));
    let term = machine.bench.acquire_for(&a, TTL).await;
    machine.lose(Part::State).await;
    assert_eq!(
        machine.bench.renew_for(&a, term, TTL).await,
        Renewed::NotYours {
            holder: Some(a.clone()),
            term: 0
        }
    );
    // To those who come it is anybody's, until it ends.
    let theirs = machine.bench.ask(machine.bench.wish(&b, TTL, term)).await;
    assert_eq!(theirs.oddity, Some(Oddity::Foreign));
    machine.waits(&a, term, TTL).await;
}

async fn a_silence_counts_from_when_the_clock_was_set_back(machine: Machine) {
    let (a, b) = (holder("a"), holder("b"));
    let first = machine.bench.acquire_for(&a, TTL).await;
    machine.pass(2 * TTL);
    let term = machine.acquires(&a, first).await;
    let cursor = machine.bench.cursor(&a, term, "job").await;
    let fence = machine
        .bench
        .win(&a, term, claim("job", 1, cursor, after(cursor, 1), Want::Run))
        .await;
    machine.bench.release(&a, term, None).await;
    machine.step(-SignedDuration::try_from(TTL).unwrap());
    let term = machine.acquires(&b, term).await;
    let looks = async || {
        let mut batch = machine
            .bench
            .batch(&b, term, vec![claim("job", 1, cursor, cursor, Want::Look)]);
        (batch.silence, batch.connected) = (TTL, LONG);
        assert!(matches!(machine.bench.claim_batch(batch).await, Claimed::Yours(_)));
        machine.bench.ledger("job").await.open.len()
    };
    assert_eq!(looks().await, 1);
    assert!(machine.bench.is_led_by(&b, term).await);
    machine.pass(TTL);
    assert_eq!(looks().await, 1);
    machine.pass(INSTANT);
    assert_eq!(
        looks().await,
        0,
        "the run {fence} is silent for as long as is waited for"
    );
}

async fn renewals_and_releases_need_no_memory(mut machine: Machine) {
    let (a, b) = (holder("a"), holder("b"));
    let term = machine.bench.acquire(&a).await;
    let cursor = machine.bench.cursor(&a, term, "job").await;
    machine.set_full(true).await;
    for _ in 0..2 {
        assert!(machine.bench.is_led_by(&a, term).await);
    }
    // What needs memory says so, and has changed nothing.
    let batch = machine
        .bench
        .batch(&a, term, vec![claim("job", 1, cursor, after(cursor, 1), Want::Run)]);
    let error = machine.bench.store.claim(vec![batch]).await.pop().unwrap().unwrap_err();
    assert_eq!(error.code(), Some("OOM"), "{error}");
    assert!(matches!(error.kind(), StoreErrorKind::Refused { .. }));
    assert_eq!(machine.bench.ledger("job").await.cursor, Some(cursor));
    let since = "2026-03-02T11:00:00Z".parse().unwrap();
    machine.bench.release(&a, term, Some(since)).await;
    assert!(!machine.bench.is_led_by(&a, term).await);
    let wish = machine.bench.wish(&b, LONG, term);
    let mut answers = machine.bench.store.campaign(vec![wish]).await;
    assert_eq!(answers.pop().unwrap().unwrap_err().code(), Some("OOM"));
    machine.set_full(false).await;
    let term = machine.bench.acquire(&b).await;
    let TakenOver::Yours { late_from, .. } = machine.bench.take_over(&b, term, &["job"]).await else {
        panic!("not yours");
    };
    assert_eq!(late_from, Some(since), "the drain was noted all the same");
}

/// Leases are renewed, so that there are runs that nobody must take for dead.
async fn signs_of_life_need_no_memory(mut machine: Machine) {
    let (a, b) = (holder("a"), holder("b"));
    let term = machine.bench.acquire(&a).await;
    let cursor = machine.bench.cursor(&a, term, "job").await;
    let next = claim("job", 1, cursor, after(cursor, 1), Want::Run);
    let fence = machine.bench.win(&a, term, next).await;
    machine.set_full(true).await;
    machine.pass(TTL / 2);
    machine.bench.beat(&[fence]).await;
    machine.set_full(false).await;
    machine.bench.release(&a, term, None).await;
    let term = machine.acquires(&b, term).await;
    machine.pass(TTL / 2 + INSTANT);
    let mut batch = machine
        .bench
        .batch(&b, term, vec![claim("job", 1, cursor, cursor, Want::Look)]);
    (batch.silence, batch.connected) = (TTL, LONG);
    assert!(matches!(machine.bench.claim_batch(batch).await, Claimed::Yours(_)));
    let open = machine.bench.ledger("job").await.open;
    assert_eq!(open.len(), 1, "it has been silent for half of that");
}

async fn a_replica_takes_no_writes_and_answers_what_it_knows(mut machine: Machine) {
    let (a, b) = (holder("a"), holder("b"));
    let term = machine.bench.acquire_for(&a, TTL).await;
    machine.set_readonly(true).await;
    assert!(matches!(machine.ask(&b, term).await, Verdict::Held { .. }));
    let renewal = leader_core::__seam::Renewal {
        group: machine.bench.group.clone(),
        holder: a.clone(),
        term,
        ttl: TTL,
    };
    let told = machine.bench.store.renew(vec![renewal], Vec::new()).await.renewed.pop();
    assert_eq!(told.unwrap().unwrap_err().code(), Some("READONLY"));
    machine.connect_anew();
    machine.pass(TTL + INSTANT);
    let wish = machine.bench.wish(&b, TTL, term);
    let mut answers = machine.bench.store.campaign(vec![wish]).await;
    assert_eq!(answers.pop().unwrap().unwrap_err().code(), Some("READONLY"));
    machine.set_readonly(false).await;
    machine.acquires(&b, term).await;
}

/// What people have asked for stays in force, though nobody has led since the state was lost.
async fn a_pause_outlives_a_lost_state_and_what_is_made_after_it(mut machine: Machine) {
    let a = holder("a");
    let cursor = machine.bench.cursor(&a, 0, "job").await;
    let pause = ActRequest {
        group: machine.bench.group.clone(),
        job: None,
        deed: Deed::pause(Gap::Owed, None),
        by: "ann".to_owned(),
        reason: String::new(),
    };
    machine.bench.store.act(pause).await.unwrap();
    machine.lose(Part::State).await;
    let make = MakeRequest {
        group: machine.bench.group.clone(),
        name: job("made"),
        what: Making::Make {
            handler: job("handler"),
            schedule: "every 1s".into(),
            payload: "1".into(),
        },
        by: "ann".to_owned(),
        writer: Writer::new("", "2026f"),
    };
    machine.bench.store.make(make).await.unwrap();
    // Whoever begins reads what there is, and finds nothing to count.
    machine.bench.cursor(&a, 0, "job").await;
    let wish = claim("job", 1, cursor, after(cursor, 1), Want::Run);
    assert_eq!(machine.bench.claim(&a, 0, wish).await, ClaimReply::Held { until: None });
}

fn make(machine: &Machine, what: Making) -> MakeRequest {
    MakeRequest {
        group: machine.bench.group.clone(),
        name: job("made"),
        what,
        by: "ann".to_owned(),
        writer: Writer::new("", "2026f"),
    }
}

fn making() -> Making {
    Making::Make {
        handler: job("handler"),
        schedule: SCHEDULE.into(),
        payload: "1".into(),
    }
}

/// Takes over a job, which had these names before.
fn taking(machine: &Machine, who: &Holder, term: u64, name: &str, was: &[&str]) -> TakeOver {
    TakeOver {
        group: machine.bench.group.clone(),
        holder: who.clone(),
        term,
        jobs: vec![job(name)],
        schedules: vec![SCHEDULE.into()],
        writer: Writer::default(),
        elsewhere: Some(Vec::new()),
        was: vec![was.iter().map(|name| job(name)).collect()],
        beside: Vec::new(),
    }
}

async fn what_is_over_is_withdrawn_renamed_and_counted_as_what_is_in_force(mut machine: Machine) {
    let a = holder("a");
    machine.bench.cursor(&a, UNLED, "old").await;
    machine.bench.store.make(make(&machine, making())).await.unwrap();
    let act = async |name: &str, deed| {
        let request = ActRequest {
            group: machine.bench.group.clone(),
            job: Some(job(name)),
            deed,
            by: "ann".to_owned(),
            reason: String::new(),
        };
        machine.bench.store.act(request).await.unwrap();
    };
    for name in ["one", "made", "old"] {
        act(name, Deed::pause(Gap::Skip, None)).await;
    }
    machine.pass(TTL);
    for name in ["one", "made", "old"] {
        act(name, Deed::Resume).await;
    }
    let ended = async |machine: &Machine| {
        let control = machine.bench.store.control(&machine.bench.group).await.unwrap();
        let names = control.ended.into_iter().map(|pause| pause.job.unwrap().to_string());
        names.collect::<Vec<_>>()
    };
    assert_eq!(ended(&machine).await, ["old", "made", "one"]);
    machine.bench.store.make(make(&machine, Making::End)).await.unwrap();
    assert_eq!(ended(&machine).await, ["old", "one"]);
    let request = taking(&machine, &a, UNLED, "new", &["old"]);
    machine.bench.store.take_over(request).await.unwrap();
    assert_eq!(ended(&machine).await, ["new", "one"]);
    // Whoever lost the numbers did not mean these.
    machine.lose(Part::State).await;
    let TakenOver::Yours { control, .. } = machine.bench.take_over(&a, UNLED, &["new"]).await else {
        panic!("not led")
    };
    assert!(control > 0);
}

async fn records_that_have_outlived_their_job_stay_where_there_are_no_others(mut machine: Machine) {
    let a = holder("a");
    let term = machine.bench.acquire(&a).await;
    let mut fences = Vec::new();
    for (name, number) in [("new", 1), ("old", 2)] {
        let cursor = machine.bench.cursor(&a, term, name).await;
        let mut wish = claim(name, number, cursor, after(cursor, 2), Want::Run);
        if name == "new" {
            let missed = MissedReason::Skipped;
            wish.passed = vec![passed(missed, after(cursor, 1), after(cursor, 1), 1)];
        }
        let fence = machine.bench.win(&a, term, wish).await;
        machine.bench.settle(name, fence, Ran::Ok).await;
        fences.push(fence);
    }
    machine.lose(Part::Job(job("new"))).await;
    assert_eq!(machine.bench.ledger("new").await.records.len(), 2);
    let request = taking(&machine, &a, term, "new", &["old"]);
    machine.bench.store.take_over(request).await.unwrap();
    let records = machine.bench.ledger("new").await.records;
    let told: Vec<_> = records
        .iter()
        .map(|record| (record.outcome.is_ran(), record.fence))
        .collect();
    assert_eq!(told, [(true, fences[1]), (false, 0)]);
}

async fn a_schedule_made_at_run_time_whose_job_was_lost_ends_all_the_same(mut machine: Machine) {
    let a = holder("a");
    let term = machine.bench.acquire(&a).await;
    machine.bench.store.make(make(&machine, making())).await.unwrap();
    machine.lose(Part::Job(job("made"))).await;
    // Its leader decides on.
    let cursor = machine.clock.wall();
    let wish = claim("made", 1, cursor, after(cursor, 1), Want::Settle);
    assert_eq!(machine.bench.claim(&a, term, wish).await, ClaimReply::Passed);
    machine.bench.store.make(make(&machine, Making::End)).await.unwrap();
    let ledger = machine.bench.ledger("made").await;
    assert_eq!(ledger.retired, Some(machine.clock.wall()));
    assert_eq!((ledger.handler.as_deref(), ledger.schedule), (Some("handler"), None));
}

/// Seen by a clock that was set back to before its end.
async fn a_lease_that_has_ended_is_not_loaded_from_a_snapshot(mut machine: Machine) {
    if machine.appendonly() {
        // From its file it is loaded, and goes when the server looks for such.
        return;
    }
    let (a, b) = (holder("a"), holder("b"));
    let term = machine.bench.acquire_for(&a, TTL).await;
    machine.pass(TTL + INSTANT);
    machine.restart(true).await;
    machine.step(-SignedDuration::try_from(TTL / 2).unwrap());
    machine.quarantined(&b, term).await;
}

/// Those that no server counts are as long as any can be.
#[tokio::test]
async fn an_embedded_server_counts_no_endless_span() {
    let machine = Machine::embedded(false);
    let (a, b) = (holder("a"), holder("b"));
    let term = machine.bench.acquire_for(&a, Duration::MAX).await;
    machine.pass(LONG);
    let asks = async |yields| {
        let mut wish = machine.bench.wish(&b, TTL, term);
        wish.yields = yields;
        machine.bench.ask(wish).await
    };
    let held = asks(Duration::ZERO).await;
    assert!(
        matches!(held.verdict, Verdict::Held { remaining: Some(left), .. } if left > LONG),
        "{held:?}"
    );
    assert!(machine.bench.is_led_by(&a, term).await);
    machine.bench.release(&a, term, None).await;
    machine.pass(LONG);
    assert!(matches!(
        asks(Duration::MAX).await.verdict,
        Verdict::Yielded { remaining, .. } if remaining > LONG
    ));
}

/// From there on scripts cannot tell them apart.
#[tokio::test]
async fn an_embedded_server_refuses_terms_above_those_that_scripts_can_tell_apart() {
    const LAST: u64 = (1 << 53) - 1;
    let machine = Machine::embedded(false);
    let a = holder("a");
    let term = machine.bench.acquire_for(&a, TTL).await;
    let cursor = machine.bench.cursor(&a, term, "job").await;
    let wish = claim("job", 1, cursor, after(cursor, 1), Want::Run);
    let mut batch = machine.bench.batch(&a, term, vec![wish]);
    batch.known = LAST - 1;
    let won = Claimed::Yours(vec![ClaimReply::Won { fence: LAST }]);
    assert_eq!(machine.bench.claim_batch(batch).await, won);
    machine.bench.release(&a, term, None).await;
    let wish = machine.bench.wish(&a, TTL, term);
    let error = machine
        .bench
        .store
        .campaign(vec![wish])
        .await
        .pop()
        .unwrap()
        .unwrap_err();
    assert_eq!(error.code(), Some("ERR"));
    let mut other = machine.bench.wish(&a, TTL, LAST - 1);
    other.group = group("other");
    assert_eq!(machine.bench.ask(other).await.verdict, Verdict::Acquired { term: LAST });
}

/// What only the embedded one can be asked for: two writable masters, and a replica that lags.
#[tokio::test]
async fn a_fork_is_another_master_and_a_promoted_one_lags() {
    let machine = Machine::embedded(true);
    let Kind::Embedded(server) = &machine.kind else {
        unreachable!()
    };
    let (a, b) = (holder("a"), holder("b"));
    machine.pass(LONG);
    let term = machine.bench.acquire_for(&a, TTL).await;
    let replica = server.fork();
    let other = Machine::on(
        Kind::Embedded(replica.clone()),
        machine.clock.clone(),
        machine.bench.namespace.clone(),
        Arc::new(in_namespace(replica.store(), &machine.bench.namespace)),
    );
    assert!(machine.bench.is_led_by(&a, term).await && other.bench.is_led_by(&a, term).await);
    other.bench.release(&a, term, None).await;
    // The other master is old: nobody waits there, and two lead.
    let second = other.acquires(&b, term).await;
    assert!(second > term && machine.bench.is_led_by(&a, term).await);
    replica.set_readonly(true);
    let ears = Arc::new(Heard::default());
    let (store, told) = (Arc::clone(&machine.bench.store), Arc::clone(&ears));
    let listening = tokio::spawn(async move { store.listen(told).await });
    eventually(BOUND, "whoever listens hears of a cut", || async {
        server.promote(&replica);
        *ears.gaps.lock().unwrap() > 0
    })
    .await;
    listening.abort();
    assert!(!machine.bench.is_led_by(&a, term).await && machine.bench.is_led_by(&b, second).await);
    // A younger one may have forgotten: nobody leads there before one lease has ended that it may have given.
    let young = server.fork();
    young.set_started(machine.clock.wall());
    let other = Machine::on(
        Kind::Embedded(young.clone()),
        machine.clock.clone(),
        machine.bench.namespace.clone(),
        Arc::new(in_namespace(young.store(), &machine.bench.namespace)),
    );
    other.bench.release(&b, second, None).await;
    assert_eq!(other.quarantined(&a, second).await, LONG + Duration::from_secs(1));
}

#[tokio::test]
async fn a_look_changes_nothing() {
    let machine = Machine::embedded(false);
    let Kind::Embedded(server) = &machine.kind else {
        unreachable!()
    };
    let a = holder("a");
    let term = machine.bench.acquire_for(&a, TTL).await;
    let cursor = machine.bench.cursor(&a, term, "job").await;
    let tick = after(cursor, 1);
    let fence = machine
        .bench
        .win(&a, term, claim("job", 1, cursor, tick, Want::Run))
        .await;
    let look = || server.leases().pop().unwrap();
    let first = look();
    assert_eq!(
        (first.holder.as_ref(), first.term, first.fence),
        (Some(&a), term, fence)
    );
    assert_eq!(first.ends_in, Some(TTL));
    let [job] = first.jobs.as_slice() else {
        panic!("{first:?}")
    };
    assert_eq!((job.cursor, job.fence), (Some(tick), fence));
    machine.bench.settle("job", fence, Ran::Ok).await;
    assert_eq!(look(), first, "a recorded run counts as an open one does");
    machine.pass(TTL + INSTANT);
    assert_eq!((look().holder, look().ends_in), (None, None));
    machine.step(-SignedDuration::from_secs(5));
    assert_eq!(look().holder, Some(a), "a look ends nothing");
}

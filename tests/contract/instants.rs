//! What holds at an instant itself, by a clock that stands: nothing ends a millisecond early or late.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use leader_core::__seam::{
    ActRequest, Acted, Ask, AskReply, Asked, ClaimReply, Claimed, Deed, End, Enrolled, Entry, Gap, GroupControl,
    Overlap, Renewed, Settled, TakenOver, UNLED, Verdict, Want, Written,
};
use leader_core::{Absence, AbsenceKind, Holder, Ran, ServiceName};

use crate::bench::{LONG, after, claim, end, group, holder, job, process};
use crate::machine::{INSTANT, Machine, TTL, just_before};

on_each_server!(
    a_pause_is_over_at_its_end,
    a_span_may_end_at_the_instant_at_which_it_is_asked_for,
    a_pause_of_no_length_leaves_nothing,
    acts_of_one_instant_have_numbers_and_runs_of_their_own,
    a_request_to_step_down_is_over_at_its_end,
    a_vacancy_is_left_to_others_until_its_instant,
    another_process_of_an_id_has_its_lease_if_that_is_the_only_one,
    a_drain_is_told_to_the_next_leader_and_no_further,
    a_foreign_lead_began_no_earlier_than_the_one_before_it_may_have_ended,
    who_is_spelled_as_ours_is_no_other_implementation,
    what_nobody_had_is_nobodys_and_what_is_decided_is_forgotten,
    a_foreign_lead_is_told_once_of_each_job,
    a_silence_is_over_after_the_millisecond_that_is_its_last,
    a_run_without_a_leader_is_silent_for_as_long,
    a_try_may_begin_at_its_instant,
    of_two_runs_that_pause_the_one_that_is_named_is_tried_again,
    a_run_lasts_from_its_claim_to_its_end,
    a_record_is_too_old_at_its_age,
    a_line_lives_as_long_as_it_was_to_after_a_step_back,
);

fn span(span: Duration) -> SignedDuration {
    SignedDuration::try_from(span).unwrap()
}

async fn led(machine: &Machine) -> (Holder, u64, Timestamp) {
    let a = holder("a");
    let term = machine.bench.acquire(&a).await;
    let cursor = machine.bench.cursor(&a, term, "job").await;
    (a, term, cursor)
}

async fn act(machine: &Machine, on: Option<&str>, deed: Deed) -> Acted {
    let request = ActRequest {
        group: machine.bench.group.clone(),
        job: on.map(job),
        deed,
        by: "ann".to_owned(),
        reason: String::new(),
    };
    machine.bench.store.act(request).await.unwrap()
}

async fn done(machine: &Machine, on: Option<&str>, deed: Deed) -> (u64, Timestamp) {
    match act(machine, on, deed).await {
        Acted::Done { number, at, .. } => (number, at),
        other => panic!("not done: {other:?}"),
    }
}

async fn state(machine: &Machine) -> GroupControl {
    machine.bench.store.control(&machine.bench.group).await.unwrap()
}

/// The absences of one job, as a leader hears of them.
async fn absences(machine: &Machine, who: &Holder, term: u64, jobs: &[&str], of: usize) -> Vec<Absence> {
    match machine.bench.take_over(who, term, jobs).await {
        TakenOver::Yours { mut absences, .. } => absences.remove(of),
        TakenOver::NotYours => panic!("not led by {who}"),
    }
}

async fn a_pause_is_over_at_its_end(machine: Machine) {
    let (a, term, cursor) = led(&machine).await;
    let until = machine.clock.wall() + span(TTL);
    done(&machine, Some("job"), Deed::pause(Gap::Skip, Some(until))).await;
    // Another act leaves it in force.
    done(&machine, None, Deed::pause(Gap::Owed, Some(until))).await;
    machine.pass(just_before(TTL));
    let read = state(&machine).await;
    assert_eq!((read.pauses.len(), read.ended.len()), (2, 0), "{read:?}");
    let wish = claim("job", 1, cursor, until, Want::Run);
    let held = machine.bench.claim(&a, term, wish.clone()).await;
    assert_eq!(held, ClaimReply::Held { until: Some(until) });
    machine.pass(INSTANT);
    let read = state(&machine).await;
    // What was owed is owed, and speaks for nothing.
    let ended: Vec<_> = read.ended.iter().map(|pause| pause.job.clone()).collect();
    assert_eq!((read.pauses.len(), ended), (0, vec![Some(job("job"))]));
    // Before anybody acts again, and has it put away.
    machine.bench.win(&a, term, wish).await;
    assert_eq!(act(&machine, Some("job"), Deed::Resume).await, Acted::Nothing);
    assert_eq!(act(&machine, None, Deed::Resume).await, Acted::Nothing);
}

async fn a_span_may_end_at_the_instant_at_which_it_is_asked_for(machine: Machine) {
    led(&machine).await;
    let now = machine.clock.wall();
    let of = |to: Timestamp| Deed::backfill(now - span(TTL), to);
    assert_eq!(
        act(&machine, Some("job"), of(now + span(INSTANT))).await,
        Acted::Untimely { now }
    );
    done(&machine, Some("job"), of(now)).await;
}

async fn a_pause_of_no_length_leaves_nothing(machine: Machine) {
    for gap in [Gap::Skip, Gap::Owed] {
        for _ in 0..2 {
            done(&machine, Some("job"), Deed::pause(gap, None)).await;
        }
        done(&machine, Some("job"), Deed::Resume).await;
        assert_eq!(state(&machine).await.ended, []);
    }
    // Nor does one that owes, however long it was.
    done(&machine, Some("job"), Deed::pause(Gap::Owed, None)).await;
    machine.pass(TTL);
    done(&machine, Some("job"), Deed::Resume).await;
    assert_eq!(state(&machine).await.ended, []);
}

async fn acts_of_one_instant_have_numbers_and_runs_of_their_own(machine: Machine) {
    let first = done(&machine, Some("job"), Deed::Trigger).await;
    let second = done(&machine, Some("job"), Deed::Trigger).await;
    assert!(second.0 > first.0, "{first:?} {second:?}");
    assert_eq!(second.1, first.1 + span(INSTANT));
}

async fn a_request_to_step_down_is_over_at_its_end(machine: Machine) {
    let (a, term, _) = led(&machine).await;
    let request = Ask {
        group: machine.bench.group.clone(),
        term: None,
        ends_after: TTL,
        asked: Asked {
            by: "ann".to_owned(),
            reason: String::new(),
        },
    };
    let answer = machine.bench.store.ask(request).await.unwrap();
    assert_eq!(
        answer,
        AskReply::Kept {
            holder: a.clone(),
            term
        }
    );
    let heard = async || match machine.bench.renew(&a, term).await {
        Renewed::Yes { asked, .. } => asked.is_some(),
        Renewed::NotYours { .. } => panic!("not led"),
    };
    machine.pass(just_before(TTL));
    assert!(heard().await);
    machine.pass(INSTANT);
    assert!(!heard().await);
}

async fn a_vacancy_is_left_to_others_until_its_instant(machine: Machine) {
    let (a, b) = (holder("a"), holder("b"));
    let asks = async |who: &Holder, known, yields| {
        let mut wish = machine.bench.wish(who, TTL, known);
        wish.yields = yields;
        machine.bench.ask(wish).await.verdict
    };
    let yielded = |remaining, term| Verdict::Yielded { remaining, term };
    let mut term = machine.bench.acquire_for(&a, TTL).await;
    for gives_back in [true, false] {
        if gives_back {
            machine.bench.release(&a, term, None).await;
        } else {
            machine.pass(TTL + INSTANT);
        }
        let passed = if gives_back { Duration::ZERO } else { INSTANT };
        assert_eq!(asks(&b, term, TTL).await, yielded(TTL.saturating_sub(passed), term));
        machine.pass(just_before(TTL.saturating_sub(passed)));
        assert_eq!(asks(&b, term, TTL).await, yielded(INSTANT, term));
        machine.pass(INSTANT);
        let Verdict::Acquired { term: next } = asks(&b, term, TTL).await else {
            panic!("it is over")
        };
        machine.bench.release(&b, next, None).await;
        term = machine.acquires(&a, next).await;
    }
}

async fn another_process_of_an_id_has_its_lease_if_that_is_the_only_one(machine: Machine) {
    let (first, second, other) = (process("a", 1), process("a", 2), holder("b"));
    let term = machine.bench.acquire_for(&first, TTL).await;
    let asks = async |who: &Holder, only_one| {
        let mut wish = machine.bench.wish(who, TTL, term);
        wish.only_one = only_one;
        machine.bench.ask(wish).await.verdict
    };
    for (who, only_one) in [(&second, false), (&other, false), (&other, true)] {
        assert!(matches!(asks(who, only_one).await, Verdict::Held { .. }), "{who}");
    }
    assert!(matches!(asks(&second, true).await, Verdict::Acquired { .. }));
}

async fn a_drain_is_told_to_the_next_leader_and_no_further(machine: Machine) {
    let (a, b) = (holder("a"), holder("b"));
    let since: Timestamp = "2026-03-02T11:00:00Z".parse().unwrap();
    let told = async |who: &Holder, term| match machine.bench.take_over(who, term, &["job"]).await {
        TakenOver::Yours { late_from, .. } => late_from,
        TakenOver::NotYours => panic!("not led by {who}"),
    };
    let term = machine.bench.acquire_for(&a, TTL).await;
    machine.bench.release(&a, term, Some(since)).await;
    let term = machine.acquires(&b, term).await;
    assert_eq!(told(&b, term).await, Some(since));
    // Its own lease once more is no other lead.
    let term = machine.acquires(&b, term).await;
    assert_eq!(told(&b, term).await, Some(since));
    machine.bench.release(&b, term, None).await;
    let term = machine.acquires(&a, term).await;
    assert_eq!(told(&a, term).await, None);
}

/// It may have taken the lease right after the last renewal, as long as that one's lease had not ended.
async fn a_foreign_lead_began_no_earlier_than_the_one_before_it_may_have_ended(mut machine: Machine) {
    let a = holder("a");
    let earlier = just_before(TTL);
    for (name, passes, gives_back, expected) in [
        ("early", earlier, false, earlier),
        ("late", TTL, false, Duration::ZERO),
        ("given-back", earlier, true, Duration::ZERO),
    ] {
        machine.bench.group = group(name);
        let term = machine.bench.acquire_for(&a, TTL).await;
        machine.bench.take_over(&a, term, &["job"]).await;
        if gives_back {
            machine.bench.release(&a, term, None).await;
        }
        machine.pass(passes);
        let foreign = Holder::from_store("pod-7");
        machine.write_lease(Written::Holder(foreign, Some(TTL))).await;
        let now = machine.clock.wall();
        assert!(matches!(machine.ask(&a, term).await, Verdict::Held { .. }));
        machine.pass(TTL + INSTANT);
        let term = machine.acquires(&a, term).await;
        let told = absences(&machine, &a, term, &["job"], 0).await;
        let began: Vec<_> = told.iter().map(|absence| (absence.kind, absence.from)).collect();
        assert_eq!(began, [(AbsenceKind::ForeignLeader, now - span(expected))], "{name}");
        machine.bench.release(&a, term, None).await;
    }
}

/// A process whose mark was lost leads as any other does: no absence is made of it.
async fn who_is_spelled_as_ours_is_no_other_implementation(mut machine: Machine) {
    let a = holder("a");
    for (at, (written, is_foreign)) in [
        ("b#0123456789abcdef", false),
        ("b#0123456789abcde", true),
        ("b#0123456789abcdef0", true),
        ("b#0123456789abcdeg", true),
        ("0123456789abcdef", true),
    ]
    .into_iter()
    .enumerate()
    {
        machine.bench.group = group(&format!("group-{at}"));
        let term = machine.bench.acquire_for(&a, TTL).await;
        machine.bench.take_over(&a, term, &["job"]).await;
        let holder = Holder::from_store(written);
        machine.write_lease(Written::Holder(holder, Some(TTL))).await;
        assert!(matches!(machine.ask(&a, term).await, Verdict::Held { .. }));
        machine.pass(TTL + INSTANT);
        let term = machine.acquires(&a, term).await;
        let told = absences(&machine, &a, term, &["job"], 0).await;
        assert_eq!(told.len(), usize::from(is_foreign), "{written}: {told:?}");
    }
    // Whoever leads before anybody of ours has come takes nothing away from them.
    machine.bench.group = group("never-ours");
    let foreign = Holder::from_store("pod-7");
    machine.write_lease(Written::Holder(foreign, Some(TTL))).await;
    assert!(matches!(machine.ask(&a, 0).await, Verdict::Held { .. }));
    machine.pass(TTL + INSTANT);
    let term = machine.bench.acquire_for(&a, TTL).await;
    assert_eq!(absences(&machine, &a, term, &["job"], 0).await, []);
}

async fn what_nobody_had_is_nobodys_and_what_is_decided_is_forgotten(machine: Machine) {
    let (a, b) = (holder("a"), holder("b"));
    let jobs = ["job", "other"];
    let term = machine.bench.acquire_for(&a, TTL).await;
    machine.bench.take_over(&a, term, &jobs).await;
    let cover = machine.bench.covers_one(&a, term);
    assert!(machine.bench.store.cover(cover).await.unwrap());
    let from = machine.clock.wall();
    machine.pass(TTL / 2);
    let until = machine.clock.wall();
    machine.bench.release(&a, term, None).await;
    let term = machine.acquires(&b, term).await;
    let decided = async |number, cursor, tick| {
        let wish = claim("other", number, cursor, tick, Want::Settle);
        assert_eq!(machine.bench.claim(&b, term, wish).await, ClaimReply::Passed);
        absences(&machine, &b, term, &jobs, 1).await
    };
    let told = absences(&machine, &b, term, &jobs, 1).await;
    let [uncovered] = told.as_slice() else {
        panic!("{told:?}")
    };
    assert_eq!((uncovered.from, uncovered.until), (from, Some(until)));
    let before = until - span(INSTANT);
    assert_eq!(decided(1, from, before).await, told, "its last instant is not decided");
    assert_eq!(decided(2, before, until).await, []);
}

async fn a_foreign_lead_is_told_once_of_each_job(mut machine: Machine) {
    let a = holder("a");
    let term = machine.bench.acquire_for(&a, TTL).await;
    machine.bench.take_over(&a, term, &["job", "other"]).await;
    let foreign = Holder::from_store("pod-7");
    machine.write_lease(Written::Holder(foreign, Some(TTL))).await;
    assert!(matches!(machine.ask(&a, term).await, Verdict::Held { .. }));
    machine.pass(TTL + INSTANT);
    let term = machine.acquires(&a, term).await;
    for _ in 0..2 {
        let told = absences(&machine, &a, term, &["job"], 0).await;
        let kinds: Vec<_> = told.iter().map(|absence| absence.kind).collect();
        assert_eq!(kinds, [AbsenceKind::ForeignLeader]);
    }
    // Then nobody had the other one, as far as anybody knows.
    let kinds = |absences: Vec<Absence>| absences.iter().map(|absence| absence.kind).collect::<Vec<_>>();
    let expected = [AbsenceKind::ForeignLeader, AbsenceKind::Uncovered];
    assert_eq!(kinds(machine.bench.ledger("other").await.absences), expected);
    machine.pass(INSTANT);
    machine.bench.release(&a, term, None).await;
    let term = machine.acquires(&a, term).await;
    assert_eq!(
        kinds(absences(&machine, &a, term, &["job", "other"], 1).await),
        expected
    );
}

async fn a_silence_is_over_after_the_millisecond_that_is_its_last(machine: Machine) {
    let (a, term, cursor) = led(&machine).await;
    let b = holder("b");
    let wish = claim("job", 1, cursor, after(cursor, 1), Want::Run);
    machine.bench.win(&a, term, wish).await;
    machine.bench.release(&a, term, None).await;
    let term = machine.acquires(&b, term).await;
    let looks = async || {
        let look = claim("job", 1, cursor, cursor, Want::Look);
        let mut batch = machine.bench.batch(&b, term, vec![look]);
        (batch.silence, batch.connected) = (TTL / 2, LONG);
        match machine.bench.claim_batch(batch).await {
            Claimed::Yours(mut replies) => match replies.pop().unwrap() {
                ClaimReply::Looked(found) => found.silent_in,
                other => panic!("{other:?}"),
            },
            Claimed::NotYours => panic!("not led"),
        }
    };
    assert_eq!(looks().await, Some(TTL / 2 + INSTANT));
    machine.pass(TTL / 2);
    assert_eq!(looks().await, Some(INSTANT));
    machine.pass(INSTANT);
    assert_eq!(looks().await, None);
}

async fn a_run_without_a_leader_is_silent_for_as_long(machine: Machine) {
    let (a, b) = (holder("a"), holder("b"));
    let cursor = machine.bench.cursor(&a, UNLED, "job").await;
    let wish = claim("job", 1, cursor, after(cursor, 1), Want::Run);
    machine.bench.win(&a, UNLED, wish).await;
    let looks = async || {
        let mut batch = machine
            .bench
            .batch(&b, UNLED, vec![claim("job", 1, cursor, cursor, Want::Look)]);
        batch.silence = TTL;
        assert!(matches!(machine.bench.claim_batch(batch).await, Claimed::Yours(_)));
        machine.bench.ledger("job").await.open.len()
    };
    machine.pass(TTL);
    assert_eq!(looks().await, 1);
    machine.pass(INSTANT);
    assert_eq!(looks().await, 0);
}

fn again(fence: u64) -> End {
    End {
        again_in: Some(TTL),
        ..end("job", fence, Ran::Error)
    }
}

async fn a_try_may_begin_at_its_instant(machine: Machine) {
    let (a, term, cursor) = led(&machine).await;
    let tick = after(cursor, 1);
    let fence = machine
        .bench
        .win(&a, term, claim("job", 1, cursor, tick, Want::Run))
        .await;
    let [Settled::Again { at }] = machine.bench.settle_all(vec![again(fence)]).await[..] else {
        panic!("not taken")
    };
    assert_eq!(at, machine.clock.wall() + span(TTL));
    let retry = claim("job", 2, tick, tick, Want::Retry { fence, tries: 1 });
    machine.pass(just_before(TTL));
    let early = ClaimReply::Early { left: INSTANT };
    assert_eq!(machine.bench.claim(&a, term, retry.clone()).await, early);
    machine.pass(INSTANT);
    machine.bench.win(&a, term, retry).await;
}

async fn of_two_runs_that_pause_the_one_that_is_named_is_tried_again(machine: Machine) {
    let (a, term, mut cursor) = led(&machine).await;
    let mut fences = Vec::new();
    for number in 1..=2 {
        let mut wish = claim("job", number, cursor, after(cursor, 1), Want::Run);
        (wish.overlap, wish.alive) = (Overlap::Allow, fences.clone());
        fences.push(machine.bench.win(&a, term, wish).await);
        cursor = after(cursor, 1);
    }
    machine
        .bench
        .settle_all(fences.iter().map(|fence| again(*fence)).collect())
        .await;
    machine.pass(TTL);
    let want = Want::Retry {
        fence: fences[1],
        tries: 1,
    };
    let mut retry = claim("job", 3, cursor, cursor, want);
    retry.overlap = Overlap::Allow;
    let next = machine.bench.win(&a, term, retry).await;
    let open = machine.bench.ledger("job").await.open;
    let told: Vec<_> = open.iter().map(|run| (run.fence, run.again_at.is_some())).collect();
    assert_eq!(told, [(fences[0], true), (next, false)]);
}

async fn a_run_lasts_from_its_claim_to_its_end(machine: Machine) {
    let (a, term, cursor) = led(&machine).await;
    let mut wish = claim("job", 1, cursor, after(cursor, 2), Want::Run);
    wish.passed = vec![crate::bench::passed(
        leader_core::MissedReason::Skipped,
        after(cursor, 1),
        after(cursor, 1),
        1,
    )];
    let fence = machine.bench.win(&a, term, wish).await;
    machine.pass(TTL);
    machine.bench.settle("job", fence, Ran::Ok).await;
    let records = machine.bench.ledger("job").await.records;
    let lasted: Vec<_> = records.iter().map(|record| (record.fence, record.duration())).collect();
    assert_eq!(lasted, [(fence, TTL), (0, Duration::ZERO)]);
}

/// Kept for 90 days, as is usual.
async fn a_record_is_too_old_at_its_age(machine: Machine) {
    let age = Duration::from_secs(90 * 86_400);
    let (a, mut term, mut cursor) = led(&machine).await;
    for (number, passes, kept) in [(1, Duration::ZERO, 1), (2, just_before(age), 2), (3, INSTANT, 2)] {
        machine.pass(passes);
        if !machine.bench.is_led_by(&a, term).await {
            term = machine.bench.acquire(&a).await;
        }
        let wish = claim("job", number, cursor, after(cursor, 1), Want::Run);
        let fence = machine.bench.win(&a, term, wish).await;
        machine.bench.settle("job", fence, Ran::Ok).await;
        cursor = after(cursor, 1);
        let ledger = machine.bench.ledger("job").await;
        assert_eq!(ledger.records.len(), kept, "{number}: {ledger:?}");
    }
}

async fn a_line_lives_as_long_as_it_was_to_after_a_step_back(machine: Machine) {
    let (a, b) = (holder("a"), holder("b"));
    let enrol = async |who: &Holder, ttl| {
        let entry = Entry {
            holder: who.clone(),
            service: ServiceName::new("shop".to_owned()).unwrap(),
            ttl,
            beat: String::new(),
            digest: 1,
            introduction: Some("says 1".to_owned()),
        };
        match machine.bench.store.enrol(entry).await.unwrap() {
            Enrolled::Yes { revision, .. } => revision,
            other => panic!("{other:?}"),
        }
    };
    let first = enrol(&a, TTL).await;
    assert!(enrol(&b, LONG).await > first, "each state of one instant has a number");
    machine.pass(TTL / 2);
    machine.step(-SignedDuration::from_hours(1));
    enrol(&b, LONG).await;
    let living = async || machine.bench.store.roster().await.unwrap().lines.len();
    machine.pass(TTL);
    assert_eq!(living().await, 2);
    machine.pass(INSTANT);
    assert_eq!(living().await, 1);
}

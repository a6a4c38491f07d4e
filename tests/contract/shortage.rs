//! A server without memory, or that follows another: what is left out, what is answered all the same, and what goes on.

use jiff::{SignedDuration, Timestamp};
use leader_core::__seam::{
    ActRequest, Acted, Claim, ClaimReply, Claimed, Deed, Enrolled, Entry, MakeRequest, Making, Meets, Release, Renewed,
    SettleBatch, Settled, StoreError, TakeOver, TakenOver, UNLED, Verdict, Want, Writer,
};
use leader_core::{Holder, Origin, Ran, ServiceName};

use crate::bench::{LONG, SCHEDULE, after, claim, end, group, holder, job};
use crate::machine::{INSTANT, Machine, TTL};

on_each_server!(
    what_a_leader_lacks_is_marked_where_there_is_memory_for_it,
    what_has_begun_with_a_name_that_was_changed_is_done,
    a_job_without_a_leader_is_forgotten_before_another_begins,
    each_group_is_judged_on_its_own,
    what_changes_nothing_needs_no_memory,
    what_begins_by_taking_something_away_is_done,
    whoever_looks_at_an_ended_lease_takes_it_away_except_on_a_replica,
);

fn take_over(machine: &Machine, who: &Holder, term: u64, jobs: &[(&str, &[&str])]) -> TakeOver {
    TakeOver {
        group: machine.bench.group.clone(),
        holder: who.clone(),
        term,
        jobs: jobs.iter().map(|(name, _)| job(name)).collect(),
        schedules: jobs.iter().map(|_| SCHEDULE.into()).collect(),
        writer: Writer::default(),
        elsewhere: Some(Vec::new()),
        was: jobs
            .iter()
            .map(|(_, was)| was.iter().map(|name| job(name)).collect())
            .collect(),
        beside: Vec::new(),
    }
}

async fn taken_over(machine: &Machine, request: TakeOver) -> Result<Vec<Timestamp>, StoreError> {
    match machine.bench.store.take_over(request).await? {
        TakenOver::Yours { cursors, .. } => Ok(cursors),
        TakenOver::NotYours => panic!("not led"),
    }
}

async fn lacked(machine: &Machine, name: &str) -> usize {
    machine.bench.ledger(name).await.absences.len()
}

async fn what_a_leader_lacks_is_marked_where_there_is_memory_for_it(mut machine: Machine) {
    let a = holder("a");
    let term = machine.bench.acquire(&a).await;
    let both = take_over(&machine, &a, term, &[("job", &[]), ("other", &[])]);
    taken_over(&machine, both).await.unwrap();
    let one = take_over(&machine, &a, term, &[("job", &[])]);
    let cover = machine.bench.covers_one(&a, term);
    for full in [true, false] {
        machine.set_full(full).await;
        assert!(machine.bench.store.cover(cover.clone()).await.unwrap());
        assert_eq!(lacked(&machine, "other").await, usize::from(!full), "it is covered");
        taken_over(&machine, one.clone()).await.unwrap();
        assert_eq!(lacked(&machine, "other").await, usize::from(!full), "it is taken over");
    }
}

/// The first change needs no memory, and the rest of the step is let finish.
async fn what_has_begun_with_a_name_that_was_changed_is_done(mut machine: Machine) {
    let a = holder("a");
    let term = machine.bench.acquire(&a).await;
    let before = take_over(&machine, &a, term, &[("old", &[]), ("other", &[])]);
    let cursors = taken_over(&machine, before).await.unwrap();
    machine.pass(INSTANT);
    machine.set_full(true).await;
    let after = take_over(&machine, &a, term, &[("new", &["old"])]);
    assert_eq!(taken_over(&machine, after).await.unwrap(), cursors[..1]);
    assert_eq!(lacked(&machine, "other").await, 1);
}

async fn a_job_without_a_leader_is_forgotten_before_another_begins(mut machine: Machine) {
    let a = holder("a");
    let known = take_over(&machine, &a, UNLED, &[("known", &[])]);
    let cursors = taken_over(&machine, known.clone()).await.unwrap();
    machine.pass(INSTANT);
    machine.set_full(true).await;
    let alone = take_over(&machine, &a, UNLED, &[("fresh", &[])]);
    assert_eq!(taken_over(&machine, alone).await.unwrap_err().code(), Some("OOM"));
    let both = take_over(&machine, &a, UNLED, &[("known", &[]), ("fresh", &[])]);
    let told = taken_over(&machine, both).await.unwrap();
    assert_eq!(told, [cursors[0], cursors[0] + SignedDuration::from_millis(1)]);
    machine.set_full(false).await;
    // A replica forgets nothing, and answers what it knows.
    let term = machine.bench.acquire(&a).await;
    let led = take_over(&machine, &a, term, &[("led", &[])]);
    taken_over(&machine, led).await.unwrap();
    let covered = take_over(&machine, &a, term, &[("known", &[])]);
    taken_over(&machine, covered).await.unwrap();
    assert_eq!(lacked(&machine, "led").await, 1);
    machine.set_readonly(true).await;
    let mut unled = take_over(&machine, &a, UNLED, &[("led", &[])]);
    assert_eq!(
        taken_over(&machine, unled.clone()).await.unwrap(),
        [cursors[0] + SignedDuration::from_millis(1)]
    );
    machine.connect_anew();
    assert_eq!(lacked(&machine, "led").await, 1);
    machine.set_readonly(false).await;
    unled.schedules = known.schedules;
    taken_over(&machine, unled).await.unwrap();
    assert_eq!(lacked(&machine, "led").await, 0);
}

async fn each_group_is_judged_on_its_own(mut machine: Machine) {
    let (a, b) = (holder("a"), holder("b"));
    let term = machine.bench.acquire(&a).await;
    let mut vacant = machine.bench.wish(&b, TTL, 0);
    vacant.group = group("vacant");
    let held = machine.bench.wish(&b, TTL, term);
    machine.set_full(true).await;
    for wishes in [vec![vacant.clone(), held.clone()], vec![held, vacant]] {
        let vacant_first = wishes[0].group != machine.bench.group;
        let mut answers = machine.bench.store.campaign(wishes).await;
        if vacant_first {
            answers.reverse();
        }
        let [Ok(held), Err(refused)] = answers.as_slice() else {
            panic!("{answers:?}")
        };
        assert!(matches!(held.verdict, Verdict::Held { .. }), "{held:?}");
        assert_eq!(refused.code(), Some("OOM"));
    }
}

/// All at one instant, as everything that was written before.
async fn what_changes_nothing_needs_no_memory(mut machine: Machine) {
    let (a, b) = (holder("a"), holder("b"));
    let shop = |who: &Holder, service: &str| Entry {
        holder: who.clone(),
        service: ServiceName::new(service.to_owned()).unwrap(),
        ttl: LONG,
        beat: String::new(),
        digest: 1,
        introduction: Some("says 1".to_owned()),
    };
    assert!(matches!(
        machine.bench.store.enrol(shop(&a, "shop")).await.unwrap(),
        Enrolled::Yes { .. }
    ));
    let term = machine.bench.acquire(&a).await;
    let cursor = machine.bench.cursor(&a, term, "job").await;
    let run = claim("job", 1, cursor, after(cursor, 1), Want::Run);
    let fence = machine.bench.win(&a, term, run).await;
    machine.bench.release(&a, term, None).await;
    machine.set_full(true).await;
    // A ghost of an earlier campaign.
    assert_eq!(machine.ask(&b, term - 1).await, Verdict::Stale { term });
    machine.set_full(false).await;
    let term = machine.acquires(&b, term).await;
    machine.set_full(true).await;
    let mut stranger = machine.bench.store.enrol(shop(&b, "mail")).await;
    assert!(matches!(stranger, Ok(Enrolled::OtherService { .. })), "{stranger:?}");
    stranger = machine.bench.store.enrol(shop(&b, "shop")).await;
    assert_eq!(stranger.unwrap_err().code(), Some("OOM"));
    let look = claim("job", 1, cursor, cursor, Want::Look);
    let mut batch = machine.bench.batch(&b, term, vec![look]);
    (batch.silence, batch.connected) = (TTL, LONG);
    let Claimed::Yours(replies) = machine.bench.claim_batch(batch).await else {
        panic!("not led")
    };
    assert!(matches!(replies[..], [ClaimReply::Looked(_)]), "{replies:?}");
    // Nobody's run is to be ended, and the one that is open is another.
    let settles = async |fence| {
        let batch = SettleBatch {
            group: machine.bench.group.clone(),
            ends: vec![end("job", fence, Ran::Ok)],
        };
        machine.bench.store.settle(vec![batch]).await.pop().unwrap()
    };
    assert_eq!(settles(fence + 1).await.unwrap(), [Settled::Fenced]);
    assert_eq!(settles(fence).await.unwrap_err().code(), Some("OOM"));
    // A tick that another run holds up; and one that waits no more.
    let (cursor, tick) = (after(cursor, 1), after(cursor, 2));
    let wish = claim("job", 2, cursor, tick, Want::Owed);
    assert_eq!(machine.bench.claim(&b, term, wish).await, ClaimReply::Busy);
    let waited = claim("job", 2, cursor, tick, Want::Waited);
    assert_eq!(machine.bench.claim(&b, term, waited).await, ClaimReply::Passed);
}

/// A run that somebody has asked for; and one of a job whose name was that of a schedule made at run time.
async fn what_begins_by_taking_something_away_is_done(mut machine: Machine) {
    let a = holder("a");
    let term = machine.bench.acquire(&a).await;
    let cursor = machine.bench.cursor(&a, term, "job").await;
    let request = ActRequest {
        group: machine.bench.group.clone(),
        job: Some(job("job")),
        deed: Deed::Trigger,
        by: "ann".to_owned(),
        reason: String::new(),
    };
    let Acted::Done { number, at, .. } = machine.bench.store.act(request).await.unwrap() else {
        panic!("not asked")
    };
    let make = |what| MakeRequest {
        group: machine.bench.group.clone(),
        name: job("made"),
        what,
        by: "ann".to_owned(),
        writer: Writer::default(),
    };
    let making = Making::Make {
        handler: job("handler"),
        schedule: SCHEDULE.into(),
        payload: "1".into(),
    };
    for what in [making, Making::End] {
        machine.bench.store.make(make(what)).await.unwrap();
    }
    let begins = machine.bench.cursor(&a, term, "made").await;
    machine.set_full(true).await;
    let by_hand = Claim {
        meets: Some(Meets {
            request: number,
            more: false,
        }),
        ..claim("job", 1, at, at, Want::Extra(Origin::Manual))
    };
    let by_hand = machine.bench.win(&a, term, by_hand).await;
    let revived = claim("made", 2, begins, after(begins, 1), Want::Run);
    let revived = machine.bench.win(&a, term, revived).await;
    // The next ones begin by writing.
    for (name, cursor) in [("job", cursor), ("made", after(begins, 1))] {
        let mut wish = claim(name, 3, cursor, after(cursor, 1), Want::Settle);
        wish.alive = vec![by_hand, revived];
        let batch = machine.bench.batch(&a, term, vec![wish]);
        let mut answers = machine.bench.store.claim(vec![batch]).await;
        let error = answers.pop().unwrap().unwrap_err();
        assert_eq!(error.code(), Some("OOM"), "{name}");
    }
}

/// It is seen once the clock is set back to before the end.
async fn whoever_looks_at_an_ended_lease_takes_it_away_except_on_a_replica(mut machine: Machine) {
    let (a, b) = (holder("a"), holder("b"));
    for (number, (readonly, refused)) in [(false, true), (false, false), (true, true), (true, false)]
        .into_iter()
        .enumerate()
    {
        machine.bench.group = group(&format!("group-{number}"));
        let term = machine.bench.acquire_for(&a, TTL).await;
        if readonly {
            machine.set_readonly(true).await;
        } else {
            machine.set_full(true).await;
        }
        machine.pass(TTL + INSTANT);
        if refused {
            let cursor = machine.clock.wall();
            let wish = claim("job", 1, cursor, after(cursor, 1), Want::Run);
            let batch = machine.bench.batch(&a, UNLED, vec![wish]);
            let error = machine.bench.store.claim(vec![batch]).await.pop().unwrap().unwrap_err();
            assert_eq!(error.code(), Some(if readonly { "READONLY" } else { "OOM" }));
            machine.connect_anew();
        } else {
            let release = Release {
                group: machine.bench.group.clone(),
                holder: a.clone(),
                term,
                draining_since: None,
            };
            machine.bench.store.release(release).await.unwrap();
            assert!(matches!(
                machine.bench.renew_for(&a, term, TTL).await,
                Renewed::NotYours { holder: None, .. }
            ));
        }
        machine.set_full(false).await;
        machine.step(-SignedDuration::try_from(TTL / 2).unwrap());
        machine.set_readonly(false).await;
        let verdict = machine.ask(&b, term).await;
        let is_there = matches!(verdict, Verdict::Held { .. });
        assert_eq!(is_there, readonly, "replica {readonly}, refused {refused}: {verdict:?}");
        machine.pass(2 * TTL);
    }
}

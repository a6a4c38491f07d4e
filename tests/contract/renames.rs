//! Jobs that have another name: what was kept of them goes on, and who knows only the old name goes on under the new one.

use leader_core::__seam::{
    AbsenceKind, ActRequest, Acted, ClaimReply, Deed, Gap, MadeReply, MakeRequest, Making, Settled, TakeOver,
    TakenOver, UNLED, Want, Writer,
};
use leader_core::{Holder, JobLedger, JobName, MissedReason, Outcome, Ran};

use crate::bench::{Bench, COARSE, SCHEDULE, after, claim, holder, job, passed};

on_each_store!(
    what_is_kept_of_a_job_goes_on_under_its_new_name,
    who_knows_only_the_old_name_goes_on_under_the_new_one,
    a_run_that_began_under_the_old_name_is_settled,
    what_people_asked_of_the_old_name_is_asked_of_the_new_one,
    a_job_that_is_known_takes_nothing_over,
    names_follow_one_upon_the_other,
    an_old_name_may_be_given_to_a_new_job,
    an_old_name_may_be_that_of_a_job_that_is_asked_for_apart,
    only_the_leader_renames,
    so_many_names_are_followed,
    nothing_is_claimed_or_made_under_a_name_that_is_another_now,
);

/// Takes over a job that had these names: the cursor, and the name that it is kept by.
async fn take_over(
    bench: &Bench,
    holder: &Holder,
    term: u64,
    jobs: &[(&str, &[&str])],
) -> Vec<(jiff::Timestamp, JobName)> {
    let names = |names: &[&str]| -> Vec<JobName> { names.iter().map(|name| job(name)).collect() };
    let request = TakeOver {
        group: bench.group.clone(),
        holder: holder.clone(),
        term,
        jobs: jobs.iter().map(|(name, _)| job(name)).collect(),
        schedules: jobs.iter().map(|_| SCHEDULE.into()).collect(),
        writer: Writer::default(),
        elsewhere: Some(Vec::new()),
        was: jobs.iter().map(|(_, was)| names(was)).collect(),
        beside: Vec::new(),
    };
    let answer = bench.store.take_over(request).await.unwrap();
    tokio::time::sleep(COARSE).await;
    match answer {
        TakenOver::Yours { cursors, kept, .. } => cursors.into_iter().zip(kept).collect(),
        TakenOver::NotYours => panic!("not led by {holder}"),
    }
}

/// A job `old` with a past, led by `a`: its cursor and ledger.
async fn with_a_past(bench: &Bench, a: &Holder, term: u64) -> JobLedger {
    let cursor = bench.cursor(a, term, "old").await;
    let mut wish = claim("old", 1, cursor, after(cursor, 2), Want::Run);
    wish.passed = vec![passed(MissedReason::Skipped, after(cursor, 1), after(cursor, 1), 1)];
    let fence = bench.win(a, term, wish).await;
    bench.settle("old", fence, Ran::Ok).await;
    bench
        .win(a, term, claim("old", 2, after(cursor, 2), after(cursor, 3), Want::Run))
        .await;
    let ledger = bench.ledger("old").await;
    assert_eq!((ledger.decided(), ledger.pending(), ledger.records.len()), (2, 1, 2));
    ledger
}

async fn hand_over(bench: &Bench, from: &Holder, term: u64, to: &Holder) -> u64 {
    bench.release(from, term, None).await;
    tokio::time::sleep(COARSE).await;
    bench.acquire(to).await
}

async fn what_is_kept_of_a_job_goes_on_under_its_new_name(bench: Bench) {
    let (a, b) = (holder("a"), holder("b"));
    let term = bench.acquire(&a).await;
    let before = with_a_past(&bench, &a, term).await;
    let term = hand_over(&bench, &a, term, &b).await;
    let taken = take_over(&bench, &b, term, &[("new", &["older", "old"])]).await;
    assert_eq!(taken, [(before.cursor.unwrap(), job("new"))]);
    assert_eq!(bench.ledger("new").await, before);
    // Whoever asks by the old name hears the same.
    assert_eq!(bench.ledger("old").await, before);
    assert_eq!(bench.ledger("older").await, JobLedger::default());
    // Asked again, nothing changes.
    assert_eq!(take_over(&bench, &b, term, &[("new", &["older", "old"])]).await, taken);
    assert_eq!(bench.ledger("new").await, before);
}

async fn who_knows_only_the_old_name_goes_on_under_the_new_one(bench: Bench) {
    let (a, b) = (holder("a"), holder("b"));
    let mut term = bench.acquire(&a).await;
    let mut cursor = with_a_past(&bench, &a, term).await.cursor.unwrap();
    for round in 0..3 {
        term = hand_over(&bench, &a, term, &b).await;
        let taken = take_over(&bench, &b, term, &[("new", &["old"])]).await;
        assert_eq!(taken, [(cursor, job("new"))], "round {round}");
        let next = after(cursor, 1);
        let wish = claim("new", 10 + round, cursor, next, Want::Settle);
        assert_eq!(bench.claim(&b, term, wish).await, ClaimReply::Passed);
        term = hand_over(&bench, &b, term, &a).await;
        let taken = take_over(&bench, &a, term, &[("old", &[])]).await;
        assert_eq!(taken, [(next, job("new"))], "round {round}");
        cursor = after(next, 1);
        let wish = claim("new", 20 + round, next, cursor, Want::Settle);
        assert_eq!(bench.claim(&a, term, wish).await, ClaimReply::Passed);
    }
    let ledger = bench.ledger("new").await;
    assert_eq!((ledger.cursor, ledger.absences.len()), (Some(cursor), 0));
}

async fn a_run_that_began_under_the_old_name_is_settled(bench: Bench) {
    let (a, b) = (holder("a"), holder("b"));
    let term = bench.acquire(&a).await;
    let open = with_a_past(&bench, &a, term).await.open[0].clone();
    let term = hand_over(&bench, &a, term, &b).await;
    take_over(&bench, &b, term, &[("new", &["old"])]).await;
    // It holds up what comes after it.
    let next = claim("new", 1, open.tick, after(open.tick, 1), Want::Owed);
    assert_eq!(bench.claim(&b, term, next).await, ClaimReply::Busy);
    bench.beat(&[open.fence]).await;
    assert_eq!(bench.settle("old", open.fence, Ran::Error).await, Settled::Yes);
    assert_eq!(bench.settle("old", open.fence, Ran::Error).await, Settled::Fenced);
    let ledger = bench.ledger("new").await;
    assert_eq!((ledger.pending(), ledger.counts[&Outcome::Ran(Ran::Error)]), (0, 1));
}

async fn what_people_asked_of_the_old_name_is_asked_of_the_new_one(bench: Bench) {
    let (a, b) = (holder("a"), holder("b"));
    let act = async |name: &str, deed| {
        let request = ActRequest {
            group: bench.group.clone(),
            job: Some(job(name)),
            deed,
            by: "ann".to_owned(),
            reason: "a | reason".to_owned(),
        };
        bench.store.act(request).await.unwrap()
    };
    let term = bench.acquire(&a).await;
    with_a_past(&bench, &a, term).await;
    act("old", Deed::pause(Gap::Owed, None)).await;
    act("old", Deed::Trigger).await;
    act("other", Deed::Trigger).await;
    let term = hand_over(&bench, &a, term, &b).await;
    take_over(&bench, &b, term, &[("new", &["old"])]).await;
    let state = bench.store.control(&bench.group).await.unwrap();
    assert_eq!(
        state.pauses.iter().map(|pause| pause.job.clone()).collect::<Vec<_>>(),
        [Some(job("new"))]
    );
    let asked: Vec<_> = state.requests.iter().map(|request| request.job.clone()).collect();
    assert_eq!(asked, [job("new"), job("other")]);
    assert_eq!(state.requests[0].reason, "a | reason");
    // Who knows the old name only may end it, and ask.
    assert!(
        matches!(act("old", Deed::Resume).await, Acted::Done { before: Some(before), .. } if before.job == Some(job("new")))
    );
    act("old", Deed::Trigger).await;
    let state = bench.store.control(&bench.group).await.unwrap();
    assert_eq!((state.pauses.len(), state.requests.len()), (0, 3));
    assert_eq!(state.requests[2].job, job("new"));
}

async fn a_job_that_is_known_takes_nothing_over(bench: Bench) {
    let a = holder("a");
    let term = bench.acquire(&a).await;
    let before = with_a_past(&bench, &a, term).await;
    let (since, _) = take_over(&bench, &a, term, &[("new", &[])]).await[0].clone();
    let taken = take_over(&bench, &a, term, &[("new", &["old"])]).await;
    assert_eq!(taken, [(since, job("new"))]);
    let old = bench.ledger("old").await;
    assert_eq!((old.cursor, old.records), (before.cursor, before.records));
    // The group knows it still, and nobody has it.
    assert_eq!(old.absences[0].kind, AbsenceKind::Removed);
}

async fn names_follow_one_upon_the_other(bench: Bench) {
    let a = holder("a");
    let term = bench.acquire(&a).await;
    let before = with_a_past(&bench, &a, term).await;
    let fence = before.open[0].fence;
    take_over(&bench, &a, term, &[("new", &["old"])]).await;
    take_over(&bench, &a, term, &[("newest", &["new", "old"])]).await;
    for name in ["newest", "new", "old"] {
        assert_eq!(bench.ledger(name).await, before, "{name}");
        let taken = take_over(&bench, &a, term, &[(name, &[])]).await;
        assert_eq!(taken, [(before.cursor.unwrap(), job("newest"))], "{name}");
    }
    // And back: it is the first name's again, whatever it is kept by.
    let taken = take_over(&bench, &a, term, &[("old", &["newest"])]).await;
    assert_eq!(taken, [(before.cursor.unwrap(), job("newest"))]);
    assert_eq!(bench.settle("old", fence, Ran::Ok).await, Settled::Yes);
}

async fn an_old_name_may_be_given_to_a_new_job(bench: Bench) {
    let a = holder("a");
    let term = bench.acquire(&a).await;
    let before = with_a_past(&bench, &a, term).await;
    take_over(&bench, &a, term, &[("new", &["old"])]).await;
    let taken = take_over(&bench, &a, term, &[("old", &[]), ("new", &[])]).await;
    assert_eq!(
        (taken[0].1.clone(), taken[1].clone()),
        (job("old"), (before.cursor.unwrap(), job("new")))
    );
    let fresh = bench.ledger("old").await;
    assert_eq!(
        (fresh.cursor, fresh.decided(), fresh.open.len()),
        (Some(taken[0].0), 0, 0)
    );
    assert_eq!(bench.ledger("new").await, before);
    assert_eq!(take_over(&bench, &a, term, &[("old", &[])]).await, [taken[0].clone()]);
}

/// What needs a leader and what needs none are asked for apart: the old name of one may be a new job of the other kind.
async fn an_old_name_may_be_that_of_a_job_that_is_asked_for_apart(bench: Bench) {
    let a = holder("a");
    let term = bench.acquire(&a).await;
    let before = with_a_past(&bench, &a, term).await;
    let ask = |term, name: &'static str, was: &[&str], beside: &'static str| {
        let request = TakeOver {
            group: bench.group.clone(),
            holder: a.clone(),
            term,
            jobs: vec![job(name)],
            schedules: vec![SCHEDULE.into()],
            writer: Writer::default(),
            elsewhere: None,
            was: vec![was.iter().map(|name| job(name)).collect()],
            beside: vec![job(beside)],
        };
        let store = std::sync::Arc::clone(&bench.store);
        async move {
            match store.take_over(request).await.unwrap() {
                TakenOver::Yours { kept, .. } => kept,
                TakenOver::NotYours => panic!("not led"),
            }
        }
    };
    // It is in use already: nothing goes on under another name.
    assert_eq!(ask(term, "new", &["old"], "old").await, [job("new")]);
    assert_eq!(ask(UNLED, "old", &[], "new").await, [job("old")]);
    assert_eq!(bench.ledger("old").await.cursor, before.cursor);
    // It came into use later.
    assert_eq!(ask(term, "newest", &["old"], "else").await, [job("newest")]);
    assert_eq!(bench.ledger("newest").await.cursor, before.cursor);
    assert_eq!(ask(UNLED, "old", &[], "else").await, [job("newest")]);
    assert_eq!(ask(UNLED, "old", &[], "newest").await, [job("old")]);
    assert_eq!(bench.ledger("old").await.records.len(), 0);
    assert_eq!(bench.ledger("newest").await.records.len(), before.records.len());
}

async fn only_the_leader_renames(bench: Bench) {
    let (a, b) = (holder("a"), holder("b"));
    let term = bench.acquire(&a).await;
    let before = with_a_past(&bench, &a, term).await;
    let request = TakeOver {
        group: bench.group.clone(),
        holder: b,
        term,
        jobs: vec![job("new")],
        schedules: vec![SCHEDULE.into()],
        writer: Writer::default(),
        elsewhere: None,
        was: vec![vec![job("old")]],
        beside: Vec::new(),
    };
    assert_eq!(bench.store.take_over(request).await.unwrap(), TakenOver::NotYours);
    assert_eq!(bench.ledger("old").await, before);
    assert_eq!(bench.ledger("new").await, JobLedger::default());
}

/// What goes on under more than that is nobody's, as a circle of names.
async fn so_many_names_are_followed(bench: Bench) {
    const MOST: usize = 16;
    let a = holder("a");
    let term = bench.acquire(&a).await;
    let since = bench.cursor(&a, term, "name-0").await;
    let names: Vec<_> = (0..=MOST + 1).map(|at| format!("name-{at}")).collect();
    for at in 1..=MOST {
        let was = [names[at - 1].as_str()];
        let taken = take_over(&bench, &a, term, &[(&names[at], &was)]).await;
        assert_eq!(taken, [(since, job(&names[at]))]);
    }
    let taken = take_over(&bench, &a, term, &[("name-0", &[])]).await;
    assert_eq!(taken, [(since, job("name-16"))]);
    assert_eq!(bench.ledger("name-0").await.cursor, Some(since));
    let pauses = async |name: &str| {
        let request = ActRequest {
            group: bench.group.clone(),
            job: Some(job(name)),
            deed: Deed::pause(Gap::Owed, None),
            by: "ann".to_owned(),
            reason: String::new(),
        };
        bench.store.act(request).await.unwrap();
        let acts = bench.store.control(&bench.group).await.unwrap().acts;
        acts[0].job.clone()
    };
    assert_eq!(pauses("name-0").await, Some(job("name-16")));
    take_over(&bench, &a, term, &[("name-17", &["name-16"])]).await;
    let taken = take_over(&bench, &a, term, &[("name-1", &[])]).await;
    assert_eq!(taken, [(since, job("name-17"))]);
    assert_eq!(pauses("name-1").await, Some(job("name-17")));
    assert_eq!(pauses("name-0").await, Some(job("name-0")));
    let taken = take_over(&bench, &a, term, &[("name-0", &[])]).await;
    assert_eq!(taken[0].1, job("name-0"));
    assert!(taken[0].0 > since, "it begins anew");
}

async fn nothing_is_claimed_or_made_under_a_name_that_is_another_now(bench: Bench) {
    let a = holder("a");
    let term = bench.acquire(&a).await;
    let cursor = with_a_past(&bench, &a, term).await.cursor.unwrap();
    take_over(&bench, &a, term, &[("new", &["old"])]).await;
    for want in [Want::Run, Want::Owed, Want::Settle, Want::Adopt] {
        let wish = claim("old", 9, cursor, after(cursor, 1), want);
        assert_eq!(bench.claim(&a, term, wish).await, ClaimReply::OtherSchedule, "{want:?}");
    }
    let waited = claim("old", 9, cursor, after(cursor, 1), Want::Waited);
    assert_eq!(bench.claim(&a, term, waited).await, ClaimReply::Passed);
    let request = MakeRequest {
        group: bench.group.clone(),
        name: job("old"),
        what: Making::Make {
            handler: job("handler"),
            schedule: SCHEDULE.into(),
            payload: "1".into(),
        },
        by: "ann".to_owned(),
        writer: Writer::default(),
    };
    assert_eq!(bench.store.make(request).await.unwrap(), MadeReply::Taken);
}

//! Schedules made at run time: one step with the state of their job.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use leader_core::__seam::{
    ActRequest, Acted, ClaimReply, Deed, Gap, MADE_AT_ONCE, MADE_SCHEDULES, MadeList, MadeReply, MakeRequest, Making,
    Overlap, TakeOver, TakenOver, Want, Writer,
};
use leader_core::{Holder, Keep, MissedReason, Outcome, Ran};
use leader_tests::eventually;

use crate::bench::{BOUND, Bench, after, claim, holder, job, passed};
use crate::heard::Heard;

on_each_store!(
    it_begins_where_it_is_made_and_the_same_again_changes_nothing,
    an_end_stops_claims_that_are_on_their_way,
    what_is_made_anew_is_owed_nothing,
    names_of_the_program_are_taken,
    there_is_a_most,
    payloads_are_read_once_and_not_all_at_once,
    a_change_is_told_and_numbered_with_the_acts,
    what_was_asked_of_it_ends_with_it,
    one_with_an_open_run_is_remembered_until_that_has_ended,
    the_name_of_one_that_ended_may_become_a_job_of_the_program,
    what_is_kept_of_one_that_ended_goes_when_its_records_are_too_old,
);

const EVERY: &str = "every 1s";

fn request(bench: &Bench, name: &str, what: Making) -> MakeRequest {
    MakeRequest {
        group: bench.group.clone(),
        name: job(name),
        what,
        by: "ann".to_owned(),
        writer: Writer::new("1.2", "2026a"),
    }
}

async fn ask(bench: &Bench, name: &str, what: Making) -> MadeReply {
    bench.store.make(request(bench, name, what)).await.unwrap()
}

async fn make(bench: &Bench, name: &str, schedule: &str, payload: &str) -> MadeReply {
    let making = Making::Make {
        handler: job("handler"),
        schedule: schedule.into(),
        payload: payload.into(),
    };
    ask(bench, name, making).await
}

fn done(reply: MadeReply) -> (u64, Timestamp, bool) {
    match reply {
        MadeReply::Done { number, at, new } => (number, at, new),
        other => panic!("not done: {other:?}"),
    }
}

async fn list(bench: &Bench, after: u64) -> MadeList {
    bench.store.made(&bench.group, after).await.unwrap()
}

/// What a leader hears of jobs that were made at run time.
async fn take_over(bench: &Bench, holder: &Holder, term: u64, name: &str) -> (Timestamp, String) {
    let request = TakeOver {
        elsewhere: None,
        was: vec![Vec::new()],
        beside: Vec::new(),
        group: bench.group.clone(),
        holder: holder.clone(),
        term,
        jobs: vec![job(name)],
        schedules: vec!["".into()],
        writer: Writer::default(),
    };
    match bench.store.take_over(request).await.unwrap() {
        TakenOver::Yours { cursors, schedules, .. } => (cursors[0], schedules[0].text.clone()),
        TakenOver::NotYours => panic!("not led"),
    }
}

async fn led(bench: &Bench) -> (Holder, u64) {
    let a = holder("a");
    let term = bench.acquire(&a).await;
    (a, term)
}

async fn it_begins_where_it_is_made_and_the_same_again_changes_nothing(bench: Bench) {
    let (number, at, new) = done(make(&bench, "x", EVERY, "{\"a\":1}").await);
    assert!(new);
    assert_eq!(
        make(&bench, "x", EVERY, "{\"a\":1}").await,
        MadeReply::Same { number, at }
    );
    let ledger = bench.ledger("x").await;
    assert_eq!((ledger.since, ledger.cursor), (Some(at), Some(at)));
    assert_eq!((ledger.handler.as_deref(), ledger.retired), (Some("handler"), None));
    let kept = ledger.schedule.unwrap();
    assert_eq!((kept.text.as_str(), kept.since), (EVERY, Some(at)));
    assert_eq!(
        (kept.version.as_str(), kept.time_zones.as_str(), kept.by.as_str()),
        ("1.2", "2026a", "ann")
    );
    let read = list(&bench, 0).await;
    let [entry] = read.entries.as_slice() else {
        panic!("{read:?}")
    };
    let line = entry.line.as_ref().unwrap();
    assert_eq!((entry.number, line.born, line.at), (number, number, at));
    assert_eq!(
        (line.by.as_str(), line.version.as_str(), line.schedule.as_str()),
        ("ann", "1.2", EVERY)
    );
    assert_eq!((entry.payload.as_deref(), read.up_to), (Some("{\"a\":1}"), number));

    // Another payload: the schedule in force is as before.
    let (second, _, new) = done(make(&bench, "x", EVERY, "2").await);
    assert!(!new && second > number);
    // Another schedule is wanted; its leader brings it into force.
    let (third, _, new) = done(make(&bench, "x", "every 2s", "2").await);
    assert!(!new && third > second);
    let ledger = bench.ledger("x").await;
    assert_eq!(
        (ledger.schedule.unwrap().text.as_str(), ledger.cursor),
        (EVERY, Some(at))
    );
    let entry = list(&bench, second).await.entries.remove(0);
    let line = entry.line.unwrap();
    assert_eq!(
        (line.born, line.schedule.as_str(), entry.number),
        (number, "every 2s", third)
    );

    let (a, term) = led(&bench).await;
    assert_eq!(take_over(&bench, &a, term, "x").await, (at, EVERY.to_owned()));
    bench.win(&a, term, claim("x", 1, at, after(at, 1), Want::Run)).await;
}

async fn an_end_stops_claims_that_are_on_their_way(bench: Bench) {
    let (a, term) = led(&bench).await;
    let (_, at, _) = done(make(&bench, "x", EVERY, "1").await);
    let fence = bench.win(&a, term, claim("x", 1, at, after(at, 1), Want::Run)).await;
    let mut waits = claim("x", 2, after(at, 1), after(at, 2), Want::Run);
    waits.overlap = Overlap::Wait;
    waits.alive = vec![fence];
    assert_eq!(bench.claim(&a, term, waits).await, ClaimReply::Waits);
    let (_, ended, _) = done(ask(&bench, "x", Making::End).await);
    let cursor = after(at, 2);
    for (number, want) in [(3, Want::Run), (4, Want::Owed), (5, Want::Settle)] {
        let mut late = claim("x", number, cursor, after(at, 3), want);
        late.alive = vec![fence];
        assert_eq!(bench.claim(&a, term, late).await, ClaimReply::OtherSchedule, "{want:?}");
    }
    let mut waited = claim("x", 6, cursor, after(at, 2), Want::Waited);
    waited.alive = vec![fence];
    assert_eq!(bench.claim(&a, term, waited).await, ClaimReply::Passed);
    let mut adopts = claim("x", 7, cursor, after(at, 9), Want::Adopt);
    adopts.adopts = "every 2s".into();
    adopts.alive = vec![fence];
    assert_eq!(bench.claim(&a, term, adopts).await, ClaimReply::OtherSchedule);
    assert_eq!(take_over(&bench, &a, term, "x").await.1, "");
    let ledger = bench.ledger("x").await;
    assert_eq!(
        (ledger.retired, ledger.waiting, ledger.schedule.clone()),
        (Some(ended), None, None)
    );
    assert_eq!(ledger.schedules[0].until, ended);
    assert_eq!(ledger.schedules[0].schedule.text, EVERY);
    assert_eq!(ledger.counts[&Outcome::Missed(MissedReason::Skipped)], 1);
    assert_eq!(
        (ledger.records[0].first, ledger.records[0].instance.as_str()),
        (after(at, 2), "ann")
    );
    // The run goes on to its end.
    bench.settle("x", fence, Ran::Ok).await;
    let ledger = bench.ledger("x").await;
    assert_eq!((ledger.open.len(), ledger.counts[&Outcome::Ran(Ran::Ok)]), (0, 1));
    assert_eq!(ask(&bench, "x", Making::End).await, MadeReply::Nothing);
}

async fn what_is_made_anew_is_owed_nothing(bench: Bench) {
    let (a, term) = led(&bench).await;
    let (first, at, _) = done(make(&bench, "x", EVERY, "1").await);
    tokio::time::sleep(Duration::from_millis(10)).await;
    done(ask(&bench, "x", Making::End).await);
    let (second, anew, new) = done(make(&bench, "x", EVERY, "1").await);
    assert!(new && second > first && anew > at);
    let ledger = bench.ledger("x").await;
    assert_eq!(
        (ledger.since, ledger.cursor, ledger.retired),
        (Some(at), Some(anew), None)
    );
    assert_eq!(ledger.schedule.unwrap().since, Some(anew));
    assert_eq!(list(&bench, 0).await.entries[0].line.as_ref().unwrap().born, second);
    // Whoever planned by the old one, of the same text, is told where it begins.
    let late = claim("x", 1, at, after(anew, 1), Want::Run);
    assert!(matches!(
        bench.claim(&a, term, late).await,
        ClaimReply::Moved { cursor, waiting: None } if cursor == anew
    ));
}

async fn names_of_the_program_are_taken(bench: Bench) {
    let (a, term) = led(&bench).await;
    bench.cursor(&a, term, "of-the-program").await;
    assert_eq!(make(&bench, "of-the-program", EVERY, "1").await, MadeReply::Taken);
    assert_eq!(ask(&bench, "of-the-program", Making::End).await, MadeReply::Nothing);
    assert_eq!(list(&bench, 0).await.entries.len(), 0);
}

async fn there_is_a_most(bench: Bench) {
    for number in 0..MADE_SCHEDULES {
        done(make(&bench, &format!("x{number}"), EVERY, "1").await);
    }
    let full = MadeReply::Full {
        schedules: MADE_SCHEDULES,
    };
    assert_eq!(make(&bench, "another", EVERY, "1").await, full);
    // Those that are there can be changed.
    assert!(!done(make(&bench, "x7", EVERY, "2").await).2);
    done(ask(&bench, "x8", Making::End).await);
    assert!(done(make(&bench, "another", EVERY, "1").await).2);
}

async fn payloads_are_read_once_and_not_all_at_once(bench: Bench) {
    let long = format!("\"{}\"", "x".repeat(60_000));
    let many = MADE_AT_ONCE / 60_000 + 5;
    for number in 0..many {
        done(make(&bench, &format!("x{number}"), EVERY, &long).await);
    }
    let first = list(&bench, 0).await;
    assert_eq!(first.entries.len(), many, "all are named");
    let given = first.entries.iter().filter(|entry| entry.payload.is_some()).count();
    assert!(
        given * 60_000 > MADE_AT_ONCE - 60_000 && given < many && first.has_more(),
        "{given}"
    );
    assert!(first.entries.is_sorted_by(|a, b| a.number < b.number));
    let second = list(&bench, first.up_to).await;
    let rest: Vec<_> = second.entries.iter().map(|entry| entry.payload.is_some()).collect();
    assert_eq!(rest.iter().filter(|given| **given).count(), many - given);
    assert!(rest[given..].iter().all(|given| *given) && !second.has_more());
    let nothing = list(&bench, second.up_to).await;
    assert!(nothing.entries.iter().all(|entry| entry.payload.is_none()) && !nothing.has_more());
    assert_eq!(nothing.up_to, second.up_to);
}

async fn a_change_is_told_and_numbered_with_the_acts(bench: Bench) {
    let ears = Arc::new(Heard::default());
    let (store, told) = (Arc::clone(&bench.store), Arc::clone(&ears));
    let listening = tokio::spawn(async move { store.listen(told).await });
    let mut payload = 0;
    eventually(BOUND, "a change is heard", || {
        payload += 1;
        let (bench, ears) = (&bench, &ears);
        async move {
            done(make(bench, "x", EVERY, &payload.to_string()).await);
            !ears.controlled.lock().unwrap().is_empty()
        }
    })
    .await;
    listening.abort();
    let act = ActRequest {
        group: bench.group.clone(),
        job: Some(job("x")),
        deed: Deed::pause(Gap::Skip, None),
        by: "ann".to_owned(),
        reason: String::new(),
    };
    let Acted::Done { number: paused, .. } = bench.store.act(act).await.unwrap() else {
        panic!("not paused")
    };
    let before = bench.store.control(&bench.group).await.unwrap();
    let (ended, _, _) = done(ask(&bench, "x", Making::End).await);
    let after = bench.store.control(&bench.group).await.unwrap();
    assert!(before.number == paused && ended > paused);
    assert_eq!(
        (after.number, after.acts.len()),
        (ended, 1),
        "an end is no act of the list"
    );
}

async fn what_was_asked_of_it_ends_with_it(bench: Bench) {
    done(make(&bench, "x", EVERY, "1").await);
    done(make(&bench, "y", EVERY, "1").await);
    let act = |on: &str, deed| ActRequest {
        group: bench.group.clone(),
        job: Some(job(on)),
        deed,
        by: "ann".to_owned(),
        reason: String::new(),
    };
    for on in ["x", "y"] {
        for deed in [Deed::pause(Gap::Skip, None), Deed::Trigger] {
            bench.store.act(act(on, deed)).await.unwrap();
        }
    }
    done(ask(&bench, "x", Making::End).await);
    let left = bench.store.control(&bench.group).await.unwrap();
    assert_eq!(
        left.pauses.iter().map(|pause| pause.job.clone()).collect::<Vec<_>>(),
        [Some(job("y"))]
    );
    assert_eq!(
        left.requests
            .iter()
            .map(|request| request.job.clone())
            .collect::<Vec<_>>(),
        [job("y")]
    );
}

async fn one_with_an_open_run_is_remembered_until_that_has_ended(bench: Bench) {
    let (a, term) = led(&bench).await;
    let (_, at, _) = done(make(&bench, "x", EVERY, "1").await);
    let fence = bench.win(&a, term, claim("x", 1, at, after(at, 1), Want::Run)).await;
    let (ended, _, _) = done(ask(&bench, "x", Making::End).await);
    let read = list(&bench, 0).await;
    assert_eq!(
        (read.entries.len(), read.entries[0].ended, read.entries[0].number),
        (1, true, ended)
    );
    assert_eq!(read.entries[0].line.as_ref().unwrap().schedule, EVERY);
    assert_eq!(
        ask(&bench, "x", Making::Forget).await,
        MadeReply::Nothing,
        "its run is open"
    );
    bench.settle("x", fence, Ran::Ok).await;
    assert!(matches!(ask(&bench, "x", Making::Forget).await, MadeReply::Done { number, .. } if number == ended));
    assert_eq!(ask(&bench, "x", Making::Forget).await, MadeReply::Nothing);
    assert!(list(&bench, 0).await.entries.is_empty());
    assert_eq!(bench.ledger("x").await.records.len(), 1, "its history stays");
    // Made anew it is not one that has ended.
    done(make(&bench, "x", EVERY, "1").await);
    let at = bench.ledger("x").await.cursor.unwrap();
    bench.win(&a, term, claim("x", 2, at, after(at, 1), Want::Run)).await;
    done(ask(&bench, "x", Making::End).await);
    assert!(done(make(&bench, "x", EVERY, "1").await).2);
    let read = list(&bench, 0).await;
    assert_eq!((read.entries.len(), read.entries[0].ended), (1, false));
}

async fn the_name_of_one_that_ended_may_become_a_job_of_the_program(bench: Bench) {
    let (a, term) = led(&bench).await;
    let (_, at, _) = done(make(&bench, "x", EVERY, "1").await);
    done(ask(&bench, "x", Making::End).await);
    tokio::time::sleep(Duration::from_millis(10)).await;
    let cursor = bench.cursor(&a, term, "x").await;
    assert!(cursor > at);
    bench
        .win(&a, term, claim("x", 1, cursor, after(cursor, 1), Want::Run))
        .await;
    let ledger = bench.ledger("x").await;
    assert_eq!((ledger.handler, ledger.retired), (None, None));
    assert_eq!(make(&bench, "x", EVERY, "1").await, MadeReply::Taken);
}

/// A program that makes schedules under ever new names fills no store.
async fn what_is_kept_of_one_that_ended_goes_when_its_records_are_too_old(bench: Bench) {
    let bench = bench.keeping(Keep::default().age(Duration::from_secs(1)));
    let (a, term) = led(&bench).await;
    let names = ["ended", "open", "again", "program", "alive"];
    let mut fences = Vec::new();
    for (number, name) in (1..).zip(names) {
        let (_, at, _) = done(make(&bench, name, EVERY, "1").await);
        let mut wish = claim(name, number, at, after(at, 2), Want::Run);
        wish.passed = vec![passed(MissedReason::Skipped, after(at, 1), after(at, 1), 1)];
        fences.push(bench.win(&a, term, wish).await);
        if name != "open" {
            bench.settle(name, fences[fences.len() - 1], Ran::Ok).await;
        }
        if name != "alive" {
            done(ask(&bench, name, Making::End).await);
        }
    }
    assert_eq!(bench.ledger("ended").await.records.len(), 2, "it stays for a while");
    done(make(&bench, "again", EVERY, "1").await);
    // A job of the program has its records from its first claim on.
    let cursor = bench.cursor(&a, term, "program").await;
    let settle = claim("program", 9, cursor, after(cursor, 60), Want::Settle);
    assert_eq!(bench.claim(&a, term, settle).await, ClaimReply::Passed);
    eventually(BOUND, "it is gone", || async {
        bench.ledger("ended").await == leader_core::JobLedger::default()
    })
    .await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    for name in &names[1..] {
        let ledger = bench.ledger(name).await;
        assert_eq!(ledger.decided() + ledger.pending(), 2, "{name}: {ledger:?}");
        assert!(!ledger.records.is_empty(), "{name}");
    }
    assert_eq!(
        bench.settle("open", fences[1], Ran::Ok).await,
        leader_core::__seam::Settled::Yes
    );
    ask(&bench, "open", Making::Forget).await;
    eventually(BOUND, "that is gone too", || async {
        bench.ledger("open").await == leader_core::JobLedger::default()
    })
    .await;
    if let Some(server) = &bench.server {
        let pattern = format!("{{{}:leader:cleanup}}:*:*", bench.namespace);
        let ::redis::Value::Array(left) = server.command(&["KEYS", &pattern]).await else {
            panic!("no list")
        };
        assert_eq!(left.len(), 9, "{left:?}");
    }
}

/// Its job's hash is lost, and the leader's next claim writes it anew: it stays a schedule that can be changed and ended, and its name can be
/// used again.
#[tokio::test]
async fn one_whose_job_is_lost_stays_a_schedule() {
    for ends_first in [false, true] {
        let bench = Bench::redis().await;
        let (a, term) = led(&bench).await;
        let (_, at, _) = done(make(&bench, "x", EVERY, "1").await);
        let key = format!("{{{}:leader:cleanup}}:job:x", bench.namespace);
        bench.server.as_ref().unwrap().command(&["DEL", &key]).await;
        let fence = bench.win(&a, term, claim("x", 1, at, after(at, 1), Want::Run)).await;
        bench.settle("x", fence, Ran::Ok).await;
        if !ends_first {
            assert!(!done(make(&bench, "x", EVERY, "2").await).2, "it is the same one");
            assert_eq!(bench.ledger("x").await.handler.as_deref(), Some("handler"));
        }
        done(ask(&bench, "x", Making::End).await);
        let ledger = bench.ledger("x").await;
        assert!(ledger.retired.is_some() && ledger.schedule.is_none(), "{ledger:?}");
        let late = bench
            .claim(&a, term, claim("x", 2, after(at, 1), after(at, 2), Want::Run))
            .await;
        assert_eq!(late, ClaimReply::OtherSchedule);
        assert!(done(make(&bench, "x", EVERY, "3").await).2, "it is another one");
    }
}

//! Campaign, renew, release.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use leader_core::__seam::{Campaigned, ClaimReply, Renewal, Renewed, TakenOver, Verdict, Want};
use leader_core::{Holder, InstanceId, Origin};
use leader_tests::eventually;

use crate::bench::{BOUND, Bench, COARSE, LONG, after, claim, group, holder};
use crate::heard::Heard;

on_each_store!(
    a_vacant_lease_is_acquired,
    a_held_lease_names_its_holder_and_what_remains,
    case_16_the_same_holder_gets_a_new_term,
    case_16_one_instance_id_in_two_processes_is_two_holders,
    a_stale_candidate_only_learns_the_term,
    of_two_candidates_one_wins,
    the_mint_exceeds_what_the_caller_has_seen,
    fault_o_terms_and_fences_only_rise,
    a_lease_ends_by_itself,
    case_15_a_renewal_needs_holder_and_term,
    leases_15_a_renewal_revives_no_expired_lease,
    leases_9_a_renewal_acquires_no_vacant_lease,
    a_renewal_prolongs,
    the_time_told_is_the_servers,
    case_43_a_release_needs_holder_and_term,
    a_drain_is_handed_on_once,
    a_release_without_a_drain_hands_nothing_on,
    releases_are_told,
    case_70_namespaces_and_groups_are_apart,
    each_of_a_batch_is_judged_on_its_own,
    nothing_asked_is_nothing_answered,
    a_store_says_what_it_is,
);

async fn a_vacant_lease_is_acquired(bench: Bench) {
    let a = holder("a");
    let answer = bench.campaign(&a, 0).await;
    assert_eq!(answer.holder, Some(a.clone()));
    let Verdict::Acquired { term } = answer.verdict else {
        panic!("{answer:?}");
    };
    assert!(term > 0);
    assert!(bench.is_led_by(&a, term).await);
}

async fn a_held_lease_names_its_holder_and_what_remains(bench: Bench) {
    let (a, b) = (holder("a"), holder("b"));
    let term = bench.acquire(&a).await;
    for known in [0, term, u64::MAX >> 12] {
        let answer = bench.campaign(&b, known).await;
        assert_eq!(answer.holder, Some(a.clone()));
        let Verdict::Held {
            remaining,
            term: theirs,
        } = answer.verdict
        else {
            panic!("{answer:?}");
        };
        assert_eq!(theirs, term);
        let remaining = remaining.unwrap();
        assert!(
            remaining <= LONG && remaining + Duration::from_secs(60) > LONG,
            "{remaining:?}"
        );
    }
    assert!(bench.is_led_by(&a, term).await);
}

/// A lost reply locks nobody out, and late commands of the earlier term find another (redlease README, oban-py#32).
async fn case_16_the_same_holder_gets_a_new_term(bench: Bench) {
    let a = holder("a");
    let first = bench.acquire(&a).await;
    let Verdict::Acquired { term: second } = bench.campaign(&a, first).await.verdict else {
        panic!("its own lease was refused");
    };
    assert!(second > first);
    assert!(!bench.is_led_by(&a, first).await);
    assert!(bench.is_led_by(&a, second).await);
}

async fn case_16_one_instance_id_in_two_processes_is_two_holders(bench: Bench) {
    let id = InstanceId::new("host").unwrap();
    let (one, two) = (Holder::new(&id, 1), Holder::new(&id, 2));
    let term = bench.acquire(&one).await;
    assert!(matches!(bench.campaign(&two, term).await.verdict, Verdict::Held { .. }));
    assert!(!bench.is_led_by(&two, term).await);
    assert!(bench.is_led_by(&one, term).await);
}

async fn a_stale_candidate_only_learns_the_term(bench: Bench) {
    let (a, b) = (holder("a"), holder("b"));
    let term = bench.acquire(&a).await;
    // Not even the holder's own, while it carries too little.
    let own = bench.campaign(&a, term - 1).await;
    assert_eq!(own, stale(term, Some(&a)));
    assert!(bench.is_led_by(&a, term).await);
    bench.release(&a, term, None).await;
    assert_eq!(bench.campaign(&b, 0).await, stale(term, None));
    assert_eq!(bench.campaign(&b, term - 1).await, stale(term, None));
    assert!(matches!(
        bench.campaign(&b, term).await.verdict,
        Verdict::Acquired { .. }
    ));
}

fn stale(term: u64, holder: Option<&Holder>) -> Campaigned {
    Campaigned {
        verdict: Verdict::Stale { term },
        holder: holder.cloned(),
        oddity: None,
    }
}

async fn of_two_candidates_one_wins(bench: Bench) {
    let holders: Vec<_> = (0..16).map(|n| holder(&format!("n{n}"))).collect();
    let mut asking = tokio::task::JoinSet::new();
    for holder in &holders {
        let store = Arc::clone(&bench.store);
        let wish = bench.wish(holder, LONG, 0);
        asking.spawn(async move { store.campaign(vec![wish]).await.pop().unwrap().unwrap() });
    }
    let answers = asking.join_all().await;
    let winners: Vec<_> = answers
        .iter()
        .filter(|a| matches!(a.verdict, Verdict::Acquired { .. }))
        .collect();
    assert_eq!(winners.len(), 1, "{answers:?}");
    assert!(
        answers.iter().all(|answer| answer.holder == winners[0].holder),
        "{answers:?}"
    );
}

async fn the_mint_exceeds_what_the_caller_has_seen(bench: Bench) {
    let a = holder("a");
    // An hour ahead of the server's clock.
    let hour = 3_600_000_000;
    let seen = u64::try_from(Timestamp::now().as_microsecond()).unwrap() + hour;
    let Verdict::Acquired { term } = bench.campaign(&a, seen).await.verdict else {
        panic!("refused");
    };
    assert_eq!(term, seen + 1);
    let cursor = bench.cursor(&a, term, "job").await;
    let mut batch = bench.batch(&a, term, vec![claim("job", 1, cursor, after(cursor, 1), Want::Run)]);
    batch.known = term + hour;
    let fence = won(bench.claim_batch(batch).await);
    assert_eq!(fence, term + hour + 1);
    let next = claim("job", 2, cursor, cursor, Want::Extra(Origin::Manual));
    bench.settle("job", fence, leader_core::Ran::Ok).await;
    assert!(bench.win(&a, term, next).await > fence);
}

fn won(answer: leader_core::__seam::Claimed) -> u64 {
    match answer {
        leader_core::__seam::Claimed::Yours(replies) => match replies.as_slice() {
            [ClaimReply::Won { fence }] => *fence,
            other => panic!("{other:?}"),
        },
        leader_core::__seam::Claimed::NotYours => panic!("not yours"),
    }
}

/// Over hand-overs, own re-elections and runs of every origin: one strictly rising counter.
async fn fault_o_terms_and_fences_only_rise(bench: Bench) {
    let holders = [holder("a"), holder("b"), holder("c")];
    let mut last = 0;
    let mut rises = |number: u64| {
        assert!(number > last, "{number} after {last}");
        last = number;
    };
    let mut number = 0;
    for round in 0..12 {
        let leader = &holders[round % 3];
        let term = bench.acquire(leader).await;
        rises(term);
        let Verdict::Acquired { term } = bench.campaign(leader, term).await.verdict else {
            panic!("its own lease was refused");
        };
        rises(term);
        let cursor = bench.cursor(leader, term, "job").await;
        for want in [
            Want::Run,
            Want::Owed,
            Want::Extra(Origin::Manual),
            Want::Extra(Origin::Backfill),
        ] {
            number += 1;
            let at = bench.ledger("job").await.cursor.unwrap_or(cursor);
            let fence = bench
                .win(leader, term, claim("job", number, at, after(at, 1), want))
                .await;
            rises(fence);
            bench.settle("job", fence, leader_core::Ran::Ok).await;
        }
        bench.release(leader, term, None).await;
    }
}

async fn a_lease_ends_by_itself(bench: Bench) {
    let (a, b) = (holder("a"), holder("b"));
    let ttl = Duration::from_millis(300);
    bench.acquire(&a).await;
    let began = std::time::Instant::now();
    let term = bench.acquire_for(&a, ttl).await;
    let mut taken = None;
    while taken.is_none() {
        match bench.campaign(&b, term).await.verdict {
            Verdict::Acquired { term } => taken = Some(term),
            Verdict::Held { remaining, .. } => assert!(remaining.unwrap() <= ttl),
            other => panic!("{other:?}"),
        }
        assert!(began.elapsed() < BOUND);
    }
    assert!(began.elapsed() + COARSE >= ttl, "not before its end");
    assert!(taken.unwrap() > term);
    assert!(!bench.is_led_by(&a, term).await);
}

/// A deposed leader never re-affirms itself (oban#1488, river PR 199).
async fn case_15_a_renewal_needs_holder_and_term(bench: Bench) {
    let (a, b) = (holder("a"), holder("b"));
    let term = bench.acquire(&a).await;
    for (who, carried) in [(&b, term), (&a, term - 1), (&a, term + 1), (&a, 0)] {
        let answer = bench.renew(who, carried).await;
        let held = Some(a.clone());
        assert_eq!(answer, Renewed::NotYours { holder: held, term }, "{who} {carried}");
    }
    bench.release(&a, term, None).await;
    let next = bench.acquire(&b).await;
    let told = Renewed::NotYours {
        holder: Some(b.clone()),
        term: next,
    };
    assert_eq!(bench.renew(&a, term).await, told);
    assert!(bench.is_led_by(&b, next).await);
}

async fn leases_15_a_renewal_revives_no_expired_lease(bench: Bench) {
    let (a, b) = (holder("a"), holder("b"));
    bench.acquire(&a).await;
    let term = bench.acquire_for(&a, Duration::from_millis(30)).await;
    tokio::time::sleep(Duration::from_millis(60)).await;
    assert_eq!(bench.renew(&a, term).await, Renewed::NotYours { holder: None, term });
    assert!(matches!(
        bench.campaign(&b, term).await.verdict,
        Verdict::Acquired { .. }
    ));
}

async fn leases_9_a_renewal_acquires_no_vacant_lease(bench: Bench) {
    let a = holder("a");
    assert_eq!(bench.renew(&a, 0).await, Renewed::NotYours { holder: None, term: 0 });
    assert_eq!(bench.renew(&a, 1).await, Renewed::NotYours { holder: None, term: 0 });
    let term = bench.acquire(&a).await;
    bench.release(&a, term, None).await;
    for _ in 0..2 {
        assert_eq!(bench.renew(&a, term).await, Renewed::NotYours { holder: None, term });
    }
}

async fn a_renewal_prolongs(bench: Bench) {
    let (a, b) = (holder("a"), holder("b"));
    let term = bench.acquire(&a).await;
    let remaining = |answer: Campaigned| match answer.verdict {
        Verdict::Held { remaining, .. } => remaining.unwrap(),
        other => panic!("{other:?}"),
    };
    bench.renew_for(&a, term, 2 * LONG).await;
    let longer = remaining(bench.campaign(&b, 0).await);
    assert!(longer > LONG && longer <= 2 * LONG, "{longer:?}");
    // And what is asked for last counts, shorter or not.
    bench.renew_for(&a, term, LONG).await;
    assert!(remaining(bench.campaign(&b, 0).await) <= LONG);
}

async fn the_time_told_is_the_servers(bench: Bench) {
    let a = holder("a");
    let term = bench.acquire(&a).await;
    let mut last = Timestamp::UNIX_EPOCH;
    for _ in 0..3 {
        let Renewed::Yes { now, .. } = bench.renew(&a, term).await else {
            panic!("not renewed");
        };
        let TakenOver::Yours { now: coarse, .. } = bench.take_over(&a, term, &[]).await else {
            panic!("not yours");
        };
        assert!(now >= last, "{now} after {last}");
        last = now;
        for told in [now, coarse] {
            let off = told.duration_since(Timestamp::now()).abs();
            assert!(off < SignedDuration::from_secs(10), "{off}");
        }
        assert!(coarse >= now - SignedDuration::from_millis(1), "{coarse} after {now}");
    }
}

/// An old run's unlock never frees the new run's lock (laravel#53342, quartznet#1236).
async fn case_43_a_release_needs_holder_and_term(bench: Bench) {
    let (a, b) = (holder("a"), holder("b"));
    let term = bench.acquire(&a).await;
    let since = Some(Timestamp::now());
    for (who, carried) in [(&b, term), (&a, term - 1), (&a, term + 1), (&b, 0)] {
        bench.release(who, carried, since).await;
        assert!(bench.is_led_by(&a, term).await, "{who} {carried}");
    }
    bench.release(&a, term, None).await;
    assert!(!bench.is_led_by(&a, term).await);
    // Nothing of the refused ones is handed on.
    let next = bench.acquire(&b).await;
    assert_eq!(late_from(&bench, &b, next).await, None);
}

async fn late_from(bench: &Bench, holder: &Holder, term: u64) -> Option<Timestamp> {
    match bench.take_over(holder, term, &["job"]).await {
        TakenOver::Yours { late_from, .. } => late_from,
        TakenOver::NotYours => panic!("not yours"),
    }
}

async fn a_drain_is_handed_on_once(bench: Bench) {
    let (a, b) = (holder("a"), holder("b"));
    let since: Timestamp = "2026-03-02T12:00:00.123Z".parse().unwrap();
    let term = bench.acquire(&a).await;
    bench.release(&a, term, Some(since)).await;

    let term = bench.acquire(&b).await;
    // A take-over whose answer was lost is asked again.
    for _ in 0..2 {
        assert_eq!(late_from(&bench, &b, term).await, Some(since));
    }
    // So is the campaign itself: the same leader under a new term has taken over nothing yet.
    let Verdict::Acquired { term } = bench.campaign(&b, term).await.verdict else {
        panic!("its own lease was refused");
    };
    assert_eq!(late_from(&bench, &b, term).await, Some(since));
    bench.release(&b, term, None).await;

    let term = bench.acquire(&a).await;
    assert_eq!(late_from(&bench, &a, term).await, None);
}

async fn a_release_without_a_drain_hands_nothing_on(bench: Bench) {
    let (a, b) = (holder("a"), holder("b"));
    let term = bench.acquire(&a).await;
    bench.release(&a, term, None).await;
    let term = bench.acquire(&b).await;
    assert_eq!(late_from(&bench, &b, term).await, None);
    assert_eq!(bench.take_over(&a, term, &["job"]).await, TakenOver::NotYours);
}

async fn releases_are_told(bench: Bench) {
    let (a, b) = (holder("a"), holder("b"));
    let heard = Arc::new(Heard::default());
    let (store, ears) = (Arc::clone(&bench.store), Arc::clone(&heard));
    let listening = tokio::spawn(async move { store.listen(ears).await });
    // A release before the ears are open is never heard: released again until one is.
    let heard_any = || async { !heard.released.lock().unwrap().is_empty() };
    let mut last = 0;
    let began = std::time::Instant::now();
    while !heard_any().await {
        last = bench.acquire(&a).await;
        bench.release(&a, last, None).await;
        tokio::time::sleep(Duration::from_millis(20)).await;
        assert!(began.elapsed() < BOUND, "nothing is heard");
    }
    let term = bench.acquire(&a).await;
    // Those that do nothing tell nobody.
    bench.release(&b, term, None).await;
    bench.release(&a, last, None).await;
    bench.release(&a, term, Some(Timestamp::now())).await;
    bench.release(&a, term, None).await;
    eventually(BOUND, "the last is heard", || async {
        heard.released.lock().unwrap().last() == Some(&("cleanup".to_owned(), term))
    })
    .await;
    let all = heard.released.lock().unwrap().clone();
    assert!(all.iter().all(|(group, _)| group == "cleanup"), "{all:?}");
    assert_eq!(all.iter().filter(|(_, told)| *told == term).count(), 1, "{all:?}");
    listening.abort();
}

/// Staging and production on one server never meet (laravel#41182, resque-scheduler#239).
async fn case_70_namespaces_and_groups_are_apart(bench: Bench) {
    let (a, b) = (holder("a"), holder("b"));
    let other = match &bench.server {
        Some(server) => Bench::redis_on(Arc::clone(server)),
        None => Bench::embedded(),
    };
    let term = bench.acquire(&a).await;
    let theirs = other.acquire(&b).await;
    assert!(bench.is_led_by(&a, term).await && other.is_led_by(&b, theirs).await);
    assert!(!other.is_led_by(&a, term).await);
    other.release(&a, term, None).await;
    other.release(&b, theirs, None).await;
    assert!(bench.is_led_by(&a, term).await);

    let mut wish = bench.wish(&b, LONG, 0);
    wish.group = group("default");
    assert!(matches!(bench.ask(wish).await.verdict, Verdict::Acquired { .. }));
    assert!(bench.is_led_by(&a, term).await);
}

async fn each_of_a_batch_is_judged_on_its_own(bench: Bench) {
    let (a, b) = (holder("a"), holder("b"));
    let groups: Vec<_> = (0..100).map(|n| group(&format!("g{n}"))).collect();
    let wish = |(n, group): (usize, &leader_core::GroupName)| {
        let who = if n % 3 == 0 { &b } else { &a };
        let mut wish = bench.wish(who, LONG, 0);
        wish.group = group.clone();
        wish
    };
    let answers = bench
        .store
        .campaign(groups.iter().enumerate().map(wish).collect())
        .await;
    let terms: Vec<u64> = answers
        .into_iter()
        .map(|answer| match answer.unwrap().verdict {
            Verdict::Acquired { term } => term,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(terms.len(), groups.len());
    let renewal = |(group, term): (&leader_core::GroupName, &u64)| Renewal {
        group: group.clone(),
        holder: a.clone(),
        term: *term,
        ttl: LONG,
    };
    let renewals = groups.iter().zip(&terms).map(renewal).collect();
    let answers = bench.store.renew(renewals, Vec::new()).await.renewed;
    assert_eq!(answers.len(), groups.len());
    for (n, answer) in answers.into_iter().enumerate() {
        match answer.unwrap() {
            Renewed::Yes { .. } => assert_ne!(n % 3, 0),
            Renewed::NotYours { holder, term } => {
                assert_eq!((n % 3, holder, term), (0, Some(b.clone()), terms[n]));
            }
        }
    }
}

async fn nothing_asked_is_nothing_answered(bench: Bench) {
    assert!(bench.store.campaign(Vec::new()).await.is_empty());
    assert!(bench.store.renew(Vec::new(), Vec::new()).await.renewed.is_empty());
    assert!(bench.store.claim(Vec::new()).await.is_empty());
    assert!(bench.store.settle(Vec::new()).await.is_empty());
    bench.beat(&[]).await;
}

async fn a_store_says_what_it_is(bench: Bench) {
    let is_embedded = bench.server.is_none();
    assert_eq!(bench.store.is_embedded(), is_embedded);
    assert_eq!(bench.store.address() == "embedded", is_embedded);
}

//! Jobs that come and go: the spans in which no leader could decide a job's ticks.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use leader_core::__seam::{Absence, AbsenceKind, Cover, TakeOver, TakenOver, Verdict, Writer};
use leader_core::Holder;
use leader_tests::eventually;

use crate::bench::{BOUND, Bench, COARSE, SCHEDULE, holder, job, process};

on_each_store!(
    a_job_that_the_leader_lacks_is_uncovered_until_the_lead_ends,
    a_job_that_nobody_has_is_removed_until_somebody_leads_with_it,
    a_fleet_that_is_down_marks_nothing,
    what_the_fleet_has_may_change_while_one_leads,
    only_the_leader_marks,
    what_has_been_decided_since_is_forgotten_and_removals_are_not,
    leaders_that_lack_a_job_follow_one_upon_the_other,
);

/// Times pass between the steps, so that each is seen to be of its own.
async fn tick() {
    tokio::time::sleep(COARSE).await;
}

type Spans = Vec<(AbsenceKind, Timestamp, Option<Timestamp>)>;

fn spans(absences: &[Absence]) -> Spans {
    let one = |absence: &Absence| (absence.kind, absence.from, absence.until);
    absences.iter().map(one).collect()
}

/// Takes over these jobs, while others have those: when, and what is told of each.
async fn take_over(
    bench: &Bench,
    holder: &Holder,
    term: u64,
    jobs: &[&str],
    elsewhere: Option<&[&str]>,
) -> (Timestamp, Vec<Spans>) {
    let request = TakeOver {
        group: bench.group.clone(),
        holder: holder.clone(),
        term,
        jobs: jobs.iter().map(|name| job(name)).collect(),
        schedules: jobs.iter().map(|_| SCHEDULE.into()).collect(),
        writer: Writer::default(),
        elsewhere: elsewhere.map(|names| names.iter().map(|name| job(name)).collect()),
        was: Vec::new(),
        beside: Vec::new(),
    };
    let answer = bench.store.take_over(request).await.unwrap();
    tick().await;
    match answer {
        TakenOver::Yours { now, absences, .. } => (now, absences.iter().map(|absences| spans(absences)).collect()),
        TakenOver::NotYours => panic!("not led by {holder}"),
    }
}

async fn cover(bench: &Bench, holder: &Holder, term: u64, jobs: &[&str], elsewhere: Option<&[&str]>) -> bool {
    let request = Cover {
        group: bench.group.clone(),
        holder: holder.clone(),
        term,
        jobs: jobs.iter().map(|name| job(name)).collect(),
        elsewhere: elsewhere.map(|names| names.iter().map(|name| job(name)).collect()),
    };
    let yours = bench.store.cover(request).await.unwrap();
    tick().await;
    yours
}

async fn release(bench: &Bench, holder: &Holder, term: u64) {
    bench.release(holder, term, None).await;
    tick().await;
}

async fn told(bench: &Bench, name: &str) -> Spans {
    spans(&bench.ledger(name).await.absences)
}

/// `a` has led with both jobs, and has gone.
async fn known(bench: &Bench) {
    let a = holder("a");
    let term = bench.acquire(&a).await;
    let (_, absences) = take_over(bench, &a, term, &["job", "other"], Some(&[])).await;
    assert_eq!(absences, [vec![], vec![]]);
    release(bench, &a, term).await;
}

async fn a_job_that_the_leader_lacks_is_uncovered_until_the_lead_ends(bench: Bench) {
    known(&bench).await;
    let (b, c) = (holder("b"), holder("c"));
    let term = bench.acquire(&b).await;
    let (since, absences) = take_over(&bench, &b, term, &["other"], Some(&["job"])).await;
    assert_eq!(absences, [vec![]]);
    assert_eq!(told(&bench, "job").await, [(AbsenceKind::Uncovered, since, None)]);
    // Told again, it is since then still.
    assert!(cover(&bench, &b, term, &["other"], Some(&["job"])).await);
    take_over(&bench, &b, term, &["other"], None).await;
    assert_eq!(told(&bench, "job").await, [(AbsenceKind::Uncovered, since, None)]);
    let before = Timestamp::now();
    release(&bench, &b, term).await;
    // Nobody leads for a while: what falls due then is the policy's.
    tokio::time::sleep(Duration::from_millis(60)).await;
    let term = bench.acquire(&c).await;
    let (now, absences) = take_over(&bench, &c, term, &["job"], Some(&[])).await;
    let (kind, from, until) = absences[0][0];
    assert_eq!((absences[0].len(), kind, from), (1, AbsenceKind::Uncovered, since));
    let until = until.unwrap();
    assert!(until + SignedDuration::from_millis(50) < now, "{until} {now}");
    assert!(
        until.duration_since(before).abs() < SignedDuration::from_millis(50),
        "{until} {before}"
    );
}

async fn a_job_that_nobody_has_is_removed_until_somebody_leads_with_it(bench: Bench) {
    known(&bench).await;
    let (b, c) = (holder("b"), holder("c"));
    let term = bench.acquire(&b).await;
    let (since, _) = take_over(&bench, &b, term, &["other"], Some(&["other", "new"])).await;
    assert_eq!(told(&bench, "job").await, [(AbsenceKind::Removed, since, None)]);
    release(&bench, &b, term).await;
    let term = bench.acquire(&c).await;
    let (now, absences) = take_over(&bench, &c, term, &["new", "job"], Some(&[])).await;
    // A job of which the store has never heard has no past.
    assert_eq!(absences, [vec![], vec![(AbsenceKind::Removed, since, Some(now))]]);
    let other = told(&bench, "other").await;
    assert_eq!(other, [(AbsenceKind::Removed, now, None)]);
}

async fn a_fleet_that_is_down_marks_nothing(bench: Bench) {
    known(&bench).await;
    tick().await;
    let b = holder("b");
    let term = bench.acquire(&b).await;
    let (_, absences) = take_over(&bench, &b, term, &["job", "other"], None).await;
    assert_eq!(absences, [vec![], vec![]]);
    // A lease that ended by itself, and not by a release.
    release(&bench, &b, term).await;
    let short = Duration::from_millis(20);
    let term = bench.acquire_for(&b, short).await;
    take_over(&bench, &b, term, &["job", "other"], None).await;
    tokio::time::sleep(short * 3).await;
    let c = process("b", 9);
    let term = bench.acquire(&c).await;
    let (_, absences) = take_over(&bench, &c, term, &["job", "other"], None).await;
    assert_eq!(absences, [vec![], vec![]]);
}

async fn what_the_fleet_has_may_change_while_one_leads(bench: Bench) {
    known(&bench).await;
    let (b, c) = (holder("b"), holder("c"));
    let term = bench.acquire(&b).await;
    // Who else is there is not known yet: nothing is given up for that.
    let (first, _) = take_over(&bench, &b, term, &[], None).await;
    assert_eq!(told(&bench, "job").await, [(AbsenceKind::Uncovered, first, None)]);
    assert!(cover(&bench, &b, term, &[], Some(&["other"])).await);
    assert!(cover(&bench, &b, term, &[], Some(&["other", "job"])).await);
    let seen = told(&bench, "job").await;
    let [
        (AbsenceKind::Uncovered, from, Some(second)),
        (AbsenceKind::Removed, also, Some(third)),
        (AbsenceKind::Uncovered, again, None),
    ] = seen.as_slice()
    else {
        panic!("{seen:?}");
    };
    assert_eq!((*from, second, third), (first, also, again));
    assert!(first < *second && second < third);
    assert_eq!(told(&bench, "other").await, [(AbsenceKind::Uncovered, first, None)]);
    release(&bench, &b, term).await;
    let term = bench.acquire(&c).await;
    let (_, absences) = take_over(&bench, &c, term, &["job"], Some(&[])).await;
    assert_eq!(absences[0].len(), 3);
    assert!(absences[0].iter().all(|(.., until)| until.is_some()));
}

async fn only_the_leader_marks(bench: Bench) {
    known(&bench).await;
    let (b, c) = (holder("b"), holder("c"));
    let term = bench.acquire(&b).await;
    assert!(!cover(&bench, &c, term, &[], None).await);
    assert!(!cover(&bench, &b, term - 1, &[], None).await);
    assert_eq!(told(&bench, "job").await, []);
    assert!(cover(&bench, &b, term, &["job"], None).await);
    assert_eq!(
        (told(&bench, "job").await, told(&bench, "other").await.len()),
        (vec![], 1)
    );
    release(&bench, &b, term).await;
    assert!(!cover(&bench, &b, term, &[], None).await);
    assert_eq!(told(&bench, "job").await, []);
}

async fn what_has_been_decided_since_is_forgotten_and_removals_are_not(bench: Bench) {
    use leader_core::__seam::{ClaimReply, Want};

    known(&bench).await;
    let (b, c) = (holder("b"), holder("c"));
    let term = bench.acquire(&b).await;
    take_over(&bench, &b, term, &["other"], Some(&["job"])).await;
    cover(&bench, &b, term, &["other"], Some(&[])).await;
    release(&bench, &b, term).await;
    let term = bench.acquire(&c).await;
    let (now, absences) = take_over(&bench, &c, term, &["job"], Some(&[])).await;
    assert_eq!(absences[0].len(), 2);
    // Asked again before anything is decided, the same is told.
    assert_eq!(take_over(&bench, &c, term, &["job"], Some(&[])).await.1, absences);
    let cursor = bench.ledger("job").await.cursor.unwrap();
    let settle = crate::bench::claim("job", 1, cursor, now, Want::Settle);
    assert_eq!(bench.claim(&c, term, settle).await, ClaimReply::Passed);
    let (_, absences) = take_over(&bench, &c, term, &["job"], Some(&[])).await;
    assert_eq!(
        absences[0].iter().map(|(kind, ..)| *kind).collect::<Vec<_>>(),
        [AbsenceKind::Removed]
    );
    // Only so many.
    for _ in 0..20 {
        cover(&bench, &c, term, &[], Some(&["job"])).await;
        cover(&bench, &c, term, &[], Some(&[])).await;
    }
    let seen = told(&bench, "job").await;
    assert_eq!((seen.len(), seen[15].0, seen[15].2), (16, AbsenceKind::Removed, None));
}

async fn leaders_that_lack_a_job_follow_one_upon_the_other(bench: Bench) {
    known(&bench).await;
    let (b, c) = (holder("b"), holder("c"));
    let term = bench.acquire(&b).await;
    let (since, _) = take_over(&bench, &b, term, &["other"], None).await;
    release(&bench, &b, term).await;
    tick().await;
    let term = bench.acquire(&c).await;
    take_over(&bench, &c, term, &["other"], None).await;
    // Between the two nobody had it either.
    assert_eq!(told(&bench, "job").await, [(AbsenceKind::Uncovered, since, None)]);
}

/// Another implementation takes the plain key, from nobody or from a leader.
#[tokio::test]
async fn the_lead_of_another_implementation_is_a_span_of_every_job() {
    let bench = Bench::redis().await;
    known(&bench).await;
    let (a, b) = (holder("a"), holder("b"));
    let server = bench.server.clone().unwrap();
    let lease = format!("{}:leader:cleanup", bench.namespace);
    for (stolen, ends) in [(false, true), (true, false)] {
        let mut term = 0;
        if stolen {
            term = bench.acquire(&a).await;
            take_over(&bench, &a, term, &["job", "other"], None).await;
        }
        let taken = Timestamp::now();
        server.command(&["SET", &lease, "elsewhere-1", "PX", "600000"]).await;
        tick().await;
        let known_term = bench.campaign(&b, term).await;
        assert!(matches!(known_term.verdict, Verdict::Held { .. }), "{known_term:?}");
        tokio::time::sleep(Duration::from_millis(30)).await;
        // Its lease ends by itself, or is given back.
        if ends {
            server.command(&["PEXPIRE", &lease, "30"]).await;
            bench.campaign(&b, term).await;
            eventually(BOUND, "the lease ends", || async {
                server.command(&["EXISTS", &lease]).await == ::redis::Value::Int(0)
            })
            .await;
            tokio::time::sleep(Duration::from_millis(50)).await;
        } else {
            bench.campaign(&b, term).await;
            server.command(&["DEL", &lease]).await;
        }
        // A lead that was taken away may be believed in until its end.
        if stolen {
            let state = format!("{{{lease}}}:lease");
            server.command(&["HSET", &state, "ttl", "1"]).await;
        }
        tick().await;
        let term = bench.acquire(&b).await;
        let (now, absences) = take_over(&bench, &b, term, &["job"], Some(&["other"])).await;
        let (kind, from, until) = *absences[0].last().unwrap();
        assert_eq!(kind, AbsenceKind::ForeignLeader);
        let until = until.unwrap();
        let began = from.duration_since(taken);
        if stolen {
            // Since the last that is known of our own lead.
            assert!(began <= SignedDuration::from_millis(2), "{began}");
        } else {
            assert!(
                SignedDuration::ZERO < began && began < SignedDuration::from_secs(5),
                "{began}"
            );
            assert!(until + SignedDuration::from_millis(40) < now, "{until} {now}");
        }
        assert!(from < until && until <= now, "{from} {until} {now}");
        // So it is of the jobs that this leader lacks.
        let other = told(&bench, "other").await;
        assert_eq!(other[other.len() - 2], (kind, from, Some(until)));
        release(&bench, &b, term).await;
        let term = bench.acquire(&a).await;
        take_over(&bench, &a, term, &["job", "other"], None).await;
        release(&bench, &a, term).await;
    }
    let holders = bench.campaign(&b, 0).await;
    assert_eq!(holders.oddity, None);
}

/// A lease of this fleet whose state was lost is no other implementation's.
#[tokio::test]
async fn a_holder_of_ours_is_no_foreign_leader() {
    let bench = Bench::redis().await;
    known(&bench).await;
    let (a, b) = (holder("a"), holder("b"));
    let server = bench.server.clone().unwrap();
    let lease = format!("{}:leader:cleanup", bench.namespace);
    server
        .command(&["SET", &lease, process("z", 3).as_str(), "PX", "600000"])
        .await;
    bench.campaign(&b, 0).await;
    tick().await;
    server.command(&["DEL", &lease]).await;
    let term = bench.acquire(&a).await;
    let (_, absences) = take_over(&bench, &a, term, &["job"], None).await;
    assert_eq!(absences, [vec![]]);
}

/// What somebody else wrote into the coverage of a job stops neither it nor the others.
#[tokio::test]
async fn an_illegible_coverage_fails_nobody() {
    let bench = Bench::redis().await;
    known(&bench).await;
    let a = holder("a");
    let server = bench.server.clone().unwrap();
    let key = format!("{{{}:leader:cleanup}}:coverage", bench.namespace);
    let term = bench.acquire(&a).await;
    for junk in [
        "garbage",
        "u|x|",
        "u|5| u|7|",
        "q|1|2",
        "r|99999999999999999999|",
        "u|1|2|3 ||",
        "f|5|",
    ] {
        server
            .command(&["HSET", &key, "job", junk, "other", "", "no name", "u|5|"])
            .await;
        let (_, absences) = take_over(&bench, &a, term, &["job", "other"], Some(&[])).await;
        assert_eq!(absences.len(), 2, "{junk}");
        assert_eq!(absences[1], [], "{junk}");
        bench.ledger("job").await;
        assert!(cover(&bench, &a, term, &["other"], Some(&[])).await, "{junk}");
    }
    server.command(&["DEL", &key]).await;
    server.command(&["SET", &key, "of another type"]).await;
    let (_, absences) = take_over(&bench, &a, term, &["job", "other"], Some(&[])).await;
    assert_eq!(absences, [vec![], vec![]]);
    assert_eq!(told(&bench, "job").await, []);
}

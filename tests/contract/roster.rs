//! Who is alive in a namespace.

use std::time::Duration;

use jiff::Timestamp;
use leader_core::__seam::{Enrolled, Entry};
use leader_core::{Holder, ServiceName};
use leader_tests::eventually;

use crate::bench::{BOUND, Bench, COARSE, LONG, holder, process};

on_each_store!(
    instances_of_one_service_share_a_namespace,
    another_service_is_refused_and_named,
    a_line_ends_by_itself,
    an_instance_that_left_is_gone,
    an_instance_may_enrol_again,
    what_an_instance_says_of_itself_is_kept_and_asked_for_when_it_is_missing,
    every_change_of_the_fleet_changes_the_rosters_number,
    two_processes_of_one_id_see_each_other,
);

async fn enrol(bench: &Bench, holder: &Holder, service: &str, ttl: Duration) -> Enrolled {
    bench.store.enrol(entry(holder, service, ttl)).await.unwrap()
}

fn entry(holder: &Holder, service: &str, ttl: Duration) -> Entry {
    Entry {
        holder: holder.clone(),
        service: ServiceName::new(service.to_owned()).unwrap(),
        ttl,
        beat: String::new(),
        digest: 1,
        introduction: Some("says 1".to_owned()),
    }
}

fn is_in(answer: &Enrolled) -> bool {
    matches!(answer, Enrolled::Yes { .. })
}

fn other(service: &str, instance: &str) -> Enrolled {
    Enrolled::OtherService {
        service: service.to_owned(),
        instance: instance.to_owned(),
    }
}

async fn instances_of_one_service_share_a_namespace(bench: Bench) {
    for n in 0..20 {
        let instance = holder(&format!("web-{n}"));
        assert!(is_in(&enrol(&bench, &instance, "shop", LONG).await));
    }
}

async fn another_service_is_refused_and_named(bench: Bench) {
    let (a, b) = (holder("a"), holder("b"));
    assert!(is_in(&enrol(&bench, &a, "shop", LONG).await));
    for _ in 0..2 {
        assert_eq!(enrol(&bench, &b, "shop-worker", LONG).await, other("shop", "a"));
    }
    // The refusal wrote nothing: the first is alone still.
    assert!(is_in(&enrol(&bench, &a, "shop", LONG).await));
}

async fn a_line_ends_by_itself(bench: Bench) {
    let (a, b) = (holder("a"), holder("b"));
    let ttl = Duration::from_millis(300);
    let began = std::time::Instant::now();
    assert!(is_in(&enrol(&bench, &a, "shop", ttl).await));
    eventually(BOUND, "the line has ended", || async {
        is_in(&enrol(&bench, &b, "mail", LONG).await)
    })
    .await;
    assert!(began.elapsed() + COARSE >= ttl, "not before its end");
    assert_eq!(enrol(&bench, &a, "shop", LONG).await, other("mail", "b"));
}

async fn an_instance_that_left_is_gone(bench: Bench) {
    let (a, b) = (holder("a"), holder("b"));
    enrol(&bench, &a, "shop", LONG).await;
    bench.store.leave(b.clone()).await.unwrap();
    assert_eq!(enrol(&bench, &b, "mail", LONG).await, other("shop", "a"));
    for _ in 0..2 {
        bench.store.leave(a.clone()).await.unwrap();
    }
    assert!(is_in(&enrol(&bench, &b, "mail", LONG).await));
}

async fn an_instance_may_enrol_again(bench: Bench) {
    let (a, b) = (holder("a"), holder("b"));
    for _ in 0..3 {
        assert!(is_in(&enrol(&bench, &a, "shop", LONG).await));
    }
    // Under another name too: it is the only one there.
    assert!(is_in(&enrol(&bench, &a, "mail", LONG).await));
    assert_eq!(enrol(&bench, &b, "shop", LONG).await, other("mail", "a"));
    assert!(is_in(&enrol(&bench, &b, "mail", LONG).await));
}

async fn what_an_instance_says_of_itself_is_kept_and_asked_for_when_it_is_missing(bench: Bench) {
    let (a, b) = (holder("a"), holder("b"));
    let silent = |who: &Holder, digest: u64, beat: &str| Entry {
        digest,
        introduction: None,
        beat: beat.to_owned(),
        ..entry(who, "shop", LONG)
    };
    let enrol = |entry: Entry| async { bench.store.enrol(entry).await.unwrap() };
    assert_eq!(enrol(silent(&a, 1, "")).await, Enrolled::Introduce);
    assert!(bench.store.roster().await.unwrap().lines.is_empty());
    let before = Timestamp::now() - COARSE;
    assert!(is_in(&enrol(entry(&a, "shop", LONG)).await));
    assert!(is_in(&enrol(silent(&a, 1, "a sign \"of life\"")).await));
    // Another digest belongs to another introduction; until that comes the old line stays.
    assert_eq!(enrol(silent(&a, 2, "")).await, Enrolled::Introduce);
    assert!(is_in(&enrol(entry(&b, "shop", LONG)).await));
    let roster = bench.store.roster().await.unwrap();
    let told: Vec<_> = roster
        .lines
        .iter()
        .map(|line| {
            (
                &line.holder,
                line.service.as_str(),
                line.beat.as_str(),
                line.introduction.as_str(),
            )
        })
        .collect();
    assert_eq!(
        told,
        [(&a, "shop", "a sign \"of life\"", "says 1"), (&b, "shop", "", "says 1")]
    );
    for line in &roster.lines {
        assert!(
            line.seen >= before && line.seen <= Timestamp::now() + COARSE,
            "{line:?}"
        );
    }
}

async fn every_change_of_the_fleet_changes_the_rosters_number(bench: Bench) {
    let (a, b) = (holder("a"), holder("b"));
    let number = || async { bench.store.roster().await.unwrap().revision };
    let mut last = number().await;
    let mut changes = async |expected: bool, what: &str| {
        let now = number().await;
        assert_eq!(now != last, expected, "{what}");
        last = now;
    };
    enrol(&bench, &a, "shop", LONG).await;
    changes(true, "an instance came").await;
    enrol(&bench, &a, "shop", LONG).await;
    changes(false, "a sign of life").await;
    enrol(&bench, &b, "shop", Duration::from_millis(1)).await;
    changes(true, "another came").await;
    eventually(BOUND, "the other's line has ended", || async {
        bench.store.roster().await.unwrap().lines.len() == 1
    })
    .await;
    let answer = enrol(&bench, &a, "shop", LONG).await;
    changes(true, "an instance went").await;
    assert!(matches!(answer, Enrolled::Yes { revision, .. } if revision == number().await));
    let mut anew = entry(&a, "shop", LONG);
    anew.digest = 2;
    bench.store.enrol(anew).await.unwrap();
    changes(true, "an instance introduced itself anew").await;
    bench.store.leave(a).await.unwrap();
    changes(true, "an instance left").await;
    bench.store.leave(b).await.unwrap();
    changes(false, "nobody left").await;
}

/// The server's clock was set back by an hour: lines live as long as they were to live, and no longer.
#[tokio::test]
async fn a_line_of_the_future_ends_in_its_time() {
    let bench = Bench::redis().await;
    let server = bench.server.clone().unwrap();
    let (a, b) = (holder("a"), holder("b"));
    let roster = format!("{}:leader-roster", bench.namespace);
    let now = Timestamp::now().as_millisecond() + 3_600_000;
    let line = format!("{} {now} mail 1 {{}}", now + 300);
    server.command(&["HSET", &roster, b.as_str(), &line]).await;
    assert_eq!(enrol(&bench, &a, "shop", LONG).await, other("mail", "b"));
    let began = std::time::Instant::now();
    eventually(BOUND, "the dead line has ended", || async {
        is_in(&enrol(&bench, &a, "shop", LONG).await)
    })
    .await;
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
}

/// Whatever the roster's number is overwritten with, it is a number again at the next sign of life.
#[tokio::test]
async fn a_broken_number_of_the_roster_heals() {
    let bench = Bench::redis().await;
    let server = bench.server.clone().unwrap();
    let a = holder("a");
    let key = format!("{{{}:leader-roster}}:revision", bench.namespace);
    enrol(&bench, &a, "shop", LONG).await;
    for junk in ["abc", "1e300", "-1", "99999999999999999999", ""] {
        server.command(&["SET", &key, junk]).await;
        let answer = enrol(&bench, &a, "shop", LONG).await;
        assert!(is_in(&answer), "{junk}: {answer:?}");
        let Enrolled::Yes { revision, .. } = answer else {
            unreachable!()
        };
        assert_eq!(bench.store.roster().await.unwrap().revision, revision, "{junk}");
    }
}

/// A line in a form that this version does not know is left alone for as long as it lives.
#[tokio::test]
async fn a_line_of_another_version_is_left_alone() {
    let bench = Bench::redis().await;
    let server = bench.server.clone().unwrap();
    let a = holder("a");
    let roster = format!("{}:leader-roster", bench.namespace);
    let ends = Timestamp::now().as_millisecond() + 1_000;
    let kept = || async { server.command(&["HGET", &roster, "x#1"]).await };
    for line in [format!("{ends} shop"), "nonsense".to_owned()] {
        server.command(&["HSET", &roster, "x#1", &line]).await;
        let readable = line.starts_with(char::is_numeric);
        assert!(is_in(&enrol(&bench, &a, "shop", LONG).await));
        assert_eq!(kept().await != ::redis::Value::Nil, readable, "{line}");
        assert_eq!(bench.store.roster().await.unwrap().lines.len(), 1);
        eventually(BOUND, "it is gone", || async {
            enrol(&bench, &a, "shop", LONG).await;
            kept().await == ::redis::Value::Nil
        })
        .await;
    }
}

async fn two_processes_of_one_id_see_each_other(bench: Bench) {
    let twin = |answer: Enrolled| match answer {
        Enrolled::Yes { twin, .. } => twin.map(|twin| twin.holder),
        other => panic!("{other:?}"),
    };
    let (one, two) = (process("web", 1), process("web", 2));
    assert_eq!(twin(enrol(&bench, &one, "shop", LONG).await), None);
    assert_eq!(twin(enrol(&bench, &holder("web-2"), "shop", LONG).await), None);
    assert_eq!(twin(enrol(&bench, &two, "shop", LONG).await), Some(one.clone()));
    assert_eq!(twin(enrol(&bench, &one, "shop", LONG).await), Some(two.clone()));
    bench.store.leave(two).await.unwrap();
    assert_eq!(twin(enrol(&bench, &one, "shop", LONG).await), None);
}

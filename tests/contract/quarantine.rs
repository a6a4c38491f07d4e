//! What only a real server can do: lose its data, restart, and hold keys of others.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use leader_core::__seam::{RedisStore, Renewed, Verdict, Want};
use leader_core::{Namespace, Ran};
use leader_tests::{RedisServer, eventually};
use redis::Value;

use crate::bench::{BOUND, Bench, COARSE, LONG, after, claim, holder};

const TTL: Duration = Duration::from_secs(1);
/// One that outlives a restart.
const LEASE: Duration = Duration::from_secs(3);
/// Beyond its TTL, how long a server that was just started keeps everybody waiting.
const YOUNG: Duration = Duration::from_secs(2);

/// The embedded store dies with its process: no leader of an earlier life can believe, and nobody waits.
#[tokio::test]
async fn the_embedded_store_has_no_quarantine() {
    let bench = Bench::embedded();
    let mut wish = bench.wish(&holder("a"), LONG, 0);
    wish.first_start = false;
    assert!(matches!(bench.ask(wish).await.verdict, Verdict::Acquired { .. }));
}

#[tokio::test]
async fn a_first_start_waits_one_ttl_unless_it_is_promised_to_be_one() {
    let bench = Bench::redis().await;
    let (a, b) = (holder("a"), holder("b"));
    let mut wish = bench.wish(&a, TTL, 0);
    wish.first_start = false;
    let began = Instant::now();
    let remaining = quarantined(&bench, &a).await;
    assert!(remaining <= TTL && remaining > Duration::ZERO, "{remaining:?}");
    // A promise that comes after the mark does not shorten it, nor does anybody else's question.
    let promised = bench.ask(bench.wish(&b, TTL, 0)).await;
    assert!(matches!(promised.verdict, Verdict::Quarantined { .. }), "{promised:?}");
    eventually(BOUND, "the quarantine ends", || async {
        matches!(bench.ask(wish.clone()).await.verdict, Verdict::Acquired { .. })
    })
    .await;
    assert!(began.elapsed() + COARSE >= TTL);
    // A group is quarantined once.
    let fresh = Bench::redis_on(Arc::clone(bench.server.as_ref().unwrap()));
    assert!(matches!(
        fresh.ask(fresh.wish(&b, TTL, 0)).await.verdict,
        Verdict::Acquired { .. }
    ));
}

async fn quarantined(bench: &Bench, who: &leader_core::Holder) -> Duration {
    let mut wish = bench.wish(who, TTL, u64::MAX >> 12);
    wish.first_start = false;
    match bench.ask(wish).await.verdict {
        Verdict::Quarantined { remaining, .. } => remaining,
        other => panic!("{other:?}"),
    }
}

/// The longest lease that anybody asks for is what everybody waits.
#[tokio::test]
async fn the_longest_ttl_decides_the_quarantine() {
    let bench = Bench::redis().await;
    let mut wish = bench.wish(&holder("a"), LONG, 0);
    wish.first_start = false;
    assert!(matches!(bench.ask(wish).await.verdict, Verdict::Quarantined { .. }));
    assert!(quarantined(&bench, &holder("b")).await + Duration::from_secs(60) > LONG);
}

/// The same group as before, on a server that may have been restarted.
fn again(server: &RedisServer, namespace: &Namespace) -> Bench {
    Bench {
        store: Arc::new(RedisStore::new(&server.info(), namespace, BOUND)),
        namespace: namespace.clone(),
        group: crate::bench::group("cleanup"),
        server: None,
    }
}

async fn server(options: leader_tests::RedisOptions) -> Arc<RedisServer> {
    Arc::new(options.start().await)
}

/// Data lost, server old, and a candidate that knows nothing: an old leader may still believe.
#[tokio::test]
async fn after_a_loss_of_all_data_nobody_acquires_for_one_ttl() {
    let server = server(RedisServer::options()).await;
    let bench = Bench::redis_on(Arc::clone(&server));
    let (a, b) = (holder("a"), holder("b"));
    let term = bench.acquire_for(&a, TTL).await;
    let cursor = bench.cursor(&a, term, "job").await;
    let fence = bench
        .win(&a, term, claim("job", 1, cursor, after(cursor, 1), Want::Run))
        .await;
    server.command(&["FLUSHALL"]).await;
    let lost = Instant::now();
    // Its leader finds out with its next renewal.
    assert_eq!(bench.renew(&a, term).await, Renewed::NotYours { holder: None, term: 0 });
    quarantined(&bench, &b).await;
    quarantined(&bench, &a).await;
    let mut next = None;
    while next.is_none() {
        let mut wish = bench.wish(&b, TTL, 0);
        wish.first_start = false;
        match bench.ask(wish).await.verdict {
            Verdict::Acquired { term } => next = Some(term),
            Verdict::Quarantined { .. } => tokio::time::sleep(Duration::from_millis(5)).await,
            other => panic!("{other:?}"),
        }
        assert!(lost.elapsed() < BOUND);
    }
    assert!(lost.elapsed() + COARSE >= TTL, "{:?}", lost.elapsed());
    assert!(
        next.unwrap() > fence,
        "terms and fences rise though the counter is gone"
    );
    // Jobs start at now.
    let again = bench.cursor(&b, next.unwrap(), "job").await;
    assert!(again > cursor);
}

/// A birth mark of the future is a clock that was set back: it counts from now.
#[tokio::test]
async fn a_birth_mark_of_the_future_counts_from_now() {
    let bench = Bench::redis().await;
    let server = bench.server.as_ref().unwrap();
    let state = format!("{{{}:leader:cleanup}}:lease", bench.namespace);
    for (born, known) in [("99999999999999", 0), ("nonsense", u64::MAX >> 12)] {
        server.command(&["HSET", &state, "born", born]).await;
        let began = Instant::now();
        assert!(quarantined(&bench, &holder("a")).await <= TTL);
        eventually(BOUND, "the quarantine ends", || async {
            let mut wish = bench.wish(&holder("a"), TTL, known);
            wish.first_start = false;
            matches!(bench.ask(wish).await.verdict, Verdict::Acquired { .. })
        })
        .await;
        assert!(began.elapsed() + COARSE >= TTL);
    }
}

/// A restarted server may have rolled back: only a renewal with the store's own term extends.
#[tokio::test]
async fn a_young_server_lets_only_the_present_leader_go_on() {
    let mut server = RedisServer::options().appendonly(true).start().await;
    let namespace = Namespace::new("young").unwrap();
    let bench = |server: &RedisServer| again(server, &namespace);
    let before = bench(&server);
    let (a, b) = (holder("a"), holder("b"));
    let term = before.acquire_for(&a, LEASE).await;
    let cursor = before.cursor(&a, term, "job").await;
    let fence = before
        .win(&a, term, claim("job", 1, cursor, after(cursor, 1), Want::Run))
        .await;
    assert!(matches!(before.renew_for(&a, term, LEASE).await, Renewed::Yes { .. }));
    server.restart(true).await;

    let bench = bench(&server);
    let wait = |verdict: Verdict| match verdict {
        Verdict::Quarantined { remaining, .. } => remaining,
        other => panic!("{other:?}"),
    };
    // Not even its own lease, for one that only campaigns.
    let own = bench.ask(bench.wish(&a, LEASE, fence)).await;
    assert_eq!(own.holder, Some(a.clone()));
    let remaining = wait(own.verdict);
    assert!(
        remaining > TTL && remaining <= LEASE + LEASE / 4 + YOUNG,
        "{remaining:?}"
    );
    let theirs = bench.ask(bench.wish(&b, LEASE, fence)).await;
    assert!(matches!(theirs.verdict, Verdict::Held { .. }), "{theirs:?}");
    assert!(!bench.is_led_by(&a, term - 1).await && !bench.is_led_by(&b, term).await);
    assert!(matches!(bench.renew_for(&a, term, TTL).await, Renewed::Yes { .. }));
    // What it ran is known still, and is not run again.
    assert_eq!(
        bench.settle("job", fence, Ran::Ok).await,
        leader_core::__seam::Settled::Yes
    );
    assert_eq!(bench.cursor(&a, term, "job").await, after(cursor, 1));
}

/// Given back at once: what the server may have forgotten is still to be waited for, whoever led.
#[tokio::test]
async fn a_hand_over_on_a_server_that_was_just_restarted_waits() {
    let mut server = RedisServer::options().appendonly(true).start().await;
    let namespace = Namespace::new("handed").unwrap();
    let (a, b) = (holder("a"), holder("b"));
    let term = again(&server, &namespace).acquire_for(&a, LEASE).await;
    server.restart(true).await;
    let bench = again(&server, &namespace);
    let renewed = Instant::now();
    assert!(matches!(bench.renew_for(&a, term, TTL).await, Renewed::Yes { .. }));
    bench.release(&a, term, None).await;
    let wish = bench.wish(&b, TTL, term);
    eventually(BOUND, "the server is old enough", || async {
        matches!(bench.ask(wish.clone()).await.verdict, Verdict::Acquired { .. })
    })
    .await;
    assert!(renewed.elapsed() >= TTL, "{:?}", renewed.elapsed());
}

/// Restored from a snapshot that is older than the last leader: nothing in it tells of one, and whoever led before the restart may
/// believe until one TTL after it.
#[tokio::test]
async fn a_server_restored_from_a_snapshot_lets_nobody_acquire_before_it_is_old_enough() {
    let mut server = RedisServer::start().await;
    let namespace = Namespace::new("snapshot").unwrap();
    let bench = |server: &RedisServer| again(server, &namespace);
    let before = bench(&server);
    let (a, b, c) = (holder("a"), holder("b"), holder("c"));
    let old = before.acquire_for(&a, TTL).await;
    before.release(&a, old, None).await;
    server.command(&["SAVE"]).await;
    // Only one that has learnt it knows that there was a later one.
    let term = before.acquire_for(&b, TTL).await;
    server.kill().await;
    // Long enough for the mark of the last renewal to say nothing.
    tokio::time::sleep(TTL + YOUNG).await;
    server.restart(true).await;
    let restarted = Instant::now();
    let bench = bench(&server);
    assert_eq!(
        bench.renew_for(&b, term, TTL).await,
        Renewed::NotYours {
            holder: None,
            term: old
        }
    );
    let mut wish = bench.wish(&c, TTL, old);
    wish.first_start = false;
    let answer = bench.ask(wish.clone()).await.verdict;
    assert!(
        matches!(answer, Verdict::Quarantined { remaining, .. } if remaining <= TTL + Duration::from_secs(1)),
        "{answer:?}"
    );
    let mut next = 0;
    while next == 0 {
        match bench.ask(wish.clone()).await.verdict {
            Verdict::Acquired { term } => next = term,
            Verdict::Quarantined { .. } => tokio::time::sleep(Duration::from_millis(5)).await,
            other => panic!("{other:?}"),
        }
        assert!(restarted.elapsed() < BOUND);
    }
    assert!(restarted.elapsed() >= TTL, "{:?}", restarted.elapsed());
    assert!(next > term);
}

/// The mark of the last renewal lies ahead of a server that was restarted with its clock behind: that is no renewal since.
#[tokio::test]
async fn a_restarted_server_whose_clock_is_behind_has_seen_no_renewal() {
    let mut server = RedisServer::options().appendonly(true).start().await;
    let namespace = Namespace::new("behind").unwrap();
    let a = holder("a");
    let term = again(&server, &namespace).acquire_for(&a, LEASE).await;
    again(&server, &namespace).release(&a, term, None).await;
    let state = "{behind:leader:cleanup}:lease";
    server.command(&["HSET", state, "seen", "99999999999999"]).await;
    server.restart(true).await;
    let restarted = Instant::now();
    let bench = again(&server, &namespace);
    for _ in 0..3 {
        let answer = bench.ask(bench.wish(&holder("b"), LEASE, term)).await.verdict;
        assert!(matches!(answer, Verdict::Quarantined { .. }), "{answer:?}");
    }
    eventually(BOUND, "the server is old enough", || async {
        let answer = bench.ask(bench.wish(&holder("b"), LEASE, term)).await;
        matches!(answer.verdict, Verdict::Acquired { .. })
    })
    .await;
    assert!(
        restarted.elapsed() + Duration::from_secs(1) >= LEASE,
        "{:?}",
        restarted.elapsed()
    );
}

/// An append-only file loses two seconds at the most; a candidate that knows of a term which the file does not tells that it did.
#[tokio::test]
async fn a_candidate_that_knows_more_than_a_restarted_server_waits_longer() {
    let mut server = RedisServer::options().appendonly(true).start().await;
    let namespace = Namespace::new("short").unwrap();
    let bench = |server: &RedisServer| again(server, &namespace);
    let term = bench(&server).acquire_for(&holder("a"), TTL).await;
    server.kill().await;
    tokio::time::sleep(2 * TTL + YOUNG).await;
    server.restart(true).await;
    let bench = bench(&server);
    let mut wish = bench.wish(&holder("b"), TTL, term + 1);
    wish.first_start = false;
    let answer = bench.ask(wish.clone()).await.verdict;
    assert!(matches!(answer, Verdict::Quarantined { .. }), "{answer:?}");
    // Its outage was longer than any trust, as far as anybody knows.
    wish.known = term;
    let answer = bench.ask(wish).await.verdict;
    assert!(matches!(answer, Verdict::Acquired { .. }), "{answer:?}");
}

/// A server that was never restarted since the group was born has rolled nothing back, young or not.
#[tokio::test]
async fn a_young_server_of_a_young_group_makes_nobody_wait() {
    let server = server(RedisServer::options()).await;
    let bench = Bench {
        server: None,
        ..Bench::redis_on(Arc::clone(&server))
    };
    let (a, b) = (holder("a"), holder("b"));
    let mut term = bench.acquire(&a).await;
    for who in [&b, &a, &b] {
        let last = if *who == a { &b } else { &a };
        bench.release(last, term, None).await;
        match bench.ask(bench.wish(who, LONG, term)).await.verdict {
            Verdict::Acquired { term: next } => term = next,
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn a_restart_without_its_data_is_a_loss_of_all_data() {
    let mut server = RedisServer::start().await;
    let namespace = Namespace::new("empty").unwrap();
    let bench = |server: &RedisServer| again(server, &namespace);
    let term = bench(&server).acquire_for(&holder("a"), TTL).await;
    server.restart(false).await;
    let bench = bench(&server);
    assert_eq!(
        bench.renew(&holder("a"), term).await,
        Renewed::NotYours { holder: None, term: 0 }
    );
    quarantined(&bench, &holder("b")).await;
}

#[tokio::test]
async fn keys_are_the_plain_lease_and_one_slot_for_the_rest() {
    let server = server(RedisServer::options()).await;
    for (namespace, prefix) in [("", ""), ("shop", "shop:")] {
        server.command(&["FLUSHALL"]).await;
        let namespace = Namespace::new(namespace.to_owned()).unwrap();
        let bench = Bench {
            store: Arc::new(RedisStore::new(&server.info(), &namespace, BOUND)),
            namespace,
            group: crate::bench::group("cleanup"),
            server: None,
        };
        let a = holder("a");
        let term = bench.acquire(&a).await;
        let cursor = bench.cursor(&a, term, "purge").await;
        let mut wish = claim("purge", 1, cursor, after(cursor, 2), Want::Run);
        wish.passed = vec![crate::bench::passed(
            leader_core::MissedReason::Skipped,
            after(cursor, 1),
            after(cursor, 1),
            1,
        )];
        let fence = bench.win(&a, term, wish).await;
        bench.settle("purge", fence, Ran::Ok).await;
        let next = claim("purge", 2, after(cursor, 2), after(cursor, 3), Want::Run);
        bench.win(&a, term, next).await;

        let lease = format!("{prefix}leader:cleanup");
        let parts = [
            "lease",
            "fence",
            "beats",
            "coverage",
            "job:purge",
            "ran:purge",
            "passed:purge",
        ];
        let expected = parts.iter().map(|part| format!("{{{lease}}}:{part}"));
        let expected: BTreeSet<_> = expected.chain([lease.clone()]).collect();
        let Value::Array(found) = server.command(&["KEYS", "*"]).await else {
            panic!("no list of keys");
        };
        let found: BTreeSet<_> = found.into_iter().map(text).collect();
        assert_eq!(found, expected);
        assert_eq!(text(server.command(&["GET", &lease]).await), a.as_str());
        // Only the lease ends by itself.
        for key in &found {
            let Value::Int(ttl) = server.command(&["PTTL", key]).await else {
                panic!("no TTL of {key}");
            };
            assert_eq!(ttl > 0, *key == lease, "{key}: {ttl}");
        }
    }
}

fn text(value: Value) -> String {
    match value {
        Value::BulkString(bytes) => String::from_utf8(bytes).unwrap(),
        Value::SimpleString(text) => text,
        other => panic!("{other:?}"),
    }
}

/// Other implementations of the scheme use the plain key.
#[tokio::test]
async fn a_foreign_holder_is_respected() {
    let bench = Bench::redis().await;
    let server = bench.server.as_ref().unwrap();
    let lease = format!("{}:leader:cleanup", bench.namespace);
    let a = holder("a");
    server.command(&["SET", &lease, "pod-7", "PX", "60000"]).await;
    let wish = bench.wish(&a, TTL, 0);
    let answer = bench.ask(wish.clone()).await;
    assert_eq!(answer.holder.as_ref().map(leader_core::Holder::as_str), Some("pod-7"));
    let Verdict::Held { remaining, term: 0 } = answer.verdict else {
        panic!("{answer:?}");
    };
    assert!(remaining.unwrap() > Duration::from_secs(30));
    assert!(!bench.is_led_by(&a, 0).await);
    bench.release(&a, 0, None).await;
    assert_eq!(text(server.command(&["GET", &lease]).await), "pod-7");
    // It goes: the group is ours, as soon as nobody of an earlier life can believe.
    server.command(&["DEL", &lease]).await;
    eventually(BOUND, "the quarantine ends", || async {
        matches!(bench.ask(wish.clone()).await.verdict, Verdict::Acquired { .. })
    })
    .await;
}

#[tokio::test]
async fn a_foreign_key_without_an_end_or_of_another_type_is_never_taken() {
    let bench = Bench::redis().await;
    let server = bench.server.as_ref().unwrap();
    let lease = format!("{}:leader:cleanup", bench.namespace);
    let a = holder("a");
    let term = bench.acquire(&a).await;
    for (words, name) in [
        (&["SET", &lease, "for-ever"][..], Some("for-ever")),
        (&["LPUSH", &lease, "x"], None),
        (&["HSET", &lease, "x", "y"], None),
        (&["SADD", &lease, "x"], None),
    ] {
        server.command(&["DEL", &lease]).await;
        server.command(words).await;
        let before = server.command(&["DUMP", &lease]).await;
        let answer = bench.campaign(&a, term).await;
        assert_eq!(answer.holder.as_ref().map(leader_core::Holder::as_str), name);
        assert_eq!(answer.verdict, Verdict::Held { remaining: None, term });
        assert!(!bench.is_led_by(&a, term).await);
        bench.release(&a, term, None).await;
        assert_eq!(
            bench.take_over(&a, term, &["job"]).await,
            leader_core::__seam::TakenOver::NotYours
        );
        let none = bench.claim_batch(bench.batch(&a, term, Vec::new())).await;
        assert_eq!(none, leader_core::__seam::Claimed::NotYours);
        assert_eq!(server.command(&["DUMP", &lease]).await, before, "{words:?}");
    }
}

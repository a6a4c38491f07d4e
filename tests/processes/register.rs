//! Leaders that are frozen in the middle of work that must never overlap.

use std::sync::Arc;
use std::time::Duration;

use leader_tests::RedisServer;
use redis::Value;
use rustix::process::Signal;
use tokio::task::JoinSet;

use crate::fences::{Stop, Written, judge, mend_cut_starts};
use crate::fleet::{Fleet, TTL, mono};
use leader_tests::Dice;
use leader_tests::checker::violations;

const GROUP: &str = "register";
/// The fleets side by side, and the freezes of each.
const FLEETS: u64 = 4;
const STOPS: usize = 4;
const STOPS_IN_FULL: usize = 50;
const PATIENCE: Duration = Duration::from_secs(20);

/// The counts of one fleet.
#[derive(Debug, Default)]
struct Count {
    stops: usize,
    accepted: u64,
    refused: u64,
    failed: u64,
    bodies: usize,
    straddles: usize,
    cut_starts: usize,
    longest: Duration,
}

#[tokio::test]
async fn a_frozen_leader_writes_nothing_that_a_fenced_register_would_mix_up() {
    let seed = leader_tests::seed();
    let full = std::env::var("LEADER_CHAOS").is_ok_and(|word| word == "full");
    let stops = if full { STOPS_IN_FULL } else { STOPS };
    println!("LEADER_CHAOS_SEED={seed}: {FLEETS} fleets, {stops} freezes each");
    let server = Arc::new(RedisServer::start().await);
    let mut fleets = JoinSet::new();
    for number in 0..FLEETS {
        fleets.spawn(freezes(
            Arc::clone(&server),
            number,
            Dice::new(seed ^ (number << 32)),
            stops,
        ));
    }
    let mut sum = Count::default();
    while let Some(done) = fleets.join_next().await {
        let count = done.unwrap_or_else(|error| panic!("LEADER_CHAOS_SEED={seed}: {error}"));
        println!(
            "a fleet: {} freezes of at most {:?}, {} bodies, {} writes without an answer",
            count.stops, count.longest, count.bodies, count.failed
        );
        sum.stops += count.stops;
        sum.straddles += count.straddles;
        sum.cut_starts += count.cut_starts;
        sum.accepted += count.accepted;
        sum.refused += count.refused;
    }
    println!(
        "{} freezes; {} writes accepted, {} refused; cut in two between the guard's look and the body's own: {} polls, {} starts",
        sum.stops, sum.accepted, sum.refused, sum.straddles, sum.cut_starts
    );
    assert_eq!(sum.stops, usize::try_from(FLEETS).expect("a few") * stops);
}

/// Freezes the register's leader again and again, and judges what everybody did.
async fn freezes(server: Arc<RedisServer>, number: u64, mut dice: Dice, wanted: usize) -> Count {
    let namespace = format!("register-{number}");
    let mut fleet = Fleet::with(&server, &namespace, &[GROUP, "default", "cleanup"], &["--register"]);
    (0..3).for_each(|_| fleet.join(true));
    fleet.ticks(2).await;

    let mut stops: Vec<Stop> = Vec::new();
    let mut longest = Duration::ZERO;
    for _ in 0..2 * wanted {
        if stops.len() == wanted {
            break;
        }
        let (leader, since) = fleet.led_after(GROUP, 0, PATIENCE).await;
        tokio::time::sleep(dice.span(Duration::from_millis(100), TTL)).await;
        fleet.freeze(leader).await;
        let still = mono();
        let (wait, begun) = (dice.span(TTL, 2 * TTL), tokio::time::Instant::now());
        // A busy machine may have cost it the lead meanwhile.
        let leads = fleet.leader_by_word(GROUP) == Some((leader, since));
        if leads {
            tokio::time::sleep_until(begun + wait).await;
        }
        let woken = mono();
        fleet.signal(leader, Signal::CONT);
        if leads {
            let instance = fleet.id(leader).to_owned();
            fleet.lost_after(leader, GROUP, still, PATIENCE).await;
            fleet.led_after(GROUP, still, PATIENCE).await;
            let term = fleet.term_of(leader, GROUP, since);
            longest = longest.max(wait);
            stops.push(Stop {
                instance,
                term,
                still,
                woken,
            });
        }
    }
    // The last one to wake up shows what it does.
    fleet.ticks(1).await;
    for node in fleet.living() {
        fleet.signal(node, Signal::TERM);
    }
    for node in fleet.living() {
        fleet.stopped(node).await;
    }

    let mut lines = fleet.lines();
    let written: Vec<Written> = fleet.lines_of("written");
    let history = history(&server, &namespace).await;
    let findings = judge(&lines, &written, &history, &stops);
    let cut_starts = mend_cut_starts(&mut lines, &stops);
    let mut found = findings.violations;
    found.extend(violations(&lines, &fleet.ends));
    assert!(found.is_empty(), "{namespace}\n{}", found.join("\n"));
    let sum = |of: fn(&Written) -> u64| written.iter().map(of).sum::<u64>();
    let count = Count {
        stops: stops.len(),
        accepted: number_at(&server, &namespace, "accepted").await,
        refused: number_at(&server, &namespace, "refused").await,
        failed: sum(|body| body.failed),
        bodies: written.len(),
        straddles: findings.straddles,
        cut_starts,
        longest,
    };
    // Somebody else has written after each freeze; whoever counts nothing has judged nothing.
    assert!(history.len() > count.stops, "{history:?}");
    assert!(count.accepted >= sum(|body| body.accepted), "{count:?}: {written:?}");
    assert!(count.refused >= sum(|body| body.refused), "{count:?}: {written:?}");
    assert!(
        count.accepted > 100 * (wanted as u64),
        "hardly anything was written: {count:?}"
    );
    count
}

/// Each change of who was accepted, as the script wrote it.
async fn history(server: &RedisServer, namespace: &str) -> Vec<(u64, String)> {
    let key = format!("{namespace}:register-history");
    let Value::Array(entries) = server.command(&["LRANGE", &key, "0", "-1"]).await else {
        panic!("no history");
    };
    let text = |value: &Value| redis::from_redis_value_ref::<String>(value).expect("a text");
    let entry = |text: String| {
        let (fence, writer) = text.split_once(' ').expect("a fence and a writer");
        (fence.parse().expect("a number"), writer.to_owned())
    };
    entries.iter().map(text).map(entry).collect()
}

async fn number_at(server: &RedisServer, namespace: &str, field: &str) -> u64 {
    let value = server.command(&["HGET", &format!("{namespace}:register"), field]).await;
    redis::from_redis_value_ref::<Option<u64>>(&value)
        .expect("a number")
        .unwrap_or(0)
}

//! What a thousand jobs that are due at one instant cost: one round trip, and scripts whose time the server itself tells.

use std::time::{Duration, Instant};

use leader_core::__seam::{ClaimReply, RedisStore, Settled, Store, Want};
use leader_core::Ran;
use leader_tests::{Direction, Proxy, RedisServer};

use crate::bench::{Bench, LONG, after, claim, end, holder};

const JOBS: usize = 1_000;
/// How many claims, or results, the store puts into one script.
const IN_A_SCRIPT: usize = 128;
/// What a round trip takes: more than the server and this machine need for everything else.
const TRIP: Duration = Duration::from_secs(1);

/// Calls of scripts, and the time that the server spent in them.
async fn scripts(server: &RedisServer) -> (usize, Duration) {
    let info = server.tells("commandstats").await;
    let line = info
        .lines()
        .find(|line| line.starts_with("cmdstat_eval:"))
        .unwrap_or_default();
    let number = |field: &str| -> u64 {
        let (_, rest) = line.split_once(field).unwrap_or(("", "0"));
        rest.split(',').next().unwrap().parse().unwrap()
    };
    let calls = usize::try_from(number("calls=")).unwrap();
    (calls, Duration::from_micros(number("usec=")))
}

#[tokio::test]
async fn a_thousand_jobs_due_at_once_are_claimed_and_settled_in_one_round_trip_each() {
    let server = std::sync::Arc::new(RedisServer::start().await);
    let bench = Bench::redis_on(std::sync::Arc::clone(&server));
    let proxy = Proxy::start(server.port()).await;
    let info = leader_core::__seam::parse(&proxy.url()).unwrap();
    let far = RedisStore::new(&info, &bench.namespace, LONG);
    let names: Vec<_> = (0..JOBS).map(|n| format!("job-{n}")).collect();
    let a = holder("a");
    let term = bench.acquire(&a).await;
    let words: Vec<_> = names.iter().map(String::as_str).collect();
    let leader_core::__seam::TakenOver::Yours { cursors, .. } = bench.take_over(&a, term, &words).await else {
        panic!("not yours");
    };
    // The connection is there before anything is measured.
    far.ledger(&bench.group, &crate::bench::job("job-0")).await.unwrap();
    proxy.delay(Direction::ToServer, TRIP / 2);
    proxy.delay(Direction::ToClient, TRIP / 2);

    let claims = names.iter().zip(&cursors).zip(0..);
    let claims = claims.map(|((name, cursor), number)| claim(name, number, *cursor, after(*cursor, 1), Want::Run));
    let batch = bench.batch(&a, term, claims.collect());
    let (before, began) = (scripts(&server).await, Instant::now());
    let claimed = far.claim(vec![batch]).await.remove(0).unwrap();
    let (took, between) = (began.elapsed(), scripts(&server).await);
    let leader_core::__seam::Claimed::Yours(replies) = claimed else {
        panic!("not yours");
    };
    let fence = |reply: &ClaimReply| match reply {
        ClaimReply::Won { fence } => *fence,
        other => panic!("{other:?}"),
    };
    let fences: Vec<_> = replies.iter().map(fence).collect();
    one_round_trip("claims", took, before, between);

    let ends = names
        .iter()
        .zip(&fences)
        .map(|(name, fence)| end(name, *fence, Ran::Ok));
    let batch = leader_core::__seam::SettleBatch {
        group: bench.group.clone(),
        ends: ends.collect(),
    };
    let began = Instant::now();
    let settled = far.settle(vec![batch]).await.remove(0).unwrap();
    let (took, after) = (began.elapsed(), scripts(&server).await);
    assert_eq!(settled, vec![Settled::Yes; JOBS]);
    one_round_trip("results", took, between, after);
}

fn one_round_trip(what: &str, took: Duration, before: (usize, Duration), after: (usize, Duration)) {
    let (calls, time) = (after.0 - before.0, after.1.saturating_sub(before.1));
    println!(
        "{JOBS} {what}: {calls} scripts, {time:?} on the server, {took:?} in all of which {TRIP:?} are the way there and back"
    );
    assert_eq!(calls, JOBS.div_ceil(IN_A_SCRIPT), "{what}");
    assert!(
        took >= TRIP && took < 2 * TRIP,
        "{what}: {took:?} are no single round trip of {TRIP:?}"
    );
}

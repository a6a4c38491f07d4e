//! Open connections swallow everything for ever.

use std::time::Duration;

use leader_tests::{RedisServer, eventually};

use crate::dose::{Chance, dose};
use crate::observer::Observer;
use crate::rig::{Fleet, Log, Member, PATIENCE, STEADY, ms, now, side_by_side, spread, turn};

/// How soon the connections of leases and commands are replaced.
const REPLACED: Duration = ms(3_000);
/// How soon the subscription is: it is tested after 5 s of silence, and given 2 s.
const HEARS: Duration = ms(7_000);
/// Connecting, and a machine that does other things too.
const SLACK: Duration = ms(500);
/// How soon a release is heard.
const HANDOVER: Duration = ms(100);

struct Swallowed {
    replaced: Duration,
    hears: Duration,
    kept: bool,
    handover: Duration,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn leases_23_a_black_hole_is_left_by_itself() {
    let _turn = turn().await;
    let (pairs, rounds) = dose().black_holes;
    let chance = Chance::of("black hole");
    let server = RedisServer::start().await;
    let (port, observer, log) = (server.port(), Observer::of(&server).await, Log::new());
    let swallowed = side_by_side(pairs, |index| {
        let fleet = Fleet::new(format!("hole-{index}"), STEADY, &log);
        let (observer, chance) = (observer.clone(), chance.fork());
        async move {
            let (mut leader, mut standby) = fleet.pair(port).await;
            let mut swallowed = Vec::new();
            for _ in 0..rounds {
                swallowed.push(swallow(&fleet, &leader, &standby, &observer, &chance).await);
                (leader, standby) = (standby, leader);
            }
            standby.stop().await;
            leader.stop().await;
            swallowed
        }
    })
    .await;
    let all: Vec<_> = swallowed.into_iter().flatten().collect();
    assert_eq!(all.len(), pairs * rounds);
    let of = |pick: fn(&Swallowed) -> Duration| spread(all.iter().map(pick).collect());
    println!("black hole: connections replaced after {}", of(|one| one.replaced));
    println!("black hole: subscription rebuilt after {}", of(|one| one.hears));
    let kept = all.iter().filter(|one| one.kept).count();
    println!("black hole: leadership kept {kept} times of {}", all.len());
    println!(
        "black hole: a release was answered by the next grant after {}",
        of(|one| one.handover)
    );
    let late: Vec<_> = all
        .iter()
        .map(|one| one.handover)
        .filter(|took| *took > HANDOVER)
        .collect();
    assert!(late.is_empty(), "late hand-overs: {late:?}");
    log.judge("black hole");
}

async fn swallow(fleet: &Fleet, leader: &Member, standby: &Member, observer: &Observer, chance: &Chance) -> Swallowed {
    let losses = leader.losses().len();
    let listeners = || observer.listeners(&fleet.namespace);
    eventually(PATIENCE, "both listen", || async { listeners().await >= 2 }).await;
    let listening = listeners().await;
    tokio::time::sleep(chance.below(ms(1_000))).await;

    let accepted = leader.proxy.accepted();
    let at = now();
    leader.proxy.black_hole();
    standby.proxy.black_hole();
    // Of leases and of commands.
    let renewed = || async { leader.proxy.accepted() >= accepted + 2 };
    let replaced = eventually(PATIENCE, "the connections are replaced", renewed).await;
    assert!(replaced <= REPLACED, "replaced only after {replaced:?}");
    tokio::time::sleep(REPLACED.saturating_sub(now().since(at))).await;
    // Longer than the trust of what was renewed before.
    assert!(leader.is_leader(), "neither kept nor regained");
    let kept = leader.losses().len() == losses;

    // The server never hears of the end of the old ones.
    eventually(PATIENCE, "both listen again", || async {
        listeners().await >= listening + 2
    })
    .await;
    let hears = now().since(at);
    assert!(hears <= HEARS + SLACK, "listened only after {hears:?}");

    let (term, before) = (leader.term(), now());
    leader.step_down().await;
    let (released, _) = leader.lost(term).await;
    let (_, granted) = standby.granted_after(before).await;
    Swallowed {
        replaced,
        hears,
        kept,
        handover: granted.since(released),
    }
}

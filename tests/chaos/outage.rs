//! The server dies, stays away, and comes back with its data or without.

use std::time::Duration;

use leader_tests::{RedisServer, eventually};

use crate::dose::{Chance, Dose, dose};
use crate::rig::{Fleet, Log, Member, PATIENCE, STEADY, TTL, leader_first, ms, now, spread, timing, turn};

/// How soon after its return somebody leads again.
const WITH_DATA: Duration = ms(1_000);
const WITHOUT_DATA: Duration = ms(4_000);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fault_b_a_dead_server_closes_everybody_and_is_led_on_after_its_return() {
    let _turn = turn().await;
    let dose = dose();
    // What an append-only file may have forgotten has ended by then, too.
    assert!(dose.outage >= 2 * TTL + ms(2_000));
    let chance = Chance::of("outage");
    let log = Log::new();
    tokio::join!(
        outage(true, WITH_DATA, &dose, chance.fork(), &log),
        outage(false, WITHOUT_DATA, &dose, chance.fork(), &log),
    );
    log.judge("outage");
}

async fn outage(keeps: bool, bound: Duration, dose: &Dose, chance: Chance, log: &Log) {
    let what = if keeps { "with data" } else { "without data" };
    let mut server = RedisServer::options().appendonly(keeps).start().await;
    let mut fleets = Vec::new();
    for index in 0..dose.fleets {
        let fleet = Fleet::new(format!("keeps-{keeps}-{index}"), STEADY, log);
        tokio::time::sleep(chance.below(timing().renew())).await;
        let (a, b) = fleet.pair(server.port()).await;
        let c = fleet.join("c", server.port(), true).await;
        fleets.push(leader_first(vec![a, b, c]).await);
    }
    tokio::time::sleep(chance.below(ms(1_000))).await;
    let at = now();
    server.kill().await;
    let mut believed = Vec::new();
    for (leader, standbys) in &fleets {
        let (ended, _) = leader.lost(leader.term()).await;
        believed.push(ended.since(at));
        assert!(!leader.is_leader() && !standbys.iter().any(Member::is_leader));
    }
    assert!(believed.iter().all(|span| *span <= TTL), "{believed:?}");
    println!("server dead ({what}): belief went on for {}", spread(believed));

    // One of each fleet leaves meanwhile, here the leader, there a standby.
    let mut left = Vec::new();
    let mut stayed = Vec::new();
    for (index, (leader, mut standbys)) in fleets.into_iter().enumerate() {
        let term = leader.term();
        let leaving = if index % 2 == 0 {
            standbys.push(leader);
            standbys.remove(0)
        } else {
            leader
        };
        left.push(leaving.stop().await);
        stayed.push((term, standbys));
    }
    // No body runs, nothing is held: what remains is to take the roster line out.
    let leave = 4 * (timing().operation() + timing().retry());
    assert!(left.iter().all(|took| *took <= leave), "{left:?}");
    println!("server dead ({what}): a shutdown took {}", spread(left));

    tokio::time::sleep(dose.outage.saturating_sub(now().since(at))).await;
    let before = now();
    server.restart(keeps).await;
    let back = now();
    let mut again = Vec::new();
    for (term, members) in &stayed {
        let grants = || members.iter().flat_map(Member::grants).filter(|(_, at)| *at > before);
        eventually(PATIENCE, "it is led again", || async { grants().count() > 0 }).await;
        let (next, at) = grants().min_by_key(|(_, at)| *at).unwrap();
        assert!(next > *term, "{next} is not above {term}");
        again.push(at.since(back));
    }
    println!(
        "server back after {:?} ({what}): led again after {}",
        dose.outage,
        spread(again.clone())
    );
    assert!(again.iter().all(|took| *took <= bound), "{what}: {again:?}");
    for (_, members) in stayed {
        let (leader, standbys) = leader_first(members).await;
        for standby in standbys {
            standby.stop().await;
        }
        leader.stop().await;
    }
}

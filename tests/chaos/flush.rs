//! The data vanishes under a leader, as a candidate without a memory starts.

use leader_tests::{RedisServer, eventually};

use crate::dose::{Chance, dose};
use crate::rig::{
    Fleet, Log, Member, PATIENCE, STEADY, TTL, leader_first, ms, now, side_by_side, spread, timing, turn,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flush_under_a_leader_makes_no_second_one() {
    let _turn = turn().await;
    let (namespaces, rounds) = dose().flushes;
    let chance = Chance::of("flush");
    let server = RedisServer::start().await;
    let (port, log) = (server.port(), Log::new());
    let mut led = side_by_side(namespaces, |index| {
        let fleet = Fleet::new(format!("flush-{index}"), STEADY, &log);
        let phase = chance.below(timing().renew());
        async move {
            tokio::time::sleep(phase).await;
            let first = fleet.join("first", port, true).await;
            first.leads().await;
            (fleet, first)
        }
    })
    .await;
    let (mut believed, mut vacant) = (Vec::new(), Vec::new());
    for round in 1..=rounds {
        tokio::time::sleep(chance.below(ms(1_000))).await;
        // Some of them a little before, some a little after.
        let starting = side_by_side(led.len(), |index| {
            let (fleet, phase) = (led[index].0.clone(), chance.below(ms(40)));
            async move {
                tokio::time::sleep(phase).await;
                fleet.join(format!("fresh-{round}"), port, false).await
            }
        });
        let flushing = async {
            tokio::time::sleep(ms(20)).await;
            let at = now();
            server.command(&["FLUSHALL"]).await;
            at
        };
        let (fresh, at) = tokio::join!(starting, flushing);
        let mut next = Vec::new();
        for ((fleet, leader), fresh) in led.into_iter().zip(fresh) {
            let (ended, _) = leader.lost(last_before(&leader, at)).await;
            believed.push(ended.since(at));
            let members = vec![leader, fresh];
            let granted = || members.iter().flat_map(Member::grants).find(|(_, told)| *told > at);
            eventually(PATIENCE, "it is led again", || async { granted().is_some() }).await;
            vacant.push(granted().unwrap().1.since(at));
            let (leader, others) = leader_first(members).await;
            for other in others {
                other.stop().await;
            }
            next.push((fleet, leader));
        }
        led = next;
    }
    println!("flush: belief went on for {}", spread(believed));
    println!("flush: led again after {}", spread(vacant.clone()));
    assert_eq!(vacant.len(), namespaces * rounds);
    assert!(vacant.iter().all(|took| *took <= TTL + ms(2_000)), "{vacant:?}");
    for (_, leader) in led {
        leader.stop().await;
    }
    log.judge("flush");
}

/// The term that an instance led under at that moment.
fn last_before(leader: &Member, at: leader_core::Moment) -> u64 {
    let grants = leader.grants();
    grants
        .iter()
        .filter(|(_, told)| *told <= at)
        .map(|(term, _)| *term)
        .max()
        .unwrap()
}

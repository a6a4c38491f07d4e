//! A replica takes over, and the links are led to it.

use std::collections::BTreeSet;
use std::time::Duration;

use leader_tests::{RedisServer, eventually};

use crate::dose::{Chance, dose};
use crate::rig::{Fleet, Log, Member, PATIENCE, STEADY, leader_first, ms, now, ripen, side_by_side, spread, turn};

/// How soon a connection to a server that may not write any more is replaced.
const REPLACED: Duration = ms(5_000);

/// redisson#4822: after a fail-over candidates waited for ever.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn leases_13_after_a_fail_over_every_candidate_can_still_lead() {
    let _turn = turn().await;
    let (fleets, rounds) = dose().fail_overs;
    let chance = Chance::of("fail-over");
    let start = || RedisServer::options().set("repl-diskless-sync-delay", "0").start();
    let (mut from, mut to) = (start().await, start().await);
    follow(&to, &from).await;
    ripen(&from).await;
    ripen(&to).await;
    let (port, log) = (from.port(), Log::new());
    let mut members = side_by_side(fleets, |index| {
        let fleet = Fleet::new(format!("over-{index}"), STEADY, &log);
        async move {
            let (a, b) = fleet.pair(port).await;
            vec![a, b, fleet.join("c", port, true).await]
        }
    })
    .await;
    let namespaces: Vec<_> = (0..fleets).map(|index| format!("over-{index}")).collect();
    let namespaces: Vec<_> = namespaces.iter().map(String::as_str).collect();
    let (mut replaced, mut rounds_led) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        log.more_ticks(&namespaces, 1).await;
        tokio::time::sleep(chance.below(ms(1_000))).await;
        let accepted: Vec<_> = members
            .iter()
            .map(|fleet| fleet.iter().map(|member| member.proxy.accepted()).collect::<Vec<_>>())
            .collect();
        let at = now();
        to.command(&["REPLICAOF", "NO", "ONE"]).await;
        from.command(&["REPLICAOF", "127.0.0.1", &to.port().to_string()]).await;
        for (index, fleet) in members.iter().enumerate() {
            for member in fleet {
                member.proxy.set_target(to.port());
                // Every other fleet keeps its old connections, to a server that may not write any more.
                if index % 2 == 0 {
                    member.proxy.cut();
                    member.proxy.heal();
                }
            }
        }
        for (fleet, accepted) in members.iter().zip(accepted) {
            for (member, accepted) in fleet.iter().zip(accepted) {
                let again = || async { member.proxy.accepted() > accepted };
                eventually(PATIENCE, "a connection is replaced", again).await;
                replaced.push(now().since(at));
            }
        }
        let began = now();
        let turns: Vec<_> = members
            .into_iter()
            .map(|fleet| tokio::spawn(each_leads(fleet)))
            .collect();
        members = Vec::new();
        for turn in turns {
            members.push(turn.await.unwrap());
        }
        rounds_led.push(now().since(began));
        log.more_ticks(&namespaces, 2).await;
        (from, to) = (to, from);
        linked(&to).await;
    }
    println!("fail-over: connections replaced after {}", spread(replaced.clone()));
    println!("fail-over: all three have led within {}", spread(rounds_led));
    assert!(replaced.iter().all(|took| *took <= REPLACED), "{replaced:?}");
    for fleet in members {
        for member in fleet {
            member.stop().await;
        }
    }
    log.judge("fail-over");
}

/// Steps down whoever leads until each has led on the new server.
async fn each_leads(mut members: Vec<Member>) -> Vec<Member> {
    let began = now();
    let mut led = BTreeSet::new();
    while led.len() < members.len() {
        assert!(now().since(began) < 2 * PATIENCE, "only {led:?} have led: {members:?}");
        let (leader, mut others) = leader_first(members).await;
        leader.step_down().await;
        led.insert(leader.id.clone());
        others.push(leader);
        members = others;
    }
    members
}

async fn follow(replica: &RedisServer, source: &RedisServer) {
    replica
        .command(&["REPLICAOF", "127.0.0.1", &source.port().to_string()])
        .await;
    linked(replica).await;
}

/// Waits until a replica has everything.
async fn linked(replica: &RedisServer) {
    eventually(PATIENCE, "the replica follows", || async {
        replica.fact("replication", "master_link_status").await == "up"
    })
    .await;
}

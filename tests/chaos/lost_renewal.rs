//! A renewal runs on the server, and its reply is lost.

use std::time::Duration;

use leader_tests::{Proxy, RedisServer, Request, eventually};

use crate::dose::{Chance, dose};
use crate::observer::{Observer, Sampler};
use crate::rig::{Fleet, Log, PATIENCE, STEADY, ms, now, side_by_side, spread, timing, turn};

/// How a reply is lost.
type Way = fn(&Proxy);

fn dropped(proxy: &Proxy) {
    proxy.drop_replies(Request::Renewal.marker(), 1);
}

fn reset(proxy: &Proxy) {
    proxy.reset_after_request(Request::Renewal.marker(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fault_c_a_renewal_whose_reply_is_lost_costs_nothing() {
    let _turn = turn().await;
    let (pairs, rounds) = dose().lost_renewals;
    let chance = Chance::of("lost renewal");
    let server = RedisServer::start().await;
    let (port, observer, log) = (server.port(), Observer::of(&server).await, Log::new());
    let ways: [(&str, Way); 2] = [("dropped", dropped), ("reset", reset)];
    for (name, way) in ways {
        let renewed = side_by_side(pairs, |index| {
            let fleet = Fleet::new(format!("{name}-{index}"), STEADY, &log);
            let (observer, chance) = (observer.clone(), chance.fork());
            async move { in_turn(&fleet, port, way, rounds, &observer, &chance).await }
        })
        .await;
        let renewed: Vec<_> = renewed.into_iter().flatten().collect();
        assert_eq!(renewed.len(), pairs * rounds);
        println!("reply of a renewal {name}: renewed again after {}", spread(renewed));
    }
    log.judge("lost renewal");
}

/// One pair, whose leader's renewals lose their replies one after the other.
async fn in_turn(
    fleet: &Fleet,
    port: u16,
    way: Way,
    rounds: usize,
    observer: &Observer,
    chance: &Chance,
) -> Vec<Duration> {
    let (leader, standby) = fleet.pair(port).await;
    let sampler = Sampler::of(&leader.instance, fleet.group);
    let mut renewed = Vec::new();
    for round in 1..=rounds {
        tokio::time::sleep(chance.below(timing().renew())).await;
        way(&leader.proxy);
        let hits = u64::try_from(round).unwrap();
        eventually(PATIENCE, "a renewal is hit", || async { leader.proxy.hits() == hits }).await;
        let hit = now();
        eventually(PATIENCE, "it has failed", || async {
            leader.failed_renewals() >= round
        })
        .await;
        rises(fleet, observer).await;
        renewed.push(now().since(hit));
    }
    let seen = sampler.stop();
    assert!(seen.no == 0 && seen.yes > 0, "{seen:?}");
    assert_eq!(leader.failed_renewals(), rounds, "one for each fault");
    assert_eq!((leader.grants().len(), leader.losses().len()), (1, 0));
    assert_eq!(standby.grants().len(), 0);
    standby.stop().await;
    leader.stop().await;
    renewed
}

/// Waits until the lease is prolonged.
async fn rises(fleet: &Fleet, observer: &Observer) {
    let (mut last, began) = (Duration::MAX, now());
    loop {
        let left = observer.look(&fleet.namespace, fleet.group).await.left;
        if left > last.saturating_add(ms(50)) {
            return;
        }
        assert!(now().since(began) < PATIENCE, "not prolonged");
        last = left;
        tokio::time::sleep(ms(5)).await;
    }
}

//! A campaign wins on the server, and its reply is lost.

use std::time::Duration;

use leader_core::Moment;
use leader_tests::{Proxy, RedisServer, Request};

use crate::dose::dose;
use crate::observer::{Look, Observer};
use crate::rig::{Fleet, Log, PATIENCE, STEADY, TTL, ms, now, side_by_side, spread, turn};

/// How soon its winner leads all the same: two bounds of an operation, a pause, and a machine that does other things too.
const BOUND: Duration = ms(1_000);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fault_d_a_grant_whose_reply_is_lost_is_found_by_its_winner() {
    const { assert!(BOUND.as_millis() * 2 <= TTL.as_millis()) };
    let _turn = turn().await;
    let (groups, rounds) = dose().lost_grants;
    let server = RedisServer::start().await;
    let (port, observer, log) = (server.port(), Observer::of(&server).await, Log::new());
    // A young server would let nobody campaign again.
    for (name, way) in [
        ("dropped", Proxy::drop_replies as fn(&Proxy, &str, u64)),
        ("reset", Proxy::reset_after_request),
    ] {
        let found = side_by_side(groups, |index| {
            let (observer, log) = (observer.clone(), log.clone());
            async move {
                let mut found = Vec::new();
                for round in 0..rounds {
                    let fleet = Fleet::new(format!("{name}-{index}-{round}"), STEADY, &log);
                    let proxy = Proxy::start(port).await;
                    way(&proxy, Request::Campaign.marker(), 1);
                    found.push(lose(&fleet, port, proxy, &observer).await);
                }
                found
            }
        })
        .await;
        let found: Vec<_> = found.into_iter().flatten().collect();
        assert_eq!(found.len(), groups * rounds);
        println!("reply of a grant {name}: its winner led after {}", spread(found));
    }
    log.judge("lost grant");
}

/// A candidate wins and does not hear of it, while another tries.
async fn lose(fleet: &Fleet, port: u16, proxy: Proxy, observer: &Observer) -> Duration {
    let rival = async {
        let won = won(fleet, observer).await;
        (won, fleet.join("rival", port, true).await)
    };
    let (winner, (won, rival)) = tokio::join!(fleet.join_by(proxy, "winner", true), rival);
    let (term, granted) = winner.granted_after(Moment::ZERO).await;
    assert_eq!(winner.proxy.hits(), 1);
    assert!(won.term > 0 && term > won.term, "{term} is not above {}", won.term);
    assert!(rival.grants().is_empty(), "the rival was elected");
    rival.stands_by(&winner).await;
    let took = granted.since(won.sent);
    assert!(took <= BOUND, "its winner led only after {took:?}");
    rival.stop().await;
    winner.stop().await;
    took
}

/// The first sight of the lease.
async fn won(fleet: &Fleet, observer: &Observer) -> Look {
    let began = now();
    loop {
        let look = observer.look(&fleet.namespace, fleet.group).await;
        if look.is_held_by("winner") {
            return look;
        }
        assert!(look.holder.is_none() && now().since(began) < PATIENCE, "{look:?}");
        tokio::time::sleep(ms(2)).await;
    }
}

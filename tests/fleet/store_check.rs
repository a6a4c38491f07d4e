//! What an instance finds out about its server before it asks for a lease.

use leader_core::{BootstrapError, Event, Events, Finding, FindingKind};
use leader_tests::RedisServer;

use crate::stage::{Ground, SOON, Stage, among_others, leads, ms};

async fn found(events: &mut Events) -> Finding {
    let finding = async {
        loop {
            if let Event::StoreFound { finding, .. } = events.recv().await.unwrap().event {
                break finding;
            }
        }
    };
    tokio::time::timeout(SOON, finding).await.expect("a finding")
}

/// A replica takes no leases: the start is refused, with the address that is meant.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_is_refused_with_the_address_of_its_primary() {
    let _among = among_others().await;
    let primary = RedisServer::start().await;
    let port = primary.port().to_string();
    let replica = RedisServer::options()
        .set("replicaof", &format!("127.0.0.1 {port}"))
        .start()
        .await;
    let ground = Ground::Redis(Box::new(replica));
    let error = ground.instance("a", &Stage::new(), ["yearly"]).await.unwrap_err();
    let BootstrapError::UnfitStore { findings, .. } = &error else {
        panic!("{error:?}");
    };
    assert!(
        findings.iter().any(|finding| finding.kind == FindingKind::Replica),
        "{error}"
    );
    assert!(error.to_string().contains(&format!("127.0.0.1:{port}")), "{error}");
}

/// The address leads to a replica that is promoted later: an instance that could not reach it at the start leads from then on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_that_is_promoted_is_used_from_then_on() {
    let _among = among_others().await;
    let primary = RedisServer::start().await;
    let port = primary.port().to_string();
    let replica = RedisServer::options()
        .set("replicaof", &format!("127.0.0.1 {port}"))
        .start()
        .await;
    replica.pause();
    let ground = Ground::Redis(Box::new(replica));
    let bootstrap = ground
        .instance("a", &Stage::new(), ["yearly"])
        .timing(leader_core::Timing::from_ttl(ms(2_000)));
    let mut events = bootstrap.events();
    let instance = bootstrap.await.expect("an unreachable store is no error");
    let Ground::Redis(replica) = &ground else {
        unreachable!()
    };
    replica.resume();
    assert_eq!(found(&mut events).await.kind, FindingKind::Replica);
    assert_eq!(found(&mut events).await.kind, FindingKind::Persistence);
    assert!(!instance.is_leader("yearly"));
    replica.command(&["REPLICAOF", "NO", "ONE"]).await;
    leads(&instance, "yearly").await;
    instance.shutdown().await;
}

/// Warnings are told once, and nothing is refused.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_may_forget_is_warned_of() {
    let _among = among_others().await;
    let server = RedisServer::options()
        .maxmemory("100mb")
        .set("maxmemory-policy", "volatile-ttl")
        .start()
        .await;
    let ground = Ground::Redis(Box::new(server));
    let bootstrap = ground.instance("a", &Stage::new(), ["yearly"]);
    let mut events = bootstrap.events();
    let instance = bootstrap.await.unwrap();
    let kinds = [found(&mut events).await, found(&mut events).await];
    for (finding, kind, word) in [
        (&kinds[0], FindingKind::Eviction, "noeviction"),
        (&kinds[1], FindingKind::Persistence, "appendonly yes"),
    ] {
        assert_eq!(finding.kind, kind);
        assert!(finding.text.contains(word), "{finding}");
    }
    leads(&instance, "yearly").await;
    // After an outage the server is looked at again, and only news are told.
    let Ground::Redis(server) = &ground else { unreachable!() };
    server
        .command(&["CONFIG", "SET", "maxmemory-policy", "allkeys-lru"])
        .await;
    server.pause();
    let noticed = async { while !matches!(events.recv().await.unwrap().event, Event::StoreFailed { .. }) {} };
    tokio::time::timeout(SOON, noticed)
        .await
        .expect("the outage is noticed");
    server.resume();
    let finding = found(&mut events).await;
    assert_eq!(finding.kind, FindingKind::Eviction);
    assert!(finding.text.contains("allkeys-lru"), "{finding}");
    instance.shutdown().await;
}

/// A user who may not ask is told what to allow, and leads all the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_may_not_be_asked_is_used_all_the_same() {
    let _among = among_others().await;
    let ground = Ground::redis().await;
    let Ground::Redis(server) = &ground else { unreachable!() };
    server
        .command(&[
            "ACL", "SETUSER", "default", "on", "nopass", "~*", "&*", "+@all", "-info",
        ])
        .await;
    let bootstrap = ground
        .instance("a", &Stage::new(), ["yearly"])
        .timing(leader_core::Timing::from_ttl(ms(1_000)));
    let mut events = bootstrap.events();
    let instance = bootstrap.await.unwrap();
    let finding = found(&mut events).await;
    assert_eq!(finding.kind, FindingKind::Unknown);
    assert!(finding.text.contains("`INFO`"), "{finding}");
    leads(&instance, "yearly").await;
    instance.shutdown().await;
}

//! Users who may not do everything, and groups that are broken: what has nothing to do with them goes on.

use leader_core::{Event, FindingKind, Outcome, Ran, Timing};
use leader_tests::{RedisServer, eventually};

use crate::stage::{Diary, Ground, SOON, Stage, Stopwatch, among_others, leads, ms};

fn timing() -> Timing {
    Timing::from_ttl(ms(2_000))
}

/// A group whose state is of another type fails each time it is looked at. That says nothing of the link: dead runs of other groups are
/// found all the same, and the store is not told to fail and recover again and again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broken_group_stands_in_nobodys_way() {
    let _among = among_others().await;
    let ground = Ground::redis().await;
    let Ground::Redis(server) = &ground else { unreachable!() };
    let stage = Stage::new();
    stage.part("steady", |_| std::future::pending());
    let start = |id| ground.instance(id, &stage, ["steady", "yearly"]).timing(timing());
    let a = start("a").await.unwrap();
    leads(&a, "steady").await;
    stage.has_played("steady", 1).await;
    server.command(&["DEL", "{leader:yearly}:lease"]).await;
    server.command(&["SET", "{leader:yearly}:lease", "broken"]).await;
    let b = start("b").await.unwrap();
    let diary = Diary::of(&b);
    leader_core::testing::kill(&a);
    stage.part("steady", |_| async { Ok(()) });
    leads(&b, "steady").await;
    eventually(SOON, "the dead run is found", || async {
        let ledger = b.ledger("steady").await.unwrap();
        ledger.counts.contains_key(&Outcome::Ran(Ran::Lost))
    })
    .await;
    let played = stage.played("steady").len();
    stage.has_played("steady", played + 2).await;
    let told = diary.pick(|event| match event {
        Event::StoreFailed { error, .. } => Some(error.clone()),
        Event::StoreRecovered => Some("recovered".to_owned()),
        _ => None,
    });
    assert!(told.len() <= 2 && !told.contains(&"recovered".to_owned()), "{told:?}");
    b.shutdown().await;
}

/// Keys of one group only: that one is led, and the other is told of.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_group_that_may_not_be_touched_stands_in_nobodys_way() {
    let _among = among_others().await;
    let ground = Ground::redis().await;
    let Ground::Redis(server) = &ground else { unreachable!() };
    let keys = [
        "~leader:yearly",
        "~{leader:yearly}:*",
        "~leader-roster",
        "~{leader-roster}:*",
    ];
    let user = ["ACL", "SETUSER", "default", "on", "nopass", "resetkeys", "&*", "+@all"];
    server.command(&[&user[..], &keys[..]].concat()).await;
    let bootstrap = ground
        .instance("a", &Stage::new(), ["yearly", "steady"])
        .timing(timing());
    let mut events = bootstrap.events();
    let instance = bootstrap.await.unwrap();
    leads(&instance, "yearly").await;
    assert!(!instance.is_leader("steady"));
    let refused = async {
        loop {
            if let Event::StoreFailed { error, .. } = events.recv().await.unwrap().event {
                break error;
            }
        }
    };
    let error = tokio::time::timeout(SOON, refused).await.unwrap();
    assert!(error.contains("NOPERM"), "{error}");
    instance.shutdown().await;
}

/// The rights that the README names are enough, and no more are needed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_rights_of_the_readme_are_enough() {
    let _among = among_others().await;
    let ground = Ground::redis().await;
    let Ground::Redis(server) = &ground else { unreachable!() };
    let readme = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../README.md")).unwrap();
    let line = readme
        .lines()
        .map(str::trim)
        .find(|line| line.starts_with("ACL SETUSER "))
        .unwrap();
    // For the service of the example, whose namespace is `shop`.
    let words: Vec<_> = line.split_whitespace().collect();
    assert!(line.contains("shop:"), "{line}");
    let words: Vec<_> = words
        .iter()
        .map(|word| if *word == "app" { "default" } else { *word })
        .collect();
    let words: Vec<_> = words
        .iter()
        .map(|word| if word.starts_with('>') { "nopass" } else { *word })
        .collect();
    server.command(&words).await;
    let stage = Stage::new();
    let start = |id| {
        ground
            .instance(id, &stage, ["steady"])
            .namespace("shop")
            .timing(timing())
    };
    let (a, mut events) = {
        let bootstrap = start("a");
        let events = bootstrap.events();
        (bootstrap.await.unwrap(), events)
    };
    leads(&a, "steady").await;
    stage.has_played("steady", 2).await;
    let b = start("b").await.unwrap();
    assert_eq!(b.fleet().await.unwrap().len(), 2);
    let watch = Stopwatch::start();
    b.step_down_because("steady", "for a test").await.unwrap();
    leads(&b, "steady").await;
    watch.within(ms(1_000), "a hand-over that is asked for and told");
    assert!(a.ledger("steady").await.is_ok());
    b.shutdown().await;
    a.shutdown().await;
    while let Ok(stamped) = events.recv().await {
        match stamped.event {
            Event::StoreFailed { error, .. } => panic!("{error}"),
            Event::StoreFound { finding, .. } => assert_eq!(finding.kind, FindingKind::Persistence, "{finding}"),
            _ => {}
        }
    }
}

/// A user who may not listen is told what it costs, once, and does not ask again and again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_user_who_may_not_listen_is_told_what_it_costs() {
    let _among = among_others().await;
    let ground = Ground::redis().await;
    let Ground::Redis(server) = &ground else { unreachable!() };
    server
        .command(&[
            "ACL",
            "SETUSER",
            "default",
            "on",
            "nopass",
            "~*",
            "resetchannels",
            "+@all",
        ])
        .await;
    let bootstrap = ground.instance("a", &Stage::new(), ["yearly"]).timing(timing());
    let mut events = bootstrap.events();
    let instance = bootstrap.await.unwrap();
    leads(&instance, "yearly").await;
    let told = async {
        loop {
            if let Event::StoreFound { finding, .. } = events.recv().await.unwrap().event
                && finding.kind == FindingKind::Channel
            {
                break finding;
            }
        }
    };
    let finding = tokio::time::timeout(SOON, told).await.unwrap();
    assert!(finding.text.contains("`leader-told`"), "{finding}");
    let connections = || async {
        server
            .fact("stats", "total_connections_received")
            .await
            .parse::<u64>()
            .unwrap()
    };
    let before = connections().await;
    tokio::time::sleep(ms(3_000)).await;
    // The harness's own are among them.
    assert!(connections().await <= before + 2);
    instance.shutdown().await;
}

/// The server of a cluster is refused with the way out: two groups live in two slots.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_of_a_cluster_is_refused() {
    let _among = among_others().await;
    let server = RedisServer::options().set("cluster-enabled", "yes").start().await;
    let ground = Ground::Redis(Box::new(server));
    let error = ground.instance("a", &Stage::new(), ["yearly"]).await.unwrap_err();
    assert!(error.to_string().contains("cluster-enabled no"), "{error}");
}

//! Every fault of a server that passes: belief ends in time, every call is bounded, and afterwards the group is led again without
//! anybody's help.

use std::time::Duration;

use leader_core::{Event, Timing};
use leader_tests::{RedisServer, eventually};

use crate::stage::{Diary, Ground, SOON, Stage, Stopwatch, among_others, leads, ms};

fn timing() -> Timing {
    Timing::from_ttl(ms(2_000))
}

/// What a fault must cost.
enum Cost {
    /// Renewals go on: nothing is lost.
    Nothing,
    /// No renewal is taken: belief ends within the lease, and the group is led again after the fault.
    TheLead,
}

/// Brings a fault about for twice a lease, and looks at what it costs.
async fn suffers(server: RedisServer, break_it: &[&[&str]], mend_it: &[&[&str]], cost: Cost) {
    let ground = Ground::Redis(Box::new(server));
    let stage = Stage::new();
    let instance = ground.instance("a", &stage, ["steady"]).timing(timing()).await.unwrap();
    leads(&instance, "steady").await;
    leads(&instance, "steady").await;
    let diary = Diary::of(&instance);
    let Ground::Redis(server) = &ground else { unreachable!() };
    for words in break_it {
        server.command(words).await;
    }
    let watch = Stopwatch::start();
    let losses = || {
        diary
            .pick(|event| matches!(event, Event::Lost { .. }).then_some(()))
            .len()
    };
    match cost {
        Cost::TheLead => {
            eventually(SOON, "belief has ended", || async { !instance.is_leader("steady") }).await;
            watch.within(timing().ttl(), "the end of belief");
        }
        Cost::Nothing => {}
    }
    // Longer than any lease: what is asked meanwhile has an end.
    let end = tokio::time::Instant::now() + 2 * timing().ttl();
    while tokio::time::Instant::now() < end {
        let watch = Stopwatch::start();
        let _ = instance.ledger("steady").await;
        let _ = instance.fleet().await;
        watch.within(2 * timing().operation() + ms(500), "two questions");
        tokio::time::sleep(ms(100)).await;
    }
    for words in mend_it {
        server.command(words).await;
    }
    let watch = Stopwatch::start();
    leads(&instance, "steady").await;
    match cost {
        Cost::TheLead => {
            watch.within(timing().ttl() + Duration::from_secs(2), "leading again");
            assert_eq!(losses(), 1);
        }
        Cost::Nothing => assert_eq!(losses(), 0),
    }
    let before = stage.played("steady").len();
    stage.has_played("steady", before + 1).await;
    instance.shutdown().await;
}

macro_rules! faults {
    ($($name:ident: $server:expr, $break:expr, $mend:expr, $cost:expr;)*) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                let _among = among_others().await;
                suffers($server.start().await, &$break, &$mend, $cost).await;
            }
        )*
    };
}

const KILL: &[&str] = &["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"];

faults! {
    a_password_rotated_and_put_back: RedisServer::options().requirepass("one"),
        [&["CONFIG", "SET", "requirepass", "two"][..], KILL],
        [&["CONFIG", "SET", "requirepass", "one"][..]], Cost::TheLead;
    clients_killed_again_and_again: RedisServer::options(),
        [KILL, KILL, KILL], [KILL], Cost::Nothing;
    a_server_that_became_a_replica: RedisServer::options(),
        [&["REPLICAOF", "127.0.0.1", "1"][..]], [&["REPLICAOF", "NO", "ONE"][..]], Cost::TheLead;
    a_server_that_wants_replicas: RedisServer::options(),
        [&["CONFIG", "SET", "min-replicas-to-write", "1"][..]],
        [&["CONFIG", "SET", "min-replicas-to-write", "0"][..]], Cost::TheLead;
    a_server_without_memory: RedisServer::options(),
        [&["CONFIG", "SET", "maxmemory", "1"][..]], [&["CONFIG", "SET", "maxmemory", "0"][..]], Cost::Nothing;
    a_user_without_rights: RedisServer::options(),
        [&["ACL", "SETUSER", "default", "-@all"][..]], [&["ACL", "SETUSER", "default", "+@all"][..]], Cost::TheLead;
    a_paused_server: RedisServer::options(),
        [&["CLIENT", "PAUSE", "6000", "ALL"][..]], [], Cost::TheLead;
}

/// The disk is full, and the server refuses to write what it could not keep (MISCONF).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_cannot_save() {
    let _among = among_others().await;
    let server = RedisServer::start().await;
    // A snapshot into a name that is a folder fails.
    let folder = server.directory().join("dump.rdb");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("in the way"), "").unwrap();
    suffers(
        server,
        &[
            &["CONFIG", "SET", "stop-writes-on-bgsave-error", "yes"],
            &["CONFIG", "SET", "save", "3600 1000000"],
            &["BGSAVE"],
        ],
        &[&["CONFIG", "SET", "stop-writes-on-bgsave-error", "no"]],
        Cost::TheLead,
    )
    .await;
}

/// A server that is loading its data set answers LOADING to everything.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_loading() {
    let _among = among_others().await;
    let mut server = RedisServer::options()
        .appendonly(true)
        // So long for each key that is loaded, in microseconds.
        .set("key-load-delay", "0")
        .start()
        .await;
    server.command(&["DEBUG", "POPULATE", "20000"]).await;
    server.command(&["BGREWRITEAOF"]).await;
    eventually(SOON, "the data set is written", || async {
        let redis::Value::BulkString(info) = server.command(&["INFO", "persistence"]).await else {
            return false;
        };
        let info = String::from_utf8(info).unwrap();
        info.contains("aof_rewrite_in_progress:0") && info.contains("aof_rewrite_scheduled:0")
    })
    .await;
    let info = server.info();
    let stage = Stage::new();
    let client = redis::Client::open(info).unwrap();
    let instance = leader_core::bootstrap(client)
        .state(stage.clone())
        .service("fleet")
        .first_start(true)
        .timing(timing())
        .campaign_only(["yearly"])
        .await
        .unwrap();
    leads(&instance, "yearly").await;
    let diary = Diary::of(&instance);
    server.kill().await;
    // 20,000 keys, each 200 µs: four seconds of LOADING.
    server.change("key-load-delay", "200");
    let watch = std::time::Instant::now();
    server.restart(true).await;
    let loaded = watch.elapsed();
    assert!(
        loaded > timing().ttl() + ms(500),
        "it loaded in {loaded:?}, too fast for this test"
    );
    diary
        .tells("the end of belief", |event| {
            matches!(event, Event::Lost { .. }).then_some(())
        })
        .await;
    leads(&instance, "yearly").await;
    instance.shutdown().await;
}

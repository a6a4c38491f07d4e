//! What a store forgets, and what instances remember.

use leader_core::{Event, Timing};
use leader_tests::eventually;

use crate::stage::{Diary, Ground, SOON, Stage, among_others, leads, ms};

/// Instances of one fleet whose leases live differently long: after a loss of all data those with short ones wait for those with long
/// ones, which they know from the roster.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_longest_lease_of_the_fleet_is_waited_for() {
    let _among = among_others().await;
    let ground = Ground::redis().await;
    let Ground::Redis(server) = &ground else { unreachable!() };
    let stage = Stage::new();
    let long = Timing::from_ttl(ms(8_000));
    let a = ground.instance("a", &stage, ["yearly"]).timing(long).await.unwrap();
    leads(&a, "yearly").await;
    let b = ground
        .instance("b", &stage, ["yearly"])
        .timing(Timing::from_ttl(ms(2_000)))
        .await
        .unwrap();
    // It hears nothing of what follows, and believes as long as it may.
    leader_core::testing::freeze(&a, ms(10_000));
    server.command(&["FLUSHALL"]).await;
    let began = std::time::Instant::now();
    while !b.is_leader("yearly") {
        assert!(began.elapsed() < SOON, "nobody leads");
        tokio::time::sleep(ms(2)).await;
    }
    assert!(!a.is_leader("yearly"), "two leaders after {:?}", began.elapsed());
    b.shutdown().await;
    a.shutdown().await;
}

/// A cursor of the future: nothing runs before it, and that is told.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cursor_of_the_future_is_told() {
    let _among = among_others().await;
    let ground = Ground::redis().await;
    let Ground::Redis(server) = &ground else { unreachable!() };
    let cursor = jiff::Timestamp::now() + jiff::SignedDuration::from_hours(1);
    let millis = cursor.as_millisecond().to_string();
    server
        .command(&[
            "HSET",
            "{leader:steady}:job:steady",
            "cursor",
            &millis,
            "since",
            &millis,
        ])
        .await;
    let stage = Stage::new();
    let bootstrap = ground
        .instance("a", &stage, ["steady"])
        .timing(Timing::from_ttl(ms(2_000)));
    let mut events = bootstrap.events();
    let instance = bootstrap.await.unwrap();
    let told = async {
        loop {
            if let Event::CursorAhead { job, cursor, .. } = events.recv().await.unwrap().event {
                break (job, cursor.as_millisecond());
            }
        }
    };
    let (job, told) = tokio::time::timeout(SOON, told).await.unwrap();
    assert_eq!((job.as_str(), told), ("steady", cursor.as_millisecond()));
    assert!(stage.played("steady").is_empty());
    instance.shutdown().await;
}

/// Connections that are cut again and again for a moment do not keep a dead run's slot.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dead_run_is_found_over_a_link_that_is_cut_again_and_again() {
    let _among = among_others().await;
    let ground = Ground::redis().await;
    let Ground::Redis(server) = &ground else { unreachable!() };
    let stage = Stage::new();
    stage.part("steady", |_| std::future::pending());
    let start = |id| {
        ground
            .instance(id, &stage, ["steady"])
            .timing(Timing::from_ttl(ms(2_000)))
    };
    let (a, b) = (start("a").await.unwrap(), start("b").await.unwrap());
    leads(&a, "steady").await;
    stage.has_played("steady", 1).await;
    leader_core::testing::kill(&a);
    stage.part("steady", |_| async { Ok(()) });
    let before = stage.played("steady").len();
    let diary = Diary::of(&b);
    eventually(SOON, "the job runs again", || async {
        server
            .command(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"])
            .await;
        tokio::time::sleep(ms(900)).await;
        stage.played("steady").len() > before
    })
    .await;
    let failed = diary.pick(|event| matches!(event, Event::StoreFailed { .. }).then_some(()));
    println!("{} failures were told meanwhile", failed.len());
    b.shutdown().await;
}

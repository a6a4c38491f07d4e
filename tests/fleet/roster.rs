//! The roster: who is there, and what follows from it.

use leader_core::{Event, Instance, Member, Timing};
use leader_tests::eventually;

use crate::stage::{Diary, Ground, SOON, Stage, Stopwatch, leads, ms};

on_each_store!(
    the_fleet_says_who_is_there_and_what_it_does,
    an_instance_that_is_killed_leaves_the_roster,
    two_living_processes_of_one_id_say_so_and_share_no_lease,
    an_exclusive_id_takes_its_predecessors_lease_over_at_once,
    a_restarted_process_waits_without_that_promise,
    a_broken_promise_is_told_and_no_longer_believed,
    case_30_the_leader_has_the_jobs,
    nobody_makes_way_for_the_dead,
    nobody_makes_way_for_one_in_its_cool_down,
    a_job_that_the_leader_lacks_is_told,
    a_vacancy_goes_to_the_newest_version,
    an_instance_that_only_watches_knows_the_leader,
);

fn timing() -> Timing {
    Timing::from_ttl(ms(2_000))
}

async fn member(of: &Instance, id: &str) -> Option<Member> {
    let fleet = of.fleet().await.unwrap();
    fleet.into_iter().find(|member| member.instance == id)
}

async fn the_fleet_says_who_is_there_and_what_it_does(ground: Ground) {
    let stage = Stage::new();
    let a = ground
        .instance("a", &stage, ["yearly", "steady"])
        .timing(timing())
        .version("1.2.3")
        .labels([("zone", "b")])
        .await
        .unwrap();
    leads(&a, "yearly").await;
    leads(&a, "steady").await;
    let b = ground
        .instance("b", &stage, ["yearly"])
        .timing(timing())
        .drain(ms(5_000))
        .await
        .unwrap();
    eventually(SOON, "what it leads is known", || async {
        member(&b, "a").await.is_some_and(|member| member.leads.len() == 2)
    })
    .await;
    let fleet = b.fleet().await.unwrap();
    let ids: Vec<_> = fleet.iter().map(|member| member.instance.as_str()).collect();
    assert_eq!(ids, ["a", "b"]);
    let seen = &fleet[0];
    assert_eq!((seen.service.as_str(), seen.version.as_str()), ("fleet", "1.2.3"));
    assert_eq!(seen.labels.get("zone").map(String::as_str), Some("b"));
    assert_eq!(seen.candidate_for, ["steady", "yearly"].map(str::to_owned).into());
    assert_eq!(seen.jobs["yearly"]["yearly"], "cron \"0 0 29 2 *\"");
    assert_eq!(seen.jobs["standing"]["standing"], "while leading");
    assert!(!seen.draining && !seen.wedged);
    assert!(seen.started_at.is_some());
    let age = jiff::Timestamp::now().duration_since(seen.last_seen);
    assert!(age.abs() < jiff::SignedDuration::from_secs(5), "{age}");
    let offset = seen.clock_offset.expect("measured with each sign of life");
    assert!(offset.abs() < jiff::SignedDuration::from_secs(1), "{offset}");
    assert!(fleet[1].leads.is_empty());

    // One that goes says so while it drains.
    stage.part("steady", |tick| async move {
        tick.cancelled().await;
        tokio::time::sleep(ms(1_500)).await;
        Ok(())
    });
    stage.has_played("steady", stage.played("steady").len() + 1).await;
    let leaving = tokio::spawn({
        let a = a.clone();
        async move { a.shutdown().await }
    });
    eventually(SOON, "it is seen to drain, or has gone", || async {
        member(&b, "a").await.is_none_or(|member| member.draining)
    })
    .await;
    leaving.await.unwrap();
    assert_eq!(b.fleet().await.unwrap().len(), 1);
    b.shutdown().await;
}

async fn an_instance_that_is_killed_leaves_the_roster(ground: Ground) {
    let stage = Stage::new();
    let start = |id| ground.instance(id, &stage, ["yearly"]).timing(timing());
    let (a, b) = (start("a").await.unwrap(), start("b").await.unwrap());
    assert!(member(&a, "b").await.is_some());
    leader_core::testing::kill(&b);
    let watch = Stopwatch::start();
    eventually(SOON, "its line has ended", || async { member(&a, "b").await.is_none() }).await;
    watch.within(2 * timing().ttl() + ms(1_000), "the end of a dead line");
    a.shutdown().await;
}

fn duplicate(event: &Event) -> Option<String> {
    match event {
        Event::DuplicateId { other, .. } => Some(other.clone()),
        _ => None,
    }
}

async fn two_living_processes_of_one_id_say_so_and_share_no_lease(ground: Ground) {
    let stage = Stage::new();
    let start = || ground.instance("web", &stage, ["yearly"]).timing(timing());
    let one = start().await.unwrap();
    let first = Diary::of(&one);
    leads(&one, "yearly").await;
    let two = start().await.unwrap();
    let second = Diary::of(&two);
    let (seen_by_one, seen_by_two) = tokio::join!(
        first.tells("the first sees the second", duplicate),
        second.tells("the second sees the first", duplicate)
    );
    assert_ne!(seen_by_one, seen_by_two);
    assert!(seen_by_one.starts_with("web#") && seen_by_two.starts_with("web#"));
    let began = std::time::Instant::now();
    while began.elapsed() < 2 * timing().ttl() {
        assert!(one.is_leader("yearly") && !two.is_leader("yearly"));
        tokio::time::sleep(ms(20)).await;
    }
    // Once, not with each sign of life.
    assert_eq!((first.pick(duplicate).len(), second.pick(duplicate).len()), (1, 1));
    one.shutdown().await;
    leads(&two, "yearly").await;
    two.shutdown().await;
}

async fn an_exclusive_id_takes_its_predecessors_lease_over_at_once(ground: Ground) {
    let stage = Stage::new();
    let start = || ground.instance("web-0", &stage, ["yearly"]).exclusive_id(true);
    let old = start().await.unwrap();
    leads(&old, "yearly").await;
    let term = old.watch("yearly").unwrap().current().term;
    leader_core::testing::kill(&old);
    let watch = Stopwatch::start();
    let new = start().await.unwrap();
    leads(&new, "yearly").await;
    watch.within(ms(1_000), "the take-over of a lease that lives for seconds");
    assert!(new.watch("yearly").unwrap().current().term > term);
    let diary = Diary::of(&new);
    // The predecessor's line lives on for a while, and is no second process.
    tokio::time::sleep(3 * new.timing().ttl() / 2).await;
    assert_eq!(diary.pick(duplicate), Vec::<String>::new());
    new.shutdown().await;
}

async fn a_restarted_process_waits_without_that_promise(ground: Ground) {
    let stage = Stage::new();
    let start = || ground.instance("web-0", &stage, ["yearly"]).timing(timing());
    let old = start().await.unwrap();
    leads(&old, "yearly").await;
    leader_core::testing::kill(&old);
    let new = start().await.unwrap();
    assert!(!new.is_leader("yearly"));
    leads(&new, "yearly").await;
    new.shutdown().await;
}

/// Two processes that each were promised to be alone: the second may take the lease once, both say what is wrong, and the lease does
/// not go to and fro between them.
async fn a_broken_promise_is_told_and_no_longer_believed(ground: Ground) {
    let stage = Stage::new();
    let start = || {
        ground
            .instance("web-0", &stage, ["yearly"])
            .timing(timing())
            .exclusive_id(true)
    };
    let one = start().await.unwrap();
    let first = Diary::of(&one);
    leads(&one, "yearly").await;
    let two = start().await.unwrap();
    let second = Diary::of(&two);
    tokio::join!(
        first.tells("the first says so", duplicate),
        second.tells("the second says so", duplicate)
    );
    let changes = |diary: &Diary| {
        diary
            .pick(|event| matches!(event, Event::Elected { .. }).then_some(()))
            .len()
    };
    let before = changes(&first) + changes(&second);
    tokio::time::sleep(3 * timing().ttl()).await;
    assert_eq!(changes(&first) + changes(&second), before);
    assert!(one.is_leader("yearly") != two.is_leader("yearly"));
    one.shutdown().await;
    two.shutdown().await;
}

/// A process without a group's jobs leads it only while nobody has them (sidekiq#4078, river#658, #742): it gives way to one that comes,
/// and leaves a vacancy to it.
async fn case_30_the_leader_has_the_jobs(ground: Ground) {
    let stage = Stage::new();
    let web = ground
        .instance("web", &stage, ["steady"])
        .timing(timing())
        .disable("steady")
        .await
        .unwrap();
    let web_diary = Diary::of(&web);
    leads(&web, "steady").await;
    let worker = ground
        .instance("worker", &stage, ["steady"])
        .timing(timing())
        .await
        .unwrap();
    let watch = Stopwatch::start();
    leads(&worker, "steady").await;
    watch.within(2 * timing().ttl() + ms(1_000), "the web process makes way");
    let way = web_diary
        .tells("why", |event| match event {
            Event::MakingWay { member, .. } => Some(member.clone()),
            _ => None,
        })
        .await;
    assert_eq!(way, "worker");
    stage.has_played("steady", 1).await;

    // A second worker: of the two that are left after a crash, the one with the jobs leads, each time.
    let spare = ground
        .instance("spare", &stage, ["steady"])
        .timing(timing())
        .await
        .unwrap();
    // The web process is out of its cool-down and would be as quick.
    tokio::time::sleep(timing().cool_down()).await;
    leader_core::testing::kill(&worker);
    let watch = Stopwatch::start();
    leads(&spare, "steady").await;
    watch.within(timing().ttl() + ms(750), "the spare worker leads");
    // Nobody else has them: better this one than none, one lease later.
    spare.shutdown().await;
    let watch = Stopwatch::start();
    leads(&web, "steady").await;
    watch.within(
        2 * timing().ttl() + ms(1_000),
        "the web process leads when nobody else is left",
    );
    web.shutdown().await;
}

/// The instance with the jobs is killed, and its line outlives it: nobody makes way for it.
async fn nobody_makes_way_for_the_dead(ground: Ground) {
    let stage = Stage::new();
    let worker = ground
        .instance("worker", &stage, ["steady"])
        .timing(timing())
        .await
        .unwrap();
    leads(&worker, "steady").await;
    let web = ground
        .instance("web", &stage, ["steady"])
        .timing(timing())
        .disable("steady")
        .await
        .unwrap();
    let diary = Diary::of(&web);
    // Right after a sign of life, so that its line lives as long as it can.
    leader_core::testing::kill(&worker);
    leads(&web, "steady").await;
    tokio::time::sleep(3 * timing().ttl()).await;
    let ways = diary.pick(|event| matches!(event, Event::MakingWay { .. }).then_some(()));
    assert_eq!(ways, []);
    assert!(web.is_leader("steady"));
    web.shutdown().await;
}

/// Whoever was asked to give a group up is not given it back while it stays out of the race.
async fn nobody_makes_way_for_one_in_its_cool_down(ground: Ground) {
    let stage = Stage::new();
    let slow = timing().with_cool_down(ms(6_000));
    let worker = ground
        .instance("worker", &stage, ["steady"])
        .timing(slow)
        .await
        .unwrap();
    leads(&worker, "steady").await;
    let web = ground
        .instance("web", &stage, ["steady"])
        .timing(slow)
        .disable("steady")
        .await
        .unwrap();
    worker.step_down("steady").await.unwrap();
    leads(&web, "steady").await;
    let began = std::time::Instant::now();
    while !worker.is_leader("steady") {
        assert!(began.elapsed() < ms(12_000), "the worker never comes back");
        assert!(
            web.is_leader("steady") || began.elapsed() >= ms(6_000),
            "nobody leads after {:?}",
            began.elapsed()
        );
        tokio::time::sleep(ms(20)).await;
    }
    web.shutdown().await;
    worker.shutdown().await;
}

async fn a_job_that_the_leader_lacks_is_told(ground: Ground) {
    let stage = Stage::new();
    // Each lacks one of the group's jobs, so neither is better than the other.
    let one = ground
        .instance("one", &stage, ["pair"])
        .timing(timing())
        .disable("second")
        .await
        .unwrap();
    let diary = Diary::of(&one);
    leads(&one, "pair").await;
    let two = ground
        .instance("two", &stage, ["pair"])
        .timing(timing())
        .disable("first")
        .await
        .unwrap();
    let told = diary
        .tells("the uncovered job", |event| match event {
            Event::Uncovered { group, job, member, .. } => Some((group.to_string(), job.clone(), member.clone())),
            _ => None,
        })
        .await;
    assert_eq!(told, ("pair".to_owned(), "second".to_owned(), "two".to_owned()));
    tokio::time::sleep(2 * timing().ttl()).await;
    assert!(one.is_leader("pair"), "no reason to go");
    let count = diary
        .pick(|event| matches!(event, Event::Uncovered { .. }).then_some(()))
        .len();
    assert_eq!(count, 1, "told once");
    one.shutdown().await;
    two.shutdown().await;
}

async fn a_vacancy_goes_to_the_newest_version(ground: Ground) {
    let stage = Stage::new();
    let start = |id, version| {
        ground
            .instance(id, &stage, ["yearly"])
            .timing(timing())
            .version(version)
    };
    let first = start("first", "1.9.0").await.unwrap();
    leads(&first, "yearly").await;
    let new = start("new", "1.10.0").await.unwrap();
    // It reads the roster before it campaigns, so it knows of the newer one from its start on.
    let old = start("old", "1.9.0").await.unwrap();
    let diary = Diary::of(&old);
    let watch = Stopwatch::start();
    first.shutdown().await;
    leads(&new, "yearly").await;
    watch.within(ms(1_000), "the hand-over");
    assert_eq!(
        diary.pick(|event| matches!(event, Event::Elected { .. }).then_some(())),
        []
    );
    // With nobody newer left the old one leads within the bound of any hand-over.
    let watch = Stopwatch::start();
    new.shutdown().await;
    leads(&old, "yearly").await;
    watch.within(ms(1_000), "the hand-over back");
    old.shutdown().await;
}

async fn an_instance_that_only_watches_knows_the_leader(ground: Ground) {
    let stage = Stage::new();
    let watcher = ground
        .instance("w", &stage, ["yearly"])
        .timing(timing())
        .campaign(false)
        .await
        .unwrap();
    let seen = || {
        let status = watcher.watch("yearly").unwrap().current();
        assert_eq!(status.role, leader_core::Role::Observer);
        status.leader
    };
    assert_eq!(seen(), None);
    let leader = ground.instance("a", &stage, ["yearly"]).timing(timing()).await.unwrap();
    leads(&leader, "yearly").await;
    eventually(SOON, "the leader is seen", || async { seen().as_deref() == Some("a") }).await;
    leader.shutdown().await;
    eventually(SOON, "nobody is seen to lead", || async { seen().is_none() }).await;
    watcher.shutdown().await;
}

/// The first instance of a fleet leads everything; in a calm fleet it does not stay so, and no tick is lost or doubled on the way.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn groups_spread_over_a_calm_fleet() {
    let _among = crate::stage::among_others().await;
    for ground in [Ground::embedded(), Ground::redis().await] {
        let stage = Stage::new();
        let groups = ["steady", "pair", "bounded", "finishing", "punctual", "yearly"];
        let start = |id: &'static str| {
            ground
                .instance(id, &stage.of(id), groups)
                .timing(Timing::from_ttl(ms(1_000)))
        };
        let a = start("a").await.unwrap();
        for group in groups {
            leads(&a, group).await;
        }
        let diary = Diary::of(&a);
        let b = start("b").await.unwrap();
        eventually(SOON, "both lead some of the groups", || async {
            groups.iter().any(|group| a.is_leader(group)) && groups.iter().any(|group| b.is_leader(group))
        })
        .await;
        // One after the other, never two at once.
        let moves: Vec<_> = diary
            .all()
            .iter()
            .filter(|stamped| matches!(stamped.event, Event::MakingWay { .. }))
            .map(|stamped| stamped.at)
            .collect();
        for pair in moves.windows(2) {
            assert!(pair[1].since(pair[0]) >= ms(1_000), "{moves:?}");
        }
        let b_again = Diary::of(&b);
        let led = |instance: &Instance| groups.iter().filter(|group| instance.is_leader(group)).count();
        eventually(SOON, "all groups are led", || async {
            led(&a) + led(&b) == groups.len()
        })
        .await;
        // And that is where they stay: nobody moves a group back.
        tokio::time::sleep(ms(3_000)).await;
        assert_eq!(
            b_again.pick(|event| matches!(event, Event::MakingWay { .. }).then_some(())),
            []
        );
        for job in ["steady", "first", "second"] {
            let mut ticks: Vec<_> = stage.played(job).iter().map(|played| played.scheduled_at).collect();
            ticks.sort_unstable();
            let steps = ticks.windows(2).map(|pair| pair[1].duration_since(pair[0]).as_secs());
            assert!(steps.clone().all(|step| step == 1), "{job}: {ticks:?}");
        }
        a.shutdown().await;
        b.shutdown().await;
    }
}

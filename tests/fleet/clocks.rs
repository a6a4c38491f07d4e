//! Wall clocks that are wrong: an instance's own, most of a fleet's, and the store's.

use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use leader_core::{Clock, Event, Instance, Outcome, Timing, testing};
use leader_tests::eventually;

use crate::stage::{Diary, Ground, SOON, Stage, among_others, leader_first, leads, ms};

on_each_store!(
    a_wall_clock_that_is_stepped_while_it_leads_moves_no_tick,
    one_wrong_clock_of_three_stops_nothing,
    one_alone_tells_of_its_own_wall_clock,
    two_clocks_that_are_wrong_in_different_ways_stop_nothing,
    a_wrong_machine_that_starts_instances_again_and_again_stops_nothing,
    two_clocks_that_come_to_be_wrong_alike_stop_everyone,
    a_leadership_that_changes_hands_in_a_dispute_holds_too,
    a_fleet_that_disagrees_with_the_store_claims_nothing_until_it_agrees,
    a_fleet_that_starts_in_disagreement_claims_nothing,
    an_operator_may_say_that_the_store_is_right,
);

fn timing() -> Timing {
    Timing::from_ttl(ms(2_000))
}

fn hours(hours: i64) -> SignedDuration {
    SignedDuration::from_hours(hours)
}

/// Instances whose wall clocks are ahead by so much.
async fn fleet<const N: usize>(ground: &Ground, stage: &Stage, ahead: [SignedDuration; N]) -> Vec<Instance> {
    let mut fleet = Vec::new();
    for (id, ahead) in ["a", "b", "c"].into_iter().zip(ahead) {
        let instance = ground
            .instance(id, &stage.of(id), ["steady", "standing"])
            .timing(timing())
            .spread(false)
            // Longer than the call that one test has waited for.
            .drain(ms(10_000))
            // Whoever only watches a group reads the roster in each TTL, and would hear of everything.
            .campaign(true)
            .__wall_ahead(ahead);
        fleet.push(instance.await.unwrap());
    }
    fleet
}

async fn stop(fleet: Vec<Instance>) {
    for instance in fleet {
        instance.shutdown().await;
    }
}

fn step(fleet: &[Instance], by: SignedDuration) {
    for instance in fleet {
        testing::__step_wall(instance, by);
    }
}

/// The ticks that ran, each once, in order, and by a clock that is right.
fn ran(stage: &Stage) -> Vec<Timestamp> {
    let ticks: Vec<_> = stage
        .played("steady")
        .iter()
        .map(|played| played.scheduled_at)
        .collect();
    for pair in ticks.windows(2) {
        assert!(pair[0] < pair[1], "twice, or back: {ticks:?}");
    }
    let off = |tick: &Timestamp| tick.duration_since(Timestamp::now()).abs();
    assert!(
        ticks.iter().all(|tick| off(tick) < hours(1) / 2),
        "by whose clock? {ticks:?}"
    );
    ticks
}

/// Every second from the first on ran.
fn none_is_missing(ticks: &[Timestamp]) {
    for pair in ticks.windows(2) {
        assert_eq!(pair[1].duration_since(pair[0]).as_secs(), 1, "{ticks:?}");
    }
}

/// Each of them is killed after it has told its offset, and its line outlives it for a TTL.
async fn a_wrong_machine_that_starts_instances_again_and_again_stops_nothing(ground: Ground) {
    let stage = Stage::new();
    let fleet = fleet(&ground, &stage, [hours(0)]).await;
    let diary = Diary::of(&fleet[0]);
    leads(&fleet[0], "steady").await;
    for _ in 0..6 {
        let wrong = ground
            .instance("wrong", &stage.of("wrong"), [])
            .timing(timing())
            .campaign(false)
            .__wall_ahead(hours(1))
            .__on_machine("wrong")
            .await
            .unwrap();
        eventually(SOON, "it has told its offset", || async {
            let fleet = fleet[0].fleet().await.unwrap();
            let wrong = |member: &leader_core::Member| {
                member
                    .clock_offset
                    .is_some_and(|offset| offset > SignedDuration::from_mins(50))
            };
            fleet.iter().any(wrong)
        })
        .await;
        testing::kill(&wrong);
    }
    let before = stage.played("steady").len();
    stage.has_played("steady", before + 3).await;
    assert_eq!(disputes(&diary), []);
    none_is_missing(&ran(&stage));
    stop(fleet).await;
}

fn disputes(diary: &Diary) -> Vec<(i64, usize, usize)> {
    diary.pick(|event| match event {
        Event::ClockDisputed {
            theirs, instances, of, ..
        } => {
            let minutes = theirs.round(jiff::Unit::Minute).unwrap().as_mins();
            Some((minutes, *instances, *of))
        }
        _ => None,
    })
}

fn agreements(diary: &Diary) -> usize {
    diary
        .pick(|event| matches!(event, Event::ClockAgreed { .. }).then_some(()))
        .len()
}

/// The step of the store's clock that an instance has believed, in whole minutes.
async fn stepped(diary: &Diary) -> i64 {
    let by = diary.tells("the step", |event| match event {
        Event::ClockStepped { by, .. } => Some(*by),
        _ => None,
    });
    by.await.round(jiff::Unit::Minute).unwrap().as_mins()
}

/// Waits until nobody claims any more, and says how much was claimed by then.
async fn all_hold(fleet: &[Instance], stage: &Stage) -> usize {
    eventually(SOON, "everyone holds", || async {
        fleet.iter().all(|instance| instance.clock().holds_ticks)
    })
    .await;
    // What was claimed is run.
    tokio::time::sleep(ms(500)).await;
    stage.played("steady").len()
}

async fn a_wall_clock_that_is_stepped_while_it_leads_moves_no_tick(ground: Ground) {
    let stage = Stage::new();
    let fleet = fleet(&ground, &stage, [hours(0)]).await;
    let leader = &fleet[0];
    leads(leader, "steady").await;
    let diary = Diary::of(leader);
    for by in [0, 2, -4, 4, -2].map(hours) {
        step(&fleet, by);
        let ran = stage.played("steady").len();
        stage.has_played("steady", ran + 3).await;
    }
    step(&fleet, hours(2));
    eventually(SOON, "the offset is measured", || async {
        let clock = leader.clock();
        let off = clock.offset.unwrap() - hours(2);
        off.abs() < SignedDuration::from_secs(1) && clock.offset_error.unwrap() < ms(1_000)
    })
    .await;
    eventually(SOON, "the fleet is told", || async {
        let member = leader.fleet().await.unwrap().remove(0);
        assert!(member.clock_error.unwrap() < ms(1_000), "{member:?}");
        member.clock_offset.unwrap() > hours(1)
    })
    .await;
    assert!(leader.clock().planning_error.unwrap() < ms(1_000));
    let jobs = leader.jobs();
    let next = jobs
        .iter()
        .find(|job| job.name.as_str() == "steady")
        .unwrap()
        .next
        .unwrap();
    assert!(
        next.duration_since(Timestamp::now()).abs() < SignedDuration::from_secs(3),
        "{next}"
    );
    let previewed = leader.preview("steady", 1).unwrap()[0].at;
    assert!(
        previewed.duration_since(Timestamp::now()).abs() < SignedDuration::from_secs(3),
        "{previewed}"
    );
    none_is_missing(&ran(&stage));
    assert_eq!((disputes(&diary), agreements(&diary)), (vec![], 0));
    assert_eq!(
        diary.pick(|event| matches!(event, Event::ClockStepped { .. }).then_some(())),
        []
    );
    assert_eq!(
        diary.pick(|event| matches!(event, Event::Lost { .. }).then_some(())),
        []
    );
    stop(fleet).await;
}

async fn one_wrong_clock_of_three_stops_nothing(ground: Ground) {
    let stage = Stage::new();
    let fleet = fleet(&ground, &stage, [hours(0); 3]).await;
    leads(&fleet[0], "steady").await;
    let diaries: Vec<_> = fleet.iter().map(Diary::of).collect();
    stage.has_played("steady", 2).await;
    assert!(astray(&diaries[0]).is_empty());
    // The leader's own, and then a standby's.
    for wrong in [0, 1] {
        for by in [2, -2].map(hours) {
            step(&fleet[wrong..=wrong], by);
            eventually(SOON, "everyone could know", || async {
                let offset = fleet[2].fleet().await.unwrap()[wrong].clock_offset.unwrap();
                (offset > hours(1)) == (by > hours(0))
            })
            .await;
            let ran = stage.played("steady").len();
            stage.has_played("steady", ran + 3).await;
        }
    }
    none_is_missing(&ran(&stage));
    for diary in &diaries {
        assert_eq!(disputes(diary), []);
    }
    // Whoever was wrong says so itself, and that it is right again.
    for (diary, told) in diaries.iter().zip([2, 2, 0]) {
        assert_eq!(astray(diary).len(), told, "{:?}", astray(diary));
    }
    stop(fleet).await;
}

/// Nobody else need be there.
async fn one_alone_tells_of_its_own_wall_clock(ground: Ground) {
    let stage = Stage::new();
    let fleet = fleet(&ground, &stage, [hours(0)]).await;
    let diary = Diary::of(&fleet[0]);
    leads(&fleet[0], "steady").await;
    stage.has_played("steady", 1).await;
    for (by, told) in [(-2, vec![-120]), (2, vec![-120, 0]), (3, vec![-120, 0, 180])] {
        step(&fleet, hours(by));
        eventually(SOON, "it tells", || async { astray(&diary) == told }).await;
    }
    stop(fleet).await;
}

/// What an instance says of its own wall clock, in minutes; 0 for right again.
fn astray(diary: &Diary) -> Vec<i64> {
    diary.pick(|event| match event {
        Event::ClockAstray { by, .. } => Some(by.round(jiff::Unit::Minute).unwrap().as_mins()),
        Event::ClockRight { .. } => Some(0),
        _ => None,
    })
}

async fn two_clocks_that_are_wrong_in_different_ways_stop_nothing(ground: Ground) {
    let stage = Stage::new();
    let fleet = fleet(&ground, &stage, [0, 1, -2].map(hours)).await;
    let diaries: Vec<_> = fleet.iter().map(Diary::of).collect();
    leads(&fleet[0], "steady").await;
    stage.has_played("steady", 4).await;
    none_is_missing(&ran(&stage));
    // Nor when it is one of them that leads.
    fleet[0].step_down("steady").await.unwrap();
    let before = stage.played("steady").len();
    stage.has_played("steady", before + 4).await;
    let ticks = ran(&stage);
    none_is_missing(&ticks[before..]);
    assert!(diaries.iter().all(|diary| disputes(diary).is_empty()));
    stop(fleet).await;
}

/// Whoever's own clock is right hears of it too.
async fn two_clocks_that_come_to_be_wrong_alike_stop_everyone(ground: Ground) {
    let stage = Stage::new();
    let fleet = fleet(&ground, &stage, [0, 1, 2].map(hours)).await;
    let diaries: Vec<_> = fleet.iter().map(Diary::of).collect();
    leads(&fleet[0], "steady").await;
    stage.has_played("steady", 2).await;
    for round in 1..=2 {
        step(&fleet[2..], hours(-1));
        for diary in &diaries {
            eventually(SOON, "everyone says so", || async { disputes(diary).len() == round }).await;
            assert_eq!(disputes(diary)[round - 1], (60, 2, 3));
        }
        let before = all_hold(&fleet, &stage).await;
        // Parted, they are still wrong, and one that is mended ends it.
        step(&fleet[2..], hours(1));
        tokio::time::sleep(timing().ttl()).await;
        assert_eq!(stage.played("steady").len(), before);
        step(&fleet[2..], hours(-2));
        for diary in &diaries {
            eventually(SOON, "everyone agrees", || async { agreements(diary) == round }).await;
        }
        stage.has_played("steady", before + 2).await;
        step(&fleet[2..], hours(2));
        eventually(SOON, "it is wrong again", || async {
            let offset = fleet[0].fleet().await.unwrap()[2].clock_offset.unwrap();
            offset > hours(1)
        })
        .await;
    }
    stop(fleet).await;
}

async fn a_leadership_that_changes_hands_in_a_dispute_holds_too(ground: Ground) {
    let stage = Stage::new();
    let fleet = fleet(&ground, &stage, [hours(0); 2]).await;
    let diaries: Vec<_> = fleet.iter().map(Diary::of).collect();
    leads(&fleet[0], "steady").await;
    stage.has_played("steady", 2).await;
    step(&fleet, hours(1));
    for diary in &diaries {
        eventually(SOON, "everyone says so", || async { disputes(diary).len() == 1 }).await;
    }
    let before = all_hold(&fleet, &stage).await;
    let began = Instant::now();
    fleet[0].step_down("steady").await.unwrap();
    assert!(began.elapsed() < timing().ttl(), "{:?}", began.elapsed());
    leads(&fleet[1], "steady").await;
    // An engine that starts anew has not forgotten it, either.
    testing::panic(&fleet[1]);
    let diary = &diaries[1];
    let panicked = |event: &Event| matches!(event, Event::EnginePanicked { .. }).then_some(());
    diary.tells("the panic", panicked).await;
    eventually(SOON, "one of them leads", || async {
        fleet.iter().any(|instance| instance.is_leader("steady"))
    })
    .await;
    tokio::time::sleep(ms(2_000)).await;
    assert_eq!(stage.played("steady").len(), before, "nothing is claimed");
    assert!(fleet.iter().all(|instance| instance.clock().holds_ticks));
    // The take-over was held, and is made now.
    step(&fleet, hours(-1));
    stage.has_played("steady", before + 3).await;
    ran(&stage);
    // A shutdown waits for no agreement.
    step(&fleet, hours(1));
    all_hold(&fleet, &stage).await;
    let began = Instant::now();
    stop(fleet).await;
    assert!(began.elapsed() < timing().ttl(), "{:?}", began.elapsed());
}

async fn a_fleet_that_disagrees_with_the_store_claims_nothing_until_it_agrees(ground: Ground) {
    let stage = Stage::new();
    let fleet = fleet(&ground, &stage, [hours(0); 3]).await;
    leads(&fleet[0], "steady").await;
    leads(&fleet[0], "standing").await;
    let diaries: Vec<_> = fleet.iter().map(Diary::of).collect();
    stage.has_played("steady", 2).await;
    for round in 1..=2 {
        step(&fleet, hours(1));
        for diary in &diaries {
            eventually(SOON, "everyone says so", || async { disputes(diary).len() == round }).await;
            let (minutes, instances, of) = disputes(diary)[round - 1];
            assert!(
                minutes == 60 && instances >= 2 && of >= instances,
                "{:?}",
                disputes(diary)
            );
        }
        let before = all_hold(&fleet, &stage).await;
        let dispute = fleet[0].clock().dispute.expect("seen in the status");
        assert!(
            (dispute.offset - hours(1)).abs() < SignedDuration::from_secs(2),
            "{dispute:?}"
        );
        tokio::time::sleep(ms(3_000)).await;
        assert_eq!(stage.played("steady").len(), before, "nothing is claimed");
        step(&fleet, hours(-1));
        for diary in &diaries {
            eventually(SOON, "everyone agrees", || async { agreements(diary) == round }).await;
        }
        stage.has_played("steady", before + 3).await;
        assert_eq!(fleet[0].clock().dispute, None);
    }
    ran(&stage);
    // Leads and long-lived bodies have noticed nothing.
    assert!(fleet[0].is_leader("steady") && fleet[0].is_leader("standing"));
    for diary in &diaries {
        let shaken = |event: &Event| matches!(event, Event::Lost { .. } | Event::BodyEnded { .. }).then_some(());
        assert_eq!(diary.pick(shaken), []);
    }
    // Every tick has its outcome, those of the disputes by the policy.
    let ledger = fleet[0].ledger("steady").await.unwrap();
    let due = fleet[0].count_ticks("steady", ledger.since.unwrap(), ledger.cursor.unwrap());
    assert_eq!(
        due,
        Ok(ledger.decided() + u64::try_from(ledger.open.len()).unwrap()),
        "{ledger:?}"
    );
    assert!(
        ledger
            .counts
            .keys()
            .any(|outcome| matches!(outcome, Outcome::Missed(_)))
    );
    stop(fleet).await;
}

async fn a_fleet_that_starts_in_disagreement_claims_nothing(ground: Ground) {
    let stage = Stage::new();
    let fleet = fleet(&ground, &stage, [hours(-1); 2]).await;
    assert_eq!(all_hold(&fleet, &stage).await, 0);
    eventually(SOON, "both dispute", || async {
        fleet.iter().all(|instance| instance.clock().dispute.is_some())
    })
    .await;
    tokio::time::sleep(2 * timing().ttl()).await;
    assert_eq!(stage.played("steady").len(), 0);
    // A job that has never run begins with the fleet's time, not before.
    step(&fleet, hours(1));
    stage.has_played("steady", 3).await;
    none_is_missing(&ran(&stage));
    stop(fleet).await;
}

async fn an_operator_may_say_that_the_store_is_right(ground: Ground) {
    let stage = Stage::new();
    let start = |id: &'static str| {
        ground
            .instance(id, &stage.of(id), ["steady"])
            .timing(timing())
            .follow_store_clock(true)
            .__wall_ahead(hours(1))
    };
    let (a, b) = (start("a").await.unwrap(), start("b").await.unwrap());
    let diary = Diary::of(&a);
    leads(&a, "steady").await;
    stage.has_played("steady", 5).await;
    none_is_missing(&ran(&stage));
    assert_eq!(disputes(&diary), []);
    assert!(!a.clock().holds_ticks && !b.clock().holds_ticks);
    a.shutdown().await;
    b.shutdown().await;
}

/// An embedded store with a clock of its own, and that clock.
fn ground_with_a_clock() -> (Ground, Clock) {
    let clock = Clock::ahead(hours(0));
    (Ground::Embedded(testing::__embedded_on(clock.clone())), clock)
}

/// The store's clock jumps an hour ahead: whoever believed it would settle the ticks of an hour that has not come.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_whose_clock_jumps_ahead_settles_nothing_of_the_future() {
    let _among = among_others().await;
    let (ground, clock) = ground_with_a_clock();
    let stage = Stage::new();
    let mut fleet = fleet(&ground, &stage, [hours(0); 2]).await;
    let b = fleet.pop().unwrap();
    let (leader, standby) = leader_first(fleet.pop().unwrap(), b, "steady").await;
    let fleet = [leader, standby];
    let diaries = fleet.each_ref().map(Diary::of);
    stage.has_played("steady", 2).await;
    clock.step_wall(hours(1));
    for diary in &diaries {
        eventually(SOON, "everyone says so", || async { disputes(diary) == [(-60, 2, 2)] }).await;
        assert_eq!(stepped(diary).await, 60);
    }
    let before = all_hold(&fleet, &stage).await;
    tokio::time::sleep(ms(3_000)).await;
    let ledger = fleet[0].ledger("steady").await.unwrap();
    assert!(ledger.cursor.unwrap() < Timestamp::now(), "{ledger:?}");
    assert_eq!(stage.played("steady").len(), before);
    // It is mended, and ticks go on at once: nothing was done that would have to be waited out.
    clock.step_wall(hours(-1));
    for diary in &diaries {
        eventually(SOON, "everyone agrees", || async { agreements(diary) == 1 }).await;
    }
    let began = Instant::now();
    stage.has_played("steady", before + 3).await;
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    ran(&stage);
    stop(fleet.into()).await;
}

/// The fleet's clocks were the wrong ones, and are mended: the leap is made, and the policy decides what it passes over.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fleet_that_comes_round_to_the_store_leaps_with_it() {
    let _among = among_others().await;
    let (ground, clock) = ground_with_a_clock();
    let stage = Stage::new();
    let fleet = fleet(&ground, &stage, [hours(0); 2]).await;
    leads(&fleet[0], "steady").await;
    stage.has_played("steady", 2).await;
    clock.step_wall(hours(1));
    let before = all_hold(&fleet, &stage).await;
    step(&fleet, hours(1));
    stage.has_played("steady", before + 3).await;
    let ticks: Vec<_> = stage
        .played("steady")
        .iter()
        .map(|played| played.scheduled_at)
        .collect();
    let leap = ticks[before].duration_since(ticks[before - 1]);
    assert!((leap - hours(1)).abs() < SignedDuration::from_mins(2), "{ticks:?}");
    none_is_missing(&ticks[before + 1..]);
    let ledger = fleet[0].ledger("steady").await.unwrap();
    let coalesced = ledger
        .counts
        .iter()
        .find(|(outcome, _)| matches!(outcome, Outcome::Missed(_)));
    assert!(coalesced.is_some_and(|(_, count)| *count >= 3_590), "{ledger:?}");
    stop(fleet).await;
}

/// One instance alone cannot tell whose clock is wrong: it asks for a while, and follows the store.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_alone_follows_the_store_forwards_and_waits_for_it_backwards() {
    let _among = among_others().await;
    let (ground, clock) = ground_with_a_clock();
    let stage = Stage::new();
    let fleet = fleet(&ground, &stage, [hours(0)]).await;
    leads(&fleet[0], "steady").await;
    stage.has_played("steady", 2).await;
    clock.step_wall(SignedDuration::from_secs(60));
    let before = all_hold(&fleet, &stage).await;
    stage.has_played("steady", before + 3).await;
    clock.step_wall(SignedDuration::from_secs(-8));
    let stands = |instance: &Instance| instance.clock().planning_error.is_some_and(|error| error > ms(3_000));
    eventually(SOON, "it stands", || async { stands(&fleet[0]) }).await;
    tokio::time::sleep(ms(300)).await;
    let before = stage.played("steady").len();
    tokio::time::sleep(ms(3_000)).await;
    assert_eq!(stage.played("steady").len(), before, "nothing falls due meanwhile");
    stage.has_played("steady", before + 3).await;
    let ticks = ran(&stage);
    none_is_missing(&ticks[before - 2..]);
    stop(fleet).await;
}

/// What fell due in a drain runs one tick after another, by the clock that plans: not by the store's, which was set back meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_fell_due_in_a_drain_runs_in_turn_though_the_store_went_back() {
    let _among = among_others().await;
    let (ground, clock) = ground_with_a_clock();
    let stage = Stage::new();
    stage.part("steady", |_| async {
        tokio::time::sleep(ms(200)).await;
        Ok(())
    });
    let fleet = fleet(&ground, &stage, [hours(0); 2]).await;
    leads(&fleet[0], "steady").await;
    stage.has_played("steady", 2).await;
    let (caller, drained) = (fleet[0].clone(), Instant::now());
    let call = tokio::spawn(async move { caller.group("steady").run(tokio::time::sleep(ms(4_500))).await });
    tokio::time::sleep(ms(50)).await;
    let leaver = fleet[0].clone();
    let leaving = tokio::spawn(async move { leaver.step_down("steady").await });
    tokio::time::sleep(ms(2_200)).await;
    let back = SignedDuration::from_secs(-8);
    step(&fleet, back);
    clock.step_wall(back);
    leaving.await.unwrap().unwrap();
    assert!(drained.elapsed() > ms(4_000), "the call is waited for");
    call.await.unwrap().unwrap();
    leads(&fleet[1], "steady").await;
    let stands = fleet[1].clock().planning_error.unwrap();
    assert!(stands > ms(3_000), "{stands:?}");
    let before = stage.played("steady").len();
    stage.has_played("steady", before + 3).await;
    none_is_missing(&ran(&stage));
    stop(fleet).await;
}

//! Reports on other systems that are about a fleet as a whole.

use std::collections::BTreeMap;

use jiff::SignedDuration;
use leader_core::{Event, Events, Lost, MissedReason, Outcome, Stamped, Timing, testing};
use leader_tests::eventually;

use crate::stage::{Diary, Ground, SOON, Stage, Stopwatch, among_others, leads, ms};

on_each_store!(
    leases_5_a_restarted_process_does_not_take_its_old_name_for_a_grant,
    case_1_leases_27_wrong_clocks_and_short_jobs_make_one_run_of_each_tick,
    case_36_after_a_pause_the_policy_is_applied_once,
);

fn timing() -> Timing {
    Timing::from_ttl(ms(2_000))
}

/// Gains and losses by turns, each loss of the term that was gained.
fn alternate(events: &[Stamped]) {
    let mut led = None;
    for stamped in events {
        match &stamped.event {
            Event::Elected { term, .. } => {
                assert_eq!(led.replace(*term), None, "gained twice: {events:?}");
            }
            Event::Lost { term, .. } => assert_eq!(led.take(), Some(*term), "lost another: {events:?}"),
            _ => {}
        }
    }
}

/// Everything that an instance told until it stopped.
async fn all(events: &mut Events) -> Vec<Stamped> {
    let mut all = Vec::new();
    while let Ok(stamped) = events.recv().await {
        all.push(stamped);
    }
    all
}

/// A lease that goes to somebody else is told as lost, once, and nothing goes on leading (kubernetes#23731).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn leases_1_a_lease_handed_to_another_is_told_as_lost() {
    let _among = among_others().await;
    let ground = Ground::redis().await;
    let Ground::Redis(server) = &ground else { unreachable!() };
    let stage = Stage::new();
    let bootstrap = ground.instance("a", &stage, ["steady"]).timing(timing());
    let mut events = bootstrap.events();
    let instance = bootstrap.await.unwrap();
    leads(&instance, "steady").await;
    for _ in 0..3 {
        server.command(&["SET", "leader:steady", "pod-9", "PX", "1500"]).await;
        let watch = Stopwatch::start();
        eventually(SOON, "not leading", || async { !instance.is_leader("steady") }).await;
        watch.within(timing().renew() + ms(500), "the loss");
        let before = stage.played("steady").len();
        let named = || async { instance.watch("steady").unwrap().current().leader.as_deref() == Some("pod-9") };
        eventually(SOON, "the other is known", named).await;
        assert_eq!(stage.played("steady").len(), before, "nothing is started meanwhile");
        leads(&instance, "steady").await;
    }
    instance.shutdown().await;
    let all = all(&mut events).await;
    alternate(&all);
    let taken = |stamped: &&Stamped| {
        matches!(
            &stamped.event,
            Event::Lost {
                reason: Lost::Taken,
                ..
            }
        )
    };
    assert_eq!(all.iter().filter(taken).count(), 3, "{all:?}");
}

/// The lease still names the process's last life when it comes back: that is no grant (fabric8#7350).
async fn leases_5_a_restarted_process_does_not_take_its_old_name_for_a_grant(ground: Ground) {
    let stage = Stage::new();
    let start = |id| ground.instance(id, &stage, ["yearly"]).timing(timing());
    let old = start("web").await.unwrap();
    leads(&old, "yearly").await;
    let other = start("other").await.unwrap();
    let term = old.watch("yearly").unwrap().current().term;
    testing::kill(&old);
    let bootstrap = start("web");
    let mut events = bootstrap.events();
    let new = bootstrap.await.unwrap();
    let diary = Diary::of(&other);
    eventually(SOON, "one of the two leads", || async {
        assert!(!(new.is_leader("yearly") && other.is_leader("yearly")));
        new.is_leader("yearly") || other.is_leader("yearly")
    })
    .await;
    new.shutdown().await;
    let of_new = all(&mut events).await;
    alternate(&of_new);
    let terms = of_new.iter().filter_map(|stamped| match stamped.event {
        Event::Elected { term, .. } => Some(term),
        _ => None,
    });
    let of_other = diary.pick(|event| match event {
        Event::Elected { term, .. } => Some(*term),
        _ => None,
    });
    assert!(terms.chain(of_other).all(|new| new > term), "an old name is no grant");
    other.shutdown().await;
}

/// Four instances whose clocks are hours apart, and a job that takes no time: the one that has just run it is no reason for the next
/// to run it again (gocron#841, ShedLock#6, jasonlvhit/gocron#160).
async fn case_1_leases_27_wrong_clocks_and_short_jobs_make_one_run_of_each_tick(ground: Ground) {
    let stage = Stage::new();
    let mut fleet = Vec::new();
    for (id, ahead) in [("a", 0), ("b", 2), ("c", -7_200), ("d", 3_600)] {
        let instance = ground
            .instance(id, &stage.of(id), ["steady"])
            .timing(timing().with_cool_down(ms(500)))
            .__wall_ahead(SignedDuration::from_secs(ahead));
        fleet.push(instance.await.unwrap());
    }
    // Every one of them leads for a while.
    for round in 0..6 {
        let led = || fleet.iter().position(|instance| instance.is_leader("steady"));
        eventually(SOON, "somebody leads", || async { led().is_some() }).await;
        let ran = stage.played("steady").len();
        stage.has_played("steady", ran + 2).await;
        if let Some(leader) = led() {
            println!("round {round}: {} leads", fleet[leader].id());
            let _ = fleet[leader].step_down("steady").await;
        }
    }
    let mut starts: BTreeMap<_, u32> = BTreeMap::new();
    for played in stage.played("steady") {
        *starts.entry(played.scheduled_at).or_default() += 1;
        let off = played.scheduled_at.duration_since(jiff::Timestamp::now()).abs();
        assert!(off < SignedDuration::from_secs(120), "{played:?}: by whose clock?");
    }
    assert!(starts.values().all(|count| *count == 1), "{starts:?}");
    let ticks: Vec<_> = starts.keys().collect();
    for pair in ticks.windows(2) {
        assert_eq!(
            pair[1].duration_since(*pair[0]).as_secs(),
            1,
            "a tick is missing: {ticks:?}"
        );
    }
    for instance in fleet {
        instance.shutdown().await;
    }
}

/// A machine that slept: the lead is given up and won again, the ticks of the pause are decided by the policy, once, and nothing floods
/// (`solid_queue#763`, `graphile_worker_rs#337`, sidekiq#4893).
async fn case_36_after_a_pause_the_policy_is_applied_once(ground: Ground) {
    let stage = Stage::new();
    // Due every 5 s, late up to 500 ms, then skipped.
    let instance = ground
        .instance("a", &stage, ["punctual", "steady"])
        .timing(timing())
        .await
        .unwrap();
    leads(&instance, "punctual").await;
    leads(&instance, "steady").await;
    stage.has_played("punctual", 1).await;
    stage.has_played("steady", 1).await;
    let diary = Diary::of(&instance);
    let before = stage.played("steady").len();
    let pause = ms(11_000);
    testing::freeze(&instance, pause);
    tokio::time::sleep(pause).await;
    let woken = jiff::Timestamp::now();
    diary
        .tells("the loss", |event| match event {
            Event::Lost { reason, .. } => (*reason == Lost::Expired).then_some(()),
            _ => None,
        })
        .await;
    leads(&instance, "punctual").await;
    // Two of its ticks fell into the pause, perhaps three; those are one record.
    let skipped = Outcome::Missed(MissedReason::Skipped);
    eventually(SOON, "the ticks of the pause are decided", || async {
        let ledger = instance.ledger("punctual").await.unwrap();
        ledger.counts.get(&skipped).copied().unwrap_or(0) >= 1
    })
    .await;
    stage.has_played("punctual", 2).await;
    let ledger = instance.ledger("punctual").await.unwrap();
    let ranges = ledger.records.iter().filter(|record| record.outcome == skipped).count();
    assert_eq!(ranges, 1, "{ledger:?}");
    // The seconds of the pause are late or missed, and none of them runs twice or all at once.
    stage.has_played("steady", before + 3).await;
    let started = stage.played("steady");
    let mut ticks: Vec<_> = started.iter().map(|played| played.scheduled_at).collect();
    ticks.dedup();
    assert_eq!(ticks.len(), started.len(), "a tick was started twice");
    let flood = started
        .iter()
        .filter(|played| played.scheduled_at < woken - SignedDuration::from_secs(1) && played.late > ms(1_000))
        .count();
    assert!(flood <= 5, "{flood} late bodies after the pause");
    instance.shutdown().await;
}

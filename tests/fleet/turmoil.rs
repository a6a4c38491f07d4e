//! Schedules made at run time in a fleet that is never calm: leaders die, stores forget, and keys are written over.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::SignedDuration;
use jiff::Timestamp;
use leader_core::{Fate, Instance, JobLedger, Outcome, Schedule, Target, Timing, testing};
use leader_tests::eventually;

use crate::stage::jobs::{Note, noted, unladen};
use crate::stage::{Ground, SOON, Stage, among_others, jobs, leads, ms};

on_each_store!(
    schedules_that_change_while_leaders_change_are_decided_once_each,
    a_job_moves_from_its_leader_to_anybody_and_back_under_two_names,
    many_pauses_that_end_while_nobody_leads_are_told_from_missed_ticks,
);

const LONGER: Duration = Duration::from_secs(60);

fn note(number: u64) -> Note {
    let text = "a|b\n\0ü".to_owned();
    Note { number, text }
}

async fn start(ground: &Ground, id: &str, stage: &Stage) -> Instance {
    let timing = Timing::from_ttl(ms(2_000));
    ground.instance(id, stage, ["made"]).timing(timing).await.unwrap()
}

/// How many ticks were due up to the cursor, by the schedules that the store says were in force.
fn due(ledger: &JobLedger) -> u64 {
    let cursor = ledger.cursor.unwrap();
    let earlier = ledger.schedules.iter().rev();
    let mut spans: Vec<_> = earlier.map(|earlier| (&earlier.schedule, earlier.until)).collect();
    spans.extend(ledger.schedule.as_ref().map(|kept| (kept, cursor)));
    let count = |(kept, until): (&leader_core::StoredSchedule, Timestamp)| {
        let schedule: Schedule = kept.text.parse().unwrap();
        schedule.count(kept.since.unwrap(), until)
    };
    spans.into_iter().map(count).sum()
}

/// Numbers that are drawn anew at each call.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

async fn schedules_that_change_while_leaders_change_are_decided_once_each(ground: Ground) {
    const SCHEDULES: u64 = 250;
    let stage = Stage::new();
    let mut dice = Dice(11);
    let mut fleet = vec![start(&ground, "i0", &stage).await, start(&ground, "i1", &stage).await];
    leads(&fleet[0], "made").await;
    // What was made last of each, as period and number; and those that were never ended.
    let mut last = BTreeMap::<String, Option<(u64, u64)>>::new();
    let mut ended = std::collections::BTreeSet::new();
    for round in 0..4_u64 {
        for change in 0..SCHEDULES {
            let name = format!("s/{}", dice.below(SCHEDULES));
            let by = &fleet[usize::try_from(dice.below(2)).unwrap()];
            if change == SCHEDULES / 2 {
                let leader = fleet.iter().position(|instance| instance.is_leader("made"));
                if let Some(leader) = leader {
                    let leader = fleet.remove(leader);
                    match round % 2 {
                        0 => testing::kill(&leader),
                        _ => leader.shutdown().await,
                    }
                    fleet.push(start(&ground, &format!("i{}", round + 2), &stage).await);
                }
                continue;
            }
            if dice.below(8) == 0 && last.get(&name).is_some_and(Option::is_some) {
                by.unschedule(&name).await.unwrap();
                ended.insert(name.clone());
                last.insert(name, None);
            } else {
                let (period, number) = (1 + dice.below(3), round * SCHEDULES + change);
                let made = by
                    .schedule_every::<noted>(&name, &format!("{period}s"))
                    .with(&note(number));
                made.await.unwrap();
                last.insert(name, Some((period, number)));
            }
        }
    }
    let listed = fleet[0].schedules("made").await.unwrap();
    let alive: BTreeMap<_, _> = last
        .iter()
        .filter_map(|(name, made)| made.map(|made| (name.as_str(), made)))
        .collect();
    let names: Vec<_> = listed.iter().map(|made| made.name.as_str()).collect();
    let mut expected: Vec<_> = alive.keys().copied().collect();
    expected.sort_unstable();
    let mut sorted = names.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, expected);
    for (name, (period, number)) in &alive {
        eventually(LONGER, &format!("{name} runs with what it carries now"), || async {
            stage
                .played(name)
                .last()
                .is_some_and(|played| played.carried == *number)
        })
        .await;
        eventually(LONGER, &format!("{name} goes by its schedule"), || async {
            let ledger = fleet[0].ledger(name).await.unwrap();
            ledger
                .schedule
                .is_some_and(|kept| kept.text == format!("every {period}s"))
        })
        .await;
    }
    for name in last.keys() {
        let played = stage.played(name);
        let ticks: Vec<_> = played.iter().map(|run| (run.scheduled_at, run.fence)).collect();
        assert!(ticks.is_sorted_by(|a, b| a.0 < b.0 && a.1 < b.1), "{name}: {ticks:?}");
        let ledger = fleet[0].ledger(name).await.unwrap();
        if !ended.contains(name) {
            assert_eq!(ledger.decided() + ledger.pending(), due(&ledger), "{name}: {ledger:?}");
        }
        if last[name].is_none() {
            assert!(
                ledger.retired.is_some() && ledger.schedule.is_none(),
                "{name}: {ledger:?}"
            );
        }
    }
    for instance in fleet {
        instance.shutdown().await;
    }
}

/// Two instances, the first of which leads, and two schedules.
async fn two_with_schedules(ground: &Ground, stage: &Stage) -> [Instance; 2] {
    let fleet = [start(ground, "a", stage).await, start(ground, "b", stage).await];
    leads(&fleet[0], "made").await;
    for name in ["x", "y"] {
        fleet[1].schedule_every::<unladen>(name, "1s").await.unwrap();
    }
    fleet
}

/// A store that forgets everything, or one job, while the fleet runs: what is made again runs.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_store_has_forgotten_can_be_made_again() {
    let _among = among_others().await;
    let ground = Ground::redis().await;
    let Ground::Redis(server) = &ground else { unreachable!() };
    let stage = Stage::new();
    let fleet = two_with_schedules(&ground, &stage).await;
    stage.has_played("x", 1).await;
    for round in 1..=6_u64 {
        let words: &[&str] = match round {
            1 => &["FLUSHALL"],
            2 => &["DEL", "{leader:made}:job:x"],
            3 => &["DEL", "{leader:made}:schedules"],
            4 => &["DEL", "{leader:made}:payloads"],
            5 => &["SET", "{leader:made}:job:x", "of another type"],
            _ => &["DEL", "{leader:made}:lease"],
        };
        server.command(words).await;
        // The leader goes on for a while.
        tokio::time::sleep(ms(1_500)).await;
        let (x, y) = (stage.played("x").len(), stage.played("y").len());
        for name in ["x", "y"] {
            let what = format!("{name} is made after {words:?}");
            eventually(SOON, &what, || async {
                let made = fleet[1].schedule_every::<noted>(name, "1s").with(&note(round));
                made.await.is_ok()
            })
            .await;
        }
        for (name, before) in [("x", x), ("y", y)] {
            eventually(SOON, &format!("{name} runs after {words:?}"), || async {
                let played = stage.played(name);
                played.len() > before + 1 && played.last().is_some_and(|played| played.carried == round)
            })
            .await;
        }
    }
    for instance in fleet {
        instance.shutdown().await;
    }
}

/// Keys of one job, and of the group, written over while the fleet runs: the other job is run by this leader and by the next.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_that_are_written_over_stop_no_other_job() {
    let _among = among_others().await;
    let ground = Ground::redis().await;
    let Ground::Redis(server) = &ground else { unreachable!() };
    let stage = Stage::new();
    let fleet = two_with_schedules(&ground, &stage).await;
    stage.has_played("y", 1).await;
    let key = |part: &str| format!("{{leader:made}}:{part}");
    let junk: &[(&str, &[&str])] = &[
        ("job:x", &["cursor", "99999999999999999999"]),
        ("job:x", &["moved", "no name"]),
        ("job:x", &["moved", "x"]),
        ("job:x", &["made", ""]),
        ("job:x", &["schedule", "lunar"]),
        (
            "job:x",
            &["open", "1|schedule|5|2|1|3|z#1|1||", "waiting", "99999999999999999999"],
        ),
        ("schedules", &["x", "99999999999999999999|1|1|me|1|unladen|every 1s"]),
        ("schedules", &["x", "9007199254740993|1|1|me|1|unladen|every 1s"]),
        ("schedules", &["~x", "5|1|1|me|1|unladen|every 1s"]),
        ("payloads", &["x", "\0"]),
        ("coverage", &["x", ">no name"]),
        ("coverage", &["x", ">x"]),
        ("control", &["p:x", "1|owed|1|99999999999999999999|me|", "r:x", "|"]),
        ("control", &["e:1", "x|1|skip|1|99999999999999999999|me|"]),
        (
            "lease",
            &["controlled", "7", "control", "99999999999999999999", "made", "-1"],
        ),
    ];
    for (part, fields) in junk {
        let key = key(part);
        let words: Vec<_> = ["HSET", &key].into_iter().chain(fields.iter().copied()).collect();
        server.command(&words).await;
        // Each change is read by the leader; then another leads.
        fleet[0]
            .schedule_every::<noted>("z", "1h")
            .with(&note(1))
            .await
            .unwrap();
        fleet[0].unschedule("z").await.unwrap();
        let runs = stage.played("y").len();
        stage.has_played("y", runs + 2).await;
        let leader = fleet.iter().find(|instance| instance.is_leader("made"));
        if let Some(leader) = leader {
            leader.step_down("made").await.unwrap();
        }
        let runs = stage.played("y").len();
        stage.has_played("y", runs + 2).await;
    }
    // And what was written over is as good as new when it is made anew.
    let _ = fleet[0].unschedule("x").await;
    fleet[0]
        .schedule_every::<noted>("x", "1s")
        .with(&note(99))
        .await
        .unwrap();
    eventually(SOON, "x runs", || async {
        stage.played("x").last().is_some_and(|played| played.carried == 99)
    })
    .await;
    for instance in fleet {
        instance.shutdown().await;
    }
}

/// How many bodies are under way, and the most that ever were.
#[derive(Default)]
struct Bodies(Mutex<(usize, usize)>);

struct Body(Arc<Bodies>);

impl Body {
    fn of(bodies: &Arc<Bodies>) -> Self {
        let mut count = bodies.0.lock().unwrap();
        count.0 += 1;
        count.1 = count.1.max(count.0);
        Self(Arc::clone(bodies))
    }
}

impl Drop for Body {
    fn drop(&mut self) {
        self.0.0.lock().unwrap().0 -= 1;
    }
}

/// Versions that have the job bound to the leader, on anybody, and under another name, beside each other and one after another.
async fn a_job_moves_from_its_leader_to_anybody_and_back_under_two_names(ground: Ground) {
    let (stage, bodies) = (Stage::new(), Arc::new(Bodies::default()));
    for name in ["moving", "moved"] {
        let bodies = Arc::clone(&bodies);
        stage.part(name, move |_| {
            let body = Body::of(&bodies);
            async move {
                tokio::time::sleep(ms(300)).await;
                drop(body);
                Ok(())
            }
        });
    }
    let build = |id: &'static str| {
        let timing = Timing::from_ttl(ms(1_500));
        let build = ground.instance(id, &stage.of(id), ["moving"]).timing(timing);
        build.disable("moving_any").disable("moving_led")
    };
    let led = |id| build(id).__as::<jobs::moving_led>("moving", &[]);
    let any = |id| build(id).__as::<jobs::moving_any>("moving", &[]);
    let renamed = |id| build(id).__as::<jobs::moving_any>("moved", &["moving"]);
    let played = || {
        let mut all = [stage.played("moving"), stage.played("moved")].concat();
        all.sort_by_key(|played| played.fence);
        all
    };
    let goes_on = async |what: &str, times: usize| {
        let before = played().len();
        eventually(SOON, what, || async { played().len() >= before + times }).await;
    };
    let v1 = led("v1").await.unwrap();
    leads(&v1, "moving").await;
    goes_on("the leader runs it", 2).await;
    let v2 = any("v2").await.unwrap();
    goes_on("both run it", 4).await;
    testing::kill(&v1);
    goes_on("anybody runs it", 3).await;
    let v3 = renamed("v3").await.unwrap();
    goes_on("it is run under two names", 4).await;
    let v4 = led("v4").await.unwrap();
    goes_on("all three run it", 4).await;
    v2.shutdown().await;
    testing::kill(&v3);
    goes_on("a leader runs it again", 3).await;
    let v5 = renamed("v5").await.unwrap();
    goes_on("and both again", 2).await;
    v4.shutdown().await;
    goes_on("and anybody alone", 3).await;
    let ledger = v5.ledger("moved").await.unwrap();
    let (since, cursor) = (ledger.since.unwrap(), ledger.cursor.unwrap());
    let due = v5.count_ticks("moved", since, cursor).unwrap();
    assert_eq!(ledger.decided() + ledger.pending(), due, "{ledger:?}");
    let runs = played();
    assert!(runs.is_sorted_by(|a, b| a.scheduled_at < b.scheduled_at), "{runs:?}");
    assert_eq!(bodies.0.lock().unwrap().1, 1, "one at once");
    for run in &runs {
        let told = v5.explain("moved", run.scheduled_at).await.unwrap();
        assert!(
            matches!(&told.fate, Fate::Ran(record) if record.fence == run.fence) || run.scheduled_at == cursor,
            "{told}"
        );
    }
    println!("{:?} of {due}", ledger.counts);
    v5.shutdown().await;
}

/// More pauses end while nobody leads than are kept of those that are over.
async fn many_pauses_that_end_while_nobody_leads_are_told_from_missed_ticks(ground: Ground) {
    let stage = Stage::new();
    let a = start(&ground, "a", &stage).await;
    leads(&a, "made").await;
    let names: Vec<_> = (0..48).map(|at| format!("p/{at}")).collect();
    for name in &names {
        a.schedule_every::<noted>(name, "1s").with(&note(1)).await.unwrap();
    }
    for name in &names {
        stage.has_played(name, 1).await;
    }
    let until = Timestamp::now() + SignedDuration::from_secs(4);
    for name in &names {
        a.control().pause(Target::job(name.clone())).until(until).await.unwrap();
    }
    assert!(Timestamp::now() < until);
    testing::kill(&a);
    let before: Vec<_> = names.iter().map(|name| stage.played(name).len()).collect();
    // Some ticks after their end are missed as well.
    eventually(SOON, "all pauses are over", || async {
        Timestamp::now() > until + SignedDuration::from_secs(4)
    })
    .await;
    let b = start(&ground, "b", &stage).await;
    leads(&b, "made").await;
    for (name, before) in names.iter().zip(before) {
        stage.has_played(name, before + 3).await;
        let ledger = b.ledger(name).await.unwrap();
        let paused = ledger.counts.get(&Outcome::Paused).copied().unwrap_or_default();
        assert!((3..=5).contains(&paused), "{name}: {:?}", ledger.counts);
        assert_eq!(ledger.decided() + ledger.pending(), due(&ledger), "{name}: {ledger:?}");
    }
    b.shutdown().await;
}

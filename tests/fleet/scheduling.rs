//! Schedules made at run time: made on any instance, run by the leader, kept by the store.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use leader_core::{
    Event, Fate, Instance, JobLedger, MissedReason, Outcome, Ran, Scheduling, SchedulingError, SchedulingNews, Target,
    Timing, testing,
};
use leader_tests::eventually;

use crate::stage::jobs::{Note, noted, unladen};
use crate::stage::{Diary, Ground, Played, SOON, Stage, Stopwatch, among_others, leader_first, leads, ms};

on_each_store!(
    made_on_a_standby_it_is_run_by_the_leader_and_like_any_job,
    it_outlives_the_leader_and_the_fleet,
    an_edit_decides_every_tick_of_the_old_schedule,
    a_run_outlives_the_end_of_its_schedule,
    a_run_that_is_lost_after_the_end_is_settled,
    case_12_a_thousand_due_at_one_instant_run_once_each,
    of_two_that_make_one_name_the_later_counts_as_a_whole,
    a_leader_without_the_handler_leaves_the_ticks_to_one_that_has_it,
    what_cannot_be_made_says_why,
);

fn timing() -> Timing {
    Timing::from_ttl(ms(2_000))
}

fn note(number: u64) -> Note {
    let text = String::new();
    Note { number, text }
}

async fn start(ground: &Ground, id: &str, stage: &Stage) -> Instance {
    ground.instance(id, stage, ["made"]).timing(timing()).await.unwrap()
}

async fn pair(ground: &Ground, stage: &Stage) -> (Instance, Instance) {
    let (a, b) = (start(ground, "a", stage).await, start(ground, "b", stage).await);
    leader_first(a, b, "made").await
}

fn count(ledger: &JobLedger, outcome: Outcome) -> u64 {
    ledger.counts.get(&outcome).copied().unwrap_or_default()
}

fn carried(played: &[Played]) -> Vec<u64> {
    let mut carried: Vec<_> = played.iter().map(|played| played.carried).collect();
    carried.dedup();
    carried
}

/// No tick twice, and in order.
fn once_each(played: &[Played]) {
    let ticks: Vec<_> = played.iter().map(|played| played.scheduled_at).collect();
    assert!(ticks.is_sorted_by(|a, b| a < b), "{ticks:?}");
    assert!(played.is_sorted_by(|a, b| a.fence < b.fence), "{played:?}");
}

fn news(diary: &Diary) -> Vec<String> {
    diary.pick(|event| match event {
        Event::Scheduling(Scheduling { job, news, .. }) => Some(match news {
            SchedulingNews::Made { .. } => format!("{job} made"),
            SchedulingNews::Ended => format!("{job} ended"),
            SchedulingNews::NotRun { reason, .. } => format!("{job} not run: {reason}"),
            _ => unreachable!(),
        }),
        _ => None,
    })
}

async fn made_on_a_standby_it_is_run_by_the_leader_and_like_any_job(ground: Ground) {
    let stage = Stage::new();
    let (leader, standby) = pair(&ground, &stage).await;
    let diary = Diary::of(&leader);
    let watch = Stopwatch::start();
    let made = standby
        .schedule_every::<noted>("acme/a", "1s")
        .with(&note(1))
        .await
        .unwrap();
    assert!(made.new && made.changed);
    assert_eq!((made.group.as_str(), made.job.as_str()), ("made", "acme/a"));
    stage.has_played("acme/a", 2).await;
    watch.within(ms(4_000), "two runs of it");
    let again = standby
        .schedule_every::<noted>("acme/a", "1s")
        .with(&note(1))
        .await
        .unwrap();
    assert!(!again.new && !again.changed);
    assert_eq!(again.at, made.at);

    let shown = leader
        .jobs()
        .into_iter()
        .find(|job| job.name.as_str() == "acme/a")
        .unwrap();
    assert_eq!(shown.schedule, "every 1s");
    assert_eq!(shown.handler.unwrap().as_str(), "noted");
    let listed = standby.schedules("made").await.unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!(
        (listed[0].name.as_str(), listed[0].handler.as_str()),
        ("acme/a", "noted")
    );
    assert_eq!(
        (listed[0].by.as_str(), listed[0].changed_at),
        (standby.id().as_str(), Some(made.at))
    );
    assert_eq!(listed[0].payload, "{\"number\":1,\"text\":\"\"}");

    // Another payload from the next tick on.
    let changed = leader
        .schedule_every::<noted>("acme/a", "1s")
        .with(&note(2))
        .await
        .unwrap();
    assert!(!changed.new && changed.changed);
    eventually(SOON, "the new payload", || async {
        stage.played("acme/a").last().unwrap().carried == 2
    })
    .await;
    assert_eq!(carried(&stage.played("acme/a")), [1, 2]);

    // Paused, triggered and explained from anywhere.
    standby.control().pause(Target::job("acme/a")).await.unwrap();
    let asked = standby.control().trigger_named("acme/a").await.unwrap();
    eventually(SOON, "the run that was asked for", || async {
        stage.played("acme/a").iter().any(|run| run.scheduled_at == asked.at)
    })
    .await;
    eventually(SOON, "paused ticks", || async {
        count(&standby.ledger("acme/a").await.unwrap(), Outcome::Paused) >= 1
    })
    .await;
    let first = stage.played("acme/a")[0].scheduled_at;
    let why = standby.explain("acme/a", first).await.unwrap();
    assert!(matches!(why.fate, Fate::Ran(_)), "{why}");
    standby.control().resume(Target::job("acme/a")).await.unwrap();
    let runs = stage.played("acme/a").len();
    stage.has_played("acme/a", runs + 1).await;

    let ended = standby.unschedule("acme/a").await.unwrap();
    let next = ended.at + SignedDuration::from_secs(3);
    eventually(SOON, "ticks that are none", || async { Timestamp::now() > next }).await;
    let scheduled: Vec<_> = stage.played("acme/a");
    assert!(
        scheduled.iter().all(|run| run.scheduled_at <= ended.at),
        "{ended:?} {scheduled:?}"
    );
    assert!(standby.schedules("made").await.unwrap().is_empty());
    assert!(leader.jobs().iter().all(|job| job.name.as_str() != "acme/a"));
    // Its history stays.
    let history = standby.history_of("acme/a").await.unwrap();
    assert!(history.iter().any(|record| record.first == first));
    let ledger = standby.ledger("acme/a").await.unwrap();
    assert_eq!((ledger.retired, ledger.pending()), (Some(ended.at), 0));
    let why = standby.explain("acme/a", next).await.unwrap();
    assert!(
        matches!(why.fate, Fate::NotScheduled { since: Some(since), .. } if since == ended.at),
        "{why}"
    );
    assert!(matches!(
        standby.unschedule("acme/a").await,
        Err(SchedulingError::NotScheduled { .. })
    ));
    eventually(SOON, "the news", || async { news(&diary).len() == 3 }).await;
    assert_eq!(news(&diary), ["acme/a made", "acme/a made", "acme/a ended"]);
    leader.shutdown().await;
    standby.shutdown().await;
}

async fn it_outlives_the_leader_and_the_fleet(ground: Ground) {
    let stage = Stage::new();
    let (leader, standby) = pair(&ground, &stage).await;
    leader.schedule_every::<unladen>("kept", "1s").await.unwrap();
    stage.has_played("kept", 2).await;
    testing::kill(&leader);
    leads(&standby, "made").await;
    let runs = stage.played("kept").len();
    stage.has_played("kept", runs + 1).await;
    standby.shutdown().await;
    let runs = stage.played("kept").len();
    let anew = start(&ground, "c", &stage).await;
    stage.has_played("kept", runs + 2).await;
    once_each(&stage.played("kept"));
    // What nobody led for is decided by the handler's policy, which wants all of it. A run that was under way at the kill is lost, and of the
    // ticks that wait for it meanwhile (`overlap = "wait"`) the last one stands for the others.
    eventually(SOON, "every tick has run", || async {
        let ledger = anew.ledger("kept").await.unwrap();
        let (since, cursor) = (ledger.since.unwrap(), ledger.cursor.unwrap());
        let due = anew.count_ticks("kept", since, cursor).unwrap();
        let [ran, lost, coalesced] = [
            Outcome::Ran(Ran::Ok),
            Outcome::Ran(Ran::Lost),
            Outcome::Missed(MissedReason::Coalesced),
        ]
        .map(|outcome| count(&ledger, outcome));
        let explained = lost <= 1 && coalesced <= 3 * lost && ran + lost + coalesced == due;
        due == ledger.decided() + ledger.pending() && ledger.pending() == 0 && explained
    })
    .await;
    anew.shutdown().await;
}

async fn an_edit_decides_every_tick_of_the_old_schedule(ground: Ground) {
    let stage = Stage::new();
    let (leader, standby) = pair(&ground, &stage).await;
    let made = standby.schedule_every::<unladen>("edited/a", "1s").await.unwrap();
    stage.has_played("edited/a", 2).await;
    standby.schedule_every::<unladen>("edited/a", "2s").await.unwrap();
    eventually(SOON, "the other schedule", || async {
        let ledger = standby.ledger("edited/a").await.unwrap();
        ledger.schedule.is_some_and(|kept| kept.text == "every 2s")
    })
    .await;
    let runs = stage.played("edited/a").len();
    stage.has_played("edited/a", runs + 2).await;
    let ledger = standby.ledger("edited/a").await.unwrap();
    assert_eq!((ledger.since, ledger.schedules.len()), (Some(made.at), 1));
    let changed = ledger.schedules[0].until;
    assert_eq!(ledger.schedule.as_ref().unwrap().since, Some(changed));
    let old: leader_core::Schedule = "every 1s".parse().unwrap();
    let new: leader_core::Schedule = "every 2s".parse().unwrap();
    let due = old.count(made.at, changed) + new.count(changed, ledger.cursor.unwrap());
    assert_eq!(ledger.decided() + ledger.pending(), due, "{ledger:?}");
    once_each(&stage.played("edited/a"));
    leader.shutdown().await;
    standby.shutdown().await;
}

/// A body that goes on until it is let go.
fn held(stage: &Stage, job: &'static str) -> tokio::sync::watch::Sender<bool> {
    let (go, held) = tokio::sync::watch::channel(false);
    stage.part(job, move |_| {
        let mut held = held.clone();
        async move {
            let _ = held.wait_for(|go| *go).await;
            Ok(())
        }
    });
    go
}

async fn a_run_outlives_the_end_of_its_schedule(ground: Ground) {
    let stage = Stage::new();
    let go = held(&stage, "long");
    let (leader, standby) = pair(&ground, &stage).await;
    standby.schedule_every::<unladen>("long", "1s").await.unwrap();
    stage.has_played("long", 1).await;
    eventually(SOON, "a tick waits", || async {
        standby.ledger("long").await.unwrap().waiting.is_some()
    })
    .await;
    let ended = standby.unschedule("long").await.unwrap();
    let ledger = standby.ledger("long").await.unwrap();
    // The tick that waited is not run; the run goes on.
    assert_eq!(
        (ledger.open.len(), ledger.waiting, ledger.retired),
        (1, None, Some(ended.at))
    );
    assert_eq!(count(&ledger, Outcome::Missed(MissedReason::Skipped)), 1);
    let again = standby.schedule_every::<unladen>("long", "1s").await.unwrap();
    assert!(again.new);
    eventually(
        SOON,
        "a tick of the new one waits for the run of the old one",
        || async {
            standby
                .ledger("long")
                .await
                .unwrap()
                .waiting
                .is_some_and(|tick| tick > again.at)
        },
    )
    .await;
    assert_eq!(stage.played("long").len(), 1);
    standby.unschedule("long").await.unwrap();
    go.send(true).unwrap();
    eventually(SOON, "its end", || async {
        let ledger = standby.ledger("long").await.unwrap();
        ledger.open.is_empty() && count(&ledger, Outcome::Ran(Ran::Ok)) == 1
    })
    .await;
    assert_eq!(stage.played("long").len(), 1);
    let third = standby.schedule_every::<unladen>("long", "1s").await.unwrap();
    stage.has_played("long", 2).await;
    // It is owed nothing.
    assert!(stage.played("long")[1].scheduled_at > third.at);
    leader.shutdown().await;
    standby.shutdown().await;
}

async fn a_run_that_is_lost_after_the_end_is_settled(ground: Ground) {
    let stage = Stage::new();
    let _go = held(&stage, "broken");
    let (leader, standby) = pair(&ground, &stage).await;
    standby.schedule_every::<unladen>("broken", "1s").await.unwrap();
    stage.has_played("broken", 1).await;
    standby.unschedule("broken").await.unwrap();
    testing::kill(&leader);
    leads(&standby, "made").await;
    eventually(SOON, "the lost run", || async {
        let ledger = standby.ledger("broken").await.unwrap();
        ledger.open.is_empty() && count(&ledger, Outcome::Ran(Ran::Lost)) == 1
    })
    .await;
    assert_eq!(stage.played("broken").len(), 1);
    standby.shutdown().await;
}

async fn case_12_a_thousand_due_at_one_instant_run_once_each(ground: Ground) {
    const MANY: usize = 1_000;
    let stage = Stage::new();
    let leader = start(&ground, "a", &stage).await;
    leads(&leader, "made").await;
    let makers = (0..8).map(|maker| {
        let leader = leader.clone();
        tokio::spawn(async move {
            for number in (maker..MANY).step_by(8) {
                let number = number as u64;
                // Once an hour, at the second that comes in a while.
                let made = leader.schedule_every::<noted>(format!("tenant/{number}"), "1h");
                made.with(&note(number)).await.unwrap();
            }
        })
    });
    for maker in makers.collect::<Vec<_>>() {
        maker.await.unwrap();
    }
    let full = leader.schedule_every::<noted>("one-more", "1h").with(&note(0)).await;
    assert!(
        matches!(full, Err(SchedulingError::TooMany { schedules: MANY, .. })),
        "{full:?}"
    );
    assert_eq!(leader.schedules("made").await.unwrap().len(), MANY);
    eventually(SOON, "the leader knows all", || async { leader.jobs().len() >= MANY }).await;
    // All of them anew, and due at one instant.
    let at = Timestamp::now() + SignedDuration::from_secs(25);
    let day = at.as_second() % 86_400;
    let cron = format!("{} {} {} * * *", day % 60, day / 60 % 60, day / 3600);
    let watch = Stopwatch::start();
    let makers = (0..8).map(|maker| {
        let (leader, cron) = (leader.clone(), cron.clone());
        tokio::spawn(async move {
            for number in (maker..MANY).step_by(8) {
                let number = number as u64;
                let made = leader.schedule::<noted>(format!("tenant/{number}"), &cron);
                made.with(&note(number)).await.unwrap();
            }
        })
    });
    for maker in makers.collect::<Vec<_>>() {
        maker.await.unwrap();
    }
    let took = watch.within(ms(24_000), "a thousand edits");
    let played = || -> Vec<Played> {
        (0..MANY)
            .flat_map(|number| stage.played(&format!("tenant/{number}")))
            .collect()
    };
    eventually(Duration::from_secs(60), "all have run", || async {
        played().len() >= MANY
    })
    .await;
    let runs = played();
    assert_eq!(runs.len(), MANY, "once each");
    let instants: std::collections::BTreeSet<_> = runs.iter().map(|run| run.scheduled_at.as_second()).collect();
    assert_eq!(instants.into_iter().collect::<Vec<_>>(), [at.as_second()]);
    let of_job = |run: &Played| run.job == format!("tenant/{}", run.carried);
    assert!(runs.iter().all(of_job), "each with its own payload");
    let last = runs.iter().map(|run| run.late).max().unwrap();
    println!("{MANY} edits in {took:?}; at one instant {MANY} runs, the last {last:?} late");
    leader.shutdown().await;
}

async fn of_two_that_make_one_name_the_later_counts_as_a_whole(ground: Ground) {
    let stage = Stage::new();
    let (a, b) = pair(&ground, &stage).await;
    for round in 0..10_u64 {
        let (one, other) = (note(2 * round), note(2 * round + 1));
        let (first, second) = tokio::join!(
            a.schedule_every::<noted>("contested", "1s").with(&one).into_future(),
            b.schedule_every::<noted>("contested", "2s").with(&other).into_future(),
        );
        let (first, second) = (first.unwrap(), second.unwrap());
        assert!(first.changed && second.changed, "{first:?} {second:?}");
        let kept = a.schedules("made").await.unwrap().remove(0);
        let expected = [("every 1s", 2 * round, a.id()), ("every 2s", 2 * round + 1, b.id())];
        let matching = expected.iter().filter(|(schedule, number, by)| {
            let payload = format!("{{\"number\":{number},\"text\":\"\"}}");
            kept.schedule == *schedule && kept.payload == payload && kept.by == by.as_str()
        });
        assert_eq!(matching.count(), 1, "{kept:?}");
    }
    stage.has_played("contested", 1).await;
    once_each(&stage.played("contested"));
    a.shutdown().await;
    b.shutdown().await;
}

async fn a_leader_without_the_handler_leaves_the_ticks_to_one_that_has_it(ground: Ground) {
    let stage = Stage::new();
    let old = ground.instance("old", &stage, ["made"]).timing(timing()).spread(false);
    let old = old.disable("unladen").version("1.0");
    let diary = Diary::of_the_start(&old);
    let old = old.await.unwrap();
    leads(&old, "made").await;
    let maker = ground
        .instance("maker", &stage, ["made"])
        .timing(timing())
        .campaign(false);
    let maker = maker.await.unwrap();
    assert!(matches!(
        old.schedule_every::<unladen>("newer", "1s").await,
        Err(SchedulingError::NoHandler { .. })
    ));
    let made = maker.schedule_every::<unladen>("newer", "1s").await.unwrap();
    // What it has runs on.
    maker
        .schedule_every::<noted>("older", "1s")
        .with(&note(1))
        .await
        .unwrap();
    stage.has_played("older", 4).await;
    assert!(stage.played("newer").is_empty());
    let ledger = maker.ledger("newer").await.unwrap();
    assert_eq!((ledger.decided(), ledger.cursor), (0, Some(made.at)));
    let told = news(&diary).into_iter().filter(|told| told.starts_with("newer"));
    assert_eq!(
        told.collect::<Vec<_>>(),
        ["newer not run: this instance has no handler `unladen`"],
        "once"
    );
    // The group goes to the one that has it, and no tick is lost.
    let new = ground.instance("new", &stage, ["made"]).timing(timing()).version("2.0");
    let new = new.await.unwrap();
    leads(&new, "made").await;
    stage.has_played("newer", 4).await;
    let first = &stage.played("newer")[0];
    assert!(
        first.scheduled_at.duration_since(made.at) <= SignedDuration::from_secs(1),
        "{first:?} {made:?}"
    );
    once_each(&stage.played("newer"));
    for instance in [old, maker, new] {
        instance.shutdown().await;
    }
}

async fn what_cannot_be_made_says_why(ground: Ground) {
    let stage = Stage::new();
    let instance = start(&ground, "a", &stage).await;
    let long = Note {
        number: 1,
        text: "x".repeat(70_000),
    };
    let of = |name: &str, cron: &str| instance.schedule::<unladen>(name.to_owned(), cron.to_owned());
    let every = |name: &str, period: &str| instance.schedule_every::<noted>(name.to_owned(), period.to_owned());
    let noted_at = |name: &str| every(name, "1h");
    let refused = [
        (of("a b", "0 9 * * *").await, "a b"),
        (of("x", "61 9 * * *").await, "61"),
        (of("x", "0 9 30 2 *").await, "never"),
        (of("x", "0 9 * * *").timezone("Europe/Berlln").await, "Europe/Berlin"),
        (of("x", "0 0 9 1 1 * 1999").await, "no tick after"),
        (of("x", "0 9 * * *").group("nobody").await, "`default`"),
        (of("noted", "0 9 * * *").await, "a job of the program"),
        (of("steady", "0 9 * * *").await, "another name"),
        (every("x", "1x").with(&note(1)).await, "1x"),
        (
            every("x", "1h").timezone("Europe/Berlin").with(&note(1)).await,
            "Europe/Berlin",
        ),
        (noted_at("x").await, ".with("),
        (noted_at("x").with(&long).await, "65536 at the most"),
    ];
    for (answer, part) in refused {
        let error = answer.expect_err(part).to_string();
        assert!(error.contains(part), "`{part}` in: {error}");
    }
    let error = instance.unschedule("x").await.unwrap_err().to_string();
    assert!(error.contains("no schedule `x`") && error.contains("`made`"), "{error}");
    let error = instance.schedules("nobody").await.unwrap_err().to_string();
    assert!(error.contains("`nobody` is no group"), "{error}");
    assert!(instance.schedules("made").await.unwrap().is_empty(), "nothing was kept");
    // In another group of the fleet, and there under the same name.
    let there = of("x", "0 9 * * *").group("default").await.unwrap();
    assert_eq!(there.group.as_str(), "default");
    let here = of("x", "0 9 * * *").await.unwrap();
    assert_eq!(here.group.as_str(), "made");
    let error = instance.unschedule("x").await.unwrap_err().to_string();
    assert!(error.contains("`default`") && error.contains("`made`"), "{error}");
    instance.unschedule("x").group("made").await.unwrap();
    instance.unschedule("x").await.unwrap();
    instance.shutdown().await;
}

/// What a later version cannot read, and what somebody has written by hand, stops nobody else.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_75_what_cannot_be_read_of_one_stops_nobody_else() {
    let _among = among_others().await;
    let ground = Ground::redis().await;
    let Ground::Redis(server) = &ground else { unreachable!() };
    let stage = Stage::new();
    let instance = start(&ground, "a", &stage).await;
    for name in ["fine", "unfit", "odd", "unreadable", "gone"] {
        instance
            .schedule_every::<noted>(name, "1h")
            .with(&note(1))
            .await
            .unwrap();
    }
    instance.shutdown().await;
    let (kept, payloads) = ("{leader:made}:schedules", "{leader:made}:payloads");
    server
        .command(&["HSET", payloads, "unfit", "{\"number\":\"one\"}"])
        .await;
    server.command(&["HSET", kept, "odd", "from another world"]).await;
    let line = "77|77|1000|me|9.0|noted|lunar 3";
    server.command(&["HSET", kept, "unreadable", line]).await;
    server.command(&["HSET", kept, "no name", line]).await;
    server.command(&["HDEL", payloads, "gone"]).await;
    let next = ground.instance("b", &stage, ["made"]).timing(timing());
    let diary = Diary::of_the_start(&next);
    let next = next.await.unwrap();
    leads(&next, "made").await;
    for name in ["fine", "unfit", "odd", "unreadable", "gone"] {
        next.control().trigger_named(name).await.unwrap();
    }
    stage.has_played("fine", 1).await;
    eventually(SOON, "a run with a payload that is none", || async {
        count(&next.ledger("unfit").await.unwrap(), Outcome::Ran(Ran::Error)) == 0
            && next.history_of("unfit").await.unwrap().len() == 1
    })
    .await;
    let record = next.history_of("unfit").await.unwrap().remove(0);
    assert_eq!(record.outcome, Outcome::Ran(Ran::Error));
    assert!(
        record.error.contains("Note`: invalid type: string \"one\""),
        "{}",
        record.error
    );
    let mut told = news(&diary);
    told.sort();
    let begins = [
        "gone not run: what it",
        "no name not run:",
        "odd not run: another",
        "unreadable not run: `lunar 3`",
    ];
    assert_eq!(told.len(), begins.len(), "{told:?}");
    for (told, begin) in told.iter().zip(begins) {
        assert!(told.starts_with(begin), "{told}");
    }
    for name in ["odd", "unreadable", "gone"] {
        assert!(stage.played(name).is_empty());
    }
    // Made anew they run.
    next.schedule_every::<noted>("odd", "1s").with(&note(3)).await.unwrap();
    next.schedule_every::<noted>("gone", "1s").with(&note(3)).await.unwrap();
    stage.has_played("odd", 2).await;
    stage.has_played("gone", 2).await;
    // One that runs, and is written over.
    server.command(&["HSET", kept, "gone", "from another world"]).await;
    next.schedule_every::<noted>("fine", "1s").with(&note(4)).await.unwrap();
    diary
        .tells("that it is run no more", |event| match event {
            Event::Scheduling(Scheduling {
                job,
                news: SchedulingNews::NotRun { reason, .. },
                ..
            }) if job == "gone" && reason.starts_with("another version") => Some(()),
            _ => None,
        })
        .await;
    let (gone, odd) = (stage.played("gone").len(), stage.played("odd").len());
    stage.has_played("odd", odd + 3).await;
    // One may have been on its way.
    assert!(stage.played("gone").len() <= gone + 1, "{:?}", stage.played("gone"));
    next.shutdown().await;
}

/// Nothing hangs, and whoever made it is told that it may be kept.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_is_away_is_no_end_of_waiting() {
    let _among = among_others().await;
    let mut ground = Ground::redis().await;
    let stage = Stage::new();
    let instance = start(&ground, "a", &stage).await;
    leads(&instance, "made").await;
    let Ground::Redis(server) = &mut ground else {
        unreachable!()
    };
    server.pause();
    let watch = Stopwatch::start();
    let error = instance.schedule_every::<unladen>("x", "1h").await.unwrap_err();
    assert!(matches!(error, SchedulingError::Unread(_)), "{error}");
    let error = instance.unschedule("x").await.unwrap_err();
    assert!(matches!(error, SchedulingError::Unread(_)), "{error}");
    let error = instance.schedules("made").await.unwrap_err();
    assert!(matches!(error, SchedulingError::Unread(_)), "{error}");
    watch.within(ms(3_000), "three questions to a store that hangs");
    server.resume();
    eventually(SOON, "the store is back", || async {
        instance.schedule_every::<unladen>("x", "1s").await.is_ok()
    })
    .await;
    stage.has_played("x", 1).await;
    instance.shutdown().await;
}

//! Schedules that are edited: at each instant exactly one is in force, whoever leads, and each of its ticks is decided once.

use jiff::{SignedDuration, Timestamp};
use leader_core::{Bootstrap, Clock, Event, Instance, JobLedger, Schedule, testing};
use leader_tests::eventually;

use crate::stage::{Diary, Ground, SOON, Stage, among_others, leads, ms};

on_each_store!(
    a_newer_version_that_lives_is_followed_until_it_is_gone,
    case_40_an_edit_never_fires_for_the_past,
    of_equal_versions_the_leader_goes_before,
    a_run_that_blocks_its_thread_is_told_of_once,
);

const NINE: &str = "cron \"0 9 * * *\"";
const TEN: &str = "cron \"0 10 * * *\"";

/// An instance of a build whose job has this expression.
fn build(ground: &Ground, id: &str, stage: &Stage, version: &str, cron: &str) -> Bootstrap {
    let build = ground.instance(id, stage, ["edited"]).version(version).spread(false);
    build.job("edited", |job| job.cron(cron))
}

async fn ledger(instance: &Instance) -> JobLedger {
    instance.ledger("edited").await.unwrap()
}

async fn has_in_force(instance: &Instance, text: &str) {
    eventually(SOON, &format!("{text} is in force"), || async {
        let ledger = ledger(instance).await;
        ledger.schedule.is_some_and(|kept| kept.text == text)
    })
    .await;
}

fn changes(diary: &Diary) -> Vec<(String, String)> {
    diary.pick(|event| match event {
        Event::ScheduleChanged { from, to, .. } => Some((from.clone(), to.clone())),
        _ => None,
    })
}

fn followed(diary: &Diary) -> Vec<(String, String)> {
    diary.pick(|event| match event {
        Event::ScheduleFollowed { schedule, version, .. } => Some((schedule.clone(), version.clone())),
        _ => None,
    })
}

/// The ticks up to `now` by the schedules that the store says were in force.
fn due(ledger: &JobLedger, now: Timestamp) -> Vec<Timestamp> {
    let earlier = ledger.schedules.iter().rev();
    let mut spans: Vec<_> = earlier.map(|earlier| (&earlier.schedule, earlier.until)).collect();
    spans.extend(ledger.schedule.as_ref().map(|kept| (kept, now)));
    let mut ticks = Vec::new();
    for (kept, until) in spans {
        let schedule: Schedule = kept.text.parse().unwrap();
        let since = kept.since.unwrap();
        ticks.extend(schedule.ticks(since).take_while(|tick| *tick <= until));
    }
    ticks
}

/// Two builds of no version take turns over virtual days, at random instants and exactly at those of the ticks.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_31_a_schedule_that_goes_back_and_forth_eats_no_tick_and_doubles_none() {
    let _among = among_others().await;
    let clock = Clock::ahead(SignedDuration::ZERO);
    let ground = Ground::Embedded(testing::__embedded_on(clock.clone()));
    let stage = Stage::new();
    let day = |day: i64| "2031-03-03T00:00:00Z".parse::<Timestamp>().unwrap() + SignedDuration::from_hours(24 * day);
    // Milliseconds of the day at which a build takes over; the days go on whenever the time of day goes back.
    let at = |hour: i64, minute: i64, ms: i64| (hour * 60 + minute) * 60_000 + ms;
    let mut instants = vec![
        at(8, 0, 0),
        at(9, 0, 0),
        at(10, 0, 0),
        at(9, 0, 500),
        at(10, 0, 500),
        at(9, 0, 30_000),
        at(8, 59, 59_800),
        at(9, 59, 59_800),
        at(10, 30, 0),
        at(9, 0, 0),
        at(9, 30, 0),
        at(10, 0, 0),
    ];
    let mut seed = 7_u64;
    for _ in 0..12 {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        instants.push(i64::try_from((seed >> 33) % 86_400_000).unwrap());
    }
    let (mut today, mut before) = (0, 0);
    let mut last = None;
    for (turn, instant) in instants.iter().enumerate() {
        if *instant <= before {
            today += 1;
        }
        before = *instant;
        let target = day(today) + SignedDuration::from_millis(*instant);
        clock.step_wall(target.duration_since(clock.wall()));
        let (cron, text) = if turn % 2 == 0 {
            ("0 9 * * *", NINE)
        } else {
            ("0 10 * * *", TEN)
        };
        let instance = build(&ground, "one", &stage, "", cron).await.unwrap();
        leads(&instance, "edited").await;
        has_in_force(&instance, text).await;
        eventually(SOON, "all that is due is decided", || async {
            let now = clock.wall();
            let ledger = ledger(&instance).await;
            // One that falls due while it leads is waited for.
            let soon = due(&ledger, now + SignedDuration::from_secs(1)).len();
            ledger.pending() == 0 && ledger.decided() == soon as u64
        })
        .await;
        last = Some(ledger(&instance).await);
        instance.shutdown().await;
    }
    let ledger = last.unwrap();
    assert_eq!(ledger.schedules.len(), instants.len() - 1);
    let due = due(&ledger, clock.wall());
    let mut decided: Vec<_> = ledger
        .records
        .iter()
        .flat_map(|record| due.iter().filter(|tick| (record.first..=record.last).contains(*tick)))
        .copied()
        .collect();
    decided.sort_unstable();
    assert_eq!(decided, due, "each once");
    assert_eq!(ledger.decided(), due.len() as u64);
    let played: Vec<_> = stage
        .played("edited")
        .iter()
        .map(|played| played.scheduled_at)
        .collect();
    assert!(played.is_sorted_by(|a, b| a < b), "none twice: {played:?}");
    assert!(played.iter().all(|tick| due.contains(tick)), "none made up: {played:?}");
    assert!(played.len() > 5, "{played:?}");
    println!("{} turns, {} ticks, {} ran", instants.len(), due.len(), played.len());
}

async fn a_newer_version_that_lives_is_followed_until_it_is_gone(ground: Ground) {
    let stage = Stage::new();
    let newer = build(&ground, "newer", &stage, "2.1", "0 10 * * *").await.unwrap();
    leads(&newer, "edited").await;
    has_in_force(&newer, TEN).await;
    let older = build(&ground, "older", &stage, "2.0", "0 9 * * *").await.unwrap();
    let diary = Diary::of(&older);
    newer.step_down("edited").await.unwrap();
    leads(&older, "edited").await;
    let told = [(TEN.to_owned(), "2.1".to_owned())];
    eventually(SOON, "it is followed", || async { followed(&diary) == told }).await;
    assert_eq!(changes(&diary), []);
    let status = |instance: &Instance| {
        let job = instance.jobs().into_iter().find(|job| job.name.as_str() == "edited");
        job.map(|job| (job.schedule, job.following)).unwrap()
    };
    assert_eq!(status(&older), (NINE.to_owned(), Some(TEN.to_owned())));
    assert_eq!(status(&newer), (TEN.to_owned(), None));
    let kept = ledger(&older).await.schedule.unwrap();
    assert_eq!(
        (kept.text.as_str(), kept.version.as_str(), kept.by.as_str()),
        (TEN, "2.1", "newer")
    );
    // It is rolled back.
    newer.shutdown().await;
    has_in_force(&older, NINE).await;
    eventually(SOON, "it says so", || async {
        changes(&diary) == [(TEN.to_owned(), NINE.to_owned())]
    })
    .await;
    assert_eq!(status(&older), (NINE.to_owned(), None));
    assert_eq!(followed(&diary), told, "once");
    let ledger = ledger(&older).await;
    assert_eq!(ledger.schedules.len(), 1);
    assert_eq!(ledger.schedules[0].schedule, kept);
    assert_eq!(ledger.schedule.unwrap().since, Some(ledger.schedules[0].until));
    older.shutdown().await;
}

/// The new expression's time of today has just passed, within any grace.
async fn case_40_an_edit_never_fires_for_the_past(ground: Ground) {
    let stage = Stage::new();
    let first = build(&ground, "first", &stage, "1", "0 0 29 2 *").await.unwrap();
    leads(&first, "edited").await;
    has_in_force(&first, "cron \"0 0 29 2 *\"").await;
    first.shutdown().await;
    let now = Timestamp::now();
    let past = format!("{} * * *", now.strftime("%-M %-H"));
    let second = build(&ground, "second", &stage, "2", &past);
    let diary = Diary::of_the_start(&second);
    let second = second.await.unwrap();
    leads(&second, "edited").await;
    has_in_force(&second, &format!("cron \"{past}\"")).await;
    eventually(SOON, "it says so", || async { changes(&diary).len() == 1 }).await;
    let ledger = ledger(&second).await;
    let since = ledger.schedule.unwrap().since.unwrap();
    assert!(since >= Timestamp::from_millisecond(now.as_millisecond()).unwrap() - SignedDuration::from_secs(1));
    assert_eq!(ledger.cursor, Some(since));
    assert_eq!((ledger.counts.len(), ledger.open.len()), (0, 0));
    assert_eq!(stage.played("edited").len(), 0);
    second.shutdown().await;
}

async fn of_equal_versions_the_leader_goes_before(ground: Ground) {
    let stage = Stage::new();
    let a = build(&ground, "a", &stage, "2.0", "0 9 * * *").await.unwrap();
    leads(&a, "edited").await;
    has_in_force(&a, NINE).await;
    let b = build(&ground, "b", &stage, "2", "0 10 * * *").await.unwrap();
    let diary = Diary::of(&b);
    a.step_down("edited").await.unwrap();
    leads(&b, "edited").await;
    has_in_force(&b, TEN).await;
    assert_eq!(followed(&diary), []);
    a.shutdown().await;
    b.shutdown().await;
}

/// One job's schedule is of a grammar that this build does not know.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_schedule_that_cannot_be_read_is_replaced_at_once() {
    let _among = among_others().await;
    let ground = Ground::redis().await;
    let Ground::Redis(server) = &ground else { unreachable!() };
    let key = "{leader:edited}:job:edited";
    let cursor = Timestamp::from_second(Timestamp::now().as_second() - 200_000).unwrap();
    let millis = cursor.as_millisecond().to_string();
    let about = format!("{millis}|2027a|newer|9.0");
    let text = "moon \"full | new\"";
    let fields = [
        "cursor",
        &millis,
        "since",
        &millis,
        "schedule",
        text,
        "schedule_about",
        &about,
    ];
    server.command(&[&["HSET", key][..], &fields[..]].concat()).await;
    let stage = Stage::new();
    let instance = build(&ground, "a", &stage, "1", "0 9 * * *");
    let diary = Diary::of_the_start(&instance);
    let instance = instance.await.unwrap();
    leads(&instance, "edited").await;
    has_in_force(&instance, NINE).await;
    let ledger = ledger(&instance).await;
    assert_eq!(ledger.counts.len(), 0, "nothing can be counted");
    let earlier = &ledger.schedules[0];
    assert_eq!(
        (earlier.schedule.text.as_str(), earlier.schedule.version.as_str()),
        (text, "9.0")
    );
    assert_eq!(ledger.schedule.unwrap().since, Some(earlier.until));
    let unreadable = |event: &Event| match event {
        Event::ScheduleUnreadable { schedule, .. } => Some(schedule.clone()),
        _ => None,
    };
    diary.shows("it is told of once", unreadable, [text.to_owned()]).await;
    instance.shutdown().await;
}

/// The store loses the job while its leader lives: what the leader knows goes on, and is written again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_that_the_store_has_lost_is_written_again_and_no_tick_is_eaten() {
    let _among = among_others().await;
    let ground = Ground::redis().await;
    let Ground::Redis(server) = &ground else { unreachable!() };
    let stage = Stage::new();
    let instance = ground.instance("a", &stage, ["steady"]).await.unwrap();
    let diary = Diary::of(&instance);
    stage.has_played("steady", 2).await;
    let key = "{leader:steady}:job:steady";
    server.command(&["DEL", key]).await;
    let before = stage.played("steady").len();
    stage.has_played("steady", before + 2).await;
    let kept = instance.ledger("steady").await.unwrap().schedule.unwrap();
    assert_eq!((kept.text.as_str(), kept.by.as_str()), ("every 1s", "a"));
    // Older data, as after a fail-over: the leader reads it, and brings its own into force again.
    server.command(&["HSET", key, "schedule", "every 2s"]).await;
    eventually(SOON, "it is changed back", || async {
        changes(&diary) == [("every 2s".to_owned(), "every 1s".to_owned())]
    })
    .await;
    let before = stage.played("steady").len();
    stage.has_played("steady", before + 2).await;
    let ticks: Vec<_> = stage
        .played("steady")
        .iter()
        .map(|played| played.scheduled_at)
        .collect();
    assert!(ticks.is_sorted_by(|a, b| a < b), "{ticks:?}");
    instance.shutdown().await;
}

async fn a_run_that_blocks_its_thread_is_told_of_once(ground: Ground) {
    let stage = Stage::new();
    stage.part("bounded", |_| async {
        std::thread::sleep(ms(2_500));
        tokio::task::yield_now().await;
        Ok(())
    });
    let instance = ground.instance("a", &stage, ["bounded"]).drain(ms(500)).await.unwrap();
    let diary = Diary::of(&instance);
    let stuck = |event: &Event| match event {
        Event::RunStuck { asked_ago, fence, .. } => Some((*asked_ago, *fence)),
        _ => None,
    };
    let (asked_ago, fence) = diary.tells("it is stuck", stuck).await;
    assert!((ms(500)..ms(1_500)).contains(&asked_ago), "{asked_ago:?}");
    eventually(SOON, "it is shown", || async { instance.load().stuck == 1 }).await;
    stage.part("bounded", |_| async { Ok(()) });
    eventually(SOON, "it has ended", || async { instance.load().stuck == 0 }).await;
    assert_eq!(diary.pick(stuck).iter().filter(|(_, other)| *other == fence).count(), 1);
    instance.shutdown().await;
}

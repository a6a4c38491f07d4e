//! What many instances in many groups ask of one server: while nothing happens, and when a group falls vacant.
//!
//! `cargo bench -p leader-tests --bench herd` takes about two minutes; `-- --instances 100 --groups 100 --seconds 60` are the
//! defaults.
#![allow(clippy::cast_precision_loss, reason = "counts far below 2^52")]

#[path = "../../fleet/herd/commands.rs"]
mod commands;
#[path = "../../fleet/herd/crowd.rs"]
mod crowd;
#[path = "../../fleet/herd/naive.rs"]
mod naive;
#[path = "../../fleet/herd/vacancy.rs"]
mod vacancy;

use std::time::{Duration, Instant};

use leader_core::Timing;
use leader_tests::RedisServer;

use commands::{Commands, check_the_count};
use crowd::{Crowd, Plan};
use vacancy::Vacancy;

/// How many naive instances are measured for all of them, and for how long at the most.
const NAIVE: usize = 5;
const NAIVE_SPAN: Duration = Duration::from_secs(20);
/// The aims.
const AIM_SHARE: f64 = 30.0;
const AIM_CAMPAIGNS: usize = 100;

#[derive(Clone, Copy)]
struct Options {
    instances: usize,
    groups: usize,
    seconds: u64,
}

fn options() -> Options {
    let mut options = Options {
        instances: 100,
        groups: 100,
        seconds: 60,
    };
    // Cargo itself adds `--bench`.
    let mut words = std::env::args().skip(1).filter(|word| word != "--bench");
    while let Some(word) = words.next() {
        let value = words.next().unwrap_or_default();
        let number = || value.parse().ok().filter(|number| *number > 0);
        match (word.as_str(), number()) {
            ("--instances", Some(number)) => options.instances = number,
            ("--groups", Some(number)) => options.groups = number,
            ("--seconds", Some(number)) => options.seconds = number as u64,
            _ => panic!("unknown: `{word} {value}`; write --instances N, --groups N, --seconds N"),
        }
    }
    options
}

fn main() {
    let options = options();
    let timing = Timing::default();
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let server = RedisServer::start().await;
        check_the_count(&server).await;
        at_rest(&server, options, timing).await;
        vacancies(&server, options.instances, timing).await;
    });
}

fn plan(namespace: &'static str, instances: usize, groups: usize, timing: Timing) -> Plan {
    Plan {
        namespace,
        instances,
        groups,
        timing,
        settings: |bootstrap| bootstrap,
    }
}

/// A fleet to which nothing happens.
async fn at_rest(server: &RedisServer, options: Options, timing: Timing) {
    let Options {
        instances,
        groups,
        seconds,
    } = options;
    println!(
        "{instances} instances × {groups} groups, TTL {:?}, renewed each {:?}",
        timing.ttl(),
        timing.renew()
    );
    let began = Instant::now();
    let before = Commands::until_now(server).await;
    let crowd = Crowd::start(server, plan("herd", instances, groups, timing)).await;
    let took = began.elapsed();
    let starting = Commands::until_now(server).await.since(&before);
    println!(
        "start: {took:.1?} until every group was led and everybody knew by whom, {} commands",
        starting.sent()
    );
    // The looks of a fleet that started at one moment come together at first.
    tokio::time::sleep(2 * timing.ttl()).await;

    let yardstick = RedisServer::start().await;
    let span = Duration::from_secs(seconds);
    let (before, began) = (Commands::until_now(server).await, Instant::now());
    let polling = naive::per_instance(&yardstick, NAIVE, groups, timing, NAIVE_SPAN.min(span));
    let (naive, ()) = tokio::join!(polling, tokio::time::sleep(span));
    let counted = Commands::until_now(server).await.since(&before);
    let took = began.elapsed().as_secs_f64();
    let led = crowd
        .groups
        .iter()
        .filter(|group| crowd.leader(group).is_some())
        .count();
    let leads = |instance: &&leader_core::Instance| crowd.groups.iter().any(|group| instance.is_leader(group));
    let leaders = crowd.instances.iter().filter(leads).count();
    println!("{led} of {groups} groups are led, by {leaders} of {instances} instances");
    crowd.shutdown().await;

    let ours = counted.sent() as f64 / took;
    println!("at rest: {ours:.1} commands/s from clients over {took:.1} s ({counted})");
    println!("  counted: {counted:?}");
    // Only the instances name their connections.
    let opened = counted.of("client|setname");
    if opened > 0 {
        println!("  disturbed: {opened} connections were opened anew; a machine that is busy otherwise does that");
    }
    println!(
        "  each second {:.1} leases renewed, {:.1} roster lines, {:.1} leases of others looked at: {:.2} by each standby of a group and TTL",
        counted.renewals() as f64 / took,
        counted.enrolments() as f64 / took,
        counted.looks() as f64 / took,
        counted.looks() as f64 / took * timing.ttl().as_secs_f64() / ((instances - 1) * groups).max(1) as f64,
    );
    let computed = (instances * groups) as f64 / timing.renew().as_secs_f64();
    let measured = naive * instances as f64;
    println!(
        "the naive way, one command for each instance, group and renewal interval: computed {computed:.1} commands/s"
    );
    println!(
        "  measured {measured:.1} commands/s: {NAIVE} instances on a server of their own sent {naive:.1} each, scaled to {instances}"
    );
    println!(
        "  ours is 1/{:.1} of the computed, 1/{:.1} of the measured | aim 1/{AIM_SHARE}",
        computed / ours,
        measured / ours
    );
}

/// One group whose leader goes, before everybody.
async fn vacancies(server: &RedisServer, standbys: usize, timing: Timing) {
    println!("\none group, {standbys} standbys");
    let mut crowd = Crowd::start(server, plan("vacancy", standbys + 1, 1, timing)).await;
    let stepped = vacancy::step_down(server, &crowd).await;
    // The old leader joins in again after its cool-down.
    tokio::time::sleep(timing.cool_down()).await;
    let calm = vacancy::calm(server, timing).await;
    println!("calm: {calm:.1} commands/s");
    print("step-down, from the release", &stepped, calm);
    let killed = vacancy::kill(server, "vacancy", &mut crowd).await;
    print("kill, from the lease's end", &killed, calm);
    let before_end = killed.all.sent() - killed.race.sent();
    println!(
        "  from the kill: led again after {:.1?}; {before_end} commands before the lease's end",
        killed.took
    );
    crowd.shutdown().await;
}

fn print(what: &str, vacancy: &Vacancy, calm: f64) {
    println!(
        "{what}: led again after {:.1?}; everybody knew within {:.0?}; {} commands ({}), of which calm brings {:.1}; {} campaigns | aim {AIM_CAMPAIGNS}",
        vacancy.beyond,
        vacancy.race_took,
        vacancy.race.sent(),
        vacancy.race,
        calm * vacancy.race_took.as_secs_f64(),
        vacancy.campaigns(),
    );
}

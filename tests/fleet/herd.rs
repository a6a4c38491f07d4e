//! Many standbys on one server: what they ask of it, and how soon one of them leads. A short run of the bench `herd`.
#![allow(clippy::cast_precision_loss, reason = "counts far below 2^52")]

mod commands;
mod crowd;
mod naive;
mod vacancy;

use leader_core::Timing;
use leader_tests::RedisServer;

use super::stage::{Stage, alone, ms};
use commands::{Commands, check_the_count};
use crowd::{Crowd, Plan};

const INSTANCES: usize = 40;

fn plan(namespace: &'static str, instances: usize, groups: usize, timing: Timing) -> Plan {
    Plan {
        namespace,
        instances,
        groups,
        timing,
        settings: |bootstrap| bootstrap.state(Stage::new()),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_of_many_standbys_leads_as_promised_and_the_others_ask_little() {
    let _alone = alone().await;
    let timing = Timing::from_ttl(ms(2_000));
    let server = RedisServer::start().await;
    check_the_count(&server).await;
    let mut crowd = Crowd::start(&server, plan("vacancy", INSTANCES + 1, 1, timing)).await;

    let stepped = vacancy::step_down(&server, &crowd).await;
    let calm = vacancy::calm(&server, timing).await;
    let killed = vacancy::kill(&server, "vacancy", &mut crowd).await;
    crowd.shutdown().await;
    for (what, vacancy, promise) in [
        ("released", &stepped, ms(100)),
        ("killed", &killed, timing.ttl() + ms(500)),
    ] {
        println!(
            "{what}: led again after {:?}, {:?} of it vacant; {} commands, {} campaigns of {INSTANCES} standbys in {:?}; calm: {calm:.1} commands/s",
            vacancy.took,
            vacancy.beyond,
            vacancy.all.sent(),
            vacancy.campaigns(),
            vacancy.race_took
        );
        assert!(vacancy.took <= promise, "{vacancy:?}");
        // One each, and for a few a second one: who came between two others' answers.
        assert!(vacancy.campaigns() <= 2 * INSTANCES as u64, "{vacancy:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fleet_at_rest_asks_less_than_half_of_what_polling_would() {
    const GROUPS: usize = 20;
    let _alone = alone().await;
    let timing = Timing::from_ttl(ms(4_000));
    let server = RedisServer::start().await;
    check_the_count(&server).await;
    let crowd = Crowd::start(&server, plan("herd", INSTANCES, GROUPS, timing)).await;
    // The looks of a fleet that started at one moment come together at first.
    tokio::time::sleep(timing.ttl()).await;
    let span = 2 * timing.ttl();
    let yardstick = RedisServer::start().await;
    let before = Commands::until_now(&server).await;
    let naive = naive::per_instance(&yardstick, 4, GROUPS, timing, span).await;
    let counted = Commands::until_now(&server).await.since(&before);
    assert!(crowd.groups.iter().all(|group| crowd.leader(group).is_some()));
    crowd.shutdown().await;
    let (ours, polling) = (counted.sent() as f64 / span.as_secs_f64(), naive * INSTANCES as f64);
    println!(
        "{ours:.1} commands/s, polling {polling:.1}; {} leases looked at in {span:?}",
        counted.looks()
    );
    assert!(counted.renewals() > 0 && counted.enrolments() > 0, "{counted:?}");
    assert!(ours < polling / 2.0, "{counted:?}");
}

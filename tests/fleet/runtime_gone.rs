//! The runtime of the bodies is gone while its instances live: nothing is believed, and leases are given back within one bound.

use std::time::Duration;

use leader_core::{Event, Instance, Lost, Timing};
use leader_tests::eventually;
use tokio::runtime::{Builder, Runtime};

use crate::stage::{Ground, SOON, Stage, Stopwatch, among_others, leads, ms};

const TTL: Duration = Duration::from_secs(4);
/// Each leads a group of its own.
const GROUPS: [&str; 6] = ["one", "two", "three", "four", "five", "six"];
/// How long a runtime's end may take, whatever the store does: 250 ms, and what a busy machine adds.
const BOUND: Duration = Duration::from_millis(500);

fn runtime(workers: usize) -> Runtime {
    let mut builder = match workers {
        0 => Builder::new_current_thread(),
        _ => Builder::new_multi_thread(),
    };
    if workers > 0 {
        builder.worker_threads(workers);
    }
    builder.enable_all().build().unwrap()
}

/// As many instances as there are groups, on one runtime.
fn fleet(doomed: &Runtime, ground: &Ground) -> Vec<Instance> {
    doomed.block_on(async {
        let mut instances = Vec::new();
        for group in GROUPS {
            let instance = ground
                .instance(group, &Stage::new(), [group])
                .timing(Timing::from_ttl(TTL))
                .await
                .unwrap();
            leads(&instance, group).await;
            instances.push(instance);
        }
        instances
    })
}

fn none_leads(instances: &[Instance]) {
    for (instance, group) in instances.iter().zip(GROUPS) {
        assert!(!instance.is_leader(group), "{group}");
    }
}

#[test]
fn a_runtime_with_several_instances_gives_all_their_leases_back() {
    let watching = runtime(2);
    let _among = watching.block_on(among_others());
    for workers in [0, 2] {
        let ground = Ground::embedded();
        let doomed = runtime(workers);
        let instances = fleet(&doomed, &ground);
        let mut events: Vec<_> = instances.iter().map(Instance::events).collect();
        let standby = watching.block_on(async {
            let timing = Timing::from_ttl(TTL);
            let standby = ground.instance("b", &Stage::new(), GROUPS).timing(timing);
            standby.await.unwrap()
        });
        let watch = Stopwatch::start();
        drop(doomed);
        watch.within(BOUND, "the end of the runtime");
        none_leads(&instances);
        watching.block_on(async {
            for group in GROUPS {
                let took = eventually(SOON, "the other leads", || async { standby.is_leader(group) }).await;
                assert!(took < ms(1_000), "given back, not ended: {took:?}");
            }
            for (instance, events) in instances.iter().zip(&mut events) {
                tokio::time::timeout(SOON, instance.shutdown())
                    .await
                    .expect("it has stopped");
                let mut reasons = Vec::new();
                while let Ok(stamped) = events.recv().await {
                    if let Event::Lost { reason, .. } = stamped.event {
                        reasons.push(reason);
                    }
                }
                assert_eq!(reasons, [Lost::RuntimeGone]);
            }
            standby.shutdown().await;
        });
    }
}

/// One bound for all of them, not one after the other.
#[test]
fn several_instances_on_a_store_that_hangs_share_one_bound() {
    let watching = runtime(2);
    let _among = watching.block_on(among_others());
    for workers in [0, 2] {
        let ground = watching.block_on(Ground::redis());
        let Ground::Redis(server) = &ground else { unreachable!() };
        let doomed = runtime(workers);
        let instances = fleet(&doomed, &ground);
        server.pause();
        let watch = Stopwatch::start();
        drop(doomed);
        let took = watch.within(BOUND, "the end of the runtime");
        println!("{workers} workers, {} instances, no store: {took:?}", GROUPS.len());
        none_leads(&instances);
        watching.block_on(async {
            for instance in &instances {
                tokio::time::timeout(SOON, instance.shutdown())
                    .await
                    .expect("it has stopped");
            }
        });
        server.resume();
    }
}

/// The end of one instance, or of a runtime beside, touches no other.
#[test]
fn what_lives_on_another_runtime_leads_on() {
    let (watching, doomed, other) = (runtime(2), runtime(2), runtime(0));
    let _among = watching.block_on(among_others());
    let ground = Ground::embedded();
    let instances = fleet(&doomed, &ground);
    let start = |group: &'static str| {
        let instance = ground
            .instance("b", &Stage::new(), [group])
            .timing(Timing::from_ttl(TTL));
        other.block_on(async {
            let instance = instance.await.unwrap();
            leads(&instance, group).await;
            instance
        })
    };
    let (stops, lives) = (start("stops"), start("lives"));
    other.block_on(stops.shutdown());
    assert!(lives.is_leader("lives"));
    for (instance, group) in instances.iter().zip(GROUPS) {
        assert!(instance.is_leader(group));
    }
    drop(doomed);
    none_leads(&instances);
    other.block_on(async {
        tokio::time::sleep(TTL).await;
        assert!(lives.is_leader("lives"));
        lives.shutdown().await;
    });
}

//! Twenty instances that race for the ticks of one job while links stall and processes die.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use leader_core::{Instance, Outcome, Ran, Timing, testing};
use leader_tests::dice::{Dice, seed};
use leader_tests::{Direction, Proxy, RedisServer, eventually};

use crate::stage::{Ground, SOON, Stage, alone, ms};

const INSTANCES: usize = 20;
const SPAN: Duration = Duration::from_secs(20);
const TTL: Duration = Duration::from_millis(1_500);

/// One start of a body, and when it was last polled.
#[derive(Clone, Debug)]
struct Body {
    tick: Timestamp,
    fence: u64,
    attempt: u32,
    began: Instant,
    polled: Instant,
    done: bool,
}

type Bodies = Arc<Mutex<Vec<Body>>>;

struct Racer {
    instance: Instance,
    proxy: Proxy,
    heals_at: Option<Instant>,
}

async fn racer(server: &RedisServer, stage: &Stage, id: usize) -> Racer {
    let proxy = Proxy::start(server.port()).await;
    let instance = Ground::instance_at(&proxy.url(), &format!("racer-{id}"), stage, ["any"]);
    Racer {
        instance: instance.timing(Timing::from_ttl(TTL)).await.unwrap(),
        proxy,
        heals_at: None,
    }
}

/// A body that takes so long as chance has it, and says when it was polled.
fn part(stage: &Stage, bodies: &Bodies, dice: &Arc<Mutex<Dice>>) {
    let (kept, chance) = (Arc::clone(bodies), Arc::clone(dice));
    stage.part("anywhere", move |tick| {
        let bodies = Arc::clone(&kept);
        let takes = chance.lock().unwrap().span(ms(0), ms(1_200));
        async move {
            let began = Instant::now();
            let at = {
                let mut bodies = bodies.lock().unwrap();
                bodies.push(Body {
                    tick: tick.scheduled_at(),
                    fence: tick.fence(),
                    attempt: tick.attempt(),
                    began,
                    polled: began,
                    done: false,
                });
                bodies.len() - 1
            };
            while began.elapsed() < takes {
                tokio::time::sleep(ms(2)).await;
                bodies.lock().unwrap()[at].polled = Instant::now();
            }
            bodies.lock().unwrap()[at].done = true;
            Ok(())
        }
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_tick_has_one_outcome_and_no_two_runs_are_at_once() {
    let _alone = alone().await;
    let server = RedisServer::start().await;
    let seed = seed();
    let dice = Arc::new(Mutex::new(Dice::new(seed)));
    let bodies = Bodies::default();
    let stage = Stage::new();
    part(&stage, &bodies, &dice);
    let mut fleet = Vec::new();
    for id in 0..INSTANCES {
        fleet.push(racer(&server, &stage, id).await);
    }
    let roll = |below: u64| dice.lock().unwrap().below(below);
    let (mut stalls, mut cuts, mut kills) = (0, 0, 0);
    let began = Instant::now();
    while began.elapsed() < SPAN {
        // The length between two faults.
        tokio::time::sleep(ms(150 + roll(350))).await;
        for racer in &mut fleet {
            if racer.heals_at.is_some_and(|at| Instant::now() >= at) {
                racer.proxy.heal();
                racer.heals_at = None;
            }
        }
        let at = usize::try_from(roll(INSTANCES as u64)).unwrap();
        // Often whoever runs the job just now: the others have little to lose.
        let running = fleet.iter().position(|racer| racer.instance.load().running > 0);
        let at = running.filter(|_| roll(3) == 0).unwrap_or(at);
        match roll(4) {
            0 | 1 => {
                let directions = [Direction::ToServer, Direction::Both];
                fleet[at].proxy.stall(directions[usize::try_from(roll(2)).unwrap()]);
                fleet[at].heals_at = Some(Instant::now() + ms(500 + roll(2_500)));
                stalls += 1;
            }
            2 => {
                fleet[at].proxy.cut();
                cuts += 1;
            }
            _ => {
                testing::kill(&fleet[at].instance);
                kills += 1;
                fleet[at] = racer(&server, &stage, INSTANCES + kills).await;
            }
        }
    }
    for racer in &mut fleet {
        racer.proxy.heal();
    }
    let reader = Ground::instance_at(&server.url(), "reader", &stage, ["any"]);
    let reader = reader.campaign(false).await.unwrap();
    let last = reader.ledger("anywhere").await.unwrap().cursor.unwrap();
    eventually(SOON, "ticks after the last fault", || async {
        let ledger = reader.ledger("anywhere").await.unwrap();
        ledger.cursor.unwrap() >= last + jiff::SignedDuration::from_secs(4)
    })
    .await;
    // Everything that fell due has one outcome, or is pending.
    let ledger = reader.ledger("anywhere").await.unwrap();
    let (since, cursor) = (ledger.since.unwrap(), ledger.cursor.unwrap());
    let due = reader.count_ticks("anywhere", since, cursor).unwrap();
    assert_eq!(ledger.decided() + ledger.pending(), due, "seed {seed}: {ledger:?}");
    let mut covered = BTreeMap::<Timestamp, u32>::new();
    for record in ledger.records.iter().filter(|record| record.count == 1) {
        *covered.entry(record.first).or_default() += 1;
    }
    assert!(covered.values().all(|records| *records == 1), "seed {seed}: {ledger:?}");
    for racer in fleet {
        racer.instance.shutdown().await;
    }
    reader.shutdown().await;
    let mut bodies = bodies.lock().unwrap().clone();
    bodies.sort_by_key(|body| body.began);
    for pair in bodies.windows(2) {
        assert!(
            pair[0].polled <= pair[1].began && pair[0].fence < pair[1].fence && pair[0].tick <= pair[1].tick,
            "seed {seed}: two at once: {pair:?}"
        );
    }
    let mut done = BTreeMap::<Timestamp, u32>::new();
    for body in bodies.iter().filter(|body| body.done) {
        *done.entry(body.tick).or_default() += 1;
    }
    // A result that could not be told in time may be done a second time, which its fence shows; never more.
    let again = done.values().filter(|times| **times > 1).count();
    let retaken = bodies.iter().filter(|body| body.attempt > 1).count();
    let ok = ledger.counts.get(&Outcome::Ran(Ran::Ok)).copied().unwrap_or_default();
    println!(
        "seed {seed}: {due} ticks, {} bodies, {ok} recorded as ok, {retaken} taken again, {again} done twice; {stalls} stalls, {cuts} cuts, \
         {kills} kills; {:?}",
        bodies.len(),
        ledger.counts
    );
    // How many are spoilt is chance: that some are not, and that there was something to bear.
    assert!(ok >= 2 && stalls + cuts + kills >= 20, "seed {seed}: {ledger:?}");
}

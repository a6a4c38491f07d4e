//! Tasks that are due at one instant, until all have been executed; a steady flow of them; few among many; and an outage's worth.
//!
//! `cargo bench -p leader-tests --bench tasks` takes some three minutes and stops by itself: 50,000 tasks at once beside other queues, which it builds first (a
//! package of their own), and beside a bare script and stream loop on the same server, then a steady flow of 5,000 a second for 5 s. `-- --alone`
//! leaves the other queues out and takes half a minute. `-- --steady` takes that flow for 20 s, `-- --pending` has a thousand due among ten
//! thousand and among ten million (which takes 4 GB and some minutes), and `-- --outage` lets three processes drain two million overdue tasks.

mod at_once;
mod bare;
mod meter;
mod outage;
mod peers;
mod pending;
mod steady;

use std::time::Duration;

use leader_tests::RedisServer;
use meter::median;
use peers::Peer;

/// How many tasks are due at one instant.
const AT_ONCE: u32 = 50_000;
/// Each is measured so often.
const ROUNDS: usize = 3;

fn main() {
    // Cargo itself adds `--bench`.
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    match words.as_slice() {
        ["--alone"] => runtime.block_on(async {
            let server = RedisServer::start().await;
            all_at_once(&server, Vec::new()).await;
            steady::run(&server, Duration::from_secs(5)).await;
        }),
        ["--steady"] => runtime.block_on(async {
            let server = RedisServer::start().await;
            steady::run(&server, Duration::from_secs(20)).await;
        }),
        [] => runtime.block_on(async {
            let peers = peers::prepare();
            let server = RedisServer::start().await;
            all_at_once(&server, peers).await;
            steady::run(&server, Duration::from_secs(5)).await;
        }),
        ["--pending"] => runtime.block_on(pending::run()),
        ["--outage"] => runtime.block_on(outage::run()),
        ["worker", id, url] => runtime.block_on(outage::work(id, url)),
        other => panic!(
            "unknown: `{}`; write --alone, --steady, --pending, --outage or nothing",
            other.join(" ")
        ),
    }
}

/// What the rounds of one queue have given, each beside the floor of the same seconds.
#[derive(Default)]
struct Rounds {
    rates: Vec<f64>,
    ratios: Vec<f64>,
}

impl Rounds {
    fn print(mut self, name: &str, tasks: u32) {
        let (rate, percent) = (median(&mut self.rates), 100.0 * median(&mut self.ratios));
        let few = if tasks == AT_ONCE {
            String::new()
        } else {
            format!("; it got {tasks} tasks, because many more at once make it fail")
        };
        println!("  {name:<26} {rate:>9.0} a second, {percent:>5.1} % of the bare loop{few}");
    }
}

/// Each run of a queue between two of the floor, because the machine's speed drifts.
async fn all_at_once(server: &RedisServer, peers: Vec<Peer>) {
    println!("{AT_ONCE} no-op tasks with 100 bytes each, due at one instant, until all have been executed");
    let mut floor = vec![bare::run(server, AT_ONCE).await];
    let mut ours = Rounds::default();
    let mut others: Vec<_> = peers.into_iter().map(|peer| (peer, Rounds::default())).collect();
    for _ in 0..ROUNDS {
        let rate = at_once::run(server, AT_ONCE).await;
        beside(server, &mut floor, &mut ours, rate).await;
        for (peer, rounds) in &mut others {
            let rate = peer.run(server).await;
            beside(server, &mut floor, rounds, rate).await;
        }
    }
    println!(
        "  {:<26} {:>9.0} a second",
        "bare script + stream loop",
        median(&mut floor)
    );
    ours.print("leader-core", AT_ONCE);
    for (peer, rounds) in others {
        rounds.print(peer.name, peer.tasks);
    }
}

/// Runs the floor once more, and notes a rate beside what it was before and after.
async fn beside(server: &RedisServer, floor: &mut Vec<f64>, rounds: &mut Rounds, rate: f64) {
    let before = floor[floor.len() - 1];
    let after = bare::run(server, AT_ONCE).await;
    floor.push(after);
    rounds.rates.push(rate);
    rounds.ratios.push(rate / f64::midpoint(before, after));
}

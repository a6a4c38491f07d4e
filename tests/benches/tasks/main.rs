//! Tasks that are due at one instant, until all have been executed; a steady flow of them; few among many; and an outage's worth.
//!
//! `cargo bench --bench tasks` takes about half a minute and stops by itself: 50,000 tasks at once beside a bare script and stream loop on the same
//! server, and a steady flow of 5,000 a second for 5 s. `-- --steady` takes that flow for 20 s, `-- --pending` has a thousand due among ten thousand and
//! among ten million (which takes 4 GB and some minutes), and `-- --outage` lets three processes drain two million overdue tasks.

mod at_once;
mod bare;
mod meter;
mod outage;
mod pending;
mod steady;

use std::time::Duration;

use leader_tests::RedisServer;
use meter::median;

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
        [] => runtime.block_on(async {
            let server = RedisServer::start().await;
            all_at_once(&server).await;
            steady::run(&server, Duration::from_secs(5)).await;
        }),
        ["--steady"] => runtime.block_on(async {
            let server = RedisServer::start().await;
            steady::run(&server, Duration::from_secs(20)).await;
        }),
        ["--pending"] => runtime.block_on(pending::run()),
        ["--outage"] => runtime.block_on(outage::run()),
        ["worker", id, url] => runtime.block_on(outage::work(id, url)),
        other => panic!(
            "unknown: `{}`; write --steady, --pending, --outage or nothing",
            other.join(" ")
        ),
    }
}

/// Each round of ours between two of the floor, because the machine's speed drifts.
async fn all_at_once(server: &RedisServer) {
    println!("{AT_ONCE} no-op tasks with 100 bytes each, due at one instant, until all have been executed");
    let (mut floor, mut ours, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    let mut before = bare::run(server, AT_ONCE).await;
    for _ in 0..ROUNDS {
        let rate = at_once::run(server, AT_ONCE).await;
        let after = bare::run(server, AT_ONCE).await;
        let beside = f64::midpoint(before, after);
        floor.push(beside);
        ours.push(rate);
        ratios.push(rate / beside);
        before = after;
    }
    println!("  bare script + stream loop  {:>9.0} a second", median(&mut floor));
    println!("  leader-core                {:>9.0} a second", median(&mut ours));
    println!("  of the bare loop           {:>8.0} %", 100.0 * median(&mut ratios));
}

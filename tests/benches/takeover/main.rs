//! How soon a group is led again after its leader was told to stop (SIGTERM), and after it was killed (SIGKILL): real processes on
//! a real server, at a TTL of 2 s.
//!
//! A fleet loses leader after leader and gets a new process for each, so the standbys that stay are those that look last: the
//! figures lean to the slow side.
//!
//! `cargo bench -p leader-tests --bench takeover` takes about a minute; `-- --count 20` is shorter.

#[path = "../../processes/fleet.rs"]
#[allow(dead_code, reason = "the suite uses the rest")]
mod fleet;
#[path = "../../processes/programs.rs"]
#[allow(dead_code, reason = "the suite uses the rest")]
mod programs;
#[path = "../../processes/stalls.rs"]
mod stalls;
#[path = "../../processes/takeovers.rs"]
mod takeovers;

use std::sync::Arc;
use std::time::Duration;

use leader_tests::{RedisServer, seed};

use fleet::TTL;
use takeovers::{AFTER_KILL, AFTER_RELEASE, Takeover, Way, percentiles, takeovers};

/// The fleets side by side.
const FLEETS: usize = 6;
/// The aims; the promises are wider.
const AIM_AFTER_RELEASE: Duration = Duration::from_millis(20);
const AIM_AFTER_KILL: Duration = Duration::from_millis(2250);

fn count() -> usize {
    let mut count = 100;
    // Cargo itself adds `--bench`.
    let mut words = std::env::args().skip(1).filter(|word| word != "--bench");
    while let Some(word) = words.next() {
        let value = words.next().unwrap_or_default();
        match (word.as_str(), value.parse()) {
            ("--count", Ok(number)) if number > 0 => count = number,
            _ => panic!("unknown: `{word} {value}`; write --count N"),
        }
    }
    count
}

fn main() {
    let (count, seed) = (count(), seed());
    println!(
        "{count} takeovers of each kind, {FLEETS} fleets of 3 processes side by side, TTL {TTL:?}, LEADER_CHAOS_SEED={seed}"
    );
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        // Builds the program if need be, before any clock runs.
        let _ = programs::program("node");
        let server = Arc::new(RedisServer::start().await);
        let stopped = takeovers(&server, Way::Stopped, FLEETS, count, seed).await;
        let took = |one: &Takeover| one.took;
        print(
            "SIGTERM: release → led again",
            &stopped,
            took,
            Some((AIM_AFTER_RELEASE, AFTER_RELEASE)),
        );
        let killed = takeovers(&server, Way::Killed, FLEETS, count, seed).await;
        print(
            "SIGKILL: kill → led again",
            &killed,
            took,
            Some((AIM_AFTER_KILL, AFTER_KILL)),
        );
        print("  of this, the rest of the lease", &killed, |one| one.rest, None);
        print("  and beyond the lease's own end", &killed, |one| one.beyond, None);
    });
}

fn print(what: &str, all: &[Takeover], of: fn(&Takeover) -> Duration, bounds: Option<(Duration, Duration)>) {
    let [p50, p99, most] = percentiles(all.iter().map(of).collect()).map(|took| took.as_secs_f64() * 1000.0);
    print!("{what:<34} p50 {p50:8.2}  p99 {p99:8.2}  max {most:8.2} ms");
    if let Some((aim, promise)) = bounds {
        let beyond_aim = all.iter().filter(|one| of(one) > aim).count();
        print!(
            " | aim {aim:?}: {beyond_aim} of {} above it | promise {promise:?} (p99)",
            all.len()
        );
    }
    println!();
    if let Some((aim, _)) = bounds {
        let mut slow: Vec<_> = all.iter().filter(|one| of(one) > aim).collect();
        slow.sort_by_key(|one| std::cmp::Reverse(of(one)));
        for one in slow.iter().take(5) {
            println!("    above the aim: {one}");
        }
    }
}

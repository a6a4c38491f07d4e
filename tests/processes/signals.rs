//! Signals that end a program, and one that is not obeyed at once.

use std::process::Command;
use std::time::Duration;

use leader_tests::{RedisServer, eventually};
use rustix::process::Signal;

use crate::programs::{Process, program};

const SOON: Duration = Duration::from_secs(20);

/// A node that leads at once.
fn node(server: &RedisServer, namespace: &str, ttl: &str) -> Command {
    let mut command = Command::new(program("node"));
    command.args(["--store", &server.url(), "--id", "node-1", "--first-start"]);
    command.args(["--namespace", namespace, "--ttl", ttl]);
    command
}

/// The first signal asks for a drain and a release, which a store that hangs holds up; the second does not wait for that.
#[tokio::test]
async fn a_second_signal_ends_the_process_at_once() {
    let server = RedisServer::start().await;
    // What the first has still sent may be executed when the server goes on: each has keys of its own.
    for (second, namespace) in [(Signal::TERM, "signals-1:"), (Signal::INT, "signals-2:")] {
        let mut node = Process::start("node", &mut node(&server, namespace, "30s"));
        let elected = |line: &str| line.contains(r#""event":"elected""#);
        node.says(SOON, "it leads", elected).await;
        let listens = || async { node.catches(Signal::TERM) && node.catches(Signal::INT) };
        eventually(SOON, "it listens to signals", listens).await;
        server.pause();
        node.signal(Signal::TERM);
        let obeys = |line: &str| line.contains("a second signal ends the process at once");
        node.logs(SOON, "it obeys", obeys).await;
        node.signal(second);
        // The release of a lease of 30 s is tried for 3 s.
        let status = node.ended(Duration::from_secs(1)).await;
        assert_eq!(status.code(), Some(130), "{status}");
        server.resume();
    }
}

/// A body that blocks the program's only thread keeps it from hearing anything: the signals are obeyed all the same.
#[tokio::test]
async fn signals_are_obeyed_under_a_blocked_runtime() {
    let server = RedisServer::start().await;
    let mut node = Process::start("node", node(&server, "blocked", "2s").args(["--block", "60s"]));
    let wedged = |line: &str| line.contains("has run nothing for one TTL");
    node.logs(SOON, "it is blocked", wedged).await;
    node.signal(Signal::TERM);
    let left = |line: &str| line.contains("instance left its fleet");
    node.logs(SOON, "it leaves its fleet", left).await;
    node.signal(Signal::TERM);
    let status = node.ended(Duration::from_secs(2)).await;
    assert_eq!(status.code(), Some(130), "{status}");
}

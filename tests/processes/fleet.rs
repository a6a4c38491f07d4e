//! Several `node` processes on one server, and what they have told.

use std::process::Command;
use std::time::Duration;

use leader_tests::{RedisServer, eventually};
use redis::Value;
use rustix::process::Signal;

use crate::programs::{Process, program};
use leader_tests::checker::{Ends, Line};

pub const TTL: Duration = Duration::from_secs(2);
pub const GROUPS: [&str; 3] = ["default", "cleanup", "reports"];
const NAMESPACE: &str = "processes:";

/// `CLOCK_MONOTONIC`, as the nodes read it.
pub fn mono() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    u64::try_from(time.tv_sec * 1_000_000_000 + time.tv_nsec).expect("after boot")
}

/// The time from one instant to another; zero when it is not later.
pub fn between(from: u64, to: u64) -> Duration {
    Duration::from_nanos(to.saturating_sub(from))
}

/// One process of the fleet.
#[derive(Debug)]
struct Node {
    id: String,
    process: Process,
    alive: bool,
}

/// The processes, the dead ones included: their lines count.
#[derive(Debug)]
pub struct Fleet {
    url: String,
    nodes: Vec<Node>,
    /// When the belief of killed processes ended at the latest.
    pub ends: Ends,
}

impl Fleet {
    pub fn on(server: &RedisServer) -> Self {
        Self {
            url: server.url(),
            nodes: Vec::new(),
            ends: Ends::new(),
        }
    }

    /// Starts one more process, under a name that was not used before.
    pub fn join(&mut self, first_start: bool) {
        let id = format!("node-{}", self.nodes.len() + 1);
        let mut command = Command::new(program("node"));
        command.args([
            "--store",
            &self.url,
            "--id",
            &id,
            "--namespace",
            NAMESPACE,
            "--ttl",
            "2s",
        ]);
        if first_start {
            command.arg("--first-start");
        }
        let process = Process::start(&id, &mut command);
        self.nodes.push(Node {
            id,
            process,
            alive: true,
        });
    }

    /// Everything told so far, by time.
    pub fn lines(&self) -> Vec<Line> {
        let mut lines = Vec::new();
        for node in &self.nodes {
            let texts = node.process.out();
            for (at, text) in texts.iter().enumerate() {
                match serde_json::from_str(text) {
                    Ok(line) => lines.push(line),
                    // The last words of a killed process.
                    Err(_) if !node.alive && at + 1 == texts.len() => {}
                    Err(error) => panic!("{}: {error}: {text}", node.id),
                }
            }
        }
        lines.sort_by_key(|line: &Line| line.mono_ns);
        lines
    }

    /// Who leads a group by its own last word: an index, and when it was elected.
    fn leader_by_word(&self, group: &str) -> Option<(usize, u64)> {
        let lines = self.lines();
        let elected = lines.iter().rev().find(|line| line.is("elected", group))?;
        let lost =
            |line: &Line| line.is("lost", group) && line.instance == elected.instance && line.fence == elected.fence;
        let index = self.nodes.iter().position(|node| node.id == elected.instance)?;
        (self.nodes[index].alive && !lines.iter().any(lost)).then_some((index, elected.mono_ns))
    }

    /// Waits until a group is led by a term that began after `after`; the leader, and when it began.
    pub async fn led_after(&self, group: &str, after: u64, deadline: Duration) -> (usize, u64) {
        let mut led = None;
        eventually(deadline, &format!("`{group}` is led"), || {
            led = self.leader_by_word(group).filter(|(_, since)| *since > after);
            let is_led = led.is_some();
            async move { is_led }
        })
        .await;
        led.expect("it is led")
    }

    pub async fn leader(&self, group: &str) -> usize {
        self.led_after(group, 0, Duration::from_secs(10)).await.0
    }

    /// The groups that an instance leads by its own last word.
    pub fn led_by(&self, node: usize) -> Vec<&'static str> {
        let leads = |group: &&str| self.leader_by_word(group).is_some_and(|(leader, _)| leader == node);
        GROUPS.into_iter().filter(leads).collect()
    }

    /// Waits until each of the one-second jobs was started so many times more.
    pub async fn ticks(&self, more: usize) {
        let count = |job: &str| {
            let lines = self.lines();
            let of = |line: &&Line| line.event == "tick" && line.job.as_deref() == Some(job);
            lines.iter().filter(of).count()
        };
        for (job, group) in [("beat", "default"), ("sweep", "cleanup")] {
            let before = count(job);
            let what = format!("{more} more ticks of `{job}` in `{group}`");
            eventually(Duration::from_secs(15), &what, || {
                let enough = count(job) >= before + more;
                async move { enough }
            })
            .await;
        }
    }

    /// The instant at which an instance told of losing a group, and until when it had believed; after `after`.
    pub async fn lost_after(&self, node: usize, group: &str, after: u64, deadline: Duration) -> (u64, u64) {
        let id = &self.nodes[node].id;
        let mut lost = None;
        eventually(deadline, &format!("{id} tells of losing `{group}`"), || {
            let of = |line: &&Line| line.is("lost", group) && line.instance == *id && line.mono_ns > after;
            lost = self
                .lines()
                .iter()
                .find(of)
                .map(|line| (line.mono_ns, line.until_ns.unwrap_or(0)));
            let is_lost = lost.is_some();
            async move { is_lost }
        })
        .await;
        lost.expect("it is lost")
    }

    pub fn signal(&self, node: usize, signal: Signal) {
        self.nodes[node].process.signal(signal);
    }

    /// Kills a process, and notes how long its leases last: none of its beliefs can outlive its lease.
    pub async fn kill(&mut self, node: usize, server: &RedisServer) -> u64 {
        let led = self.led_by(node);
        let at = mono();
        self.signal(node, Signal::KILL);
        self.nodes[node].process.ended(Duration::from_secs(5)).await;
        self.nodes[node].alive = false;
        for group in led {
            let before = mono();
            let key = format!("{NAMESPACE}leader:{group}");
            let end = match server.command(&["PTTL", &key]).await {
                // Whole milliseconds, rounded; the key is there for at least so long after the question was sent.
                Value::Int(left) if left > 0 => before + u64::try_from(left - 1).unwrap_or(0) * 1_000_000,
                Value::Int(_) => at,
                other => panic!("PTTL: {other:?}"),
            };
            self.ends.insert((self.nodes[node].id.clone(), group.to_owned()), end);
        }
        at
    }

    /// Waits for the end of a process that was told to stop: it drains, exits with 0, and `stopped` is its last word.
    pub async fn stopped(&mut self, node: usize) {
        let node = &mut self.nodes[node];
        let status = node.process.ended(Duration::from_secs(20)).await;
        node.alive = false;
        assert!(status.success(), "{}: {status}", node.id);
        let last = |line: &str| line.contains(r#""event":"stopped""#);
        node.process.says(Duration::from_secs(5), "`stopped`", last).await;
        assert!(
            node.process.out().last().is_some_and(|line| last(line)),
            "{}: `stopped` is not last",
            node.id
        );
    }

    /// The processes that live.
    pub fn living(&self) -> Vec<usize> {
        (0..self.nodes.len()).filter(|node| self.nodes[*node].alive).collect()
    }
}

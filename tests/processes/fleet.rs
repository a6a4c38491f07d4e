//! Several `node` processes on one server, and what they have told.

use std::process::Command;
use std::sync::Mutex;
use std::time::Duration;

use leader_tests::{RedisServer, eventually};
use redis::Value;
use rustix::process::Signal;
use serde::de::DeserializeOwned;

use crate::programs::{Process, program};
use leader_tests::checker::{Ends, Line};

pub const TTL: Duration = Duration::from_secs(2);
pub const GROUPS: [&str; 3] = ["default", "cleanup", "reports"];
const NAMESPACE: &str = "processes";

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
    namespace: String,
    groups: Vec<&'static str>,
    /// What every process gets on its command line besides.
    options: Vec<&'static str>,
    nodes: Vec<Node>,
    told: Mutex<Told>,
    /// When the belief of killed processes ended at the latest.
    pub ends: Ends,
}

/// What was read of the processes' lines so far.
#[derive(Debug, Default)]
struct Told {
    /// How many lines of each process.
    read: Vec<usize>,
    all: Vec<Line>,
    /// Those that say who leads: asked for all the time, and few.
    leads: Vec<Line>,
}

impl Fleet {
    /// The fleet of the scenario.
    pub fn on(server: &RedisServer) -> Self {
        Self::with(server, NAMESPACE, &GROUPS, &[])
    }

    /// One of several fleets: its processes lead `groups`, and get `options` on their command line besides.
    pub fn with(server: &RedisServer, namespace: &str, groups: &[&'static str], options: &[&'static str]) -> Self {
        Self {
            url: server.url(),
            namespace: namespace.to_owned(),
            groups: groups.to_vec(),
            options: options.to_vec(),
            nodes: Vec::new(),
            told: Mutex::default(),
            ends: Ends::new(),
        }
    }

    /// Starts one more process, under a name that was not used before.
    pub fn join(&mut self, first_start: bool) {
        // Of its own in each fleet: the order in which standbys look hangs on it.
        let id = format!("{}-{}", self.namespace, self.nodes.len() + 1);
        let groups = self.groups.join(",");
        let mut command = Command::new(program("node"));
        command.args(["--store", &self.url, "--namespace", &self.namespace]);
        command.args(["--id", &id, "--ttl", "2s", "--only", &groups]);
        command.args(&self.options);
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

    /// Reads what is new, and gives what `look` finds in it all.
    fn told<T>(&self, look: impl FnOnce(&Told) -> T) -> T {
        let mut told = self.told.lock().expect("nobody panics with it");
        told.read.resize(self.nodes.len(), 0);
        for (at, node) in self.nodes.iter().enumerate() {
            let texts = node.process.out_after(told.read[at]);
            told.read[at] += texts.len();
            for (number, text) in texts.iter().enumerate() {
                match serde_json::from_str::<Line>(text) {
                    Ok(line) => {
                        if matches!(line.event.as_str(), "elected" | "lost") {
                            told.leads.push(line.clone());
                        }
                        told.all.push(line);
                    }
                    // The last words of a killed process.
                    Err(_) if !node.alive && number + 1 == texts.len() => {}
                    Err(error) => panic!("{}: {error}: {text}", node.id),
                }
            }
        }
        look(&told)
    }

    /// Everything told so far, by time.
    pub fn lines(&self) -> Vec<Line> {
        let mut lines = self.told(|told| told.all.clone());
        lines.sort_by_key(|line: &Line| line.mono_ns);
        lines
    }

    /// The lines of one event, with all that they have.
    pub fn lines_of<T: DeserializeOwned>(&self, event: &str) -> Vec<T> {
        let mark = format!(r#""event":"{event}""#);
        let texts = self.nodes.iter().flat_map(|node| node.process.out());
        let of = texts.filter(|text| text.contains(&mark));
        of.map(|text| serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}")))
            .collect()
    }

    /// Waits until every process, the dead ones included, has told of its start.
    pub async fn all_started(&self, deadline: Duration) {
        eventually(deadline, "every process has started", || {
            let started = self.told(|told| told.all.iter().filter(|line| line.event == "started").count());
            async move { started == self.nodes.len() }
        })
        .await;
    }

    /// The name of a process.
    pub fn id(&self, node: usize) -> &str {
        &self.nodes[node].id
    }

    /// Who leads a group by its own last word: an index, and when it was elected.
    pub fn leader_by_word(&self, group: &str) -> Option<(usize, u64)> {
        let (instance, since) = self.told(|told| {
            let of_group = told.leads.iter().filter(|line| line.is("elected", group));
            let elected = of_group.max_by_key(|line| line.mono_ns)?;
            let lost = |line: &Line| {
                line.is("lost", group) && line.instance == elected.instance && line.fence == elected.fence
            };
            let over = told.leads.iter().any(lost);
            (!over).then(|| (elected.instance.clone(), elected.mono_ns))
        })?;
        let index = self.nodes.iter().position(|node| node.id == instance)?;
        self.nodes[index].alive.then_some((index, since))
    }

    /// The term under which a process leads, or led, a group since an instant.
    pub fn term_of(&self, node: usize, group: &str, since: u64) -> u64 {
        let id = &self.nodes[node].id;
        let of = |line: &&Line| line.is("elected", group) && line.instance == *id && line.mono_ns == since;
        let term = self.told(|told| told.leads.iter().find(of).and_then(|line| line.fence));
        term.expect("it was elected then")
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
        self.groups.iter().copied().filter(leads).collect()
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
            lost = self.told(|told| {
                let line = told.leads.iter().filter(of).min_by_key(|line| line.mono_ns)?;
                Some((line.mono_ns, line.until_ns.unwrap_or(0)))
            });
            let is_lost = lost.is_some();
            async move { is_lost }
        })
        .await;
        lost.expect("it is lost")
    }

    pub fn signal(&self, node: usize, signal: Signal) {
        self.nodes[node].process.signal(signal);
    }

    /// Freezes a process, and waits until it stands still.
    pub async fn freeze(&self, node: usize) {
        self.signal(node, Signal::STOP);
        let node = &self.nodes[node];
        eventually(Duration::from_secs(5), &format!("{} stands still", node.id), || {
            let still = node.process.is_still();
            async move { still }
        })
        .await;
    }

    /// Kills a process, and notes how long its leases last: none of its beliefs can outlive its lease.
    pub async fn kill(&mut self, node: usize, server: &RedisServer) -> u64 {
        let led = self.led_by(node);
        let at = mono();
        self.nodes[node].alive = false;
        self.signal(node, Signal::KILL);
        self.nodes[node].process.ended(Duration::from_secs(5)).await;
        for group in led {
            let before = mono();
            let key = format!("{}:leader:{group}", self.namespace);
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

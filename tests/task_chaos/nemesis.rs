//! What is done to the processes, one thing every second.

use std::collections::BTreeMap;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use leader_core::Instance;
use leader_tests::dice::Dice;
use leader_tests::{Direction, Proxy, RedisServer, say};
use rustix::process::{Pid, Signal, kill_process};

use crate::NODES;

/// The election of the queue's only part.
const GROUP: &str = "dispatch:work:0";
/// The longest that a process is frozen, or its link is gone: longer than any lease.
const LONGEST: Duration = Duration::from_secs(5);

struct Node {
    id: String,
    proxy: Proxy,
    child: Child,
    /// When it goes on, or its link is whole again.
    frozen_until: Option<Instant>,
    cut_until: Option<Instant>,
}

/// The processes.
pub(crate) struct Fleet {
    nodes: Vec<Node>,
    direct: String,
    dice: Dice,
    done: BTreeMap<&'static str, u32>,
    next: Duration,
}

fn spawn(id: &str, url: &str, direct: &str) -> Child {
    let program = std::env::current_exe().expect("a program");
    let mut command = Command::new(program);
    command.args(["node", id, url, direct]);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::inherit());
    command.spawn().expect("a process")
}

impl Node {
    fn signal(&self, signal: Signal) {
        let pid = Pid::from_child(&self.child);
        // One that has ended has nothing more to hear.
        let _ = kill_process(pid, signal);
    }

    fn restart(&mut self, direct: &str) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.frozen_until = None;
        self.child = spawn(&self.id, &self.proxy.url(), direct);
    }
}

impl Fleet {
    pub(crate) async fn start(server: &RedisServer, seed: u64) -> Self {
        let direct = server.url();
        let mut nodes = Vec::new();
        for number in 0..NODES {
            let (id, proxy) = (format!("n{number}"), Proxy::start(server.port()).await);
            let child = spawn(&id, &proxy.url(), &direct);
            nodes.push(Node {
                id,
                proxy,
                child,
                frozen_until: None,
                cut_until: None,
            });
        }
        Self {
            nodes,
            direct,
            dice: Dice::new(seed),
            done: BTreeMap::new(),
            next: Duration::from_secs(1),
        }
    }

    /// Waits for the next second, does something to somebody, and mends what has lasted long enough.
    pub(crate) async fn strike(&mut self, instance: &Instance, began: Instant) {
        while began.elapsed() < self.next {
            tokio::time::sleep(Duration::from_millis(20)).await;
            self.mend();
        }
        self.next += Duration::from_secs(1);
        // Every third time whoever dispatches.
        let leader = instance
            .groups()
            .into_iter()
            .find(|status| status.group.as_str() == GROUP);
        let leader = leader.and_then(|status| status.leader);
        let mut at = usize::try_from(self.dice.below(NODES as u64)).unwrap_or(0);
        if self.dice.below(3) == 0
            && let Some(leads) = self.nodes.iter().position(|node| Some(&node.id) == leader.as_ref())
        {
            at = leads;
        }
        let until = Instant::now() + self.dice.span(Duration::from_millis(300), LONGEST);
        let what = self.dice.below(6);
        let direct = self.direct.clone();
        let node = &mut self.nodes[at];
        let done = match what {
            0 | 1 => {
                node.restart(&direct);
                "killed"
            }
            2 => {
                node.signal(Signal::STOP);
                node.frozen_until = Some(until);
                "frozen"
            }
            3 => {
                node.proxy.black_hole();
                node.cut_until = Some(until);
                "black hole"
            }
            4 => {
                node.proxy.cut();
                "cut"
            }
            _ => {
                node.proxy.stall(Direction::ToClient);
                node.cut_until = Some(until);
                "answers held"
            }
        };
        *self.done.entry(done).or_default() += 1;
    }

    fn mend(&mut self) {
        let now = Instant::now();
        for node in &mut self.nodes {
            if node.frozen_until.take_if(|until| *until <= now).is_some() {
                node.signal(Signal::CONT);
            }
            if node.cut_until.take_if(|until| *until <= now).is_some() {
                node.proxy.heal();
            }
            if let Ok(Some(status)) = node.child.try_wait() {
                say!("{} has ended by itself ({status}), and is started again", node.id);
                *self.done.entry("ended by itself").or_default() += 1;
                node.restart(&self.direct);
            }
        }
    }

    pub(crate) fn heal(&mut self) {
        for node in &mut self.nodes {
            node.signal(Signal::CONT);
            node.proxy.heal();
        }
    }

    pub(crate) fn summary(&self) -> String {
        let done: Vec<_> = self
            .done
            .iter()
            .map(|(what, count)| format!("{what} {count}"))
            .collect();
        format!("faults: {}", done.join(", "))
    }

    pub(crate) fn end(mut self) {
        for node in &mut self.nodes {
            let _ = node.child.kill();
            let _ = node.child.wait();
        }
    }
}

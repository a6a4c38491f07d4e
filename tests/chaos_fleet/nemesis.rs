//! Does what is planned, and keeps what the judge must know of it.

use std::fs::File;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, SystemTime};

use leader_tests::RedisServer;
use leader_tests::audit::{JobState, Line, Loss, Still};
use rustix::process::Signal;
use tokio::time::{Instant, sleep};

use crate::deeds;
use crate::fleet::{Leaders, Node, note};
use crate::floor::now;
use crate::plan::{Deed, Fault, Site};

/// A deed that was done.
#[derive(Clone, Copy, Debug)]
pub struct Done {
    /// What.
    pub fault: Fault,
    /// From when.
    pub from: u64,
    /// Until when.
    pub until: u64,
}

/// The end of a process that led.
#[derive(Clone, Debug)]
pub struct Ending {
    /// Which.
    pub life: String,
    /// By SIGKILL, and not by SIGTERM.
    pub killed: bool,
    /// Just before the signal.
    pub at: u64,
    /// What it led by its last word.
    pub groups: Vec<String>,
}

/// What the judge must know besides what the processes tell.
#[derive(Debug, Default)]
pub struct Facts {
    pub stills: Vec<(String, Still)>,
    pub ends: Vec<(String, u64)>,
    pub losses: Vec<Loss>,
    /// What the store kept just before it lost it.
    pub eras: Vec<Vec<JobState>>,
    pub done: Vec<Done>,
    pub endings: Vec<Ending>,
    /// What went wrong with the rig or with a process as such.
    pub troubles: Vec<(u64, String)>,
}

/// A member, and whether something is being done to it.
#[derive(Debug)]
pub struct Member {
    node: Mutex<Node>,
    process_busy: AtomicBool,
    link_busy: AtomicBool,
}

/// Everything that the nemesis has in its hands.
#[derive(Debug)]
pub struct Stage {
    pub members: Vec<Member>,
    pub server: tokio::sync::Mutex<RedisServer>,
    pub facts: Mutex<Facts>,
    pub groups: Vec<&'static str>,
    leaders: Mutex<Leaders>,
    lines: Mutex<Vec<Line>>,
    log: Mutex<File>,
}

/// What is being done to a part of a member; over with its handle.
pub struct Hold {
    pub stage: Arc<Stage>,
    pub member: usize,
    site: Site,
}

impl Hold {
    pub fn node(&self) -> MutexGuard<'_, Node> {
        self.stage.members[self.member].node()
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.stage.members[self.member]
            .busy(self.site)
            .store(false, Ordering::SeqCst);
    }
}

impl Member {
    pub fn node(&self) -> MutexGuard<'_, Node> {
        self.node.lock().expect("nobody panics with it")
    }

    fn busy(&self, site: Site) -> &AtomicBool {
        if site == Site::Link {
            &self.link_busy
        } else {
            &self.process_busy
        }
    }
}

impl Stage {
    pub fn new(nodes: Vec<Node>, server: RedisServer, groups: &[&'static str], log: File) -> Self {
        let member = |node| Member {
            node: Mutex::new(node),
            process_busy: AtomicBool::new(false),
            link_busy: AtomicBool::new(false),
        };
        Self {
            members: nodes.into_iter().map(member).collect(),
            server: tokio::sync::Mutex::new(server),
            facts: Mutex::default(),
            groups: groups.to_vec(),
            leaders: Mutex::default(),
            lines: Mutex::default(),
            log: Mutex::new(log),
        }
    }

    pub fn facts(&self) -> MutexGuard<'_, Facts> {
        self.facts.lock().expect("nobody panics with it")
    }

    pub fn leaders(&self) -> MutexGuard<'_, Leaders> {
        self.leaders.lock().expect("nobody panics with it")
    }

    pub fn note(&self, text: &str) {
        note(&mut self.log.lock().expect("nobody panics with it"), text);
    }

    /// Reads what all have told meanwhile; one reader at a time, so that everything is heard in the order in which each told it.
    pub fn read(&self) {
        let mut all = self.lines.lock().expect("nobody panics with it");
        for member in &self.members {
            let lines = member.node().read();
            self.leaders().hear(&lines);
            all.extend(lines);
        }
    }

    /// What was read since the last call.
    pub fn lines(&self) -> Vec<Line> {
        std::mem::take(&mut self.lines.lock().expect("nobody panics with it"))
    }

    pub fn trouble(&self, text: String) {
        self.note(&text);
        self.facts().troubles.push((now(), text));
    }

    /// Takes a member whose part nothing is being done to: mostly one that leads.
    pub fn hold(self: &Arc<Self>, site: Site, chance: u64) -> Option<Hold> {
        self.read();
        let mut first = usize::try_from(chance / 16).unwrap_or(0) % self.members.len();
        if !chance.is_multiple_of(4) {
            let group = self.groups[usize::try_from(chance / 64).unwrap_or(0) % self.groups.len()];
            let leader = self.leaders().of(group).map(str::to_owned);
            let of_leader = |member: &Member| Some(member.node().life()) == leader.as_deref();
            first = self.members.iter().position(of_leader).unwrap_or(first);
        }
        let order = (0..self.members.len()).map(|step| (first + step) % self.members.len());
        for member in order {
            let is_alive = site == Site::Link || self.members[member].node().is_alive();
            let busy = self.members[member].busy(site);
            if is_alive && !busy.swap(true, Ordering::SeqCst) {
                let stage = Arc::clone(self);
                return Some(Hold { stage, member, site });
            }
        }
        None
    }

    /// Does one thing, and undoes it.
    pub async fn perform(self: Arc<Self>, deed: Deed) {
        let from = now();
        let whom = match deed.fault.site() {
            site @ (Site::Process | Site::Link) => match self.hold(site, deed.chance) {
                Some(hold) => {
                    let life = hold.node().life().to_owned();
                    self.note(&format!("{:?} of {life} for {:?}", deed.fault, deed.span));
                    if site == Site::Process {
                        deeds::process(hold, deed).await;
                    } else {
                        deeds::link(hold, deed).await;
                    }
                    Some(life)
                }
                None => None,
            },
            Site::Person => {
                self.note(&format!("{:?} for {:?}", deed.fault, deed.span));
                self.person(deed).await;
                Some("the fleet".to_owned())
            }
            Site::Server => {
                self.server(deed).await;
                Some("the server".to_owned())
            }
        };
        let Some(whom) = whom else {
            self.note(&format!("{:?}: nobody is free", deed.fault));
            return;
        };
        self.note(&format!("{:?} of {whom} is over", deed.fault));
        let fault = deed.fault;
        self.facts().done.push(Done {
            fault,
            from,
            until: now(),
        });
    }

    /// Takes back what was done to links, and lets everybody go on.
    pub fn heal(&self) {
        for member in &self.members {
            let mut node = member.node();
            node.proxy.heal();
            node.signal(Signal::CONT);
        }
    }

    /// Whether a member's process ends in time.
    pub async fn has_ended(&self, member: usize, within: Duration) -> bool {
        let deadline = Instant::now() + within;
        loop {
            let (status, life) = {
                let mut node = self.members[member].node();
                let life = node.life().to_owned();
                (node.ended(), life)
            };
            if let Some(status) = status {
                self.facts().ends.push((life.clone(), now()));
                self.read();
                if !self.members[member].node().may_end(status) {
                    self.trouble(format!("{life} ended with {status}"));
                }
                return true;
            }
            if Instant::now() > deadline {
                return false;
            }
            sleep(Duration::from_millis(2)).await;
        }
    }
}

/// Milliseconds since 1970.
pub fn wall() -> i64 {
    let since = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(0)
}

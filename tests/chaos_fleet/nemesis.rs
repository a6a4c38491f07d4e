//! Does what is planned, and keeps what the judge must know of it.

use std::fs::File;
use std::os::unix::process::ExitStatusExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, SystemTime};

use leader_tests::audit::{JobState, Line, Loss, Still};
use leader_tests::{Direction, RedisServer, Request};
use rustix::process::Signal;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep};

use crate::fleet::{Leaders, Node, note};
use crate::floor::now;
use crate::jobs::JOBS;
use crate::plan::{Deed, Fault, Site};
use crate::{PASSWORD, TTL, server};

/// How long a process may take to stop: its drain, and as long for what it has to tell a server that does not answer.
const STOP: Duration = Duration::from_secs(12);

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
    groups: Vec<&'static str>,
    leaders: Mutex<Leaders>,
    lines: Mutex<Vec<Line>>,
    log: Mutex<File>,
}

/// What is being done to a part of a member; over with its handle.
struct Hold {
    stage: Arc<Stage>,
    member: usize,
    site: Site,
}

impl Hold {
    fn node(&self) -> MutexGuard<'_, Node> {
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

    /// Reads what all have told meanwhile.
    pub fn read(&self) {
        for member in &self.members {
            let lines = member.node().read();
            self.leaders().hear(&lines);
            self.lines.lock().expect("nobody panics with it").extend(lines);
        }
    }

    /// What was read since the last call.
    pub fn lines(&self) -> Vec<Line> {
        std::mem::take(&mut self.lines.lock().expect("nobody panics with it"))
    }

    fn trouble(&self, text: String) {
        self.note(&text);
        self.facts().troubles.push((now(), text));
    }

    /// Takes a member whose part nothing is being done to: mostly one that leads.
    fn hold(self: &Arc<Self>, site: Site, chance: u64) -> Option<Hold> {
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
                        process(hold, deed).await;
                    } else {
                        link(hold, deed).await;
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

    /// Something is asked of the fleet, by whoever happens to be asked.
    async fn person(&self, deed: Deed) {
        let pick = |step: u64, count: usize| usize::try_from((deed.chance >> step) % 1_000).unwrap_or(0) % count;
        let (one, other) = (pick(0, self.members.len()), pick(10, self.members.len()));
        if deed.fault == Fault::StepDown {
            let group = self.groups[pick(20, self.groups.len())];
            self.members[one].node().command(&format!("step_down {group}"));
            sleep(deed.span).await;
            return;
        }
        let job = JOBS[pick(20, JOBS.len())].name;
        let gap = if pick(30, 2) == 0 { "skip" } else { "owed" };
        let most = deed.span.as_millis() + 500;
        self.members[one].node().command(&format!("pause {job} {gap} {most}"));
        sleep(deed.span).await;
        self.members[other].node().command(&format!("resume {job}"));
    }

    async fn server(self: &Arc<Self>, deed: Deed) {
        // Whoever cannot hear that the store has forgotten it goes on believing: only the quarantine keeps others from leading beside it.
        let deaf = (deed.fault == Fault::FlushAll)
            .then(|| self.hold(Site::Link, deed.chance))
            .flatten();
        let mut server = self.server.lock().await;
        self.note(&format!("{:?} for {:?}", deed.fault, deed.span));
        if deed.fault.ends_an_era() {
            let states = server::states(&server).await;
            self.facts().eras.push(states);
        }
        if let Some(deaf) = &deaf {
            deaf.node().proxy.stall(Direction::Both);
        }
        let from = now();
        match deed.fault {
            Fault::ClientPause => {
                let millis = deed.span.as_millis().to_string();
                let what = if deed.chance.is_multiple_of(2) { "ALL" } else { "WRITE" };
                server::ask(&server, &["CLIENT", "PAUSE", &millis, what]).await;
                sleep(deed.span).await;
            }
            Fault::ClientKill => server::throw_out(&server).await,
            Fault::Sleep => {
                let seconds = format!("{:.3}", deed.span.as_secs_f64());
                server::ask(&server, &["DEBUG", "SLEEP", &seconds]).await;
            }
            Fault::ScriptFlush => server::ask(&server, &["SCRIPT", "FLUSH"]).await,
            Fault::FreezeServer => {
                server.pause();
                sleep(deed.span).await;
                server.resume();
            }
            Fault::Restart | Fault::RestartEmpty => {
                server.kill().await;
                sleep(deed.span).await;
                server.restart(deed.fault == Fault::Restart).await;
            }
            Fault::Full => {
                server::ask(&server, &["CONFIG", "SET", "maxmemory", "1"]).await;
                sleep(deed.span).await;
                server::ask(&server, &["CONFIG", "SET", "maxmemory", "0"]).await;
            }
            Fault::Password => {
                server::ask(&server, &["CONFIG", "SET", "requirepass", "another"]).await;
                server::throw_out(&server).await;
                sleep(deed.span).await;
                server::ask(&server, &["CONFIG", "SET", "requirepass", PASSWORD]).await;
            }
            Fault::Crowd => {
                let mut crowd = Vec::new();
                for _ in 0..300 {
                    crowd.extend(TcpStream::connect(("127.0.0.1", server.port())).await);
                }
                sleep(deed.span).await;
            }
            Fault::FlushAll => server::ask(&server, &["FLUSHALL"]).await,
            _ => unreachable!("no fault of the server: {:?}", deed.fault),
        }
        if deed.fault.ends_an_era() {
            let until = now();
            self.facts().losses.push(Loss { from, until });
        }
        drop(server);
        if let Some(deaf) = deaf {
            sleep(TTL).await;
            deaf.node().proxy.heal();
        }
    }

    /// Takes back what was done to links, and lets everybody go on.
    pub fn heal(&self) {
        for member in &self.members {
            let node = member.node();
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
                // One that is hit before it listens ends by the signal itself.
                if !(status.success() || matches!(status.signal(), Some(9 | 15))) {
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

async fn process(hold: Hold, deed: Deed) {
    let stage = Arc::clone(&hold.stage);
    let life = hold.node().life().to_owned();
    let groups = stage.leaders().led_by(&life);
    let at = now();
    let ending = |killed| Ending {
        life: life.clone(),
        killed,
        at: now(),
        groups: groups.clone(),
    };
    match deed.fault {
        Fault::Block => {
            hold.node().command(&format!("block {}", deed.span.as_millis()));
            sleep(deed.span).await;
            return;
        }
        Fault::Freeze => {
            hold.node().signal(Signal::STOP);
            sleep(deed.span).await;
            let still = Still { from: at, until: now() };
            hold.node().signal(Signal::CONT);
            stage.facts().stills.push((life, still));
            return;
        }
        Fault::FreezeAndKill => {
            hold.node().signal(Signal::STOP);
            while !hold.node().is_still() {
                sleep(Duration::from_millis(1)).await;
            }
            // Whatever it believes from here on moves nothing.
            stage.facts().ends.push((life.clone(), now()));
            sleep(deed.span).await;
            hold.node().signal(Signal::KILL);
            while hold.node().ended().is_none() {
                sleep(Duration::from_millis(2)).await;
            }
        }
        Fault::Kill => {
            stage.facts().endings.push(ending(true));
            hold.node().signal(Signal::KILL);
            stage.has_ended(hold.member, STOP).await;
        }
        _ => {
            stage.facts().endings.push(ending(false));
            hold.node().signal(Signal::TERM);
            if !stage.has_ended(hold.member, STOP).await {
                stage.trouble(format!("{life} did not stop within {STOP:?}"));
                hold.node().signal(Signal::KILL);
                stage.has_ended(hold.member, STOP).await;
            }
        }
    }
    if deed.fault != Fault::FreezeAndKill {
        sleep(deed.span).await;
    }
    if let Err(error) = hold.node().start(false) {
        stage.trouble(format!("no process can be started: {error}"));
    }
}

async fn link(hold: Hold, deed: Deed) {
    {
        let node = hold.node();
        let proxy = &node.proxy;
        match deed.fault {
            Fault::Cut => proxy.cut(),
            Fault::StallRequests => proxy.stall(Direction::ToServer),
            Fault::StallReplies => proxy.stall(Direction::ToClient),
            Fault::StallBoth => proxy.stall(Direction::Both),
            Fault::Delay => proxy.delay(Direction::Both, Duration::from_millis(10 + deed.chance % 250)),
            _ => {
                let all = [
                    Request::Campaign,
                    Request::Claim,
                    Request::Claim,
                    Request::Renewal,
                    Request::Settlement,
                    Request::TakeOver,
                ];
                let marker = all[usize::try_from(deed.chance >> 8).unwrap_or(0) % all.len()].marker();
                let count = 1 + deed.chance % 3;
                if deed.fault == Fault::Reset {
                    proxy.reset_after_request(marker, count);
                } else {
                    proxy.drop_replies(marker, count);
                }
            }
        }
    }
    sleep(deed.span).await;
    hold.node().proxy.heal();
}

/// Milliseconds since 1970.
pub fn wall() -> i64 {
    let since = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(0)
}

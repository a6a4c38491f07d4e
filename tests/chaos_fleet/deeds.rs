//! How each fault is done and undone.

use std::sync::Arc;
use std::time::Duration;

use leader_tests::audit::{Loss, Still};
use leader_tests::{Direction, Request};
use rustix::process::Signal;
use tokio::net::TcpStream;
use tokio::time::sleep;

use crate::floor::now;
use crate::jobs::JOBS;
use crate::nemesis::{Ending, Hold, Stage};
use crate::plan::{Deed, Fault, Site};
use crate::{PASSWORD, TTL, server};

/// How long a process may take to stop: its drain, and as long for what it has to tell a server that does not answer.
const STOP: Duration = Duration::from_secs(12);

impl Stage {
    /// Something is asked of the fleet, by whoever happens to be asked.
    pub async fn person(&self, deed: Deed) {
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

    pub async fn server(self: &Arc<Self>, deed: Deed) {
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
}

pub async fn process(hold: Hold, deed: Deed) {
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

pub async fn link(hold: Hold, deed: Deed) {
    {
        let node = hold.node();
        let proxy = &node.proxy;
        match deed.fault {
            Fault::Cut => proxy.cut(),
            Fault::StallRequests => proxy.stall(Direction::ToServer),
            Fault::StallReplies => proxy.stall(Direction::ToClient),
            Fault::StallBoth => proxy.stall(Direction::Both),
            Fault::BlackHole => proxy.black_hole(),
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

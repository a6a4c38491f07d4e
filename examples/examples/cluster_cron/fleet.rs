//! The three instances, and what is done to them.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use leader_core::{BootstrapError, Embedded, Event, Events, EventsError, Instance, Role, Timing, testing};
use tokio::task::JoinHandle;

use crate::jobs::{Log, Site};
use crate::options::Act;

pub const TTL: Duration = Duration::from_millis(1500);
/// The most that a stop waits for bodies.
const DRAIN: Duration = Duration::from_secs(3);

/// What became of an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Alive,
    Frozen,
    Killed,
    Stopping,
    Stopped,
}

impl State {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Alive => "alive",
            Self::Frozen => "frozen",
            Self::Killed => "killed",
            Self::Stopping => "stopping",
            Self::Stopped => "stopped",
        }
    }
}

/// One instance of the fleet.
#[derive(Debug)]
pub struct Member {
    pub name: &'static str,
    pub instance: Instance,
    killed: bool,
    stopping: Option<JoinHandle<()>>,
    frozen_until: Option<Instant>,
}

impl Member {
    pub fn state(&self) -> State {
        match &self.stopping {
            _ if self.killed => State::Killed,
            Some(stopping) if stopping.is_finished() => State::Stopped,
            Some(_) => State::Stopping,
            None if self.frozen_until.is_some_and(|until| Instant::now() < until) => State::Frozen,
            None => State::Alive,
        }
    }

    pub fn leads(&self, group: &str) -> bool {
        self.instance.is_leader(group)
    }

    /// Still holds the group, and starts nothing new.
    pub fn drains(&self, group: &str) -> bool {
        let draining =
            |status: &leader_core::GroupStatus| status.group.as_str() == group && status.role == Role::Draining;
        !self.killed && self.instance.groups().iter().any(draining)
    }
}

/// Every leadership that began.
#[derive(Debug, Default)]
pub struct Elections(Mutex<Vec<(String, u64, &'static str)>>);

impl Elections {
    /// How often a group was led by another instance than before.
    pub fn handovers(&self) -> usize {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        // By group, and by term within it: several instances tell of them, in any order.
        all.sort();
        let changed = |pair: &&[(String, u64, &str)]| pair[0].0 == pair[1].0 && pair[0].2 != pair[1].2;
        all.windows(2).filter(changed).count()
    }

    /// The newest term of a group.
    pub fn term(&self, group: &str) -> Option<u64> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter()
            .filter(|(of, ..)| of == group)
            .map(|(_, term, _)| *term)
            .max()
    }

    async fn follow(self: Arc<Self>, name: &'static str, mut events: Events) {
        loop {
            match events.recv().await.map(|stamped| stamped.event) {
                Ok(Event::Elected { group, term, .. }) => {
                    let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
                    all.push((group.to_string(), term, name));
                }
                Ok(Event::Stopped { .. }) | Err(EventsError::Stopped) => return,
                Ok(_) | Err(_) => {}
            }
        }
    }
}

/// The fleet.
#[derive(Debug)]
pub struct Fleet {
    store: Embedded,
    pub log: Arc<Log>,
    pub elections: Arc<Elections>,
    pub members: Vec<Member>,
    /// Takes part in no election: reads the ledger whatever becomes of the others.
    pub observer: Instance,
}

impl Fleet {
    pub async fn start() -> Result<Self, BootstrapError> {
        let store = Embedded::new();
        let log = Arc::new(Log::default());
        let elections = Arc::new(Elections::default());
        let site = Site { log: Arc::clone(&log) };
        let observer = leader_core::bootstrap(store.clone())
            .instance_id("observer")
            .campaign(false)
            .state(site)
            .await?;
        let mut fleet = Self {
            store,
            log,
            elections,
            members: Vec::new(),
            observer,
        };
        for name in ["web-1", "web-2", "web-3"] {
            let member = fleet.join(name).await?;
            fleet.members.push(member);
        }
        Ok(fleet)
    }

    async fn join(&self, name: &'static str) -> Result<Member, BootstrapError> {
        let bootstrap = leader_core::bootstrap(self.store.clone())
            .instance_id(name)
            .timing(Timing::from_ttl(TTL))
            .drain(DRAIN)
            .state(Site {
                log: Arc::clone(&self.log),
            });
        tokio::spawn(Arc::clone(&self.elections).follow(name, bootstrap.events()));
        Ok(Member {
            name,
            instance: bootstrap.await?,
            killed: false,
            stopping: None,
            frozen_until: None,
        })
    }

    pub fn leader(&self, group: &str) -> Option<&Member> {
        self.members.iter().find(|member| member.leads(group))
    }

    /// Does it, and says what was done; `None` while nobody is there to do it to.
    pub async fn act(&mut self, act: &Act) -> Option<String> {
        if *act == Act::Restart {
            return self.restart().await;
        }
        let (Act::Kill(group) | Act::Stop(group) | Act::Freeze(group, _) | Act::StepDown(group)) = act else {
            return None;
        };
        let leads = |member: &&mut Member| member.leads(group);
        let leader = self.members.iter_mut().find(leads)?;
        let name = leader.name;
        match act {
            Act::Kill(_) => {
                testing::kill(&leader.instance);
                leader.killed = true;
                Some(format!("{name} is killed"))
            }
            Act::Stop(_) => {
                let instance = leader.instance.clone();
                leader.stopping = Some(tokio::spawn(async move { instance.shutdown().await }));
                Some(format!("{name} is told to stop"))
            }
            Act::Freeze(_, span) => {
                testing::freeze(&leader.instance, *span);
                leader.frozen_until = Some(Instant::now() + *span);
                Some(format!("{name} is frozen for {span:?}"))
            }
            Act::StepDown(_) => {
                let instance = leader.instance.clone();
                let group = (*group).to_owned();
                let told = format!("{name} steps down from {group}");
                tokio::spawn(async move {
                    // It may have lost the group in this very moment, which is as good.
                    let _ = instance.step_down(&group).await;
                });
                Some(told)
            }
            Act::Restart => None,
        }
    }

    async fn restart(&mut self) -> Option<String> {
        let gone = |member: &Member| matches!(member.state(), State::Killed | State::Stopped);
        let index = self.members.iter().position(gone)?;
        let name = self.members[index].name;
        match self.join(name).await {
            Ok(member) => {
                self.members[index] = member;
                Some(format!("{name} is started again"))
            }
            Err(error) => Some(format!("{name} could not be started again: {error}")),
        }
    }

    /// Stops whoever is left. A frozen one is not waited for longer than a drain may take.
    pub async fn stop(&self) {
        let mut stopping = tokio::task::JoinSet::new();
        for member in self.members.iter().filter(|member| !member.killed) {
            let instance = member.instance.clone();
            stopping.spawn(async move { instance.shutdown().await });
        }
        let all = async { while stopping.join_next().await.is_some() {} };
        // What does not end in time ends with the process.
        let _ = tokio::time::timeout(DRAIN + TTL, all).await;
    }
}

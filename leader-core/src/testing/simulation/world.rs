//! A fleet, its machines, its store and the way between them, in one thread and on virtual time.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, timeout};

use super::Setting;
use super::dice::Dice;
use super::fault::FaultKind;
use super::judge::Judge;
use super::link::{Link, Way};
use super::probe::Probed;
use super::seen::{Seen, Who};
use super::servers::Servers;
use crate::bootstrap::{Bootstrap, BootstrapError, Simulated};
use crate::clock::{Clock, Moment, of_timers};
use crate::event::EventsError;
use crate::instance::Instance;
use crate::job::scope::Gates;
use crate::names::GroupName;
use crate::runtime::process::{Process, Stoppable};

/// The pause before a process that could not start is started again.
const SUPERVISION: Duration = Duration::from_secs(1);

pub(super) struct World {
    pub(super) setting: Setting,
    /// What really is the time.
    pub(super) clock: Clock,
    pub(super) began: Instant,
    pub(super) machines: Vec<Machine>,
    pub(super) servers: Arc<Servers>,
    judge: Mutex<Judge>,
    pub(super) counts: Arc<Mutex<BTreeMap<FaultKind, u64>>>,
    pub(super) refused: Mutex<Option<BootstrapError>>,
    #[cfg(feature = "tasks")]
    pub(super) tasks: super::tasks::Notes,
    me: Weak<Self>,
}

/// What one instance runs on.
pub(super) struct Machine {
    pub(super) clock: Clock,
    pub(super) way: Arc<Way>,
    pub(super) life: Mutex<Life>,
    /// Somebody has asked for a step-down there, and waits.
    pub(super) asking: AtomicBool,
    /// How far its wall clock has been stepped.
    stepped: Mutex<SignedDuration>,
}

impl Machine {
    pub(super) fn step_wall(&self, by: SignedDuration) {
        self.clock.step_wall(by);
        *lock(&self.stepped) += by;
    }

    pub(super) fn put_wall_right(&self) {
        let stepped = std::mem::take(&mut *lock(&self.stepped));
        self.clock.step_wall(-stepped);
    }
}

/// One process after another.
#[derive(Default)]
pub(super) struct Life {
    /// Which one it is.
    pub(super) number: u32,
    pub(super) process: Option<Arc<Stoppable>>,
    pub(super) instance: Option<Instance>,
    gates: Arc<OnceLock<Arc<Gates>>>,
    /// Term and end of each belief when last seen.
    believed: Vec<(u64, u64)>,
    /// How many stops hold it at present.
    pub(super) stops: u32,
    /// How often it was stopped.
    pub(super) stopped: u32,
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl World {
    pub(super) fn new(setting: Setting) -> Arc<Self> {
        let clock = Clock::of_the_runtime(setting.begin);
        let dice = Dice::new(setting.seed);
        let counts = Arc::new(Mutex::new(BTreeMap::new()));
        let faults = &setting.faults;
        let minority = setting.instances.saturating_sub(1) / 2;
        let machine = |index: usize| {
            let mut dice = dice.fork(1_000 + index as u64);
            let within = |most: u64, dice: &mut Dice| {
                let value = dice.below(2 * most + 1);
                i64::try_from(value).unwrap_or(0) - i64::try_from(most).unwrap_or(0)
            };
            let ppm = i32::try_from(within(faults.drift, &mut dice)).unwrap_or(0);
            let mut ahead = within(faults.wrong, &mut dice);
            let far = dice.per_mille(250);
            if faults.far_off && far && index < minority {
                ahead = within(86_400_000, &mut dice);
            }
            let clock = Clock::drifting(setting.begin, ppm);
            clock.step_wall(SignedDuration::from_millis(ahead));
            let latency = Duration::from_millis(faults.latency);
            Machine {
                clock,
                way: Arc::new(Way::new(dice.fork(1), latency, Arc::clone(&counts))),
                life: Mutex::default(),
                stepped: Mutex::default(),
                asking: AtomicBool::new(false),
            }
        };
        let machines = (0..setting.instances).map(machine).collect();
        Arc::new_cyclic(|me| Self {
            machines,
            servers: Arc::new(Servers::new(clock.clone(), Weak::clone(me))),
            judge: Mutex::new(Judge::new(setting.begin, setting.timing.ttl(), setting.keeps_log)),
            counts: Arc::clone(&counts),
            refused: Mutex::default(),
            #[cfg(feature = "tasks")]
            tasks: super::tasks::Notes::default(),
            began: of_timers(),
            clock,
            setting,
            me: Weak::clone(me),
        })
    }

    pub(super) fn see(&self, seen: &Seen<'_>) {
        lock(&self.judge).see(self.began.elapsed(), seen);
    }

    pub(super) fn judge<T>(&self, look: impl FnOnce(&mut Judge) -> T) -> T {
        look(&mut lock(&self.judge))
    }

    pub(super) fn weak(&self) -> Weak<Self> {
        Weak::clone(&self.me)
    }

    pub(super) fn count(&self, kind: FaultKind) {
        *lock(&self.counts).entry(kind).or_default() += 1;
    }

    fn life(&self, instance: usize) -> MutexGuard<'_, Life> {
        lock(&self.machines[instance].life)
    }

    /// Who lives, with the process and the handle, where there is one already.
    pub(super) fn living(&self, instance: usize) -> Option<(Who, Arc<Stoppable>, Option<Instance>)> {
        let life = self.life(instance);
        let process = life.process.as_ref().filter(|process| !process.is_dead())?;
        let who = Who {
            instance,
            life: life.number,
        };
        Some((who, Arc::clone(process), life.instance.clone()))
    }

    /// How often the machine of a process was stopped so far: one that stands for a while answers nobody. `None` while it stands, and when
    /// the process is dead.
    pub(super) fn stood(&self, who: Who) -> Option<u32> {
        let life = self.life(who.instance);
        let lives = life.process.as_ref().is_some_and(|process| !process.is_dead());
        (lives && life.number == who.life && life.stops == 0).then_some(life.stopped)
    }

    /// All that are led: of the queues of tasks those that somebody who lived last knows.
    pub(super) fn groups(&self) -> Vec<GroupName> {
        let mut groups = self.setting.groups();
        for instance in 0..self.machines.len() {
            let gates = self.life(instance).gates.get().cloned();
            let known = gates
                .iter()
                .flat_map(|gates| gates.iter().map(|gate| gate.group().clone()));
            groups.extend(known.filter(|group| group.as_str().starts_with("dispatch:")));
        }
        groups.sort();
        groups.dedup();
        groups
    }

    /// The ticks of a job in a span, as any instance that lives sees them; 0 where none does.
    pub(super) fn count_ticks(&self, job: &str, after: Timestamp, until: Timestamp) -> u64 {
        let handle = (0..self.machines.len()).find_map(|instance| self.living(instance)?.2);
        handle.map_or(0, |handle| handle.count_ticks(job, after, until).unwrap_or(0))
    }

    /// Starts the next process of an instance.
    pub(super) fn start(self: &Arc<Self>, instance: usize) {
        let mut life = self.life(instance);
        if life.process.as_ref().is_some_and(|process| !process.is_dead()) {
            return;
        }
        life.number += 1;
        let who = Who {
            instance,
            life: life.number,
        };
        let me = Weak::clone(&self.me);
        let process = Arc::new(Stoppable::new(move || {
            if let Some(world) = me.upgrade() {
                world.look(who);
            }
        }));
        life.process = Some(Arc::clone(&process));
        life.gates = Arc::default();
        life.believed.clear();
        life.instance = None;
        let bootstrap = self.bootstrap(who, &process, Arc::clone(&life.gates));
        drop(life);
        self.see(&Seen::Started(who));
        let mut events = bootstrap.events();
        let world = Weak::clone(&self.me);
        tokio::spawn(async move {
            loop {
                let told = events.recv().await;
                let Some(world) = world.upgrade() else { return };
                match told {
                    Ok(stamped) => world.see(&Seen::Told {
                        who,
                        event: &stamped.event,
                    }),
                    Err(EventsError::Lagged(_)) => {}
                    Err(EventsError::Stopped) => return,
                }
            }
        });
        let world = Weak::clone(&self.me);
        tokio::spawn(Process::from(process).hold(async move {
            let started = bootstrap.await;
            if let Some(world) = world.upgrade() {
                world.started(who, started);
            }
        }));
    }

    fn bootstrap(&self, who: Who, process: &Arc<Stoppable>, gates: Arc<OnceLock<Arc<Gates>>>) -> Bootstrap {
        let (setting, machine) = (&self.setting, &self.machines[who.instance]);
        let dice = Dice::new(setting.seed).fork(who.instance as u64);
        let link = Link {
            servers: Arc::clone(&self.servers),
            instance: who.instance,
            way: Arc::clone(&machine.way),
            bound: setting.timing.operation(),
        };
        let simulated = Simulated {
            store: Arc::new(link),
            clock: machine.clock.clone(),
            process: Process::from(Arc::clone(process)),
            nonce: dice.fork(u64::from(who.life)).next(),
            machine: format!("machine-{}", who.instance),
            jobs: setting.jobs.clone(),
            gates,
        };
        let me = Weak::clone(&self.me);
        let bootstrap = Bootstrap::simulated(simulated)
            .instance_id(format!("simulated-{}", who.instance))
            .service("simulated")
            .timing(setting.timing)
            .around(move |tick, next| Probed::of(&me, who, tick, next));
        #[cfg(feature = "tasks")]
        let bootstrap = super::tasks::given(bootstrap, &setting.tasks, &self.me, who);
        setting
            .configure
            .iter()
            .fold(bootstrap, |bootstrap, configure| configure(bootstrap))
    }

    fn started(self: &Arc<Self>, who: Who, started: Result<Instance, BootstrapError>) {
        match started {
            Ok(instance) => {
                let mut life = self.life(who.instance);
                if life.number == who.life {
                    life.instance = Some(instance);
                }
            }
            Err(error) => {
                if matches!(error, BootstrapError::Invalid(_)) {
                    lock(&self.refused).get_or_insert(error);
                    return;
                }
                self.kill(who);
                self.start_later(who.instance, SUPERVISION);
            }
        }
    }

    /// Ends a process without a word.
    pub(super) fn kill(&self, who: Who) {
        let life = self.life(who.instance);
        let process = life
            .process
            .clone()
            .filter(|process| life.number == who.life && !process.is_dead());
        drop(life);
        if let Some(process) = process {
            process.kill();
            self.life(who.instance).instance = None;
            self.see(&Seen::Died(who));
        }
    }

    pub(super) fn start_later(&self, instance: usize, after: Duration) {
        let me = Weak::clone(&self.me);
        tokio::spawn(async move {
            sleep(after).await;
            if let Some(world) = me.upgrade() {
                world.start(instance);
            }
        });
    }

    /// Shuts a process down as an orchestrator does: asks, waits, and kills.
    pub(super) async fn shut_down(&self, instance: usize, patience: Duration) {
        let Some((who, process, handle)) = self.living(instance) else {
            return;
        };
        if let Some(handle) = handle {
            let (tell, told) = oneshot::channel::<()>();
            tokio::spawn(Process::from(process).hold(async move {
                handle.shutdown().await;
                drop(tell);
            }));
            let (began, stood) = (of_timers(), self.stood(who));
            if timeout(patience, told).await.is_ok() && stood.is_some() && self.stood(who) == stood {
                self.see(&Seen::Called {
                    who,
                    what: "shutdown",
                    took: began.elapsed(),
                    bound: patience,
                });
            }
        }
        self.kill(who);
    }

    /// Looks whether a belief has begun or was prolonged, and who else believes.
    fn look(&self, who: Who) {
        let mut life = self.life(who.instance);
        if life.number != who.life || life.process.as_ref().is_none_or(|process| process.is_dead()) {
            return;
        }
        let Some(gates) = life.gates.get().cloned() else { return };
        let mut changed = Vec::new();
        for (index, gate) in gates.iter().enumerate() {
            let belief = gate.belief();
            let seen = life.believed.get(index).copied().unwrap_or_default();
            if belief == seen {
                continue;
            }
            if life.believed.len() <= index {
                life.believed.resize(index + 1, (0, 0));
            }
            life.believed[index] = belief;
            if belief.1 > seen.1 || (belief.0 != seen.0 && belief.1 != 0) {
                changed.push((gate, belief));
            }
        }
        drop(life);
        for (gate, (term, until)) in changed {
            let others: Vec<_> = (0..self.machines.len())
                .filter(|other| *other != who.instance)
                .filter_map(|other| self.believes(other, gate.group().as_str()))
                .collect();
            self.see(&Seen::Believes {
                who,
                group: gate.group().as_str(),
                term,
                left: Moment::from_nanos(until).since(self.machines[who.instance].clock.now()),
                others: &others,
            });
        }
    }

    /// The term in which an instance believes now to lead a group.
    pub(super) fn believes(&self, instance: usize, group: &str) -> Option<(Who, u64)> {
        let life = self.life(instance);
        if life.process.as_ref().is_none_or(|process| process.is_dead()) {
            return None;
        }
        let gate = life.gates.get()?.get(group)?;
        let (term, _) = gate.belief();
        let who = Who {
            instance,
            life: life.number,
        };
        gate.trusts(term).then_some((who, term))
    }
}

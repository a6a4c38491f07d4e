//! What an instance is given of tasks: its handlers, its queues, and how much it runs at once.

use std::sync::Arc;
use std::time::Duration;

use super::Bootstrap;
use super::fault::Fault;
use super::settings::{Faults, Vars, refused};
use super::source::Source;
use crate::job::extract::Needs;
use crate::names::{QueueName, TaskName};
use crate::runtime::config::{Config, JobSpec};
use crate::store::tasks::OpenQueue;
use crate::tasks::hub::Hub;
use crate::tasks::id::Keys;
use crate::tasks::record::TaskRecord;
use crate::tasks::routing::Routes;
use crate::tasks::spec::{MAX_SHARDS, Runs, Settings, TaskSpec};

/// The most attempts at once, and the most bytes of a payload: what is above is a mistake.
const MOST: usize = 100_000;
const MOST_BYTES: usize = 64 << 20;

/// How an instance works for tasks; changed in [`Bootstrap::tasks`].
#[derive(Debug, Default)]
#[must_use = "settings count when they are returned from the closure"]
pub struct TaskSettings {
    queues: Vec<(String, Option<u32>)>,
    concurrency: Option<usize>,
    idle: bool,
    max_payload: Option<usize>,
    ended: Option<(u32, Duration)>,
    dead: Option<(u32, Duration)>,
    /// The handlers, instead of those that the linker collected.
    pub(crate) only: Option<Vec<TaskRecord>>,
}

impl TaskSettings {
    /// The most attempts that run at once on this instance; 64 unless given. `LEADER_MAX_CONCURRENT_TASKS` wins over the code. A task's own
    /// bound is `#[task(concurrency = ..)]`.
    pub fn concurrency(mut self, most: usize) -> Self {
        self.concurrency = Some(most);
        self
    }

    /// Whether this instance runs tasks; `false` makes one that stores them, and dispatches them where it leads. `LEADER_TASKS=off` does the
    /// same.
    pub fn work(mut self, work: bool) -> Self {
        self.idle = !work;
        self
    }

    /// A queue to dispatch besides those of the annotated functions. Whatever tasks wait there, this instance runs those that it knows: they
    /// were stored with [`Enqueue::queue`](crate::Enqueue::queue).
    pub fn queue(mut self, queue: impl Into<String>) -> Self {
        self.queues.push((queue.into(), None));
        self
    }

    /// How many parts a queue has, 1 unless given: each has an election of its own, so that their dispatchers spread over the fleet, and a
    /// Cluster slot of its own. Say the same everywhere.
    ///
    /// Another number than the queue has opens a new generation: new tasks go by it, and what is there already is dispatched where it is
    /// until nothing is left. Instances that run meanwhile learn of it with the next task that they store. Fewer parts than before are
    /// dispatched on by instances that were started while the former ones had tasks.
    pub fn shards(mut self, queue: impl Into<String>, shards: u32) -> Self {
        self.queues.push((queue.into(), Some(shards)));
        self
    }

    /// The most bytes of a payload as JSON; 256 KiB unless given.
    pub fn max_payload(mut self, bytes: usize) -> Self {
        self.max_payload = Some(bytes);
        self
    }

    /// How many tasks that are done or were cancelled are kept of each part of a queue, without their payloads, and for how long; 10,000 for
    /// 7 days unless given. They go by tenths of that.
    pub fn keep_ended(mut self, count: u32, age: Duration) -> Self {
        self.ended = Some((count, age));
        self
    }

    /// How many dead letters are kept of each part of a queue, and for how long; 10,000 for 90 days unless given.
    pub fn keep_dead(mut self, count: u32, age: Duration) -> Self {
        self.dead = Some((count, age));
        self
    }
}

impl Bootstrap {
    /// How this instance works for tasks.
    ///
    /// ```
    /// # fn doc() {
    /// # let _ =
    /// leader_core::bootstrap(leader_core::Embedded::new())
    ///     .tasks(|tasks| tasks.concurrency(200).shards("invoices", 4))
    /// # ;
    /// # }
    /// ```
    pub fn tasks(mut self, change: impl FnOnce(TaskSettings) -> TaskSettings) -> Self {
        self.tasks = change(self.tasks);
        self
    }
}

/// Everything about tasks, checked.
pub(super) fn gather(given: &mut Bootstrap, jobs: &[JobSpec], vars: Vars, faults: &mut Faults) -> Settings {
    let mut wish = std::mem::take(&mut given.tasks);
    let mut settings = Settings {
        works: !wish.idle,
        keys: given.within.nonce.map_or_else(Keys::default, Keys::seeded),
        ..Settings::default()
    };
    let simulated = given.within.only.is_some();
    let collected = || inventory::iter::<TaskRecord>().copied().collect();
    let mut records: Vec<TaskRecord> = match wish.only.take() {
        Some(only) => only,
        None if simulated => Vec::new(),
        None => collected(),
    };
    // The linker's order is no order.
    records.sort_by_key(|record| (record.name, record.module));
    for (at, record) in records.iter().enumerate() {
        if let Some(other) = records[..at].last().filter(|other| other.name == record.name) {
            faults.0.push(Fault::DoubledTask {
                task: record.name,
                first: other.module,
                second: record.module,
            });
            continue;
        }
        let (Some(name), Some(queue)) = (
            faults.keep(TaskName::new(record.name)),
            faults.keep(QueueName::new(record.queue)),
        ) else {
            continue;
        };
        let mut needs = Needs::default();
        (record.body.needs)(&mut needs);
        let missing = needs.states.into_iter().filter(|(id, _)| !given.states.has(*id));
        faults.0.extend(missing.map(|(_, state)| Fault::MissingState {
            job: record.name,
            state,
        }));
        settings.queues.entry(queue.clone()).or_default();
        let spec = TaskSpec {
            name: name.clone(),
            queue,
            retries: record.retries,
            backoff: record.backoff.unwrap_or_default(),
            timeout: record.timeout,
            concurrency: record.concurrency,
            runs: Runs::Task(record.body),
        };
        settings.specs.insert(name, spec);
    }
    for job in jobs {
        tick(job, &mut settings, faults);
    }
    queues(&wish.queues, &mut settings, faults);
    limits(&wish, vars, &mut settings, faults);
    settings
}

/// A job whose ticks the fleet runs has tasks of its own name.
fn tick(job: &JobSpec, settings: &mut Settings, faults: &mut Faults) {
    let Some(fleet) = job.fleet else { return };
    let names = (
        faults.keep(TaskName::new(job.name.to_string())),
        faults.keep(QueueName::new(fleet.queue)),
    );
    let (Some(name), Some(queue)) = names else { return };
    if settings.specs.contains_key(&name) {
        faults.0.push(Fault::TaskAndJob { name: name.to_string() });
        return;
    }
    settings.queues.entry(queue.clone()).or_default();
    let spec = TaskSpec {
        name: name.clone(),
        queue,
        retries: fleet.retries,
        backoff: fleet.backoff,
        timeout: fleet.timeout,
        concurrency: fleet.concurrency,
        runs: Runs::Tick(Arc::new(job.clone())),
    };
    settings.specs.insert(name, spec);
}

fn queues(wished: &[(String, Option<u32>)], settings: &mut Settings, faults: &mut Faults) {
    for (name, shards) in wished {
        let Some(queue) = faults.keep(QueueName::new(name.clone())) else {
            continue;
        };
        if let Some(shards) = shards.filter(|shards| !(1..=MAX_SHARDS).contains(shards)) {
            faults.0.push(Fault::Tasks {
                setting: format!("shards(\"{queue}\", {shards})"),
                reason: format!("a queue has 1 to {MAX_SHARDS} parts"),
            });
        }
        if shards.is_none() || !settings.queues.contains_key(&queue) {
            settings.open.insert(queue.clone());
        }
        let known = settings.queues.entry(queue).or_default();
        *known = shards.or(*known);
    }
}

fn limits(wish: &TaskSettings, vars: Vars, settings: &mut Settings, faults: &mut Faults) {
    const CONCURRENCY: &str = "LEADER_MAX_CONCURRENT_TASKS";
    let mut concurrency = wish.concurrency;
    if let Some(text) = vars.get(CONCURRENCY) {
        let most = text.parse();
        concurrency = faults.keep(most.map_err(|_| refused(CONCURRENCY, &text, "write a number from 1 on")));
    }
    match vars.get("LEADER_TASKS").as_deref() {
        None | Some("on") => {}
        Some("off") => settings.works = false,
        Some(other) => faults.0.push(refused("LEADER_TASKS", other, "write `on` or `off`")),
    }
    let mut bounded = |setting: &str, given: Option<usize>, most: usize, place: &mut usize| {
        let Some(value) = given else { return };
        if (1..=most).contains(&value) {
            *place = value;
        } else {
            faults.0.push(Fault::Tasks {
                setting: format!("{setting}({value})"),
                reason: format!("write a number from 1 to {most}"),
            });
        }
    };
    bounded("concurrency", concurrency, MOST, &mut settings.concurrency);
    bounded("max_payload", wish.max_payload, MOST_BYTES, &mut settings.max_payload);
    if let Some((count, age)) = wish.ended {
        (settings.keep.ended, settings.keep.ended_for) = (count, age);
    }
    if let Some((count, age)) = wish.dead {
        (settings.keep.dead, settings.keep.dead_for) = (count, age);
    }
}

/// Learns how many parts the queues have, and makes each of them an election.
///
/// It asks by a connection of its own, which ends with this: that of the tasks belongs to the framework's thread.
pub(super) async fn open(settings: Settings, config: &mut Config, source: &Source) {
    let mut routes = Routes::default();
    let mut shards = Vec::new();
    if !settings.is_empty() {
        let bound = config.timing.operation();
        let (store, _) = source.clone().open(&config.namespace, bound, config.keep.clone());
        for (queue, wanted) in &settings.queues {
            let request = OpenQueue {
                queue: queue.clone(),
                shards: *wanted,
            };
            let mut most = wanted.unwrap_or(1);
            match store.tasks().open_queue(request).await {
                Ok(generations) => {
                    most = generations.most();
                    // The shards of earlier ones are told first, by who stores the first task.
                    if generations.earlier.is_empty() {
                        routes.learn(queue, generations);
                    }
                }
                Err(error) => tracing::warn!(
                    instance = %config.instance, %queue, %error, parts = most,
                    "how many parts the queue has is not known: this instance dispatches as many as it was told"
                ),
            }
            shards.extend((0..most).map(|index| crate::store::tasks::Shard {
                queue: queue.clone(),
                index,
            }));
        }
    }
    config
        .groups
        .extend(shards.iter().map(crate::store::tasks::Shard::group));
    config.groups.sort();
    config.groups.dedup();
    config.companion = Some(Arc::new(Hub::new(settings, routes, shards)));
}

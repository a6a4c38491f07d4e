//! The start of an instance: settings gathered, checked all at once, and the framework's thread started.

mod announce;
mod calendars;
mod fault;
mod history;
mod hooks;
mod jobs;
mod settings;
mod source;
mod start;
#[cfg(feature = "testing")]
mod suites;
#[cfg(feature = "tasks")]
mod tasks;
#[cfg(all(test, feature = "macros"))]
mod tests;
mod time_zones;
mod tries;
mod unfinished;
mod variables;
mod wish;
mod within;

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::sync::broadcast;

pub use fault::{BootstrapError, Fault};
pub use source::{Env, IntoStore, env};
#[cfg(feature = "testing")]
pub(crate) use suites::Simulated;
#[cfg(feature = "tasks")]
pub use tasks::TaskSettings;
pub use wish::JobSettings;

use crate::event::{BACKLOG, Events, Stamped};
use crate::job::around::Around;
use crate::job::extract::States;
use crate::job::failure::Hook;
use crate::job::record::{Job, Record};
use crate::names::GroupName;
use crate::runtime::config::Candidacy;
use crate::schedule::blackout::Calendar;
use crate::store::ledger::Keep;
use crate::timing::Timing;
use settings::Vars;
use source::Source;
use within::Within;

/// Starts an instance: one lease for each group of the program's annotated functions, plus `default`.
///
/// `store` is a Redis or Valkey URL, a `redis::Client` (only its connection info is taken), [`Embedded`](crate::Embedded), or
/// [`env()`]. Await the builder; it resolves when every group has had one answer from the store, or after one second. An
/// unreachable store is no error unless [`require_store`](Bootstrap::require_store) says so: the instance then leads nothing and
/// keeps trying.
///
/// ```standalone_crate
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), leader_core::BootstrapError> {
/// let instance = leader_core::bootstrap(leader_core::Embedded::new()).await?;
/// assert!(instance.is_leader("default"));
/// instance.shutdown().await;
/// # Ok(())
/// # }
/// ```
///
/// Every plain setting can also be given by an environment variable, which wins over the code: `LEADER_NAMESPACE`,
/// `LEADER_SERVICE`, `LEADER_VERSION`, `LEADER_INSTANCE_ID`, `LEADER_TTL`, `LEADER_DRAIN`, `LEADER_CAMPAIGN` (`all`, `none` or groups),
/// `LEADER_FIRST_START`, `LEADER_EXCLUSIVE_ID`, `LEADER_SPREAD` (`on`, `off`), `LEADER_FOLLOW_STORE_CLOCK`,
/// `LEADER_REQUIRE_STORE`, `LEADER_MAX_CONCURRENT_JOBS`, `LEADER_TIME_ZONES` (`bundled`, `system`), `LEADER_JOBS` (`all`, `none`), and for each job, in capitals and with `_` for every other
/// character, `LEADER_JOB_PURGE_SESSIONS_CRON` or `…_EVERY` (`off`, or an expression), `…_TIMEZONE`, `…_DAYS` (`or`, `and`), `…_GRACE`,
/// `…_JITTER` and `…_EXCEPT` (calendars with commas between them, or `none`). Each setting of a job is taken on its own: an expression from the environment keeps the attribute's time zone.
#[must_use = "an instance starts when the builder is awaited"]
pub fn bootstrap(store: impl IntoStore) -> Bootstrap {
    Bootstrap::new(store.into_source())
}

/// The settings of an instance that is about to start; made by [`bootstrap`].
#[must_use = "an instance starts when the builder is awaited"]
#[derive(Debug)]
#[allow(clippy::struct_excessive_bools, reason = "each is a promise or a wish of its own")]
pub struct Bootstrap {
    source: Result<Source, Fault>,
    namespace: Option<String>,
    service: Option<String>,
    instance_id: Option<String>,
    version: Option<String>,
    labels: BTreeMap<String, String>,
    timing: Timing,
    drain: Duration,
    groups: Vec<String>,
    candidacy: Candidacy,
    faults: Vec<Fault>,
    jobs: Vec<(String, JobSettings)>,
    calendars: Vec<(String, Calendar)>,
    keep: Keep,
    expected: Vec<&'static str>,
    /// Jobs besides those that the linker collected.
    records: Vec<&'static Record>,
    states: States,
    around: Around,
    on_failure: Vec<Hook>,
    max_concurrent_jobs: Option<usize>,
    first_start: bool,
    exclusive_id: bool,
    spread: bool,
    system_time_zones: bool,
    follow_store_clock: bool,
    require_store: bool,
    single_process: bool,
    events: broadcast::Sender<Stamped>,
    /// A wall clock that is wrong.
    machine: Option<String>,
    wall_ahead: Option<jiff::SignedDuration>,
    within: Within,
    #[cfg(feature = "tasks")]
    tasks: TaskSettings,
    vars: Vars,
}

/// The bound of a step-down's wait for its bodies.
pub(crate) const DRAIN: Duration = Duration::from_secs(10);

impl Bootstrap {
    fn new(source: Result<Source, Fault>) -> Self {
        Self {
            source,
            namespace: None,
            service: None,
            instance_id: None,
            version: None,
            labels: BTreeMap::new(),
            timing: Timing::default(),
            drain: DRAIN,
            groups: Vec::new(),
            candidacy: Candidacy::All,
            faults: Vec::new(),
            jobs: Vec::new(),
            calendars: Vec::new(),
            keep: Keep::default(),
            expected: Vec::new(),
            records: Vec::new(),
            states: States::default(),
            around: Around::default(),
            on_failure: Vec::new(),
            max_concurrent_jobs: None,
            first_start: false,
            exclusive_id: false,
            spread: true,
            system_time_zones: false,
            follow_store_clock: false,
            require_store: false,
            single_process: false,
            events: broadcast::Sender::new(BACKLOG),
            machine: None,
            wall_ahead: None,
            within: Within::default(),
            #[cfg(feature = "tasks")]
            tasks: TaskSettings::default(),
            vars: Vars::process(),
        }
    }

    /// A value for every job that asks for its type as `State<T>`.
    pub fn state<T: Clone + Send + Sync + 'static>(mut self, value: T) -> Self {
        self.states.insert(value);
        self
    }

    /// What separates this fleet from others on the same store. Empty, the default, gives plain `leader:<group>` keys.
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = Some(namespace.into());
        self
    }

    /// The name of the program; the executable's, unless given. All instances of a namespace run one service.
    pub fn service(mut self, service: impl Into<String>) -> Self {
        self.service = Some(service.into());
        self
    }

    /// The program's version, as `env!("CARGO_PKG_VERSION")`. The fleet's roster shows it, and when a group falls vacant the newest
    /// version comes first, so that a roll-out hands its groups on once. Compared by its numbers.
    pub fn version(mut self, version: impl Into<String>) -> Self {
        self.version = Some(version.into());
        self
    }

    /// Whether groups move to the instances that they prefer, so that not all stay with the one that was there first; on unless
    /// given. In a fleet that has been the same for six TTLs an instance that leads several groups gives up, one at a time and only
    /// while nothing of it runs, those that prefer another of the same version with as many of their jobs.
    pub fn spread(mut self, spread: bool) -> Self {
        self.spread = spread;
        self
    }

    /// What the roster shows beside this instance, such as its zone or its pod.
    pub fn labels<N: Into<String>, V: Into<String>>(mut self, labels: impl IntoIterator<Item = (N, V)>) -> Self {
        let labels = labels.into_iter().map(|(name, value)| (name.into(), value.into()));
        self.labels.extend(labels);
        self
    }

    /// A label for this instance; host name, process id and a random part, unless given. It does not make two processes one: what
    /// a lease names has a random part besides.
    pub fn instance_id(mut self, id: impl Into<String>) -> Self {
        self.instance_id = Some(id.into());
        self
    }

    /// The promise that at most one process with this instance's id is alive at any time, as the platform keeps it for a named pod of a
    /// stateful set: a restarted process takes its predecessor's leases over at once instead of waiting for their ends. It needs
    /// [`instance_id`](Self::instance_id). When the promise is broken all the same, both processes say so, and neither takes a
    /// lease of the other any more.
    pub fn exclusive_id(mut self, exclusive: bool) -> Self {
        self.exclusive_id = exclusive;
        self
    }

    /// The times of the elections.
    pub fn timing(mut self, timing: Timing) -> Self {
        self.timing = timing;
        self
    }

    /// How long a step-down or shutdown waits for running bodies before it drops them; 10 s unless given.
    pub fn drain(mut self, bound: Duration) -> Self {
        self.drain = bound;
        self
    }

    /// Groups to lead besides those of the annotated functions.
    pub fn groups<G: Into<String>>(mut self, groups: impl IntoIterator<Item = G>) -> Self {
        self.groups.extend(groups.into_iter().map(Into::into));
        self
    }

    /// Whether to take part in elections; `false` makes an instance that only watches.
    pub fn campaign(mut self, campaign: bool) -> Self {
        self.candidacy = if campaign { Candidacy::All } else { Candidacy::None };
        self
    }

    /// Takes part in the elections of these groups only.
    pub fn campaign_only<G: Into<String>>(mut self, groups: impl IntoIterator<Item = G>) -> Self {
        let mut only = std::collections::BTreeSet::new();
        for group in groups {
            match GroupName::new(group.into()) {
                Ok(group) => {
                    only.insert(group);
                }
                Err(error) => self.faults.push(error.into()),
            }
        }
        self.candidacy = Candidacy::Only(only);
        self
    }

    /// Whether time zones are taken from the system's copy of the time zone database instead of the one that is compiled in
    /// ([`TZDB_VERSION`](crate::TZDB_VERSION)). The system's may be newer than the build; keep it the same on all machines, because
    /// instances with different rules for a zone plan different ticks. It is read once, at the start.
    pub fn system_time_zones(mut self, system: bool) -> Self {
        self.system_time_zones = system;
        self
    }

    /// Demands that a job is part of the program. Naming its type here also links the crate that it lives in: a crate that nothing
    /// names is not linked, and its jobs vanish silently.
    pub fn expect<J: Job>(mut self) -> Self {
        self.expected.push(J::NAME);
        self
    }

    /// Changes a job's settings; what is not named stays as the attribute has it. Said twice, the later word counts.
    ///
    /// ```
    /// # fn doc() {
    /// # let _ =
    /// leader_core::bootstrap(leader_core::Embedded::new())
    ///     .job("purge_sessions", |job| job.cron("0 4 * * *").timezone("Europe/Berlin"))
    /// # ;
    /// # }
    /// ```
    pub fn job(mut self, name: impl Into<String>, change: impl FnOnce(JobSettings) -> JobSettings) -> Self {
        self.jobs.push((name.into(), change(JobSettings::default())));
        self
    }

    /// Takes a job off this instance's schedule.
    pub fn disable(self, name: impl Into<String>) -> Self {
        self.job(name, JobSettings::off)
    }

    /// Makes an unreachable store an error of the start.
    pub fn require_store(mut self) -> Self {
        self.require_store = true;
        self
    }

    /// The promise that this is the first start ever of the fleet's groups, so that no leader of an earlier life can believe. It
    /// skips the quarantine of one TTL.
    pub fn first_start(mut self, first: bool) -> Self {
        self.first_start = first;
        self
    }

    /// The operator's word that the store's clock is right, whatever the fleet's wall clocks say: ticks go on by it. Without it no tick
    /// is claimed while most instances disagree with that clock by more than 5 s, and in the same way
    /// ([`Event::ClockDisputed`](crate::Event::ClockDisputed)); where the store's clock is the wrong one, mend that instead, and take
    /// this out again afterwards.
    pub fn follow_store_clock(mut self, follow: bool) -> Self {
        self.follow_store_clock = follow;
        self
    }

    /// The promise that the service runs as one process, which allows the embedded store under Kubernetes.
    pub fn single_process(mut self) -> Self {
        self.single_process = true;
        self
    }

    /// The instance's events from its very first on: those of the start are told before [`Instance::events`](crate::Instance::events) can be called.
    ///
    /// ```standalone_crate
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let bootstrap = leader_core::bootstrap(leader_core::Embedded::new());
    /// let mut events = bootstrap.events();
    /// let instance = bootstrap.await?;
    /// assert!(matches!(events.recv().await?.event, leader_core::Event::Started { .. }));
    /// # instance.shutdown().await;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn events(&self) -> Events {
        Events::new(self.events.subscribe(), false)
    }

    /// Takes environment variables from here instead of the process.
    #[cfg(all(test, feature = "macros"))]
    pub(crate) fn vars(mut self, vars: &'static [(&'static str, &'static str)]) -> Self {
        self.vars = Vars::fixed(vars);
        self
    }
}

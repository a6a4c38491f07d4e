//! A fleet on virtual time: the real engines, drivers and ledger, in one thread, over the embedded store behind a link that fails.
//!
//! The method is that of `FoundationDB` (Zhou et al., "`FoundationDB`: a distributed unbundled transactional key value store", 2021,
//! section 4) and `TigerBeetle`: everything follows from one seed, faults are far more frequent than in the world, and what must not be
//! is looked for at each step instead of at the end.

mod dice;
mod fault;
mod faults;
mod invariants;
mod judge;
mod leases;
mod link;
mod minimise;
mod nemesis;
mod probe;
mod report;
mod run;
mod seen;
mod servers;
#[cfg(feature = "tasks")]
mod tasks;
mod world;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

pub use fault::{Fault, FaultKind};
pub use faults::Faults;
pub use judge::Violation;
pub use report::Report;

use self::dice::Dice;
use crate::bootstrap::Bootstrap;
use crate::job::record::{Job, Record};
#[cfg(feature = "mutants")]
use crate::mutants::{Mutant, Planting};
use crate::names::{DEFAULT_GROUP, GroupName};
use crate::timing::Timing;

/// The longest span that can be simulated.
const LONGEST: Duration = Duration::from_secs(100 * 366 * 86_400);
/// Between which seconds since 1970 it may begin.
const YEAR_2000: i64 = 946_684_800;
const YEAR_2200: i64 = 7_258_118_400;

/// The longest leases of a simulation that were not asked for.
const LONGEST_TTL: Duration = Duration::from_secs(600);

type Configure = Arc<dyn Fn(Bootstrap) -> Bootstrap + Send + Sync>;

/// What a run is made of.
#[derive(Clone)]
pub(super) struct Setting {
    instances: usize,
    jobs: Vec<&'static Record>,
    #[cfg(feature = "tasks")]
    tasks: Vec<tasks::Kind>,
    configure: Vec<Configure>,
    begin: Timestamp,
    span: Duration,
    timing: Timing,
    faults: Faults,
    seed: u64,
    keeps_log: bool,
    ends_early: bool,
    #[cfg(feature = "mutants")]
    mutant: Option<Mutant>,
    settle_within: Duration,
}

impl Setting {
    /// Whether there is nothing to do.
    fn is_empty(&self) -> bool {
        #[cfg(feature = "tasks")]
        if !self.tasks.is_empty() {
            return false;
        }
        self.jobs.is_empty()
    }

    /// All that are led for jobs, in order.
    fn groups(&self) -> Vec<GroupName> {
        let named = self.jobs.iter().map(|job| job.group).chain([DEFAULT_GROUP]);
        let mut groups: Vec<_> = named.filter_map(|group| GroupName::new(group).ok()).collect();
        groups.sort();
        groups.dedup();
        groups
    }
}

/// A fleet that is about to be simulated: identical instances of the real thing in one thread, on virtual time, over a store and links
/// that fail as they are told to.
///
/// What the promises say is looked for at each step, and a [`Report`] tells what became of every tick; whether the jobs did what they should is for
/// the test to say, by the state that they were given: a fleet is sound also where a job that is tried again pays twice.
///
/// # What a job may do in it
/// - Jobs sleep by `tokio::time`, which passes at once while nobody has anything to do. `std::time::Instant`, `SystemTime` and `Timestamp::now()`
///   tell the time of the world outside; [`Tick`](crate::Tick) tells the fleet's.
/// - The runtime has no IO. A body that opens a socket panics, which is the outcome `ran.panic` of its run and no violation: give it a
///   stand-in as its state. What it waits for in another thread (`spawn_blocking`, a channel) takes real time, in which virtual time may leap.
/// - All instances are in one process and share its statics and the clones of a [`state`](Self::state), which is the world around them. A task
///   that a body spawns and leaves alone belongs to no instance, and outlives a crash.
/// - A body that never yields, or blocks its thread for ever, holds up all: nothing ends it. So does one that always has something to do, such as a
///   loop over `yield_now` until some time is over: no time passes meanwhile.
/// - What throws dice of its own is not repeated by a seed: `tokio::select!` without `biased`, several that wait at one `tokio::sync::watch`,
///   a `HashMap` that is iterated.
/// - A debug build takes ten times as long as a release build, and a day of a job each minute some seconds there:
///   `cargo test --release`, or a shorter [`lasting`](Self::lasting).
///
/// Here a job pays what is due. It marks what it has paid after it has paid it, and a crash in between pays twice:
///
/// ```
/// use std::collections::BTreeMap;
/// use std::sync::{Arc, Mutex};
/// use std::time::Duration;
///
/// use leader_core::testing::{FaultKind, Faults, Simulation};
/// use leader_core::{State, Tick, leader_only};
///
/// #[derive(Clone, Default)]
/// struct Bank(Arc<Mutex<Accounts>>);
///
/// #[derive(Default)]
/// struct Accounts {
///     /// By invoice, how often it was paid.
///     paid: BTreeMap<i64, u32>,
///     /// Up to which invoice all are marked as paid.
///     marked: i64,
/// }
///
/// impl Bank {
///     /// `once` gives the bank a key, by which it refuses to pay again.
///     async fn pay(&self, invoice: i64, once: bool) {
///         let paid = &mut self.0.lock().unwrap().paid;
///         if !(once && paid.contains_key(&invoice)) {
///             *paid.entry(invoice).or_default() += 1;
///         }
///     }
///
///     fn paid_twice(&self) -> usize {
///         self.0.lock().unwrap().paid.values().filter(|times| **times > 1).count()
///     }
/// }
///
/// async fn pay_all(tick: Tick, bank: Bank, once: bool) {
///     let from = bank.0.lock().unwrap().marked + 1;
///     for invoice in from..=tick.scheduled_at().as_second() / 600 {
///         bank.pay(invoice, once).await;
///         tokio::time::sleep(Duration::from_secs(20)).await;
///         bank.0.lock().unwrap().marked = invoice;
///     }
/// }
///
/// #[leader_only(every = "10m")]
/// async fn pay(tick: Tick, State(bank): State<Bank>) {
///     pay_all(tick, bank, false).await;
/// }
///
/// #[leader_only(every = "10m")]
/// async fn pay_once(tick: Tick, State(bank): State<Bank>) {
///     pay_all(tick, bank, true).await;
/// }
///
/// let begin = "2026-03-02T00:00:00Z".parse().unwrap();
/// let bank = || {
///     let bank = Bank::default();
///     bank.0.lock().unwrap().marked = "2026-03-02T00:00:00Z".parse::<jiff::Timestamp>().unwrap().as_second() / 600;
///     bank
/// };
/// let hours = Simulation::new()
///     .starting(begin)
///     .lasting(Duration::from_secs(4 * 3_600))
///     .faults(Faults::realistic().with(FaultKind::Crash, 12.0));
///
/// let careless = bank();
/// hours.clone().job::<pay>().state(careless.clone()).run().assert_sound();
/// assert!(careless.paid_twice() > 0, "the fleet kept its promises, and the job did not");
///
/// let careful = bank();
/// hours.job::<pay_once>().state(careful.clone()).run().assert_sound();
/// assert_eq!(careful.paid_twice(), 0);
/// ```
#[derive(Clone)]
#[must_use = "nothing happens before `run`"]
pub struct Simulation {
    setting: Setting,
    /// Whether the times of the elections were given.
    timed: bool,
}

impl fmt::Debug for Simulation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Simulation")
            .field("seed", &self.setting.seed)
            .field("instances", &self.setting.instances)
            .field("jobs", &self.setting.jobs)
            .field("span", &self.setting.span)
            .finish_non_exhaustive()
    }
}

impl Default for Simulation {
    fn default() -> Self {
        Self::new()
    }
}

impl Simulation {
    /// Three instances, a day, no faults.
    pub fn new() -> Self {
        Self {
            setting: Setting {
                instances: 3,
                jobs: Vec::new(),
                #[cfg(feature = "tasks")]
                tasks: Vec::new(),
                configure: Vec::new(),
                // A Monday; Europe's clocks change four weeks later.
                begin: Timestamp::from_second(1_772_409_600).unwrap_or(Timestamp::UNIX_EPOCH),
                span: Duration::from_secs(86_400),
                timing: Timing::default(),
                faults: Faults::none(),
                seed: 1,
                keeps_log: false,
                ends_early: false,
                #[cfg(feature = "mutants")]
                mutant: None,
                settle_within: Duration::from_secs(3_600),
            },
            timed: false,
        }
    }

    /// So many instances.
    ///
    /// # Panics
    /// When there are none, or more than 99.
    pub fn instances(mut self, instances: usize) -> Self {
        assert!((1..=99).contains(&instances), "{instances} instances: simulate 1 to 99");
        self.setting.instances = instances;
        self
    }

    /// A job of the fleet. Only those that are given are simulated, whatever else the program has.
    pub fn job<J: Job>(mut self) -> Self {
        self.setting.jobs.push(Box::leak(Box::new(J::RECORD)));
        self
    }

    /// A value for every job that asks for its type as `State<T>`: all instances share its clones.
    pub fn state<T: Clone + Send + Sync + 'static>(self, value: T) -> Self {
        self.configure(move |bootstrap| bootstrap.state(value.clone()))
    }

    /// Other settings of each instance, at each of its starts.
    pub fn configure(mut self, configure: impl Fn(Bootstrap) -> Bootstrap + Send + Sync + 'static) -> Self {
        self.setting.configure.push(Arc::new(configure));
        self
    }

    /// For so many days.
    ///
    /// # Panics
    /// As [`lasting`](Self::lasting) does.
    pub fn for_days(self, days: u64) -> Self {
        self.lasting(Duration::from_secs(days.saturating_mul(86_400)))
    }

    /// For so long.
    ///
    /// # Panics
    /// When that is nothing, or more than a hundred years.
    pub fn lasting(mut self, span: Duration) -> Self {
        assert!(
            !span.is_zero() && span <= LONGEST,
            "{span:?}: simulate more than nothing, and at most a hundred years"
        );
        self.setting.span = span;
        if !self.timed {
            let ttl = (span / 50_000).clamp(Timing::default().ttl(), LONGEST_TTL);
            self.setting.timing = Timing::from_ttl(ttl);
        }
        self
    }

    /// From this instant on; a Monday in March 2026 unless given.
    ///
    /// # Panics
    /// When it is before 2000, or after 2200: the clocks of servers count from 1970, and schedules end in 9999.
    pub fn starting(mut self, begin: Timestamp) -> Self {
        assert!(
            (YEAR_2000..YEAR_2200).contains(&begin.as_second()),
            "{begin}: begin between 2000 and 2200"
        );
        self.setting.begin = begin;
        self
    }

    /// The times of the elections. Unless they are given, leases last as they do by default, and longer where more than five days are
    /// simulated, up to ten minutes: so that a year is over within a minute.
    pub fn timing(mut self, timing: Timing) -> Self {
        self.setting.timing = timing;
        self.timed = true;
        self
    }

    /// What happens to the fleet.
    pub fn faults(mut self, faults: Faults) -> Self {
        self.setting.faults = faults;
        self
    }

    /// What everything follows from; 1 unless given. The same seed gives the same run.
    pub fn seed(mut self, seed: u64) -> Self {
        self.setting.seed = seed;
        self
    }

    /// Keeps a line of everything that is seen.
    pub fn logged(mut self) -> Self {
        self.setting.keeps_log = true;
        self
    }

    /// Ends as soon as something was seen that must not be; what became of the ticks is not told then.
    pub fn until_a_violation(mut self) -> Self {
        self.setting.ends_early = true;
        self
    }

    /// With a fault in the code itself.
    #[cfg(feature = "mutants")]
    #[doc(hidden)]
    pub fn planted(mut self, mutant: Mutant) -> Self {
        self.setting.mutant = Some(mutant);
        self
    }

    /// Runs it to its end.
    ///
    /// # Panics
    /// When the instances cannot be started with what they were given; when no job was given, or a handler, whose
    /// schedules are made at run time; and inside a tokio runtime, because it has one of its own: call it in a plain `#[test]`.
    #[must_use]
    pub fn run(&self) -> Report {
        self.run_with(&self.plan())
    }

    /// The faults that will happen.
    #[must_use]
    pub fn plan(&self) -> Vec<Fault> {
        let setting = &self.setting;
        let dice = Dice::new(setting.seed).fork(7);
        setting.faults.plan(setting.span, setting.instances, &dice)
    }

    /// As few of a report's faults as bring about the same kind of violation, as far as 400 runs find them; with the report of the last. What
    /// a test finds wrong with its jobs by itself is narrowed down by [`fewest`](Self::fewest).
    ///
    /// # Panics
    /// As [`run`](Self::run) does.
    #[must_use]
    pub fn minimise(&self, report: &Report) -> Report {
        minimise::minimise(report, |plan| self.run_with(plan))
    }

    /// Runs it with these faults instead: those of its [`plan`](Self::plan), or some of them.
    ///
    /// # Panics
    /// As [`run`](Self::run) does, and when one is of an instance that it has not, or after its end.
    #[must_use]
    pub fn run_with(&self, plan: &[Fault]) -> Report {
        #[cfg(feature = "mutants")]
        let _planting = Planting::new(self.setting.mutant);
        run::run(&self.setting, plan)
    }
}

//! Why an instance could not start.

use super::settings::{MAX_LABEL, MAX_LABELS};
use crate::names::NameError;
use crate::schedule::ScheduleError;
use crate::store::ledger::MOST_KEPT;
use crate::store::{Finding, StoreError};
use crate::timing::TimingError;

/// Why an instance could not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BootstrapError {
    /// Settings that cannot work: all of them, not only the first.
    #[error("{}", list(.0))]
    Invalid(Vec<Fault>),
    /// Another service is alive in the namespace.
    #[error(
        "service `{theirs}` (instance {instance}) is alive in the namespace `{namespace}`, and this is service `{ours}`: give each a namespace \
         of its own with `.namespace(..)`, or, where both are binaries of one service, one name with `.service(..)`"
    )]
    #[non_exhaustive]
    OtherService {
        /// This program's service.
        ours: String,
        /// The other one.
        theirs: String,
        /// One of its instances.
        instance: String,
        /// The namespace.
        namespace: String,
    },
    /// The store is unreachable, and `.require_store()` makes that an error.
    #[error("the store is required and cannot be used")]
    Store(#[source] StoreError),
    /// The store cannot hold leases.
    #[error("the store at {address} cannot hold leases: {}", texts(.findings))]
    #[non_exhaustive]
    UnfitStore {
        /// Where it is.
        address: String,
        /// Why, and what to do.
        findings: Vec<Finding>,
    },
    /// Not called inside a tokio runtime.
    #[error("no tokio runtime: call `bootstrap(..).await` inside one, for example in `#[tokio::main]`")]
    NoRuntime,
    /// The system gave no thread.
    #[error("the framework's thread could not be started")]
    Thread(#[source] std::io::Error),
}

fn texts(findings: &[Finding]) -> String {
    let texts: Vec<_> = findings.iter().map(ToString::to_string).collect();
    texts.join("; ")
}

fn list(faults: &[Fault]) -> String {
    match faults {
        [one] => one.to_string(),
        many => {
            let mut text = format!("{} settings cannot work:", many.len());
            for fault in many {
                text.push_str("\n  - ");
                text.push_str(&fault.to_string().replace('\n', "\n    "));
            }
            text
        }
    }
}

/// One setting that cannot work.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// A name is not legal.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The times do not fit together.
    #[error(transparent)]
    Timing(#[from] TimingError),
    /// The store's address cannot be used.
    #[error("{}", crate::job::output::chain(.0))]
    Store(StoreError),
    /// No store was given.
    #[error(
        "no store: set LEADER_REDIS_URL to a `redis://` URL, or LEADER_STORE=embedded for a fleet of this process alone"
    )]
    NoStore,
    /// Both kinds of store were given.
    #[error("LEADER_REDIS_URL and LEADER_STORE=embedded are both set: unset one of them")]
    TwoStores,
    /// A job asks for a state that nobody gave.
    #[error(
        "job `{job}` asks for `State<{state}>`: give it with `.state(value)`, or make the argument `Option<State<{state}>>`"
    )]
    #[non_exhaustive]
    MissingState {
        /// The job.
        job: &'static str,
        /// The type.
        state: &'static str,
    },
    /// Two tasks of one name.
    #[error(
        "two tasks are named `{task}`, in `{first}` and in `{second}`: give one of them another with `name = \"…\"`"
    )]
    #[non_exhaustive]
    DoubledTask {
        /// The name.
        task: &'static str,
        /// The module of one.
        first: &'static str,
        /// The module of the other.
        second: &'static str,
    },
    /// A task and a job whose ticks become tasks have one name.
    #[error(
        "a task and a job that runs `on = \"fleet\"` are both named `{name}`: give one of them another with `name = \"…\"`"
    )]
    #[non_exhaustive]
    TaskAndJob {
        /// The name.
        name: String,
    },
    /// A setting of tasks that cannot work.
    #[error("`tasks.{setting}` cannot work: {reason}")]
    #[non_exhaustive]
    Tasks {
        /// The setting, as it was written.
        setting: String,
        /// Why, and what to write.
        reason: String,
    },
    /// Two states of one type.
    #[error("two values of type `{state}` were given to `.state(..)`: wrap one of them in a type of its own")]
    #[non_exhaustive]
    DoubledState {
        /// The type.
        state: &'static str,
    },
    /// Two jobs of one name.
    #[error("two jobs are named `{job}`, in `{first}` and in `{second}`: give one of them another with `name = \"…\"`")]
    #[non_exhaustive]
    DoubledJob {
        /// The name.
        job: &'static str,
        /// The module of one.
        first: &'static str,
        /// The module of the other.
        second: &'static str,
    },
    /// A job says that it had a name which another job of the program has.
    #[error(
        "`{job}` says that it was `{was}`, which is another job of this program: take `was` out, or rename that one"
    )]
    #[non_exhaustive]
    WasAJob {
        /// The job.
        job: &'static str,
        /// The name.
        was: &'static str,
    },
    /// An earlier name is claimed twice.
    #[error(
        "`was = \"{was}\"` is said of `{first}` and of `{second}`: one job takes over what another had, and no two do"
    )]
    #[non_exhaustive]
    DoubledWas {
        /// The name.
        was: &'static str,
        /// One job.
        first: &'static str,
        /// The other; the same, where it says it twice.
        second: &'static str,
    },
    /// A setting names a job that the program does not have.
    #[error("`{job}` is no job of this program; it has {known}")]
    #[non_exhaustive]
    UnknownJob {
        /// The name.
        job: String,
        /// The names that exist.
        known: String,
    },
    /// A setting names a group that the program does not have.
    #[error("`{group}` is no group of this program; it has {known}")]
    #[non_exhaustive]
    UnknownGroup {
        /// The name.
        group: String,
        /// The names that exist.
        known: String,
    },
    /// A job names a calendar that nobody gave.
    #[error(
        "`{job}` runs except on `{calendar}`, which nobody gave: give it with `.calendar(\"{calendar}\", ..)`; given are {known}"
    )]
    #[non_exhaustive]
    UnknownCalendar {
        /// The job.
        job: String,
        /// The calendar.
        calendar: String,
        /// The names of those that are given.
        known: String,
    },
    /// A range of a calendar ends before it begins.
    #[error("the calendar `{calendar}`: {range} end before they begin")]
    #[non_exhaustive]
    ReversedRange {
        /// The calendar.
        calendar: String,
        /// The range.
        range: String,
    },
    /// A long-lived body asks for a tick.
    #[error("`{job}` is a `while_leading` body and has no tick: take a `Lead` instead")]
    #[non_exhaustive]
    NoTick {
        /// The body.
        job: &'static str,
    },
    /// A schedule is not legal.
    #[error("the schedule of `{job}`: {error}")]
    #[non_exhaustive]
    Schedule {
        /// The job.
        job: String,
        /// Why.
        error: ScheduleError,
    },
    /// Another setting of a job is not legal.
    #[error("`{setting}` of `{job}`: {reason}")]
    #[non_exhaustive]
    JobSetting {
        /// The job.
        job: String,
        /// The setting, such as `grace`.
        setting: &'static str,
        /// Why.
        reason: String,
    },
    /// The system's time zone database is asked for and cannot be read.
    #[error(
        "`.system_time_zones(true)`, or LEADER_TIME_ZONES=system, asks for the system's time zone database, and there is none in {looked_in}: \
         install tzdata, say where it is with TZDIR, or take the setting back and use the database that is compiled in"
    )]
    #[non_exhaustive]
    NoTimeZones {
        /// The directories.
        looked_in: String,
    },
    /// An environment variable is not legal.
    #[error("{variable}={value} is refused: {reason}")]
    #[non_exhaustive]
    Variable {
        /// The variable.
        variable: String,
        /// Its value.
        value: String,
        /// Why.
        reason: String,
    },
    /// A version, or a name or value of a label, that is too long or holds control characters.
    #[error("the label or version {text:?} is refused: use at most {MAX_LABEL} bytes without control characters")]
    #[non_exhaustive]
    Label {
        /// The text.
        text: String,
    },
    /// Too many labels.
    #[error("{count} labels are refused: use at most {MAX_LABELS}")]
    #[non_exhaustive]
    TooManyLabels {
        /// How many were given.
        count: usize,
    },
    /// The promise of one process for each id, without an id.
    #[error(
        "`.exclusive_id(true)`, or LEADER_EXCLUSIVE_ID, needs an id that a restarted process has again: give it with `.instance_id(..)` or LEADER_INSTANCE_ID"
    )]
    ExclusiveWithoutId,
    /// Nothing, or too much, of the past is to be kept.
    #[error(
        "`.history(..)` with {runs} runs, {others} other records and an age of {age:?} is refused: keep 1 to {MOST_KEPT} of each, for at least 1s"
    )]
    #[non_exhaustive]
    History {
        /// Of runs.
        runs: usize,
        /// Of ticks that did not run.
        others: usize,
        /// How old they may be.
        age: std::time::Duration,
    },
    /// No job may run.
    #[error(
        "`.max_concurrent_jobs(0)` would run no job at all: give at least 1, or take jobs off the schedule with `.disable(..)` or LEADER_JOBS=none"
    )]
    NoPlaces,
    /// The embedded store in a fleet of several processes.
    #[error(
        "the embedded store is a fleet of this process alone, and this runs under Kubernetes: give a Redis URL, \
         or promise a single process with `.single_process()`"
    )]
    EmbeddedUnderKubernetes,
}

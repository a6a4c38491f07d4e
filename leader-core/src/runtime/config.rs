//! What an instance was given, checked.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use crate::clock::Clock;
use crate::job::around::Around;
use crate::job::extract::States;
use crate::job::failure::Hook;
use crate::job::record::{Body, On, OnLoss, Overlap};
use crate::job::scope::Skipped;
use crate::names::{GroupName, Holder, InstanceId, JobName, Namespace, ServiceName};
use crate::runtime::companion::Companion;
use crate::runtime::process::Process;
use crate::schedule::planner::{self, Rule};
use crate::schedule::{Backoff, Schedule};
use crate::store::ledger::Keep;
use crate::timing::Timing;

/// An instance's settings.
#[derive(Debug)]
#[allow(clippy::struct_excessive_bools, reason = "each is a promise or a wish of its own")]
pub(crate) struct Config {
    pub(crate) namespace: Namespace,
    pub(crate) service: ServiceName,
    pub(crate) instance: InstanceId,
    pub(crate) holder: Holder,
    /// The service's version; empty when it was not given.
    pub(crate) version: String,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) timing: Timing,
    /// The bound of a step-down's wait for its bodies.
    pub(crate) drain: Duration,
    pub(crate) first_start: bool,
    /// The promise that no other process of this id is alive.
    pub(crate) exclusive_id: bool,
    /// The version of the time zone database that zones are taken from: `2026f`, or of the system's `system 2026f`.
    pub(crate) time_zones: String,
    /// The machine that it runs on: all of its instances have one wall clock.
    pub(crate) machine: String,
    /// Groups move to the instances that they prefer.
    pub(crate) spread: bool,
    /// The operator's word that the store's clock is right, whatever the fleet's say.
    pub(crate) follow_store_clock: bool,
    pub(crate) candidacy: Candidacy,
    /// Triggers fire only by hand.
    pub(crate) manual_ticks: bool,
    pub(crate) clock: Clock,
    pub(crate) process: Process,
    pub(crate) states: States,
    pub(crate) around: Around,
    pub(crate) on_failure: Vec<Hook>,
    /// The most job bodies at once; `None` for as many as come.
    pub(crate) max_concurrent_jobs: Option<NonZeroUsize>,
    /// How much of each job's past is kept.
    pub(crate) keep: Keep,
    pub(crate) groups: Vec<GroupName>,
    pub(crate) jobs: Vec<Arc<JobSpec>>,
    pub(crate) lives: Vec<LifeSpec>,
    /// The settings that each schedule gets which is made for a handler at run time.
    pub(crate) handlers: Vec<Arc<JobSpec>>,
    /// What works beside the engine.
    pub(crate) companion: Option<Arc<dyn Companion>>,
}

/// In which elections an instance takes part.
#[derive(Clone, Debug, Default)]
pub(crate) enum Candidacy {
    #[default]
    All,
    None,
    Only(BTreeSet<GroupName>),
}

impl Candidacy {
    pub(crate) fn has(&self, group: &GroupName) -> bool {
        match self {
            Self::All => true,
            Self::None => false,
            Self::Only(groups) => groups.contains(group),
        }
    }
}

/// A scheduled job.
#[derive(Clone)]
pub(crate) struct JobSpec {
    pub(crate) name: JobName,
    pub(crate) group: GroupName,
    pub(crate) rule: Rule,
    pub(crate) on: On,
    pub(crate) timeout: Option<Duration>,
    pub(crate) overlap: Overlap,
    pub(crate) on_loss: OnLoss,
    /// How often a failed run is tried again, and after which pauses.
    pub(crate) retries: u32,
    pub(crate) backoff: Backoff,
    /// The names that it had before, whose state in the store is its own.
    pub(crate) was: Vec<JobName>,
    pub(crate) body: Body,
    /// What is its own when it was made at run time.
    pub(crate) made: Option<Arc<Made>>,
    /// How its ticks are run as tasks, where that is what becomes of them: the leader only hands them over.
    #[cfg_attr(not(feature = "tasks"), allow(dead_code, reason = "the workers read it"))]
    pub(crate) fleet: Option<FleetSpec>,
}

/// How the ticks of a job are run by the workers of the fleet.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(not(feature = "tasks"), allow(dead_code, reason = "the workers read it"))]
pub(crate) struct FleetSpec {
    pub(crate) queue: &'static str,
    pub(crate) concurrency: Option<u32>,
    pub(crate) retries: u32,
    pub(crate) backoff: Backoff,
    pub(crate) timeout: Option<Duration>,
}

/// What a schedule made at run time has beside its handler's settings.
#[derive(Debug)]
pub(crate) struct Made {
    pub(crate) handler: JobName,
    /// As JSON.
    pub(crate) payload: Arc<str>,
    /// The number of its last change.
    pub(crate) number: u64,
    /// The number of the change that made it: another one of its name is another schedule.
    pub(crate) born: u64,
}

impl JobSpec {
    /// A job that can only be explained here: its body is another version's.
    pub(crate) fn without_handler(name: JobName, group: GroupName, schedule: Schedule) -> Self {
        Self {
            name,
            group,
            rule: Rule::new(schedule),
            on: On::Leader,
            timeout: None,
            overlap: Overlap::default(),
            on_loss: OnLoss::default(),
            retries: 0,
            backoff: Backoff::default(),
            was: Vec::new(),
            body: Body {
                run: |_| Box::pin(std::future::ready(Err(Skipped::NotBootstrapped))),
                needs: |_| {},
            },
            made: None,
            fleet: None,
        }
    }

    /// A job by a handler's settings.
    pub(crate) fn made(&self, name: JobName, group: GroupName, schedule: Schedule, made: Made) -> Self {
        let mut rule = self.rule.clone().with_schedule(schedule);
        rule.seed = planner::seed(name.as_str());
        Self {
            name,
            group,
            rule,
            made: Some(Arc::new(made)),
            ..self.clone()
        }
    }
}

impl JobSpec {
    /// Whether its ticks need no leader.
    pub(crate) fn is_unled(&self) -> bool {
        self.on == On::Any
    }
}

impl std::fmt::Debug for JobSpec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("JobSpec")
            .field("name", &self.name)
            .field("group", &self.group)
            .finish_non_exhaustive()
    }
}

/// Makes the future of a long-lived body.
pub(crate) type LifeFn = Arc<dyn Fn(&crate::job::extract::Given<'_>) -> crate::job::record::BodyFuture + Send + Sync>;

/// A body that lives as long as a leadership.
#[derive(Clone)]
pub(crate) struct LifeSpec {
    pub(crate) name: JobName,
    pub(crate) group: GroupName,
    pub(crate) start: LifeFn,
}

impl std::fmt::Debug for LifeSpec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LifeSpec")
            .field("name", &self.name)
            .field("group", &self.group)
            .finish_non_exhaustive()
    }
}

//! A handle on a running instance.

mod control;
mod coverage;
mod group;
mod health;
mod history;
mod lookup;
#[cfg(feature = "metrics")]
mod metrics;
mod schedules;
mod signals;
mod status;
#[cfg(feature = "tasks")]
mod tasks;

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::oneshot;

pub use control::{
    Backfilling, Cancelling, Control, ControlError, Done, Pausing, Requested, Resuming, Target, Triggering,
};
pub use group::Group;
pub use health::{Health, HealthCheck};
pub use history::History;
pub use lookup::NoTicks;
#[cfg(feature = "metrics")]
pub use metrics::{Metric, MetricKind, Metrics};
pub use schedules::{MadeSchedule, NewSchedule, Scheduled, SchedulingError, Unscheduled, Unscheduling};
use signals::Signals;
pub use status::{FleetError, GroupWatch, JobStatus, LedgerError, UnknownGroup};

use crate::event::Events;
use crate::job::gate::{GroupStatus, Lead};
use crate::job::output::JobOutput;
use crate::job::scope::{self, Scope};
use crate::names::{InstanceId, JobName, Namespace, ServiceName};
pub use crate::runtime::clock_status::{ClockDispute, ClockStatus};
use crate::runtime::config::LifeSpec;
use crate::runtime::engine::{Input, Request};
pub use crate::runtime::fleet::Member;
pub use crate::runtime::load::Load;
pub use crate::runtime::requests::StepDownError;
use crate::runtime::shared::Shared;
use crate::schedule::Planned;
use crate::store::JobLedger;
use crate::timing::Timing;

/// A handle on a running instance. Cheap to clone; dropping handles changes nothing: an instance runs until it is shut down, or
/// until the runtime that started it is gone.
#[derive(Clone, Debug)]
pub struct Instance {
    shared: Arc<Shared>,
}

/// A long-lived body given to [`Instance::while_leading`]. Dropping it changes nothing.
#[derive(Debug)]
pub struct WhileLeading {
    shared: Arc<Shared>,
    name: JobName,
}

impl WhileLeading {
    /// Ends the body: it is dropped at its next poll and not started again.
    pub fn stop(self) {
        self.shared.send(Input::Request(Request::EndLife(self.name)));
    }
}

impl Instance {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    /// The instance's id.
    #[must_use]
    pub fn id(&self) -> &InstanceId {
        &self.shared.config.instance
    }

    /// The program that it runs.
    #[must_use]
    pub fn service(&self) -> &ServiceName {
        &self.shared.config.service
    }

    /// The fleet's namespace.
    #[must_use]
    pub fn namespace(&self) -> &Namespace {
        &self.shared.config.namespace
    }

    /// The times of its elections.
    #[must_use]
    pub fn timing(&self) -> Timing {
        self.shared.config.timing
    }

    /// Whether this instance leads `group` and may start work for it now: a look at a clock, never at the store.
    ///
    /// A group that the instance does not know is never led. Where data is written, pass a fence as well: between this answer and the
    /// write any time may pass.
    #[inline]
    #[must_use]
    pub fn is_leader(&self, group: &str) -> bool {
        self.shared.gates.get(group).is_some_and(|gate| gate.is_open())
    }

    /// What the instance knows of each group, by name.
    #[must_use]
    pub fn groups(&self) -> Vec<GroupStatus> {
        self.shared
            .gates
            .iter()
            .map(|gate| gate.status().borrow().clone())
            .collect()
    }

    /// Watches a group; `None` when the instance does not know it.
    #[must_use]
    pub fn watch(&self, group: &str) -> Option<GroupWatch> {
        Some(GroupWatch(self.shared.gates.get(group)?.status().subscribe()))
    }

    /// The jobs that this instance runs where it leads, by name; of those made at run time the ones whose group it leads.
    #[must_use]
    pub fn jobs(&self) -> Vec<JobStatus> {
        let config = &self.shared.config;
        let now = self.shared.fleet_now();
        let followed = self.shared.followed();
        let made = self.shared.made();
        let scheduled = config.jobs.iter().chain(&*made).map(|job| {
            let next = job.rule.schedule.next(now);
            let (grace, jitter) = job.rule.in_force(next);
            JobStatus {
                name: job.name.clone(),
                group: job.group.clone(),
                schedule: job.rule.schedule.to_string(),
                words: job.rule.schedule.describe(),
                next,
                grace,
                jitter,
                following: followed.get(&job.name).cloned(),
                handler: job.made.as_ref().map(|made| made.handler.clone()),
            }
        });
        let live = config.lives.iter().map(|life| JobStatus {
            name: life.name.clone(),
            group: life.group.clone(),
            schedule: "while leading".to_owned(),
            words: "while leading".to_owned(),
            next: None,
            grace: Duration::ZERO,
            jitter: Duration::ZERO,
            following: None,
            handler: None,
        });
        let mut jobs: Vec<_> = scheduled.chain(live).collect();
        jobs.sort_by(|a, b| a.name.cmp(&b.name));
        jobs
    }

    /// What the instance knows of its own clock and of the store's, as of its last look: at least two in each TTL.
    #[must_use]
    pub fn clock(&self) -> ClockStatus {
        self.shared.clock()
    }

    /// How many job bodies run here, and how many wait for a place under
    /// [`max_concurrent_jobs`](crate::Bootstrap::max_concurrent_jobs).
    #[must_use]
    pub fn load(&self) -> Load {
        self.shared.load()
    }

    /// The instance's events from now on.
    #[must_use]
    pub fn events(&self) -> Events {
        let told = self.shared.listen();
        // Listened first: what is told from here on is heard.
        Events::new(told, self.shared.has_stopped())
    }

    /// What the store has recorded of a job. Cancel safe.
    ///
    /// # Errors
    /// [`LedgerError`], when the job is not this instance's or the store does not answer.
    pub async fn ledger(&self, job: &str) -> Result<JobLedger, LedgerError> {
        Ok(self.located(job).await?.1)
    }

    /// How many ticks of a job's schedule lie in (after, until].
    ///
    /// # Errors
    /// [`NoTicks`], when the job is not this instance's, or has no schedule.
    pub fn count_ticks(&self, job: &str, after: Timestamp, until: Timestamp) -> Result<u64, NoTicks> {
        let spec = lookup::scheduled(&self.shared, job)?;
        Ok(spec.rule.schedule.count(after, until))
    }

    /// The next `count` ticks of a job on the wall clock of its zone, with a note where a change of clocks makes one unusual or
    /// a blackout calendar covers it; fewer when the schedule ends.
    ///
    /// These are planned instants after now by the fleet's clock, whoever leads; nothing is asked of the store. Schedules that were made at
    /// run time are known here where their group is led; [`schedules`](Self::schedules) has the next tick of each.
    ///
    /// # Errors
    /// [`NoTicks`], when the job is not this instance's, or has no schedule.
    pub fn preview(&self, job: &str, count: usize) -> Result<Vec<Planned>, NoTicks> {
        let spec = lookup::scheduled(&self.shared, job)?;
        let planned = spec.rule.schedule.preview(self.shared.fleet_now(), count);
        Ok(planned
            .into_iter()
            .map(|tick| tick.under(&spec.rule.blackouts))
            .collect())
    }

    /// Runs a future in the scope of this instance: gated calls inside ask it. It does not borrow the handle, and may be spawned.
    pub fn scope<F: Future>(&self, future: F) -> impl Future<Output = F::Output> + use<F> {
        let scope = Scope::new(Some(Arc::clone(&self.shared.gates)), None);
        scope::within(scope, future)
    }

    /// Work for the leader of a group that has no function of its own.
    #[must_use]
    pub fn group<'a>(&'a self, name: &'a str) -> Group<'a> {
        Group { instance: self, name }
    }

    /// Runs a long-lived body for as long as this instance leads `group`: started at each grant, told by
    /// [`Lead::cancelled`] a little before its end, dropped at its end, and restarted after a pause (1 s, doubling to 60 s) when it
    /// returns early.
    ///
    /// # Errors
    /// The name of a group that the instance does not know: give it to `bootstrap(..).groups([..])`.
    #[allow(clippy::missing_panics_doc, reason = "the name made here is always legal")]
    pub fn while_leading<F, Fut>(&self, group: &str, body: F) -> Result<WhileLeading, UnknownGroup>
    where
        F: Fn(Lead) -> Fut + Send + Sync + 'static,
        Fut: Future + Send + 'static,
        Fut::Output: JobOutput,
    {
        static LAST: AtomicU64 = AtomicU64::new(0);
        let gate = self
            .shared
            .gates
            .get(group)
            .ok_or_else(|| UnknownGroup(group.to_owned()))?;
        let number = LAST.fetch_add(1, Ordering::Relaxed);
        // Digits and letters within the limit of a name.
        let name = JobName::new(format!("while_leading-{number}")).expect("a legal name");
        let spec = LifeSpec {
            name: name.clone(),
            group: gate.group().clone(),
            start: Arc::new(move |given| {
                let body = body(given.lead.clone());
                Box::pin(async move { Ok(body.await.into_result()) })
            }),
        };
        self.shared.send(Input::Request(Request::Live(spec)));
        let shared = Arc::clone(&self.shared);
        Ok(WhileLeading { shared, name })
    }

    /// Ends the present leadership of a group, wherever in the fleet it is led.
    ///
    /// Led here: nothing new starts, running bodies are told and waited for (the drain bound at the most), then the lease is given
    /// back and this instance stays out of the race for the cool-down. Led elsewhere: the request is kept in the store, names the
    /// term that it is meant for, and reaches that leader at once or with its next renewal, which then does the same. Resolves when
    /// the term has ended. Dropping the future does not stop the step-down.
    ///
    /// # Errors
    /// [`StepDownError`], when nobody leads the group or the leader could not be asked; a leader that does not answer is waited for
    /// two TTLs and the drain bound.
    pub async fn step_down(&self, group: &str) -> Result<(), StepDownError> {
        self.step_down_because(group, "").await
    }

    /// Like [`step_down`](Self::step_down), with a reason that the leader tells in its log and events; cut to 200 characters, on
    /// one line.
    ///
    /// # Errors
    /// As for [`step_down`](Self::step_down).
    pub async fn step_down_because(&self, group: &str, reason: &str) -> Result<(), StepDownError> {
        let Some(gate) = self.shared.gates.get(group) else {
            return Err(StepDownError::UnknownGroup(group.to_owned()));
        };
        let plain = reason.chars().map(|c| if c.is_control() { ' ' } else { c });
        let (done, over) = oneshot::channel();
        self.shared.send(Input::Request(Request::StepDown {
            group: gate.group().clone(),
            reason: plain.take(200).collect(),
            done,
        }));
        over.await.map_err(|_| StepDownError::Stopped)?
    }

    /// Steers the fleet's jobs, whoever leads them: pauses, runs outside the schedule, and what was done by whom.
    #[must_use]
    pub fn control(&self) -> Control<'_> {
        Control::new(&self.shared)
    }

    /// The living instances of the fleet, this one included, as the roster in the store knows them. Cancel safe.
    ///
    /// # Errors
    /// [`FleetError`], when the store does not answer.
    pub async fn fleet(&self) -> Result<Vec<Member>, FleetError> {
        let (answer, read) = oneshot::channel();
        self.shared.send(Input::Request(Request::Fleet { answer }));
        read.await.map_err(|_| FleetError::Stopped)?.map_err(FleetError::Store)
    }

    /// Completes at the first SIGTERM or SIGINT (Ctrl-C elsewhere). Installs the handlers when first polled, and no sooner. Cancel
    /// safe.
    ///
    /// # Panics
    /// Outside a tokio runtime whose IO driver is enabled.
    pub async fn shutdown_signal(&self) {
        match Signals::install() {
            Ok(mut signals) => signals.next().await,
            Err(error) => {
                tracing::error!(%error, "no signal handler could be installed: shut the instance down by other means");
                std::future::pending::<()>().await;
            }
        }
    }

    /// Leaves the fleet: gates close, running bodies are told and waited for (the drain bound at the most), leases are given back.
    /// Resolves when the instance has stopped. Dropping the future does not stop the shutdown; a second call waits for the same one.
    pub async fn shutdown(&self) {
        let (done, over) = oneshot::channel();
        self.shared.send(Input::Request(Request::Shutdown { done }));
        // A closed channel is an instance that has stopped.
        let _ = over.await;
    }

    /// Waits for SIGTERM or SIGINT, then shuts down. A second signal ends the process at once, with exit code 130. Both are heard even
    /// while a body blocks the runtime.
    ///
    /// # Errors
    /// When no signal handler can be installed.
    ///
    /// # Panics
    /// Outside a tokio runtime whose IO driver is enabled.
    pub async fn run_until_shutdown(&self) -> Result<(), std::io::Error> {
        let mut signals = Signals::install()?;
        // A runtime that a body blocks hears no signal: a thread listens as well, as long as this future lives.
        let (_here, gone) = oneshot::channel();
        signals::deputize(gone, self.clone());
        signals.next().await;
        tracing::info!(instance = %self.id(), "shutting down; a second signal ends the process at once");
        tokio::select! {
            () = self.shutdown() => Ok(()),
            () = signals.next() => {
                tracing::warn!(instance = %self.id(), "second signal: exiting without the drain");
                std::process::exit(130)
            }
        }
    }

    /// Runs one tick of a job now, on an instance whose store was made by `Embedded::for_test()` or any other: claimed like every run,
    /// without touching the job's cursor. Gives the outcome and the body's error text.
    ///
    /// # Errors
    /// A text, when the job is not this instance's, or its group is not led here, or an earlier run has not ended.
    #[cfg(feature = "testing")]
    pub async fn run_tick<J: crate::Job>(&self, at: Timestamp) -> Result<(crate::Outcome, String), String> {
        let jobs = &self.shared.config.jobs;
        let job = jobs.iter().position(|spec| spec.name.as_str() == J::NAME);
        let job = job.ok_or_else(|| format!("`{}` is no scheduled job of this instance", J::NAME))?;
        let (done, over) = oneshot::channel();
        self.shared.send(Input::Request(Request::RunTick { job, at, done }));
        over.await.map_err(|_| "the instance has stopped".to_owned())?
    }

    #[cfg(feature = "testing")]
    pub(crate) fn clock_source(&self) -> &crate::clock::Clock {
        &self.shared.config.clock
    }

    pub(crate) fn request(&self, request: Request) {
        self.shared.send(Input::Request(request));
    }
}

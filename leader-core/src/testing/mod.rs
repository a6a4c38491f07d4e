//! Support for unit tests of annotated functions, and faults for tests of fleets.

mod simulation;
#[cfg(feature = "tasks")]
mod tasks;
mod ticks;

use std::future::{Future, IntoFuture};
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use crate::clock::Clock;
use crate::instance::Instance;
use crate::job::extract::{Given, Needs, States};
use crate::job::gate::{Gate, Lead};
use crate::job::output::JobError;
use crate::job::record::Job;
use crate::job::scope::{Scope, within};
use crate::job::tick::{Inner, Origin, Tick};
use crate::names::{DEFAULT_GROUP, GroupName, JobName};
use crate::runtime::engine::Request;
use crate::store::embedded::Embedded;
use crate::store::embedded::server::EmbeddedServer;

#[doc(inline)]
pub use crate::assert_ticks;
#[doc(hidden)]
pub use ticks::__assert_ticks;

#[cfg(feature = "tasks")]
pub use tasks::{RunTask, run_task, run_task_stored};

pub use simulation::{Fault, FaultKind, Faults, Report, Simulation, Violation};

/// Runs a future as on the leader of every group: gated functions called in it run, without an instance and without a store.
///
/// ```
/// use leader_core::{leader_only, testing};
///
/// #[leader_only]
/// async fn double(n: u32) -> u32 {
///     2 * n
/// }
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// assert_eq!(testing::as_leader(double(21)).await, Ok(42));
/// # });
/// ```
pub async fn as_leader<F: Future>(future: F) -> F::Output {
    let scope = Scope::new(None, None);
    within(scope, future).await
}

impl Tick {
    /// A tick for unit tests: of the job `test` in the group `default`, with fence 1.
    #[must_use]
    #[allow(clippy::missing_panics_doc, reason = "the names made here are always legal")]
    pub fn for_test(at: Timestamp) -> Self {
        let job = JobName::new("test").expect("a legal name");
        let group = GroupName::new(DEFAULT_GROUP).expect("a legal name");
        tick(job, group, at)
    }
}

fn tick(job: JobName, group: GroupName, at: Timestamp) -> Tick {
    Tick::new(Inner {
        job,
        origin: Origin::Manual,
        scheduled_at: at,
        started_at: at,
        attempt: 1,
        lead: Lead::new(Arc::new(Gate::always_open(group)), 1, 1),
    })
}

/// Runs a job's body once, for the tick at `at`, without an instance and without a store. Await the builder.
///
/// ```
/// use leader_core::{State, Tick, leader_only, testing};
///
/// #[leader_only(cron = "0 3 * * *")]
/// async fn report(tick: Tick, State(limit): State<u32>) -> Result<(), String> {
///     if limit == 0 { Err(format!("no limit at {}", tick.scheduled_at())) } else { Ok(()) }
/// }
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let at = "2026-03-02T03:00:00Z".parse().unwrap();
/// assert!(testing::run_job::<report>(at).state(7_u32).await.is_ok());
/// let error = testing::run_job::<report>(at).state(0_u32).await.unwrap_err();
/// assert_eq!(error.to_string(), "no limit at 2026-03-02T03:00:00Z");
/// # });
/// ```
///
/// # Panics
/// When awaited, if the job asks for a state that was not given; a panic of the body goes through.
pub fn run_job<J: Job>(at: Timestamp) -> RunJob<J> {
    RunJob {
        at,
        states: States::default(),
        payload: None,
        job: PhantomData,
    }
}

/// A job's body about to be run; made by [`run_job`].
#[must_use = "the body runs when this is awaited"]
#[derive(Debug)]
pub struct RunJob<J> {
    at: Timestamp,
    states: States,
    payload: Option<String>,
    job: PhantomData<fn() -> J>,
}

impl<J> RunJob<J> {
    /// A value for the job's `State<T>` argument.
    pub fn state<T: Clone + Send + Sync + 'static>(mut self, value: T) -> Self {
        self.states.insert(value);
        self
    }
}

impl<H: crate::Handler> RunJob<H> {
    /// What the schedule carries to a handler.
    ///
    /// # Panics
    /// When it is no JSON.
    pub fn payload(mut self, payload: &H::Payload) -> Self
    where
        H::Payload: serde::Serialize,
    {
        self.payload = Some(serde_json::to_string(payload).expect("a payload is JSON"));
        self
    }
}

impl<J: Job> IntoFuture for RunJob<J> {
    type Output = Result<(), JobError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        let record = J::RECORD;
        let body = record.body.expect("a job has a body");
        let mut needs = Needs::default();
        (body.needs)(&mut needs);
        assert_given("job", J::NAME, &needs, &self.states);
        let job = JobName::new(J::NAME).expect("checked at compile time");
        let group = GroupName::new(record.group).expect("checked at compile time");
        let tick = tick(job, group, self.at);
        let lead = tick.lead().clone();
        let given = Given {
            tick: Some(&tick),
            lead: &lead,
            states: &self.states,
            payload: self.payload.as_deref(),
        };
        let future = (body.run)(&given);
        let scope = Scope::new(None, Some(lead));
        Box::pin(within(scope, async move {
            // The gate of a test stands open.
            future.await.unwrap_or(Ok(()))
        }))
    }
}

/// Every state that a body asks for must be there.
fn assert_given(kind: &str, name: &str, needs: &Needs, states: &States) {
    let missing = needs.states.iter().filter(|(id, _)| !states.has(*id));
    let missing: Vec<_> = missing.map(|(_, name)| *name).collect();
    assert!(
        missing.is_empty(),
        "the {kind} `{name}` asks for states that were not given with `.state(..)`: {}",
        missing.join(", ")
    );
}

/// Ends an instance like `kill -9` ends a process: nothing is released, and nobody is told.
///
/// Its bodies are dropped at their next poll. The handle is good for nothing afterwards.
pub fn kill(instance: &Instance) {
    instance.request(Request::Kill);
}

/// Stands the framework's thread of an instance still, like SIGSTOP does: nothing is renewed, nothing claimed. Its bodies notice
/// by their own clock.
pub fn freeze(instance: &Instance, span: Duration) {
    instance.request(Request::Freeze(span));
}

/// Steps the wall clock of an instance that was given one of its own.
#[doc(hidden)]
pub fn __step_wall(instance: &Instance, by: jiff::SignedDuration) {
    instance.clock_source().step_wall(by);
}

/// An embedded store on a clock of its own. Instances share that clock, unless they are given one.
#[doc(hidden)]
#[must_use]
pub fn __embedded_on(clock: Clock) -> Embedded {
    Embedded::with_clock(clock)
}

/// An embedded store that is a server of its own: it restarts, forgets and fills up, and has the quarantine of one.
#[doc(hidden)]
#[must_use]
pub fn __server_on(clock: Clock) -> EmbeddedServer {
    EmbeddedServer::on(clock)
}

/// Makes the framework's own work of an instance panic: every lead is lost, and it is started again after a pause. One that
/// pauses already panics again as soon as it is started.
pub fn panic(instance: &Instance) {
    instance.request(Request::Panic { in_a_question: false });
}

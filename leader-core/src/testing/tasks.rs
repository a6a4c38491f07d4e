//! Tasks by hand: `Task::for_test`, and an attempt without an instance.

use std::future::{Future, IntoFuture};
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;

use jiff::Timestamp;

use crate::clock::{Clock, Moment};
use crate::job::extract::{Needs, States};
use crate::job::output::JobError;
use crate::job::scope::{Scope, within};
use crate::names::{DEFAULT_QUEUE, QueueName, TaskName};
use crate::store::tasks::{Priority, Shard};
use crate::tasks::extract::TaskGiven;
use crate::tasks::id::{TaskId, key_of};
use crate::tasks::record::{PayloadOf, TaskHandler};
use crate::tasks::task::{Inner, Task};
use crate::tasks::trust::Trust;

impl Task {
    /// A task for unit tests: named `test`, of the queue `default`, due at `at`, in its first attempt and with fence 1. It is never
    /// cancelled.
    #[must_use]
    pub fn for_test(at: Timestamp) -> Self {
        task("test", DEFAULT_QUEUE, at, 1)
    }
}

fn task(name: &'static str, queue: &'static str, at: Timestamp, attempt: u32) -> Task {
    let queue = QueueName::new(queue).expect("checked at compile time");
    let shard = Shard { queue, index: 0 };
    Task::new(Inner {
        id: TaskId::new(shard, key_of(at, 1)),
        name: TaskName::new(name).expect("checked at compile time"),
        priority: Priority::Normal,
        attempt,
        due_at: at,
        enqueued_at: at,
        started_at: at,
        fence: u64::from(attempt),
        unique: None,
        trust: Arc::new(Trust::new(Clock::system(), Moment::MAX)),
    })
}

/// Runs a task's body once, without an instance and without a store. Await the builder.
///
/// The payload goes through JSON, as it does in the store.
///
/// ```
/// use leader_core::{State, Task, task, testing};
///
/// #[derive(serde::Serialize, serde::Deserialize)]
/// struct Invoice {
///     cents: u64,
/// }
///
/// #[task(queue = "invoices")]
/// async fn charge(invoice: Invoice, task: Task, State(limit): State<u64>) -> Result<(), String> {
///     if invoice.cents > limit { Err(format!("too much for attempt {}", task.attempt())) } else { Ok(()) }
/// }
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// assert!(testing::run_task::<charge>(&Invoice { cents: 5 }).state(10_u64).await.is_ok());
/// let error = testing::run_task::<charge>(&Invoice { cents: 50 }).attempt(2).state(10_u64).await.unwrap_err();
/// assert_eq!(error.to_string(), "too much for attempt 2");
///
/// // What an older version of the program has stored:
/// let error = testing::run_task_stored::<charge>(r#"{"euros":5}"#).state(10_u64).await.unwrap_err();
/// assert!(error.to_string().contains("missing field `cents`"), "{error}");
/// # });
/// ```
///
/// # Panics
/// When the payload cannot be written as JSON; when awaited, if the task asks for a state that was not given. A panic of the body goes
/// through.
pub fn run_task<H: TaskHandler>(payload: &impl PayloadOf<H>) -> RunTask<H> {
    run_task_stored(&serde_json::to_string(payload).expect("a payload is JSON"))
}

/// The same for a payload as the store has it, as another version of the program may have written it.
///
/// # Panics
/// As [`run_task`] does.
pub fn run_task_stored<H: TaskHandler>(payload: &str) -> RunTask<H> {
    RunTask {
        payload: payload.to_owned(),
        at: Timestamp::UNIX_EPOCH,
        attempt: 1,
        states: States::default(),
        task: PhantomData,
    }
}

/// A task's body about to be run; made by [`run_task`].
#[must_use = "the body runs when this is awaited"]
#[derive(Debug)]
pub struct RunTask<H> {
    payload: String,
    at: Timestamp,
    attempt: u32,
    states: States,
    task: PhantomData<fn() -> H>,
}

impl<H> RunTask<H> {
    /// A value for the task's `State<T>` argument.
    pub fn state<T: Clone + Send + Sync + 'static>(mut self, value: T) -> Self {
        self.states.insert(value);
        self
    }

    /// When the task is due; the Unix epoch, unless said.
    pub fn due_at(mut self, at: Timestamp) -> Self {
        self.at = at;
        self
    }

    /// Which attempt it is; the first, unless said. Its fence is the same number.
    pub fn attempt(mut self, attempt: u32) -> Self {
        self.attempt = attempt;
        self
    }
}

impl<H: TaskHandler> IntoFuture for RunTask<H> {
    type Output = Result<(), JobError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        let body = H::RECORD.body;
        let mut needs = Needs::default();
        (body.needs)(&mut needs);
        super::assert_given("task", H::NAME, &needs, &self.states);
        let given = TaskGiven {
            task: &task(H::NAME, H::QUEUE, self.at, self.attempt),
            states: &self.states,
            payload: &self.payload,
        };
        let future = (body.run)(&given);
        // A task's body has no gate.
        Box::pin(within(
            Scope::new(None, None),
            async move { future.await.unwrap_or(Ok(())) },
        ))
    }
}

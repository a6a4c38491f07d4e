//! What the macros' tokens may name. Not part of the public interface: it changes with any release.

use std::future::Future;
use std::time::Duration;

pub use inventory::submit;

pub use crate::job::extract::{Extract, ExtractLeading, Given, Needs};
pub use crate::job::handler::{ExtractHandling, Handler};
pub use crate::job::output::JobOutput;
pub use crate::job::record::{BodyFuture, Job, On, OnLoss, Overlap, Record, Trigger};
pub use crate::job::scope::{Entry, Skipped, enter};
pub use crate::names::{DEFAULT_GROUP, DEFAULT_QUEUE};
pub use crate::schedule::missed::Missed;
pub use crate::schedule::{Backoff, Days};
#[cfg(feature = "tasks")]
pub use tasks::*;

use crate::job::output::JobError;

/// A checked name; the group of a function or the name of a job.
///
/// # Panics
/// When the name is not legal; in a `const` that is a compile error.
#[must_use]
#[track_caller]
pub const fn name(name: &'static str) -> &'static str {
    crate::names::checked(name)
}

/// A checked name of a queue.
///
/// # Panics
/// When the name is not legal; in a `const` that is a compile error.
#[must_use]
#[track_caller]
pub const fn queue(name: &'static str) -> &'static str {
    crate::names::checked_queue(name)
}

/// A checked earlier name of a job.
///
/// # Panics
/// When the name is not legal, or is the job's own; in a `const` that is a compile error.
#[must_use]
#[track_caller]
pub const fn was(old: &'static str, name: &'static str) -> &'static str {
    crate::names::checked_earlier(old, name)
}

/// A checked cron trigger.
///
/// # Panics
/// When the expression is not legal; in a `const` that is a compile error.
#[must_use]
#[track_caller]
pub const fn cron(expression: &'static str) -> Trigger {
    let _ = crate::schedule::Cron::checked(expression);
    Trigger::Cron(expression)
}

/// A checked cron trigger whose expression says how its day fields combine.
///
/// # Panics
/// When the expression is not legal; in a `const` that is a compile error.
#[must_use]
#[track_caller]
pub const fn cron_with(expression: &'static str, days: Days) -> Trigger {
    let _ = crate::schedule::Cron::checked_with(expression, days);
    Trigger::Cron(expression)
}

/// How the day fields of an expression combine, when it has two that are restricted.
///
/// # Panics
/// When the word has no effect; in a `const` that is a compile error. A bad expression is [`cron_with`]'s to tell.
#[must_use]
#[track_caller]
pub const fn days(expression: &'static str, days: Days) -> Days {
    match crate::schedule::Cron::read(expression, days) {
        Ok(cron) if matches!(cron.days(), Days::Unsaid) => {
            panic!("{}", Days::without_effect(expression).as_str())
        }
        _ => days,
    }
}

/// A checked name of a time zone.
///
/// # Panics
/// When there is no such zone; in a `const` that is a compile error.
#[must_use]
#[track_caller]
pub const fn timezone(name: &'static str) -> &'static str {
    crate::schedule::Zone::checked(name)
}

/// A checked periodic trigger.
///
/// # Panics
/// When the period is not legal; in a `const` that is a compile error.
#[must_use]
#[track_caller]
pub const fn every(period: &'static str) -> Trigger {
    let _ = crate::schedule::Every::checked(period);
    Trigger::Every(period)
}

/// A checked number of missed ticks.
///
/// # Panics
/// When the number is out of bounds; in a `const` that is a compile error.
#[must_use]
#[track_caller]
pub const fn max_missed(count: u32) -> u32 {
    crate::schedule::missed::checked_max(count)
}

/// A checked duration.
///
/// # Panics
/// When the text is not legal; in a `const` that is a compile error.
#[must_use]
#[track_caller]
pub const fn duration(text: &'static str) -> Duration {
    crate::schedule::checked_duration(text)
}

/// A checked number of further tries.
///
/// # Panics
/// When the number is out of bounds; in a `const` that is a compile error.
#[must_use]
#[track_caller]
pub const fn retries(count: u32) -> u32 {
    crate::schedule::checked_retries(count)
}

/// A checked number of attempts that run at once.
///
/// # Panics
/// When it is zero; in a `const` that is a compile error.
#[must_use]
#[track_caller]
pub const fn concurrency(most: u32) -> u32 {
    crate::job::record::checked_concurrency(most)
}

/// A checked back-off.
///
/// # Panics
/// When the text is not legal; in a `const` that is a compile error.
#[must_use]
#[track_caller]
pub const fn backoff(text: &'static str) -> Backoff {
    Backoff::checked(text)
}

/// The value of one argument.
#[must_use]
pub fn extract<T: Extract>(given: &Given<'_>) -> T {
    T::extract(given)
}

/// What one argument asks for.
pub fn need<T: Extract>(needs: &mut Needs) {
    T::need(needs);
}

/// The value of one argument of a `while_leading` body.
#[must_use]
pub fn extract_leading<T: ExtractLeading>(given: &Given<'_>) -> T {
    T::extract(given)
}

/// What one argument of a `while_leading` body asks for.
pub fn need_leading<T: ExtractLeading>(needs: &mut Needs) {
    T::need(needs);
}

/// The value of one argument of a handler.
///
/// # Errors
/// When the payload is not what the handler takes.
pub fn extract_handling<T: ExtractHandling<H>, H>(given: &Given<'_>) -> Result<T, JobError> {
    T::extract(given)
}

/// What one argument of a handler asks for.
pub fn need_handling<T: ExtractHandling<H>, H>(needs: &mut Needs) {
    T::need(needs);
}

/// A handler's future, or the error of a payload that it does not take.
#[must_use]
pub fn handled(make: impl FnOnce() -> Result<BodyFuture, JobError>) -> BodyFuture {
    make().unwrap_or_else(|error| Box::pin(std::future::ready(Ok(Err(error)))))
}

/// How a job's value becomes a result. Apart from [`body`], so that a wrong return type is told where it is written.
#[must_use]
pub fn output<R: JobOutput>() -> fn(R) -> Result<(), JobError> {
    R::into_result
}

/// A job's future, with its output made a result.
pub fn body<F, R>(future: F, output: fn(R) -> Result<(), JobError>) -> BodyFuture
where
    F: Future<Output = Result<R, Skipped>> + Send + 'static,
    R: 'static,
{
    Box::pin(async move { future.await.map(output) })
}

/// The future of a job without a gate, with its output made a result.
pub fn open_body<F, R>(future: F, output: fn(R) -> Result<(), JobError>) -> BodyFuture
where
    F: Future<Output = R> + Send + 'static,
    R: 'static,
{
    Box::pin(async move { Ok(output(future.await)) })
}

/// Name, group and module of every annotated function that was linked.
pub fn records() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    inventory::iter::<Record>().map(|record| (record.name, record.group, record.module))
}

/// What the tokens of `#[task]` and of `#[scheduled(on = "fleet")]` name.
#[cfg(feature = "tasks")]
mod tasks {
    pub use crate::tasks::extract::{ExtractTask, TaskGiven};
    pub use crate::tasks::record::{PayloadOf, TaskHandler, TaskRecord};

    use super::{JobError, Needs, On};
    use crate::tasks::record::TaskOutput;

    /// Ticks become tasks. The compiler tells by the name what is lacking where there are none.
    #[must_use]
    pub const fn fleet_needs_the_feature_tasks() -> On {
        On::Fleet
    }

    /// A checked number of further attempts.
    ///
    /// # Panics
    /// When the number is out of bounds; in a `const` that is a compile error.
    #[must_use]
    #[track_caller]
    pub const fn task_retries(count: u32) -> u32 {
        crate::tasks::record::checked_task_retries(count)
    }

    /// What the task carries.
    ///
    /// # Errors
    /// When it is not what the task takes.
    pub fn task_payload<H: TaskHandler>(given: &TaskGiven<'_>) -> Result<H::Payload, JobError> {
        crate::tasks::extract::payload::<H>(given)
    }

    /// How a task's value becomes a result.
    #[must_use]
    pub fn task_output<R: TaskOutput>() -> fn(R) -> Result<(), JobError> {
        R::into_result
    }

    /// The value of one argument of a task.
    #[must_use]
    pub fn extract_task<T: ExtractTask>(given: &TaskGiven<'_>) -> T {
        T::extract(given)
    }

    /// What one argument of a task asks for.
    pub fn need_task<T: ExtractTask>(needs: &mut Needs) {
        T::need(needs);
    }

    /// Name, queue and module of every function under `#[task]` that was linked.
    pub fn task_records() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
        inventory::iter::<TaskRecord>().map(|record| (record.name, record.queue, record.module))
    }
}

#[cfg(all(test, feature = "macros"))]
mod tests {
    use std::sync::Arc;

    use jiff::Timestamp;

    use super::*;
    use crate::job::extract::{State, States};
    use crate::job::gate::{Gate, Lead};
    use crate::job::scope::{Gates, Scope, within};
    use crate::job::tick::{Inner, Origin, Tick};
    use crate::names::{GroupName, JobName};
    use crate::{current, leader_only};

    #[leader_only(group = "tokens", every = "1h", missed = "skip", on_loss = "finish", timeout = "1s")]
    async fn scheduled(tick: Tick, State(by): State<u64>, none: Option<State<String>>) -> Result<(), String> {
        assert_eq!(
            current().map(|lead| lead.group().to_string()).as_deref(),
            Some("tokens")
        );
        Err(format!("{} {by} {none:?}", tick.fence()))
    }

    const MOST: u32 = 7;

    #[leader_only(
        group = "tokens",
        every = "1h",
        missed = "all",
        max_missed = MOST,
        max_age = "2h",
        overlap = "replace",
        retries = MOST,
        backoff = "2s..5m"
    )]
    async fn caught_up() {}

    #[leader_only(group = "tokens", while_leading)]
    async fn standing(lead: Lead) {
        assert_eq!(lead.fence(), 8);
    }

    fn needed(record: &Record) -> Needs {
        let mut needs = Needs::default();
        (record.body.expect("a job has a body").needs)(&mut needs);
        needs
    }

    #[tokio::test]
    async fn a_record_makes_its_body_and_says_what_it_needs() {
        let group = GroupName::new("tokens").unwrap();
        let lead = Lead::new(Arc::new(Gate::always_open(group)), 1, 8);
        let tick = Tick::new(Inner {
            job: JobName::new(scheduled::NAME).unwrap(),
            origin: Origin::Schedule,
            scheduled_at: Timestamp::UNIX_EPOCH,
            started_at: Timestamp::UNIX_EPOCH,
            attempt: 1,
            lead: lead.clone(),
        });
        let mut states = States::default();
        states.insert(5_u64);
        let given = Given {
            tick: Some(&tick),
            lead: &lead,
            states: &states,
            payload: None,
        };
        let run = |record: &Record| {
            let scope = Scope::new(None, None);
            within(scope, (record.body.expect("a job has a body").run)(&given))
        };
        let told = run(&scheduled::RECORD).await.unwrap().unwrap_err();
        assert_eq!(told.to_string(), "8 5 None");
        assert_eq!(run(&standing::RECORD).await, Ok(Ok(())));
        // An instance that leads nothing: outside of any scope it would be another test's.
        let nowhere = Scope::new(Some(Arc::new(Gates::new(std::iter::empty()))), None);
        let skipped = within(nowhere, (scheduled::RECORD.body.expect("a job has a body").run)(&given));
        assert!(matches!(skipped.await, Err(Skipped::NotLeader { .. })));

        let (needs, standing_needs) = (needed(&scheduled::RECORD), needed(&standing::RECORD));
        assert!(needs.tick && !standing_needs.tick);
        assert_eq!(needs.states.iter().map(|(_, name)| *name).collect::<Vec<_>>(), ["u64"]);
        assert!(standing_needs.states.is_empty());
    }

    #[test]
    fn the_options_are_in_the_record() {
        let record = scheduled::RECORD;
        assert!(matches!(record.trigger, Trigger::Every("1h")));
        assert_eq!((record.missed, record.on_loss), (Missed::Skip, OnLoss::Finish));
        assert_eq!(
            (record.name, record.group, record.module),
            ("scheduled", "tokens", module_path!())
        );
        assert!(record.timeout.is_some() && record.grace.is_none());
        assert_eq!(
            (record.max_missed, record.max_age, record.overlap),
            (100, None, Overlap::Skip)
        );
        let record = caught_up::RECORD;
        assert_eq!((record.missed, record.max_missed), (Missed::All, MOST));
        let two_hours = Duration::from_secs(7200);
        assert_eq!((record.max_age, record.overlap), (Some(two_hours), Overlap::Replace));
        assert_eq!(
            (record.retries, record.backoff),
            (MOST, Some(Backoff::checked("2s..5m")))
        );
        assert_eq!((scheduled::RECORD.retries, scheduled::RECORD.backoff), (0, None));
        assert!(matches!(standing::RECORD.trigger, Trigger::WhileLeading));
    }
}

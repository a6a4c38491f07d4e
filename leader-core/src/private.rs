//! What the macros' tokens may name. Not part of the public interface: it changes with any release.

use std::future::Future;
use std::time::Duration;

pub use inventory::submit;

pub use crate::job::extract::{Extract, ExtractLeading, Given, Needs};
pub use crate::job::output::JobOutput;
pub use crate::job::record::{BodyFuture, Job, Missed, OnLoss, Record, Trigger};
pub use crate::job::scope::{Entry, Skipped, enter};
pub use crate::names::DEFAULT_GROUP;

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

/// A checked cron trigger.
///
/// # Panics
/// When the expression is not legal; in a `const` that is a compile error.
#[must_use]
#[track_caller]
pub const fn cron(expression: &'static str) -> Trigger {
    assert!(!expression.is_empty(), "invalid cron expression: it is empty");
    Trigger::Cron(expression)
}

/// A checked periodic trigger.
///
/// # Panics
/// When the period is not legal; in a `const` that is a compile error.
#[must_use]
#[track_caller]
pub const fn every(period: &'static str) -> Trigger {
    assert!(!period.is_empty(), "invalid duration: it is empty");
    Trigger::Every(period)
}

/// A checked duration.
///
/// # Panics
/// When the text is not legal; in a `const` that is a compile error.
#[must_use]
#[track_caller]
pub const fn duration(text: &'static str) -> Duration {
    assert!(!text.is_empty(), "invalid duration: it is empty");
    Duration::from_secs(1)
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

/// Name, group and module of every annotated function that was linked.
pub fn records() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    inventory::iter::<Record>().map(|record| (record.name, record.group, record.module))
}

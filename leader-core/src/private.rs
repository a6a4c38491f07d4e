//! What the macros' tokens may name. Not part of the public interface: it changes with any release.

use std::future::Future;
use std::time::Duration;

pub use inventory::submit;

pub use crate::job::extract::{Extract, Given, Needs};
pub use crate::job::output::JobOutput;
pub use crate::job::record::{BodyFuture, Job, OnLoss, Record, Trigger};
pub use crate::job::scope::{Entry, Skipped, enter};
pub use crate::schedule::missed::Missed;

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
    let _ = crate::schedule::Cron::checked(expression);
    Trigger::Cron(expression)
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

/// A checked duration.
///
/// # Panics
/// When the text is not legal; in a `const` that is a compile error.
#[must_use]
#[track_caller]
pub const fn duration(text: &'static str) -> Duration {
    crate::schedule::checked_duration(text)
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

/// A job's future, with its output made a result.
pub fn body<F, R>(future: F) -> BodyFuture
where
    F: Future<Output = Result<R, Skipped>> + Send + 'static,
    R: JobOutput,
{
    Box::pin(async move { future.await.map(JobOutput::into_result) })
}

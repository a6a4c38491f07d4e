//! What the macros' tokens may name. Not part of the public interface: it changes with any release.

use std::future::Future;
use std::time::Duration;

pub use inventory::submit;

pub use crate::job::extract::{Extract, Given, Needs};
pub use crate::job::output::JobOutput;
pub use crate::job::record::{BodyFuture, Job, Missed, OnLoss, Record, Trigger};
pub use crate::job::scope::{Entry, Skipped, enter};

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

/// A job's future, with its output made a result.
pub fn body<F, R>(future: F) -> BodyFuture
where
    F: Future<Output = Result<R, Skipped>> + Send + 'static,
    R: JobOutput,
{
    Box::pin(async move { future.await.map(JobOutput::into_result) })
}

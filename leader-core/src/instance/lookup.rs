//! A job of an instance by its name, or why it has no ticks.

use std::sync::Arc;

use crate::names::JobName;
use crate::runtime::config::JobSpec;
use crate::runtime::shared::Shared;

/// Why nothing can be said of a job's ticks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoTicks {
    /// The name is no job of this instance, or the job is switched off here.
    #[error("`{job}` is no job of this instance; it has {known}")]
    #[non_exhaustive]
    UnknownJob {
        /// The name.
        job: String,
        /// The names of its jobs.
        known: String,
    },
    /// It has no schedule.
    #[error("`{job}` is a `while_leading` body: it lives as long as the leadership, and has no ticks")]
    #[non_exhaustive]
    WhileLeading {
        /// The body's name.
        job: JobName,
    },
}

/// The scheduled job of a name: of the program, or made at run time for a group that is led here.
pub(super) fn scheduled(shared: &Shared, job: &str) -> Result<Arc<JobSpec>, NoTicks> {
    let (config, made) = (&shared.config, shared.made());
    if let Some(spec) = config.jobs.iter().chain(&*made).find(|spec| spec.name.as_str() == job) {
        return Ok(Arc::clone(spec));
    }
    if let Some(life) = config.lives.iter().find(|life| life.name.as_str() == job) {
        return Err(NoTicks::WhileLeading { job: life.name.clone() });
    }
    let scheduled = config.jobs.iter().map(|spec| spec.name.as_str());
    let mut known: Vec<_> = scheduled
        .chain(config.lives.iter().map(|life| life.name.as_str()))
        .collect();
    known.sort_unstable();
    Err(NoTicks::UnknownJob {
        job: job.to_owned(),
        known: match known.as_slice() {
            [] => "none".to_owned(),
            some => format!("`{}`", some.join("`, `")),
        },
    })
}

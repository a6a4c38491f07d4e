//! What must hold whatever happens: one file each, with the source of the property.

mod alternation;
mod bounded_calls;
mod bounded_memory;
mod cursor;
mod fenced_writes;
mod kept;
mod leases;
mod lost;
mod not_early;
mod one_believer;
mod one_outcome;
mod one_start;
mod quiet;
mod recovery;
mod rising;
#[cfg(feature = "tasks")]
mod tasks;
mod terms;
mod told;
mod trusted_polls;

use std::time::Duration;

use jiff::Timestamp;

use super::seen::Seen;

/// A property of everything that is seen of a fleet.
pub(super) trait Invariant: Send {
    /// What is promised, in a few words.
    fn name(&self) -> &'static str;

    /// Looks at the next thing that was seen. The error says what was wrong with it.
    fn see(&mut self, seen: &Seen<'_>, scene: Scene) -> Result<(), String>;
}

/// What has gone before.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Scene {
    /// The store has forgotten something, or its clock has leapt: ticks of the span may be repeated.
    pub(super) forgot: bool,
    /// A store that was replaced by another, or whose clock has leapt, may have granted a lease that another holds.
    pub(super) split: bool,
    /// What really is the time.
    pub(super) now: Timestamp,
    /// A server has forgotten something, or its clock has leapt, less than two leases ago.
    #[cfg(feature = "tasks")]
    pub(super) forgets: bool,
    /// How long leases live.
    pub(super) ttl: Duration,
}

/// All of them, for a new run.
pub(super) fn all() -> Vec<Box<dyn Invariant>> {
    let of_jobs: Vec<Box<dyn Invariant>> = vec![
        Box::new(one_believer::OneBeliever),
        Box::<leases::Leases>::default(),
        Box::<rising::Rising>::default(),
        Box::<fenced_writes::FencedWrites>::default(),
        Box::<one_start::OneStart>::default(),
        Box::new(one_outcome::OneOutcome),
        Box::<told::Told>::default(),
        Box::<quiet::Quiet>::default(),
        Box::<cursor::Cursor>::default(),
        Box::new(trusted_polls::TrustedPolls),
        Box::<alternation::Alternation>::default(),
        Box::<terms::Terms>::default(),
        Box::<kept::Kept>::default(),
        Box::<lost::LostRuns>::default(),
        Box::new(not_early::NotEarly),
        Box::new(recovery::Recovery),
        Box::new(bounded_calls::BoundedCalls),
        Box::new(bounded_memory::BoundedMemory),
    ];
    #[cfg(feature = "tasks")]
    let of_jobs = of_jobs.into_iter().chain(tasks::all()).collect();
    of_jobs
}

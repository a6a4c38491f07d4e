//! How much an instance has to do.

/// How many job bodies run on an instance, and how many wait for a place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Load {
    /// Runs of jobs that are claimed here and have not ended. `while_leading` bodies and plain gated calls are not counted.
    pub running: usize,
    /// Jobs with a due tick that waits for a place, unclaimed.
    pub waiting: usize,
    /// The most that run at once, as [`max_concurrent_jobs`](crate::Bootstrap::max_concurrent_jobs) says; `None` for as many as come.
    pub limit: Option<usize>,
    /// Runs whose body was asked to end long ago and has not returned, as [`RunStuck`](crate::Event::RunStuck) tells.
    pub stuck: usize,
}

//! What a program puts round its jobs: middlewares, failure hooks, and how many run at once.

use std::error::Error;
use std::future::Future;

use super::Bootstrap;
use crate::job::around::Next;
use crate::job::failure::{FailedRun, HookOutput};
use crate::job::output::JobError;
use crate::job::tick::Tick;

impl Bootstrap {
    /// Calls `hook` once for each run of this instance that ended badly, when the store has recorded it: with an error, with a panic, by its
    /// `timeout`, or `fenced`, however the body ended, when the store refused the result ([`FailedRun::outcome`]).
    ///
    /// ```
    /// # fn page(_: String) {}
    /// # fn doc() {
    /// # let _ =
    /// leader_core::bootstrap(leader_core::Embedded::new())
    ///     .on_failure(|run, error| async move {
    ///         tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    ///         println!("{} of {} is {}: {error}", run.job(), run.scheduled_at(), run.outcome());
    ///     })
    ///     // A plain closure may block: it gets a thread of the runtime's blocking pool.
    ///     .on_failure(|run, _| page(format!("{} with fence {}", run.job(), run.fence())))
    /// # ;
    /// # }
    /// ```
    ///
    /// The error is the body's with its causes, or the panic's text, as in the record; for a time-out and a refused result it says so.
    ///
    /// Of a run with `retries` only the end is told, and not each try: [`FailedRun::attempt`] says which was the last. Where a run ends in its
    /// pause, because the next tick was due, it is told by the instance that ran its last try, while that leads.
    ///
    /// **Who is not told.** A run that was `cancelled` or `not_started` has lost its leadership, as at every roll-out, or its place to a later
    /// tick, and that is no failure of the job. A run that a leader finds `lost`, because the instance that ran it has died, is recorded by the store, which
    /// tells nobody: look into [`Instance::ledger`](crate::Instance::ledger). Nor is a result told that the store never took, because it was
    /// gone until the instance ended. All that this instance decides is in [`Instance::events`](crate::Instance::events).
    ///
    /// **What a hook can do.** Said several times, all hooks are called, in no order. Each call is a task of its own on the runtime that
    /// awaits this builder (at most 16 plain closures at once have a thread): no lease, tick or run waits for it, its panic is logged, and
    /// gated functions called in an async hook ask this instance. A shutdown waits for calls under way until the
    /// [drain bound](Self::drain) has passed since it was asked for, with its leases given back meanwhile; a step-down does not wait. A
    /// hook that never returns keeps its memory; with 10,000 calls under way further ones are dropped with an error in the log.
    pub fn on_failure<F, R, Kind>(mut self, hook: F) -> Self
    where
        F: Fn(FailedRun, JobError) -> R + Send + Sync + 'static,
        R: HookOutput<Kind>,
    {
        self.on_failure.push(R::hook(hook));
        self
    }

    /// Puts a middleware round the body of every job run: to open a span or a transaction, to measure, or to refuse. `next` is the body, or
    /// the next middleware round it; the first that is given is the outermost.
    ///
    /// ```
    /// use leader_core::JobError;
    /// use tracing::Instrument;
    ///
    /// # fn is_on(_: &str) -> bool { true }
    /// # fn doc() {
    /// # let _ =
    /// leader_core::bootstrap(leader_core::Embedded::new())
    ///     // A span round all that the body does.
    ///     .around(|tick, next| {
    ///         let span = tracing::info_span!("job", name = %tick.job(), at = %tick.scheduled_at(), fence = tick.fence());
    ///         next.instrument(span)
    ///     })
    ///     // A job whose flag is off is not run: its tick is recorded as `not_started`.
    ///     .around(|tick, next| async move {
    ///         if !is_on(tick.job().as_str()) {
    ///             return Ok(());
    ///         }
    ///         next.await
    ///     })
    ///     // How long, and how it went. An error of its own would be the run's.
    ///     .around(|tick, next| async move {
    ///         let began = std::time::Instant::now();
    ///         let result = next.await;
    ///         tracing::info!(job = %tick.job(), took = ?began.elapsed(), ok = result.is_ok(), "measured");
    ///         if began.elapsed().as_secs() > 3600 {
    ///             return Err(JobError::new("more than an hour"));
    ///         }
    ///         result
    ///     })
    /// # ;
    /// # }
    /// ```
    ///
    /// **The result** is what the outermost middleware returns: its error, converted as a body's, or its panic is the run's outcome, and `Ok` is
    /// `ok` even where the body failed. One that returns `Ok` without having run the body makes the run `not_started`, with a line in the
    /// record that says so; its tick is decided, and not tried again. A panic of the body goes through `next.await`, and what is cut off is
    /// dropped: what must be undone belongs into a `Drop`.
    ///
    /// **The guard surrounds it all.** Middlewares are polled as the body is: never when the leadership can no longer be trusted (unless the job
    /// says `on_loss = "finish"`), never past the job's `timeout`, which counts from before the outermost, and a drain waits for them.
    /// [`current()`](crate::current) works inside. What a middleware takes before `next.await` is time of the run. It keeps the job's slot.
    ///
    /// Job runs only. A plain call of a gated function is its caller's, who can wrap it, and may have any arguments, borrow, and not
    /// be `Send`; a `while_leading` body is no run, and has no tick.
    pub fn around<F, Fut, E>(mut self, middleware: F) -> Self
    where
        F: Fn(Tick, Next) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<(), E>> + Send + 'static,
        E: Into<Box<dyn Error + Send + Sync>>,
    {
        self.around.push(middleware);
        self
    }

    /// The most job bodies that run at once on this instance, at least 1; as many as come, unless given. Runs by hand count too, and go
    /// first; `while_leading` bodies and plain gated calls do not.
    ///
    /// A due tick for which there is no place waits, the longest due first. It is not claimed meanwhile: should leadership move, it
    /// is the next leader's to decide, by its age. Here a tick that was due in time and waited is late, never missed, and runs
    /// however long that took; `grace` and `missed` have no say in it, and `timeout` counts from its start. Towards its own job it is
    /// like a run that takes longer: the ticks of the job that fall due behind it are decided after it, as `overlap` says (`skip`:
    /// they are `overlap_skipped`). What was missed before it came to wait stays what `missed` makes of it.
    ///
    /// A job that runs needs no other place for its next tick, unless its runs may overlap (`overlap = "allow"`), where each has its own.
    /// With `overlap = "replace"` the new run has the place of the old one: should that not listen, both run for a while.
    ///
    /// A place is free again when the body's future has returned or been dropped. So one that hangs, or blocks its thread
    /// whatever its `timeout` says, keeps it: give jobs a `timeout`, and blocking code to `spawn_blocking`.
    /// [`Instance::load`](crate::Instance::load) tells how many run and wait.
    pub fn max_concurrent_jobs(mut self, most: usize) -> Self {
        self.max_concurrent_jobs = Some(most);
        self
    }
}

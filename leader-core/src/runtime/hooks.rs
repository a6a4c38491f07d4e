//! Calls of the program's own hooks: tasks on the runtime of the bodies, for which nothing of ours waits but the end of an instance.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::runtime::Handle;
use tokio::sync::Semaphore;

use super::engine::Input;
use super::panics::{self, Panic, caught};
use super::shared::Shared;
use crate::job::failure::{FailedRun, Hook};
use crate::job::output::JobError;
use crate::job::scope::{self, Scope};

/// The most calls under way at once. Hooks that hang would gather without end.
const MOST: usize = 10_000;

/// The most threads that plain hooks have at once: the runtime's blocking pool is the program's.
const THREADS: usize = 16;

/// The calls under way.
#[derive(Debug)]
pub(crate) struct Hooks {
    under_way: AtomicUsize,
    threads: Semaphore,
}

impl Default for Hooks {
    fn default() -> Self {
        Self {
            under_way: AtomicUsize::new(0),
            threads: Semaphore::new(THREADS),
        }
    }
}

impl Hooks {
    pub(crate) fn are_idle(&self) -> bool {
        self.under_way.load(Ordering::SeqCst) == 0
    }
}

/// One call. Counts until dropped, be it by a runtime that goes.
struct Call(Arc<Shared>);

impl Call {
    /// None when too many are under way.
    fn begin(shared: &Arc<Shared>) -> Option<Self> {
        let count = &shared.hooks.under_way;
        if count.load(Ordering::SeqCst) >= MOST {
            return None;
        }
        // Only the engine begins calls, one after the other.
        count.fetch_add(1, Ordering::SeqCst);
        Some(Self(Arc::clone(shared)))
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        if self.0.hooks.under_way.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.0.send(Input::HooksIdle);
        }
    }
}

/// Calls every hook, each in a task of its own.
pub(super) fn call(shared: &Arc<Shared>, bodies: &Handle, run: &FailedRun, error: &JobError) {
    for hook in &shared.config.on_failure {
        let Some(call) = Call::begin(shared) else {
            tracing::error!(
                instance = %shared.config.instance, job = %run.job, fence = run.fence,
                "a failure hook is not called: {MOST} calls are under way, as when hooks hang"
            );
            continue;
        };
        let (hook, run, error) = (hook.clone(), run.clone(), error.clone());
        bodies.spawn(shared.config.process.hold(async move {
            let job = run.job.clone();
            if let Err(panic) = called(&call.0, hook, run, error).await {
                let text = panics::text(panic);
                tracing::error!(instance = %call.0.config.instance, %job, error = text, "a failure hook panicked");
            }
        }));
    }
}

async fn called(shared: &Arc<Shared>, hook: Hook, run: FailedRun, error: JobError) -> Result<(), Panic> {
    match hook {
        Hook::Async(hook) => {
            // Gated calls inside ask this instance.
            let scope = Scope::new(Some(Arc::clone(&shared.gates)), None);
            caught(scope::within(scope, async move { hook(run, error).await })).await
        }
        Hook::Plain(hook) => {
            // It may block, and never on a thread that runs bodies. The semaphore is never closed.
            let _thread = shared.hooks.threads.acquire().await;
            match tokio::task::spawn_blocking(move || hook(run, error)).await {
                Ok(()) => Ok(()),
                Err(ended) => ended.try_into_panic().map_or(Ok(()), Err),
            }
        }
    }
}

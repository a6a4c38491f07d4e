//! What surrounds a job's body: middlewares, the first that was given outermost.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll, ready};

use super::output::{JobError, chain};
use super::record::BodyFuture;
use super::tick::Tick;

type Inner = Pin<Box<dyn Future<Output = Result<(), JobError>> + Send>>;
type Middleware = dyn Fn(Tick, Next) -> Inner + Send + Sync;

/// What a middleware is put around: the next middleware, or the job's body. A future of the result, that of the body if nothing in
/// between changes it; given to [`Bootstrap::around`](crate::Bootstrap::around).
///
/// Await it in place, once. It can be wrapped like every future, in a span or in the scope of a task-local value. One that is
/// handed to `tokio::spawn` leaves the run's guard: it ends at a later poll, and nobody waits for it.
#[must_use = "the body runs when this is awaited"]
pub struct Next(Inner);

impl fmt::Debug for Next {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Next").finish_non_exhaustive()
    }
}

impl Future for Next {
    type Output = Result<(), JobError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.get_mut().0.as_mut().poll(cx)
    }
}

/// The middlewares of an instance.
#[derive(Clone, Default)]
pub(crate) struct Around(Vec<Arc<Middleware>>);

impl fmt::Debug for Around {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Around").field(&self.0.len()).finish()
    }
}

/// What has become of the body: nothing yet.
const AHEAD: u8 = 0;
const BEGUN: u8 = 1;
/// Its own gate was found shut at the very start.
const SHUT: u8 = 2;

/// Why a body that was never run is recorded as not started.
const PASSED_BY: &str = "a middleware returned without running the body";

impl Around {
    pub(crate) fn push<F, Fut, E>(&mut self, middleware: F)
    where
        F: Fn(Tick, Next) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<(), E>> + Send + 'static,
        E: Into<Box<dyn Error + Send + Sync>>,
    {
        self.0.push(Arc::new(move |tick, next| {
            let around = middleware(tick, next);
            Box::pin(async move { around.await.map_err(|error| JobError(chain(&*error.into()))) })
        }));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The body with everything around it. The error is why the body was never begun, empty where there is nothing to add. Whoever
    /// polls it, the body is polled no more once the run `is_over`.
    pub(crate) fn wrap<O: Fn() -> bool + Send + 'static>(
        &self,
        tick: &Tick,
        body: BodyFuture,
        is_over: O,
    ) -> impl Future<Output = Result<Result<(), JobError>, String>> + Send + use<O> {
        let fate = Arc::new(AtomicU8::new(AHEAD));
        let innermost = Innermost {
            body: Some(body),
            fate: Arc::clone(&fate),
            is_over: Box::new(is_over),
        };
        let outermost = self.0.iter().rev().fold(Next(Box::pin(innermost)), |next, middleware| {
            let (middleware, tick) = (Arc::clone(middleware), tick.clone());
            // Called at the first poll: under the guard, and in the scope of the run.
            Next(Box::pin(async move { middleware(tick, next).await }))
        });
        async move {
            let result = outermost.await;
            match fate.load(Ordering::SeqCst) {
                SHUT => Err(String::new()),
                AHEAD if result.is_ok() => Err(PASSED_BY.to_owned()),
                _ => Ok(result),
            }
        }
    }
}

struct Innermost {
    body: Option<BodyFuture>,
    fate: Arc<AtomicU8>,
    is_over: Box<dyn Fn() -> bool + Send>,
}

impl Future for Innermost {
    type Output = Result<(), JobError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        if (this.is_over)() {
            this.body = None;
        }
        let Some(body) = &mut this.body else {
            return Poll::Ready(Err(JobError("the run has ended".to_owned())));
        };
        this.fate.store(BEGUN, Ordering::SeqCst);
        let result = ready!(body.as_mut().poll(cx));
        this.body = None;
        Poll::Ready(result.unwrap_or_else(|skipped| {
            this.fate.store(SHUT, Ordering::SeqCst);
            Err(JobError(skipped.to_string()))
        }))
    }
}

#[cfg(test)]
mod tests;

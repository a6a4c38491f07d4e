//! A body that is never polled past its trust.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll};

use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use super::panics::{self, Panic};
use crate::job::gate::Lead;
use crate::job::outcome::Ran;
use crate::job::output::{JobError, bounded};
use crate::job::record::{BodyResult, OnLoss};
use crate::mutants::{Mutant, planted};

/// How a body ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ending {
    pub(crate) ran: Ran,
    pub(crate) error: String,
}

impl Ending {
    pub(crate) fn of(ran: Ran) -> Self {
        let error = String::new();
        Self { ran, error }
    }

    /// The body never began, for this reason.
    pub(crate) fn not_started(error: String) -> Self {
        let ran = Ran::NotStarted;
        Self { ran, error }
    }
}

impl From<Result<(), JobError>> for Ending {
    fn from(result: Result<(), JobError>) -> Self {
        match result {
            Ok(()) => Self::of(Ran::Ok),
            Err(error) => Self {
                ran: Ran::Error,
                error: error.0,
            },
        }
    }
}

impl From<BodyResult> for Ending {
    fn from(result: BodyResult) -> Self {
        // Its own gate was found shut at the very start.
        result.map_or_else(|_skipped| Self::of(Ran::NotStarted), Self::from)
    }
}

/// Ends a body from outside: at its next poll it is dropped.
#[derive(Debug, Default)]
pub(crate) struct Control {
    stop: CancellationToken,
    verdict: AtomicU8,
    /// 0 = not begun, 1 = begun, 2 = will never begin.
    phase: AtomicU8,
}

impl Control {
    /// Drops the body; `ran` says why. The first reason counts.
    pub(crate) fn end(&self, ran: Ran) {
        if ran == Ran::TimedOut && planted(Mutant::TimeoutIgnored) {
            return;
        }
        let code = if ran == Ran::TimedOut { 1 } else { 2 };
        let _ = self
            .verdict
            .compare_exchange(0, code, Ordering::SeqCst, Ordering::SeqCst);
        self.stop.cancel();
    }

    /// Keeps a body that has not begun from ever beginning; whether that was so. Nobody need wait for its runtime then.
    pub(crate) fn forbid(&self) -> bool {
        self.leave_new(2)
    }

    /// Whether the body is to be dropped at its next poll.
    pub(crate) fn is_over(&self) -> bool {
        self.stop.is_cancelled()
    }

    pub(crate) fn has_begun(&self) -> bool {
        self.phase.load(Ordering::SeqCst) == 1
    }

    fn leave_new(&self, phase: u8) -> bool {
        let left = self
            .phase
            .compare_exchange(0, phase, Ordering::SeqCst, Ordering::SeqCst);
        left.is_ok()
    }

    fn verdict(&self) -> Ran {
        if self.verdict.load(Ordering::SeqCst) == 1 {
            Ran::TimedOut
        } else {
            Ran::Cancelled
        }
    }
}

/// What is told when a body begins, and when it has ended; the latter even if its runtime drops it.
pub(crate) trait Witness: Send + 'static {
    fn begun(&mut self);
    fn ended(&mut self, ending: Ending);
}

/// A body, with what is around it.
pub(crate) type Running = Pin<Box<dyn Future<Output = Ending> + Send>>;

/// Makes the body's future at its first poll.
pub(crate) type Start = Box<dyn FnOnce() -> Running + Send>;

/// What a body runs under.
pub(crate) trait Trusted: Send + 'static {
    /// Whether it may be believed now.
    fn holds(&self) -> bool;
}

impl Trusted for Lead {
    fn holds(&self) -> bool {
        self.is_leading()
    }
}

/// A body under guard: each poll first compares the clock with the trust it runs under, and drops the body instead.
pub(crate) struct Guarded<W: Witness, T: Trusted = Lead> {
    state: State,
    trust: T,
    on_loss: OnLoss,
    control: Arc<Control>,
    stopped: Pin<Box<WaitForCancellationFutureOwned>>,
    witness: Option<W>,
}

enum State {
    New(Start),
    Running(Running),
    Done,
}

impl<W: Witness, T: Trusted> Guarded<W, T> {
    pub(crate) fn new(start: Start, trust: T, on_loss: OnLoss, control: Arc<Control>, witness: W) -> Self {
        let stopped = Box::pin(control.stop.clone().cancelled_owned());
        Self {
            state: State::New(start),
            trust,
            on_loss,
            control,
            stopped,
            witness: Some(witness),
        }
    }

    fn end(&mut self, ending: Ending) {
        // A body whose own drop panics has ended all the same.
        let state = std::mem::replace(&mut self.state, State::Done);
        let dropped = catch_unwind(AssertUnwindSafe(|| drop(state)));
        if let Some(mut witness) = self.witness.take() {
            witness.ended(match dropped {
                Ok(()) => ending,
                Err(panic) => panicked(panic),
            });
        }
    }

    fn advance(&mut self, cx: &mut Context<'_>) -> Poll<Ending> {
        if self.stopped.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Ending::of(self.control.verdict()));
        }
        let begun = matches!(self.state, State::Running(_));
        let unseen = planted(if begun {
            Mutant::PolledPastTrust
        } else {
            Mutant::BegunPastTrust
        });
        if !self.trust.holds() && (self.on_loss == OnLoss::Cancel || !begun) && !unseen {
            return Poll::Ready(Ending::of(if begun { Ran::Cancelled } else { Ran::NotStarted }));
        }
        if !begun {
            let State::New(start) = std::mem::replace(&mut self.state, State::Done) else {
                return Poll::Ready(Ending::of(Ran::NotStarted));
            };
            if !self.control.leave_new(1) {
                return Poll::Ready(Ending::of(Ran::NotStarted));
            }
            if let Some(witness) = &mut self.witness {
                witness.begun();
            }
            match catch_unwind(AssertUnwindSafe(start)) {
                Ok(body) => self.state = State::Running(body),
                Err(panic) => return Poll::Ready(panicked(panic)),
            }
        }
        let State::Running(body) = &mut self.state else {
            return Poll::Ready(Ending::of(Ran::NotStarted));
        };
        match catch_unwind(AssertUnwindSafe(|| body.as_mut().poll(cx))) {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(ending)) => Poll::Ready(ending),
            Err(panic) => Poll::Ready(panicked(panic)),
        }
    }
}

fn panicked(panic: Panic) -> Ending {
    Ending {
        ran: Ran::Panic,
        error: bounded(panics::text(panic)),
    }
}

impl<W: Witness + Unpin, T: Trusted + Unpin> Future for Guarded<W, T> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        match this.advance(cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(ending) => {
                this.end(ending);
                Poll::Ready(())
            }
        }
    }
}

impl<W: Witness, T: Trusted> Drop for Guarded<W, T> {
    /// The runtime that ran the body is gone, or never took it.
    fn drop(&mut self) {
        if self.witness.is_some() {
            let begun = matches!(self.state, State::Running(_));
            self.end(Ending::of(if begun { Ran::Cancelled } else { Ran::NotStarted }));
        }
    }
}

#[cfg(test)]
mod tests;

//! The store of a simulated fleet: one server, or for a while an old and a new one, which may stall, be off, and forget.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use crate::clock::of_timers;
use crate::store::StoreError;
use crate::store::embedded::Embedded;

/// All servers.
#[derive(Debug)]
pub(super) struct Servers {
    state: Mutex<State>,
    /// Raised when connections end.
    ended: watch::Sender<u64>,
}

#[derive(Debug)]
struct State {
    master: Embedded,
    stalled_until: Option<Instant>,
    off_until: Option<Instant>,
}

impl Servers {
    pub(super) fn new(master: Embedded) -> Self {
        Self {
            state: Mutex::new(State {
                master,
                stalled_until: None,
                off_until: None,
            }),
            ended: watch::Sender::new(0),
        }
    }

    fn state<T>(&self, look: impl FnOnce(&mut State) -> T) -> T {
        look(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Answers nobody until then.
    pub(super) fn stall(&self, until: Instant) {
        self.state(|state| state.stalled_until = state.stalled_until.max(Some(until)));
    }

    /// Is off until then.
    pub(super) fn turn_off(&self, lasts: Duration) {
        self.state(|state| state.off_until = state.off_until.max(Some(of_timers() + lasts)));
        self.ended.send_modify(|ended| *ended += 1);
    }

    /// Ends what is wrong.
    pub(super) fn heal(&self) {
        self.state(|state| {
            state.stalled_until = None;
            state.off_until = None;
        });
    }

    /// The server that an instance has, whether it answers or not.
    pub(super) fn of(&self, _instance: usize) -> Embedded {
        self.state(|state| state.master.clone())
    }

    /// Completes when the connections of an instance have ended. Cancel safe.
    pub(super) async fn changed(&self, _instance: usize) {
        // The sender lives in `self`.
        let _ = self.ended.subscribe().changed().await;
    }

    /// The server that an instance reaches at once; `None` when it has to wait.
    pub(super) fn at_once(&self, _instance: usize, now: Instant) -> Option<Result<Embedded, StoreError>> {
        self.state(|state| {
            let is_on = |until: Option<Instant>| until.is_none_or(|until| until <= now);
            if !is_on(state.off_until) {
                return Some(Err(StoreError::unreachable()));
            }
            is_on(state.stalled_until).then(|| Ok(state.master.clone()))
        })
    }

    /// The same, when it has been waited for. Cancel safe.
    pub(super) async fn reach(&self, instance: usize) -> Result<Embedded, StoreError> {
        loop {
            if let Some(reached) = self.at_once(instance, of_timers()) {
                return reached;
            }
            let until = self.state(|state| state.stalled_until);
            sleep_until(until.unwrap_or_else(of_timers)).await;
        }
    }
}

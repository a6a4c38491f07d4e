//! One step of the store: its time, and what of it a server that is short of something refuses.
//!
//! A step is what a script is to Redis: done wholly, or where its first write is refused, not at all.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::PoisonError;

use jiff::Timestamp;

use super::server::Process;
use super::{Data, Embedded};
use crate::clock::Moment;
use crate::names::Namespace;
use crate::store::error::StoreError;

/// Everything that the store holds.
#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) data: BTreeMap<Namespace, Data>,
    /// The process that serves it; `None` where the store dies with its only process.
    pub(super) process: Option<Process>,
}

/// The store's time in one step.
#[derive(Clone, Copy, Debug)]
pub(super) struct Time<'a> {
    /// What leases and signs of life are measured by: a server's wall clock, in whole milliseconds, as Redis does.
    pub(super) moment: Moment,
    pub(super) exact: Timestamp,
    /// In whole milliseconds, as Redis keeps instants.
    pub(super) wall: Timestamp,
    pub(super) process: Option<&'a Process>,
    writes: &'a Writes,
}

/// What a step has written so far.
#[derive(Debug, Default)]
pub(super) struct Writes {
    full: bool,
    readonly: bool,
    any: Cell<bool>,
    refused: Cell<Option<&'static str>>,
}

#[cfg(feature = "testing")]
impl<'a> Time<'a> {
    /// That of a step of a store that dies with its only process, and is short of nothing.
    pub(super) fn at(moment: Moment, exact: Timestamp, writes: &'a Writes) -> Self {
        Self {
            moment,
            exact,
            wall: whole_millis(exact),
            process: None,
            writes,
        }
    }
}

impl Time<'_> {
    /// A write that may need memory. A server without any refuses it as the first write of a step, and then the step.
    pub(super) fn grows(self) {
        let _ = self.grow();
    }

    /// The same, where what is asked beside it goes on.
    pub(super) fn grow(self) -> Result<(), StoreError> {
        let refused = self.refusal();
        let Some(code) = refused else {
            self.writes.any.set(true);
            return Ok(());
        };
        self.refuse(code);
        Err(StoreError::refused(code))
    }

    /// A write that needs no memory.
    pub(super) fn frees(self) {
        if self.writes.readonly {
            self.refuse("READONLY");
        }
        self.writes.any.set(true);
    }

    /// A write that may need memory, and is left out where it is refused; whether it is done. Where there is none, something has been
    /// written already.
    pub(super) fn may_grow(self) -> bool {
        self.refusal().is_none()
    }

    /// A write that needs no memory, and is left out where it is refused; whether it is done.
    pub(super) fn may_free(self) -> bool {
        let may = !self.writes.readonly;
        self.writes.any.set(self.writes.any.get() || may);
        may
    }

    /// Whether anything may be refused.
    pub(super) fn is_short(self) -> bool {
        self.writes.full || self.writes.readonly
    }

    /// What is refused of one request does not undo the rest of the step, unless the server is the wrong one for all.
    pub(super) fn forgive(self) {
        if !self.writes.readonly {
            self.writes.refused.set(None);
        }
    }

    fn refusal(self) -> Option<&'static str> {
        if self.writes.readonly {
            Some("READONLY")
        } else {
            // A script that has written something is let finish.
            (self.writes.full && !self.writes.any.get()).then_some("OOM")
        }
    }

    fn refuse(self, code: &'static str) {
        self.writes.refused.set(self.writes.refused.get().or(Some(code)));
    }
}

impl Embedded {
    /// Every answer is given in another turn of the runtime, as a server's would be.
    pub(super) async fn later<T: Send>(
        &self,
        step: impl FnOnce(&mut Data, Time<'_>) -> T + Send,
    ) -> Result<T, StoreError> {
        tokio::task::yield_now().await;
        self.step(step)
    }

    /// The same for several steps, each judged on its own.
    pub(super) async fn each<R: Sync, T: Send>(
        &self,
        requests: &[R],
        step: impl Fn(&mut Data, &R, Time<'_>) -> T + Send,
    ) -> Vec<Result<T, StoreError>> {
        tokio::task::yield_now().await;
        let one = |request| self.step(|data, time| step(data, request, time));
        requests.iter().map(one).collect()
    }

    pub(super) fn step<T>(&self, step: impl FnOnce(&mut Data, Time<'_>) -> T) -> Result<T, StoreError> {
        // Nothing in a step panics half way through a change.
        let mut state = self.shared.state.lock().unwrap_or_else(PoisonError::into_inner);
        let State { data, process } = &mut *state;
        let data = data.entry(self.namespace.clone()).or_default();
        let writes = Writes {
            full: process.as_ref().is_some_and(|process| process.full),
            readonly: process.as_ref().is_some_and(|process| process.readonly),
            ..Writes::default()
        };
        let before = (writes.full || writes.readonly).then(|| data.clone());
        let answer = step(data, self.time(process.as_ref(), &writes));
        let Some(mut before) = before else {
            return Ok(answer);
        };
        let refused = writes.refused.get();
        if refused.is_some() {
            std::mem::swap(data, &mut before);
        }
        let now = self.time(process.as_ref(), &writes).moment;
        keep_looks(data, &before, refused.is_some(), writes.readonly, now);
        refused.map_or(Ok(answer), |code| Err(StoreError::refused(code)))
    }

    fn time<'a>(&self, process: Option<&'a Process>, writes: &'a Writes) -> Time<'a> {
        let clock = &self.shared.clock;
        let exact = process.map_or_else(|| clock.wall(), |process| process.wall(clock));
        let wall = whole_millis(exact);
        Time {
            moment: process.map_or_else(|| clock.now(), |_| as_moment(wall)),
            exact,
            wall,
            process,
            writes,
        }
    }
}

/// Who looks at a lease that has ended takes it away, whatever else is refused; on a replica nobody does. `other` is what `data` was before
/// the step, or what the step would have made of it.
fn keep_looks(data: &mut Data, other: &Data, refused: bool, readonly: bool, now: Moment) {
    for (name, group) in &mut data.groups {
        let Some(other) = other.groups.get(name) else {
            continue;
        };
        let ended = other.lease.as_ref().filter(|lease| now >= lease.ends);
        if readonly && !refused {
            if let (None, Some(ended)) = (&group.lease, ended) {
                (group.lease, group.vacant) = (Some(ended.clone()), other.vacant);
            }
        } else if !readonly && ended.is_none() {
            group.held(now);
        }
    }
}

/// Instants are kept in whole milliseconds, as in Redis.
pub(super) fn whole_millis(at: Timestamp) -> Timestamp {
    Timestamp::from_millisecond(at.as_millisecond()).unwrap_or(at)
}

/// An instant of a wall clock that leases are measured by.
pub(super) fn as_moment(wall: Timestamp) -> Moment {
    Moment::from_nanos(u64::try_from(wall.as_nanosecond()).unwrap_or(0))
}

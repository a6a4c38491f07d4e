//! What an attempt may believe: a small lease of its own, which its signs of life prolong.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio_util::sync::CancellationToken;

use crate::clock::{Clock, Moment};
use crate::job::gate::{Gate, Lead};
use crate::names::GroupName;

/// The trust in one attempt. Counts from before the step that began it, or the last sign of life that was heard, was sent.
#[derive(Debug)]
pub(crate) struct Trust {
    clock: Clock,
    /// 0 = over for good.
    until: AtomicU64,
    cancel: CancellationToken,
    /// What the body of a tick believes by, with the fence that it was opened for.
    gate: Option<(Arc<Gate>, u64)>,
}

impl Trust {
    pub(crate) fn new(clock: Clock, until: Moment) -> Self {
        Self {
            clock,
            until: AtomicU64::new(until.as_nanos()),
            cancel: CancellationToken::new(),
            gate: None,
        }
    }

    /// The trust in an attempt at a tick, whose body is told by a gate of its own.
    pub(crate) fn of_a_tick(clock: Clock, until: Moment, group: GroupName, fence: u64) -> (Self, Lead) {
        let gate = Arc::new(Gate::new(group, clock.clone()));
        gate.open(fence, until);
        let lead = Lead::of_run(Arc::clone(&gate), fence);
        let gate = Some((gate, fence));
        let trust = Self {
            gate,
            ..Self::new(clock, until)
        };
        (trust, lead)
    }

    /// Whether the attempt may still be believed to be its worker's.
    pub(crate) fn holds(&self) -> bool {
        self.clock.now().as_nanos() < self.until.load(Ordering::SeqCst)
    }

    /// Until when it may be, unless it is heard of.
    pub(crate) fn until(&self) -> Moment {
        Moment::from_nanos(self.until.load(Ordering::SeqCst))
    }

    /// A sign of life was heard. What has ended stays ended.
    pub(crate) fn extend(&self, until: Moment) {
        let now = self.clock.now().as_nanos();
        let prolong = |old: u64| (now < old).then_some(old.max(until.as_nanos()));
        let extended = self.until.fetch_update(Ordering::SeqCst, Ordering::SeqCst, prolong);
        if let (Ok(_), Some((gate, _))) = (extended, &self.gate) {
            gate.extend(until);
        }
    }

    /// It is somebody else's, or nobody's.
    pub(crate) fn end(&self) {
        self.until.store(0, Ordering::SeqCst);
        if let Some((gate, _)) = &self.gate {
            gate.close();
        }
        self.tell();
    }

    /// Tells the body to stop; it may go on for a while.
    pub(crate) fn tell(&self) {
        self.cancel.cancel();
        if let Some((gate, fence)) = &self.gate {
            gate.tell(*fence);
        }
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancel.is_cancelled() || !self.holds()
    }

    /// Completes when the body is told to stop. Cancel safe.
    pub(crate) async fn cancelled(&self) {
        self.cancel.cancelled().await;
    }
}

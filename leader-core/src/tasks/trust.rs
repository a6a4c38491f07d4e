//! What an attempt may believe: a small lease of its own, which its signs of life prolong.

use std::sync::atomic::{AtomicU64, Ordering};

use tokio_util::sync::CancellationToken;

use crate::clock::{Clock, Moment};

/// The trust in one attempt. Counts from before the step that began it, or the last sign of life that was heard, was sent.
#[derive(Debug)]
pub(crate) struct Trust {
    clock: Clock,
    /// 0 = over for good.
    until: AtomicU64,
    cancel: CancellationToken,
}

impl Trust {
    pub(crate) fn new(clock: Clock, until: Moment) -> Self {
        Self {
            clock,
            until: AtomicU64::new(until.as_nanos()),
            cancel: CancellationToken::new(),
        }
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
        let _ = self.until.fetch_update(Ordering::SeqCst, Ordering::SeqCst, prolong);
    }

    /// It is somebody else's, or nobody's.
    pub(crate) fn end(&self) {
        self.until.store(0, Ordering::SeqCst);
        self.cancel.cancel();
    }

    /// Tells the body to stop; it may go on for a while.
    pub(crate) fn tell(&self) {
        self.cancel.cancel();
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancel.is_cancelled() || !self.holds()
    }

    /// Completes when the body is told to stop. Cancel safe.
    pub(crate) async fn cancelled(&self) {
        self.cancel.cancelled().await;
    }
}

//! The local view of one group's leadership: two atomic numbers and a clock, never a question to the store.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use jiff::Timestamp;
use tokio::sync::{Notify, watch};

use crate::clock::{Clock, Moment};
use crate::mutants::{Mutant, planted};
use crate::names::GroupName;

#[cfg(feature = "testing")]
pub(crate) mod steps;

/// An instance's role in a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Role {
    /// Does not take part in the election.
    Observer,
    /// Takes part, and another instance leads or nobody does.
    Standby,
    /// Leads.
    Leader,
    /// Still holds the lease, but starts nothing new: running bodies are being drained.
    Draining,
}

impl Role {
    /// The word for logs and metrics.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Observer => "observer",
            Self::Standby => "standby",
            Self::Leader => "leader",
            Self::Draining => "draining",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// What an instance knows of a group: its own role for certain, the leader as last seen.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GroupStatus {
    /// The group.
    pub group: GroupName,
    /// This instance's role.
    pub role: Role,
    /// The instance that leads, as last seen; `None` while nobody is known to.
    pub leader: Option<String>,
    /// The term of the leadership last seen; 0 before the first.
    pub term: u64,
    /// Since when that leader leads, by the store's clock; since when it has been seen to, where that cannot be told.
    pub since: Option<Timestamp>,
}

/// The local view of one group. All instants are of the suspend-counting clock.
pub(crate) struct Gate {
    group: GroupName,
    clock: Clock,
    /// New entries pass while now is before this; 0 = closed.
    open_until: AtomicU64,
    /// The present leadership may be trusted until then; 0 = no belief.
    trust_until: AtomicU64,
    /// The term of that leadership. Written only while both of the above are 0.
    term: AtomicU64,
    /// Set for good when no belief may begin any more.
    sealed: AtomicBool,
    /// Plain calls under way.
    calls: AtomicUsize,
    /// Woken when the last of them ends, if somebody waits for that.
    idle: Notify,
    awaited: AtomicBool,
    /// The highest term whose bodies have been told to stop.
    told: AtomicU64,
    /// Woken when it rises: in the order of the waiters, which a channel's would not be.
    told_of: Notify,
    /// Woken when a leadership is shown: by itself, for the same reason.
    led: Notify,
    status: watch::Sender<GroupStatus>,
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gate")
            .field("group", &self.group)
            .field("term", &self.term)
            .field("trust_until", &self.trust_until)
            .finish_non_exhaustive()
    }
}

impl Gate {
    pub(crate) fn new(group: GroupName, clock: Clock) -> Self {
        let status = GroupStatus {
            group: group.clone(),
            role: Role::Standby,
            leader: None,
            term: 0,
            since: None,
        };
        Self {
            group,
            clock,
            open_until: AtomicU64::new(0),
            trust_until: AtomicU64::new(0),
            term: AtomicU64::new(0),
            sealed: AtomicBool::new(false),
            calls: AtomicUsize::new(0),
            idle: Notify::new(),
            awaited: AtomicBool::new(false),
            told: AtomicU64::new(0),
            told_of: Notify::new(),
            led: Notify::new(),
            status: watch::Sender::new(status),
        }
    }

    /// A gate that stands open, for unit tests of annotated functions.
    pub(crate) fn always_open(group: GroupName) -> Self {
        let gate = Self::new(group, Clock::system());
        gate.open(1, Moment::MAX);
        gate
    }

    pub(crate) fn group(&self) -> &GroupName {
        &self.group
    }

    pub(crate) fn status(&self) -> &watch::Sender<GroupStatus> {
        &self.status
    }

    /// Shows what is known of the group.
    pub(crate) fn show(&self, status: GroupStatus) {
        let leads = status.role == Role::Leader;
        self.status.send_replace(status);
        if leads {
            self.led.notify_one();
        }
    }

    /// Completes when a leadership has been shown since the last time. For one at a time, who dispatches. Cancel safe.
    #[cfg(feature = "tasks")]
    pub(crate) async fn led(&self) {
        self.led.notified().await;
    }

    /// Begins a leadership. The belief of an earlier one must have been cleared.
    pub(crate) fn open(&self, term: u64, until: Moment) {
        debug_assert_eq!(self.trust_until.load(Ordering::SeqCst), 0);
        self.term.store(term, Ordering::SeqCst);
        self.trust_until.store(until.as_nanos(), Ordering::SeqCst);
        self.open_until.store(until.as_nanos(), Ordering::SeqCst);
        // Sealed from another thread meanwhile: either this sees it, or the seal's own closing comes later.
        if self.sealed.load(Ordering::SeqCst) {
            self.close();
        }
    }

    /// Prolongs trust after a renewal. A gate that is closed to new entries stays closed to them, and a belief that was cleared
    /// stays cleared.
    pub(crate) fn extend(&self, until: Moment) {
        for deadline in [&self.trust_until, &self.open_until] {
            let prolong = |old| (old != 0).then_some(until.as_nanos());
            let _ = deadline.fetch_update(Ordering::SeqCst, Ordering::SeqCst, prolong);
        }
    }

    /// Clears the belief for good, from whatever thread.
    pub(crate) fn seal(&self) {
        self.sealed.store(true, Ordering::SeqCst);
        self.close();
    }

    /// Lets nobody in any more; what is inside may go on.
    pub(crate) fn close_entry(&self) {
        self.open_until.store(0, Ordering::SeqCst);
    }

    /// Clears the belief.
    pub(crate) fn close(&self) {
        self.open_until.store(0, Ordering::SeqCst);
        self.trust_until.store(0, Ordering::SeqCst);
    }

    /// Tells the bodies of `term` to stop.
    pub(crate) fn tell(&self, term: u64) {
        if self.told.fetch_max(term, Ordering::SeqCst) < term {
            self.told_of.notify_waiters();
        }
    }

    /// Takes it back: the end that the bodies of `term` were told of has not come.
    pub(crate) fn untell(&self, term: u64) {
        // Another term that was told of meanwhile stays so.
        let _ = self
            .told
            .compare_exchange(term, term - 1, Ordering::SeqCst, Ordering::SeqCst);
    }

    pub(crate) fn is_told(&self, term: u64) -> bool {
        self.told.load(Ordering::SeqCst) >= term
    }

    /// Whether a call may enter now.
    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        let until = self.open_until.load(Ordering::SeqCst);
        until != 0 && self.clock.now().as_nanos() < until
    }

    /// Whether the leadership of `term` may be trusted now.
    ///
    /// The order of the loads matters: a deadline read first belongs to the term read after it or to an earlier one, so a
    /// matching term means that the deadline was valid for it.
    #[inline]
    pub(crate) fn trusts(&self, term: u64) -> bool {
        let until = self.trust_until.load(Ordering::SeqCst);
        let in_time = self.clock.now().as_nanos() < until;
        self.term.load(Ordering::SeqCst) == term && (in_time || (planted(Mutant::GateWithoutAClock) && until != 0))
    }

    /// Until when the present leadership may be trusted; zero without one.
    pub(crate) fn trust_until(&self) -> Moment {
        Moment::from_nanos(self.trust_until.load(Ordering::SeqCst))
    }

    /// For checkers: the term and the end of the belief, whether it has passed or not; 0 for no end.
    #[cfg(feature = "testing")]
    pub(crate) fn belief(&self) -> (u64, u64) {
        let until = self.trust_until.load(Ordering::SeqCst);
        (self.term.load(Ordering::SeqCst), until)
    }

    pub(crate) fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }

    /// Waits until no plain call is under way. Cancel safe.
    pub(crate) async fn idle(&self) {
        loop {
            let woken = self.idle.notified();
            // Before the count is read, as a leaving call lowers the count before it reads this: one of them sees the other. And
            // after the line above: whoever takes this mark wakes that wait.
            self.awaited.store(true, Ordering::SeqCst);
            if self.calls() == 0 {
                return;
            }
            woken.await;
        }
    }

    /// Lets a call in, or not. The count is raised before the gate is read, and a drain closes the gate before it reads the
    /// count: so a drain either sees the call or the call sees the drain.
    #[inline]
    pub(crate) fn enter(self: &Arc<Self>) -> Option<Pass> {
        // A standby's calls leave no trace.
        if self.open_until.load(Ordering::SeqCst) == 0 {
            return None;
        }
        self.calls.fetch_add(1, Ordering::SeqCst);
        if !self.is_open() {
            self.leave();
            return None;
        }
        // Read after the gate was found open: whatever term this is, its leadership began before now.
        let term = self.term.load(Ordering::SeqCst);
        Some(Pass(Lead::new(Arc::clone(self), term, term)))
    }

    fn leave(&self) {
        let last = self.calls.fetch_sub(1, Ordering::SeqCst) == 1;
        if last && self.awaited.load(Ordering::SeqCst) && self.awaited.swap(false, Ordering::SeqCst) {
            self.idle.notify_waiters();
        }
    }
}

/// One call inside the gate; counts in the drain until dropped.
#[derive(Debug)]
pub(crate) struct Pass(Lead);

impl Pass {
    pub(crate) fn lead(&self) -> &Lead {
        &self.0
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        self.0.gate.leave();
    }
}

/// A leadership as seen from inside a gated body: which group, which term, and when to stop.
///
/// Given by [`current()`](crate::current) inside a gated body, and to `while_leading` bodies as their argument. Cheap to clone;
/// it does not cross `tokio::spawn` by itself: clone it in.
#[derive(Clone)]
pub struct Lead {
    gate: Arc<Gate>,
    term: u64,
    fence: u64,
    /// What the gate knows it by.
    key: u64,
}

impl fmt::Debug for Lead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lead")
            .field("group", self.group())
            .field("term", &self.term)
            .field("fence", &self.fence)
            .finish_non_exhaustive()
    }
}

impl Lead {
    pub(crate) fn new(gate: Arc<Gate>, term: u64, fence: u64) -> Self {
        let key = term;
        Self { gate, term, fence, key }
    }

    /// The trust in a run that needs no leader: `gate` is its own, and was opened for its fence.
    pub(crate) fn of_run(gate: Arc<Gate>, fence: u64) -> Self {
        let (term, key) = (0, fence);
        Self { gate, term, fence, key }
    }

    /// Whether it is a leadership, and not a run's own trust.
    pub(crate) fn is_of_a_term(&self) -> bool {
        self.key == self.term
    }

    pub(crate) fn gate(&self) -> &Arc<Gate> {
        &self.gate
    }

    /// The group that is led.
    #[must_use]
    pub fn group(&self) -> &GroupName {
        self.gate.group()
    }

    /// The number of this leadership; strictly rising over the life of the group. 0 in the body of a job that needs no leader.
    #[must_use]
    pub fn term(&self) -> u64 {
        self.term
    }

    /// The fencing token: the number of the run inside a job, the term elsewhere. Pass it to the resource that is written to, and
    /// have the resource refuse any lower one: [`fencing`](crate::fencing) has how.
    #[must_use]
    #[doc(alias = "fencing token")]
    pub fn fence(&self) -> u64 {
        self.fence
    }

    /// Whether this leadership may still be trusted, or in the body of a job that needs no leader, its claim: a look at a clock, never at
    /// the store.
    #[must_use]
    pub fn is_leading(&self) -> bool {
        self.gate.trusts(self.key)
    }

    /// Whether the body has been told to stop, or trust has ended.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.gate.is_told(self.key) || !self.is_leading()
    }

    /// Completes when the body should stop: a little before trust ends (1 s, at most a fifth of the TTL), and at once on step-down
    /// and shutdown. Cancel safe.
    pub async fn cancelled(&self) {
        loop {
            // Before the look: what is told after that wakes it.
            let woken = self.gate.told_of.notified();
            if self.gate.is_told(self.key) {
                return;
            }
            woken.await;
        }
    }
}

#[cfg(test)]
mod tests;

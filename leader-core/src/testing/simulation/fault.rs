//! What may happen to a fleet.

use std::fmt;
use std::time::Duration;

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum FaultKind {
    /// Messages of an instance take up to so many milliseconds for a while, and overtake each other.
    Delay,
    /// Some requests of an instance never reach the store.
    LostRequest,
    /// Some replies never reach an instance: what it asked for was done.
    LostReply,
    /// Some requests of an instance are executed long after it gave up on them.
    LateRequest,
    /// Nothing of an instance reaches the store for a while.
    CutOut,
    /// Nothing of the store reaches an instance for a while, though its requests are executed.
    CutIn,
    /// Everything in both directions waits for a while, and arrives then.
    Held,
    /// An instance's connections are refused for a while.
    Refused,
    /// A process stands still for a while, as by SIGSTOP, or a long pause of its machine.
    Pause,
    /// A process is killed, as by `kill -9`, and started again after a while.
    Crash,
    /// A process is shut down as it should be, and started again.
    Restart,
    /// The framework's own work panics.
    Panic,
    /// The wall clock of a machine is stepped by so many milliseconds, forth or back, until somebody puts it right.
    WallStep,
    /// Somebody asks the leader of a group to step down.
    StepDown,
    /// The store answers nobody for a while.
    StoreStall,
    /// The store is off for a while, and comes back with all that it knew.
    StoreRestart,
    /// The store's memory is full for a while: it refuses to write.
    StoreFull,
    /// The store takes no writes for a while, as a replica does.
    StoreReadOnly,
    /// The store comes back empty.
    StoreEmpty,
    /// The store comes back with what it knew some milliseconds ago.
    StoreRollback,
    /// A person empties the store.
    StoreFlushed,
    /// The store loses what it knew of one group, or a part of it: the lease, what is known of the lead, the counter of fences, the signs of
    /// life of its runs, or a job.
    StoreLoses,
    /// A replica that lags by some milliseconds takes the store's place.
    FailOver,
    /// The same, and some instances go on with the old store for a while.
    TwoMasters,
    /// The store's clock is stepped by so many milliseconds.
    StoreClock,
}

impl FaultKind {
    /// Every kind.
    pub const ALL: [Self; 25] = [
        Self::Delay,
        Self::LostRequest,
        Self::LostReply,
        Self::LateRequest,
        Self::CutOut,
        Self::CutIn,
        Self::Held,
        Self::Refused,
        Self::Pause,
        Self::Crash,
        Self::Restart,
        Self::Panic,
        Self::WallStep,
        Self::StepDown,
        Self::StoreStall,
        Self::StoreRestart,
        Self::StoreFull,
        Self::StoreReadOnly,
        Self::StoreEmpty,
        Self::StoreRollback,
        Self::StoreFlushed,
        Self::StoreLoses,
        Self::FailOver,
        Self::TwoMasters,
        Self::StoreClock,
    ];

    /// Whether the store forgets what it has acknowledged, or its clock leaps: nobody promises more than fences then.
    #[must_use]
    pub fn is_forgetful(self) -> bool {
        matches!(
            self,
            Self::StoreEmpty
                | Self::StoreRollback
                | Self::StoreFlushed
                | Self::StoreLoses
                | Self::FailOver
                | Self::TwoMasters
                | Self::StoreClock
        )
    }

    /// Whether the store comes back with what it held a while before.
    pub(super) fn brings_back(self) -> bool {
        matches!(self, Self::StoreRollback | Self::FailOver | Self::TwoMasters)
    }

    /// Whether leases may end early, or be held twice, until those of before have ended.
    pub(super) fn splits(self) -> bool {
        matches!(self, Self::FailOver | Self::TwoMasters | Self::StoreClock)
    }

    /// Whether it happens to one instance, or to the store of all.
    #[must_use]
    pub fn is_of_the_store(self) -> bool {
        self.is_forgetful()
            || matches!(
                self,
                Self::StoreStall | Self::StoreRestart | Self::StoreFull | Self::StoreReadOnly
            )
    }

    /// The word for reports.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Delay => "delay",
            Self::LostRequest => "lost_request",
            Self::LostReply => "lost_reply",
            Self::LateRequest => "late_request",
            Self::CutOut => "cut_out",
            Self::CutIn => "cut_in",
            Self::Held => "held",
            Self::Refused => "refused",
            Self::Pause => "pause",
            Self::Crash => "crash",
            Self::Restart => "restart",
            Self::Panic => "panic",
            Self::WallStep => "wall_step",
            Self::StepDown => "step_down",
            Self::StoreStall => "store_stall",
            Self::StoreRestart => "store_restart",
            Self::StoreFull => "store_full",
            Self::StoreReadOnly => "store_read_only",
            Self::StoreEmpty => "store_empty",
            Self::StoreRollback => "store_rollback",
            Self::StoreFlushed => "store_flushed",
            Self::StoreLoses => "store_loses",
            Self::FailOver => "fail_over",
            Self::TwoMasters => "two_masters",
            Self::StoreClock => "store_clock",
        }
    }
}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// One fault of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Fault {
    /// When it begins, counted from the beginning.
    pub at: Duration,
    /// What happens.
    pub kind: FaultKind,
    /// To which instance, from 0; to faults of the store it says which group is lost, or who stays with the old one.
    pub instance: usize,
    /// For how long.
    pub lasts: Duration,
    /// How much of it: so many of a thousand messages, or milliseconds.
    pub strength: i64,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>12.3} s  {:<15}", self.at.as_secs_f64(), self.kind)?;
        if !self.kind.is_of_the_store() {
            write!(f, " instance {}", self.instance)?;
        }
        if !self.lasts.is_zero() {
            write!(f, " for {:?}", self.lasts)?;
        }
        if self.strength != 0 {
            write!(f, " by {}", self.strength)?;
        }
        Ok(())
    }
}

//! What a job wants done with ticks that nobody ran in time.

use std::fmt;

/// What happens to a missed tick: one that is found later than its `grace`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Missed {
    /// It is not run.
    Skip,
    /// The latest of them is run, once; the others are coalesced into it.
    #[default]
    Latest,
    /// Each of them is run, one after another, oldest first, within the job's bounds.
    All,
}

/// How many missed ticks a job runs at most, unless it says otherwise.
pub const DEFAULT_MAX_MISSED: u32 = 100;

/// The most missed ticks that a job can ask to run.
pub const MOST_MISSED: u32 = 10_000;

/// Checks `max_missed` at compile time.
///
/// # Panics
/// Unless it is 1 to [`MOST_MISSED`].
#[must_use]
#[track_caller]
pub const fn checked_max(count: u32) -> u32 {
    assert!(
        count > 0,
        "`max_missed = 0` runs no missed tick: write `missed = \"skip\"` in place of both"
    );
    assert!(
        count <= MOST_MISSED,
        "`max_missed` is more than 10000: a catch-up runs one tick after another, and regular ones wait behind it; write a \
         smaller number, or bound it by `max_age`"
    );
    count
}

/// Why a missed tick was not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum MissedReason {
    /// The job's policy is `skip`.
    Skipped,
    /// The job's policy is `latest`, and a later missed tick was run in its stead; or it waited for an earlier run (`overlap = "wait"`),
    /// and a later tick stands for it.
    Coalesced,
    /// Older than the job's `max_age`.
    TooOld,
    /// More ticks were owed than the job's `max_missed`.
    OverLimit,
    /// No instance that leads the group had the job.
    Uncovered,
    /// A holder of another implementation led the group.
    ForeignLeader,
}

impl MissedReason {
    /// Every reason.
    pub const ALL: &[Self] = &[
        Self::Skipped,
        Self::Coalesced,
        Self::TooOld,
        Self::OverLimit,
        Self::Uncovered,
        Self::ForeignLeader,
    ];

    /// The word for logs, metrics and the store.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Skipped => "skipped",
            Self::Coalesced => "coalesced",
            Self::TooOld => "too_old",
            Self::OverLimit => "over_limit",
            Self::Uncovered => "uncovered",
            Self::ForeignLeader => "foreign_leader",
        }
    }
}

impl fmt::Display for MissedReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// What ticks that passed without a run are settled as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "an internal message")]
pub enum PassedAs {
    /// Nobody ran them in time.
    Missed(MissedReason),
    /// A blackout calendar covers them.
    Blackout,
}

impl From<MissedReason> for PassedAs {
    fn from(reason: MissedReason) -> Self {
        Self::Missed(reason)
    }
}

/// Ticks that passed without a run, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "an internal message")]
pub struct Passed {
    /// Why.
    pub reason: PassedAs,
    /// The first of them.
    pub first: jiff::Timestamp,
    /// The last of them.
    pub last: jiff::Timestamp,
    /// How many.
    pub count: u64,
}

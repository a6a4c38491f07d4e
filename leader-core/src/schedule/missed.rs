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
}

/// Why a missed tick was not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum MissedReason {
    /// The job's policy is `skip`.
    Skipped,
    /// The job's policy is `latest`, and a later missed tick was run in its stead.
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

/// Ticks that passed without a run, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "an internal message")]
pub struct Passed {
    /// Why.
    pub reason: MissedReason,
    /// The first of them.
    pub first: jiff::Timestamp,
    /// The last of them.
    pub last: jiff::Timestamp,
    /// How many.
    pub count: u64,
}

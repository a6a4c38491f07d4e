//! What became of a tick: every due tick ends with exactly one outcome.

use std::fmt;
use std::str::FromStr;

use crate::schedule::missed::{MissedReason, PassedAs};

macro_rules! words {
    ($(#[$doc:meta])* $Enum:ident { $($(#[$variant_doc:meta])* $Variant:ident = $word:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum $Enum {
            $($(#[$variant_doc])* $Variant,)*
        }

        impl $Enum {
            /// Every value.
            pub const ALL: &[Self] = &[$(Self::$Variant),*];

            /// The word for logs, metrics and the store.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$Variant => $word,)*
                }
            }
        }

        impl fmt::Display for $Enum {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.as_str())
            }
        }
    };
}

words! {
    /// How a run ended.
    Ran {
        /// The body returned, and not an error.
        Ok = "ok",
        /// The body returned an error.
        Error = "error",
        /// The body panicked.
        Panic = "panic",
        /// The body took longer than the job's `timeout` and was dropped.
        TimedOut = "timed_out",
        /// The body was dropped because its leadership ended.
        Cancelled = "cancelled",
        /// The runner vanished: its heartbeat ended and nobody told the result.
        Lost = "lost",
        /// The tick was claimed, and the body never started: its leader could no longer be trusted, or a middleware passed it by.
        NotStarted = "not_started",
    }
}

/// What became of a tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Outcome {
    /// A run was started for it.
    Ran(Ran),
    /// It was found too late, and the job's policy did not want it run.
    Missed(MissedReason),
    /// An earlier run of the job had not ended.
    OverlapSkipped,
    /// The job was paused.
    Paused,
    /// A blackout calendar covered it.
    Blackout,
    /// Its result was refused: the run had been settled, or taken over, under a higher fence.
    Fenced,
}

impl Outcome {
    /// The word for logs, metrics and the store: `ran.ok`, `missed.skipped`, `overlap_skipped`, …
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ran(Ran::Ok) => "ran.ok",
            Self::Ran(Ran::Error) => "ran.error",
            Self::Ran(Ran::Panic) => "ran.panic",
            Self::Ran(Ran::TimedOut) => "ran.timed_out",
            Self::Ran(Ran::Cancelled) => "ran.cancelled",
            Self::Ran(Ran::Lost) => "ran.lost",
            Self::Ran(Ran::NotStarted) => "ran.not_started",
            Self::Missed(MissedReason::Skipped) => "missed.skipped",
            Self::Missed(MissedReason::Coalesced) => "missed.coalesced",
            Self::Missed(MissedReason::TooOld) => "missed.too_old",
            Self::Missed(MissedReason::OverLimit) => "missed.over_limit",
            Self::Missed(MissedReason::Uncovered) => "missed.uncovered",
            Self::Missed(MissedReason::ForeignLeader) => "missed.foreign_leader",
            Self::OverlapSkipped => "overlap_skipped",
            Self::Paused => "paused",
            Self::Blackout => "blackout",
            Self::Fenced => "fenced",
        }
    }

    /// Every outcome.
    pub fn all() -> impl Iterator<Item = Self> {
        let ran = Ran::ALL.iter().copied().map(Self::Ran);
        let missed = MissedReason::ALL.iter().copied().map(Self::Missed);
        let others = [Self::OverlapSkipped, Self::Paused, Self::Blackout, Self::Fenced];
        ran.chain(missed).chain(others)
    }

    /// Whether a run was started.
    #[must_use]
    pub fn is_ran(self) -> bool {
        matches!(self, Self::Ran(_))
    }

    /// Whether the tick was missed and not run.
    #[must_use]
    pub fn is_missed(self) -> bool {
        matches!(self, Self::Missed(_))
    }
}

impl From<PassedAs> for Outcome {
    fn from(passed: PassedAs) -> Self {
        match passed {
            PassedAs::Missed(reason) => Self::Missed(reason),
            PassedAs::Blackout => Self::Blackout,
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A text that is no outcome's word.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an outcome that this version knows")]
pub struct UnknownOutcome(String);

impl FromStr for Outcome {
    type Err = UnknownOutcome;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        Self::all()
            .find(|outcome| outcome.as_str() == word)
            .ok_or_else(|| UnknownOutcome(word.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_outcome_has_a_word_of_its_own() {
        for outcome in Outcome::all() {
            assert_eq!(outcome.as_str().parse(), Ok(outcome));
        }
        assert!("ran".parse::<Outcome>().is_err());
    }
}

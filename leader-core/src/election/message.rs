//! What goes into an election and what comes out.

use std::fmt;
use std::time::Duration;

use crate::clock::Moment;

/// The number of one request to the store; a reply to any but the latest changes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(clippy::exhaustive_structs, reason = "an internal message")]
pub struct Attempt(pub u64);

/// What the machine wants done.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "an internal message")]
pub enum Command {
    /// Ask the store for the lease.
    Campaign {
        /// The request's number.
        attempt: Attempt,
        /// The highest term ever seen.
        known: u64,
        /// How long a vacancy is left to others.
        yields: Duration,
        /// Whether it is a look that nothing but time called for.
        routine: bool,
    },
    /// Ask the store to prolong the lease.
    Renew {
        /// The request's number.
        attempt: Attempt,
        /// The term believed in.
        term: u64,
    },
    /// Give the lease back.
    Release {
        /// The request's number.
        attempt: Attempt,
        /// The term to give back.
        term: u64,
        /// When the drain began, if there was one.
        draining_since: Option<Moment>,
    },
    /// Belief begins.
    Lead {
        /// The new term.
        term: u64,
        /// The end of trust.
        until: Moment,
    },
    /// Belief is prolonged.
    Extend {
        /// The term.
        term: u64,
        /// The new end of trust.
        until: Moment,
    },
    /// Trust is about to end: tell the running bodies.
    Tell {
        /// The term whose bodies are told.
        term: u64,
    },
    /// Start nothing new, tell the running bodies, and report [`drained`](super::Election::drained).
    Drain {
        /// The term.
        term: u64,
        /// When to stop waiting.
        bound: Moment,
    },
    /// Belief is cleared. Always precedes the release, and is executed before it is sent.
    Lose {
        /// The term that ended.
        term: u64,
        /// Why.
        reason: Lost,
        /// When belief ended: now, or the end of trust when that was earlier.
        ended: Moment,
    },
    /// A renewal failed and will be retried while trust lasts.
    RenewalFailed {
        /// The term.
        term: u64,
        /// How many have failed in a row.
        failures: u32,
    },
    /// The group cannot be led yet by anybody.
    Quarantined {
        /// For how long.
        remaining: Duration,
    },
    /// The machine has nothing more to do.
    Stopped,
}

/// Why a leadership ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Lost {
    /// No renewal was confirmed before trust ended.
    Expired,
    /// The store says that somebody else holds the lease.
    Taken,
    /// The store says that nobody holds the lease.
    Vanished,
    /// Asked to step down.
    SteppedDown,
    /// The instance is shutting down.
    Shutdown,
    /// The runtime that runs the bodies is gone.
    RuntimeGone,
    /// The runtime that runs the bodies has run nothing for one TTL.
    Wedged,
    /// The framework's own work panicked; it is started again.
    EnginePanicked,
}

impl Lost {
    /// Every reason.
    pub const ALL: &[Self] = &[
        Self::Expired,
        Self::Taken,
        Self::Vanished,
        Self::SteppedDown,
        Self::Shutdown,
        Self::RuntimeGone,
        Self::Wedged,
        Self::EnginePanicked,
    ];

    /// The word for logs and metrics.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Expired => "expired",
            Self::Taken => "taken",
            Self::Vanished => "vanished",
            Self::SteppedDown => "stepped_down",
            Self::Shutdown => "shutdown",
            Self::RuntimeGone => "runtime_gone",
            Self::Wedged => "wedged",
            Self::EnginePanicked => "engine_panicked",
        }
    }
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A wish to give up the lead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "an internal message")]
pub enum StepDown {
    /// Then stay out of the race for the cool-down, and come back.
    Request,
    /// Then stop for good.
    Shutdown,
}

/// What the store answered.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "an internal message")]
pub enum Reply {
    /// To a campaign.
    Campaign(CampaignReply),
    /// To a renewal: it was ours, and was prolonged.
    Renewed,
    /// To a renewal: it is not ours.
    NotYours {
        /// Whether somebody else holds it.
        held: bool,
        /// The store's term.
        term: u64,
    },
    /// To a release, whatever was found.
    Released,
    /// No answer, or an error: it says nothing about what was executed.
    Failed,
}

/// What the store answered to a campaign.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "an internal message")]
pub enum CampaignReply {
    /// The lease is ours under a new term.
    Acquired {
        /// The new term.
        term: u64,
    },
    /// Another holds it.
    Held {
        /// For how long at the most; `None` when it never ends by itself.
        remaining: Option<Duration>,
        /// The store's term.
        term: u64,
    },
    /// A higher term was seen by the store than by the candidate.
    Stale {
        /// The store's term.
        term: u64,
    },
    /// It is vacant, and left to others for a while.
    Yielded {
        /// For how long.
        remaining: Duration,
        /// The store's term.
        term: u64,
    },
    /// Nobody may acquire yet: an old leader may still believe.
    #[cfg_attr(
        not(feature = "redis"),
        allow(dead_code, reason = "a store that dies with its process needs no quarantine")
    )]
    Quarantined {
        /// For how long.
        remaining: Duration,
        /// The store's term.
        term: u64,
    },
}

/// Something odd about a lease, which a person may want to look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Oddity {
    /// It is held by somebody who is not of this fleet: it is respected until it ends.
    Foreign,
    /// It has no end, and is not of this fleet: it is never taken.
    Endless,
    /// Its key is of another type than a lease: it is never taken.
    WrongType,
    /// It would have lasted longer than it was granted for, and was cut back to that: the server's clock was set back, or somebody
    /// took its end away.
    Clamped,
}

impl Oddity {
    /// Every oddity.
    pub const ALL: &[Self] = &[Self::Foreign, Self::Endless, Self::WrongType, Self::Clamped];

    /// The word for logs and metrics.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Foreign => "foreign",
            Self::Endless => "endless",
            Self::WrongType => "wrong_type",
            Self::Clamped => "clamped",
        }
    }
}

impl fmt::Display for Oddity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

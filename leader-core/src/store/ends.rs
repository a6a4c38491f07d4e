//! How runs have ended, told to a store.

use std::time::Duration;

use jiff::Timestamp;

use crate::job::outcome::Ran;
use crate::names::{GroupName, JobName};

/// Runs of one group that have ended.
#[derive(Clone, Debug)]
#[allow(clippy::exhaustive_structs, reason = "an internal message")]
pub struct SettleBatch {
    /// The group.
    pub group: GroupName,
    /// The runs.
    pub ends: Vec<End>,
}

/// How one run ended.
#[derive(Clone, Debug)]
#[allow(clippy::exhaustive_structs, reason = "an internal message")]
pub struct End {
    /// The job.
    pub job: JobName,
    /// The run.
    pub fence: u64,
    /// How it ended.
    pub ran: Ran,
    /// The error's text, bounded; empty for none.
    pub error: String,
    /// The pause before the run's next try; `None` when this was its end.
    pub again_in: Option<Duration>,
}

/// Whether a run's result was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "an internal message")]
pub enum Settled {
    /// It was.
    Yes,
    /// It was; the run is open on and pauses.
    Again {
        /// When its next try may begin, by the server's clock.
        at: Timestamp,
    },
    /// The run had been settled by somebody else.
    Fenced,
}

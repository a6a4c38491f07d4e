//! What is asked of a store about the instances of a fleet, and what it answers.

use std::time::Duration;

use jiff::Timestamp;

use crate::names::{Holder, ServiceName};

/// An instance's line in the roster. What it says of itself is text to the store.
#[derive(Clone, Debug)]
#[allow(clippy::exhaustive_structs, reason = "an internal message")]
pub struct Entry {
    /// The instance.
    pub holder: Holder,
    /// Its service.
    pub service: ServiceName,
    /// How long the line counts as alive.
    pub ttl: Duration,
    /// What changes from one sign of life to the next.
    pub beat: String,
    /// Names the introduction that belongs to this line.
    pub digest: u64,
    /// What stays the same, given when the store has asked for it.
    pub introduction: Option<String>,
}

/// The answer to an enrolment.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "an internal message")]
pub enum Enrolled {
    /// The line is written.
    Yes {
        /// The server's time.
        now: Timestamp,
        /// Another number whenever an instance came, went or introduced itself anew.
        revision: u64,
        /// Another living line of the same instance id.
        twin: Option<Twin>,
    },
    /// The store does not have the introduction: nothing was written.
    Introduce,
    /// Another service is alive in the namespace; nothing was written.
    OtherService {
        /// That service.
        service: String,
        /// One of its instances.
        instance: String,
    },
}

/// A line of another process with the same instance id.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "an internal message")]
pub struct Twin {
    /// The other process.
    pub holder: Holder,
    /// Its last sign of life, by the server's clock.
    pub seen: Timestamp,
}

/// The living lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "an internal message")]
pub struct Roster {
    /// The number of this state of the roster.
    pub revision: u64,
    /// The lines, by holder.
    pub lines: Vec<Line>,
}

/// One living line.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "an internal message")]
pub struct Line {
    /// The instance.
    pub holder: Holder,
    /// Its service.
    pub service: String,
    /// Its last sign of life, by the server's clock.
    pub seen: Timestamp,
    /// What changes from one sign of life to the next.
    pub beat: String,
    /// What stays the same.
    pub introduction: String,
}

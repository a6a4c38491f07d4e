//! What a look at the server says of its fitness to hold leases.

use std::fmt;

/// Something about the store that a person should know, with what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// What it is about.
    pub kind: FindingKind,
    /// What was found, and what to do.
    pub text: String,
}

/// What a finding is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum FindingKind {
    /// The server is too old for the scripts. Leases cannot be held.
    Version,
    /// The server is a replica. Leases cannot be held.
    Replica,
    /// The server is one of a cluster. Leases of several groups cannot be held.
    Cluster,
    /// The user may not listen to the channel by which hand-overs are quick.
    Channel,
    /// The server may evict leases when memory runs out.
    Eviction,
    /// The server forgets what it acknowledged when it crashes.
    Persistence,
    /// The server could not be asked, or did not say.
    Unknown,
}

impl FindingKind {
    /// Whether leases cannot be held on such a server at all.
    #[must_use]
    pub fn is_fatal(self) -> bool {
        matches!(self, Self::Version | Self::Replica | Self::Cluster)
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

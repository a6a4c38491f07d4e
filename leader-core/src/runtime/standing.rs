//! Where an instance stands, for those who ask whether it is ready.

/// As of the engine's last turn.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Standing {
    /// Why the store does not answer, if it does not.
    pub(crate) store: Option<String>,
    /// The roster has let the instance in, and it takes part in its elections.
    pub(crate) enrolled: bool,
    /// The bodies' runtime has run nothing for one TTL.
    pub(crate) wedged: bool,
    /// The instance leaves its fleet.
    pub(crate) leaving: bool,
}

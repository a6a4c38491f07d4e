//! How a request can be told from its bytes.

/// A request that the faults of a [`Proxy`](crate::Proxy) can be aimed at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// Asks for a lease.
    Campaign,
    /// Claims ticks.
    Claim,
    /// Prolongs a lease.
    Renewal,
    /// Tells how runs ended.
    Settlement,
    /// Reads what a new leader must know.
    TakeOver,
}

impl Request {
    /// A piece of text that this request has and no other: scripts are sent whole, and each begins by saying what it does. Taken
    /// from the scripts themselves, so that it cannot fall behind them.
    ///
    /// # Panics
    /// When a script does not begin with such a line.
    #[must_use]
    pub fn marker(self) -> &'static str {
        let script = match self {
            Self::Campaign => include_str!("../../leader-core/src/store/redis/scripts/campaign.lua"),
            Self::Claim => concat!(
                include_str!("../../leader-core/src/store/redis/scripts/records.lua"),
                include_str!("../../leader-core/src/store/redis/scripts/claim.lua")
            ),
            Self::Settlement => concat!(
                include_str!("../../leader-core/src/store/redis/scripts/records.lua"),
                include_str!("../../leader-core/src/store/redis/scripts/settle.lua")
            ),
            Self::TakeOver => include_str!("../../leader-core/src/store/redis/scripts/take_over.lua"),
            Self::Renewal => include_str!("../../leader-core/src/store/redis/scripts/renew.lua"),
        };
        let first = script.lines().next().unwrap_or_default();
        assert!(first.starts_with("-- ") && first.len() > 10, "{self:?}: `{first}`");
        first
    }
}

//! Jobs whose ticks need no leader: whoever claims one first runs it.

/// The term in questions and claims for the jobs that need no leader, and in their runs: no leadership has it, because terms are minted
/// above the server's clock.
///
/// A lease is not asked for then, and a run is told from those of others by its process. Its runner trusts it for as long as a leader
/// trusts a lease: from before the claim, or a sign of life that the store has taken, was sent.
pub const UNLED: u64 = 0;

//! What an instance knows of the clocks: its own, and the store's.

use std::time::Duration;

use jiff::SignedDuration;

/// What an instance knows of its clock and of the store's, which decides the ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClockStatus {
    /// How far its wall clock was ahead of the store's when that was last measured; `None` before the first time.
    pub offset: Option<SignedDuration>,
    /// How far that may be off.
    pub offset_error: Option<Duration>,
    /// How far the clock that ticks are planned by may be from the store's: it follows that gently, and never runs backwards. While a leap
    /// of the store's clock waits for the fleet's word, or a step back is waited out, that is the whole of the step.
    pub planning_error: Option<Duration>,
    /// No tick is claimed at present: the store's clock is disputed, or has leapt ahead of this instance's own wall clock and the
    /// fleet is being asked, or has not been seen yet.
    pub holds_ticks: bool,
    /// What most of the fleet holds against the store's clock.
    pub dispute: Option<ClockDispute>,
}

/// Most instances of a fleet disagree with the store's clock by more than 5 s, and in the same way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClockDispute {
    /// How far their wall clocks are ahead of the store's.
    pub offset: SignedDuration,
    /// How many they are.
    pub instances: usize,
    /// Of how many that have measured their offset.
    pub of: usize,
}

//! The election of one group as a pure state machine: inputs and `now` in, commands out.
//!
//! It knows no store, no runtime and no clock. Its rules were model-checked before they were written; change none without
//! checking again.

mod machine;
#[cfg(feature = "testing")]
pub mod marks;
mod message;
pub mod placement;
mod state;
mod steps;
#[cfg(test)]
mod tests;

pub use machine::Election;
pub use message::{Attempt, CampaignReply, Command, Lost, Oddity, Reply, StepDown};

//! When a job is due: pure functions of an expression and an instant. Nothing here reads a clock.

mod duration;
mod every;
mod message;

pub use duration::{DurationError, checked_duration, parse_duration};
pub use every::{Every, MAX_PERIOD, MIN_PERIOD, PeriodError};
pub use message::Message;

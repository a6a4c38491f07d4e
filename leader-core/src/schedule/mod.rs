//! When a job is due: pure functions of an expression and an instant. Nothing here reads a clock.

mod duration;
mod every;
mod gate;
mod message;

pub use duration::{DurationError, checked_duration, parse_duration};
pub use every::{Every, MAX_PERIOD, MIN_PERIOD, PeriodError};
pub use gate::{Cron, CronError, Days, MAX_EXPRESSION};
pub use message::Message;

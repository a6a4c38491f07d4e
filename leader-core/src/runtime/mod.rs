//! The framework's own thread: elections, ticks and runs are driven there, and only bodies go to the user's runtime.

pub(crate) mod config;
pub(crate) mod engine;
pub(crate) mod fleet;
mod guarded;
pub(crate) mod requests;
pub(crate) mod shared;
pub(crate) mod thread;
mod watch;

//! The framework's own thread: elections, ticks and runs are driven there, and only bodies go to the user's runtime.

pub(crate) mod clock_status;
pub(crate) mod companion;
pub(crate) mod config;
pub(crate) mod engine;
pub(crate) mod fleet;
pub(crate) mod guarded;
mod hooks;
pub(crate) mod load;
pub(crate) mod panics;
pub(crate) mod process;
pub(crate) mod requests;
mod restarts;
pub(crate) mod shared;
pub(crate) mod standing;
pub(crate) mod thread;
mod watch;

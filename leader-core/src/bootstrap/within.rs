//! What an instance lives in when it lives in a simulation.

use std::sync::{Arc, OnceLock};

use crate::job::record::Record;
use crate::job::scope::Gates;
use crate::runtime::process::Process;

/// In a real process nothing of it is given.
#[derive(Debug, Default)]
pub(super) struct Within {
    pub(super) process: Process,
    /// The random part of its holder.
    pub(super) nonce: Option<u64>,
    /// Its jobs, instead of those that the linker collected.
    pub(super) only: Option<Vec<&'static Record>>,
    /// Where its gates are shown, before anything can be led.
    pub(super) gates: Arc<OnceLock<Arc<Gates>>>,
}

//! Jobs: what the macros record, what a body is given, and what becomes of a tick.

pub(crate) mod around;
pub(crate) mod extract;
pub(crate) mod failure;
pub(crate) mod gate;
pub(crate) mod handler;
pub(crate) mod outcome;
pub(crate) mod output;
pub(crate) mod record;
pub(crate) mod scope;
pub(crate) mod tick;

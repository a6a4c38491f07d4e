//! Durable tasks: an elected dispatcher feeds the workers of the fleet.

mod attempts;
mod dispatcher;
mod endings;
pub(crate) mod enqueue;
pub(crate) mod extract;
mod generations;
pub(crate) mod handle;
pub(crate) mod hub;
pub(crate) mod id;
mod pace;
mod producer;
pub(crate) mod query;
pub(crate) mod record;
mod results;
pub(crate) mod routing;
pub(crate) mod spec;
pub(crate) mod task;
mod ticks;
pub(crate) mod trust;
mod worker;

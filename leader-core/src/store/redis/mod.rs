//! The store on Redis or Valkey: the only place that knows the `redis` crate.

mod address;
mod answer;
mod backoff;
mod calls;
mod connection;
mod control;
mod coverage;
mod fault;
mod findings;
mod keys;
mod made;
mod schedules;
mod script;
mod store;
mod subscription;
#[cfg(feature = "tasks")]
mod tasks;

pub use address::parse;
pub use connection::Connection;
pub use store::RedisStore;
pub use subscription::Subscription;

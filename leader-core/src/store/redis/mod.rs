//! The store on Redis or Valkey: the only place that knows the `redis` crate.

mod address;
mod backoff;
mod connection;
mod fault;
mod subscription;

pub use address::parse;
pub use connection::Connection;
pub use subscription::Subscription;

//! The harness of the test suites.

mod certificates;
pub mod checker;
mod eventually;
mod redis_server;

pub use certificates::Certificates;
pub use eventually::eventually;
pub use redis_server::{RedisOptions, RedisServer};

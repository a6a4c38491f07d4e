//! The harness of the test suites.

mod certificates;
pub mod checker;
pub mod dice;
mod eventually;
mod postgres_server;
mod proxy;
mod redis_server;
mod requests;

pub use certificates::Certificates;
pub use eventually::eventually;
pub use postgres_server::PostgresServer;
pub use proxy::{Direction, Proxy};
pub use redis_server::{RedisOptions, RedisServer};
pub use requests::Request;

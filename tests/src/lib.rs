//! The harness of the test suites.

pub mod audit;
mod certificates;
pub mod checker;
pub mod dice;
mod eventually;
#[cfg(target_os = "linux")]
mod hand_clock;
mod postgres_server;
mod proxy;
mod redis_server;
mod requests;
pub mod say;

pub use certificates::Certificates;
pub use eventually::eventually;
#[cfg(target_os = "linux")]
pub use hand_clock::HandClock;
pub use postgres_server::PostgresServer;
pub use proxy::{Direction, Proxy};
pub use redis_server::{RedisOptions, RedisServer};
pub use requests::Request;

//! The harness of the test suites.

mod certificates;
pub mod checker;
mod dice;
mod eventually;
mod proxy;
mod redis_server;
mod requests;

pub use certificates::Certificates;
pub use dice::{Dice, seed};
pub use eventually::eventually;
pub use proxy::{Direction, Proxy};
pub use redis_server::{RedisOptions, RedisServer};
pub use requests::Request;

//! What happens on a real server, faults included.
#![allow(clippy::unwrap_used, reason = "a test fails by panic")]

mod caller;
mod connection;
mod faults;
mod proxy;
mod subscription;
mod tls;

//! `#[leader_only]` as its users meet it: what it returns, what it carries unchanged, and that it is silent.

// The expansion must satisfy the strictest house.
#![deny(warnings, missing_docs, unused_qualifications, clippy::pedantic, clippy::nursery)]
#![forbid(unsafe_code)]

mod drop_order;
mod gate;
mod hygiene;
mod no_prelude;
mod registration;
pub mod renamed_crate;
mod scheduled;
pub mod strict_user;
mod tasks;
mod weird_usage;
mod words;

use std::future::Future;

/// Runs a test's future on a runtime of one thread.
fn block_on<F: Future>(future: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime of one thread starts").block_on(future)
}

//! Support for unit tests of annotated functions.

use std::future::Future;

use crate::job::scope::{Scope, within};

/// Runs a future as on the leader of every group: gated functions called in it run, without an instance and without a store.
///
/// ```
/// use leader_core::{leader_only, testing};
///
/// #[leader_only]
/// async fn double(n: u32) -> u32 {
///     2 * n
/// }
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// assert_eq!(testing::as_leader(double(21)).await, Ok(42));
/// # });
/// ```
pub async fn as_leader<F: Future>(future: F) -> F::Output {
    within(
        Scope {
            gates: None,
            lead: None,
        },
        future,
    )
    .await
}

//! Waiting for a condition instead of for a time.

use std::time::Duration;

use tokio::time::Instant;

/// Polls `condition` until it holds and returns how long that took.
///
/// # Panics
/// When it does not hold within `deadline`; `what` names it.
pub async fn eventually<F, C>(deadline: Duration, what: &str, mut condition: F) -> Duration
where
    F: FnMut() -> C,
    C: Future<Output = bool>,
{
    let began = Instant::now();
    loop {
        if condition().await {
            return began.elapsed();
        }
        assert!(began.elapsed() < deadline, "not within {deadline:?}: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

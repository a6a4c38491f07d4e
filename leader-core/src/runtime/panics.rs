//! Panics as values.

use std::any::Any;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::Poll;

/// What was thrown.
pub(crate) type Panic = Box<dyn Any + Send>;

/// Runs a future, and gives a panic of one of its polls instead of its output. It is not polled again.
///
/// # Errors
/// What was thrown.
pub(crate) async fn caught<F: Future>(future: F) -> Result<F::Output, Panic> {
    let mut future = pin!(future);
    std::future::poll_fn(|cx| match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx))) {
        Ok(Poll::Pending) => Poll::Pending,
        Ok(Poll::Ready(output)) => Poll::Ready(Ok(output)),
        Err(panic) => Poll::Ready(Err(panic)),
    })
    .await
}

/// The text of a panic.
pub(crate) fn text(panic: Panic) -> String {
    let text = panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without a text".to_owned());
    // What was thrown may panic in its own drop, and so may what that throws.
    if let Err(again) = catch_unwind(AssertUnwindSafe(|| drop(panic))) {
        std::mem::forget(again);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_in_any_poll_is_caught() {
        assert_eq!(caught(async { 7 }).await.map_err(text), Ok(7));
        let at_once = async { panic!("at once") };
        assert_eq!(caught(at_once).await.map_err(text), Err::<(), _>("at once".to_owned()));
        let later = async {
            tokio::task::yield_now().await;
            panic!("after {}", 1)
        };
        assert_eq!(caught(later).await.map_err(text), Err::<(), _>("after 1".to_owned()));
    }
}

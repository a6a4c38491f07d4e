//! What works beside the engine on the framework's thread, and shares the end of the instance with it: the tasks.

use std::any::Any;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

#[cfg(feature = "tasks")]
use jiff::Timestamp;
use tokio::runtime::Handle;

use super::shared::Shared;
use crate::clock::Moment;
use crate::store::Store;

/// Such a companion. The engine knows it by this alone.
pub(crate) trait Companion: Any + fmt::Debug + Send + Sync {
    /// Its work, as long as the instance lives: dropped at its end.
    fn work(
        self: Arc<Self>,
        shared: Arc<Shared>,
        store: Arc<dyn Store>,
        bodies: Handle,
    ) -> Pin<Box<dyn Future<Output = ()> + Send>>;

    /// The instance stops: nothing new is begun, and what has not ended by then is dropped.
    fn drain(&self, by: Moment);

    /// The instance has ended, be it by a kill: what still runs is dropped at its next poll, and nothing of it is told.
    fn end(&self);

    /// Whether nothing is under way.
    fn is_idle(&self) -> bool;

    /// Somebody has made something due in a group.
    #[cfg(feature = "tasks")]
    fn due(&self, group: &str, at: Timestamp);
}

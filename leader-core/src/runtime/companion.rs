//! What works beside the engine on the framework's thread, and shares the end of the instance with it: the tasks.

use std::any::Any;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use jiff::Timestamp;
use tokio::runtime::Handle;

use super::shared::Shared;
use crate::clock::Moment;
use crate::job::output::JobError;
use crate::job::tick::Origin;
use crate::names::{JobName, QueueName};
use crate::store::Store;

/// A run of a job that workers are to run.
#[derive(Clone, Debug)]
#[cfg_attr(not(feature = "tasks"), allow(dead_code, reason = "the workers read it"))]
pub(crate) struct HandedOver {
    pub(crate) job: JobName,
    pub(crate) tick: Timestamp,
    pub(crate) origin: Origin,
}

/// Such a companion. The engine knows it by this alone.
pub(crate) trait Companion: Any + fmt::Debug + Send + Sync {
    /// Its work, as long as the instance lives: dropped at its end.
    fn work(
        self: Arc<Self>,
        shared: Arc<Shared>,
        store: Arc<dyn Store>,
        bodies: Handle,
    ) -> Pin<Box<dyn Future<Output = ()> + Send>>;

    /// The queues that it knows.
    fn queues(&self) -> Vec<QueueName>;

    /// The instance stops: nothing new is begun, and what has not ended by then is dropped.
    fn drain(&self, by: Moment);

    /// The instance has ended, be it by a kill: what still runs is dropped at its next poll, and nothing of it is told.
    fn end(&self);

    /// Whether the store knows how everything has ended that ran: what is dropped at the end of a drain has to be told, too.
    fn has_told(&self) -> bool;

    /// Whether nothing is under way.
    fn is_idle(&self) -> bool;

    /// Hands a run of a job on to the workers. It is done when somebody else remembers the run: however often it is asked for, before
    /// [`handed_over`](Self::handed_over) tells that nobody will ask again, that is one run.
    fn hand_over(&self, run: HandedOver) -> Pin<Box<dyn Future<Output = Result<(), JobError>> + Send>>;

    /// The store knows that a run was handed on: it is not asked for again.
    fn handed_over(&self, run: HandedOver);

    /// Somebody has made something due in a group.
    #[cfg(feature = "tasks")]
    fn due(&self, group: &str, at: Timestamp);
}

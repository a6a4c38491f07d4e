//! What the framework's thread and the handles on an instance share.

use std::sync::Arc;

use tokio::sync::{broadcast, mpsc};

use super::config::Config;
use super::engine::Input;
use crate::event::{Event, Stamped};
use crate::job::scope::Gates;
use crate::telemetry;

/// One instance, as seen from every thread.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) config: Config,
    pub(crate) gates: Arc<Gates>,
    pub(crate) store_address: String,
    pub(crate) inbox: mpsc::UnboundedSender<Input>,
    events: broadcast::Sender<Stamped>,
}

impl Shared {
    pub(crate) fn new(
        config: Config,
        gates: Arc<Gates>,
        store_address: String,
        inbox: mpsc::UnboundedSender<Input>,
        events: broadcast::Sender<Stamped>,
    ) -> Self {
        Self {
            config,
            gates,
            store_address,
            inbox,
            events,
        }
    }

    /// Tells an event to the log and to whoever listens.
    pub(crate) fn tell(&self, event: Event) {
        telemetry::tell(self.config.instance.as_str(), &event);
        let at = self.config.clock.now();
        // Nobody listens: nothing is lost.
        let _ = self.events.send(Stamped { at, event });
    }

    pub(crate) fn listen(&self) -> broadcast::Receiver<Stamped> {
        self.events.subscribe()
    }

    /// Sends to the framework's thread; a stopped one has nothing more to do.
    pub(crate) fn send(&self, input: Input) {
        let _ = self.inbox.send(input);
    }
}

//! Who reads events.

use tokio::sync::broadcast;

use super::Event;
use crate::clock::Moment;

/// An event and when it happened.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stamped {
    /// When, by the suspend-counting clock.
    pub at: Moment,
    /// What.
    pub event: Event,
}

/// How many events a slow reader may fall behind.
pub(crate) const BACKLOG: usize = 4096;

/// The events of one instance, from the moment of the call on. Only this reader may fall behind, and then says by how much.
#[derive(Debug)]
pub struct Events {
    told: broadcast::Receiver<Stamped>,
    /// Set after the last: whoever holds a handle keeps the channel open.
    over: bool,
}

/// Why no event came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EventsError {
    /// The reader was too slow: so many events were dropped. The next call gives the oldest that is left.
    #[error("{0} events were dropped: read them faster")]
    Lagged(u64),
    /// The instance has stopped.
    #[error("the instance has stopped")]
    Stopped,
}

impl Events {
    /// Those of a channel; `over` when its instance has stopped.
    pub(crate) fn new(told: broadcast::Receiver<Stamped>, over: bool) -> Self {
        Self { told, over }
    }

    /// The next event. Cancel safe.
    ///
    /// # Errors
    /// [`EventsError::Lagged`] after events were dropped, [`EventsError::Stopped`] after the last.
    pub async fn recv(&mut self) -> Result<Stamped, EventsError> {
        if self.over {
            return Err(EventsError::Stopped);
        }
        match self.told.recv().await {
            Ok(stamped) => {
                self.over = matches!(stamped.event, Event::Stopped { .. });
                Ok(stamped)
            }
            Err(broadcast::error::RecvError::Lagged(count)) => Err(EventsError::Lagged(count)),
            Err(broadcast::error::RecvError::Closed) => Err(EventsError::Stopped),
        }
    }
}

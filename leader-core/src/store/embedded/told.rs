//! What is told at once to every instance that listens.

use std::sync::Arc;

use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

use crate::names::{GroupName, Namespace};
use crate::store::Ears;

/// What the instances are told.
#[derive(Clone, Copy, Debug)]
pub(super) enum Hint {
    Released(u64),
    Asked(u64),
    Controlled(u64),
    #[cfg(feature = "tasks")]
    Due(jiff::Timestamp),
}

/// One thing told.
#[derive(Clone, Debug)]
pub(super) enum Message {
    Of(Namespace, GroupName, Hint),
    /// The connection of everybody who listens was lost.
    Gap,
}

/// Passes on what concerns a namespace, as long as the store is there.
pub(super) async fn hear(mut told: Receiver<Message>, namespace: &Namespace, ears: Arc<dyn Ears>) {
    loop {
        match told.recv().await {
            Ok(Message::Of(of, group, hint)) if of == *namespace => match hint {
                Hint::Released(term) => ears.released(group.as_str(), term),
                Hint::Asked(term) => ears.asked(group.as_str(), term),
                Hint::Controlled(number) => ears.controlled(group.as_str(), number),
                #[cfg(feature = "tasks")]
                Hint::Due(at) => ears.due(group.as_str(), at),
            },
            Ok(Message::Of(..)) => {}
            Ok(Message::Gap) | Err(RecvError::Lagged(_)) => ears.gap(),
            // The sender lives in the store that listens.
            Err(RecvError::Closed) => return,
        }
    }
}

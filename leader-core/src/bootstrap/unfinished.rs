//! An instance whose start has not succeeded yet.

use std::sync::Arc;

use tokio::sync::oneshot;

use crate::job::scope;
use crate::runtime::engine::{Input, Request};
use crate::runtime::shared::Shared;

/// Stops a half-started instance when it is dropped.
pub(super) struct Unfinished(Option<Arc<Shared>>);

impl Unfinished {
    pub(super) fn new(shared: &Arc<Shared>) -> Self {
        Self(Some(Arc::clone(shared)))
    }

    pub(super) fn finish(mut self) {
        self.0 = None;
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if let Some(shared) = self.0.take() {
            scope::unregister(&shared.gates);
            let (done, _) = oneshot::channel();
            shared.send(Input::Request(Request::Shutdown { done }));
        }
    }
}

//! The framework's own thread, and the guard on the runtime that runs the bodies.

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::{Handle, Runtime};
use tokio::sync::{mpsc, oneshot};

use super::engine::{Input, Kept, Refused, Request, drive};
use super::panics::caught;
use super::shared::Shared;
use crate::job::scope;
use crate::store::{Ears, Store};
use crate::telemetry;

/// How long a dying runtime waits for the release of its leases.
const LAST_WORDS: Duration = Duration::from_millis(300);

/// The pause before a listener that panicked is followed by another.
const DEAF: Duration = Duration::from_secs(1);

/// Starts the thread. It ends when the instance has stopped.
///
/// # Errors
/// When the system gives no thread or no runtime.
pub(crate) fn start(
    shared: &Arc<Shared>,
    store: Arc<dyn Store>,
    inbox: mpsc::UnboundedReceiver<Input>,
    ready: oneshot::Sender<Result<(), Refused>>,
) -> std::io::Result<()> {
    if let Some(warning) = telemetry::when_panics_abort(cfg!(panic = "abort")) {
        tracing::warn!(instance = %shared.config.instance, "{warning}");
    }
    let bodies = Handle::current();
    let runtime = Background(Some(
        tokio::runtime::Builder::new_current_thread().enable_all().build()?,
    ));
    let on_thread = Arc::clone(shared);
    let engine_bodies = bodies.clone();
    std::thread::Builder::new()
        .name("leader-core".to_owned())
        .spawn(move || {
            let kept = Kept::new(&on_thread, inbox, ready);
            let _gone = Gone(Arc::clone(&on_thread));
            runtime.block_on(async {
                let listening = tokio::spawn(listen(Arc::clone(&on_thread), Arc::clone(&store)));
                drive(&on_thread, &store, &engine_bodies, kept).await;
                listening.abort();
            });
        })?;
    let keeper = Keeper(Arc::clone(shared));
    // As long as the thread takes inputs: what the instance was given is dropped with it.
    bodies.spawn(async move { keeper.0.inbox.closed().await });
    Ok(())
}

/// The framework's runtime. Dropped anywhere, even inside another runtime when the system gave no thread, and a name look-up that
/// hangs does not hold it.
struct Background(Option<Runtime>);

impl Background {
    fn block_on(&self, future: impl Future<Output = ()>) {
        if let Some(runtime) = &self.0 {
            runtime.block_on(future);
        }
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

/// However the thread ends, nothing is believed afterwards, and calls outside any scope no longer mean this instance.
struct Gone(Arc<Shared>);

impl Drop for Gone {
    fn drop(&mut self) {
        self.0.gates.iter().for_each(|gate| gate.seal());
        scope::unregister(&self.0.gates);
    }
}

/// Listens for releases, whatever happens to a listener.
async fn listen(shared: Arc<Shared>, store: Arc<dyn Store>) {
    let ears = Arc::new(Relay(shared));
    while caught(store.listen(Arc::clone(&ears) as Arc<dyn Ears>)).await.is_err() {
        ears.gap();
        tokio::time::sleep(DEAF).await;
    }
}

struct Relay(Arc<Shared>);

impl Ears for Relay {
    fn released(&self, group: &str, term: u64) {
        let group = group.to_owned();
        self.0.send(Input::Told { group, term });
    }

    fn asked(&self, group: &str, term: u64) {
        let group = group.to_owned();
        self.0.send(Input::Asked { group, term });
    }

    fn gap(&self) {
        self.0.send(Input::Gap);
    }
}

/// Lives in the runtime of the bodies, and is dropped with it.
struct Keeper(Arc<Shared>);

impl Drop for Keeper {
    /// Belief is cleared here and now; the release is tried for a moment, because the process may be about to exit.
    fn drop(&mut self) {
        if self.0.inbox.is_closed() {
            return;
        }
        self.0.gates.iter().for_each(|gate| gate.seal());
        let (done, over) = std::sync::mpsc::channel::<()>();
        let (told, wait) = oneshot::channel();
        self.0.send(Input::Request(Request::RuntimeGone { done: told }));
        // The runtime is going: a plain thread waits in its stead, and the wait here is bounded.
        let waiting = std::thread::Builder::new()
            .name("leader-core-last".to_owned())
            .spawn(move || {
                let _ = wait.blocking_recv();
                let _ = done.send(());
            });
        if waiting.is_ok() {
            let _ = over.recv_timeout(LAST_WORDS);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What happens when the system gives a runtime, and then no thread for it.
    #[tokio::test]
    async fn the_runtime_can_be_dropped_inside_another() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        drop(Background(Some(runtime)));
    }
}

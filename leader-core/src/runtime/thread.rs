//! The framework's own thread, and the guard on the runtime that runs the bodies.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::runtime::{Handle, Id, Runtime};
use tokio::sync::{mpsc, oneshot};

use super::engine::{Input, Kept, Refused, Request, drive};
use super::panics::caught;
use super::shared::Shared;
use crate::job::scope;
use crate::store::{Ears, Store, StoreError};
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
    let kept = Kept::new(shared, inbox, ready);
    let engine = shared
        .config
        .process
        .hold(engine(Arc::clone(shared), store, bodies.clone(), kept));
    if shared.config.clock.is_of_the_runtime() {
        // Time that is paused stands still for what lives in that runtime only.
        bodies.spawn(engine);
    } else {
        let runtime = Background(Some(
            tokio::runtime::Builder::new_current_thread().enable_all().build()?,
        ));
        let named = std::thread::Builder::new().name("leader-core".to_owned());
        named.spawn(move || runtime.block_on(engine))?;
    }
    let keeper = Keeper::new(&bodies, shared);
    // As long as the thread takes inputs: what the instance was given is dropped with it.
    bodies.spawn(async move { keeper.shared.inbox.closed().await });
    Ok(())
}

/// The framework's own work, until the instance has stopped.
async fn engine(shared: Arc<Shared>, store: Arc<dyn Store>, bodies: Handle, kept: Kept) {
    let _gone = Gone(Arc::clone(&shared));
    let listening = listen(Arc::clone(&shared), Arc::clone(&store));
    let listening = tokio::spawn(shared.config.process.hold(listening));
    let companion = shared.config.companion.clone();
    let beside = companion.map(|companion| {
        let work = companion.work(Arc::clone(&shared), Arc::clone(&store), bodies.clone());
        tokio::spawn(shared.config.process.hold(work))
    });
    drive(&shared, &store, &bodies, kept).await;
    listening.abort();
    if let Some(beside) = beside {
        beside.abort();
    }
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
        if let Some(companion) = &self.0.config.companion {
            companion.end();
        }
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

    fn controlled(&self, group: &str, number: u64) {
        let group = group.to_owned();
        self.0.send(Input::Controlled { group, number });
    }

    #[cfg(feature = "tasks")]
    fn due(&self, group: &str, at: jiff::Timestamp) {
        if let Some(companion) = &self.0.config.companion {
            companion.due(group, at);
        }
    }

    fn deaf(&self, error: StoreError) {
        self.0.send(Input::Deaf(error));
    }

    fn gap(&self) {
        self.0.send(Input::Gap);
    }
}

/// The living instances and the runtimes of their bodies: those that go with one runtime share one bound.
static KEPT: Mutex<Vec<(Id, Arc<Shared>)>> = Mutex::new(Vec::new());

/// Lives in the runtime of the bodies, and is dropped with it.
struct Keeper {
    runtime: Id,
    shared: Arc<Shared>,
}

impl Keeper {
    fn new(bodies: &Handle, shared: &Arc<Shared>) -> Self {
        let (runtime, shared) = (bodies.id(), Arc::clone(shared));
        let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
        kept.push((runtime, Arc::clone(&shared)));
        Self { runtime, shared }
    }

    /// Takes out the instance of this keeper and, when its runtime is gone, every other on it. None when another keeper has done so.
    fn take_out(&self) -> Vec<Arc<Shared>> {
        let has_stopped = self.shared.inbox.is_closed();
        let is_this = |shared: &Arc<Shared>| Arc::ptr_eq(shared, &self.shared);
        let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
        let gone = |(runtime, shared): &mut (Id, Arc<Shared>)| {
            if has_stopped {
                is_this(shared)
            } else {
                *runtime == self.runtime
            }
        };
        let gone: Vec<_> = kept.extract_if(.., gone).map(|(_, shared)| shared).collect();
        if has_stopped { Vec::new() } else { gone }
    }
}

impl Drop for Keeper {
    /// Belief is cleared here and now; the releases are tried for a moment, because the process may be about to exit.
    fn drop(&mut self) {
        let gone = self.take_out();
        if gone.is_empty() {
            return;
        }
        gone.iter()
            .flat_map(|shared| shared.gates.iter())
            .for_each(|gate| gate.seal());
        let (done, over) = std::sync::mpsc::channel::<()>();
        let tell = |shared: &Arc<Shared>| {
            let (told, wait) = oneshot::channel();
            shared.send(Input::Request(Request::RuntimeGone { done: told }));
            wait
        };
        let waits: Vec<_> = gone.iter().map(tell).collect();
        // The runtime is going: a plain thread waits in its stead, and the wait here is bounded.
        let waiting = std::thread::Builder::new()
            .name("leader-core-last".to_owned())
            .spawn(move || {
                for wait in waits {
                    let _ = wait.blocking_recv();
                }
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

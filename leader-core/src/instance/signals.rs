//! The signals that end a process.

use std::time::Duration;

use tokio::sync::oneshot;

use super::Instance;
use crate::runtime::engine::Request;

/// The signals that end a process.
#[cfg(unix)]
pub(super) struct Signals {
    term: tokio::signal::unix::Signal,
    int: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    pub(super) fn install() -> std::io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            term: signal(SignalKind::terminate())?,
            int: signal(SignalKind::interrupt())?,
        })
    }

    pub(super) async fn next(&mut self) {
        tokio::select! {
            _ = self.term.recv() => {}
            _ = self.int.recv() => {}
        }
    }
}

/// The signals that end a process.
#[cfg(not(unix))]
pub(super) struct Signals;

#[cfg(not(unix))]
impl Signals {
    pub(super) fn install() -> std::io::Result<Self> {
        Ok(Self)
    }

    pub(super) async fn next(&mut self) {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// Obeys the signals on a thread of its own until `gone` resolves: the first shuts the instance down, the second ends the process.
pub(super) fn deputize(gone: oneshot::Receiver<()>, instance: Instance) {
    let listen = move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            tokio::select! {
                _ = gone => Ok(()),
                failed = obey(instance) => failed,
            }
        })
    };
    let named = std::thread::Builder::new().name("leader-core-signals".to_owned());
    let spawned = named.spawn(move || {
        let listened: std::io::Result<()> = listen();
        if let Err(error) = listened {
            tracing::warn!(%error, "signals are not heard while a body blocks the runtime");
        }
    });
    if let Err(error) = spawned {
        tracing::warn!(%error, "signals are not heard while a body blocks the runtime");
    }
}

async fn obey(instance: Instance) -> std::io::Result<()> {
    let mut signals = Signals::install()?;
    signals.next().await;
    let (done, _) = oneshot::channel();
    instance.request(Request::Shutdown { done });
    signals.next().await;
    // Whoever waits in the program's own runtime is faster, if it runs.
    tokio::time::sleep(Duration::from_millis(50)).await;
    tracing::warn!(instance = %instance.id(), "second signal: exiting without the drain");
    std::process::exit(130)
}

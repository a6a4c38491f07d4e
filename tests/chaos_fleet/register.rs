//! A register that refuses a lower fence than it has seen: the resource that the fleet writes to, out of reach of every fault.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

use leader_tests::audit::Effect;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::AbortHandle;

use crate::floor::now;

/// Asks the register at `path` to take a write; whether it did.
///
/// # Errors
/// When it does not answer.
pub async fn write(path: &Path, key: &str, fence: u64, life: &str) -> std::io::Result<bool> {
    let mut stream = UnixStream::connect(path).await?;
    stream.write_all(format!("{key} {fence} {life}\n").as_bytes()).await?;
    Ok(stream.read_u8().await? == 1)
}

/// The register; ends with its handle.
#[derive(Debug)]
pub struct Register {
    taken: Arc<Mutex<Kept>>,
    serving: AbortHandle,
}

#[derive(Debug, Default)]
struct Kept {
    fences: BTreeMap<String, (u64, u64)>,
    effects: Vec<Effect>,
}

impl Register {
    /// Serves at `path`.
    ///
    /// # Errors
    /// When the socket cannot be made.
    pub fn serve(path: &Path) -> std::io::Result<Self> {
        let listener = UnixListener::bind(path)?;
        let taken = Arc::<Mutex<Kept>>::default();
        let of_all = Arc::clone(&taken);
        let serving = tokio::spawn(async move {
            loop {
                if let Ok((stream, _)) = listener.accept().await {
                    tokio::spawn(serve(stream, Arc::clone(&of_all)));
                }
            }
        });
        Ok(Self {
            taken,
            serving: serving.abort_handle(),
        })
    }

    /// What was asked since the last call, in order.
    pub fn effects(&self) -> Vec<Effect> {
        let mut kept = self.taken.lock().expect("nobody panics with it");
        let old = now().saturating_sub(120_000_000_000);
        kept.fences.retain(|_, (_, at)| *at > old);
        std::mem::take(&mut kept.effects)
    }
}

impl Drop for Register {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn serve(stream: UnixStream, kept: Arc<Mutex<Kept>>) -> Option<()> {
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    stream.read_line(&mut line).await.ok()?;
    let mut words = line.split_whitespace();
    let (key, fence, writer) = (words.next()?, words.next()?.parse().ok()?, words.next()?);
    let taken = kept.lock().expect("nobody panics with it").take(key, fence, writer);
    stream.write_u8(taken.into()).await.ok()
}

impl Kept {
    /// Compares and writes in one step.
    fn take(&mut self, key: &str, fence: u64, life: &str) -> bool {
        let highest = self.fences.get(key).map_or(0, |(fence, _)| *fence);
        let taken = fence >= highest;
        let at = now();
        if taken {
            self.fences.insert(key.to_owned(), (fence, at));
        }
        self.effects.push(Effect {
            at,
            key: key.to_owned(),
            fence,
            life: life.to_owned(),
            taken,
        });
        taken
    }
}

//! When the machine itself kept a thread that was due from running: times in milliseconds are not the library's alone.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::fleet::mono;

/// How often it looks, in nanoseconds.
const STEP: u64 = 2_000_000;
/// A delay that is not worth a note, in nanoseconds.
const USUAL: u64 = 5_000_000;

/// A thread that sleeps, and notes when it was woken late; ends with its handle.
#[derive(Debug)]
pub struct Stalls {
    seen: Arc<Mutex<Vec<(u64, u64)>>>,
    over: Arc<AtomicBool>,
}

impl Stalls {
    pub fn watch() -> Self {
        let (seen, over) = (Arc::<Mutex<Vec<_>>>::default(), Arc::<AtomicBool>::default());
        let (noted, ended) = (Arc::clone(&seen), Arc::clone(&over));
        std::thread::spawn(move || {
            while !ended.load(Ordering::Relaxed) {
                let due = mono() + STEP;
                std::thread::sleep(Duration::from_nanos(STEP));
                let woken = mono();
                if woken - due > USUAL {
                    noted.lock().expect("nobody panics with it").push((due, woken));
                }
            }
        });
        Self { seen, over }
    }

    /// How long it was kept waiting between two instants.
    pub fn within(&self, from: u64, to: u64) -> Duration {
        let seen = self.seen.lock().expect("nobody panics with it");
        let overlap = |(due, woken): &(u64, u64)| (*woken).min(to).saturating_sub((*due).max(from));
        Duration::from_nanos(seen.iter().map(overlap).sum())
    }
}

impl Drop for Stalls {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
    }
}

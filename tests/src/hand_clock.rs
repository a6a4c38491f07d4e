//! A wall clock for a server that stands until it is moved by hand.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use jiff::Timestamp;
use tempfile::TempDir;

/// What stands between the server and the system's wall clock. Its timers go by the monotonic clock, which goes on.
const SHIM: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile long long *hand;

static long long micros(void) {
  if (!hand) {
    hand = mmap(0, sizeof *hand, PROT_READ, MAP_SHARED, open(getenv("LEADER_TEST_CLOCK"), O_RDONLY), 0);
  }
  return *hand;
}

int gettimeofday(struct timeval *at, void *zone) {
  long long now = micros();
  at->tv_sec = now / 1000000;
  at->tv_usec = now % 1000000;
  return 0;
}

time_t time(time_t *at) {
  time_t now = micros() / 1000000;
  if (at) {
    *at = now;
  }
  return now;
}

int clock_gettime(clockid_t id, struct timespec *at) {
  if (id != CLOCK_REALTIME) {
    return syscall(SYS_clock_gettime, id, at);
  }
  long long now = micros();
  at->tv_sec = now / 1000000;
  at->tv_nsec = now % 1000000 * 1000;
  return 0;
}
"#;

/// A wall clock that stands until it is moved. Clones are the same clock.
#[derive(Clone, Debug)]
pub struct HandClock {
    directory: Arc<TempDir>,
    file: Arc<File>,
}

impl HandClock {
    /// A clock that stands at an instant.
    ///
    /// # Panics
    /// Where there is no C compiler, which every linker of Rust programs is one of.
    #[must_use]
    pub fn at(now: Timestamp) -> Self {
        let directory = tempfile::Builder::new()
            .prefix("leader-clock-")
            .tempdir()
            .expect("a temporary directory");
        let source = directory.path().join("clock.c");
        std::fs::write(&source, SHIM).expect("the directory is writable");
        let compiled = Command::new("cc")
            .args(["-shared", "-fPIC", "-O1", "-o"])
            .arg(Self::shim(directory.path()))
            .arg(&source)
            .output()
            .expect("`cc` can be started");
        assert!(
            compiled.status.success(),
            "{}",
            String::from_utf8_lossy(&compiled.stderr)
        );
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .open(Self::hand(directory.path()))
            .expect("the directory is writable");
        let clock = Self {
            directory: Arc::new(directory),
            file: Arc::new(file),
        };
        clock.set(now);
        clock
    }

    /// Moves it, forward or back.
    ///
    /// # Panics
    /// When the file of the clock cannot be written.
    pub fn set(&self, now: Timestamp) {
        let micros = now.as_microsecond().to_ne_bytes();
        self.file.write_all_at(&micros, 0).expect("the file is writable");
    }

    /// Has a program go by it.
    pub(crate) fn give_to(&self, command: &mut Command) {
        command
            .env("LD_PRELOAD", Self::shim(self.directory.path()))
            .env("LEADER_TEST_CLOCK", Self::hand(self.directory.path()));
    }

    fn shim(directory: &Path) -> PathBuf {
        directory.join("clock.so")
    }

    fn hand(directory: &Path) -> PathBuf {
        directory.join("now")
    }
}

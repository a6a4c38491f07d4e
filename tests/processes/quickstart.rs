//! The README's snippet.

use std::process::Command;
use std::time::Duration;

use rustix::process::Signal;

use crate::programs::{Process, program};

#[tokio::test]
async fn the_quickstart_prints_its_first_tick_within_ten_seconds() {
    let mut quickstart = Process::start("quickstart", &mut Command::new(program("quickstart")));
    let tick = |line: &str| line.starts_with("purging sessions");
    quickstart.says(Duration::from_secs(10), "the first tick", tick).await;
    assert!(
        quickstart
            .out()
            .iter()
            .any(|line| line == "digest sent to ops@example.org")
    );
    quickstart.signal(Signal::INT);
    let status = quickstart.ended(Duration::from_secs(10)).await;
    assert!(status.success(), "{status}");
}

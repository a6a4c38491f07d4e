//! How long to wait before something that ended early is started again.

use std::time::Duration;

const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Pauses of 1 s doubling to 60 s; they begin anew after a start that went well for longer than the longest of them.
#[derive(Debug, Default)]
pub(super) struct Restarts {
    /// Early ends in a row.
    failures: u32,
}

impl Restarts {
    /// The pause after a start that lasted so long.
    pub(super) fn pause_after(&mut self, lasted: Duration) -> Duration {
        self.failures = if lasted > LONGEST_PAUSE { 1 } else { self.failures + 1 };
        (FIRST_PAUSE * 2_u32.pow(self.failures.min(7) - 1)).min(LONGEST_PAUSE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_and_begin_anew_after_a_good_run() {
        let mut restarts = Restarts::default();
        let mut pauses = |lasted: u64, times: usize| -> Vec<u64> {
            let pause = |_| restarts.pause_after(Duration::from_secs(lasted)).as_secs();
            (0..times).map(pause).collect()
        };
        assert_eq!(pauses(0, 9), [1, 2, 4, 8, 16, 32, 60, 60, 60]);
        assert_eq!(pauses(60, 1), [60], "it did not run longer than it paused");
        assert_eq!(pauses(61, 1), [1]);
        assert_eq!(pauses(3, 2), [2, 4]);
    }
}

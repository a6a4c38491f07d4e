//! Runs that are tried again: what a claim says of them, and what is told of those that pause.

use std::time::Duration;

use jiff::Timestamp;

use crate::job::outcome::Ran;

/// What becomes of a run that nobody can tell the end of: how often it is tried again, and after which pauses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "an internal message")]
pub struct Further {
    /// How many further tries a run has.
    pub retries: u32,
    /// The pause after its first try; each is twice the one before it.
    pub first: Duration,
    /// The longest pause.
    pub most: Duration,
}

impl Further {
    /// The pause after a try, counted from 1, in milliseconds as the scripts compute it; `None` when it was the last.
    pub(crate) fn pause(&self, tries: u32) -> Option<Duration> {
        if tries > self.retries {
            return None;
        }
        let factor = 1_u32.checked_shl(tries.saturating_sub(1)).unwrap_or(u32::MAX);
        Some(self.first.saturating_mul(factor).min(self.most))
    }
}

/// A run whose try has failed, and whose next one may begin at an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "an internal message")]
pub struct Pausing {
    /// The fence of the try that failed: what a claim of the next one names it by.
    pub fence: u64,
    /// The tick.
    pub tick: Timestamp,
    /// Which try failed, from 1.
    pub tries: u32,
    /// When the next may begin, by the server's clock.
    pub again_at: Timestamp,
    /// How the try ended.
    pub ran: Ran,
}

/// What is open of a job when a leader looks at it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "an internal message")]
pub struct Found {
    /// When the first of the runs of earlier terms that do not live with the leader will have been silent for too long, unless it is
    /// heard of; `None` without such runs.
    pub silent_in: Option<Duration>,
    /// The runs that pause.
    pub pausing: Vec<Pausing>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_pause_is_twice_the_one_before_it_up_to_the_longest() {
        let seconds = Duration::from_secs;
        let further = Further {
            retries: 4,
            first: seconds(2),
            most: seconds(10),
        };
        let pauses = [0, 1, 2, 3, 4, 5].map(|tries| further.pause(tries));
        let expected = [Some(2), Some(2), Some(4), Some(8), Some(10), None].map(|pause| pause.map(seconds));
        assert_eq!(pauses, expected);
        let often = Further {
            retries: u32::MAX,
            ..further
        };
        assert_eq!([32, 33, 1000].map(|tries| often.pause(tries)), [Some(seconds(10)); 3]);
        let never = Further { retries: 0, ..further };
        assert_eq!(never.pause(1), None);
    }
}

//! What becomes of a task when an attempt of it has ended.

use std::time::Duration;

use super::attempts::Attempt;
use crate::job::outcome::Ran;
use crate::mutants::{Mutant, planted};
use crate::runtime::guarded::Ending;
use crate::store::tasks::TaskEnding;

/// What becomes of an attempt's task. `pause` is how long it waits after a failure, or that it is not tried again.
pub(super) fn becomes(
    attempt: &Attempt,
    ending: Ending,
    drains: bool,
    pause: impl Fn(&Attempt) -> Option<Duration>,
) -> TaskEnding {
    let Ending { ran, mut error } = ending;
    if ran == Ran::TimedOut
        && error.is_empty()
        && let Some(may_take) = attempt.may_take
    {
        error = format!("the attempt took longer than its time-out of {may_take:?}");
    }
    match ran {
        Ran::Ok => TaskEnding::Done,
        Ran::Error if planted(Mutant::TaskErrorTakenForSuccess) => TaskEnding::Done,
        _ if attempt.cancelled => TaskEnding::Cancelled,
        Ran::Error | Ran::Panic | Ran::TimedOut => match pause(attempt) {
            // What was told to stop says so in its own way.
            _ if drains && ran == Ran::Error && attempt.trust.is_cancelled() => TaskEnding::HandBack,
            Some(after) => TaskEnding::Retry { after, ran, error },
            None => TaskEnding::Bury { ran, error },
        },
        _ => TaskEnding::HandBack,
    }
}

//! The bounds of what is recorded: the steps of `records.lua`.

use jiff::{SignedDuration, Timestamp};

use crate::store::ledger::{JobLedger, Keep};

/// Drops what is too many or too old of the records that were written at `now`, and tells up to which tick.
pub(super) fn trim(job: &mut JobLedger, keep: &Keep, now: Timestamp) {
    for ran in [true, false] {
        let most = if ran { keep.runs } else { keep.others };
        let mut kept = job.records.iter().filter(|record| record.outcome.is_ran() == ran);
        if kept.next().is_none_or(|newest| newest.settled_at != now) {
            continue;
        }
        let mut count = 1 + kept.count();
        let age = SignedDuration::try_from(keep.age).unwrap_or(SignedDuration::MAX);
        // The newest stays, however old.
        while count > 1
            && let Some(oldest) = job.records.iter().rposition(|record| record.outcome.is_ran() == ran)
        {
            let record = &job.records[oldest];
            if count <= most && now.duration_since(record.settled_at) < age {
                break;
            }
            let last = Some(record.last);
            let trimmed = if ran {
                &mut job.trimmed.runs
            } else {
                &mut job.trimmed.others
            };
            *trimmed = last.max(*trimmed);
            job.records.remove(oldest);
            count -= 1;
        }
    }
}

//! The schedules that are kept of jobs: what `take_over.lua` and `claim.lua` do with them.

use jiff::Timestamp;

use super::Time;
use crate::store::ledger::JobLedger;
use crate::store::request::{Claim, ClaimBatch, ClaimReply, TakeOver};
use crate::store::schedules::{EarlierSchedule, KEPT_SCHEDULES, StoredSchedule};

/// The name of a schedule made at run time, which has ended, is that of a job of the program now: it begins anew. Whether it
/// is so.
pub(super) fn revive(job: &mut JobLedger, text: &str, time: Time<'_>) -> bool {
    let ended = job.schedule.as_ref().is_some_and(|kept| kept.text.is_empty());
    if ended && !text.is_empty() {
        time.frees();
        job.schedule = None;
        job.cursor = None;
        job.handler = None;
        job.retired = None;
    }
    ended && !text.is_empty()
}

/// The schedule in force; where none is kept, the leader's, which as far as anybody knows has been so since the cursor.
pub(super) fn kept(job: &mut JobLedger, text: &str, request: &TakeOver, time: Time<'_>) -> StoredSchedule {
    if text.is_empty() {
        // One that is made at run time is written where it is made.
        return job.schedule.clone().unwrap_or_default();
    }
    let since = job.cursor.unwrap_or_default();
    let written = || {
        time.grows();
        StoredSchedule::written(text, since, &request.writer, request.holder.instance())
    };
    job.schedule.get_or_insert_with(written).clone()
}

/// Whether a claim was planned by another schedule than the one in force.
pub(super) fn is_other(job: &JobLedger, claim: &Claim) -> bool {
    let kept = job.schedule.as_ref();
    !claim.schedule.is_empty() && kept.is_some_and(|kept| *kept.text != *claim.schedule)
}

/// The store has lost the schedule that its leader goes by.
pub(super) fn write_again(job: &mut JobLedger, batch: &ClaimBatch, claim: &Claim) {
    if job.schedule.is_none() && !claim.schedule.is_empty() {
        job.schedule = Some(written(&claim.schedule, claim.cursor, batch));
    }
}

fn written(text: &str, since: Timestamp, batch: &ClaimBatch) -> StoredSchedule {
    StoredSchedule::written(text, since, &batch.writer, batch.holder.instance())
}

/// Puts another schedule in force, unless somebody has moved the cursor or changed the schedule.
pub(super) fn adopt(
    job: &mut JobLedger,
    batch: &ClaimBatch,
    claim: &Claim,
    cursor: Timestamp,
    time: Time<'_>,
) -> ClaimReply {
    if let Some(kept) = job.schedule.as_mut().filter(|kept| *kept.text == *claim.adopts) {
        time.grows();
        // Who stands for it is written anew; it has been in force as long as before.
        *kept = written(&claim.adopts, kept.since.unwrap_or(cursor), batch);
        return ClaimReply::Adopted { cursor };
    }
    if cursor > claim.cursor || claim.tick < cursor {
        let waiting = job.waiting;
        return ClaimReply::Moved { cursor, waiting };
    }
    if job.schedule.as_ref().is_some_and(|kept| *kept.text != *claim.schedule) {
        return ClaimReply::OtherSchedule;
    }
    time.grows();
    if let Some(schedule) = job.schedule.take() {
        let until = claim.tick;
        job.schedules.insert(0, EarlierSchedule { schedule, until });
        job.schedules.truncate(KEPT_SCHEDULES);
    }
    job.schedule = Some(written(&claim.adopts, claim.tick, batch));
    job.cursor = Some(claim.tick);
    ClaimReply::Adopted { cursor: claim.tick }
}

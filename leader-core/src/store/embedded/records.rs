//! What is written of ticks and runs: their part of `records.lua` and `claim.lua`.

use jiff::Timestamp;

use super::Time;
use crate::job::outcome::{Outcome, Ran};
use crate::job::tick::Origin;
use crate::store::ledger::{JobLedger, LedgerRecord};
use crate::store::request::{ClaimBatch, Passed};

/// A blackout that goes on is one record, however many of its ticks are settled one by one: whether it was prolonged.
pub(super) fn prolong(
    job: &mut JobLedger,
    batch: &ClaimBatch,
    span: &Passed,
    cursor: Timestamp,
    time: Time<'_>,
) -> bool {
    // The newest of what did not run, as Redis keeps it in a list of its own.
    let newest = job.records.iter_mut().find(|record| !record.outcome.is_ran());
    let goes_on = |record: &&mut LedgerRecord| {
        let same = (record.outcome, record.term) == (Outcome::Blackout, batch.term) && record.holder == batch.holder;
        same && record.last == cursor
    };
    let Some(record) = newest.filter(goes_on) else {
        return false;
    };
    record.last = span.last;
    record.count += span.count;
    (record.settled_at, record.claimed_at) = (time.wall, time.wall);
    *job.counts.entry(Outcome::Blackout).or_default() += span.count;
    true
}

/// A record of ticks that did not run.
pub(super) fn unrun(
    batch: &ClaimBatch,
    (first, last, count): (Timestamp, Timestamp, u64),
    outcome: Outcome,
    time: Time<'_>,
) -> LedgerRecord {
    LedgerRecord {
        first,
        last,
        count,
        outcome,
        origin: Origin::Schedule,
        fence: 0,
        term: batch.term,
        instance: batch.holder.instance().to_owned(),
        holder: batch.holder.clone(),
        settled_at: time.wall,
        claimed_at: time.wall,
        error: String::new(),
        tries: 0,
    }
}

/// Moves a run from the open ones to the records.
pub(super) fn close(job: &mut JobLedger, fence: u64, ran: Ran, error: String, time: Time<'_>) -> bool {
    let Some(at) = job.open.iter().position(|run| run.fence == fence) else {
        return false;
    };
    let run = job.open.remove(at);
    let record = LedgerRecord {
        first: run.tick,
        last: run.tick,
        count: 1,
        outcome: Outcome::Ran(ran),
        origin: run.origin,
        fence,
        term: run.term,
        instance: run.instance,
        holder: run.holder,
        settled_at: time.wall,
        claimed_at: run.claimed_at,
        error,
        tries: run.tries,
    };
    write(job, record);
    true
}

pub(super) fn write(job: &mut JobLedger, record: LedgerRecord) {
    if record.origin == Origin::Schedule {
        *job.counts.entry(record.outcome).or_default() += record.count;
    }
    // In the order of writing, as Redis keeps them: what was written last is the last to be trimmed.
    job.records.insert(0, record);
}

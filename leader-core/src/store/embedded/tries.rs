//! Runs that are tried again: their part of `claim.lua` and `settle.lua`.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::quarantine::GRAIN;
use super::{Group, Time, records, unled};
use crate::clock::Moment;
use crate::job::outcome::Ran;
use crate::job::tick::Origin;
use crate::mutants::{Mutant, planted};
use crate::store::ledger::{JobLedger, OpenRun};
use crate::store::request::{Claim, ClaimBatch, ClaimReply, End, Overlap};
use crate::store::tries::Found;

/// Has a dead run tried again, where it has tries left and no later tick has been decided; whether that is so.
pub(super) fn pause_dead(job: &mut JobLedger, claim: &Claim, fence: u64, ran: Ran, time: Time<'_>) -> bool {
    let beside = claim.overlap == Overlap::Allow;
    let (cursor, waiting) = (job.cursor, job.waiting);
    let Some(run) = job.open.iter_mut().find(|run| run.fence == fence) else {
        return false;
    };
    let pause = claim.further.and_then(|further| further.pause(run.tries));
    let newest = beside || (waiting.is_none() && cursor == Some(run.tick));
    let Some(pause) = pause.filter(|_| run.origin == Origin::Schedule && newest) else {
        return false;
    };
    run.again_at = Some(after(time, pause));
    run.last = Some(ran);
    true
}

/// Settles the runs that pause with what their last try came to: a later tick is decided.
pub(super) fn end_pauses(job: &mut JobLedger, time: Time<'_>) {
    let pausing = job.open.iter().filter(|run| run.again_at.is_some());
    let pausing: Vec<_> = pausing.map(|run| (run.fence, run.last, run.error.clone())).collect();
    for (fence, last, error) in pausing {
        time.frees();
        records::close(job, fence, last.unwrap_or(Ran::Lost), error, time);
    }
}

/// What is open of the claimed job.
pub(super) fn found(group: &Group, batch: &ClaimBatch, claim: &Claim, time: Time<'_>) -> Found {
    let Some(job) = group.jobs.get(&claim.job) else {
        return Found::default();
    };
    let elsewhere =
        |run: &&OpenRun| run.again_at.is_none() && !unled::is_own(run, batch) && !claim.alive.contains(&run.fence);
    let rest = |run: &OpenRun| {
        let beat = group.beats.get(&run.fence).copied().unwrap_or(Moment::ZERO);
        // It is silent for too long once it is for longer than that.
        let heard = (batch.silence + GRAIN).saturating_sub(time.moment.since(beat));
        heard.max(batch.silence.saturating_sub(unled::heard_for(run, batch)))
    };
    Found {
        silent_in: job.open.iter().filter(elsewhere).map(rest).min(),
        pausing: job.open.iter().filter_map(OpenRun::pausing).collect(),
    }
}

/// Begins the next try of a run that pauses, under a fence of its own.
pub(super) fn retry(group: &mut Group, batch: &ClaimBatch, claim: &Claim, old: u64, time: Time<'_>) -> ClaimReply {
    let pausing = |run: &OpenRun| run.fence == old && run.again_at.is_some();
    let open = group.jobs.get(&claim.job).map(|job| job.open.as_slice());
    let run = open.unwrap_or_default().iter().find(|run| pausing(run));
    let Some(again_at) = run.and_then(|run| run.again_at) else {
        return ClaimReply::Passed;
    };
    if again_at > time.wall {
        let left = again_at.duration_since(time.wall).unsigned_abs();
        return ClaimReply::Early { left };
    }
    time.frees();
    let minted = group.mint(batch.known, time.exact);
    let fence = if planted(Mutant::RetryUnderTheOldFence) {
        old
    } else {
        minted
    };
    group.beats.insert(fence, time.moment);
    let job = group.jobs.get_mut(&claim.job);
    for run in job.into_iter().flat_map(|job| &mut job.open).filter(|run| pausing(run)) {
        *run = OpenRun {
            tick: run.tick,
            fence,
            term: batch.term,
            number: claim.number,
            origin: run.origin,
            claimed_at: time.wall,
            instance: batch.holder.instance().to_owned(),
            holder: batch.holder.clone(),
            tries: run.tries + 1,
            again_at: None,
            last: None,
            error: String::new(),
        };
    }
    ClaimReply::Won { fence }
}

/// Keeps a run open whose end is not its last; when its next try may begin.
pub(super) fn settle_again(job: &mut JobLedger, end: &End, time: Time<'_>) -> Option<Timestamp> {
    let pause = end.again_in?;
    let run = job.open.iter_mut().find(|run| run.fence == end.fence)?;
    if run.again_at.is_none() {
        run.again_at = Some(after(time, pause.max(Duration::from_millis(1))));
        run.last = Some(end.ran);
        run.error.clone_from(&end.error);
    }
    run.again_at
}

fn after(time: Time<'_>, pause: Duration) -> Timestamp {
    let pause = SignedDuration::try_from(pause).unwrap_or(SignedDuration::MAX);
    time.wall.checked_add(pause).unwrap_or(Timestamp::MAX)
}

//! Ticks: the steps of `take_over.lua`, `claim.lua` and `settle.lua`.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::SignedDuration;

use super::records::{close, prolong, unrun, write};
use super::{Data, Group, Time, coverage, paused, schedules, tries, unled};
use crate::clock::Moment;
use crate::job::outcome::{Outcome, Ran};
use crate::job::tick::Origin;
use crate::mutants::{Mutant, planted};
use crate::names::JobName;
use crate::schedule::missed::MissedReason;
use crate::store::ledger::{JobLedger, LedgerRecord, OpenRun};
use crate::store::request::{
    Claim, ClaimBatch, ClaimReply, Claimed, End, Overlap, SettleBatch, Settled, TakeOver, TakenOver, Want,
};
use crate::store::tries::Found;
use crate::store::unled::UNLED;

pub(super) fn take_over(data: &mut Data, request: &TakeOver, time: Time<'_>) -> TakenOver {
    let group = data.groups.entry(request.group.clone()).or_default();
    if !group.may_ask(&request.holder, request.term, time.moment) {
        return TakenOver::NotYours;
    }
    let (mut cursors, mut waiting, mut open, mut kept) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut absences = Vec::new();
    let any_made = !group.made.kept.is_empty();
    group.control.recount(&mut group.made.number, any_made, time);
    let renamed = coverage::rename(group, request, time);
    let before = time.is_short().then(|| group.coverage.clone());
    for (name, text) in renamed.iter().zip(&request.schedules) {
        let job = group.jobs.entry(name.clone()).or_default();
        if schedules::revive(job, text, time) {
            group.revived.insert(name.clone());
        }
        let over = text.is_empty() && job.schedule.as_ref().is_none_or(|kept| kept.text.is_empty());
        if planted(Mutant::BornAnew) && request.term != UNLED && job.open.is_empty() {
            let schedule = job.schedule.take();
            *job = JobLedger {
                schedule,
                ..JobLedger::default()
            };
        }
        if job.cursor.is_none() && !over {
            time.grows();
            job.since = Some(time.wall);
            job.cursor = Some(time.wall);
        }
        // One that was made at run time, and has ended meanwhile, may have none.
        cursors.push(job.cursor.unwrap_or_default());
        waiting.push(job.waiting);
        let running = job.open.iter().any(|run| run.again_at.is_none());
        open.push(Found {
            silent_in: running.then_some(Duration::ZERO),
            pausing: job.open.iter().filter_map(OpenRun::pausing).collect(),
        });
        kept.push(schedules::kept(job, text, request, time));
        let cursor = job.cursor.unwrap_or(time.wall);
        absences.push(if request.term == UNLED || text.is_empty() {
            if time.may_free() {
                group.coverage.forget(name);
            }
            Vec::new()
        } else {
            group.coverage.cover(name, cursor, time.wall)
        });
    }
    // What is asked for apart from the program's jobs tells nothing of those.
    let apart = request.term == UNLED || request.schedules.first().is_some_and(|text| text.is_empty());
    if !apart {
        let own = renamed.iter().cloned().collect();
        let elsewhere = request.elsewhere.as_deref();
        group.coverage.note_foreign(&own, time);
        group.coverage.mark_lacked(&own, elsewhere, time.wall);
    }
    group.coverage.keep_or_drop(before, time);
    TakenOver::Yours {
        now: time.wall,
        late_from: group.late_from,
        cursors,
        waiting,
        open,
        schedules: kept,
        control: group.control.number,
        absences,
        kept: renamed,
    }
}

pub(super) fn claim(data: &mut Data, batch: &ClaimBatch, time: Time<'_>) -> Claimed {
    let group = data.groups.entry(batch.group.clone()).or_default();
    if !group.may_ask(&batch.holder, batch.term, time.moment) {
        return Claimed::NotYours;
    }
    let mut stopped = BTreeMap::new();
    let one = |claim: &Claim| claim_one(group, batch, claim, &mut stopped, time);
    Claimed::Yours(batch.claims.iter().map(one).collect())
}

/// Whether an open run stands in the way of a claim.
fn overlaps(job: &JobLedger, claim: &Claim, time: Time<'_>) -> bool {
    let beside = (claim.want == Want::Run || claim.meets.is_some()) && claim.overlap == Overlap::Allow;
    // The runs of a past span come one after another, whatever the policy.
    let own = |run: &OpenRun| claim.want == Want::Extra(Origin::Backfill) && run.origin == Origin::Backfill;
    let just_ended = |record: &LedgerRecord| {
        let since = time.wall.duration_since(record.settled_at);
        record.outcome.is_ran() && since < SignedDuration::from_secs(17)
    };
    let remembers = planted(Mutant::OverlapRemembered) && !beside && job.records.iter().any(just_ended);
    let forgets = planted(Mutant::WaitedBeside) && claim.want == Want::Waited;
    remembers || job.open.iter().any(|run| !forgets && (!beside || own(run)))
}

/// The jobs of a batch whose ticks stay open, and why: later ticks of theirs must not overtake.
type Stopped = BTreeMap<JobName, ClaimReply>;

fn claim_one(
    group: &mut Group,
    batch: &ClaimBatch,
    claim: &Claim,
    stopped: &mut Stopped,
    time: Time<'_>,
) -> ClaimReply {
    if group.revived.remove(&claim.job) {
        time.frees();
    }
    settle_dead(group, batch, claim, time);
    let job = group.jobs.entry(claim.job.clone()).or_default();
    let same = |run: &&OpenRun| run.again_at.is_none() && unled::is_own(run, batch) && run.number == claim.number;
    if let Some(run) = job.open.iter().find(same) {
        return ClaimReply::Won { fence: run.fence };
    }
    match claim.want {
        Want::Look => return ClaimReply::Looked(tries::found(group, batch, claim, time)),
        Want::Retry { fence, .. } => return tries::retry(group, batch, claim, fence, time),
        _ => {}
    }
    let scheduled = matches!(claim.want, Want::Run | Want::Owed | Want::Settle);
    let cursor = job.cursor.map_or(claim.cursor, |cursor| cursor.max(claim.cursor));
    if (scheduled || claim.want == Want::Adopt) && group.coverage.is_moved(&claim.job) {
        // It goes on under another name, which the asker has not heard of.
        return ClaimReply::OtherSchedule;
    }
    if claim.want == Want::Adopt {
        return schedules::adopt(job, batch, claim, cursor, time);
    }
    if scheduled && (cursor > claim.cursor || claim.tick <= cursor) && !planted(Mutant::CursorIgnored) {
        let waiting = job.waiting;
        return ClaimReply::Moved { cursor, waiting };
    }
    if scheduled && schedules::is_other(job, claim) {
        return ClaimReply::OtherSchedule;
    }
    if claim.want == Want::Waited && job.waiting != Some(claim.tick) {
        return ClaimReply::Passed;
    }
    if claim.meets.is_some_and(|meets| !group.control.asks_for(claim, meets)) {
        return ClaimReply::Gone;
    }
    if let Some(reply) = stopped.get(&claim.job).filter(|_| scheduled) {
        return reply.clone();
    }
    if let Some(reply) = paused::judge(group, batch, claim, scheduled, time) {
        if scheduled && !matches!(reply, ClaimReply::Paused { .. }) {
            stopped.insert(claim.job.clone(), reply.clone());
        }
        return reply;
    }
    let job = group.jobs.entry(claim.job.clone()).or_default();
    if claim.overlap != Overlap::Allow && (scheduled || claim.want == Want::Waited) {
        tries::end_pauses(job, time);
    }
    if claim.want == Want::Run && claim.overlap == Overlap::Replace {
        replace(group, batch, claim, time);
    }
    let labels = paused::labels(&group.control, claim, scheduled);
    let job = group.jobs.entry(claim.job.clone()).or_default();
    if scheduled && planted(Mutant::CursorBeforeTheClaim) {
        job.cursor = Some(claim.tick);
    }
    let overlaps = overlaps(job, claim, time);
    if overlaps && claim.want == Want::Run && claim.overlap == Overlap::Replace {
        return ClaimReply::Replacing;
    }
    if overlaps && !matches!(claim.want, Want::Run | Want::Settle) {
        return ClaimReply::Busy;
    }
    let passed = |first, last, count, outcome| unrun(batch, (first, last, count), outcome, time);
    if scheduled || !claim.passed.is_empty() {
        time.grows();
    }
    let settles = |_: &_| !planted(Mutant::PassedUnsettled);
    for (at, (span, outcome)) in claim.passed.iter().zip(labels).enumerate().filter(settles) {
        if at == 0 && outcome == Outcome::Blackout && prolong(job, batch, span, cursor, time) {
            continue;
        }
        write(job, passed(span.first, span.last, span.count, outcome));
    }
    if scheduled {
        schedules::write_again(job, batch, claim);
        job.cursor = Some(claim.tick);
    }
    if claim.want == Want::Settle {
        return ClaimReply::Passed;
    }
    if scheduled && let Some(waiting) = job.waiting.take() {
        // A later tick stands for it.
        let coalesced = Outcome::Missed(MissedReason::Coalesced);
        write(job, passed(waiting, waiting, 1, coalesced));
    }
    if overlaps && claim.overlap == Overlap::Wait {
        job.waiting = Some(claim.tick).filter(|_| !planted(Mutant::WaitingForgotten));
        return ClaimReply::Waits;
    }
    if overlaps {
        write(job, passed(claim.tick, claim.tick, 1, Outcome::OverlapSkipped));
        return ClaimReply::Overlapped;
    }
    if claim.want == Want::Waited {
        time.frees();
        job.waiting = None;
    }
    begin(group, batch, claim, time)
}

/// Mints the fence and writes the run's start.
fn begin(group: &mut Group, batch: &ClaimBatch, claim: &Claim, time: Time<'_>) -> ClaimReply {
    let mut fence = group.mint(batch.known, time.exact);
    if planted(Mutant::FenceIsTheTerm) && batch.term != UNLED {
        fence = batch.term;
    }
    let run = OpenRun {
        tick: claim.tick,
        fence,
        term: batch.term,
        number: claim.number,
        origin: if let Want::Extra(origin) = claim.want {
            origin
        } else {
            Origin::Schedule
        },
        claimed_at: time.wall,
        instance: batch.holder.instance().to_owned(),
        holder: batch.holder.clone(),
        tries: 1,
        again_at: None,
        last: None,
        error: String::new(),
    };
    if let Some(meets) = claim.meets {
        group.control.met(meets, claim, time);
    }
    time.grows();
    group.beats.insert(fence, time.moment);
    group.jobs.entry(claim.job.clone()).or_default().open.push(run);
    ClaimReply::Won { fence }
}

/// Asks the runs of the job to end; those that were asked long ago, and have not, are closed.
fn replace(group: &mut Group, batch: &ClaimBatch, claim: &Claim, time: Time<'_>) {
    let Some(job) = group.jobs.get_mut(&claim.job) else {
        return;
    };
    let running = job.open.iter().filter(|run| run.again_at.is_none());
    let open: Vec<_> = running.map(|run| run.fence).collect();
    for fence in open {
        // Where the server's clock was set back, it is asked anew.
        let asked = group
            .replaced
            .get(&fence)
            .copied()
            .filter(|asked| *asked <= time.moment);
        let Some(asked) = asked else {
            time.grows();
            group.replaced.insert(fence, time.moment);
            continue;
        };
        if time.moment.since(asked) >= batch.patience {
            time.frees();
            let error = "replaced by a later tick, and not ended in time".to_owned();
            close(job, fence, Ran::Cancelled, error, time);
            group.beats.remove(&fence);
            group.replaced.remove(&fence);
        }
    }
}

/// Settles the runs of the job that nobody can tell the end of any more.
fn settle_dead(group: &mut Group, batch: &ClaimBatch, claim: &Claim, time: Time<'_>) {
    let Some(job) = group.jobs.get_mut(&claim.job) else {
        return;
    };
    let beats = &mut group.beats;
    let mut verdict = |run: &OpenRun| {
        if run.again_at.is_some()
            || claim.alive.contains(&run.fence)
            || (unled::is_own(run, batch) && run.number == claim.number)
        {
            None
        } else if unled::is_own(run, batch) {
            (run.number < batch.claiming).then_some(Ran::NotStarted)
        } else {
            let beat = beats.get(&run.fence).copied().unwrap_or(Moment::ZERO);
            if beat > time.moment {
                // The server's clock was set back: the run is silent from now on.
                time.grows();
                beats.insert(run.fence, time.moment);
            }
            let early = planted(Mutant::UnledTakenEarly) && run.term == UNLED;
            let bound = if early { batch.silence / 4 } else { batch.silence };
            let silent = time.moment.since(beat) > bound && unled::heard_for(run, batch) >= bound;
            silent.then_some(Ran::Lost)
        }
    };
    let dead: Vec<_> = job
        .open
        .iter()
        .filter_map(|run| verdict(run).map(|ran| (run.fence, ran)))
        .inspect(|_| time.frees())
        .collect();
    for (fence, ran) in dead {
        group.beats.remove(&fence);
        group.replaced.remove(&fence);
        if !tries::pause_dead(job, claim, fence, ran, time) {
            close(job, fence, ran, String::new(), time);
        }
    }
}

pub(super) fn settle(data: &mut Data, batch: &SettleBatch, time: Time<'_>) -> Vec<Settled> {
    let group = data.groups.entry(batch.group.clone()).or_default();
    let one = |end: &End| {
        let name = group.coverage.goes_on_as(&end.job);
        let job = group.jobs.entry(name).or_default();
        if job
            .open
            .iter()
            .any(|run| run.fence == end.fence && (end.again_in.is_none() || run.again_at.is_none()))
        {
            time.grows();
        }
        if let Some(at) = tries::settle_again(job, end, time) {
            group.beats.remove(&end.fence);
            group.replaced.remove(&end.fence);
            return Settled::Again { at };
        }
        let open = job.open.iter().find(|run| run.again_at.is_none());
        let fence = open
            .filter(|_| planted(Mutant::LateResult))
            .map_or(end.fence, |run| run.fence);
        let settled = close(job, fence, end.ran, end.error.clone(), time);
        if settled && planted(Mutant::CursorGoesBack) {
            job.cursor = job.records.first().map(|record| record.last).or(job.cursor);
        }
        if !settled && planted(Mutant::CountedTwice) {
            *job.counts.entry(Outcome::Ran(end.ran)).or_default() += 1;
        }
        if settled {
            group.beats.remove(&end.fence);
            group.replaced.remove(&end.fence);
            Settled::Yes
        } else {
            Settled::Fenced
        }
    };
    batch.ends.iter().map(one).collect()
}

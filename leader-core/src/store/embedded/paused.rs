//! What pauses, those in force and those that are over, make of a claim.

use jiff::Timestamp;

use super::control::Control;
use super::records::{unrun, write};
use super::{Group, Time, schedules, tries};
use crate::job::outcome::Outcome;
use crate::job::tick::Origin;
use crate::store::control::{Gap, Pause};
use crate::store::request::{Claim, ClaimBatch, ClaimReply, Overlap, Want};

/// The answer to a claim that a pause stops; `None` where it has no say in the claim's own tick.
pub(super) fn judge(
    group: &mut Group,
    batch: &ClaimBatch,
    claim: &Claim,
    scheduled: bool,
    time: Time<'_>,
) -> Option<ClaimReply> {
    let backfill = claim.want == Want::Extra(Origin::Backfill);
    if !scheduled && !backfill && claim.want != Want::Waited {
        return None;
    }
    let (held, skipping) = in_force(&group.control, claim, time.wall);
    if let Some(until) = held {
        return Some(ClaimReply::Held { until });
    }
    if backfill {
        return skipping.map(|_| ClaimReply::Held { until: None });
    }
    let since = if scheduled {
        if let Some(since) = parted_at(&group.control, claim) {
            return Some(ClaimReply::Split { since });
        }
        skipped_since(&group.control, claim, claim.tick)?
    } else {
        // It fell due long ago, and would be run now.
        skipping?
    };
    let labels = labels(&group.control, claim, scheduled);
    let job = group.jobs.entry(claim.job.clone()).or_default();
    if claim.overlap != Overlap::Allow {
        tries::end_pauses(job, time);
    }
    time.grows();
    for (span, outcome) in claim.passed.iter().zip(labels) {
        write(job, unrun(batch, (span.first, span.last, span.count), outcome, time));
    }
    if claim.want != Want::Settle {
        for tick in job.waiting.take().into_iter().chain(scheduled.then_some(claim.tick)) {
            write(job, unrun(batch, (tick, tick, 1), Outcome::Paused, time));
        }
    }
    if scheduled {
        schedules::write_again(job, batch, claim);
        job.cursor = Some(claim.tick);
    }
    Some(ClaimReply::Paused { since })
}

/// What becomes of the spans that a claim settles along the way.
pub(super) fn labels(control: &Control, claim: &Claim, scheduled: bool) -> Vec<Outcome> {
    let label = |first, reason| {
        if scheduled && skipped_since(control, claim, first).is_some() {
            Outcome::Paused
        } else {
            Outcome::from(reason)
        }
    };
    claim.passed.iter().map(|span| label(span.first, span.reason)).collect()
}

/// Until when the pauses in force keep a job's ticks open, and since when they skip them. What is owed is not given up by another pause
/// beside.
#[allow(clippy::option_option, reason = "not held, and held until it is resumed")]
fn in_force(control: &Control, claim: &Claim, now: Timestamp) -> (Option<Option<Timestamp>>, Option<Timestamp>) {
    let in_force = |pause: &&Pause| pause.until.is_none_or(|until| now < until);
    let (mut held, mut skipping) = (None, None);
    for pause in control.standing_pauses_of(&claim.job).filter(in_force) {
        if pause.gap == Gap::Owed {
            held = Some(match held {
                Some(ends) => pause.until.zip(ends).map(|(a, b): (Timestamp, Timestamp)| a.max(b)),
                None => pause.until,
            });
        } else {
            skipping = Some(skipping.map_or(pause.since, |since: Timestamp| since.min(pause.since)));
        }
    }
    (held, skipping)
}

/// The beginning of the earliest pause that skips an instant.
fn skipped_since(control: &Control, claim: &Claim, at: Timestamp) -> Option<Timestamp> {
    let pauses = control.pauses_of(&claim.job).filter(|pause| pause.skips(at));
    pauses.map(|pause| pause.since).min()
}

/// Where a pause begins or ends within a span that is settled as one.
fn parted_at(control: &Control, claim: &Claim) -> Option<Timestamp> {
    claim.passed.iter().find_map(|span| {
        let edges = control.pauses_of(&claim.job).flat_map(Pause::edges);
        edges.filter(|edge| span.first < *edge && *edge <= span.last).min()
    })
}

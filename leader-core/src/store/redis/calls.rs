//! The calls of the scripts that take many things at once.

use std::time::Duration;

use ::redis::Cmd;

use super::keys::Keys;
use super::script::{self, Call};
use crate::job::outcome::Outcome;
use crate::names::GroupName;
use crate::store::ledger::Keep;
use crate::store::request::{Campaign, Claim, ClaimBatch, End, Want};
use crate::store::schedules::KEPT_SCHEDULES;
use crate::store::tries::Further;

/// A milliseconds argument that is never cut to nothing.
pub(super) fn millis(span: Duration) -> u128 {
    span.as_millis().max(1)
}

/// Asks for the leases of several groups.
pub(super) fn campaign(keys: &Keys, requests: &[Campaign]) -> Cmd {
    let mut call = Call::default();
    for request in requests {
        call.push_key(keys.lease(&request.group));
        call.push_key(keys.state(&request.group));
        call.push_key(keys.fence(&request.group));
        call.push(&request.holder);
        call.push(millis(request.ttl));
        call.push(millis(request.longest.max(request.ttl)));
        call.push(request.known);
        call.push(u8::from(request.first_start));
        call.push(u8::from(request.only_one));
        call.push(request.yields.as_millis());
    }
    call.eval(script::CAMPAIGN)
}

/// Claims ticks of one group.
pub(super) fn claim(keys: &Keys, keep: &Keep, batch: &ClaimBatch, claims: &[Claim]) -> Cmd {
    let group = &batch.group;
    let mut call = Call::default()
        .key(keys.lease(group))
        .key(keys.state(group))
        .key(keys.fence(group))
        .key(keys.beats(group))
        .key(keys.control(group))
        .arg(&batch.holder)
        .arg(batch.term)
        .arg(batch.known)
        .arg(batch.silence.as_millis())
        .arg(batch.connected.as_millis())
        .arg(kept(keep))
        .arg(format!("{} {}", batch.claiming, batch.first))
        .arg(claims.len())
        .arg(batch.patience.as_millis())
        .arg(&batch.writer.version)
        .arg(&batch.writer.time_zones)
        .arg(KEPT_SCHEDULES);
    let jobs = keys.jobs(group);
    for claim in claims {
        call.push_key(jobs.job(&claim.job));
        call.push_key(jobs.ran(&claim.job));
        call.push_key(jobs.passed(&claim.job));
        call.push(claim.number);
        call.push(claim.tick.as_millisecond());
        match claim.want {
            Want::Retry { fence, .. } => call.push(fence),
            _ => call.push(claim.cursor.as_millisecond()),
        }
        call.push(match claim.want {
            Want::Run => "run",
            Want::Owed => "owed",
            Want::Waited => "waited",
            Want::Settle => "settle",
            Want::Adopt => "adopt",
            Want::Extra(origin) => origin.as_str(),
            Want::Retry { .. } => "retry",
            Want::Look => "look",
        });
        call.push(claim.overlap.as_str());
        call.push(claim.alive.len());
        for fence in &claim.alive {
            call.push(fence);
        }
        call.push(claim.passed.len());
        for passed in &claim.passed {
            call.push(Outcome::from(passed.reason));
            call.push(passed.first.as_millisecond());
            call.push(passed.last.as_millisecond());
            call.push(passed.count);
        }
        call.push(claim.further.as_ref().map_or_else(String::new, further));
        call.push(&claim.schedule);
        call.push(&claim.adopts);
        call.push(match claim.meets {
            Some(meets) if meets.more => format!("{}+", meets.request),
            Some(meets) => meets.request.to_string(),
            None => String::new(),
        });
    }
    call.eval(script::CLAIM)
}

fn further(further: &Further) -> String {
    let Further { retries, first, most } = *further;
    format!("{retries} {} {}", millis(first), millis(most))
}

/// How many runs and other records are kept, and for how many ms.
pub(super) fn kept(keep: &Keep) -> String {
    format!("{} {} {}", keep.runs, keep.others, millis(keep.age))
}

/// Records how runs of one group ended.
pub(super) fn settle(keys: &Keys, keep: &Keep, group: &GroupName, ends: &[End]) -> Cmd {
    let mut call = Call::default().key(keys.beats(group)).arg(kept(keep));
    let jobs = keys.jobs(group);
    for end in ends {
        call.push_key(jobs.job(&end.job));
        call.push_key(jobs.ran(&end.job));
        call.push(end.fence);
        call.push(Outcome::Ran(end.ran));
        call.push(&end.error);
        let again_in = end.again_in.map(|pause| millis(pause).to_string());
        call.push(again_in.unwrap_or_default());
    }
    call.eval(script::SETTLE)
}

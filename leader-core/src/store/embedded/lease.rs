//! Leases: the steps of `campaign.lua`, `renew.lua`, `release.lua` and `beat.lua`.
//!
//! A store that was born with its process and dies with it needs no quarantine: no leader of an earlier life can believe.

use super::{Data, Lease, Time};
use crate::names::Holder;
use crate::store::request::{
    Ask, AskReply, Beats, Campaign, Campaigned, Release, Renewal, Renewed, Replaced, Told, Verdict,
};

pub(super) fn campaign(data: &mut Data, request: &Campaign, time: Time) -> Campaigned {
    let group = data.groups.entry(request.group.clone()).or_default();
    let term = group.term;
    let held = group.held(time.moment).map(|lease| (lease.holder.clone(), lease.ends));
    let same_id = |holder: &Holder| holder.instance() == request.holder.instance();
    let is_own = |holder: &Holder| *holder == request.holder || (request.only_one && same_id(holder));
    if let Some((holder, ends)) = &held
        && !is_own(holder)
    {
        return Campaigned {
            verdict: Verdict::Held {
                remaining: Some(ends.since(time.moment)),
                term,
            },
            holder: Some(holder.clone()),
            oddity: None,
        };
    }
    if term > request.known {
        return Campaigned {
            verdict: Verdict::Stale { term },
            holder: held.map(|(holder, _)| holder),
            oddity: None,
        };
    }
    let vacant = *group.vacant.get_or_insert(time.moment);
    let led_until = if held.is_some() {
        time.wall
    } else {
        let since = jiff::SignedDuration::try_from(time.moment.since(vacant)).unwrap_or_default();
        super::whole_millis(time.exact.checked_sub(since).unwrap_or(time.exact))
    };
    let rest = (vacant + request.yields).since(time.moment);
    if held.is_none() && !rest.is_zero() {
        return Campaigned {
            verdict: Verdict::Yielded { remaining: rest, term },
            holder: None,
            oddity: None,
        };
    }
    let term = group.mint(request.known, time.wall);
    group.term = term;
    group.lease = Some(Lease {
        holder: request.holder.clone(),
        ends: time.moment + request.ttl,
    });
    group.vacant = None;
    group.asked = None;
    group.coverage.led_until = Some(led_until);
    if group.drained.is_some() || held.is_none() {
        group.late_from = group.drained.take();
    }
    Campaigned {
        verdict: Verdict::Acquired { term },
        holder: Some(request.holder.clone()),
        oddity: None,
    }
}

pub(super) fn renew(data: &mut Data, renewal: &Renewal, time: Time) -> Renewed {
    let group = data.groups.entry(renewal.group.clone()).or_default();
    let term = group.term;
    if !group.is_held_by(&renewal.holder, renewal.term, time.moment) {
        let holder = group.held(time.moment).map(|lease| lease.holder.clone());
        return Renewed::NotYours { holder, term };
    }
    group.lease = Some(Lease {
        holder: renewal.holder.clone(),
        ends: time.moment + renewal.ttl,
    });
    let asked = group
        .asked
        .as_ref()
        .filter(|(term, ends, _)| *term == renewal.term && time.moment < *ends);
    Renewed::Yes {
        now: time.exact,
        asked: asked.map(|(_, _, asked)| asked.clone()),
        control: group.control.number,
    }
}

/// Tells of the runs among those that are to end, or are no longer their runner's.
pub(super) fn beat(data: &mut Data, beats: &Beats, time: Time, told: &mut Told) {
    let group = data.groups.entry(beats.group.clone()).or_default();
    for fence in &beats.fences {
        let run = || Replaced {
            group: beats.group.clone(),
            fence: *fence,
        };
        match group.beats.get_mut(fence) {
            Some(beat) => *beat = time.moment,
            None => told.gone.push(run()),
        }
        if group.replaced.contains_key(fence) {
            told.replaced.push(run());
        }
    }
}

/// Whether there was something to release.
pub(super) fn release(data: &mut Data, request: &Release, time: Time) -> bool {
    let group = data.groups.entry(request.group.clone()).or_default();
    if !group.is_held_by(&request.holder, request.term, time.moment) {
        return false;
    }
    group.lease = None;
    group.vacant = Some(time.moment);
    group.asked = None;
    if request.draining_since.is_some() {
        group.drained = request.draining_since;
    }
    true
}

pub(super) fn ask(data: &mut Data, request: &Ask, time: Time) -> AskReply {
    let group = data.groups.entry(request.group.clone()).or_default();
    let term = group.term;
    let holder = group.held(time.moment).map(|lease| lease.holder.clone());
    if request.term.is_some_and(|meant| meant != term || holder.is_none()) {
        return AskReply::Over;
    }
    let Some(holder) = holder else {
        return AskReply::Vacant;
    };
    group.asked = Some((term, time.moment + request.ends_after, request.asked.clone()));
    AskReply::Kept { holder, term }
}

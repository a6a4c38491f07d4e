//! Leases: the steps of `campaign.lua`, `renew.lua`, `release.lua` and `beat.lua`.
//!
//! A store that was born with its process and dies with it needs no quarantine: no leader of an earlier life can believe.

use super::{Data, Lease, Time};
use crate::store::request::{Beats, Campaign, Campaigned, Release, Renewal, Renewed, Verdict};

pub(super) fn campaign(data: &mut Data, request: &Campaign, time: Time) -> Campaigned {
    let group = data.groups.entry(request.group.clone()).or_default();
    let term = group.term;
    let held = group.held(time.moment).map(|lease| (lease.holder.clone(), lease.ends));
    if let Some((holder, ends)) = &held
        && *holder != request.holder
    {
        return Campaigned {
            verdict: Verdict::Held {
                remaining: Some(ends.since(time.moment)),
                term,
            },
            holder: Some(holder.clone()),
        };
    }
    if term > request.known {
        return Campaigned {
            verdict: Verdict::Stale { term },
            holder: held.map(|(holder, _)| holder),
        };
    }
    let term = group.mint(request.known, time.wall);
    group.term = term;
    group.lease = Some(Lease {
        holder: request.holder.clone(),
        ends: time.moment + request.ttl,
    });
    if group.drained.is_some() || held.is_none() {
        group.late_from = group.drained.take();
    }
    Campaigned {
        verdict: Verdict::Acquired { term },
        holder: Some(request.holder.clone()),
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
    Renewed::Yes { now: time.exact }
}

pub(super) fn beat(data: &mut Data, beats: &Beats, time: Time) {
    let Some(group) = data.groups.get_mut(&beats.group) else {
        return;
    };
    for fence in &beats.fences {
        if let Some(beat) = group.beats.get_mut(fence) {
            *beat = time.moment;
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
    if request.draining_since.is_some() {
        group.drained = request.draining_since;
    }
    true
}

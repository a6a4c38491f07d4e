//! Leases: the steps of `campaign.lua`, `renew.lua`, `release.lua` and `beat.lua`.
//!
//! A store that was born with its process and dies with it needs no quarantine: no leader of an earlier life can believe. One that was made as a
//! server outlives its fleets, and has `quarantine` in place of the campaign here.

use super::{Data, Group, Lease, Time, quarantine, step};
use crate::clock::Moment;
use crate::mutants::{Mutant, planted};
use crate::names::Holder;
use crate::store::request::{Ask, AskReply, Beats, Campaign, Campaigned, Release, Renewal, Renewed, Verdict};

pub(super) fn campaign(data: &mut Data, request: &Campaign, time: Time<'_>) -> Campaigned {
    let group = data.groups.entry(request.group.clone()).or_default();
    let term = group.term;
    let held = group.held(time.moment);
    let held = held.and_then(|lease| Some((lease.holder.clone()?, lease.ends)));
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
    if term > request.known && !planted(Mutant::StaleCampaign) {
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
        step::whole_millis(time.exact.checked_sub(since).unwrap_or(time.exact))
    };
    let rest = (vacant + request.yields).since(time.moment);
    if held.is_none() && !rest.is_zero() {
        return Campaigned {
            verdict: Verdict::Yielded { remaining: rest, term },
            holder: None,
            oddity: None,
        };
    }
    let keeps = planted(Mutant::TermKept) && held.is_some();
    let term = if keeps {
        term
    } else {
        group.mint(request.known, time.exact)
    };
    group.term = term;
    group.lease = Some(Lease {
        holder: Some(request.holder.clone()),
        ends: time.moment + request.ttl,
    });
    group.marks.granted(&request.holder);
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

pub(super) fn renew(data: &mut Data, renewal: &Renewal, time: Time<'_>) -> Renewed {
    let group = data.groups.entry(renewal.group.clone()).or_default();
    let term = group.term;
    let held = group.held(time.moment).is_some();
    let any = planted(Mutant::RenewWithoutComparing) && held
        || planted(Mutant::RenewalAcquires) && !held && term == renewal.term;
    if !any && !group.is_held_by(&renewal.holder, renewal.term, time.moment) {
        let holder = group.held(time.moment).and_then(|lease| lease.holder.clone());
        return Renewed::NotYours { holder, term };
    }
    // First, so that one without memory takes it.
    time.frees();
    group.lease = Some(Lease {
        holder: Some(renewal.holder.clone()),
        ends: ends(renewal.ttl, time),
    });
    group.marks.renewed(renewal.ttl, time);
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

/// When a lease that is given now ends. A server's lasts to the end of its last millisecond.
pub(super) fn ends(ttl: std::time::Duration, time: Time<'_>) -> Moment {
    match time.process {
        Some(_) => time.moment + quarantine::whole(ttl) + quarantine::GRAIN,
        None => time.moment + ttl,
    }
}

/// The runs among those that are to end, and those that are no longer their runner's.
pub(super) fn beat(data: &mut Data, beats: &Beats, time: Time<'_>) -> (Vec<u64>, Vec<u64>) {
    let group = data.groups.entry(beats.group.clone()).or_default();
    let (mut replaced, mut gone) = (Vec::new(), Vec::new());
    for fence in &beats.fences {
        match group.beats.get_mut(fence) {
            Some(beat) if planted(Mutant::SignsNeedMemory) => {
                time.grows();
                *beat = time.moment;
            }
            Some(beat) => {
                // First, so that one without memory takes it.
                time.frees();
                *beat = time.moment;
            }
            None => gone.push(*fence),
        }
        if group.replaced.contains_key(fence) {
            replaced.push(*fence);
        }
    }
    (replaced, gone)
}

/// Whether there was something to release.
pub(super) fn release(data: &mut Data, request: &Release, time: Time<'_>) -> bool {
    let group = data.groups.entry(request.group.clone()).or_default();
    if !may_release(group, request, time) {
        return false;
    }
    time.frees();
    group.lease = None;
    group.vacant = Some(time.moment);
    group.marks.released(request.term, time);
    group.asked = None;
    if request.draining_since.is_some() {
        group.drained = request.draining_since;
    }
    true
}

fn may_release(group: &mut Group, request: &Release, time: Time<'_>) -> bool {
    let held = group.held(time.moment).map(|lease| lease.holder.clone());
    if planted(Mutant::ReleaseWithoutComparing) && held.is_some() {
        return true;
    }
    if planted(Mutant::ReleaseWithoutTheTerm) {
        return held == Some(Some(request.holder.clone()));
    }
    group.is_held_by(&request.holder, request.term, time.moment)
}

pub(super) fn ask(data: &mut Data, request: &Ask, time: Time<'_>) -> AskReply {
    let group = data.groups.entry(request.group.clone()).or_default();
    let (term, leader) = (group.term, group.marks.holder().cloned());
    let key = group.held(time.moment).map(|lease| lease.holder.clone());
    let is_leader = leader.is_some() && key == Some(leader.clone());
    if request.term.is_some_and(|meant| meant != term || !is_leader) {
        return AskReply::Over;
    }
    let Some(holder) = key else {
        return AskReply::Vacant;
    };
    let Some(holder) = holder.clone().filter(|_| is_leader) else {
        return AskReply::Foreign { holder };
    };
    time.grows();
    group.asked = Some((
        term,
        time.moment + quarantine::whole(request.ends_after),
        request.asked.clone(),
    ));
    AskReply::Kept { holder, term }
}

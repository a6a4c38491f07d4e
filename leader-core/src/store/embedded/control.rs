//! Control: the steps of `act.lua` and `control.lua`, and what a claim asks of them.

use std::collections::{BTreeMap, VecDeque};

use jiff::Timestamp;

use super::{Data, Time};
use crate::job::tick::Origin;
use crate::names::JobName;
use crate::store::control::{
    Act, ActRequest, Acted, Deed, Gap, GroupControl, KEPT_ACTS, Meets, OPEN_REQUESTS, OpenRequest, Pause,
};
use crate::store::request::{Claim, Want};

/// What is in force and open in a group.
#[derive(Debug, Default)]
pub(super) struct Control {
    pub(super) number: u64,
    triggered: Option<Timestamp>,
    pauses: BTreeMap<Option<JobName>, Pause>,
    requests: BTreeMap<u64, OpenRequest>,
    acts: VecDeque<Act>,
}

pub(super) fn act(data: &mut Data, request: ActRequest, time: Time) -> Acted {
    let control = &mut data.groups.entry(request.group).or_default().control;
    control.drop_ended(time.wall);
    let (job, by, reason) = (request.job, request.by, request.reason);
    let untimely = match request.deed {
        Deed::Pause { until, .. } => until.is_some_and(|until| until <= time.wall),
        Deed::Backfill { to, .. } => to > time.wall,
        _ => false,
    };
    if untimely {
        return Acted::Untimely { now: time.wall };
    }
    let open = control.requests.len();
    if matches!(request.deed, Deed::Trigger | Deed::Backfill { .. }) && open >= OPEN_REQUESTS {
        return Acted::Full { open };
    }
    let exists = match request.deed {
        Deed::Resume => control.pauses.contains_key(&job),
        Deed::Cancel { request } => control.requests.contains_key(&request),
        Deed::Trigger | Deed::Backfill { .. } => job.is_some(),
        Deed::Pause { .. } => true,
    };
    if !exists {
        return Acted::Nothing;
    }
    let micros = u64::try_from(time.exact.as_microsecond()).unwrap_or(0);
    control.number = (control.number + 1).max(micros);
    let number = control.number;
    let (mut at, mut before) = (time.wall, None);
    let wish = |control: &mut Control, origin, from, to, at| {
        let Some(job) = job.clone() else { return };
        let wish = OpenRequest {
            id: number,
            job,
            origin,
            from,
            to,
            done: None,
            asked_at: at,
            by: by.clone(),
            reason: reason.clone(),
        };
        control.requests.insert(number, wish);
    };
    match request.deed {
        Deed::Pause { gap, until } => {
            let pause = Pause {
                number,
                job: job.clone(),
                gap,
                since: time.wall,
                until,
                by: by.clone(),
                reason: reason.clone(),
            };
            before = control.pauses.insert(job.clone(), pause);
        }
        Deed::Resume => before = control.pauses.remove(&job),
        Deed::Trigger => {
            let next = control
                .triggered
                .map(|last| last + jiff::SignedDuration::from_millis(1));
            at = next.map_or(at, |next| next.max(at));
            control.triggered = Some(at);
            wish(control, Origin::Manual, at, at, at);
        }
        Deed::Backfill { from, to } => wish(control, Origin::Backfill, from, to, at),
        Deed::Cancel { request } => {
            control.requests.remove(&request);
        }
    }
    let (deed, job) = (request.deed, job.clone());
    control.acts.push_front(Act {
        number,
        at,
        deed,
        job,
        by,
        reason,
    });
    control.acts.truncate(KEPT_ACTS);
    Acted::Done { number, at, before }
}

pub(super) fn control(control: &Control, time: Time) -> GroupControl {
    let in_force = |pause: &&Pause| pause.until.is_none_or(|until| time.wall < until);
    GroupControl {
        number: control.number,
        pauses: control.pauses.values().filter(in_force).cloned().collect(),
        requests: control.requests.values().cloned().collect(),
        acts: control.acts.iter().cloned().collect(),
    }
}

/// What a pause means for a job now.
#[derive(Clone, Copy, Debug)]
pub(super) enum Judgement {
    /// Ticks from here on are not run.
    Skip(Timestamp),
    /// Nothing is done before this instant, or before the resume.
    Hold(Option<Timestamp>),
}

impl Control {
    fn drop_ended(&mut self, now: Timestamp) {
        self.pauses
            .retain(|_, pause| pause.until.is_none_or(|until| now < until));
    }

    /// What is owed is not given up by another pause beside.
    pub(super) fn judge(&self, job: &JobName, now: Timestamp) -> Option<Judgement> {
        let both = [self.pauses.get(&None), self.pauses.get(&Some(job.clone()))];
        let in_force = |pause: &&Pause| pause.until.is_none_or(|until| now < until);
        let mut found = None;
        for pause in both.into_iter().flatten().filter(in_force) {
            found = Some(match (pause.gap, found) {
                (Gap::Owed, Some(Judgement::Hold(ends))) => {
                    Judgement::Hold(ends.zip(pause.until).map(|(a, b): (Timestamp, _)| a.max(b)))
                }
                (Gap::Owed, _) => Judgement::Hold(pause.until),
                (Gap::Skip, Some(Judgement::Skip(since))) => Judgement::Skip(since.min(pause.since)),
                (Gap::Skip, Some(hold)) => hold,
                (Gap::Skip, None) => Judgement::Skip(pause.since),
            });
        }
        found
    }

    /// Whether the request still asks for this run.
    pub(super) fn asks_for(&self, claim: &Claim, meets: Meets) -> bool {
        self.requests.get(&meets.request).is_some_and(|request| {
            request.job == claim.job
                && claim.want == Want::Extra(request.origin)
                && request.from <= claim.tick
                && claim.tick <= request.to
                && request.done.is_none_or(|done| done < claim.tick)
        })
    }

    /// A run of the request is begun.
    pub(super) fn met(&mut self, meets: Meets, tick: Timestamp) {
        match self.requests.get_mut(&meets.request) {
            Some(request) if meets.more && request.origin == Origin::Backfill => request.done = Some(tick),
            _ => {
                self.requests.remove(&meets.request);
            }
        }
    }
}

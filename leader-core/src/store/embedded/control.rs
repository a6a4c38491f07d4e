//! Control: the steps of `act.lua` and `control.lua`, and what a claim asks of them.

use std::collections::{BTreeMap, VecDeque};

use jiff::Timestamp;

use super::{Data, Time};
use crate::job::tick::Origin;
use crate::names::{GroupName, JobName};
use crate::store::control::{
    self, Act, ActRequest, Acted, Deed, GroupControl, KEPT_ACTS, Meets, OPEN_REQUESTS, OpenRequest, Pause,
};
use crate::store::request::{Claim, Want};

/// What is in force and open in a group.
#[derive(Clone, Debug, Default)]
pub(super) struct Control {
    pub(super) number: u64,
    /// Whether claims have lost sight of what is asked, until it is counted anew.
    unheeded: bool,
    triggered: Option<Timestamp>,
    pauses: BTreeMap<Option<JobName>, Pause>,
    /// Those that are over, and still speak for ticks that nobody has decided.
    ended: Vec<Pause>,
    requests: BTreeMap<u64, OpenRequest>,
    acts: VecDeque<Act>,
}

/// Instants as Redis keeps them.
fn in_whole_millis(deed: Deed) -> Deed {
    let whole = |at: Timestamp| Timestamp::from_millisecond(at.as_millisecond()).unwrap_or(at);
    match deed {
        Deed::Pause { gap, until } => Deed::Pause {
            gap,
            until: until.map(whole),
        },
        Deed::Backfill { from, to } => Deed::Backfill {
            from: whole(from),
            to: whole(to),
        },
        other => other,
    }
}

pub(super) fn act(data: &mut Data, request: ActRequest, time: Time<'_>) -> Acted {
    let group = data.groups.entry(request.group).or_default();
    let job = request.job.map(|job| group.coverage.goes_on_as(&job));
    let control = &mut group.control;
    control.drop_ended(time);
    let (by, reason, deed) = (request.by, request.reason, in_whole_millis(request.deed));
    let untimely = match deed {
        Deed::Pause { until, .. } => until.is_some_and(|until| until <= time.wall),
        Deed::Backfill { to, .. } => to > time.wall,
        _ => false,
    };
    if untimely {
        return Acted::Untimely { now: time.wall };
    }
    let open = control.requests.len();
    if matches!(deed, Deed::Trigger | Deed::Backfill { .. }) && open >= OPEN_REQUESTS {
        return Acted::Full { open };
    }
    let exists = match deed {
        Deed::Resume => control.pauses.contains_key(&job),
        Deed::Cancel { request } => control.requests.contains_key(&request),
        Deed::Trigger | Deed::Backfill { .. } => job.is_some(),
        Deed::Pause { .. } => true,
    };
    if !exists {
        return Acted::Nothing;
    }
    match deed {
        Deed::Trigger | Deed::Backfill { .. } => time.grows(),
        // What is there is taken away first, whether anything is.
        _ => time.frees(),
    }
    let number = control.next_number(time);
    control.unheeded = false;
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
    match deed {
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
            control.over(before.as_ref(), time.wall);
        }
        Deed::Resume => {
            before = control.pauses.remove(&job);
            control.over(before.as_ref(), time.wall);
        }
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
    let (deed, job) = (deed, job.clone());
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

pub(super) fn control(data: &Data, group: &GroupName, time: Time<'_>) -> GroupControl {
    let Some(group) = data.groups.get(group) else {
        return GroupControl::default();
    };
    let (control, made) = (&group.control, group.made.number);
    let in_force = |pause: &Pause| pause.until.is_none_or(|until| time.wall < until);
    let (pauses, over): (Vec<_>, Vec<_>) = control.pauses.values().cloned().partition(in_force);
    GroupControl {
        number: control.number,
        pauses,
        ended: control::speaking(control.ended.iter().cloned().chain(over), time.wall),
        requests: control.requests.values().cloned().collect(),
        acts: control.acts.iter().cloned().collect(),
        made,
    }
}

impl Control {
    /// The number of the next act: above all before it.
    pub(super) fn next_number(&mut self, time: Time<'_>) -> u64 {
        let micros = u64::try_from(time.exact.as_microsecond()).unwrap_or(0);
        self.number = (self.number + 1).max(micros);
        self.number
    }

    /// The number of a change of what is made: what people have asked is counted with it.
    pub(super) fn next_change(&mut self, time: Time<'_>) -> u64 {
        self.unheeded = false;
        self.next_number(time)
    }

    /// What is counted with the lead is lost, and what people have asked for is not.
    pub(super) fn lose_numbers(&mut self) {
        (self.number, self.triggered, self.unheeded) = (0, None, true);
    }

    /// Whoever has lost the numbers did not mean what people have asked for, and made: it is counted and told anew.
    pub(super) fn recount(&mut self, made: &mut u64, any_made: bool, time: Time<'_>) {
        if self.number == 0 && (self.asked() > 0 || any_made) {
            time.grows();
            self.next_number(time);
            self.unheeded = false;
            if any_made {
                *made = self.number;
            }
        }
    }

    /// Takes back what was asked of a job that ends.
    pub(super) fn withdraw(&mut self, job: &JobName) {
        self.pauses.retain(|paused, _| paused.as_ref() != Some(job));
        self.ended.retain(|pause| pause.job.as_ref() != Some(job));
        self.requests.retain(|_, request| request.job != *job);
    }

    /// How much is asked.
    fn asked(&self) -> usize {
        self.pauses.len() + self.ended.len() + self.requests.len()
    }

    /// A job goes on under another name.
    pub(super) fn rename(&mut self, old: &JobName, new: &JobName) {
        if let Some(pause) = self.pauses.remove(&Some(old.clone())) {
            let job = Some(new.clone());
            self.pauses.entry(job.clone()).or_insert(Pause { job, ..pause });
        }
        for pause in self.ended.iter_mut().filter(|pause| pause.job.as_ref() == Some(old)) {
            pause.job = Some(new.clone());
        }
        for request in self.requests.values_mut().filter(|request| request.job == *old) {
            request.job = new.clone();
        }
    }

    fn drop_ended(&mut self, time: Time<'_>) {
        let now = time.wall;
        let in_force = |pause: &Pause| pause.until.is_none_or(|until| now < until);
        let (kept, over): (BTreeMap<_, _>, BTreeMap<_, _>) = std::mem::take(&mut self.pauses)
            .into_iter()
            .partition(|(_, pause)| in_force(pause));
        self.pauses = kept;
        if !over.is_empty() {
            time.frees();
        }
        self.ended = control::ended(
            std::mem::take(&mut self.ended).into_iter().chain(over.into_values()),
            now,
        );
    }

    /// A pause is over at an instant.
    fn over(&mut self, pause: Option<&Pause>, now: Timestamp) {
        let pause = pause.map(|pause| Pause {
            until: Some(now),
            ..pause.clone()
        });
        self.ended = control::ended(std::mem::take(&mut self.ended).into_iter().chain(pause), now);
    }

    /// The pauses of a job that nobody has ended. One that was ended is over, also for a clock that was set back to before its end.
    pub(super) fn standing_pauses_of(&self, job: &JobName) -> impl Iterator<Item = &Pause> {
        let all = self.pauses.values().filter(|_| !self.unheeded);
        all.filter(move |pause| pause.concerns(job))
    }

    /// The pauses that speak for a job, over or not.
    pub(super) fn pauses_of(&self, job: &JobName) -> impl Iterator<Item = &Pause> {
        let all = self.pauses.values().chain(&self.ended).filter(|_| !self.unheeded);
        all.filter(move |pause| pause.concerns(job))
    }

    /// Whether the request still asks for this run.
    pub(super) fn asks_for(&self, claim: &Claim, meets: Meets) -> bool {
        let request = self.requests.get(&meets.request).filter(|_| !self.unheeded);
        request.is_some_and(|request| {
            request.job == claim.job
                && claim.want == Want::Extra(request.origin)
                && request.from <= claim.tick
                && claim.tick <= request.to
                && request.done.is_none_or(|done| done < claim.tick)
        })
    }

    /// A run of the request is begun.
    pub(super) fn met(&mut self, meets: Meets, claim: &Claim, time: Time<'_>) {
        match self.requests.get_mut(&meets.request) {
            Some(request) if meets.more && request.origin == Origin::Backfill => {
                time.grows();
                request.done = Some(claim.tick);
            }
            _ => {
                time.frees();
                self.requests.remove(&meets.request);
            }
        }
    }
}

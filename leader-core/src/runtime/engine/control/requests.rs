//! Runs outside the schedule that were asked for: each is claimed when its turn has come, and met in the step that begins its run.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use super::super::Engine;
use super::super::input::{Group, Input};
use super::Control;
use crate::clock::Moment;
use crate::job::tick::Origin;
use crate::store::{ActRequest, Claim, ClaimReply, Deed, Meets, OpenRequest, UNLED, Want};

/// A request, and when to look at it.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) request: OpenRequest,
    /// The job, where this instance has it; one that it lacks stays for another leader.
    job: Option<usize>,
    look: Moment,
    claiming: bool,
}

impl Control {
    pub(super) fn next_look(&self) -> Option<Moment> {
        let asked = self.open.iter().filter(|open| open.job.is_some() && !open.claiming);
        asked.map(|open| open.look).filter(|look| *look > Moment::ZERO).min()
    }

    fn of(&mut self, id: u64) -> Option<&mut Open> {
        self.open.iter_mut().find(|open| open.request.id == id)
    }
}

impl Engine {
    /// What was read, with what is known here already.
    pub(super) fn merge_requests(&mut self, now: Moment, index: Group, read: Vec<OpenRequest>) -> Vec<Open> {
        let known = std::mem::take(&mut self.groups[index].control.open);
        let state = &self.groups[index];
        let jobs = || state.jobs.iter().chain(&state.unled.jobs);
        let merge = |mut request: OpenRequest| {
            let before = known.iter().find(|open| open.request.id == request.id);
            // The read may be older than a claim's answer.
            request.done = request.done.max(before.and_then(|open| open.request.done));
            Open {
                job: jobs().copied().find(|job| *self.kept_as(*job) == request.job),
                look: now,
                claiming: before.is_some_and(|open| open.claiming),
                request,
            }
        };
        read.into_iter().map(merge).collect()
    }

    /// Jobs have come, or are kept under another name, that requests may ask for.
    pub(in super::super) fn requests_find_jobs(&mut self, index: Group) {
        let state = &self.groups[index];
        let find = |open: &Open| {
            let mut jobs = state.jobs.iter().chain(&state.unled.jobs).copied();
            open.job
                .or_else(|| jobs.find(|job| *self.kept_as(*job) == open.request.job))
        };
        let found: Vec<_> = state.control.open.iter().map(find).collect();
        for (open, job) in self.groups[index].control.open.iter_mut().zip(found) {
            open.job = job;
        }
    }

    /// Whether a request asks for runs of the job.
    pub(in super::super) fn is_asked_for(&self, index: Group, job: usize) -> bool {
        self.groups[index].control.open.iter().any(|open| open.job == Some(job))
    }

    pub(super) fn requests_turn(&mut self, now: Moment, index: Group) {
        let state = &self.groups[index];
        let leads = state.draining.is_none() && state.taken_over.is_some_and(|term| state.gate.trusts(term));
        if !leads || self.holds_ticks() {
            return;
        }
        let open = &state.control.open;
        let mut busy: BTreeSet<usize> = open
            .iter()
            .filter(|open| open.claiming)
            .filter_map(|open| open.job)
            .collect();
        // A span takes long: one run that was asked for does not wait for its end.
        let manual = |open: &&Open| open.request.origin == Origin::Manual;
        let in_turn = open
            .iter()
            .filter(manual)
            .chain(open.iter().filter(|open| !manual(open)));
        let mut chosen = Vec::new();
        for open in in_turn.filter(|open| open.look <= now) {
            if let Some(job) = open.job
                && !self.runs.is_untold(job)
                && busy.insert(job)
            {
                chosen.push((job, open.request.clone()));
            }
        }
        for (job, request) in chosen {
            if self.has_place_for(job) {
                self.claim_request(now, index, job, &request);
            }
        }
    }

    fn claim_request(&mut self, now: Moment, index: Group, job: usize, request: &OpenRequest) {
        let spec = &self.jobs[job];
        let (tick, more) = match request.origin {
            Origin::Manual => (Some(request.from), false),
            // By the schedule in force, as its ticks are.
            _ => next_of(&self.planner.rule(job).unwrap_or(&spec.rule).schedule, request),
        };
        let (name, overlap) = (self.kept_as(job).clone(), spec.overlap);
        let Some(tick) = tick else {
            self.withdraw(now, index, request);
            return;
        };
        if let Some(open) = self.groups[index].control.of(request.id) {
            open.claiming = true;
        }
        let claim = Claim {
            alive: self.runs.alive(job),
            job: name,
            number: self.next_claim(),
            tick,
            cursor: tick,
            want: Want::Extra(request.origin),
            overlap,
            passed: Vec::new(),
            further: None,
            schedule: "".into(),
            adopts: "".into(),
            meets: Some(Meets {
                request: request.id,
                more,
            }),
        };
        self.send_one(now, index, job, claim);
    }

    /// A span in which the schedule, as it is by now, has no tick left.
    fn withdraw(&mut self, now: Moment, index: Group, request: &OpenRequest) {
        let group = self.groups[index].gate.group().clone();
        let Some(term) = self.groups[index].taken_over else {
            return;
        };
        let act = ActRequest {
            group: group.clone(),
            job: Some(request.job.clone()),
            deed: Deed::Cancel { request: request.id },
            by: self.shared.config.instance.to_string(),
            reason: "the schedule has no tick left in the span".to_owned(),
        };
        if let Some(open) = self.groups[index].control.of(request.id) {
            open.look = now + self.shared.config.timing.renew();
        }
        let store = Arc::clone(&self.store);
        let question = async move {
            store.act(act).await?;
            store.control(&group).await
        };
        self.ask(question, move |answer| Input::ControlRead {
            group: index,
            term,
            answer,
        });
    }

    /// What a claim of a request came to.
    pub(in super::super) fn request_answered(
        &mut self,
        now: Moment,
        index: Group,
        term: u64,
        claim: &Claim,
        reply: &ClaimReply,
    ) {
        // It is the leader who looks after requests, whatever the job needs.
        let led = self.groups[index].taken_over;
        let Some(meets) = claim
            .meets
            .filter(|_| led.is_some() && (term == UNLED || led == Some(term)))
        else {
            return;
        };
        let renew = self.shared.config.timing.renew();
        let control = &mut self.groups[index].control;
        let Some(open) = control.of(meets.request) else { return };
        open.claiming = false;
        match reply {
            ClaimReply::Won { .. } if meets.more => {
                open.request.done = Some(claim.tick);
                // The next one when this one has ended; one that ends elsewhere is not told here.
                open.look = now + renew;
            }
            ClaimReply::Won { .. } => control.open.retain(|open| open.request.id != meets.request),
            ClaimReply::Gone => {
                control.open.retain(|open| open.request.id != meets.request);
                self.read_control(index);
            }
            // An earlier run has not ended, or the job is paused.
            _ => open.look = now + renew,
        }
    }

    /// A run of the job has ended here: what waits for that is looked at.
    pub(in super::super) fn look_at_requests(&mut self, index: Group, job: usize) {
        let now = self.now();
        for open in &mut self.groups[index].control.open {
            if open.job == Some(job) {
                open.look = now;
            }
        }
    }
}

/// The next tick of a span, and whether there is another behind it.
fn next_of(schedule: &crate::schedule::Schedule, request: &OpenRequest) -> (Option<Timestamp>, bool) {
    let before = request.from - SignedDuration::from_nanos(1);
    let within = |tick: &Timestamp| *tick <= request.to;
    let tick = schedule.next(request.done.unwrap_or(before)).filter(within);
    let behind = tick.and_then(|tick| schedule.next(tick)).filter(within);
    (tick, behind.is_some())
}

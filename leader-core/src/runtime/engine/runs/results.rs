//! Results: told to the store until it has taken them.

use std::sync::Arc;

use jiff::Timestamp;

use super::super::Engine;
use super::super::input::{Group, Input};
use super::super::ticks::Asker;
use super::super::ticks::Failed;
use super::RunId;
use crate::clock::Moment;
use crate::event::Event;
use crate::job::outcome::{Outcome, Ran};
use crate::job::record::On;
use crate::job::tick::Origin;
use crate::mutants::{Mutant, planted};
use crate::runtime::companion::HandedOver;
use crate::runtime::guarded::Ending;
use crate::store::{End, SettleBatch, Settled, StoreError};

/// Results that could not be told yet are kept up to this number; then the oldest are left to be found by heartbeat.
const UNTOLD: usize = 10_000;

/// A run whose result the store has not taken yet.
pub(in super::super) struct Ended {
    pub(in super::super) job: usize,
    pub(super) term: u64,
    pub(in super::super) tick: Timestamp,
    pub(in super::super) origin: Origin,
    /// Which try of the run it was.
    pub(in super::super) attempt: u32,
    /// The job that rests, in this term, until the result is told: its next claim must not find this run open.
    pub(in super::super) resting: Option<(usize, u64)>,
    pub(super) asker: Option<Asker>,
}

impl Engine {
    /// Notes the end of a run that was claimed too late to be started.
    #[allow(clippy::too_many_arguments, reason = "everything that makes a run")]
    pub(in super::super) fn not_started(
        &mut self,
        index: Group,
        term: u64,
        fence: u64,
        job: usize,
        tick: Timestamp,
        origin: Origin,
        attempt: u32,
        asker: Option<Asker>,
    ) {
        let id = RunId { group: index, fence };
        let ended = Ended {
            job,
            term,
            tick,
            origin,
            attempt,
            resting: None,
            asker,
        };
        self.runs.begin(job, fence);
        self.note_end(id, ended, Ending::of(Ran::NotStarted));
    }

    pub(super) fn note_end(&mut self, id: RunId, ended: Ended, ending: Ending) {
        let hides = planted(Mutant::ErrorTakenForSuccess) && ending.ran == Ran::Error;
        let ran = if hides { Ran::Ok } else { ending.ran };
        let end = End {
            job: self.kept_as(ended.job).clone(),
            fence: id.fence,
            ran,
            error: ending.error,
            again_in: self.again_in(&ended, ran),
        };
        self.runs.ended.insert(id, ended);
        self.runs.ends.push((id.group, end));
        // As long as it cannot be told, signs of life tell that its runner is there.
        let now = self.now();
        self.runs.beat_at.get_or_insert(now + self.shared.config.timing.renew());
    }

    pub(super) fn tell_ends(&mut self, now: Moment) {
        if self.runs.tell_again.is_some_and(|at| now < at) {
            return;
        }
        self.runs.tell_again = None;
        if self.runs.ends.is_empty() || self.runs.telling > 0 {
            return;
        }
        let mut batches: Vec<(Group, Vec<End>)> = Vec::new();
        for (group, end) in self.runs.ends.drain(..) {
            match batches.iter_mut().find(|(other, _)| *other == group) {
                Some((_, ends)) => ends.push(end),
                None => batches.push((group, vec![end])),
            }
        }
        self.runs.telling = batches.iter().map(|(_, ends)| ends.len()).sum();
        let requests: Vec<_> = (batches.iter())
            .map(|(group, ends)| SettleBatch {
                group: self.groups[*group].gate.group().clone(),
                ends: ends.clone(),
            })
            .collect();
        let store = Arc::clone(&self.store);
        self.ask(async move { store.settle(requests).await }, move |answers| {
            Input::Settled { ends: batches, answers }
        });
    }

    pub(in super::super) fn settled(
        &mut self,
        now: Moment,
        ends: Vec<(Group, Vec<End>)>,
        answers: Vec<Result<Vec<Settled>, StoreError>>,
    ) {
        self.runs.telling = 0;
        for ((group, ends), answer) in ends.into_iter().zip(answers) {
            self.heard(now, &answer);
            if let Ok(verdicts) = answer {
                for (end, verdict) in ends.into_iter().zip(verdicts) {
                    self.end_settled(group, end, verdict);
                }
            } else {
                self.runs.tell_again = Some(now + self.shared.config.timing.retry());
                self.runs.ends.extend(ends.into_iter().map(|end| (group, end)));
            }
        }
        let excess = self.runs.ends.len().saturating_sub(UNTOLD);
        let given_up: Vec<_> = self.runs.ends.drain(..excess).collect();
        for (group, end) in given_up {
            let id = RunId {
                group,
                fence: end.fence,
            };
            let name = self.groups[group].gate.group();
            tracing::warn!(group = %name, job = %end.job, fence = end.fence, "the result of a run could not be told and is given up");
            if let Some(ended) = self.runs.forget(id) {
                self.resume(group, &ended);
            }
        }
    }

    /// The run is not at its end: it pauses, and is tried again.
    fn try_settled(&mut self, group: Group, end: End, at: Timestamp) {
        let fence = end.fence;
        let Some(ended) = self.runs.forget(RunId { group, fence }) else {
            return;
        };
        self.shared.tell(Event::RunFailed {
            job: end.job.clone(),
            group: self.groups[group].gate.group().clone(),
            scheduled_at: ended.tick,
            fence,
            attempt: ended.attempt,
            outcome: Outcome::Ran(end.ran),
            error: end.error.clone(),
            again_at: at,
        });
        self.planner.release(ended.job);
        self.ended_here(group, ended.job);
        self.failed_here(self.now(), Failed { group, end, ended }, at);
    }

    /// Lets a job that waited for a result be planned again; one that rested, unless a later leadership plans it by now.
    pub(in super::super) fn resume(&mut self, group: Group, ended: &Ended) {
        self.planner.release(ended.job);
        self.ended_here(group, ended.job);
        if let Some((job, term)) = ended.resting
            && self.plans_under(group, term)
        {
            self.planner.resume(job);
        }
    }

    /// Whoever remembers a run that was handed on need not do so any longer.
    fn tell_of_hand_over(&self, ended: &Ended) {
        let spec = &self.jobs[ended.job];
        if let (On::Fleet, Some(companion)) = (spec.on, &self.shared.config.companion) {
            companion.handed_over(HandedOver {
                job: spec.name.clone(),
                tick: ended.tick,
                origin: ended.origin,
            });
        }
    }

    fn end_settled(&mut self, group: Group, end: End, verdict: Settled) {
        let outcome = match verdict {
            Settled::Again { at } => {
                self.try_settled(group, end, at);
                return;
            }
            Settled::Yes => Outcome::Ran(end.ran),
            Settled::Fenced => Outcome::Fenced,
        };
        let fence = end.fence;
        let Some(ended) = self.runs.forget(RunId { group, fence }) else {
            return;
        };
        self.resume(group, &ended);
        self.tell_of_hand_over(&ended);
        self.tell_of_failure(group, &end, &ended, outcome);
        if let Some(asker) = ended.asker {
            let _ = asker.send(Ok((outcome, end.error.clone())));
        }
        self.shared.tell(Event::Decided {
            job: end.job,
            group: self.groups[group].gate.group().clone(),
            first: ended.tick,
            last: ended.tick,
            count: 1,
            outcome,
            fence: end.fence,
            origin: ended.origin,
            error: end.error,
        });
    }
}

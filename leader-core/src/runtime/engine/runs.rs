//! Runs: started on the user's runtime, kept alive by heartbeats, and settled.

use std::sync::Arc;

use jiff::Timestamp;

use super::input::{Group, Input};
use super::ticks::Asker;
use super::{ByFence, Deadlines, Engine};
use crate::clock::{Clock, Moment};
use crate::event::Event;
use crate::job::extract::Given;
use crate::job::gate::Lead;
use crate::job::outcome::{Outcome, Ran};
use crate::job::record::OnLoss;
use crate::job::scope::{self, Scope};
use crate::job::tick::{Inner, Origin, Tick};
use crate::names::{GroupName, JobName};
use crate::runtime::guarded::{Control, Ending, Guarded, Start, Witness};
use crate::runtime::shared::Shared;
use crate::store::{Beats, End, SettleBatch, Settled, StoreError};

/// Results that could not be told yet are kept up to this number; then the oldest are left to be found by heartbeat.
const UNTOLD: usize = 10_000;

/// The runs of this instance.
#[derive(Default)]
pub(super) struct Runs {
    running: ByFence<Run>,
    timeouts: Deadlines,
    /// Ended, and not yet told to the store.
    ends: Vec<(GroupName, End)>,
    /// Those that a round trip is telling now.
    telling: usize,
    tell_again: Option<Moment>,
    beat_at: Option<Moment>,
    /// What is known of runs until the store has taken their result.
    ended: ByFence<Ended>,
}

struct Run {
    job: usize,
    group: GroupName,
    name: JobName,
    term: u64,
    tick: Timestamp,
    origin: Origin,
    on_loss: OnLoss,
    owed: bool,
    control: Arc<Control>,
    timeout: Option<Moment>,
    asker: Option<Asker>,
}

pub(super) struct Ended {
    pub(super) tick: Timestamp,
    pub(super) origin: Origin,
    /// The job that rests until the result is told, so that its next claim does not find this run open.
    pub(super) resting: Option<usize>,
    pub(super) asker: Option<Asker>,
}

impl Runs {
    pub(super) fn next_wake(&self) -> Option<Moment> {
        let timeout = self.timeouts.first().map(|(at, _)| *at);
        let beat = self.beat_at.filter(|_| !self.running.is_empty());
        timeout.into_iter().chain(beat).chain(self.tell_again).min()
    }

    /// The fences of a job's runs that are alive here, the untold ones included: their result is on its way.
    pub(super) fn alive(&self, job: &JobName) -> Vec<u64> {
        let running = self
            .running
            .iter()
            .filter(|(_, run)| run.name == *job)
            .map(|(fence, _)| *fence);
        let ended = self
            .ends
            .iter()
            .filter(|(_, end)| end.job == *job)
            .map(|(_, end)| end.fence);
        running.chain(ended).chain(self.ended.keys().copied()).collect()
    }

    /// Whether a drain of the group must wait: for bodies, and until their results are told, lest the successor finds them open.
    pub(super) fn holds_up(&self, group: &GroupName) -> bool {
        let body = |run: &Run| run.group == *group && run.on_loss == OnLoss::Cancel;
        self.running.values().any(body) || self.telling > 0 || self.ends.iter().any(|(other, _)| other == group)
    }

    /// Whether nothing runs and everything is told.
    pub(super) fn is_quiet(&self) -> bool {
        self.running.is_empty() && self.telling == 0 && self.ends.is_empty()
    }

    /// The leadership of a term has ended: its bodies are dropped at their next poll.
    pub(super) fn lost(&self, group: &GroupName, term: u64) {
        for run in self.running.values() {
            if run.group == *group && run.term == term && run.on_loss == OnLoss::Cancel {
                run.control.end(Ran::Cancelled);
            }
        }
    }

    /// Drops whatever still runs.
    pub(super) fn end_all(&self) {
        self.running.values().for_each(|run| run.control.end(Ran::Cancelled));
    }
}

/// Tells the engine and the log of a run.
struct Reporter {
    shared: Arc<Shared>,
    fence: u64,
    begun: Option<Event>,
    clock: Clock,
}

impl Witness for Reporter {
    fn begun(&mut self) {
        if let Some(mut event) = self.begun.take() {
            if let Event::RunStarted { started_at, .. } = &mut event {
                *started_at = self.clock.wall();
            }
            self.shared.tell(event);
        }
    }

    fn ended(&mut self, ending: Ending) {
        let fence = self.fence;
        self.shared.send(Input::RunEnded { fence, ending });
    }
}

impl Engine {
    #[allow(clippy::too_many_arguments, reason = "everything that makes a run")]
    pub(super) fn start_run(
        &mut self,
        now: Moment,
        index: Group,
        term: u64,
        job: usize,
        tick: Timestamp,
        fence: u64,
        origin: Origin,
        owed: bool,
        asker: Option<Asker>,
    ) {
        if self.runs.running.contains_key(&fence) {
            // The answer to a repeated claim.
            return;
        }
        let spec = &self.shared.config.jobs[job];
        let lead = Lead::new(Arc::clone(&self.groups[index].gate), term, fence);
        let control = Arc::new(Control::default());
        let reporter = Reporter {
            shared: Arc::clone(&self.shared),
            fence,
            begun: Some(Event::RunStarted {
                job: spec.name.clone(),
                group: spec.group.clone(),
                scheduled_at: tick,
                started_at: Timestamp::UNIX_EPOCH,
                fence,
                term,
                origin,
            }),
            clock: self.shared.config.clock.clone(),
        };
        let start = self.body_of(job, tick, origin, lead.clone());
        let guarded = Guarded::new(start, lead, spec.on_loss, Arc::clone(&control), reporter);
        let timeout = spec.timeout.map(|timeout| now + timeout);
        let run = Run {
            job,
            group: spec.group.clone(),
            name: spec.name.clone(),
            term,
            tick,
            origin,
            on_loss: spec.on_loss,
            owed,
            control,
            timeout,
            asker,
        };
        if let Some(at) = timeout {
            self.runs.timeouts.insert((at, fence));
        }
        self.runs.beat_at.get_or_insert(now + self.shared.config.timing.renew());
        self.runs.running.insert(fence, run);
        // Spawned from the framework's own thread: a blocked worker cannot hold the others up.
        self.bodies.spawn(guarded);
    }

    fn body_of(&self, job: usize, tick: Timestamp, origin: Origin, lead: Lead) -> Start {
        let shared = Arc::clone(&self.shared);
        Box::new(move || {
            let spec = &shared.config.jobs[job];
            let tick = Tick::new(Inner {
                job: spec.name.clone(),
                origin,
                scheduled_at: tick,
                started_at: shared.config.clock.wall(),
                attempt: 1,
                lead: lead.clone(),
            });
            let given = Given {
                tick: Some(&tick),
                lead: &lead,
                states: &shared.config.states,
            };
            let body = (spec.body.run)(&given);
            let scope = Scope::new(Some(Arc::clone(&shared.gates)), Some(lead.clone()));
            Box::pin(scope::within(scope, body))
        })
    }

    pub(super) fn runs_turn(&mut self, now: Moment) {
        while let Some((at, fence)) = self.runs.timeouts.first().copied() {
            if now < at {
                break;
            }
            self.runs.timeouts.remove(&(at, fence));
            if let Some(run) = self.runs.running.get(&fence) {
                run.control.end(Ran::TimedOut);
            }
        }
        self.tell_ends(now);
    }

    /// The heartbeats that are due, or that a renewal can take along.
    pub(super) fn beats_due(&mut self, now: Moment, renewing: bool) -> Vec<Beats> {
        let renew = self.shared.config.timing.renew();
        let due = self
            .runs
            .beat_at
            .is_some_and(|at| now >= at || (renewing && now + renew / 2 >= at));
        if self.runs.running.is_empty() {
            self.runs.beat_at = None;
            return Vec::new();
        }
        if !due {
            return Vec::new();
        }
        self.runs.beat_at = Some(now + renew);
        let mut beats: Vec<Beats> = Vec::new();
        for (fence, run) in &self.runs.running {
            match beats.iter_mut().find(|beats| beats.group == run.group) {
                Some(beats) => beats.fences.push(*fence),
                None => beats.push(Beats {
                    group: run.group.clone(),
                    fences: vec![*fence],
                }),
            }
        }
        beats
    }

    pub(super) fn run_ended(&mut self, now: Moment, fence: u64, ending: Ending) {
        let Some(run) = self.runs.running.remove(&fence) else {
            return;
        };
        if let Some(at) = run.timeout {
            self.runs.timeouts.remove(&(at, fence));
        }
        self.runs.ended.insert(
            fence,
            Ended {
                tick: run.tick,
                origin: run.origin,
                resting: run.owed.then_some(run.job),
                asker: run.asker,
            },
        );
        let end = End {
            job: run.name,
            fence,
            ran: ending.ran,
            error: ending.error,
        };
        self.runs.ends.push((run.group, end));
        self.tell_ends(now);
    }

    /// Notes the end of a run that was never started here.
    pub(super) fn not_started(&mut self, index: Group, job: JobName, fence: u64, ended: Ended) {
        let group = self.groups[index].gate.group().clone();
        self.runs.ended.insert(fence, ended);
        let end = End {
            job,
            fence,
            ran: Ran::NotStarted,
            error: String::new(),
        };
        self.runs.ends.push((group, end));
    }

    fn tell_ends(&mut self, now: Moment) {
        if self.runs.tell_again.is_some_and(|at| now < at) {
            return;
        }
        self.runs.tell_again = None;
        if self.runs.ends.is_empty() || self.runs.telling > 0 {
            return;
        }
        let mut batches: Vec<(GroupName, Vec<End>)> = Vec::new();
        for (group, end) in self.runs.ends.drain(..) {
            match batches.iter_mut().find(|(other, _)| *other == group) {
                Some((_, ends)) => ends.push(end),
                None => batches.push((group, vec![end])),
            }
        }
        self.runs.telling = batches.iter().map(|(_, ends)| ends.len()).sum();
        let requests: Vec<_> = (batches.iter())
            .map(|(group, ends)| SettleBatch {
                group: group.clone(),
                ends: ends.clone(),
            })
            .collect();
        let store = Arc::clone(&self.store);
        self.ask(async move { store.settle(requests).await }, move |answers| {
            Input::Settled { ends: batches, answers }
        });
    }

    pub(super) fn settled(
        &mut self,
        now: Moment,
        ends: Vec<(GroupName, Vec<End>)>,
        answers: Vec<Result<Vec<Settled>, StoreError>>,
    ) {
        self.runs.telling = 0;
        for ((group, ends), answer) in ends.into_iter().zip(answers) {
            self.heard(now, &answer);
            match answer {
                Ok(verdicts) => {
                    for (end, verdict) in ends.into_iter().zip(verdicts) {
                        self.end_settled(&group, end, verdict);
                    }
                }
                Err(_) => {
                    self.runs.tell_again = Some(now + self.shared.config.timing.retry());
                    self.runs.ends.extend(ends.into_iter().map(|end| (group.clone(), end)));
                }
            }
        }
        let excess = self.runs.ends.len().saturating_sub(UNTOLD);
        for (group, end) in self.runs.ends.drain(..excess) {
            tracing::warn!(%group, job = %end.job, fence = end.fence, "the result of a run could not be told and is given up");
            let ended = self.runs.ended.remove(&end.fence);
            if let Some(job) = ended.and_then(|ended| ended.resting) {
                self.planner.resume(job);
            }
        }
        self.tell_ends(now);
    }

    fn end_settled(&mut self, group: &GroupName, end: End, verdict: Settled) {
        let outcome = match verdict {
            Settled::Yes => Outcome::Ran(end.ran),
            Settled::Fenced => Outcome::Fenced,
        };
        let Some(ended) = self.runs.ended.remove(&end.fence) else {
            return;
        };
        if let Some(job) = ended.resting {
            self.planner.resume(job);
        }
        if let Some(asker) = ended.asker {
            let _ = asker.send(Ok((outcome, end.error.clone())));
        }
        self.shared.tell(Event::Decided {
            job: end.job,
            group: group.clone(),
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

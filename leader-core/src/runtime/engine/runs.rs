//! Runs: started on the user's runtime, kept alive by heartbeats, and settled.

mod bodies;
mod failures;
mod results;
mod stuck;
mod trusts;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;

use super::Engine;
use super::input::{Group, Input};
use super::ticks::Asker;
use crate::clock::{Clock, Moment};
use crate::event::Event;
use crate::job::outcome::Ran;
use crate::job::record::OnLoss;
use crate::job::tick::Origin;
use crate::metrics::Measured;
use crate::mutants::{Mutant, planted};
use crate::names::JobName;
use crate::runtime::guarded::{Control, Ending, Guarded, Witness};
use crate::runtime::shared::Shared;
use crate::store::{Beats, End};
pub(super) use results::Ended;

/// How many signs of life one script tells: a store that takes no results for a while has many to hear of.
const BEATS: usize = 500;

/// What names a run on this instance: each group counts its fences for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RunId {
    pub(super) group: Group,
    pub(super) fence: u64,
}

/// The runs of this instance.
#[derive(Default)]
pub(super) struct Runs {
    running: BTreeMap<RunId, Run>,
    /// Made, and about to be spawned.
    starting: Vec<Guarded<Reporter>>,
    timeouts: BTreeSet<(Moment, RunId)>,
    /// Ended, and not yet told to the store.
    ends: Vec<(Group, End)>,
    /// Those that a round trip is telling now.
    telling: usize,
    tell_again: Option<Moment>,
    beat_at: Option<Moment>,
    /// What is known of runs until the store has taken their result.
    ended: BTreeMap<RunId, Ended>,
    /// The fences of those that run or have ended, by job: each claim asks for its own.
    alive: BTreeMap<usize, Vec<u64>>,
    watched: stuck::Watched,
    pub(super) trusts: trusts::Trusts,
}

struct Run {
    job: usize,
    term: u64,
    tick: Timestamp,
    origin: Origin,
    on_loss: OnLoss,
    owed: bool,
    attempt: u32,
    control: Arc<Control>,
    timeout: Option<Moment>,
    asker: Option<Asker>,
}

impl Runs {
    pub(super) fn next_wake(&self) -> Option<Moment> {
        let timeout = self.timeouts.first().map(|(at, _)| *at);
        let beat = self.beat_at.filter(|_| self.shows_life());
        let stuck = self.watched.next_look().filter(|_| !self.running.is_empty());
        timeout
            .into_iter()
            .chain(beat)
            .chain(stuck)
            .chain(self.tell_again)
            .min()
    }

    /// The fences of a job's runs that are alive here, the untold ones included: their result is on its way.
    pub(super) fn alive(&self, job: usize) -> Vec<u64> {
        self.alive.get(&job).cloned().unwrap_or_default()
    }

    /// Whether anything is to be kept from being taken for dead: what runs, and what has ended and could not be told yet.
    fn shows_life(&self) -> bool {
        !self.running.is_empty() || self.untold().next().is_some()
    }

    /// What has ended, and whose result the store has not taken.
    fn untold(&self) -> impl Iterator<Item = &RunId> {
        self.ended.keys().filter(|_| !planted(Mutant::UntoldGivesNoSign))
    }

    /// Notes a run that is the store's to hear of.
    fn begin(&mut self, job: usize, fence: u64) {
        self.alive.entry(job).or_default().push(fence);
    }

    /// Whether a run of the job has ended and the store has not taken its result.
    pub(super) fn is_untold(&self, job: usize) -> bool {
        self.ended.values().any(|ended| ended.job == job)
    }

    /// Whether a run of the job is under way, or its result.
    pub(super) fn is_known(&self, job: usize) -> bool {
        self.alive.contains_key(&job) || self.is_untold(job) || self.running.values().any(|run| run.job == job)
    }

    /// Forgets a run whose result the store has, or never will have.
    fn forget(&mut self, id: RunId) -> Option<Ended> {
        let ended = self.ended.remove(&id)?;
        if let Some(fences) = self.alive.get_mut(&ended.job) {
            fences.retain(|fence| *fence != id.fence);
            if fences.is_empty() {
                self.alive.remove(&ended.job);
            }
        }
        Some(ended)
    }

    /// Whether a drain of the group must wait: for bodies, and until their results are told, lest the successor finds them open.
    pub(super) fn holds_up(&self, group: Group) -> bool {
        let body = |(id, run): (&RunId, &Run)| id.group == group && run.on_loss == OnLoss::Cancel;
        self.running.iter().any(body) || self.telling > 0 || self.ends.iter().any(|(other, _)| *other == group)
    }

    /// Whether nothing runs and everything is told.
    pub(super) fn is_quiet(&self) -> bool {
        self.running.is_empty() && self.telling == 0 && self.ends.is_empty()
    }

    /// The leadership of a term has ended: its bodies are dropped at their next poll. Those that have not begun never will, and are
    /// given back: a runtime that runs nothing would keep their slots.
    pub(super) fn lost(&self, group: Group, term: u64) -> Vec<RunId> {
        let mut unbegun = Vec::new();
        for (id, run) in &self.running {
            if id.group == group && run.term == term {
                if run.control.forbid() {
                    unbegun.push(*id);
                } else if run.on_loss == OnLoss::Cancel {
                    run.control.end(Ran::Cancelled);
                }
            }
        }
        unbegun
    }

    /// The jobs of the bodies that have begun and not ended.
    pub(super) fn jobs(&self) -> impl Iterator<Item = usize> {
        let begun = self.running.values().filter(|run| run.control.has_begun());
        begun.map(|run| run.job).collect::<BTreeSet<_>>().into_iter()
    }

    /// Every run that has not ended, begun or not: its job and the term it was claimed in.
    pub(super) fn bodies(&self) -> impl Iterator<Item = (usize, u64)> {
        self.running.values().map(|run| (run.job, run.term))
    }

    /// How many these are.
    pub(super) fn count(&self) -> usize {
        self.running.len()
    }

    /// A later tick of the job takes the place of its runs.
    pub(super) fn replace(&self, group: Group, job: usize) {
        let runs = self
            .running
            .iter()
            .filter(|(id, run)| id.group == group && run.job == job);
        runs.for_each(|(_, run)| run.control.end(Ran::Cancelled));
    }

    /// The same for one run.
    pub(super) fn end_one(&self, id: RunId) {
        if let Some(run) = self.running.get(&id) {
            run.control.end(Ran::Cancelled);
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
    id: RunId,
    begun: Option<Event>,
    /// The job that its numbers are counted for, and since when the body runs.
    job: JobName,
    runs_since: Option<Moment>,
    clock: Clock,
}

impl Reporter {
    /// The body is over, whoever told so.
    fn over(&mut self) {
        if let Some(since) = self.runs_since.take() {
            let (job, took) = (&self.job, self.clock.now().since(since));
            self.shared.meter.measure(Measured::RunEnded { job, took });
        }
    }
}

impl Drop for Reporter {
    fn drop(&mut self) {
        self.over();
    }
}

impl Witness for Reporter {
    fn begun(&mut self) {
        if let Some(mut event) = self.begun.take() {
            if let Event::RunStarted { started_at, .. } = &mut event {
                *started_at = self.clock.wall();
            }
            self.runs_since = Some(self.clock.now());
            self.shared.tell(event);
        }
    }

    fn ended(&mut self, ending: Ending) {
        self.over();
        let id = self.id;
        self.shared.send(Input::RunEnded { id, ending });
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
        attempt: u32,
        asker: Option<Asker>,
    ) {
        let id = RunId { group: index, fence };
        if self.runs.running.contains_key(&id) {
            // The answer to a repeated claim.
            return;
        }
        let lead = self.lead_of(now, id, term);
        let spec = &self.jobs[job];
        let control = Arc::new(Control::default());
        let reporter = Reporter {
            shared: Arc::clone(&self.shared),
            id,
            begun: Some(Event::RunStarted {
                job: spec.name.clone(),
                group: spec.group.clone(),
                scheduled_at: tick,
                started_at: Timestamp::UNIX_EPOCH,
                fence,
                term,
                origin,
                attempt,
            }),
            job: spec.made.as_ref().map_or(&spec.name, |made| &made.handler).clone(),
            runs_since: None,
            clock: self.shared.config.clock.clone(),
        };
        let start = self.body_of(job, tick, origin, attempt, lead.clone(), Arc::clone(&control));
        let guarded = Guarded::new(start, lead, spec.on_loss, Arc::clone(&control), reporter);
        let timeout = spec.timeout.map(|timeout| now + timeout);
        let run = Run {
            job,
            term,
            tick,
            origin,
            on_loss: spec.on_loss,
            owed,
            attempt,
            control,
            timeout,
            asker,
        };
        if let Some(at) = timeout {
            self.runs.timeouts.insert((at, id));
        }
        self.runs.beat_at.get_or_insert(now + self.shared.config.timing.renew());
        self.runs.begin(job, fence);
        self.runs.running.insert(id, run);
        self.runs.starting.push(guarded);
    }

    /// Hands the runs of one answer to the user's runtime, one after the other without a pause: a worker that is woken finds more
    /// than one, and is not woken for each. From the framework's own thread: a blocked worker cannot hold the others up.
    pub(super) fn spawn_runs(&mut self) {
        for guarded in self.runs.starting.drain(..) {
            self.bodies.spawn(self.shared.config.process.hold(guarded));
        }
    }

    pub(super) fn runs_turn(&mut self, now: Moment) {
        while let Some((at, id)) = self.runs.timeouts.first().copied() {
            if now < at {
                break;
            }
            self.runs.timeouts.remove(&(at, id));
            if let Some(run) = self.runs.running.get(&id) {
                run.control.end(Ran::TimedOut);
            }
        }
        self.trusts_turn(now);
        self.look_for_stuck(now);
        self.tell_ends(now);
    }

    /// The heartbeats that are due, or that a renewal can take along.
    pub(super) fn beats_due(&mut self, now: Moment, renewing: bool) -> Vec<Beats> {
        let renew = self.shared.config.timing.renew();
        let due = self
            .runs
            .beat_at
            .is_some_and(|at| now >= at || (renewing && now + renew / 2 >= at));
        if !self.runs.shows_life() || planted(Mutant::NoSignsOfLife) {
            self.runs.beat_at = None;
            return Vec::new();
        }
        if !due {
            return Vec::new();
        }
        self.runs.beat_at = Some(now + renew);
        // The keys are in order of the groups.
        let mut beats: Vec<(Group, Beats)> = Vec::new();
        let is_last =
            |(group, beats): &&mut (Group, Beats), id: &RunId| *group == id.group && beats.fences.len() < BEATS;
        for id in self.runs.running.keys().chain(self.runs.untold()) {
            match beats.last_mut().filter(|last| is_last(last, id)) {
                Some((_, beats)) => beats.fences.push(id.fence),
                None => beats.push((
                    id.group,
                    Beats {
                        group: self.groups[id.group].gate.group().clone(),
                        fences: vec![id.fence],
                    },
                )),
            }
        }
        beats.into_iter().map(|(_, beats)| beats).collect()
    }

    pub(super) fn run_ended(&mut self, id: RunId, ending: Ending) {
        let Some(run) = self.runs.running.remove(&id) else {
            return;
        };
        if let Some(at) = run.timeout {
            self.runs.timeouts.remove(&(at, id));
        }
        self.runs.watched.forget(id);
        self.runs.trusts.forget(id);
        let ended = Ended {
            job: run.job,
            term: run.term,
            tick: run.tick,
            origin: run.origin,
            attempt: run.attempt,
            resting: run.owed.then_some((run.job, run.term)),
            asker: run.asker,
        };
        // Told in this turn, with all others that end in it.
        self.note_end(id, ended, ending);
    }
}

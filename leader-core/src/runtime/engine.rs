//! The one task that owns an instance's state: elections, plans, runs.
//!
//! It never waits for anything but its next input or its next timer: every question to the store is a task of its own on the
//! same thread, whose answer comes back as an input.

mod control;
mod elections;
mod input;
mod inspection;
mod jobs;
mod link;
mod lives;
mod made;
mod measures;
mod moves;
mod places;
mod probes;
mod requests;
mod restart;
mod roster;
mod runs;
mod skew;
mod stopping;
mod ticks;
mod time_zones;

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};

pub(crate) use input::{Errand, Input, Refused, Request};
pub(crate) use restart::{Kept, drive};
use stopping::Stopping;

use super::panics::{self, caught};
use super::requests::StepDownError;
use super::shared::Shared;
use super::watch::Watch;
use crate::clock::Moment;
use crate::election::{Election, Lost, Oddity, placement};
use crate::job::gate::{Gate, Role};
use crate::schedule::planner::Planner;
use crate::schedule::planning::PlanningClock;
use crate::schedule::skew::Skew;
use crate::store::{Store, StoreError};

/// How long a start waits for the store's first answers.
const FIRST_ANSWERS: Duration = Duration::from_secs(1);
/// The most inputs that are taken before timers are looked at again.
const INPUTS_AT_ONCE: usize = 256;

struct Engine {
    /// Who asks the store for this engine sees by it whether the engine still waits for the answer.
    alive: Arc<()>,
    shared: Arc<Shared>,
    store: Arc<dyn Store>,
    bodies: Handle,
    inbox: mpsc::UnboundedReceiver<Input>,
    groups: Vec<GroupState>,
    jobs: jobs::Jobs,
    /// The group of each job.
    group_of: Vec<input::Group>,
    planner: Planner,
    planning: PlanningClock,
    skew: Skew,
    ticks: ticks::Ticks,
    runs: runs::Runs,
    places: places::Places,
    lives: lives::Lives,
    inspection: inspection::Inspection,
    roster: roster::Roster,
    watch: Watch,
    link: link::Link,
    stopping: Option<Stopping>,
    /// Told when the first answers are there, and when to stop waiting for them.
    ready: Option<(oneshot::Sender<Result<(), Refused>>, Moment)>,
}

/// One group's election and what hangs on it.
struct GroupState {
    gate: Arc<Gate>,
    election: Election,
    /// The jobs of the group that its leader runs, by their index in the engine's table.
    jobs: Vec<usize>,
    /// Those that need no leader.
    unled: ticks::Unled,
    /// The highest term or fence ever seen.
    known: u64,
    /// Whether the store has answered a campaign.
    answered: bool,
    /// What was odd about the lease when it was last looked at.
    oddity: Option<Oddity>,
    /// The term whose cursors have been asked for, or are known.
    taken_over: Option<u64>,
    take_over_again: Option<Moment>,
    /// When the present leadership began.
    leading_since: Moment,
    /// Set while draining: the term, to be reported as drained.
    draining: Option<u64>,
    /// Who asked for the step-down.
    step_down: Vec<oneshot::Sender<Result<(), StepDownError>>>,
    /// What people have asked of it, as far as it is led here.
    control: control::Control,
    /// Its schedules made at run time, as far as it is led here.
    made: made::Made,
}

impl Engine {
    fn new(shared: Arc<Shared>, store: Arc<dyn Store>, bodies: Handle, kept: Kept) -> Self {
        let config = &shared.config;
        let now = config.clock.now();
        let group = |(gate, seen): (&Arc<Gate>, restart::Seen)| {
            let of_group = |unled: bool| {
                let jobs = config.jobs.iter().enumerate();
                let jobs = jobs.filter(move |(_, job)| job.group == *gate.group() && job.is_unled() == unled);
                jobs.map(|(index, _)| index).collect()
            };
            let preference = placement::preference(gate.group().as_str(), config.instance.as_str());
            // Nobody campaigns before the roster has let the instance in.
            let campaigning = kept.roster.enrolled && config.candidacy.has(gate.group());
            let mut election = Election::new(config.timing, config.drain, preference, campaigning, now);
            if kept.watch.is_wedged() {
                election.abandon(now, Lost::Wedged);
            }
            GroupState {
                gate: Arc::clone(gate),
                election,
                jobs: of_group(false),
                unled: ticks::Unled::new(of_group(true), now),
                known: seen.known,
                answered: seen.answered,
                oddity: seen.oddity,
                taken_over: None,
                take_over_again: None,
                leading_since: now,
                draining: None,
                step_down: Vec::new(),
                control: control::Control::default(),
                made: made::Made::default(),
            }
        };
        for gate in shared.gates.iter().filter(|gate| !config.candidacy.has(gate.group())) {
            gate.status().send_modify(|status| status.role = Role::Observer);
        }
        let groups: Vec<_> = shared.gates.iter().zip(kept.groups).map(group).collect();
        let mut group_of = vec![0; config.jobs.len()];
        for (index, group) in groups.iter().enumerate() {
            let jobs = group.jobs.iter().chain(&group.unled.jobs);
            jobs.for_each(|job| group_of[*job] = index);
        }
        Self {
            groups,
            jobs: jobs::Jobs::new(&config.jobs),
            group_of,
            planner: Planner::default(),
            planning: kept.planning,
            skew: kept.skew,
            ticks: ticks::Ticks::after(kept.last_claim),
            runs: runs::Runs::default(),
            places: places::Places::default(),
            lives: kept.lives,
            inspection: kept.inspection,
            roster: kept.roster,
            watch: kept.watch,
            link: link::Link::default(),
            stopping: None,
            ready: kept.ready,
            alive: Arc::new(()),
            shared,
            store,
            bodies,
            inbox: kept.inbox,
        }
    }

    /// Runs until the instance has stopped.
    async fn run(&mut self) {
        let clock = self.shared.config.clock.clone();
        let step = self.shared.config.timing.ttl() / 10;
        (0..self.groups.len()).for_each(|index| self.place(index));
        loop {
            self.turn(clock.now());
            if self.is_finished() {
                break;
            }
            let wake = self.next_wake();
            tokio::select! {
                biased;
                input = self.inbox.recv() => {
                    let Some(input) = input else { break };
                    self.take(input);
                    for _ in 0..INPUTS_AT_ONCE {
                        let Ok(input) = self.inbox.try_recv() else { break };
                        self.take(input);
                    }
                }
                // Questions to the store live on this thread too: whatever a wake-up in the past comes from, they go on.
                () = clock.sleep_until(wake, step) => tokio::task::yield_now().await,
            }
        }
    }

    /// Everything that time alone brings about.
    fn turn(&mut self, now: Moment) {
        self.inspection_turn(now);
        self.roster_turn(now);
        self.probes_turn(now);
        self.elections_turn(now);
        #[cfg(feature = "testing")]
        self.by_hand_turn(now);
        self.control_turn(now);
        self.made_turn(now);
        self.unled_turn(now);
        self.ticks_turn(now);
        self.runs_turn(now);
        self.lives_turn(now);
        self.drains_turn(now);
        self.stopping_turn(now);
        self.ready_turn(now);
        self.show_load();
        self.show_standing();
    }

    fn next_wake(&mut self) -> Moment {
        let now = self.now();
        let elections = self
            .groups
            .iter()
            .filter_map(|group| group.election.poll_timeout())
            .min();
        let take_overs = self.groups.iter().filter_map(|group| group.take_over_again).min();
        [
            elections,
            take_overs,
            self.inspection.next_wake(),
            self.roster_wake(now),
            self.watch.next_look(),
            self.ticks_wake(now),
            self.control_wake(),
            self.made_wake(now),
            self.unled_wake(),
            self.trusts_wake(),
            self.runs.next_wake(),
            self.lives.next_wake(),
            self.stopping_wake(now),
            self.ready.as_ref().map(|(_, by)| *by),
        ]
        .into_iter()
        .flatten()
        .min()
        .unwrap_or(now + Duration::from_secs(3600))
    }

    fn take(&mut self, input: Input) {
        let now = self.now();
        match input {
            Input::Campaigned(answers) => self.campaigned(now, answers),
            Input::Renewed {
                sent,
                answers,
                replaced,
                beaten,
                gone,
            } => {
                self.renewed(now, sent, answers);
                self.end_replaced(&replaced);
                self.beaten(now, sent, &beaten, &gone);
            }
            Input::Released { group, attempt, answer } => self.released(now, group, attempt, &answer),
            Input::TakenOver {
                group,
                term,
                sent,
                jobs,
                answer,
            } => self.taken_over(now, group, term, sent, jobs, answer),
            Input::Covered { group, term, answer } => self.covered(now, group, term, &answer),
            Input::Claimed { id, answers } => self.claimed(now, id, answers),
            Input::Settled { ends, answers } => self.settled(now, ends, answers),
            Input::Enrolled { sent, answer } => self.enrolled(now, sent, answer),
            Input::Inspected(answer) => self.inspected(now, answer),
            Input::Roster(answer) => self.roster_read(now, &answer),
            Input::Left => {
                if let Some(stopping) = &mut self.stopping {
                    stopping.left = true;
                }
            }
            Input::RunEnded { id, ending } => self.run_ended(id, ending),
            Input::LifeEnded { id, ending } => self.life_ended(now, id, ending),
            Input::Unanswerable(panic) => std::panic::resume_unwind(Box::new(panic)),
            Input::Probed(number) => self.probed(now, number),
            // Only wakes the drain's look, and that of the stop.
            Input::CallsIdle | Input::HooksIdle | Input::Forgotten => {}
            Input::Told { group, term } => {
                if let Some(index) = self.index_of(&group) {
                    self.groups[index].election.told_of_release(now, term);
                }
            }
            Input::Asked { group, term } => {
                if let Some(index) = self.index_of(&group) {
                    self.groups[index].election.told_of_request(now, term);
                }
            }
            Input::Controlled { group, number } => {
                if let Some(index) = self.index_of(&group) {
                    self.control_heard(index, number);
                }
            }
            Input::ControlRead { group, term, answer } => self.control_read(now, group, term, answer),
            Input::MadeRead {
                group,
                term,
                after,
                answer,
            } => self.made_read(now, group, term, after, answer),
            Input::Deaf(error) => self.deaf(&error),
            Input::Gap => self.groups.iter_mut().for_each(|group| group.election.look_again(now)),
            Input::Request(request) => self.request(now, request),
        }
    }

    fn index_of(&self, group: &str) -> Option<input::Group> {
        self.groups
            .iter()
            .position(|state| state.gate.group().as_str() == group)
    }

    fn now(&self) -> Moment {
        self.shared.config.clock.now()
    }

    /// Asks the store in a task of its own; the answer comes back as an input, and a panic as one of the engine's own: an answer
    /// that is waited for and never comes would be worse.
    fn ask<T: Send + 'static>(
        &self,
        question: impl Future<Output = T> + Send + 'static,
        answer: impl FnOnce(T) -> Input + Send + 'static,
    ) {
        let shared = Arc::clone(&self.shared);
        let alive = Arc::downgrade(&self.alive);
        tokio::spawn(self.shared.config.process.hold(async move {
            let asked = caught(async move { answer(question.await) }).await;
            // The questions of an engine that is gone are numbered like those of the next.
            if alive.strong_count() > 0 {
                shared.send(asked.unwrap_or_else(|panic| Input::Unanswerable(panics::text(panic))));
            }
        }));
    }

    /// Tells the starter once every group has had an answer, or when it has waited long enough.
    fn ready_turn(&mut self, now: Moment) {
        let Some((_, by)) = &self.ready else { return };
        let answered = self.roster.enrolled && self.groups.iter().all(|group| group.answered);
        if (answered || now >= *by)
            && let Some((ready, _)) = self.ready.take()
        {
            // The starter decides whether that is an error; the engine keeps trying.
            let verdict = match self.link.fault(self.roster.enrolled) {
                Some(error) => Err(Refused::Unreachable(error)),
                None if self.roster.enrolled => Ok(()),
                None => Err(Refused::Unreachable(StoreError::timed_out())),
            };
            let _ = ready.send(verdict);
        }
    }

    /// Whether anything of a group is under way here.
    fn is_busy(&self, index: input::Group) -> bool {
        let gate = &self.groups[index].gate;
        self.ticks.has_claims(index)
            || self.runs.holds_up(index)
            || self.lives.any_running(gate.group())
            || gate.calls() > 0
    }

    fn drains_turn(&mut self, now: Moment) {
        for index in 0..self.groups.len() {
            let Some(term) = self.groups[index].draining else {
                continue;
            };
            if !self.is_busy(index) {
                self.groups[index].draining = None;
                self.groups[index].election.drained(now, term);
                self.elections_turn(now);
            }
        }
    }
}

#[cfg(test)]
mod tests;

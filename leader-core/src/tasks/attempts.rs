//! The attempts of one worker, from the step that began them until their end was told.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustc_hash::FxBuildHasher;
use tokio::sync::{Notify, mpsc};

use super::endings::becomes;
use super::spec::Settings;
use super::trust::Trust;
use crate::clock::Moment;
use crate::job::outcome::Ran;
use crate::mutants::{Mutant, planted};
use crate::names::{QueueName, TaskName};
use crate::runtime::guarded::{Control, Ending};
use crate::store::tasks::{BeatReply, Lane, LaneRoom, Priority, Shard, TaskEnd};

/// An attempt is its fence, within its shard.
pub(super) type AttemptId = (Shard, u64);

/// One attempt.
#[derive(Debug)]
pub(super) struct Attempt {
    pub(super) key: String,
    pub(super) lane: Lane,
    pub(super) unique: Option<String>,
    pub(super) generation: u32,
    /// How many before it have failed.
    pub(super) failed: u32,
    pub(super) trust: Arc<Trust>,
    pub(super) control: Arc<Control>,
    /// When it was handed to the runtime of the bodies.
    pub(super) begun: Moment,
    /// From when on it was last heard of.
    pub(super) heard: Moment,
    /// How long its body may take, from its first poll.
    pub(super) may_take: Option<Duration>,
    /// When that is over, once it has begun.
    pub(super) timeout: Option<Moment>,
    /// Somebody wants the task to end.
    pub(super) cancelled: bool,
    /// Its body has ended, and the store does not know yet.
    pub(super) ended: bool,
}

#[derive(Debug, Default)]
struct State {
    all: HashMap<AttemptId, Attempt, FxBuildHasher>,
    /// Of those, bodies that have not ended, by name.
    bodies: BTreeMap<TaskName, u32>,
    running: usize,
    /// When something is to be done about one of them.
    look_at: Option<Moment>,
}

impl State {
    /// How many more of a task may run, of so many at once.
    fn left(&self, task: &TaskName, bound: usize) -> usize {
        bound.saturating_sub(self.bodies.get(task).copied().unwrap_or(0) as usize)
    }
}

/// What there is room for of one queue.
#[derive(Debug)]
pub(super) struct Room {
    /// In all.
    pub(super) most: usize,
    /// Of each lane.
    pub(super) lanes: Vec<LaneRoom>,
    /// Whether some task is at its bound: it is to be looked at when a body has ended.
    pub(super) held: bool,
}

/// How bodies of one shard ended: each shard is told by itself, so that one which takes nothing holds up no other.
#[derive(Debug)]
struct Reports {
    report: mpsc::UnboundedSender<(u64, Ending)>,
    reports: tokio::sync::Mutex<mpsc::UnboundedReceiver<(u64, Ending)>>,
}

impl Default for Reports {
    fn default() -> Self {
        let (report, reports) = mpsc::unbounded_channel();
        let reports = tokio::sync::Mutex::new(reports);
        Self { report, reports }
    }
}

/// The attempts of an instance.
#[derive(Debug)]
pub(crate) struct Attempts {
    state: Mutex<State>,
    most: usize,
    /// The tasks that are known here, and of which queue, with the most of each.
    known: Vec<(QueueName, TaskName, usize)>,
    /// The queues where all of them may wait.
    open: BTreeSet<QueueName>,
    /// How bodies ended.
    reports: BTreeMap<Shard, Reports>,
    /// Woken when there is room again.
    pub(super) room: Notify,
    /// Woken when something is to be done earlier than was known.
    pub(super) sooner: Notify,
}

impl Attempts {
    pub(super) fn new(settings: &Settings, shards: &[Shard]) -> Self {
        let known = settings.specs.values().map(|spec| {
            let most = spec.concurrency.map_or(usize::MAX, |most| most as usize);
            (spec.queue.clone(), spec.name.clone(), most)
        });
        Self {
            reports: shards.iter().map(|shard| (shard.clone(), Reports::default())).collect(),
            state: Mutex::default(),
            most: settings.concurrency,
            known: known.collect(),
            open: settings.open.clone(),
            room: Notify::new(),
            sooner: Notify::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it holds this.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.state().all.is_empty()
    }

    /// How much there is room for of a queue, those of high priority first. `turn` is which of the tasks of one priority comes first: none is
    /// always last.
    ///
    /// What has ended and is not told yet takes no room, unless it is much. `kept` places are somebody else's.
    pub(super) fn room(&self, queue: &QueueName, turn: usize, kept: usize) -> Room {
        let state = self.state();
        let most = self.free(&state).saturating_sub(kept);
        let mut room = Room {
            most,
            lanes: Vec::new(),
            held: false,
        };
        let is_open = self.open.contains(queue);
        let known: Vec<_> = self.known.iter().filter(|(of, ..)| is_open || of == queue).collect();
        for priority in Priority::ALL {
            for at in 0..known.len() {
                let (_, task, bound) = known[(at + turn) % known.len()];
                let left = state.left(task, *bound);
                room.held |= left == 0;
                if left.min(most) > 0 {
                    let (priority, task) = (*priority, task.clone());
                    room.lanes.push(LaneRoom {
                        lane: Lane { priority, task },
                        most: u32::try_from(left.min(most)).unwrap_or(u32::MAX),
                    });
                }
            }
        }
        room
    }

    fn free(&self, state: &State) -> usize {
        let untold = state.all.len() - state.running;
        let free = self.most.saturating_sub(state.running);
        free.min((3 * self.most).saturating_sub(untold))
    }

    /// The names of the tasks for which there is room beside so many places.
    pub(super) fn names(&self, kept: usize) -> Vec<TaskName> {
        let state = self.state();
        if self.free(&state) <= kept {
            return Vec::new();
        }
        let roomy = self
            .known
            .iter()
            .filter(|(_, task, bound)| state.left(task, *bound) > 0);
        roomy.map(|(_, task, _)| task.clone()).collect()
    }

    /// Takes new ones in.
    pub(super) fn begin(&self, attempts: impl IntoIterator<Item = (AttemptId, Attempt)>) {
        let mut state = self.state();
        for (id, attempt) in attempts {
            if !state.bodies.contains_key(&attempt.lane.task) {
                state.bodies.insert(attempt.lane.task.clone(), 0);
            }
            if let Some(bodies) = state.bodies.get_mut(&attempt.lane.task) {
                *bodies += 1;
            }
            state.running += 1;
            let at = attempt.trust.until();
            if state.look_at.is_none_or(|look_at| at < look_at) {
                state.look_at = Some(at);
                self.sooner.notify_one();
            }
            state.all.insert(id, attempt);
        }
    }

    /// Whether one of them is still here.
    pub(super) fn has(&self, id: &AttemptId) -> bool {
        self.state().all.contains_key(id)
    }

    /// A body has begun.
    pub(super) fn has_begun(&self, id: &AttemptId, now: Moment) {
        let mut state = self.state();
        let Some(attempt) = state.all.get_mut(id) else { return };
        let Some(may_take) = attempt.may_take else { return };
        let at = now + may_take;
        attempt.timeout = Some(at);
        if state.look_at.is_none_or(|look_at| at < look_at) {
            state.look_at = Some(at);
            self.sooner.notify_one();
        }
    }

    /// A body has ended.
    pub(super) fn report(&self, (shard, fence): AttemptId, ending: Ending) {
        if let Some(reports) = self.reports.get(&shard) {
            // The receiver lives beside it.
            let _ = reports.report.send((fence, ending));
        }
    }

    /// How bodies of a shard ended: at least one, and as many as there are up to so many.
    pub(super) async fn reported(&self, shard: &Shard, most: usize) -> Vec<(u64, Ending)> {
        let mut endings = Vec::new();
        if let Some(reports) = self.reports.get(shard) {
            reports.reports.lock().await.recv_many(&mut endings, most).await;
        }
        endings
    }

    /// Bodies of a shard have ended: what is told of them, in the order given. `pause` is how long a task waits after an attempt of it failed, or that it
    /// is not tried again.
    pub(super) fn ended(
        &self,
        shard: &Shard,
        endings: Vec<(u64, Ending)>,
        drains: bool,
        pause: impl Fn(&Attempt) -> Option<Duration>,
    ) -> Vec<TaskEnd> {
        let mut state = self.state();
        let State {
            all, bodies, running, ..
        } = &mut *state;
        let mut told = Vec::with_capacity(endings.len());
        for (fence, ending) in endings {
            let Some(attempt) = all.get_mut(&(shard.clone(), fence)) else {
                continue;
            };
            if !std::mem::replace(&mut attempt.ended, true) {
                *running -= 1;
                if let Some(bodies) = bodies.get_mut(&attempt.lane.task) {
                    *bodies -= 1;
                }
            }
            let how = becomes(attempt, ending, drains, &pause);
            told.push(TaskEnd {
                key: attempt.key.clone(),
                lane: attempt.lane.clone(),
                fence,
                unique: attempt.unique.clone(),
                generation: attempt.generation,
                how,
            });
        }
        drop(state);
        self.room.notify_one();
        told
    }

    /// The store knows their ends.
    pub(super) fn told(&self, shard: &Shard, fences: impl IntoIterator<Item = u64>) {
        let mut state = self.state();
        for fence in fences {
            state.all.remove(&(shard.clone(), fence));
        }
        drop(state);
        self.room.notify_one();
    }

    /// Those of a shard that were not heard of since, as they began.
    pub(super) fn unheard_since(&self, shard: &Shard, since: Moment) -> Vec<(String, u64)> {
        let state = self.state();
        let silent = state
            .all
            .iter()
            .filter(|((of, _), attempt)| of == shard && attempt.heard <= since && !planted(Mutant::TaskNoSignsOfLife));
        let mut silent: Vec<_> = silent
            .map(|((_, fence), attempt)| (attempt.key.clone(), *fence))
            .collect();
        // A map's order is no order.
        silent.sort_by_key(|(_, fence)| *fence);
        silent
    }

    /// Signs of life that were sent at `sent` were answered.
    pub(super) fn heard(
        &self,
        shard: &Shard,
        sent: Moment,
        until: Moment,
        replies: impl Iterator<Item = (u64, BeatReply)>,
    ) {
        let mut state = self.state();
        for (fence, reply) in replies {
            let Some(attempt) = state.all.get_mut(&(shard.clone(), fence)) else {
                continue;
            };
            match reply {
                BeatReply::Heard | BeatReply::Cancel => {
                    attempt.heard = sent;
                    attempt.trust.extend(until);
                    if reply == BeatReply::Cancel {
                        // Told once, it has until the next sign of life to end by itself.
                        if std::mem::replace(&mut attempt.cancelled, true) {
                            attempt.control.end(Ran::Cancelled);
                        }
                        attempt.trust.tell();
                    }
                }
                BeatReply::Gone => {
                    attempt.trust.end();
                    attempt.control.end(Ran::Cancelled);
                }
            }
        }
    }

    /// Nobody tells how they end any more.
    pub(super) fn end_all(&self) {
        for attempt in self.state().all.values() {
            attempt.trust.end();
            attempt.control.end(Ran::Cancelled);
        }
    }

    /// Does what is due: bodies that took too long, whose trust ends or has ended, and that the runtime has not begun in `patience`.
    /// Gives the attempts that will never begin, and when to look again.
    pub(super) fn look(
        &self,
        now: Moment,
        lead: Duration,
        patience: Duration,
        end_by: Option<Moment>,
    ) -> (Vec<AttemptId>, Option<Moment>) {
        let mut state = self.state();
        let mut unbegun = Vec::new();
        let mut next: Option<Moment> = None;
        for (id, attempt) in state.all.iter().filter(|(_, attempt)| !attempt.ended) {
            if end_by.is_some() {
                attempt.trust.tell();
            }
            let until = attempt.trust.until();
            if attempt.timeout.is_some_and(|at| now >= at) {
                attempt.control.end(Ran::TimedOut);
            }
            let over = now >= until && !planted(Mutant::TaskPolledPastTrust);
            if over || end_by.is_some_and(|by| now >= by) {
                attempt.control.end(Ran::Cancelled);
            } else if now >= until - lead {
                attempt.trust.tell();
            }
            let over = attempt.control.is_over() || now >= attempt.begun + patience;
            if !attempt.control.has_begun() && over && attempt.control.forbid() {
                unbegun.push(id.clone());
                continue;
            }
            let begins = (!attempt.control.has_begun()).then_some(attempt.begun + patience);
            let times = [attempt.timeout, Some(until - lead), Some(until), end_by, begins];
            let ahead = times.into_iter().flatten().filter(|at| *at > now).min();
            next = next.into_iter().chain(ahead).min();
        }
        unbegun.sort();
        state.look_at = next;
        (unbegun, next)
    }
}

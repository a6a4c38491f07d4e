//! Which ticks are due, in which order, and what each is to become.
//!
//! Pure: it is told what time it is. Ticks of a job are decided strictly in planned order; a job has one decision under way at a
//! time, and the next is made from the cursor that the store answered.

mod change;
mod covered;
mod gaps;
mod jitter;
mod paused;
mod plan;
mod tries;
mod unled;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::Schedule;
use super::blackout::Blackouts;
use super::missed::{DEFAULT_MAX_MISSED, Missed, Passed};
pub use change::Change;
pub use gaps::{Gap, Gaps, Why};
pub(super) use jitter::mixed;
pub use jitter::seed;
use paused::Paused;
use plan::Plan;

/// How late a tick may be and still simply run, unless the job says otherwise; never more than the distance to the next tick.
pub const DEFAULT_GRACE: Duration = Duration::from_secs(5);

/// The most ticks of one job that one decision covers.
const AT_ONCE: usize = 64;

/// How a job wants its ticks decided.
#[derive(Clone, Debug)]
pub struct Rule {
    /// When it is due.
    pub schedule: Schedule,
    /// How late a tick may be and still simply run.
    pub grace: Duration,
    /// What becomes of later ones.
    pub missed: Missed,
    /// The most of them that are run; the oldest go first.
    pub max_missed: u32,
    /// Older ones are not run.
    pub max_age: Option<Duration>,
    /// The most that a tick is due later than planned.
    pub jitter: Duration,
    /// What [`seed`] gives for the job's name: jobs of one schedule have offsets of their own.
    pub seed: u64,
    /// Whether a tick may have to be asked for again, which those after it must not overtake.
    pub one_at_a_time: bool,
    /// What its calendars cover: ticks that pass without a run.
    pub blackouts: Blackouts,
    /// When nobody could have decided its ticks.
    pub gaps: Gaps,
}

impl Rule {
    /// A schedule's, with what jobs get that say nothing more.
    #[must_use]
    pub fn new(schedule: Schedule) -> Self {
        Self {
            schedule,
            grace: DEFAULT_GRACE,
            missed: Missed::Latest,
            max_missed: DEFAULT_MAX_MISSED,
            max_age: None,
            jitter: Duration::ZERO,
            seed: 0,
            one_at_a_time: false,
            blackouts: Blackouts::default(),
            gaps: Gaps::default(),
        }
    }
}

/// One step of a decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The tick that the cursor moves to.
    pub tick: Timestamp,
    /// The cursor before it.
    pub cursor: Timestamp,
    /// What the tick is to become.
    pub kind: StepKind,
    /// What becomes of the ticks between the two, in order.
    pub passed: Vec<Passed>,
}

/// What a step's tick is to become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepKind {
    /// A run, unless an earlier one has not ended.
    Run,
    /// A run that is owed; the job's next decision waits for its end.
    Owed,
    /// A run of the tick that waits in the store, unless an earlier one has not ended.
    Waited,
    /// The last of the passed ones.
    Settle,
    /// No tick: the instant after which another schedule is in force.
    Adopt,
}

/// The plans of all jobs that this instance leads.
#[derive(Debug, Default)]
pub struct Planner {
    /// Each in a box: a map's nodes are half empty, and plans are large.
    plans: BTreeMap<usize, Box<Plan>>,
    /// When a plan wants a look, lazily: entries that no longer match their plan are skipped.
    wakes: BinaryHeap<Reverse<(Timestamp, usize)>>,
    /// How far the ticks of jobs no longer planned were decided here: a store that has lost its last writes knows less.
    decided: BTreeMap<usize, Timestamp>,
}

impl Planner {
    /// Begins to plan a job from its cursor, or from where it was [ended](Self::end) when that is later. What fell due from
    /// `late_from` until `now` is late, whatever the policy, and is run one tick after another.
    pub fn begin(&mut self, job: usize, rule: Rule, cursor: Timestamp, late_from: Option<Timestamp>, now: Timestamp) {
        let cursor = self.decided.get(&job).map_or(cursor, |decided| cursor.max(*decided));
        // One that is planned already is begun anew.
        let cursor = self.plans.get(&job).map_or(cursor, |plan| cursor.max(plan.cursor));
        let mut plan = Plan {
            rule,
            cursor,
            late_from,
            in_turn_until: late_from.map(|_| now),
            wake: None,
            held: false,
            waiting: None,
            blocked: false,
            idle: false,
            change: Change::No,
            paused: Paused::No,
        };
        plan.keep_what_is_late(now);
        self.plans.insert(job, Box::new(plan));
        self.await_next(job);
    }

    /// Plans a job no longer: its leadership has ended, and another will move the cursor.
    pub fn end(&mut self, job: usize) {
        if let Some(plan) = self.plans.remove(&job) {
            self.decided.insert(job, plan.cursor);
        }
    }

    /// When [`due`](Self::due) is worth calling next.
    pub fn next_wake(&mut self) -> Option<Timestamp> {
        while let Some(Reverse((at, job))) = self.wakes.peek() {
            if self.plans.get(job).is_some_and(|plan| plan.wake == Some(*at)) {
                return Some(*at);
            }
            self.wakes.pop();
        }
        None
    }

    /// The decisions due now, by job; each job is then busy until [`answered`](Self::answered). A job that is `held` is
    /// decided when it is [released](Self::release).
    pub fn due(&mut self, now: Timestamp, mut held: impl FnMut(usize) -> bool) -> Vec<(usize, Vec<Step>)> {
        let mut all = Vec::new();
        while let Some(at) = self.next_wake() {
            // A timer that fires early finds nothing due: the planned tick is compared with the time, never a timer.
            if at > now {
                break;
            }
            let Some(Reverse((_, job))) = self.wakes.pop() else {
                break;
            };
            let Some(plan) = self.plans.get_mut(&job) else { continue };
            plan.wake = None;
            plan.paused = Paused::No;
            if let Some(step) = plan.change_over(now) {
                all.push((job, vec![step]));
                continue;
            }
            plan.held = held(job);
            if plan.held {
                continue;
            }
            plan.blocked = false;
            let mut steps = plan.decide(now);
            if steps.is_empty() {
                steps.extend(plan.waited(now));
            }
            if steps.is_empty() {
                self.await_due(job);
            } else {
                all.push((job, steps));
            }
        }
        all
    }

    /// The store's cursor of a job is now here; its next decision is made when its next tick is due.
    pub fn answered(&mut self, job: usize, cursor: Timestamp) {
        if let Some(plan) = self.plans.get_mut(&job) {
            plan.cursor = plan.cursor.max(cursor);
        }
        self.await_next(job);
    }

    /// An owed run is under way, or must wait for an earlier one: the job rests until [`resume`](Self::resume).
    pub fn rest(&mut self, job: usize, cursor: Timestamp) {
        if let Some(plan) = self.plans.get_mut(&job) {
            plan.cursor = plan.cursor.max(cursor);
            // What falls due meanwhile queues behind as late.
            plan.late_from = plan.late_from.or_else(|| plan.rule.schedule.next(plan.cursor));
            plan.wake = None;
        }
    }

    /// A job that is held waits for no fault of its own: what would simply run now, and what falls due until it is
    /// [released](Self::release), is late then, however old. Gives when the first of its ticks was due, the one that waits in the store
    /// included.
    pub fn queue(&mut self, job: usize, now: Timestamp) -> Timestamp {
        let Some(plan) = self.plans.get_mut(&job) else {
            return now;
        };
        let newest = plan.newest_open(now);
        let late = newest.and_then(|newest| plan.first_late(newest, now));
        plan.late_from = Some(late.map_or(now, |tick| plan.rule.due(tick)));
        let waiting = plan.waiting.map(|(tick, _)| tick);
        let first = waiting.or_else(|| plan.rule.next_open(plan.cursor));
        first.map_or(now, |tick| plan.rule.due(tick))
    }

    /// The tick waits in the store until an earlier run has ended: looks at `at` whether it has, or when one [ends](Self::ended).
    pub fn wait(&mut self, job: usize, tick: Timestamp, at: Timestamp) {
        if let Some(plan) = self.plans.get_mut(&job) {
            plan.waiting = Some((tick, at));
        }
        self.await_next(job);
    }

    /// The tick that waited, and does no longer.
    pub fn waits_no_longer(&mut self, job: usize) -> Option<Timestamp> {
        let (tick, _) = self.plans.get_mut(&job)?.waiting.take()?;
        Some(tick)
    }

    /// Asks for a new decision at `at`, or as soon as a run of the job [ends](Self::ended).
    pub fn look_when_ended(&mut self, job: usize, at: Timestamp) {
        if let Some(plan) = self.plans.get_mut(&job) {
            plan.blocked = true;
        }
        self.look_at(job, at);
    }

    /// A run of the job has ended: whatever waits for that is looked at.
    pub fn ended(&mut self, job: usize, now: Timestamp) {
        let Some(plan) = self.plans.get_mut(&job) else { return };
        if let Some((_, at)) = &mut plan.waiting {
            *at = (*at).min(now);
            // A decision under way ends with a look of its own.
            if plan.wake.is_some() {
                self.await_next(job);
            }
        } else if std::mem::take(&mut plan.blocked) && plan.wake.is_some() {
            self.look_at(job, now);
        }
    }

    /// The reason to hold a job is gone.
    pub fn release(&mut self, job: usize) {
        if self
            .plans
            .get_mut(&job)
            .is_some_and(|plan| std::mem::take(&mut plan.held))
        {
            self.await_next(job);
        }
    }

    /// The reason for a rest is gone.
    pub fn resume(&mut self, job: usize) {
        self.await_next(job);
    }

    /// The decision under way could not be carried out for so long that it is made anew, by age alone.
    pub fn again(&mut self, job: usize) {
        if let Some(plan) = self.plans.get_mut(&job) {
            plan.late_from = None;
        }
        self.await_next(job);
    }

    /// Asks for a new decision at `at`.
    pub fn look_at(&mut self, job: usize, at: Timestamp) {
        if let Some(plan) = self.plans.get_mut(&job) {
            plan.idle = false;
            plan.wake = plan.not_before(at);
            self.wakes.extend(plan.wake.map(|at| Reverse((at, job))));
        }
    }

    fn await_next(&mut self, job: usize) {
        match self.plans.get(&job) {
            // Whether that can be done yet is seen at once; a cursor in the future is waited for.
            Some(plan) if plan.change != Change::No => self.look_at(job, plan.cursor),
            _ => self.await_due(job),
        }
    }

    fn await_due(&mut self, job: usize) {
        let Some(plan) = self.plans.get_mut(&job) else { return };
        let due = plan.rule.schedule.next(plan.cursor).map(|next| plan.rule.due(next));
        let waiting = plan.waiting.map(|(_, at)| at);
        let next = due.into_iter().chain(waiting).min();
        plan.idle = next.is_none();
        plan.wake = None;
        if let Some(at) = next {
            self.look_at(job, at);
        }
    }
}

/// The tick before a tick.
fn before(schedule: &Schedule, tick: Timestamp) -> Option<Timestamp> {
    schedule.prev(tick.checked_sub(SignedDuration::from_nanos(1)).ok()?)
}

#[cfg(test)]
mod tests;

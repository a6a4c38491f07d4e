//! Which ticks are due, in which order, and what each is to become.
//!
//! Pure: it is told what time it is. Ticks of a job are decided strictly in planned order; a job has one decision under way at a
//! time, and the next is made from the cursor that the store answered.

mod jitter;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::Schedule;
use super::missed::{Missed, MissedReason, Passed};
pub use jitter::seed;

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
    /// The most that a tick is due later than planned.
    pub jitter: Duration,
    /// What [`seed`] gives for the job's name: jobs of one schedule have offsets of their own.
    pub seed: u64,
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
    /// What becomes of the ticks between the two.
    pub passed: Option<Passed>,
}

/// What a step's tick is to become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepKind {
    /// A run, unless an earlier one has not ended.
    Run,
    /// A run that is owed; the job's next decision waits for its end.
    Owed,
    /// The last of the passed ones.
    Settle,
}

/// The plans of all jobs that this instance leads.
#[derive(Debug, Default)]
pub struct Planner {
    plans: BTreeMap<usize, Plan>,
    /// When a plan wants a look, lazily: entries that no longer match their plan are skipped.
    wakes: BinaryHeap<Reverse<(Timestamp, usize)>>,
    /// How far the ticks of jobs no longer planned were decided here: a store that has lost its last writes knows less.
    decided: BTreeMap<usize, Timestamp>,
}

#[derive(Debug)]
struct Plan {
    rule: Rule,
    cursor: Timestamp,
    /// Ticks that are due from here on are late, however old.
    late_from: Option<Timestamp>,
    /// Late ticks that were due up to here are run one after another: nobody could have run them in time.
    in_turn_until: Option<Timestamp>,
    wake: Option<Timestamp>,
    /// Due, and not to be decided yet.
    held: bool,
}

impl Planner {
    /// Begins to plan a job from its cursor, or from where it was [ended](Self::end) when that is later. What fell due from
    /// `late_from` until `now` is late, whatever the policy, and is run one tick after another.
    pub fn begin(&mut self, job: usize, rule: Rule, cursor: Timestamp, late_from: Option<Timestamp>, now: Timestamp) {
        let cursor = self.decided.get(&job).map_or(cursor, |decided| cursor.max(*decided));
        let plan = Plan {
            rule,
            cursor,
            late_from,
            in_turn_until: late_from.map(|_| now),
            wake: None,
            held: false,
        };
        self.plans.insert(job, plan);
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
            plan.held = held(job);
            if plan.held {
                continue;
            }
            let steps = plan.decide(now);
            if steps.is_empty() {
                self.await_next(job);
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
    /// [released](Self::release), is late then, however old. Gives when the first of its ticks was due.
    pub fn wait(&mut self, job: usize, now: Timestamp) -> Timestamp {
        let Some(plan) = self.plans.get_mut(&job) else {
            return now;
        };
        let newest = plan.rule.newest_due(now).filter(|tick| *tick > plan.cursor);
        let late = newest.and_then(|newest| plan.first_late(newest, now));
        plan.late_from = Some(late.map_or(now, |tick| plan.rule.due(tick)));
        let first = plan.rule.schedule.next(plan.cursor);
        first.map_or(now, |tick| plan.rule.due(tick))
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
            plan.wake = Some(at);
            self.wakes.push(Reverse((at, job)));
        }
    }

    fn await_next(&mut self, job: usize) {
        let Some(plan) = self.plans.get_mut(&job) else { return };
        match plan.rule.schedule.next(plan.cursor) {
            Some(next) => {
                let due = plan.rule.due(next);
                self.look_at(job, due);
            }
            None => plan.wake = None,
        }
    }
}

impl Plan {
    /// What is to become of every tick after the cursor that is due, in order.
    fn decide(&mut self, now: Timestamp) -> Vec<Step> {
        let schedule = &self.rule.schedule;
        let Some(newest) = self.rule.newest_due(now).filter(|tick| *tick > self.cursor) else {
            self.late_from = None;
            return Vec::new();
        };
        let first_late = self.first_late(newest, now);
        let last_missed = match first_late {
            Some(late) => before(schedule, late),
            None => Some(newest),
        };
        let mut steps = Vec::new();
        let mut cursor = self.cursor;
        let mut passed = None;
        if let Some(last) = last_missed.filter(|tick| *tick > self.cursor) {
            match self.rule.missed {
                Missed::Skip => passed = self.passed(MissedReason::Skipped, cursor, last),
                Missed::Latest => {
                    let coalesced = before(schedule, last).filter(|tick| *tick > cursor);
                    let passed = coalesced.and_then(|tick| self.passed(MissedReason::Coalesced, cursor, tick));
                    // Later ticks wait for the end of the owed run, and are late then.
                    self.late_from = first_late.or_else(|| schedule.next(last));
                    return vec![Step {
                        tick: last,
                        cursor,
                        kind: StepKind::Owed,
                        passed,
                    }];
                }
            }
            if first_late.is_none() {
                return vec![Step {
                    tick: last,
                    cursor,
                    kind: StepKind::Settle,
                    passed,
                }];
            }
        }
        let in_turn = |tick: &Timestamp| self.in_turn_until.is_some_and(|until| self.rule.due(*tick) <= until);
        if let Some(tick) = first_late.filter(in_turn) {
            self.late_from = schedule.next(tick);
            return vec![Step {
                tick,
                cursor,
                kind: StepKind::Owed,
                passed,
            }];
        }
        let mut tick = first_late;
        while let Some(at) = tick.filter(|at| *at <= newest) {
            if steps.len() == AT_ONCE {
                // The rest is decided from the cursor that the store answers, and is as late as these.
                self.late_from = Some(at);
                return steps;
            }
            steps.push(Step {
                tick: at,
                cursor,
                kind: StepKind::Run,
                passed: passed.take(),
            });
            cursor = at;
            tick = schedule.next(at);
        }
        self.late_from = None;
        steps
    }

    /// The first tick after the cursor that simply runs.
    ///
    /// Within `grace`, and never past the distance to the next tick: so by age alone only the newest can be late.
    fn first_late(&self, newest: Timestamp, now: Timestamp) -> Option<Timestamp> {
        let after_drain = self.late_from.and_then(|from| {
            let first = self.rule.first_due(from)?;
            let first = if first > self.cursor {
                first
            } else {
                self.rule.schedule.next(self.cursor)?
            };
            (first <= newest).then_some(first)
        });
        let by_age = self.rule.is_in_time(newest, now).then_some(newest);
        match (after_drain, by_age) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    fn passed(&self, reason: MissedReason, cursor: Timestamp, last: Timestamp) -> Option<Passed> {
        let schedule = &self.rule.schedule;
        Some(Passed {
            reason,
            first: schedule.next(cursor)?,
            last,
            count: schedule.count(cursor, last),
        })
    }
}

/// The tick before a tick.
fn before(schedule: &Schedule, tick: Timestamp) -> Option<Timestamp> {
    schedule.prev(tick.checked_sub(SignedDuration::from_nanos(1)).ok()?)
}

#[cfg(test)]
mod tests;

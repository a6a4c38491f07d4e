//! The plan of one job: what is to become of its ticks.

use jiff::Timestamp;

use super::paused::Paused;
use super::{AT_ONCE, Change, Rule, Step, StepKind};
use crate::mutants::{Mutant, planted};
use crate::schedule::Schedule;
use crate::schedule::blackout::just_before;
use crate::schedule::missed::{Missed, MissedReason, Passed, PassedAs};

#[derive(Debug)]
pub(super) struct Plan {
    pub(super) rule: Rule,
    pub(super) cursor: Timestamp,
    /// Ticks that are due from here on are late, however old.
    pub(super) late_from: Option<Timestamp>,
    /// Late ticks that were due up to here are run one after another: nobody could have run them in time.
    pub(super) in_turn_until: Option<Timestamp>,
    pub(super) wake: Option<Timestamp>,
    /// Due, and not to be decided yet.
    pub(super) held: bool,
    /// The tick that waits in the store for an earlier run, and when to look whether that has ended.
    pub(super) waiting: Option<(Timestamp, Timestamp)>,
    /// A run that ends is reason to look at once.
    pub(super) blocked: bool,
    /// There is no tick any more.
    pub(super) idle: bool,
    /// Whether another schedule is to be brought into force.
    pub(super) change: Change,
    pub(super) paused: Paused,
}

impl Plan {
    /// The look at the tick that waits, when it is time for that.
    pub(super) fn waited(&self, now: Timestamp) -> Option<Step> {
        let (tick, at) = self.waiting?;
        let (kind, cursor, passed) = (StepKind::Waited, self.cursor, Vec::new());
        (at <= now).then_some(Step {
            tick,
            cursor,
            kind,
            passed,
        })
    }

    /// The newest tick after the cursor that is due and that no calendar covers.
    pub(super) fn newest_open(&self, now: Timestamp) -> Option<Timestamp> {
        let newest = self.rule.prev_open(self.rule.newest_due(now)?);
        newest.filter(|tick| *tick > self.cursor)
    }

    /// What is to become of every tick after the cursor that is due, in order.
    pub(super) fn decide(&mut self, now: Timestamp) -> Vec<Step> {
        let mut steps = self.decide_open(now);
        if planted(Mutant::NothingIsRun) {
            steps.iter_mut().for_each(miss);
        }
        if self.rule.decides_all() {
            return steps;
        }
        let newest = self.rule.newest_due(now);
        if let Some(tick) = newest.filter(|tick| *tick > self.cursor && steps.is_empty()) {
            // All that is due is covered.
            steps.push(Step {
                tick,
                cursor: self.cursor,
                kind: StepKind::Settle,
                passed: Vec::new(),
            });
        }
        for step in &mut steps {
            // With the covered ones among them, in their places.
            let (mut cursor, mut spans) = (step.cursor, Vec::new());
            for span in &step.passed {
                self.rule.spans(cursor, span.last, Some(span.reason), &mut spans);
                cursor = span.last;
            }
            // From here to a run's tick, or to the last of what passed, no tick is open.
            let last = if step.kind == StepKind::Settle {
                step.tick
            } else {
                just_before(step.tick)
            };
            self.rule.spans(cursor, last, None, &mut spans);
            step.passed = spans;
        }
        steps
    }

    /// What is to become of every tick that no calendar covers.
    fn decide_open(&mut self, now: Timestamp) -> Vec<Step> {
        let schedule = &self.rule.schedule;
        let Some(newest) = self.newest_open(now) else {
            self.late_from = None;
            return Vec::new();
        };
        let first_late = self.first_late(newest, now);
        let last_missed = match first_late {
            Some(late) => self.rule.before_open(late),
            None => Some(newest),
        };
        let mut passed = Vec::new();
        if let Some(last) = last_missed.filter(|tick| *tick > self.cursor) {
            let owed = self.catch_up(last, now, &mut passed);
            if owed.is_some() {
                // Later ticks wait for the end of the owed runs, and are late then.
                self.late_from = first_late.or_else(|| schedule.next(last));
                if self.rule.missed == Missed::All {
                    self.in_turn_until = Some(now);
                }
            }
            if let Some((tick, kind)) = owed
                .map(|tick| (tick, StepKind::Owed))
                .or_else(|| first_late.is_none().then_some((last, StepKind::Settle)))
            {
                let cursor = self.cursor;
                return vec![Step {
                    tick,
                    cursor,
                    kind,
                    passed,
                }];
            }
        }
        let mut steps = Vec::new();
        let mut cursor = self.cursor;
        let in_turn = |tick: &Timestamp| {
            let since_take_over = self.in_turn_until.is_some_and(|until| self.rule.due(*tick) <= until);
            // Two that jitter has brought so near to each other that both are in time.
            since_take_over || (self.late_from.is_none() && *tick < newest)
        };
        if let Some(tick) = first_late.filter(in_turn) {
            self.late_from = schedule.next(tick);
            return vec![Step {
                tick,
                cursor,
                kind: StepKind::Owed,
                passed,
            }];
        }
        let most = if self.rule.one_at_a_time { 1 } else { AT_ONCE };
        let mut tick = first_late;
        while let Some(at) = tick.filter(|at| *at <= newest) {
            if steps.len() == most {
                // The rest is decided from the cursor that the store answers, and is as late as these; so is one that has to be asked
                // for again.
                self.late_from = if most == 1 { first_late } else { Some(at) };
                return steps;
            }
            steps.push(Step {
                tick: at,
                cursor,
                kind: StepKind::Run,
                passed: std::mem::take(&mut passed),
            });
            cursor = at;
            tick = self.rule.next_open(at);
        }
        self.late_from = None;
        steps
    }

    /// The first tick after the cursor that simply runs.
    ///
    /// Within `grace`, and never past the distance to the next tick: so by age alone only the newest can be late, unless jitter has
    /// brought it nearer to those before it.
    pub(super) fn first_late(&self, newest: Timestamp, now: Timestamp) -> Option<Timestamp> {
        let after_drain = self.late_from.and_then(|from| {
            let first = self.rule.first_due(from)?;
            // The first from there on, and after the cursor, that is open.
            let first = self.rule.next_open(just_before(first).max(self.cursor))?;
            (first <= newest).then_some(first)
        });
        let in_time = |tick: &Timestamp| *tick > self.cursor && self.rule.is_in_time(*tick, now);
        let earlier = |tick: &Timestamp| {
            let near = !self.rule.jitter.is_zero();
            near.then(|| self.rule.before_open(*tick)).flatten().filter(in_time)
        };
        let by_age = std::iter::successors(Some(newest).filter(in_time), earlier).last();
        match (after_drain, by_age) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// What the policy makes of the missed ticks up to `last`: those that pass, in order, and the first that is owed.
    fn catch_up(&self, last: Timestamp, now: Timestamp, passed: &mut Vec<Passed>) -> Option<Timestamp> {
        let Rule {
            schedule, max_missed, ..
        } = &self.rule;
        let mut cursor = self.cursor;
        let mut up_to = |until: Option<Timestamp>, reason| {
            if let Some(until) = until.filter(|until| *until > cursor) {
                passed.extend(pass(schedule, reason, cursor, until));
                cursor = until;
            }
            cursor
        };
        if self.rule.missed == Missed::Skip {
            up_to(Some(last), MissedReason::Skipped);
            return None;
        }
        let too_old = self.rule.newest_too_old(now).map(|tick| tick.min(last));
        let cursor = up_to(too_old, MissedReason::TooOld);
        if cursor == last {
            return None;
        }
        let (reason, most) = match self.rule.missed {
            Missed::All if !planted(Mutant::MissedForgotten) => (MissedReason::OverLimit, *max_missed),
            _ => (MissedReason::Coalesced, 1),
        };
        if most == 0 {
            up_to(Some(last), reason);
            return None;
        }
        let first = (1..most).try_fold(last, |tick, _| {
            self.rule.before_open(tick).filter(|tick| *tick > cursor)
        });
        let cursor = up_to(first.and_then(|first| self.rule.before_open(first)), reason);
        self.rule.next_open(cursor)
    }
}

/// For [`Mutant::NothingIsRun`].
fn miss(step: &mut Step) {
    if matches!(step.kind, StepKind::Run | StepKind::Owed) {
        step.kind = StepKind::Settle;
        step.passed.push(Passed {
            reason: PassedAs::Missed(MissedReason::Skipped),
            first: step.tick,
            last: step.tick,
            count: 1,
        });
    }
}

/// The ticks after `cursor` and up to `last`.
fn pass(schedule: &Schedule, reason: MissedReason, cursor: Timestamp, last: Timestamp) -> Option<Passed> {
    Some(Passed {
        reason: PassedAs::Missed(reason),
        first: schedule.next(cursor)?,
        last,
        count: schedule.count(cursor, last),
    })
}

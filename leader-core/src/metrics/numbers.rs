//! What is counted, from events and measurements: no IO, and no clock but what it is told.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::histogram::{Histogram, LONG, SHORT};
use super::measured::{Measured, MeteredJob, RenewalOutcome, TaskResult, Waiting};
use crate::election::Lost;
use crate::event::{Event, TaskNews};
use crate::job::outcome::{Outcome, Ran};
use crate::job::tick::Origin;
use crate::names::{GroupName, JobName, QueueName};
use crate::schedule::planner::Rule;

/// How many jobs made at run time are kept in mind, beside those that there are: runs of one that is gone may still end.
const HANDLED: usize = 10_000;

/// All numbers of one instance.
#[derive(Clone, Debug, Default)]
pub(crate) struct Numbers {
    pub(super) groups: BTreeMap<GroupName, OfGroup>,
    pub(super) jobs: BTreeMap<JobName, OfJob>,
    pub(super) queues: BTreeMap<QueueName, OfQueue>,
    pub(super) operations: BTreeMap<&'static str, OfOperation>,
    /// The handlers of jobs made at run time, whose names are as many as somebody makes: they are counted together.
    handlers: BTreeMap<JobName, JobName>,
    /// Results of runs, and of tasks, that were another's by then.
    pub(super) fenced_runs: u64,
    pub(super) fenced_tasks: u64,
}

#[derive(Clone, Debug)]
pub(super) struct OfGroup {
    pub(super) acquired: u64,
    pub(super) lost: BTreeMap<Lost, u64>,
    pub(super) renewals: BTreeMap<RenewalOutcome, u64>,
    pub(super) renewal_failures: u64,
    pub(super) leads: bool,
    pub(super) term: u64,
    pub(super) renew_seconds: Histogram,
    /// When the lease ends.
    pub(super) expiry: Option<Timestamp>,
    pub(super) paused: bool,
}

#[derive(Clone, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(super) struct OfJob {
    pub(super) group: GroupName,
    /// When its own ticks are due.
    rule: Option<Arc<Rule>>,
    pub(super) has_ticks: bool,
    /// Whether its ticks are its leader's.
    led: bool,
    pub(super) outcomes: BTreeMap<Outcome, u64>,
    pub(super) not_leader: u64,
    /// Up to when ticks that passed without this instance leading are counted, from when it first knew the fleet's time.
    passed: Option<Timestamp>,
    pub(super) retries: u64,
    pub(super) run_seconds: Histogram,
    pub(super) lag: Histogram,
    pub(super) last_success: Option<Timestamp>,
    pub(super) next: Option<Timestamp>,
    next_known: bool,
    pub(super) paused: bool,
    pub(super) running: u64,
}

#[derive(Clone, Debug)]
pub(super) struct OfQueue {
    pub(super) enqueued: u64,
    pub(super) dispatched: u64,
    pub(super) completed: BTreeMap<TaskResult, u64>,
    pub(super) retries: u64,
    pub(super) expired: u64,
    pub(super) dispatch_lag: Histogram,
    /// What the dispatchers here know of each shard.
    pub(super) waiting: BTreeMap<u32, Waiting>,
}

#[derive(Clone, Debug)]
pub(super) struct OfOperation {
    pub(super) errors: u64,
    pub(super) seconds: Histogram,
}

impl Numbers {
    pub(super) fn new(groups: &[GroupName], jobs: Vec<MeteredJob>, queues: Vec<QueueName>) -> Self {
        let group = |name: &GroupName| (name.clone(), OfGroup::new());
        let job = |job: MeteredJob| (job.name.clone(), OfJob::new(job));
        let operation = |op: &&'static str| (*op, OfOperation::new());
        Self {
            groups: groups.iter().map(group).collect(),
            jobs: jobs.into_iter().map(job).collect(),
            queues: queues.into_iter().map(|name| (name, OfQueue::new())).collect(),
            operations: super::measured::OPERATIONS.iter().map(operation).collect(),
            ..Self::default()
        }
    }

    /// Counts an event, which is told at `now`: by the fleet's time where that is known, and by the machine's otherwise.
    pub(super) fn hear(&mut self, event: &Event, now: Timestamp, fleet: bool) {
        match event {
            Event::Elected { group, term } => {
                if fleet {
                    self.pass(group, now, false);
                }
                if let Some(of) = self.groups.get_mut(group) {
                    of.acquired += 1;
                    of.leads = true;
                    of.term = of.term.max(*term);
                }
            }
            Event::Lost { group, reason, .. } => {
                if fleet {
                    self.pass(group, now, true);
                }
                if let Some(of) = self.groups.get_mut(group) {
                    *of.lost.entry(*reason).or_default() += 1;
                    of.leads = false;
                    of.expiry = None;
                    of.paused = false;
                }
                // The next leader tells of them.
                let of_group = self.jobs.values_mut().filter(|of| of.group == *group);
                of_group.for_each(|of| of.paused = false);
            }
            Event::RenewalFailed { group, .. } => {
                if let Some(of) = self.groups.get_mut(group) {
                    of.renewal_failures += 1;
                }
            }
            Event::RunStarted {
                job,
                scheduled_at,
                origin,
                attempt,
                ..
            } => {
                if let Some(of) = self.job(job) {
                    of.running += 1;
                    // One made at run time is not the handler's only schedule, but is due as planned.
                    if *origin == Origin::Schedule && *attempt == 1 {
                        let due = of.rule.as_ref().map_or(*scheduled_at, |rule| rule.due(*scheduled_at));
                        of.lag
                            .note(Duration::try_from(now.duration_since(due)).unwrap_or_default());
                    }
                }
            }
            Event::RunFailed { job, .. } => {
                if let Some(of) = self.job(job) {
                    of.retries += 1;
                }
            }
            Event::Decided {
                job, count, outcome, ..
            } => {
                self.fenced_runs += u64::from(*outcome == Outcome::Fenced);
                if let Some(of) = self.job(job) {
                    *of.outcomes.entry(*outcome).or_default() += count;
                    if *outcome == Outcome::Ran(Ran::Ok) {
                        of.last_success = Some(now);
                    }
                }
            }
            Event::Paused { group, pause } => self.pause(group, pause.job.as_ref(), true),
            Event::Resumed { group, job, .. } => self.pause(group, job.as_ref(), false),
            Event::Tasks(TaskNews::Dispatched { queue, count, lag, .. }) => {
                if let Some(of) = self.queues.get_mut(queue) {
                    of.dispatched += u64::from(*count);
                    of.dispatch_lag.note(Duration::try_from(*lag).unwrap_or_default());
                }
            }
            Event::Tasks(TaskNews::Refused { .. }) => self.fenced_tasks += 1,
            _ => {}
        }
    }

    /// These jobs made at run time are run here now, each by a handler.
    pub(super) fn know(&mut self, made: impl Iterator<Item = (JobName, JobName)>) {
        let made: Vec<_> = made.collect();
        if self.handlers.len() > HANDLED {
            let known: BTreeSet<_> = made.iter().map(|(name, _)| name).collect();
            self.handlers.retain(|name, _| known.contains(name));
        }
        self.handlers.extend(made);
    }

    fn job(&mut self, name: &JobName) -> Option<&mut OfJob> {
        self.jobs.get_mut(self.handlers.get(name).unwrap_or(name))
    }

    /// The fleet's time is known from now on.
    pub(super) fn begin(&mut self, now: Timestamp) {
        self.jobs.values_mut().for_each(|of| of.pass(now, true));
    }

    /// Ticks of a group's jobs that have passed while this instance did not lead it, up to now; or did, and none of them counts.
    fn pass(&mut self, group: &GroupName, now: Timestamp, led: bool) {
        for of in self.jobs.values_mut().filter(|of| of.group == *group) {
            of.pass(now, led);
        }
    }

    fn pause(&mut self, group: &GroupName, job: Option<&JobName>, paused: bool) {
        match job {
            Some(job) => {
                if let Some(of) = self.job(job) {
                    of.paused = paused;
                }
            }
            None => {
                if let Some(of) = self.groups.get_mut(group) {
                    of.paused = paused;
                }
            }
        }
    }

    pub(super) fn measure(&mut self, measured: Measured<'_>) {
        match measured {
            Measured::Renewal {
                group,
                outcome,
                took,
                expiry,
            } => {
                if let Some(of) = self.groups.get_mut(group) {
                    *of.renewals.entry(outcome).or_default() += 1;
                    of.renew_seconds.note(took);
                    if of.leads && expiry.is_some() {
                        of.expiry = expiry;
                    }
                }
            }
            Measured::RunEnded { job, took } => {
                if let Some(of) = self.job(job) {
                    of.running = of.running.saturating_sub(1);
                    of.run_seconds.note(took);
                }
            }
            Measured::Operation { op, took, failed } => {
                let of = self.operations.entry(op).or_insert_with(OfOperation::new);
                of.errors += u64::from(failed);
                of.seconds.note(took);
            }
            Measured::Enqueued { queue, count } => {
                if let Some(of) = self.queues.get_mut(queue) {
                    of.enqueued += count;
                }
            }
            Measured::TaskEnded { queue, result, count } => {
                if let Some(of) = self.queues.get_mut(queue) {
                    *of.completed.entry(result).or_default() += count;
                }
            }
            Measured::TaskRetried { queue, count } => {
                if let Some(of) = self.queues.get_mut(queue) {
                    of.retries += count;
                }
            }
            Measured::TaskLost { queue, dead } => {
                if let Some(of) = self.queues.get_mut(queue) {
                    of.expired += 1;
                    *of.completed.entry(TaskResult::Dead).or_default() += u64::from(dead);
                }
            }
            Measured::Waiting { queue, shard, waiting } => {
                if let Some(of) = self.queues.get_mut(queue) {
                    match waiting {
                        Some(waiting) => of.waiting.insert(shard, waiting),
                        None => of.waiting.remove(&shard),
                    };
                }
            }
        }
    }

    /// A term was seen, be it another instance's.
    pub(crate) fn see(&mut self, group: &GroupName, term: u64) {
        if let Some(of) = self.groups.get_mut(group) {
            of.term = of.term.max(term);
        }
    }

    /// Brings up to date what time alone has changed.
    pub(super) fn look(&mut self, now: Timestamp, fleet: bool) {
        for of in self.jobs.values_mut() {
            let leads = self.groups.get(&of.group).is_some_and(|group| group.leads);
            if fleet {
                of.pass(now, leads);
            }
            if !of.next_known || of.next.is_some_and(|next| next <= now) {
                of.next = of.rule.as_ref().and_then(|rule| rule.schedule.next(now));
                of.next_known = true;
            }
        }
    }
}

impl OfGroup {
    fn new() -> Self {
        Self {
            acquired: 0,
            lost: BTreeMap::new(),
            renewals: BTreeMap::new(),
            renewal_failures: 0,
            leads: false,
            term: 0,
            renew_seconds: Histogram::new(SHORT),
            expiry: None,
            paused: false,
        }
    }
}

impl OfJob {
    fn new(job: MeteredJob) -> Self {
        Self {
            group: job.group,
            rule: job.rule.map(Arc::new),
            has_ticks: job.has_ticks,
            led: job.led,
            outcomes: BTreeMap::new(),
            not_leader: 0,
            passed: None,
            retries: 0,
            run_seconds: Histogram::new(LONG),
            lag: Histogram::new(SHORT),
            last_success: None,
            next: None,
            next_known: false,
            paused: false,
            running: 0,
        }
    }

    fn pass(&mut self, now: Timestamp, led: bool) {
        let passed = *self.passed.get_or_insert(now);
        if now <= passed {
            return;
        }
        if let Some(rule) = self.rule.as_ref().filter(|_| self.led && !led) {
            self.not_leader += rule.schedule.count(passed, now);
        }
        self.passed = Some(now);
    }
}

impl OfQueue {
    fn new() -> Self {
        Self {
            enqueued: 0,
            dispatched: 0,
            completed: BTreeMap::new(),
            retries: 0,
            expired: 0,
            dispatch_lag: Histogram::new(SHORT),
            waiting: BTreeMap::new(),
        }
    }
}

impl OfOperation {
    fn new() -> Self {
        Self {
            errors: 0,
            seconds: Histogram::new(SHORT),
        }
    }
}

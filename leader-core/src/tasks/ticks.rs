//! Ticks that become tasks: handed over by the leader of their job's group, run by a worker.
//!
//! The run that the leader claims is the outbox: it stays open in the ledger, and is tried again by whoever leads, until the task is stored. The
//! task's key is that of its tick, and is remembered by its shard until the store knows the run's end: so however often it is handed over, it
//! is stored once.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::hub::{Desk, Hub};
use super::producer::OrderKind;
use crate::job::extract::Given;
use crate::job::gate::Lead;
use crate::job::output::JobError;
use crate::job::scope::{self, Scope};
use crate::job::tick::{self, Origin, Tick};
use crate::names::{JobName, QueueName, TaskName};
use crate::runtime::companion::HandedOver;
use crate::runtime::config::JobSpec;
use crate::runtime::guarded::{Ending, Start};
use crate::store::tasks::{Due, Lane, NewTask, Priority, Taken};

/// What the task of a tick is called in its shard: `job@tick`, with the origin behind it where that is not the schedule.
fn key_of(job: &JobName, at: Timestamp, origin: Origin) -> String {
    match origin {
        Origin::Schedule => format!("{job}@{at}"),
        other => format!("{job}@{at}+{other}"),
    }
}

/// The tick and origin that a key names.
fn read_key(key: &str) -> Option<(Timestamp, Origin)> {
    let (_, rest) = key.rsplit_once('@')?;
    let (at, origin) = match rest.split_once('+') {
        None => (rest, Origin::Schedule),
        Some((at, word)) => {
            let known = [Origin::Manual, Origin::Backfill];
            (at, known.into_iter().find(|origin| origin.as_str() == word)?)
        }
    };
    Some((at.parse().ok()?, origin))
}

impl Hub {
    fn queue_of(&self, run: &HandedOver) -> Option<(QueueName, TaskName)> {
        let name = TaskName::new(run.job.to_string()).ok()?;
        let spec = self.settings.specs.get(&name)?;
        Some((spec.queue.clone(), name))
    }

    /// Has the task of a tick stored.
    pub(super) fn hand_over_tick(
        &self,
        run: &HandedOver,
    ) -> Pin<Box<dyn Future<Output = Result<(), JobError>> + Send>> {
        let Some((queue, task)) = self.queue_of(run) else {
            let text = format!("no queue of this instance runs the ticks of `{}`", run.job);
            return Box::pin(std::future::ready(Err(JobError::new(text))));
        };
        let task = NewTask {
            key: key_of(&run.job, run.tick, run.origin),
            lane: Lane {
                priority: Priority::Normal,
                task,
            },
            due: Due::After(Duration::ZERO),
            unique: None,
            once: true,
            payload: "null".into(),
        };
        let stored = self.store(queue, vec![task]);
        Box::pin(async move { stored.await.map(drop).map_err(JobError::new) })
    }

    /// Has its key forgotten.
    pub(super) fn forget_tick(&self, run: &HandedOver) {
        if let Some((queue, _)) = self.queue_of(run) {
            let key = key_of(&run.job, run.tick, run.origin);
            self.give(queue, Vec::new(), OrderKind::Forget(key));
        }
    }
}

/// The body of a job, run for a tick that a worker has taken.
pub(super) fn body(desk: &Desk, job: &Arc<JobSpec>, task: &Taken, lead: Lead) -> Start {
    let (instance, job) = (Arc::clone(&desk.shared), Arc::clone(job));
    let (key, due, attempt) = (task.key.clone(), task.due, task.attempt);
    Box::new(move || {
        let Some((scheduled_at, origin)) = read_key(&key) else {
            let text = format!("the task `{key}` names no tick of `{}`", job.name);
            return Box::pin(std::future::ready(Ending::from(Err(JobError::new(text)))));
        };
        let tick = Tick::new(tick::Inner {
            job: job.name.clone(),
            origin,
            scheduled_at,
            started_at: instance.config.clock.wall().max(due.min(scheduled_at)),
            attempt,
            lead: lead.clone(),
        });
        let given = Given {
            tick: Some(&tick),
            lead: &lead,
            states: &instance.config.states,
            payload: None,
        };
        let body = (job.body.run)(&given);
        let body = scope::within(Scope::new(Some(Arc::clone(&instance.gates)), Some(lead.clone())), body);
        Box::pin(async move { Ending::from(body.await) })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_names_its_tick() {
        let at: Timestamp = "2026-03-29T01:00:00.25Z".parse().unwrap();
        let job = JobName::new("reports/daily:eu").unwrap();
        for origin in [Origin::Schedule, Origin::Manual, Origin::Backfill] {
            let key = key_of(&job, at, origin);
            assert!(key.starts_with("reports/daily:eu@2026-03-29T01:00:00.25Z"), "{key}");
            assert_eq!(read_key(&key), Some((at, origin)));
        }
        for odd in ["", "job", "job@", "job@never", "job@2026-03-29T01:00:00Z+other"] {
            assert_eq!(read_key(odd), None, "{odd}");
        }
    }
}

//! What the log says of a start.

use std::time::Duration;

use crate::names::GroupName;
use crate::runtime::config::JobSpec;
use crate::runtime::fleet;
use crate::runtime::shared::Shared;
use crate::schedule::planner::DEFAULT_GRACE;
use crate::schedule::written;

/// The start-up line, and the list of jobs: a job that is missing here is not linked.
pub(super) fn announce(shared: &Shared, health: &str) {
    let config = &shared.config;
    let now = shared.fleet_now();
    let next = config
        .jobs
        .iter()
        .filter_map(|job| Some((job.rule.schedule.next(now)?, &job.name)))
        .min();
    let groups: Vec<_> = config.groups.iter().map(GroupName::as_str).collect();
    tracing::info!(
        library = env!("CARGO_PKG_VERSION"),
        service = %config.service,
        version = config.version,
        instance = %config.instance,
        namespace = %config.namespace,
        store = %shared.store_address,
        health,
        groups = groups.join(","),
        jobs = config.jobs.len() + config.lives.len() + config.handlers.len(),
        ttl = ?config.timing.ttl(),
        renew = ?config.timing.renew(),
        time_zones = config.time_zones,
        next = next.map(|(at, job)| format!("{job} at {at}")),
        "instance started"
    );
    if shared.store_address == "embedded" {
        tracing::warn!(
            "the embedded store is a fleet of this process alone: another process would lead the same groups"
        );
    }
    if config.first_start && shared.store_address != "embedded" {
        tracing::warn!(
            "`.first_start(true)` is set: take it out once the fleet has started, because after a loss of the store's data it lets this \
             instance lead while an old leader may still believe"
        );
    }
    for job in &config.jobs {
        list(job);
        if job.rule.schedule.next(now).is_none() {
            tracing::warn!(
                job = %job.name,
                schedule = %job.rule.schedule,
                "this job has no tick any more, and never runs again by its schedule: give it years to come, or take the job out"
            );
        }
    }
    for life in &config.lives {
        tracing::info!(job = %life.name, group = %life.group, schedule = "while leading", "job");
    }
    for handler in &config.handlers {
        tracing::info!(job = %handler.name, group = %handler.group, schedule = fleet::HANDLER, "job");
    }
}

/// One job; its grace and jitter only where they are not the usual.
fn list(job: &JobSpec) {
    let rule = &job.rule;
    tracing::info!(
        job = %job.name,
        group = %job.group,
        schedule = %rule.schedule,
        on = job.is_unled().then_some("any"),
        grace = (rule.grace != DEFAULT_GRACE).then(|| written(rule.grace)),
        jitter = (rule.jitter != Duration::ZERO).then(|| written(rule.jitter)),
        "job"
    );
}

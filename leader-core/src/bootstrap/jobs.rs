//! The program's annotated functions, with what code and environment change of them.

mod handlers;
mod renames;

use std::collections::BTreeSet;
use std::sync::Arc;

use super::Bootstrap;
use super::calendars;
use super::fault::Fault;
use super::settings::{Faults, Vars, refused};
use super::time_zones::TimeZones;
use super::tries::Tries;
use super::wish::{self, Wish};
use crate::job::extract::Needs;
use crate::job::record::{Body, On, OnLoss, Overlap, Record};
use crate::names::{DEFAULT_GROUP, DEFAULT_QUEUE, GroupName, JobName};
use crate::runtime::config::{FleetSpec, JobSpec, LifeSpec};
use crate::schedule::planner::Rule;
use crate::schedule::{Backoff, MOST_RETRIES};

/// What an instance leads and runs.
#[derive(Default)]
pub(super) struct Gathered {
    pub(super) groups: Vec<GroupName>,
    pub(super) jobs: Vec<JobSpec>,
    pub(super) lives: Vec<LifeSpec>,
    /// What schedules made at run time get.
    pub(super) handlers: Vec<JobSpec>,
}

/// Checks every annotated function of the program.
pub(super) fn gather(given: &Bootstrap, vars: Vars, zones: &TimeZones, faults: &mut Faults) -> Gathered {
    let collected = inventory::iter::<Record>.into_iter();
    let mut records: Vec<&Record> = match &given.within.only {
        Some(only) => only.clone(),
        None => collected.chain(given.records.iter().copied()).collect(),
    };
    // The linker's order is no order.
    records.sort_by_key(|record| (record.name, record.module));
    let mut gathered = Gathered {
        groups: groups(given, &records, faults),
        ..Gathered::default()
    };
    vars.warn_of_strangers(&records);
    records.retain(|record| record.body.is_some());
    check_names(given, &records, faults);
    renames::check(&records, faults);
    let off = jobs_off(vars, faults);
    let mut used = BTreeSet::new();
    calendars::check(&given.calendars, faults);
    for (at, record) in records.iter().enumerate() {
        let Some(body) = record.body else { continue };
        if let Some(other) = records[..at].last().filter(|other| other.name == record.name) {
            faults.0.push(Fault::DoubledJob {
                job: record.name,
                first: other.module,
                second: record.module,
            });
            continue;
        }
        let names = (faults.keep(JobName::new(record.name)), GroupName::new(record.group));
        let (Some(name), Ok(group)) = names else { continue };
        let needs_tick = check_needs(given, record, body, faults);
        let changes = given
            .jobs
            .iter()
            .filter(|(name, _)| name == record.name)
            .map(|(_, change)| change);
        let Some(mut wish) = wish::of(record, changes.clone(), vars, zones, faults) else {
            continue;
        };
        if let Wish::Scheduled(rule, _) | Wish::Handler(rule, _) = &mut wish {
            let names = calendars::of(record, changes, vars);
            rule.blackouts = calendars::resolved(&given.calendars, record, &names, &rule.schedule, &mut used, faults);
        }
        match wish {
            _ if off => {}
            Wish::Off => {}
            Wish::Scheduled(rule, tries) => gathered.jobs.push(JobSpec {
                was: renames::of(record, faults),
                ..spec(name, group, rule, tries, record, body)
            }),
            Wish::Handler(rule, tries) => gathered.handlers.push(spec(name, group, rule, tries, record, body)),
            Wish::Live if needs_tick => faults.0.push(Fault::NoTick { job: record.name }),
            Wish::Live => gathered.lives.push(LifeSpec {
                name,
                group,
                start: Arc::new(body.run),
            }),
        }
    }
    calendars::warn_of_idle(&given.calendars, &used);
    gathered
}

fn spec(name: JobName, group: GroupName, rule: Rule, tries: Tries, record: &Record, body: Body) -> JobSpec {
    let spec = JobSpec {
        name,
        group,
        rule,
        on: record.on,
        timeout: record.timeout,
        overlap: record.overlap,
        on_loss: record.on_loss,
        retries: tries.retries,
        backoff: tries.backoff,
        was: Vec::new(),
        body,
        made: None,
        fleet: None,
    };
    if record.on != On::Fleet {
        return spec;
    }
    // What the leader runs is the handing over. It is tried until it is done, whatever becomes of later ticks.
    JobSpec {
        timeout: None,
        overlap: Overlap::Allow,
        on_loss: OnLoss::Cancel,
        retries: MOST_RETRIES,
        backoff: Backoff::default(),
        fleet: Some(FleetSpec {
            queue: record.queue.unwrap_or(DEFAULT_QUEUE),
            concurrency: record.concurrency,
            retries: tries.retries,
            backoff: tries.backoff,
            timeout: record.timeout,
        }),
        ..spec
    }
}

fn groups(given: &Bootstrap, records: &[&Record], faults: &mut Faults) -> Vec<GroupName> {
    let asked = given.groups.iter().map(|group| GroupName::new(group.clone()));
    let recorded = records.iter().map(|record| GroupName::new(record.group));
    let all = std::iter::once(GroupName::new(DEFAULT_GROUP))
        .chain(asked)
        .chain(recorded);
    let all: BTreeSet<_> = all.filter_map(|group| faults.keep(group)).collect();
    all.into_iter().collect()
}

/// Settings and expectations may only name jobs that exist.
fn check_names(given: &Bootstrap, jobs: &[&Record], faults: &mut Faults) {
    let named = given
        .jobs
        .iter()
        .map(|(name, _)| name.as_str())
        .chain(given.expected.iter().copied());
    let strangers: BTreeSet<_> = named.filter(|name| !jobs.iter().any(|job| job.name == *name)).collect();
    let ours: Vec<_> = jobs.iter().map(|job| job.name).collect();
    faults.0.extend(strangers.into_iter().map(|job| Fault::UnknownJob {
        job: job.to_owned(),
        known: match ours.as_slice() {
            [] => "none".to_owned(),
            some => format!("`{}`", some.join("`, `")),
        },
    }));
}

/// Whether the body asks for a tick.
fn check_needs(given: &Bootstrap, record: &Record, body: Body, faults: &mut Faults) -> bool {
    let mut needs = Needs::default();
    (body.needs)(&mut needs);
    let missing = needs.states.into_iter().filter(|(id, _)| !given.states.has(*id));
    faults.0.extend(missing.map(|(_, state)| Fault::MissingState {
        job: record.name,
        state,
    }));
    needs.tick
}

fn jobs_off(vars: Vars, faults: &mut Faults) -> bool {
    match vars.get("LEADER_JOBS").as_deref() {
        None | Some("all") => false,
        Some("none") => true,
        Some(other) => {
            faults.0.push(refused("LEADER_JOBS", other, "write `all` or `none`"));
            false
        }
    }
}

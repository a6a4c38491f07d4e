//! Settings from code and environment, checked all at once.

use std::collections::BTreeSet;
use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;
use std::time::Duration;

use super::Bootstrap;
use super::fault::{BootstrapError, Fault};
use super::source::Source;
use crate::clock::Clock;
use crate::job::extract::Needs;
use crate::job::record::{Record, Trigger};
use crate::names::{DEFAULT_GROUP, GroupName, Holder, InstanceId, JobName, Namespace, ServiceName};
use crate::runtime::config::{Candidacy, Config, JobSpec, LifeSpec};
use crate::runtime::shared::Shared;
use crate::schedule::planner::{DEFAULT_GRACE, Rule};
use crate::schedule::{Schedule, ScheduleError, parse_duration};
use crate::timing::Timing;

/// Changes to one job; given to [`Bootstrap::job`].
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct JobSettings {
    off: bool,
    schedule: Option<Result<Schedule, ScheduleError>>,
}

impl JobSettings {
    /// Another cron expression; a bad one is an error of the start.
    pub fn cron(mut self, expression: &str) -> Self {
        self.schedule = Some(Schedule::cron(expression));
        self
    }

    /// A period such as `"30s"`; a bad one is an error of the start.
    pub fn every(mut self, period: &str) -> Self {
        self.schedule = Some(Schedule::every(period));
        self
    }

    /// Takes the job off this instance's schedule.
    pub fn off(mut self) -> Self {
        self.off = true;
        self
    }
}

/// Where environment variables come from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Vars(Option<&'static [(&'static str, &'static str)]>);

impl Vars {
    pub(super) fn process() -> Self {
        Self(None)
    }

    #[cfg(test)]
    pub(super) fn fixed(vars: &'static [(&'static str, &'static str)]) -> Self {
        Self(Some(vars))
    }

    fn get(self, name: &str) -> Option<String> {
        let value = match self.0 {
            None => std::env::var(name).ok(),
            Some(vars) => vars.iter().find(|var| var.0 == name).map(|var| var.1.to_owned()),
        };
        value.filter(|value| !value.is_empty())
    }

    pub(super) fn flag(self, name: &str) -> Result<bool, Fault> {
        match self.get(name).as_deref() {
            None | Some("0" | "false" | "no" | "off") => Ok(false),
            Some("1" | "true" | "yes" | "on") => Ok(true),
            Some(other) => Err(refused(name, other, "write `1` or `0`")),
        }
    }

    fn duration(self, name: &str) -> Result<Option<Duration>, Fault> {
        let Some(text) = self.get(name) else { return Ok(None) };
        match parse_duration(&text) {
            Ok(duration) => Ok(Some(duration)),
            Err(error) => Err(refused(name, &text, error.message(&text).as_str())),
        }
    }
}

fn refused(variable: &str, value: &str, reason: &str) -> Fault {
    Fault::Variable {
        variable: variable.to_owned(),
        value: value.to_owned(),
        reason: reason.to_owned(),
    }
}

/// Gathers faults, so that all are told at once.
#[derive(Default)]
struct Faults(Vec<Fault>);

impl Faults {
    fn keep<T, E: Into<Fault>>(&mut self, result: Result<T, E>) -> Option<T> {
        result.map_err(|error| self.0.push(error.into())).ok()
    }
}

/// Everything an instance needs, or everything that is wrong.
pub(super) fn check(given: Bootstrap) -> Result<(Config, Source), BootstrapError> {
    let mut faults = Faults::default();
    let vars = given.vars;
    let namespace = vars.get("LEADER_NAMESPACE").or(given.namespace).unwrap_or_default();
    let service = vars.get("LEADER_SERVICE").or(given.service).unwrap_or_else(executable);
    let nonce = random();
    let id = vars
        .get("LEADER_INSTANCE_ID")
        .or(given.instance_id)
        .unwrap_or_else(|| default_id(nonce));
    let namespace = faults.keep(Namespace::new(namespace));
    let service = faults.keep(ServiceName::new(service));
    let instance = faults.keep(InstanceId::new(id));
    let ttl = faults.keep(vars.duration("LEADER_TTL")).flatten();
    let timing = ttl.map_or(given.timing, Timing::from_ttl);
    faults.keep(timing.validate());
    let drain = faults
        .keep(vars.duration("LEADER_DRAIN"))
        .flatten()
        .unwrap_or(given.drain);
    let first_start = faults.keep(vars.flag("LEADER_FIRST_START")).unwrap_or(false) || given.first_start;
    faults.keep(vars.flag("LEADER_REQUIRE_STORE"));
    let candidacy = candidacy(vars, given.candidacy, &mut faults);
    let source = faults.keep(given.source);
    let embedded = source.as_ref().and_then(Source::embedded);
    if embedded.is_some() && !given.single_process && vars.get("KUBERNETES_SERVICE_HOST").is_some() {
        faults.0.push(Fault::EmbeddedUnderKubernetes);
    }
    let manual_ticks = embedded.is_some_and(|embedded| embedded.manual_ticks);
    faults.0.extend(given.faults);
    faults
        .0
        .extend(given.states.doubled.iter().map(|state| Fault::DoubledState { state }));

    let mut records: Vec<&Record> = inventory::iter::<Record>.into_iter().chain(given.records).collect();
    // The linker's order is no order.
    records.sort_by_key(|record| (record.name, record.module));
    let jobs_off = match vars.get("LEADER_JOBS").as_deref() {
        None | Some("all") => false,
        Some("none") => true,
        Some(other) => {
            faults.0.push(refused("LEADER_JOBS", other, "write `all` or `none`"));
            false
        }
    };
    let mut groups: BTreeSet<GroupName> = BTreeSet::new();
    // The program's own first: a name that is a constant is cloned for nothing.
    for group in records.iter().map(|record| record.group).chain([DEFAULT_GROUP]) {
        groups.extend(faults.keep(GroupName::new(group)));
    }
    for group in given.groups {
        groups.extend(faults.keep(GroupName::new(group)));
    }
    let has_job = |name: &str| {
        records
            .iter()
            .any(|record| record.name == name && record.body.is_some())
    };
    let named = given
        .jobs
        .iter()
        .map(|(name, _)| name.as_str())
        .chain(given.expected.iter().copied());
    for unknown in named.filter(|name| !has_job(name)).collect::<BTreeSet<_>>() {
        let known: Vec<_> = records
            .iter()
            .filter(|record| record.body.is_some())
            .map(|record| record.name)
            .collect();
        faults.0.push(Fault::UnknownJob {
            job: unknown.to_owned(),
            known: if known.is_empty() {
                "none".to_owned()
            } else {
                format!("`{}`", known.join("`, `"))
            },
        });
    }
    let mut jobs = Vec::new();
    let mut lives = Vec::new();
    for (at, record) in records.iter().enumerate() {
        let Some(body) = record.body else { continue };
        if let Some(other) = records[..at]
            .iter()
            .find(|other| other.body.is_some() && other.name == record.name)
        {
            faults.0.push(Fault::DoubledJob {
                job: record.name,
                first: other.module,
                second: record.module,
            });
            continue;
        }
        let mut needs = Needs::default();
        (body.needs)(&mut needs);
        for (id, state) in needs.states {
            if !given.states.has(id) {
                faults.0.push(Fault::MissingState {
                    job: record.name,
                    state,
                });
            }
        }
        let names = (faults.keep(JobName::new(record.name)), GroupName::new(record.group));
        let (Some(name), Ok(group)) = names else { continue };
        let change = given
            .jobs
            .iter()
            .filter(|(name, _)| name == record.name)
            .map(|(_, change)| change);
        let schedule = match schedule_of(record, change, vars) {
            Ok(schedule) => schedule,
            Err(fault) => {
                faults.0.push(fault);
                continue;
            }
        };
        match (schedule, record.trigger) {
            _ if jobs_off => {}
            (Wish::Scheduled(schedule), _) => jobs.push(JobSpec {
                name,
                group,
                rule: Rule {
                    schedule,
                    grace: record.grace.unwrap_or(DEFAULT_GRACE),
                    missed: record.missed,
                },
                timeout: record.timeout,
                on_loss: record.on_loss,
                body,
            }),
            (Wish::Live, _) if needs.tick => faults.0.push(Fault::NoTick { job: record.name }),
            (Wish::Live, _) => lives.push(LifeSpec {
                name,
                group,
                start: Arc::new(body.run),
            }),
            (Wish::Off, _) => {}
        }
    }
    let (Some(namespace), Some(service), Some(instance), Some(source), []) =
        (namespace, service, instance, source, faults.0.as_slice())
    else {
        return Err(BootstrapError::Invalid(faults.0));
    };
    let config = Config {
        namespace,
        service,
        holder: Holder::new(&instance, nonce),
        instance,
        timing,
        drain,
        first_start,
        candidacy,
        manual_ticks,
        clock: Clock::system(),
        states: given.states,
        groups: groups.into_iter().collect(),
        jobs,
        lives,
    };
    Ok((config, source))
}

/// What a job is to do on this instance.
enum Wish {
    Off,
    Live,
    Scheduled(Schedule),
}

/// The environment's word, else the code's, else the attribute's.
fn schedule_of<'a>(record: &Record, changes: impl Iterator<Item = &'a JobSettings>, vars: Vars) -> Result<Wish, Fault> {
    let upper = |c: char| {
        if c.is_ascii_alphanumeric() {
            c.to_ascii_uppercase()
        } else {
            '_'
        }
    };
    let prefix = format!("LEADER_JOB_{}", record.name.chars().map(upper).collect::<String>());
    let read: [(&str, fn(&str) -> Result<Schedule, ScheduleError>); 2] =
        [("CRON", Schedule::cron), ("EVERY", Schedule::every)];
    for (kind, parse) in read {
        let variable = format!("{prefix}_{kind}");
        match vars.get(&variable) {
            None => {}
            Some(value) if value == "off" => return Ok(Wish::Off),
            Some(value) => {
                let parsed = parse(&value).map_err(|error| refused(&variable, &value, &error.to_string()))?;
                return Ok(Wish::Scheduled(parsed));
            }
        }
    }
    let fault = |error| Fault::Schedule {
        job: record.name.to_owned(),
        error,
    };
    let mut changed = None;
    for change in changes {
        if change.off {
            return Ok(Wish::Off);
        }
        changed = change.schedule.clone().or(changed);
    }
    if let Some(schedule) = changed {
        return schedule.map(Wish::Scheduled).map_err(fault);
    }
    match record.trigger {
        Trigger::Cron(expression) => Schedule::cron(expression).map(Wish::Scheduled).map_err(fault),
        Trigger::Every(period) => Schedule::every(period).map(Wish::Scheduled).map_err(fault),
        Trigger::WhileLeading => Ok(Wish::Live),
        Trigger::Call => Ok(Wish::Off),
    }
}

fn candidacy(vars: Vars, given: Candidacy, faults: &mut Faults) -> Candidacy {
    match vars.get("LEADER_CAMPAIGN").as_deref() {
        None => given,
        Some("all") => Candidacy::All,
        Some("none") => Candidacy::None,
        Some(list) => {
            let groups = list.split(',').map(|group| GroupName::new(group.trim().to_owned()));
            Candidacy::Only(groups.filter_map(|group| faults.keep(group)).collect())
        }
    }
}

/// The executable's name, as far as it is a legal one.
fn executable() -> String {
    let path = std::env::current_exe().ok();
    let stem = path
        .as_deref()
        .and_then(|path| path.file_stem())
        .map(|stem| stem.to_string_lossy().into_owned());
    legal(&stem.unwrap_or_default(), "service")
}

/// Host name, process id and a random part.
fn default_id(nonce: u64) -> String {
    let host = legal(&host_name(), "host");
    format!("{host}-{}-{:06x}", std::process::id(), nonce & 0xff_ffff)
}

fn legal(text: &str, instead: &str) -> String {
    let cut: String = text
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .take(60)
        .collect();
    let cut = cut.trim_matches('-');
    if cut.is_empty() {
        instead.to_owned()
    } else {
        cut.to_owned()
    }
}

#[cfg(unix)]
fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

#[cfg(not(unix))]
fn host_name() -> String {
    std::env::var("COMPUTERNAME").unwrap_or_default()
}

/// A number that no other process has: the standard library seeds its hashers from the system's randomness.
fn random() -> u64 {
    let hasher = std::hash::RandomState::new().build_hasher();
    hasher.finish() ^ u64::from(std::process::id()).rotate_left(32)
}

/// The start-up line, and the list of jobs: a job that is missing here is not linked.
pub(super) fn announce(shared: &Shared, health: &str) {
    let config = &shared.config;
    let now = config.clock.wall();
    let next = config
        .jobs
        .iter()
        .filter_map(|job| Some((job.rule.schedule.next(now)?, &job.name)))
        .min();
    let groups: Vec<_> = config.groups.iter().map(GroupName::as_str).collect();
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        service = %config.service,
        instance = %config.instance,
        namespace = %config.namespace,
        store = %shared.store_address,
        health,
        groups = groups.join(","),
        jobs = config.jobs.len() + config.lives.len(),
        ttl = ?config.timing.ttl(),
        renew = ?config.timing.renew(),
        next = next.map(|(at, job)| format!("{job} at {at}")),
        "instance started"
    );
    if shared.store_address == "embedded" {
        tracing::warn!(
            "the embedded store is a fleet of this process alone: another process would lead the same groups"
        );
    }
    for job in &config.jobs {
        tracing::info!(job = %job.name, group = %job.group, schedule = %job.rule.schedule, "job");
    }
    for life in &config.lives {
        tracing::info!(job = %life.name, group = %life.group, schedule = "while leading", "job");
    }
}

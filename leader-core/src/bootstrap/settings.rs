//! Settings from code and environment, checked all at once.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::hash::{BuildHasher, Hasher};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use super::fault::{BootstrapError, Fault};
use super::source::Source;
use super::time_zones::TimeZones;
use super::{Bootstrap, history, jobs, variables};
use crate::clock::Clock;
use crate::job::record::{Overlap, Record};
use crate::names::{GroupName, Holder, InstanceId, Namespace, ServiceName};
use crate::runtime::config::{Candidacy, Config};
use crate::schedule::parse_duration;
use crate::timing::Timing;

/// The longest version, and the longest name or value of a label, in bytes.
pub(super) const MAX_LABEL: usize = 200;
/// The most labels of an instance.
pub(super) const MAX_LABELS: usize = 32;

/// Where environment variables come from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Vars(Option<&'static [(&'static str, &'static str)]>);

impl Vars {
    pub(super) fn process() -> Self {
        Self(None)
    }

    #[cfg(any(test, feature = "testing"))]
    pub(super) fn fixed(vars: &'static [(&'static str, &'static str)]) -> Self {
        Self(Some(vars))
    }

    pub(super) fn get(self, name: &str) -> Option<String> {
        let value = match self.0 {
            None => std::env::var(name).ok(),
            Some(vars) => vars.iter().find(|var| var.0 == name).map(|var| var.1.to_owned()),
        };
        value.filter(|value| !value.is_empty())
    }

    pub(super) fn flag(self, name: &str) -> Result<bool, Fault> {
        Ok(self.choice(name)?.unwrap_or(false))
    }

    /// A flag whose absence leaves the choice to the code.
    fn choice(self, name: &str) -> Result<Option<bool>, Fault> {
        let Some(value) = self.get(name) else { return Ok(None) };
        match value.to_ascii_lowercase().as_str() {
            "0" | "false" | "no" | "off" => Ok(Some(false)),
            "1" | "true" | "yes" | "on" => Ok(Some(true)),
            _ => Err(refused(
                name,
                &value,
                "write `on`, `true`, `yes` or `1`; or `off`, `false`, `no` or `0`",
            )),
        }
    }

    /// The variables of ours that nobody can read, and that would be as good as unset.
    fn unreadable(self) -> Vec<Fault> {
        if self.0.is_some() {
            return Vec::new();
        }
        unreadable(std::env::vars_os())
    }

    /// Tells of variables that look like ours and are nobody's: a typo, or another program's. Not a fault, because binaries of one
    /// service with other jobs may share an environment.
    pub(super) fn warn_of_strangers(self, records: &[&Record]) {
        if self.0.is_some() {
            return;
        }
        for (name, _) in std::env::vars_os() {
            let name = name.to_string_lossy().into_owned();
            if name.starts_with("LEADER_") && !variables::is_known(&name, records) {
                tracing::warn!(
                    variable = name,
                    nearest = variables::nearest(&name, records),
                    "no setting has this name, and it is ignored: a typo, or a job of another program?"
                );
            }
        }
    }

    fn duration(self, name: &str) -> Result<Option<Duration>, Fault> {
        let Some(text) = self.get(name) else { return Ok(None) };
        match parse_duration(&text) {
            Ok(duration) => Ok(Some(duration)),
            Err(error) => Err(refused(name, &text, &error.to_string())),
        }
    }
}

pub(super) fn unreadable(vars: impl Iterator<Item = (OsString, OsString)>) -> Vec<Fault> {
    vars.filter(|(name, value)| name.to_string_lossy().starts_with("LEADER_") && value.to_str().is_none())
        .map(|(name, value)| refused(&name.to_string_lossy(), &value.to_string_lossy(), "it is not UTF-8"))
        .collect()
}

pub(super) fn refused(variable: &str, value: &str, reason: &str) -> Fault {
    Fault::Variable {
        variable: variable.to_owned(),
        value: value.to_owned(),
        reason: reason.to_owned(),
    }
}

/// Gathers faults, so that all are told at once.
pub(super) struct Faults(pub(super) Vec<Fault>);

impl Faults {
    pub(super) fn keep<T, E: Into<Fault>>(&mut self, result: Result<T, E>) -> Option<T> {
        result.map_err(|error| self.0.push(error.into())).ok()
    }
}

/// What was found of tasks.
#[cfg(feature = "tasks")]
pub(super) type Tasks = crate::tasks::spec::Settings;
#[cfg(not(feature = "tasks"))]
pub(super) type Tasks = ();

/// Everything an instance needs, or everything that is wrong.
pub(super) fn check(mut given: Bootstrap) -> Result<(Config, Source, Tasks), BootstrapError> {
    let mut faults = Faults(std::mem::take(&mut given.faults));
    let vars = given.vars;
    faults.0.extend(vars.unreadable());
    let namespace = vars
        .get("LEADER_NAMESPACE")
        .or_else(|| given.namespace.take())
        .unwrap_or_default();
    let service = vars
        .get("LEADER_SERVICE")
        .or_else(|| given.service.take())
        .unwrap_or_else(executable);
    let nonce = given.within.nonce.unwrap_or_else(random);
    let given_id = vars.get("LEADER_INSTANCE_ID").or_else(|| given.instance_id.take());
    let exclusive_id = faults.keep(vars.flag("LEADER_EXCLUSIVE_ID")).unwrap_or(false) || given.exclusive_id;
    if exclusive_id && given_id.is_none() {
        faults.0.push(Fault::ExclusiveWithoutId);
    }
    let spread = faults.keep(vars.choice("LEADER_SPREAD")).flatten();
    let follow_store_clock = faults.keep(vars.choice("LEADER_FOLLOW_STORE_CLOCK")).flatten();
    let id = given_id.unwrap_or_else(|| default_id(nonce));
    let version = vars.get("LEADER_VERSION").or_else(|| given.version.take());
    check_labels(version.as_deref(), &given.labels, &mut faults);
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
    history::check(&given.keep, &mut faults);
    let max_concurrent_jobs = max_concurrent_jobs(vars, given.max_concurrent_jobs, &mut faults);
    let candidacy = candidacy(vars, given.candidacy.clone(), &mut faults);
    let source = std::mem::replace(&mut given.source, Err(Fault::NoStore));
    let source = faults.keep(source);
    let embedded = source.as_ref().and_then(Source::embedded);
    if embedded.is_some() && !given.single_process && vars.get("KUBERNETES_SERVICE_HOST").is_some() {
        faults.0.push(Fault::EmbeddedUnderKubernetes);
    }
    let manual_ticks = embedded.is_some_and(|embedded| embedded.manual_ticks);
    faults
        .0
        .extend(given.states.doubled.iter().map(|state| Fault::DoubledState { state }));

    let time_zones = TimeZones::chosen(given.system_time_zones, vars, &mut faults);
    let mut gathered = jobs::gather(&given, vars, &time_zones, &mut faults);
    if max_concurrent_jobs.is_some() {
        // Each of their claims needs a place of its own.
        let all = gathered.jobs.iter_mut().chain(&mut gathered.handlers);
        let overlapping = all.filter(|job| job.overlap == Overlap::Allow);
        overlapping.for_each(|job| job.rule.one_at_a_time = true);
    }
    #[cfg(feature = "tasks")]
    let tasks = super::tasks::gather(&mut given, &gathered.jobs, vars, &mut faults);
    #[cfg(not(feature = "tasks"))]
    let tasks = ();
    check_candidacy(&candidacy, &gathered.groups, &mut faults);
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
        version: version.unwrap_or_default(),
        labels: given.labels,
        timing,
        drain,
        first_start,
        exclusive_id,
        time_zones: time_zones.into_version(),
        machine: given.machine.unwrap_or_else(machine),
        spread: spread.unwrap_or(given.spread),
        follow_store_clock: follow_store_clock.unwrap_or(given.follow_store_clock),
        candidacy,
        manual_ticks,
        clock: Clock::system(),
        process: given.within.process,
        states: given.states,
        around: given.around,
        on_failure: given.on_failure,
        max_concurrent_jobs,
        keep: given.keep,
        groups: gathered.groups,
        jobs: gathered.jobs.into_iter().map(Arc::new).collect(),
        lives: gathered.lives,
        handlers: gathered.handlers.into_iter().map(Arc::new).collect(),
        companion: None,
    };
    Ok((config, source, tasks))
}

/// Only groups that there are can be campaigned for.
fn check_candidacy(candidacy: &Candidacy, groups: &[GroupName], faults: &mut Faults) {
    let Candidacy::Only(only) = candidacy else { return };
    // How many parts a queue has, and so its elections, is not known yet.
    let ours = |group: &GroupName| groups.contains(group) || group.as_str().starts_with("dispatch:");
    let strangers = only.iter().filter(|group| !ours(group));
    let ours: Vec<_> = groups.iter().map(GroupName::as_str).collect();
    faults.0.extend(strangers.map(|group| Fault::UnknownGroup {
        group: group.to_string(),
        known: format!("`{}`", ours.join("`, `")),
    }));
}

/// Every instance reads them with the roster, again and again.
fn check_labels(version: Option<&str>, labels: &BTreeMap<String, String>, faults: &mut Faults) {
    let texts = labels.iter().flat_map(|(name, value)| [name.as_str(), value.as_str()]);
    for text in texts.chain(version) {
        if text.len() > MAX_LABEL || text.chars().any(char::is_control) {
            faults.0.push(Fault::Label { text: text.to_owned() });
        }
    }
    if labels.len() > MAX_LABELS {
        faults.0.push(Fault::TooManyLabels { count: labels.len() });
    }
}

fn max_concurrent_jobs(vars: Vars, given: Option<usize>, faults: &mut Faults) -> Option<NonZeroUsize> {
    const NAME: &str = "LEADER_MAX_CONCURRENT_JOBS";
    if let Some(text) = vars.get(NAME) {
        let most = text.parse();
        return faults.keep(most.map_err(|_| refused(NAME, &text, "write a number from 1 on")));
    }
    let most = given?;
    faults.keep(NonZeroUsize::new(most).ok_or(Fault::NoPlaces))
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

/// What the instances of one machine have in common, and those of two do not: the kernel's own name of this boot, which containers
/// see too, or else the name of the host.
fn machine() -> String {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let boot = boot.trim();
    if boot.is_empty() { host_name() } else { boot.to_owned() }
}

/// A number that no other process has: the standard library seeds its hashers from the system's randomness.
fn random() -> u64 {
    let hasher = std::hash::RandomState::new().build_hasher();
    hasher.finish() ^ u64::from(std::process::id()).rotate_left(32)
}

//! Where a schedule made at run time is, by its name.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{MadeSchedule, SchedulingError};
use crate::instance::lookup::{self, NoTicks};
use crate::names::{GroupName, JobName};
use crate::runtime::config::{self, JobSpec};
use crate::runtime::fleet::{self, Member};
use crate::runtime::shared::Shared;
use crate::schedule::Schedule;
use crate::store::{JobLedger, MadeEntry, Store, StoreError};

/// No change has a higher number: a read after it gives no payloads.
const NO_PAYLOADS: u64 = (1 << 53) - 1;

/// A group that this fleet elects.
pub(super) fn group(shared: &Shared, members: &[Member], name: &str) -> Result<GroupName, SchedulingError> {
    let here = shared.gates.iter().map(|gate| gate.group().as_str());
    let there = members
        .iter()
        .flat_map(|member| &member.candidate_for)
        .map(String::as_str);
    let known: BTreeSet<_> = here.chain(there).collect();
    let unknown = || SchedulingError::UnknownGroup {
        group: name.to_owned(),
        known: listed(known.iter().copied()),
    };
    let known_one = known.get(name).ok_or_else(unknown)?;
    GroupName::new((*known_one).to_owned()).map_err(|_| unknown())
}

pub(super) fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<_> = names.map(|name| format!("`{name}`")).collect();
    if names.is_empty() {
        "none".to_owned()
    } else {
        names.join(", ")
    }
}

/// Where the groups of this instance have a schedule of the name.
pub(in crate::instance) async fn named(
    shared: &Shared,
    store: &dyn Store,
    name: &str,
) -> Result<Vec<(GroupName, MadeEntry)>, StoreError> {
    let mut found = Vec::new();
    for gate in shared.gates.iter() {
        let list = store.made(gate.group(), NO_PAYLOADS).await?;
        let entry = list
            .entries
            .into_iter()
            .find(|entry| entry.name == name && !entry.ended);
        found.extend(entry.map(|entry| (gate.group().clone(), entry)));
    }
    Ok(found)
}

/// All of a group.
pub(super) async fn all(
    shared: &Shared,
    store: &dyn Store,
    group_name: &str,
) -> Result<Vec<MadeSchedule>, SchedulingError> {
    let roster = store.roster().await.map_err(SchedulingError::Unread)?;
    let group = group(shared, &fleet::members(&roster), group_name)?;
    let (mut after, mut payloads) = (0, BTreeMap::new());
    let entries = loop {
        let list = store.made(&group, after).await.map_err(SchedulingError::Unread)?;
        for entry in &list.entries {
            if let Some(payload) = &entry.payload {
                payloads.insert(entry.name.clone(), payload.to_string());
            }
        }
        if !list.has_more() {
            break list.entries;
        }
        after = list.up_to;
    };
    let now = shared.fleet_now();
    let made = |entry: MadeEntry| {
        let line = entry.line;
        let schedule = line.as_ref().map(|line| line.schedule.clone()).unwrap_or_default();
        MadeSchedule {
            payload: payloads.remove(&entry.name).unwrap_or_default(),
            name: entry.name,
            group: group.clone(),
            handler: line.as_ref().map(|line| line.handler.to_string()).unwrap_or_default(),
            next: schedule.parse().ok().and_then(|schedule: Schedule| schedule.next(now)),
            schedule,
            changed_at: line.as_ref().map(|line| line.at),
            by: line.as_ref().map(|line| line.by.clone()).unwrap_or_default(),
            version: line.map(|line| line.version).unwrap_or_default(),
        }
    };
    let mut all: Vec<_> = entries.into_iter().filter(|entry| !entry.ended).map(made).collect();
    all.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(all)
}

/// What the store has recorded of a job: of this instance, or of a schedule made at run time, which may have ended; `Err` where it is none
/// of both.
pub(in crate::instance) async fn located(
    shared: &Shared,
    store: &dyn Store,
    job: &str,
) -> Result<Result<(Arc<JobSpec>, JobLedger), NoTicks>, StoreError> {
    let unknown = match lookup::scheduled(shared, job) {
        Ok(spec) => {
            let ledger = store.ledger(&spec.group, &spec.name).await?;
            return Ok(Ok((spec, ledger)));
        }
        Err(unknown) => unknown,
    };
    let Ok(name) = JobName::new(job.to_owned()) else {
        return Ok(Err(unknown));
    };
    for gate in shared.gates.iter() {
        let ledger = store.ledger(gate.group(), &name).await?;
        if let Some(spec) = spec_of(shared, gate.group(), &name, &ledger) {
            return Ok(Ok((Arc::new(spec), ledger)));
        }
    }
    Ok(Err(unknown))
}

/// What a schedule made at run time is, by what the store has recorded of it.
fn spec_of(shared: &Shared, group: &GroupName, name: &JobName, ledger: &JobLedger) -> Option<JobSpec> {
    let handler = ledger.handler.as_ref()?;
    let texts = ledger.schedule.iter().map(|schedule| &schedule.text);
    let mut texts = texts.chain(ledger.schedules.iter().map(|earlier| &earlier.schedule.text));
    let schedule = texts.find_map(|text| text.parse().ok());
    // One that cannot be read, or whose handler is another version's, has no policies here.
    let schedule = schedule.or_else(|| Schedule::every("1d").ok())?;
    let known = shared.config.handlers.iter();
    let pattern = known.clone().find(|known| known.name.as_str() == handler);
    let spec = match pattern {
        Some(pattern) => JobSpec::clone(pattern),
        None => JobSpec::without_handler(name.clone(), group.clone(), schedule.clone()),
    };
    let made = config::Made {
        handler: JobName::new(handler.clone()).ok()?,
        payload: Arc::from("null"),
        number: 0,
        born: 0,
    };
    Some(spec.made(name.clone(), group.clone(), schedule, made))
}

//! Schedules made at run time: the steps of `make.lua` and `made.lua`.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use super::{Data, Embedded, Group, Hint, Time, records};
use crate::job::outcome::Outcome;
use crate::job::tick::Origin;
use crate::names::{GroupName, Holder, JobName};
use crate::schedule::missed::MissedReason;
use crate::store::StoreError;
use crate::store::ledger::{JobLedger, LedgerRecord};
use crate::store::made::{MADE_AT_ONCE, MADE_SCHEDULES, MadeEntry, MadeLine, MadeList, MadeReply, MakeRequest, Making};
use crate::store::schedules::{EarlierSchedule, KEPT_SCHEDULES, StoredSchedule, Writer};

/// Those of a group, by name; the mark of one that has ended has another key.
#[derive(Clone, Debug, Default)]
pub(super) struct Table {
    pub(super) number: u64,
    pub(super) kept: BTreeMap<(bool, JobName), (u64, MadeLine, Arc<str>)>,
}

impl Embedded {
    /// One change, told at once.
    pub(super) async fn make_one(&self, request: MakeRequest) -> Result<MadeReply, StoreError> {
        let (group, name) = (request.group.clone(), request.name.clone());
        let forgets = matches!(request.what, Making::Forget);
        let step = |data: &mut Data, time: Time<'_>| {
            self.forget_ended(data, &group, time);
            let made = make(data, request, time);
            self.trim(data, &group, std::iter::once(&name), time);
            made
        };
        let made = self.later(step).await?;
        if let (MadeReply::Done { number, .. }, false) = (&made, forgets) {
            self.tell(group, Hint::Controlled(*number));
        }
        Ok(made)
    }
}

impl Embedded {
    /// What is kept of schedules that have ended, and have no run open, goes when their newest records would be too old.
    pub(super) fn forget_ended(&self, data: &mut Data, group: &GroupName, time: Time<'_>) {
        let Some(group) = data.groups.get_mut(group) else {
            return;
        };
        let age = SignedDuration::try_from(self.keep.age).unwrap_or(SignedDuration::MAX);
        let over = |retired: Timestamp| time.wall.duration_since(retired) >= age;
        group
            .jobs
            .retain(|_, job| !(job.open.is_empty() && job.retired.is_some_and(over)));
    }
}

fn make(data: &mut Data, request: MakeRequest, time: Time<'_>) -> MadeReply {
    let group = data.groups.entry(request.group).or_default();
    let (name, by) = (request.name, request.by);
    match request.what {
        Making::Make {
            handler,
            schedule,
            payload,
        } => begin(group, &name, (handler, &schedule, payload), &by, &request.writer, time),
        Making::End => end(group, &name, &by, time),
        Making::Forget => {
            let open = group.jobs.get(&name).is_some_and(|job| !job.open.is_empty());
            let mark = (true, name);
            if open {
                return MadeReply::Nothing;
            }
            time.frees();
            if group.made.kept.remove(&mark).is_none() {
                return MadeReply::Nothing;
            }
            let (number, at, new) = (group.made.number, time.wall, false);
            MadeReply::Done { number, at, new }
        }
    }
}

fn begin(
    group: &mut Group,
    name: &JobName,
    (handler, schedule, payload): (JobName, &str, Arc<str>),
    by: &str,
    writer: &Writer,
    time: Time<'_>,
) -> MadeReply {
    let job = group.jobs.get(name);
    let key = (false, name.clone());
    let kept = group.made.kept.get(&key);
    let is_anothers = job.is_some_and(|job| job.cursor.is_some() && job.handler.is_none());
    // Another job's; or one had the name and goes on under another. What is a schedule is its own, whatever its job has lost.
    if kept.is_none() && (group.coverage.is_moved(name) || is_anothers) {
        return MadeReply::Taken;
    }
    let alive = job
        .and_then(|job| job.schedule.as_ref())
        .is_some_and(|schedule| !schedule.text.is_empty());
    let born = kept.filter(|_| alive).map(|(_, line, _)| line.born);
    if let Some((number, line, carried)) = kept.filter(|_| alive) {
        if line.handler == handler && line.schedule == schedule && *carried == payload {
            return MadeReply::Same {
                number: *number,
                at: line.at,
            };
        }
    } else if kept.is_none() && group.made.kept.len() >= MADE_SCHEDULES {
        let schedules = group.made.kept.len();
        return MadeReply::Full { schedules };
    }
    time.grows();
    let number = next(group, time);
    let job = group.jobs.entry(name.clone()).or_default();
    if born.is_none() {
        job.since.get_or_insert(time.wall);
        job.cursor = Some(job.cursor.map_or(time.wall, |cursor| cursor.max(time.wall)));
        job.schedule = Some(StoredSchedule::written(schedule, time.wall, writer, by));
        job.waiting = None;
        job.retired = None;
        group.made.kept.remove(&(true, name.clone()));
    }
    job.handler = Some(handler.to_string());
    let line = MadeLine {
        born: born.unwrap_or(number),
        at: time.wall,
        by: by.to_owned(),
        version: writer.version.clone(),
        handler,
        schedule: schedule.to_owned(),
    };
    group.made.kept.insert(key, (number, line, payload));
    let (at, new) = (time.wall, born.is_none());
    MadeReply::Done { number, at, new }
}

fn end(group: &mut Group, name: &JobName, by: &str, time: Time<'_>) -> MadeReply {
    let Some((_, line, payload)) = group.made.kept.remove(&(false, name.clone())) else {
        return MadeReply::Nothing;
    };
    time.frees();
    let number = next(group, time);
    group.control.withdraw(name);
    let is_known = |job: &&mut JobLedger| job.handler.is_some() || job.cursor.is_some();
    if let Some(job) = group.jobs.get_mut(name).filter(is_known) {
        job.handler.get_or_insert_with(|| line.handler.to_string());
        retire(job, by, time);
        if !job.open.is_empty() {
            group.made.kept.insert((true, name.clone()), (number, line, payload));
        }
    }
    let (at, new) = (time.wall, false);
    MadeReply::Done { number, at, new }
}

/// Nothing is due any more; claims that are on their way find another schedule than theirs.
fn retire(job: &mut JobLedger, by: &str, time: Time<'_>) {
    if let Some(waiting) = job.waiting.take() {
        let record = LedgerRecord {
            first: waiting,
            last: waiting,
            count: 1,
            outcome: Outcome::Missed(MissedReason::Skipped),
            origin: Origin::Schedule,
            fence: 0,
            term: 0,
            instance: by.to_owned(),
            holder: Holder::from_store(by),
            settled_at: time.wall,
            claimed_at: time.wall,
            error: String::new(),
            tries: 0,
        };
        records::write(job, record);
    }
    let ended = job.schedule.take().filter(|schedule| !schedule.text.is_empty());
    if let Some(schedule) = ended {
        let until = time.wall;
        job.schedules.insert(0, EarlierSchedule { schedule, until });
        job.schedules.truncate(KEPT_SCHEDULES);
    }
    job.schedule = Some(StoredSchedule::default());
    job.retired = Some(time.wall);
}

/// A change is one of what people ask, and has its number.
fn next(group: &mut Group, time: Time<'_>) -> u64 {
    let number = group.control.next_change(time);
    group.made.number = number;
    number
}

pub(super) fn list(data: &Data, group: &GroupName, after: u64) -> MadeList {
    let kept = data.groups.get(group).map(|group| &group.made.kept);
    let mut all: Vec<_> = kept.into_iter().flatten().collect();
    all.sort_by_key(|((ended, name), (number, ..))| (*number, *ended, name));
    let (mut list, mut left) = (MadeList::default(), MADE_AT_ONCE);
    list.up_to = after;
    for ((ended, name), (number, line, payload)) in all {
        let given = *number > after && left > 0;
        if given {
            left = left.saturating_sub(payload.len());
            list.up_to = *number;
        }
        list.entries.push(MadeEntry {
            name: name.to_string(),
            number: *number,
            ended: *ended,
            line: Some(line.clone()),
            payload: given.then(|| Arc::clone(payload)),
        });
    }
    list
}

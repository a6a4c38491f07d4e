//! The calls and answers of `make.lua` and `made.lua`. A line that cannot be read is told as such: it stops nobody else.

use ::redis::{Cmd, Value};

use super::answer::{self, odd};
use super::calls;
use super::keys::Keys;
use super::script::{self, Call};
use crate::names::{GroupName, JobName};
use crate::store::error::StoreError;
use crate::store::ledger::Keep;
use crate::store::made::{MADE_AT_ONCE, MADE_SCHEDULES, MadeEntry, MadeLine, MadeList, MadeReply, MakeRequest, Making};
use crate::store::schedules::KEPT_SCHEDULES;

pub(super) fn make(keys: &Keys, keep: &Keep, request: &MakeRequest) -> Cmd {
    let (group, name) = (&request.group, &request.name);
    let jobs = keys.jobs(group);
    let (what, handler, schedule, payload) = match &request.what {
        Making::Make {
            handler,
            schedule,
            payload,
        } => ("make", handler.as_str(), &**schedule, &**payload),
        Making::End => ("end", "", "", ""),
        Making::Forget => ("forget", "", "", ""),
    };
    Call::default()
        .key(keys.state(group))
        .key(keys.control(group))
        .key(keys.schedules(group))
        .key(keys.payloads(group))
        .key(jobs.job(name))
        .key(jobs.passed(name))
        .key(jobs.ran(name))
        .arg(what)
        .arg(name)
        .arg(handler)
        .arg(schedule)
        .arg(payload)
        .arg(&request.by)
        .arg(&request.writer.version)
        .arg(&request.writer.time_zones)
        .arg(MADE_SCHEDULES)
        .arg(KEPT_SCHEDULES)
        .arg(calls::kept(keep))
        .arg(keys.channel())
        .arg(group)
        .eval(script::MAKE)
}

pub(super) fn list(keys: &Keys, group: &GroupName, after: u64) -> Cmd {
    Call::default()
        .key(keys.schedules(group))
        .key(keys.payloads(group))
        .arg(after)
        .arg(MADE_AT_ONCE)
        .eval(script::MADE)
}

pub(super) fn reply(value: Value) -> Result<MadeReply, StoreError> {
    let told = answer::texts(value)?;
    match told.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["done", number, at, new] => Ok(MadeReply::Done {
            number: answer::number(number)?,
            at: answer::instant(at)?,
            new: !new.is_empty(),
        }),
        ["same", number, at] => Ok(MadeReply::Same {
            number: answer::number(number)?,
            at: answer::instant(at)?,
        }),
        ["nothing"] => Ok(MadeReply::Nothing),
        ["taken"] => Ok(MadeReply::Taken),
        ["full", schedules] => Ok(MadeReply::Full {
            schedules: usize::try_from(answer::number(schedules)?).unwrap_or(usize::MAX),
        }),
        _ => Err(odd("answer about a schedule")),
    }
}

pub(super) fn listed(value: Value) -> Result<MadeList, StoreError> {
    let told = answer::texts(value)?;
    let (up_to, entries) = told.split_first().ok_or_else(|| odd("list of schedules"))?;
    Ok(MadeList {
        up_to: answer::number(up_to)?,
        entries: entries.chunks_exact(3).map(entry).collect(),
    })
}

fn entry(told: &[String]) -> MadeEntry {
    let (name, text, payload) = (&told[0], &told[1], &told[2]);
    let (name, ended) = match name.strip_prefix('~') {
        Some(name) => (name, true),
        None => (name.as_str(), false),
    };
    let number = text.split_once('|').and_then(|(number, _)| number.parse().ok());
    // As the script reads it: one that cannot be told from the next is none.
    let number = number.filter(|number: &u64| *number < 1 << 53);
    MadeEntry {
        name: name.to_owned(),
        number: number.unwrap_or(0),
        ended,
        line: line(text),
        payload: (!payload.is_empty()).then(|| payload.as_str().into()),
    }
}

fn line(text: &str) -> Option<MadeLine> {
    let fields: Vec<_> = text.splitn(7, '|').collect();
    let [_, born, at, by, version, handler, schedule] = fields.as_slice() else {
        return None;
    };
    Some(MadeLine {
        born: born.parse().ok()?,
        at: answer::instant(at).ok()?,
        by: (*by).to_owned(),
        version: (*version).to_owned(),
        handler: JobName::new((*handler).to_owned()).ok()?,
        schedule: (*schedule).to_owned(),
    })
}

//! The calls and answers of `act.lua` and `control.lua`. A line that cannot be read is passed over: it stops nobody else.

use ::redis::{Cmd, FromRedisValue, Value};
use jiff::Timestamp;

use super::answer::{self, odd};
use super::keys::Keys;
use super::script::{self, Call};
use crate::job::tick::Origin;
use crate::names::{GroupName, JobName};
use crate::store::control::{
    self, Act, ActRequest, Acted, Deed, Gap, GroupControl, KEPT_ACTS, KEPT_ENDED, OPEN_REQUESTS, OpenRequest, Pause,
};
use crate::store::error::StoreError;

fn call(keys: &Keys, group: &GroupName) -> Call {
    Call::default()
        .key(keys.state(group))
        .key(keys.control(group))
        .key(keys.acts(group))
}

pub(super) fn act(keys: &Keys, request: &ActRequest) -> Cmd {
    let millis = |at: Timestamp| at.as_millisecond().to_string();
    let (first, last) = match request.deed {
        Deed::Pause { gap, until } => (gap.to_string(), until.map(millis).unwrap_or_default()),
        Deed::Resume | Deed::Trigger => (String::new(), String::new()),
        Deed::Backfill { from, to } => (millis(from), millis(to)),
        Deed::Cancel { request } => (request.to_string(), String::new()),
    };
    call(keys, &request.group)
        .key(keys.coverage(&request.group))
        .arg(request.deed.as_str())
        .arg(request.job.as_ref().map(JobName::as_str).unwrap_or_default())
        .arg(first)
        .arg(last)
        .arg(&request.by)
        .arg(&request.reason)
        .arg(keys.channel())
        .arg(&request.group)
        .arg(OPEN_REQUESTS)
        .arg(KEPT_ACTS)
        .arg(KEPT_ENDED)
        .eval(script::ACT)
}

pub(super) fn control(keys: &Keys, group: &GroupName) -> Cmd {
    call(keys, group).eval(script::CONTROL)
}

pub(super) fn acted(value: Value) -> Result<Acted, StoreError> {
    let told = answer::texts(value)?;
    match told.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["done", number, at, before, name] => Ok(Acted::Done {
            number: answer::number(number)?,
            at: answer::instant(at)?,
            before: on(name).and_then(|job| pause(job, before)),
        }),
        ["nothing"] => Ok(Acted::Nothing),
        ["full", open] => Ok(Acted::Full {
            open: usize::try_from(answer::number(open)?).unwrap_or(usize::MAX),
        }),
        ["untimely", now] => Ok(Acted::Untimely {
            now: answer::instant(now)?,
        }),
        _ => Err(odd("answer to an act")),
    }
}

pub(super) fn controlled(value: Value) -> Result<GroupControl, StoreError> {
    let told = Vec::<Value>::from_redis_value(value).map_err(|error| StoreError::protocol().with_source(error))?;
    let [number, now, fields, acts, made]: [Value; 5] = told.try_into().map_err(|_| odd("answer about control"))?;
    let now = answer::instant(&answer::text(now)?)?;
    let mut read = GroupControl {
        number: answer::number(&answer::text(number)?)?,
        made: answer::number(&answer::text(made)?)?,
        ..GroupControl::default()
    };
    for pair in answer::texts(fields)?.chunks_exact(2) {
        let (field, line) = (pair[0].as_str(), pair[1].as_str());
        if let Some(name) = field.strip_prefix("p:") {
            read.pauses.extend(on(name).and_then(|job| pause(job, line)));
        } else if field.starts_with("e:") {
            let (name, line) = line.split_once('|').unwrap_or_default();
            read.ended.extend(on(name).and_then(|job| pause(job, line)));
        } else if let Some(id) = field.strip_prefix("r:") {
            read.requests.extend(open_request(id, line));
        }
    }
    let (in_force, over): (Vec<_>, Vec<_>) = std::mem::take(&mut read.pauses)
        .into_iter()
        .partition(|pause| pause.until.is_none_or(|until| now < until));
    let ended = std::mem::take(&mut read.ended);
    (read.pauses, read.ended) = (in_force, control::speaking(ended.into_iter().chain(over), now));
    read.pauses.sort_by(|a, b| a.job.cmp(&b.job));
    read.requests.sort_by_key(|request| request.id);
    read.acts = answer::texts(acts)?.iter().filter_map(|line| one_act(line)).collect();
    Ok(read)
}

/// A job's name, or `None` for the group; `None` at all when it is no name.
#[allow(clippy::option_option, reason = "no name, and the name of nothing")]
fn on(name: &str) -> Option<Option<JobName>> {
    if name.is_empty() {
        return Some(None);
    }
    JobName::new(name.to_owned()).ok().map(Some)
}

#[allow(clippy::option_option, reason = "no instant, and the instant of nothing")]
fn optional(text: &str) -> Option<Option<Timestamp>> {
    if text.is_empty() {
        return Some(None);
    }
    answer::instant(text).ok().map(Some)
}

fn gap(word: &str) -> Option<Gap> {
    [Gap::Skip, Gap::Owed].into_iter().find(|gap| gap.as_str() == word)
}

fn pause(job: Option<JobName>, line: &str) -> Option<Pause> {
    let fields: Vec<_> = line.splitn(6, '|').collect();
    let [number, word, since, until, by, reason] = fields.as_slice() else {
        return None;
    };
    Some(Pause {
        number: number.parse().ok()?,
        job,
        gap: gap(word)?,
        since: answer::instant(since).ok()?,
        until: optional(until)?,
        by: (*by).to_owned(),
        reason: (*reason).to_owned(),
    })
}

fn open_request(id: &str, line: &str) -> Option<OpenRequest> {
    let fields: Vec<_> = line.splitn(8, '|').collect();
    let [origin, job, from, to, done, asked_at, by, reason] = fields.as_slice() else {
        return None;
    };
    Some(OpenRequest {
        id: id.parse().ok()?,
        job: JobName::new((*job).to_owned()).ok()?,
        origin: [Origin::Manual, Origin::Backfill]
            .into_iter()
            .find(|known| known.as_str() == *origin)?,
        from: answer::instant(from).ok()?,
        to: answer::instant(to).ok()?,
        done: optional(done)?,
        asked_at: answer::instant(asked_at).ok()?,
        by: (*by).to_owned(),
        reason: (*reason).to_owned(),
    })
}

fn one_act(line: &str) -> Option<Act> {
    let fields: Vec<_> = line.splitn(8, '|').collect();
    let [number, at, what, job, first, last, by, reason] = fields.as_slice() else {
        return None;
    };
    let deed = match *what {
        "pause" => Deed::Pause {
            gap: gap(first)?,
            until: optional(last)?,
        },
        "resume" => Deed::Resume,
        "trigger" => Deed::Trigger,
        "backfill" => Deed::Backfill {
            from: answer::instant(first).ok()?,
            to: answer::instant(last).ok()?,
        },
        "cancel" => Deed::Cancel {
            request: first.parse().ok()?,
        },
        _ => return None,
    };
    Some(Act {
        number: number.parse().ok()?,
        at: answer::instant(at).ok()?,
        deed,
        job: on(job)?,
        by: (*by).to_owned(),
        reason: (*reason).to_owned(),
    })
}

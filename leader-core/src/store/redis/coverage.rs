//! The calls of `take_over.lua` and `cover.lua`, and what they tell of who had the jobs.

use std::collections::BTreeMap;

use ::redis::{Cmd, Value};

use super::answer::{instant, odd, texts};
use super::keys::Keys;
use super::script::{self, Call};
use crate::names::JobName;
use crate::store::coverage::{Absence, AbsenceKind, Cover};
use crate::store::error::StoreError;
use crate::store::request::TakeOver;

pub(super) fn take_over(keys: &Keys, request: &TakeOver) -> Cmd {
    let mut call = Call::default()
        .key(keys.lease(&request.group))
        .key(keys.state(&request.group))
        .arg(&request.holder)
        .arg(request.term)
        .arg(&request.writer.version)
        .arg(&request.writer.time_zones);
    let jobs = keys.jobs(&request.group);
    for (job, schedule) in request.jobs.iter().zip(&request.schedules) {
        call.push_key(jobs.job(job));
        call.push(schedule);
    }
    call = call
        .key(keys.coverage(&request.group))
        .key(keys.control(&request.group))
        .key(keys.schedules(&request.group));
    let mut renamed = Vec::new();
    for (place, (job, was)) in (1..).zip(request.jobs.iter().zip(&request.was)) {
        if was.is_empty() {
            continue;
        }
        renamed.push(format!("{place}:{}", was.len()));
        call.push_key(jobs.ran(job));
        call.push_key(jobs.passed(job));
        for old in was {
            call.push_key(jobs.job(old));
            call.push_key(jobs.ran(old));
            call.push_key(jobs.passed(old));
        }
    }
    call.arg(words(&request.beside))
        .arg(elsewhere(request.elsewhere.as_deref()))
        .arg(renamed.join(" "))
        .arg(request.jobs.len())
        .eval(script::TAKE_OVER)
}

pub(super) fn cover(keys: &Keys, request: &Cover) -> Cmd {
    Call::default()
        .key(keys.lease(&request.group))
        .key(keys.state(&request.group))
        .key(keys.coverage(&request.group))
        .arg(&request.holder)
        .arg(request.term)
        .arg(elsewhere(request.elsewhere.as_deref()))
        .arg(words(&request.jobs))
        .eval(script::COVER)
}

fn elsewhere(jobs: Option<&[JobName]>) -> String {
    jobs.map_or_else(|| "*".to_owned(), words)
}

/// No name has a space in it.
fn words(jobs: &[JobName]) -> String {
    let names: Vec<_> = jobs.iter().map(JobName::as_str).collect();
    names.join(" ")
}

/// The names under which jobs go on, where a take-over has asked by others.
pub(super) fn moved(value: &Value) -> Result<BTreeMap<JobName, JobName>, StoreError> {
    let Value::Array(_) = value else {
        return Ok(BTreeMap::new());
    };
    let answer = texts(value.clone())?;
    let Some(("moved", names)) = answer.split_first().map(|(word, names)| (word.as_str(), names)) else {
        return Ok(BTreeMap::new());
    };
    let name = |text: &String| JobName::new(text.clone()).map_err(|_| odd(&format!("name `{text}`")));
    names
        .chunks_exact(2)
        .map(|pair| Ok((name(&pair[0])?, name(&pair[1])?)))
        .collect()
}

/// A line for each job.
pub(super) fn of_jobs(text: &str, jobs: usize) -> Result<Vec<Vec<Absence>>, StoreError> {
    let lines: Vec<_> = text.split('\n').take(jobs).map(absences).collect();
    if lines.len() == jobs {
        Ok(lines)
    } else {
        Err(odd("answer to a take-over"))
    }
}

/// The spans of a job: `kind|from|until`. One that cannot be read is passed over.
pub(super) fn absences(line: &str) -> Vec<Absence> {
    let one = |word: &str| {
        let (kind, rest) = word.split_once('|')?;
        let (from, until) = rest.split_once('|')?;
        let (_, kind) = AbsenceKind::ALL.into_iter().find(|(letter, _)| *letter == kind)?;
        let until = if until.is_empty() {
            None
        } else {
            Some(instant(until).ok()?)
        };
        Some(Absence {
            kind,
            from: instant(from).ok()?,
            until,
        })
    };
    line.split(' ').filter_map(one).collect()
}

//! The calls of `take_over.lua` and `cover.lua`, and what they tell of who had the jobs.

use ::redis::Cmd;

use super::answer::{instant, odd};
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
    call.key(keys.coverage(&request.group))
        .arg(elsewhere(request.elsewhere.as_deref()))
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

//! Reads the scripts' replies; anything unexpected is a protocol error, never a guess.

mod found;
mod settled;
mod signs;

pub(super) use settled::{Told, settled};
pub(super) use signs::beaten;

use std::time::Duration;

use ::redis::{FromRedisValue, Value};
use jiff::Timestamp;

use super::{coverage, fault, schedules};
use crate::job::outcome::{Outcome, Ran};
use crate::job::tick::Origin;
use crate::names::{Holder, JobName};
use crate::store::error::StoreError;
use crate::store::ledger::{JobLedger, LedgerRecord, OpenRun};
use crate::store::request::{AskReply, Asked, Campaigned, ClaimReply, Claimed, Oddity, Renewed, TakenOver, Verdict};
use crate::store::roster::{Enrolled, Line, Roster, Twin};

pub(super) fn odd(what: &str) -> StoreError {
    StoreError::protocol().with_advice(format!(
        "an unexpected {what}: another program or a newer version of this crate may use the same keys"
    ))
}

pub(super) fn texts(value: Value) -> Result<Vec<String>, StoreError> {
    let words = Vec::<Value>::from_redis_value(value).map_err(|error| StoreError::protocol().with_source(error))?;
    words.into_iter().map(text).collect()
}

pub(super) fn text(value: Value) -> Result<String, StoreError> {
    match value {
        // What is no text has signs in it that no name or number has: it is read as what it is, and fails nothing beside it.
        Value::BulkString(bytes) => {
            Ok(String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
        }
        other => String::from_redis_value(other).map_err(|error| StoreError::protocol().with_source(error)),
    }
}

pub(super) fn number(text: &str) -> Result<u64, StoreError> {
    text.parse().map_err(|_| odd(&format!("number `{text}`")))
}

/// A term. One that the scripts' numbers cannot tell from the next is no term of ours: nobody is to learn it.
fn minted(text: &str) -> Result<u64, StoreError> {
    let term = number(text)?;
    if term >= 1 << 53 {
        return Err(odd(&format!("term `{text}`")));
    }
    Ok(term)
}

/// A millisecond instant.
pub(super) fn instant(text: &str) -> Result<Timestamp, StoreError> {
    let millis: i64 = text.parse().map_err(|_| odd(&format!("instant `{text}`")))?;
    Timestamp::from_millisecond(millis).map_err(|_| odd(&format!("instant `{text}`")))
}

fn micros(text: &str) -> Result<Timestamp, StoreError> {
    let micros: i64 = text.parse().map_err(|_| odd(&format!("instant `{text}`")))?;
    Timestamp::from_microsecond(micros).map_err(|_| odd(&format!("instant `{text}`")))
}

fn holder(text: &str) -> Option<Holder> {
    (!text.is_empty()).then(|| Holder::from_store(text))
}

/// The answers to the campaigns of one script, each judged on its own.
pub(super) fn campaigned(reply: Result<Value, StoreError>, count: usize) -> Vec<Result<Campaigned, StoreError>> {
    match reply {
        Ok(Value::Array(answers)) if answers.len() == count => answers.into_iter().map(one_campaigned).collect(),
        Ok(_) => vec![Err(odd("answer to a campaign")); count],
        Err(error) => vec![Err(error); count],
    }
}

fn one_campaigned(value: Value) -> Result<Campaigned, StoreError> {
    let answer = texts(value)?;
    if let [failed, error] = answer.as_slice()
        && failed == "failed"
    {
        return Err(fault::from_text(error));
    }
    let [verdict, held_by, remaining, term, remark] = answer.as_slice() else {
        return Err(odd("answer to a campaign"));
    };
    let term = minted(term)?;
    // A negative remainder is a key without an end.
    let remaining = remaining.parse().ok().map(Duration::from_millis);
    let verdict = match verdict.as_str() {
        "acquired" => Verdict::Acquired { term },
        "held" => Verdict::Held { remaining, term },
        "stale" => Verdict::Stale { term },
        "quarantined" => Verdict::Quarantined {
            remaining: remaining.unwrap_or_default(),
            term,
        },
        "yielded" => Verdict::Yielded {
            remaining: remaining.unwrap_or_default(),
            term,
        },
        other => return Err(odd(&format!("verdict `{other}`"))),
    };
    let oddity = Oddity::ALL.iter().copied().find(|oddity| oddity.as_str() == remark);
    if oddity.is_none() && !remark.is_empty() {
        return Err(odd(&format!("remark `{remark}`")));
    }
    Ok(Campaigned {
        verdict,
        holder: holder(held_by),
        oddity,
    })
}

pub(super) fn asked(value: Value) -> Result<AskReply, StoreError> {
    let answer = texts(value)?;
    match answer.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["asked", held_by, term] => Ok(AskReply::Kept {
            holder: holder(held_by).ok_or_else(|| odd("answer to a request"))?,
            term: number(term)?,
        }),
        ["over", ..] => Ok(AskReply::Over),
        ["vacant", ..] => Ok(AskReply::Vacant),
        ["foreign", held_by, _] => Ok(AskReply::Foreign {
            holder: holder(held_by),
        }),
        _ => Err(odd("answer to a request")),
    }
}

pub(super) fn renewed(value: Value) -> Result<Renewed, StoreError> {
    let answer = texts(value)?;
    match answer.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["renewed", now, asked, control] => Ok(Renewed::Yes {
            control: number(control)?,
            now: micros(now)?,
            asked: asked.split_once(' ').map(|(by, reason)| Asked {
                by: by.to_owned(),
                reason: reason.to_owned(),
            }),
        }),
        ["not_yours", held_by, term] => Ok(Renewed::NotYours {
            holder: holder(held_by),
            term: minted(term)?,
        }),
        _ => Err(odd("answer to a renewal")),
    }
}

pub(super) fn taken_over(value: Value, asked: &[JobName]) -> Result<TakenOver, StoreError> {
    let (answer, jobs) = (texts(value)?, asked.len());
    match answer.as_slice() {
        [verdict] if verdict == "not_yours" => Ok(TakenOver::NotYours),
        [verdict, now, late_from, jobs_found @ .., control, absences]
            if verdict == "yours" && jobs_found.len() == 5 * jobs =>
        {
            let optional = |text: &String| (!text.is_empty()).then(|| instant(text)).transpose();
            let each = || jobs_found.chunks_exact(5);
            Ok(TakenOver::Yours {
                now: instant(now)?,
                late_from: optional(late_from)?,
                cursors: each().map(|job| instant(&job[0])).collect::<Result<_, _>>()?,
                waiting: each().map(|job| optional(&job[1])).collect::<Result<_, _>>()?,
                open: each().map(|job| found::found(&job[2])).collect::<Result<_, _>>()?,
                schedules: each().map(|job| schedules::stored(&job[3], &job[4])).collect(),
                control: number(control)?,
                absences: coverage::of_jobs(absences, jobs)?,
                kept: asked.to_vec(),
            })
        }
        _ => Err(odd("answer to a take-over")),
    }
}

pub(super) fn claimed(value: Value, claims: usize) -> Result<Claimed, StoreError> {
    let answer = texts(value)?;
    let (verdict, replies) = answer.split_first().ok_or_else(|| odd("answer to a claim"))?;
    if verdict == "not_yours" {
        return Ok(Claimed::NotYours);
    }
    if verdict != "yours" || replies.len() != 2 * claims {
        return Err(odd("answer to a claim"));
    }
    let reply = |pair: &[String]| match pair[0].as_str() {
        "won" => Ok(ClaimReply::Won {
            fence: number(&pair[1])?,
        }),
        "overlapped" => Ok(ClaimReply::Overlapped),
        "waits" => Ok(ClaimReply::Waits),
        "replacing" => Ok(ClaimReply::Replacing),
        "passed" => Ok(ClaimReply::Passed),
        "early" => Ok(ClaimReply::Early {
            left: Duration::from_millis(number(&pair[1])?),
        }),
        "looked" => Ok(ClaimReply::Looked(found::found(&pair[1])?)),
        "busy" => Ok(ClaimReply::Busy),
        "paused" => Ok(ClaimReply::Paused {
            since: instant(&pair[1])?,
        }),
        "held" => Ok(ClaimReply::Held {
            until: (!pair[1].is_empty()).then(|| instant(&pair[1])).transpose()?,
        }),
        "split" => Ok(ClaimReply::Split {
            since: instant(&pair[1])?,
        }),
        "gone" => Ok(ClaimReply::Gone),
        "moved" => {
            let (cursor, waiting) = match pair[1].split_once(' ') {
                Some((cursor, waiting)) => (cursor, Some(instant(waiting)?)),
                None => (pair[1].as_str(), None),
            };
            let cursor = instant(cursor)?;
            Ok(ClaimReply::Moved { cursor, waiting })
        }
        "other_schedule" => Ok(ClaimReply::OtherSchedule),
        "adopted" => Ok(ClaimReply::Adopted {
            cursor: instant(&pair[1])?,
        }),
        other => Err(odd(&format!("verdict `{other}`"))),
    };
    let replies = replies.chunks(2).map(reply).collect::<Result<_, _>>()?;
    Ok(Claimed::Yours(replies))
}

pub(super) fn enrolled(value: Value) -> Result<Enrolled, StoreError> {
    let answer = texts(value)?;
    match answer.as_slice() {
        [verdict, now, revision, twin, seen] if verdict == "enrolled" => Ok(Enrolled::Yes {
            now: micros(now)?,
            revision: number(revision)?,
            twin: match holder(twin) {
                Some(holder) => Some(Twin {
                    holder,
                    seen: instant(seen)?,
                }),
                None => None,
            },
        }),
        [verdict] if verdict == "introduce" => Ok(Enrolled::Introduce),
        [verdict, service, holder] if verdict == "other_service" => Ok(Enrolled::OtherService {
            service: service.clone(),
            instance: Holder::from_store(holder).instance().to_owned(),
        }),
        _ => Err(odd("answer to an enrolment")),
    }
}

pub(super) fn roster(value: Value) -> Result<Roster, StoreError> {
    let answer = texts(value)?;
    let (revision, lines) = answer.split_first().ok_or_else(|| odd("roster"))?;
    let line = |fields: &[String]| {
        let [holder, seen, service, beat, introduction] = fields else {
            return Err(odd("line of the roster"));
        };
        Ok(Line {
            holder: Holder::from_store(holder),
            service: service.clone(),
            seen: instant(seen)?,
            beat: beat.clone(),
            introduction: introduction.clone(),
        })
    };
    let mut lines = lines.chunks(5).map(line).collect::<Result<Vec<_>, _>>()?;
    lines.sort_by(|a, b| a.holder.cmp(&b.holder));
    Ok(Roster {
        revision: number(revision)?,
        lines,
    })
}

/// Reads a job's hash and its two lists of records.
pub(super) fn ledger(job: Value, ran: Value, passed: Value) -> Result<JobLedger, StoreError> {
    let mut ledger = JobLedger::default();
    let fields = texts(job)?;
    let mut errors = Vec::new();
    (ledger.schedule, ledger.schedules) = schedules::of_job(&fields);
    for pair in fields.chunks_exact(2) {
        let (field, value) = (pair[0].as_str(), pair[1].as_str());
        match field {
            "since" => ledger.since = Some(instant(value)?),
            "cursor" => ledger.cursor = Some(instant(value)?),
            "kept:ran" => ledger.trimmed.runs = trimmed(value)?,
            "kept:passed" => ledger.trimmed.others = trimmed(value)?,
            "waiting" => ledger.waiting = Some(instant(value)?),
            "made" => ledger.handler = Some(value.to_owned()),
            "retired" => ledger.retired = Some(instant(value)?),
            "open" => ledger.open = value.split_whitespace().map(open_run).collect::<Result<_, _>>()?,
            error if error.starts_with("e:") => errors.push((&field[2..], value)),
            _ => {
                // Counts of other origins and fields of newer versions are not this version's to judge.
                if let Some(Ok(outcome)) = field.strip_prefix("n:").map(str::parse) {
                    ledger.counts.insert(outcome, number(value)?);
                }
            }
        }
    }
    for (fence, error) in errors {
        for run in ledger.open.iter_mut().filter(|run| run.fence.to_string() == fence) {
            error.clone_into(&mut run.error);
        }
    }
    for line in texts(ran)?.iter().chain(&texts(passed)?) {
        ledger.records.push(record(line)?);
    }
    ledger.sort_records();
    Ok(ledger)
}

/// Up to which tick details are gone, behind when it is worth looking for old ones.
fn trimmed(text: &str) -> Result<Option<Timestamp>, StoreError> {
    let (_, tick) = text.split_once('|').ok_or_else(|| odd("mark of what was trimmed"))?;
    (!tick.is_empty()).then(|| instant(tick)).transpose()
}

fn origin(word: &str) -> Result<Origin, StoreError> {
    [Origin::Schedule, Origin::Manual, Origin::Backfill]
        .into_iter()
        .find(|origin| origin.as_str() == word)
        .ok_or_else(|| odd(&format!("origin `{word}`")))
}

fn open_run(line: &str) -> Result<OpenRun, StoreError> {
    let fields: Vec<_> = line.splitn(10, '|').collect();
    let [tick, from, fence, term, claim, claimed, holder, tries, again, last] = fields.as_slice() else {
        return Err(odd("open run"));
    };
    Ok(OpenRun {
        tick: instant(tick)?,
        origin: origin(from)?,
        fence: number(fence)?,
        term: number(term)?,
        number: number(claim)?,
        claimed_at: instant(claimed)?,
        instance: Holder::from_store(holder).instance().to_owned(),
        holder: Holder::from_store(holder),
        tries: tries.parse().map_err(|_| odd("open run"))?,
        again_at: (!again.is_empty()).then(|| instant(again)).transpose()?,
        last: ran(last),
        error: String::new(),
    })
}

/// How a try ended; `None` for one that has not, or in a word of another version.
fn ran(word: &str) -> Option<Ran> {
    match word.parse() {
        Ok(Outcome::Ran(ran)) => Some(ran),
        _ => None,
    }
}

fn record(line: &str) -> Result<LedgerRecord, StoreError> {
    let fields: Vec<_> = line.splitn(11, '|').collect();
    let [
        first,
        last,
        count,
        outcome,
        from,
        fence,
        term,
        holder,
        settled,
        claimed,
        rest,
    ] = fields.as_slice()
    else {
        return Err(odd("ledger record"));
    };
    // The error may have any sign in it.
    let (error, tries) = rest.rsplit_once('|').ok_or_else(|| odd("ledger record"))?;
    Ok(LedgerRecord {
        first: instant(first)?,
        last: instant(last)?,
        count: number(count)?,
        outcome: outcome
            .parse()
            .map_err(|error| StoreError::protocol().with_source(error))?,
        origin: origin(from)?,
        fence: number(fence)?,
        term: number(term)?,
        instance: Holder::from_store(holder).instance().to_owned(),
        holder: Holder::from_store(holder),
        settled_at: instant(settled)?,
        claimed_at: instant(claimed)?,
        error: error.to_owned(),
        tries: tries.parse().map_err(|_| odd("ledger record"))?,
    })
}

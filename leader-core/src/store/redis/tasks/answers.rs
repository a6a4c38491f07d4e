//! Reads the answers of the scripts of tasks; anything unexpected is a protocol error, never a guess. One task of which nothing can be read is
//! passed over: it is nobody's, and stands in no other's way.

use std::str::FromStr;
use std::sync::Arc;

use ::redis::{FromRedisValue, Value};
use jiff::Timestamp;

use crate::job::outcome::Ran;
use crate::names::Holder;
use crate::store::StoreError;
use crate::store::redis::answer::{instant, number, odd, texts};
use crate::store::tasks::{
    BeatReply, Changed, DispatchReply, EnqueueBatch, EnqueueReply, FinishReply, Generation, Generations, Lane,
    LostAttempt, Moves, PastAttempt, RunningAttempt, ShardFigures, StoredTask, TakeReply, Taken, TaskCounts,
    TaskStatus,
};

fn small<T: FromStr>(text: &str) -> Result<T, StoreError> {
    text.parse().map_err(|_| odd(&format!("number `{text}`")))
}

fn lane(text: &str) -> Result<Lane, StoreError> {
    Lane::from_store(text).ok_or_else(|| odd(&format!("lane `{text}`")))
}

fn status(text: &str) -> Result<TaskStatus, StoreError> {
    let known = TaskStatus::ALL.iter().find(|status| status.as_str() == text);
    known.copied().ok_or_else(|| odd(&format!("status `{text}`")))
}

/// What stands there, if anything does.
fn some<T>(text: &str, read: impl Fn(&str) -> Result<T, StoreError>) -> Result<Option<T>, StoreError> {
    if text.is_empty() {
        return Ok(None);
    }
    read(text).map(Some)
}

fn own(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

pub(super) fn generations(value: Value) -> Result<Generations, StoreError> {
    let read = |line: &String| {
        let (number, shards) = line
            .split_once(' ')
            .ok_or_else(|| odd(&format!("generation `{line}`")))?;
        Ok(Generation {
            number: small(number)?,
            shards: small(shards)?,
        })
    };
    let all: Result<Vec<_>, StoreError> = texts(value)?.iter().map(read).collect();
    match all?.as_slice() {
        [newest, earlier @ ..] => Ok(Generations {
            newest: *newest,
            earlier: earlier.to_vec(),
        }),
        [] => Err(odd("answer about a queue")),
    }
}

pub(super) fn enqueued(value: Value, batch: &EnqueueBatch) -> Result<EnqueueReply, StoreError> {
    let told = texts(value)?;
    match told.as_slice() {
        [word, generation] if word == "moved" => Ok(EnqueueReply::Moved {
            generation: small(generation)?,
        }),
        [word, now, instead @ ..] if word == "stored" && instead.len() == batch.tasks.len() => {
            Ok(EnqueueReply::Stored {
                now: instant(now)?,
                instead: instead.iter().map(|key| own(key)).collect(),
            })
        }
        _ => Err(odd("answer to new tasks")),
    }
}

pub(super) fn dispatched(value: Value) -> Result<DispatchReply, StoreError> {
    let told = texts(value)?;
    if told.len() == 1 && told[0] == "not_yours" {
        return Ok(DispatchReply::NotYours);
    }
    let [word, now, moved, first_due, next, full, silent_at, lost @ ..] = told.as_slice() else {
        return Err(odd("answer to a dispatcher"));
    };
    if word != "yours" {
        return Err(odd("answer to a dispatcher"));
    }
    let one = |words: &[String]| match words {
        [key, at, attempt, holder, dead] => Some(LostAttempt {
            key: key.clone(),
            lane: lane(at).ok()?,
            attempt: small(attempt).ok()?,
            holder: Holder::from_store(holder),
            dead: !dead.is_empty(),
        }),
        _ => None,
    };
    Ok(DispatchReply::Yours(Moves {
        now: instant(now)?,
        moved: small(moved)?,
        first_due: some(first_due, instant)?,
        next: some(next, instant)?,
        full: !full.is_empty(),
        silent_at: some(silent_at, instant)?,
        lost: lost.chunks(5).filter_map(one).collect(),
    }))
}

pub(super) fn taken(value: Value) -> Result<TakeReply, StoreError> {
    let mut told = texts(value)?.into_iter();
    let more = told.next().ok_or_else(|| odd("answer to a worker"))?;
    let mut taken = Vec::with_capacity(told.len() / 3);
    while let Some(key) = told.next() {
        let (Some(numbers), Some(record)) = (told.next(), told.next()) else {
            return Err(odd("answer to a worker"));
        };
        // Where it cannot be read nobody will be heard of it, and it is found to be lost.
        taken.extend(one_taken(key, &numbers, &record).ok());
    }
    let more = !more.is_empty();
    Ok(TakeReply { taken, more })
}

fn one_taken(key: String, numbers: &str, record: &str) -> Result<Taken, StoreError> {
    let broken = || odd(&format!("task `{key}`"));
    let (head, payload) = record.split_once('\n').ok_or_else(broken)?;
    let mut head = head.splitn(5, ' ');
    let mut word = || head.next().ok_or_else(broken);
    let (at, created, due, generation, unique) = (word()?, word()?, word()?, word()?, word()?);
    let mut numbers = numbers.split(' ');
    let fence = number(numbers.next().ok_or_else(broken)?)?;
    // Without more it is the first attempt, of a task that is due as it was stored.
    let (attempt, failed, due) = match (numbers.next(), numbers.next(), numbers.next()) {
        (Some(attempt), Some(failed), Some(due)) => (small(attempt)?, small(failed)?, due),
        (None, None, None) => (1, 0, due),
        _ => return Err(broken()),
    };
    Ok(Taken {
        lane: lane(at)?,
        fence,
        attempt,
        failed,
        due: instant(due)?,
        created: instant(created)?,
        unique: own(unique),
        generation: small(generation)?,
        payload: Arc::from(payload),
        key,
    })
}

pub(super) fn beaten(value: Value, count: usize) -> Result<Vec<BeatReply>, StoreError> {
    let told = texts(value)?;
    if told.len() != count {
        return Err(odd("answer to signs of life"));
    }
    let one = |word: &String| match word.as_str() {
        "heard" => Ok(BeatReply::Heard),
        "cancel" => Ok(BeatReply::Cancel),
        "gone" => Ok(BeatReply::Gone),
        other => Err(odd(&format!("word `{other}`"))),
    };
    told.iter().map(one).collect()
}

pub(super) fn finished(value: Value, count: usize) -> Result<Vec<FinishReply>, StoreError> {
    let told = texts(value)?;
    if told.len() != count {
        return Err(odd("answer to results"));
    }
    let one = |word: &String| match word.as_str() {
        "taken" => Ok(FinishReply::Taken),
        "late" => Ok(FinishReply::Late),
        other => Err(odd(&format!("word `{other}`"))),
    };
    told.iter().map(one).collect()
}

pub(super) fn changed(value: Value) -> Result<Changed, StoreError> {
    let told = texts(value)?;
    match told.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["done", before] => Ok(Changed::Done(status(before)?)),
        ["asked"] => Ok(Changed::Asked),
        ["not", present] => Ok(Changed::Not(status(present)?)),
        ["unique", other] => Ok(Changed::UniqueTaken((*other).to_owned())),
        ["unknown"] => Ok(Changed::Unknown),
        _ => Err(odd("answer to a change")),
    }
}

pub(super) fn read(value: Value, keys: &[String]) -> Result<Vec<Option<StoredTask>>, StoreError> {
    let all = Vec::<Value>::from_redis_value(value).map_err(|error| StoreError::protocol().with_source(error))?;
    if all.len() != keys.len() {
        return Err(odd("answer about tasks"));
    }
    let one = |(value, key): (Value, &String)| {
        let told = texts(value)?;
        let [
            word,
            at,
            created,
            due,
            ended,
            unique,
            attempts,
            runs,
            history,
            carries,
            payload,
        ] = told.as_slice()
        else {
            return Err(odd(&format!("task `{key}`")));
        };
        Ok::<_, StoreError>(StoredTask {
            key: key.clone(),
            lane: lane(at)?,
            status: status(word)?,
            due: instant(due)?,
            created: instant(created)?,
            ended: some(ended, instant)?,
            unique: own(unique),
            attempts: small(attempts)?,
            running: some(runs, under_way)?,
            history: lines(history),
            payload: (!carries.is_empty()).then(|| Arc::from(payload.as_str())),
        })
    };
    Ok(all.into_iter().zip(keys).map(|told| one(told).ok()).collect())
}

fn under_way(text: &str) -> Result<RunningAttempt, StoreError> {
    let words: Vec<_> = text.split(' ').collect();
    let [fence, began, heard, holder] = words.as_slice() else {
        return Err(odd(&format!("attempt `{text}`")));
    };
    Ok(RunningAttempt {
        fence: number(fence)?,
        holder: Holder::from_store(holder),
        began: instant(began)?,
        heard: instant(heard)?,
    })
}

/// The attempts that have ended, a line each behind an empty one.
pub(super) fn lines(history: &str) -> Vec<PastAttempt> {
    let one = |line: &str| {
        let mut words = line.splitn(7, ' ');
        let mut word = || words.next();
        let (attempt, fence, began, ended) = (word()?, word()?, word()?, word()?);
        let (how, holder, error) = (word()?, word()?, word()?);
        Some(PastAttempt {
            attempt: small(attempt).ok()?,
            fence: number(fence).ok()?,
            holder: Holder::from_store(holder),
            began: instant(began).ok()?,
            ended: instant(ended).ok()?,
            ran: *Ran::ALL.iter().find(|ran| ran.as_str() == how)?,
            error: several_lines(error),
        })
    };
    history.split('\n').skip(1).filter_map(one).collect()
}

fn several_lines(error: &str) -> String {
    let mut text = String::with_capacity(error.len());
    let mut signs = error.chars();
    while let Some(sign) = signs.next() {
        match (sign, if sign == '\\' { signs.next() } else { None }) {
            ('\\', Some('n')) => text.push('\n'),
            (_, Some(other)) | (other, None) => text.push(other),
        }
    }
    text
}

pub(super) fn listed(value: Value) -> Result<(Option<String>, Vec<String>), StoreError> {
    let mut told = texts(value)?.into_iter();
    let next = told.next().ok_or_else(|| odd("answer to a list"))?;
    Ok((own(&next), told.collect()))
}

pub(super) fn figures(value: Value) -> Result<ShardFigures, StoreError> {
    let told = texts(value)?;
    let [now, pending, due, oldest, dispatched, running, dead, named, rest @ ..] = told.as_slice() else {
        return Err(odd("answer about figures"));
    };
    let named: usize = small(named)?;
    let (counts, unfinished) = rest
        .split_at_checked(2 * named)
        .ok_or_else(|| odd("answer about figures"))?;
    let mut read = ShardFigures {
        now: instant(now)?,
        pending: number(pending)?,
        due: number(due)?,
        oldest_due: some::<Timestamp>(oldest, instant)?,
        dispatched: number(dispatched)?,
        running: number(running)?,
        dead: number(dead)?,
        ..ShardFigures::default()
    };
    for pair in counts.chunks_exact(2) {
        // One of a newer version is passed over.
        if let Some(place) = count_of(&mut read.counts, &pair[0]) {
            *place = number(&pair[1]).unwrap_or_default();
        }
    }
    for pair in unfinished.chunks_exact(2) {
        if let (Ok(generation), Ok(count)) = (small(&pair[0]), number(&pair[1])) {
            read.unfinished.insert(generation, count);
        }
    }
    Ok(read)
}

fn count_of<'a>(counts: &'a mut TaskCounts, name: &str) -> Option<&'a mut u64> {
    Some(match name {
        "enqueued" => &mut counts.enqueued,
        "dispatched" => &mut counts.dispatched,
        "started" => &mut counts.started,
        "done" => &mut counts.done,
        "failed" => &mut counts.failed,
        "lost" => &mut counts.lost,
        "handed_back" => &mut counts.handed_back,
        "dead" => &mut counts.dead,
        "cancelled" => &mut counts.cancelled,
        "late" => &mut counts.late,
        _ => return None,
    })
}

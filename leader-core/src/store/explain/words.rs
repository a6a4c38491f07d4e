//! An explanation in a sentence or two.

use std::fmt;

use jiff::Timestamp;

use super::{Explanation, Fate, OtherRun};
use crate::job::outcome::{Outcome, Ran};
use crate::schedule::missed::MissedReason;
use crate::schedule::written;
use crate::store::control::{Gap, Pause};
use crate::store::ledger::LedgerRecord;

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.fate(f)?;
        for record in &self.asked_for {
            let LedgerRecord {
                origin,
                outcome,
                instance,
                claimed_at,
                settled_at,
                fence,
                ..
            } = record;
            write!(
                f,
                " A run for it was asked for ({origin}), and came to `{outcome}` on {instance}, from {claimed_at} to {settled_at}, with fence {fence}."
            )?;
        }
        Ok(())
    }
}

impl Explanation {
    fn fate(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            job,
            group,
            at,
            schedule,
            fate,
            ..
        } = self;
        write!(f, "`{job}` at {at} ")?;
        match fate {
            Fate::Ran(record) => ran(f, record, *at),
            Fate::Running(run) => write!(
                f,
                "runs now on {} since {}, begun {} late, with fence {}.",
                run.instance,
                run.claimed_at,
                since(*at, run.claimed_at),
                run.fence
            ),
            Fate::TriedAgain(run) => {
                write!(f, "has failed {} ", times(run.tries))?;
                write!(f, "on {} ({})", run.instance, run.last.map_or("lost", Ran::as_str))?;
                said(f, &run.error)?;
                match run.again_at {
                    Some(again) => write!(f, "; it is tried again from {again} on."),
                    None => f.write_str("; it is tried again."),
                }
            }
            Fate::Waits { behind } => {
                f.write_str("waits, as `overlap = \"wait\"` has it, until an earlier run has ended")?;
                other(f, behind.as_ref())?;
                f.write_str(".")
            }
            Fate::Missed { reason, record } => missed(f, *reason, record, *at),
            Fate::OverlapSkipped { record, behind } => {
                write!(f, "was skipped at {}, because an earlier run had not ended", record.settled_at)?;
                other(f, behind.as_ref())?;
                f.write_str(
                    ". With `overlap = \"wait\"` it would have run afterwards, with `\"allow\"` beside it; a `timeout` ends runs that take too long.",
                )
            }
            Fate::Paused { record, pause } => {
                f.write_str("did not run, because ")?;
                match pause {
                    Some(pause) => paused(f, pause, group.as_str())?,
                    None => f.write_str("the job was paused")?,
                }
                write!(f, "; {} recorded it at {}.", record.instance, record.settled_at)
            }
            Fate::Blackout { record, calendars } => blackout(f, record, calendars),
            Fate::Fenced(record) => write!(
                f,
                "ran on {}, and its result was refused: the run with fence {} had been settled or taken over by another.",
                record.instance, record.fence
            ),
            Fate::NotYetDue { due, calendars } => {
                write!(f, "is not due yet: it is due at {due}")?;
                if !calendars.is_empty() {
                    f.write_str(", and will not run, because a blackout calendar covers it")?;
                    names(f, calendars)?;
                }
                f.write_str(".")
            }
            Fate::Held { due, pauses, calendars } => held(f, group.as_str(), *due, pauses, calendars),
            Fate::Undecided { .. } => undecided(f, group.as_str(), fate),
            Fate::BeforeFirstSeen { since: Some(since) } => write!(
                f,
                "was before the fleet first took the job up, which was at {since}; nothing is owed for the time before."
            ),
            Fate::BeforeFirstSeen { since: None } => {
                write!(f, "did not run, because no leader of the group `{group}` has had the job yet.")
            }
            Fate::Removed { from, until } => {
                write!(f, "is no tick: no living instance of the fleet had the job from {from} ")?;
                match until {
                    Some(until) => write!(f, "to {until}, and nothing is owed for that time."),
                    None => f.write_str("on, and nothing is owed for that time."),
                }
            }
            Fate::NotATick { before, after } => no_tick(f, schedule, *before, *after),
            Fate::NotScheduled { since, until } => not_scheduled(f, *since, *until),
            Fate::UnreadableSchedule => write!(
                f,
                "cannot be explained: the schedule in force then is {schedule}, which this version cannot read; ask an instance of a newer one."
            ),
            Fate::Trimmed { up_to } => write!(
                f,
                "was decided, but its details are gone: records of ticks up to {up_to} have been trimmed; the counts of outcomes remain. \
                 `.history(..)` says how much is kept."
            ),
            Fate::Unrecorded => f.write_str(
                "was passed over without a record, though none of that time was trimmed: the store has lost what it knew, or its data was changed by hand.",
            ),
        }
    }
}

fn held(
    f: &mut fmt::Formatter<'_>,
    group: &str,
    due: Timestamp,
    pauses: &[Pause],
    calendars: &[String],
) -> fmt::Result {
    write!(f, "was due at {due} and is not decided yet, because ")?;
    for (n, pause) in pauses.iter().enumerate() {
        if n > 0 {
            f.write_str(" and ")?;
        }
        paused(f, pause, group)?;
    }
    if !calendars.is_empty() {
        f.write_str("; it will not run, because a blackout calendar covers it")?;
        names(f, calendars)?;
    } else if pauses.iter().any(|pause| pause.gap == Gap::Owed) {
        f.write_str(
            "; when that ends it runs if it is still within its `grace`, and its `missed` policy decides otherwise",
        )?;
    } else {
        f.write_str("; it will not run")?;
    }
    f.write_str(".")
}

/// Who paused what, since when and until when, and why.
fn paused(f: &mut fmt::Formatter<'_>, pause: &Pause, group: &str) -> fmt::Result {
    let Pause { by, since, .. } = pause;
    match &pause.job {
        Some(_) => write!(f, "{by} paused the job at {since}")?,
        None => write!(f, "{by} paused the group `{group}` at {since}")?,
    }
    match pause.until {
        Some(until) => write!(f, " until {until}")?,
        None => f.write_str(" until it is resumed")?,
    }
    match pause.reason.as_str() {
        "" => Ok(()),
        reason => write!(f, " (\"{reason}\")"),
    }
}

fn not_scheduled(f: &mut fmt::Formatter<'_>, since: Option<Timestamp>, until: Option<Timestamp>) -> fmt::Result {
    f.write_str("is no tick: the schedule, which was made at run time, had ended")?;
    if let Some(since) = since {
        write!(f, " at {since}")?;
    }
    if let Some(until) = until {
        write!(f, ", and was made anew at {until}")?;
    }
    f.write_str(".")
}

fn blackout(f: &mut fmt::Formatter<'_>, record: &LedgerRecord, calendars: &[String]) -> fmt::Result {
    f.write_str("did not run, because a blackout calendar covered it")?;
    names(f, calendars)?;
    write!(f, "; {} recorded it at {}", record.instance, record.settled_at)?;
    if calendars.is_empty() {
        f.write_str(". No calendar of this instance covers it now.")
    } else {
        f.write_str(".")
    }
}

fn undecided(f: &mut fmt::Formatter<'_>, group: &str, fate: &Fate) -> fmt::Result {
    let Fate::Undecided {
        due,
        behind,
        leader,
        leads_since,
        calendars,
        lacked_since,
        anywhere,
    } = fate
    else {
        return Ok(());
    };
    write!(f, "was due at {due} and is not decided yet")?;
    if !calendars.is_empty() {
        f.write_str("; it will not run, because a blackout calendar covers it")?;
        names(f, calendars)?;
    }
    if let Some(since) = lacked_since {
        write!(
            f,
            "; it will not run, because the leaders of the group have lacked the job since {since}"
        )?;
    }
    if let Some(behind) = behind {
        f.write_str(": an earlier run has not ended")?;
        other(f, Some(behind))?;
        return f.write_str(".");
    }
    if *anywhere {
        return f.write_str("; it needs no leader, and whatever instance with the job comes first decides it.");
    }
    let leader = leader.as_deref().unwrap_or("nobody");
    write!(f, "; as far as this instance knows, {leader} leads the group `{group}`")?;
    match leads_since {
        Some(since) => write!(f, " since {since}."),
        None => f.write_str("."),
    }
}

fn no_tick(
    f: &mut fmt::Formatter<'_>,
    schedule: &str,
    before: Option<Timestamp>,
    after: Option<Timestamp>,
) -> fmt::Result {
    write!(f, "is no tick of the schedule {schedule}")?;
    match (before, after) {
        (Some(before), Some(after)) => write!(f, ": the nearest are {before} and {after}."),
        (Some(before), None) => {
            write!(
                f,
                ": the one before is {before}, and by this schedule there is none after."
            )
        }
        (None, Some(after)) => {
            write!(
                f,
                ": by this schedule there is none before, and the one after is {after}."
            )
        }
        (None, None) => f.write_str(", which has none."),
    }
}

/// How long after a tick something was.
fn since(at: Timestamp, later: Timestamp) -> String {
    written(later.duration_since(at).try_into().unwrap_or_default())
}

fn times(tries: u32) -> String {
    match tries {
        1 => "once".to_owned(),
        more => format!("{more} times"),
    }
}

/// The first line of an error.
fn said(f: &mut fmt::Formatter<'_>, error: &str) -> fmt::Result {
    match error.lines().next() {
        Some(line) if !line.is_empty() => write!(f, ": {line}"),
        _ => Ok(()),
    }
}

fn names(f: &mut fmt::Formatter<'_>, calendars: &[String]) -> fmt::Result {
    match calendars {
        [] => Ok(()),
        some => write!(f, " (`{}`)", some.join("`, `")),
    }
}

fn other(f: &mut fmt::Formatter<'_>, run: Option<&OtherRun>) -> fmt::Result {
    let Some(run) = run else { return Ok(()) };
    write!(
        f,
        ": that of {} on {}, with fence {}, ",
        run.tick, run.instance, run.fence
    )?;
    match run.until {
        Some(until) => write!(f, "from {} to {until}", run.since),
        None => write!(f, "since {}", run.since),
    }
}

fn ran(f: &mut fmt::Formatter<'_>, record: &LedgerRecord, at: Timestamp) -> fmt::Result {
    let Outcome::Ran(ran) = record.outcome else {
        return Ok(());
    };
    let (instance, fence) = (&record.instance, record.fence);
    if ran == Ran::NotStarted {
        return write!(
            f,
            "was claimed by {instance} at {} with fence {fence}, and its body never started: its leader could no longer be trusted, or a \
             middleware passed it by.",
            record.claimed_at
        );
    }
    write!(
        f,
        "ran on {instance} from {}, {} late, to {}, with fence {fence}",
        record.claimed_at,
        since(at, record.claimed_at),
        record.settled_at
    )?;
    if record.tries > 1 {
        write!(f, ", in {} tries", record.tries)?;
    }
    match ran {
        Ran::Ok => f.write_str(", and ended well")?,
        Ran::Error => f.write_str(", and ended with an error")?,
        Ran::Panic => f.write_str(", and panicked")?,
        Ran::TimedOut => f.write_str(", and was dropped because it took longer than its `timeout`")?,
        Ran::Cancelled => {
            f.write_str(", and was cancelled, because its leadership ended or a later tick took its place")?;
        }
        Ran::Lost | Ran::NotStarted => {
            f.write_str(", and was lost: its runner gave no sign of life any more, and nobody told a result")?;
        }
    }
    said(f, &record.error)?;
    f.write_str(".")
}

fn missed(f: &mut fmt::Formatter<'_>, reason: MissedReason, record: &LedgerRecord, at: Timestamp) -> fmt::Result {
    let LedgerRecord {
        instance, settled_at, ..
    } = record;
    write!(
        f,
        "did not run: {instance} found it at {settled_at}, {} late",
        since(at, *settled_at)
    )?;
    f.write_str(match reason {
        MissedReason::Skipped => {
            ", which is more than its `grace`, and `missed = \"skip\"` runs no such tick. A longer `grace`, or `missed = \"latest\"` or \
             `\"all\"`, would have run it."
        }
        MissedReason::Coalesced => {
            ", and a later tick was run for it. With `missed = \"all\"` each missed tick is run; where it waited for an earlier run, \
             `overlap` decides."
        }
        MissedReason::TooOld => ", which is more than its `max_age`. A longer one, or none, would have run it.",
        MissedReason::OverLimit => ", when more ticks were owed than its `max_missed`: the oldest go first. A greater one would have run it.",
        MissedReason::Uncovered => {
            ", because no instance that led the group had the job. Run the job's version on every instance that takes part in the group's election."
        }
        MissedReason::ForeignLeader => {
            ", because a holder of another program led the group. Give this fleet a `.namespace(..)` of its own, or end the other one."
        }
    })
}

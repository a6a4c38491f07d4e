//! What ledgers must say by what the jobs are: of a fleet in which nothing goes wrong to the tick, and of every other what no fault excuses.
//! The invariants know nothing of the jobs, so that a fleet that runs each of them late, once too often or not at all keeps them all.

use std::time::Duration;

use jiff::Timestamp;
use leader_core::testing::{FaultKind, Faults, Report, Simulation};
use leader_core::{JobLedger, LedgerRecord, MissedReason, Outcome, Ran};

use crate::jobs::{self, fails_at};

const MINUTE: i64 = 60_000;
/// How late a claim may be when nothing goes wrong, in milliseconds.
const LATE: i64 = 500;

/// All jobs for two hours in which nothing goes wrong.
pub(crate) fn calm(seed: u64) -> Simulation {
    let simulation = Simulation::new().seed(seed).faults(Faults::none());
    let simulation = simulation.lasting(Duration::from_secs(2 * 3_600));
    jobs::ALL
        .iter()
        .fold(simulation, |simulation, (_, add)| add(simulation))
}

/// A store that is away for up to two hours: more than `every_one` may catch up with.
#[cfg(feature = "mutants")]
pub(crate) fn away(seed: u64) -> Simulation {
    let faults = Faults::none()
        .with(FaultKind::StoreStall, 0.3)
        .with(FaultKind::StepDown, 1.0)
        .up_to(Duration::from_secs(2 * 3_600));
    let simulation = Simulation::new().seed(seed).faults(faults);
    let simulation = simulation.lasting(Duration::from_secs(12 * 3_600));
    [1, 8]
        .into_iter()
        .fold(simulation, |simulation, at| (jobs::ALL[at].1)(simulation))
}

/// Milliseconds from the tick to the claim.
fn late(record: &LedgerRecord) -> i64 {
    record.claimed_at.as_millisecond() - record.last.as_millisecond()
}

/// How many tries a tick's run takes whose tries are never disturbed, and whether the last of them fails.
fn tries(record: &LedgerRecord, most: u32) -> (u32, bool) {
    let second = record.last.as_millisecond().unsigned_abs() / 1_000;
    let first = (1..=most).find(|attempt| !fails_at(second, *attempt));
    (first.unwrap_or(most), first.is_none())
}

/// Everything that is wrong with a report, of a fleet that was `calm` or was not.
pub(crate) fn wrong(report: &Report, calm: bool) -> Vec<String> {
    let forgot = report.faults.keys().any(|kind| kind.is_forgetful());
    let stood = report.faults.contains_key(&FaultKind::Pause);
    let mut wrong = Vec::new();
    if forgot {
        return wrong;
    }
    for (job, ledger) in &report.ledgers {
        let end = ledger.cursor.map_or(0, Timestamp::as_millisecond) - 10 * MINUTE;
        // What is under way at the end is cut short.
        let records = ledger
            .records
            .iter()
            .filter(|record| record.last.as_millisecond() < end);
        for record in records {
            let is_right = is_possible(job, record, stood) && (!calm || is_exact(job, record));
            if !is_right {
                wrong.push(format!("`{job}`: {record:?}"));
            }
        }
        if calm && !has_all(job, ledger) {
            wrong.push(format!("`{job}`: {:?}", ledger.counts));
        }
    }
    wrong
}

/// What no fault excuses, of a fleet whose processes may have `stood` still for a while.
fn is_possible(job: &str, record: &LedgerRecord, stood: bool) -> bool {
    let second = record.last.as_millisecond().unsigned_abs() / 1_000;
    match (job, record.outcome) {
        ("flaky" | "anywhere_again", Outcome::Ran(Ran::Ok)) => !fails_at(second, record.tries),
        ("flaky" | "anywhere_again", Outcome::Ran(Ran::Error)) => {
            let most = if job == "flaky" { 4 } else { 3 };
            fails_at(second, record.tries) && record.tries <= most
        }
        (_, Outcome::Ran(Ran::Error | Ran::Panic)) => false,
        // Of two timers that are both late the one of the body may be looked at first.
        ("timed_out", Outcome::Ran(Ran::Ok)) => stood,
        (_, Outcome::Ran(Ran::TimedOut)) => job == "timed_out",
        // The twenty newest that are owed are run, one a second, and none of those is missed.
        ("every_one", Outcome::Ran(_)) => late(record) < 43 * MINUTE,
        ("every_one", Outcome::Missed(reason)) => {
            let age = record.settled_at.as_millisecond() - record.last.as_millisecond();
            reason == MissedReason::OverLimit && age > 37 * MINUTE
        }
        _ => true,
    }
}

/// What becomes of each tick when nothing goes wrong.
fn is_exact(job: &str, record: &LedgerRecord) -> bool {
    let (outcome, in_time) = (record.outcome, (0..LATE).contains(&late(record)));
    let took = record.settled_at.as_millisecond() - record.claimed_at.as_millisecond();
    match job {
        // In turns, which the counts tell.
        "long" => in_time && matches!(outcome, Outcome::Ran(Ran::Ok) | Outcome::OverlapSkipped),
        "waiting" => matches!(
            outcome,
            Outcome::Ran(Ran::Ok) | Outcome::Missed(MissedReason::Coalesced)
        ),
        "replaced" => outcome == Outcome::Ran(Ran::Cancelled) && in_time && took < 61_000,
        "timed_out" => {
            outcome == Outcome::Ran(Ran::TimedOut) && (0..30_000 + LATE).contains(&late(record)) && took < 21_000
        }
        "flaky" | "anywhere_again" => {
            let (most, takes) = if job == "flaky" { (4, 3_000) } else { (3, 4_000) };
            let (expected, fails) = tries(record, most);
            let ran = if fails { Ran::Error } else { Ran::Ok };
            // Each try takes its time, and a pause of at least half a second is before the next.
            let least = i64::from(expected - 1) * (takes + 500);
            (outcome, record.tries) == (Outcome::Ran(ran), expected) && late(record) >= least
        }
        _ => in_time && outcome == Outcome::Ran(Ran::Ok),
    }
}

/// Whether the shares are right where a tick alone does not tell.
fn has_all(job: &str, ledger: &JobLedger) -> bool {
    let count = |outcome| ledger.counts.get(&outcome).copied().unwrap_or(0);
    let ok = count(Outcome::Ran(Ran::Ok));
    let spread = |least: i64| ledger.records.iter().any(|record| late(record) > least);
    match job {
        "long" => ok.abs_diff(count(Outcome::OverlapSkipped)) <= 2,
        // A run begins when the one before it ends.
        "waiting" => {
            let mut runs: Vec<_> = ledger.records.iter().filter(|record| record.fence != 0).collect();
            runs.sort_by_key(|record| record.claimed_at);
            let beside = runs.windows(2).any(|pair| pair[1].claimed_at < pair[0].settled_at);
            10 * ok >= 8 * ledger.decided() && !beside
        }
        "timed_out" => spread(10_000),
        _ => ledger.decided() > 0,
    }
}

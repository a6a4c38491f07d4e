//! One row for each fate, and a random past whose every tick must be explained as it was recorded.

use std::collections::BTreeMap;

use jiff::SignedDuration;
use proptest::prelude::*;

use super::*;
use crate::job::outcome::Ran;
use crate::schedule::Schedule;
use crate::schedule::Zone;
use crate::schedule::blackout::{Blackouts, Calendar};
use crate::store::ledger::Trimmed;
use crate::store::schedules::{EarlierSchedule, StoredSchedule};

pub(super) fn at(text: &str) -> Timestamp {
    format!("2026-11-30T{text}Z").parse().unwrap()
}

/// Every ten minutes; a calendar covers 06:00 to 07:00 and 20:00 to 21:00.
pub(super) fn rule() -> Rule {
    let freeze = Calendar::new()
        .between(at("06:00:00"), at("07:00:00"))
        .between(at("20:00:00"), at("21:00:00"));
    Rule {
        blackouts: Blackouts::new([("freeze", &freeze)], &Zone::UTC),
        ..Rule::new(Schedule::every("10m").unwrap())
    }
}

pub(super) fn record(first: &str, last: &str, outcome: Outcome) -> LedgerRecord {
    let (first, last) = (at(first), at(last));
    let claimed_at = last.checked_add(SignedDuration::from_millis(1_012)).unwrap();
    let took = SignedDuration::from_secs(if outcome.is_ran() { 30 } else { 0 });
    LedgerRecord {
        first,
        last,
        count: 1,
        outcome,
        origin: Origin::Schedule,
        fence: if outcome.is_ran() || outcome == Outcome::Fenced {
            77
        } else {
            0
        },
        term: 5,
        instance: "web-1".to_owned(),
        holder: crate::names::Holder::from_store("web-1#0000000000000007"),
        settled_at: claimed_at.checked_add(took).unwrap(),
        claimed_at,
        error: String::new(),
        tries: u32::from(outcome.is_ran()),
    }
}

pub(super) fn open(tick: &str) -> OpenRun {
    OpenRun {
        tick: at(tick),
        fence: 99,
        term: 5,
        number: 1,
        origin: Origin::Schedule,
        claimed_at: at(tick).checked_add(SignedDuration::from_millis(40)).unwrap(),
        instance: "web-2".to_owned(),
        holder: crate::names::Holder::from_store("web-1#7"),
        tries: 1,
        again_at: None,
        last: None,
        error: String::new(),
    }
}

fn asked(ledger: &JobLedger, rule: &Rule, instant: &str, leader: Option<&str>) -> Explanation {
    asked_of(&GroupControl::default(), ledger, rule, instant, leader)
}

pub(super) fn asked_of(
    control: &GroupControl,
    ledger: &JobLedger,
    rule: &Rule,
    instant: &str,
    leader: Option<&str>,
) -> Explanation {
    explain(&Question {
        job: &JobName::new("report").unwrap(),
        group: &GroupName::new("mail").unwrap(),
        at: at(instant),
        now: at("12:00:30"),
        rule,
        ledger,
        control,
        leader,
        leads_since: leader.map(|_| at("02:00:00")),
        anywhere: false,
    })
}

pub(super) fn ledger() -> JobLedger {
    let failed = LedgerRecord {
        error: "no route to host\n  caused by: the cable".to_owned(),
        tries: 3,
        ..record("08:10:00", "08:10:00", Outcome::Ran(Ran::Error))
    };
    let manual = LedgerRecord {
        origin: Origin::Manual,
        ..record("08:15:00", "08:15:00", Outcome::Ran(Ran::Ok))
    };
    let slow = LedgerRecord {
        settled_at: at("08:35:00"),
        ..record("08:20:00", "08:20:00", Outcome::Ran(Ran::TimedOut))
    };
    let mut waits = open("11:50:00");
    waits.again_at = Some(at("12:01:00"));
    waits.last = Some(Ran::Panic);
    waits.error = "index out of bounds".to_owned();
    let missed = Outcome::Missed;
    JobLedger {
        since: Some(at("03:05:00")),
        cursor: Some(at("11:50:00")),
        open: vec![open("11:40:00"), waits],
        records: vec![
            record("11:30:00", "11:30:00", Outcome::Fenced),
            record("11:20:00", "11:20:00", Outcome::OverlapSkipped),
            record("10:50:00", "11:10:00", Outcome::Paused),
            record("10:20:00", "10:20:00", missed(MissedReason::ForeignLeader)),
            record("10:10:00", "10:10:00", missed(MissedReason::Uncovered)),
            record("10:00:00", "10:00:00", missed(MissedReason::OverLimit)),
            record("09:50:00", "09:50:00", missed(MissedReason::TooOld)),
            record("09:20:00", "09:40:00", missed(MissedReason::Coalesced)),
            record("09:10:00", "09:10:00", missed(MissedReason::Skipped)),
            record("09:00:00", "09:00:00", Outcome::Ran(Ran::NotStarted)),
            record("08:50:00", "08:50:00", Outcome::Ran(Ran::Lost)),
            record("08:40:00", "08:40:00", Outcome::Ran(Ran::Cancelled)),
            record("08:30:00", "08:30:00", Outcome::OverlapSkipped),
            slow,
            manual,
            failed,
            record("08:00:00", "08:00:00", Outcome::Ran(Ran::Ok)),
            record("06:00:00", "06:50:00", Outcome::Blackout),
        ],
        trimmed: Trimmed {
            runs: Some(at("05:50:00")),
            others: None,
        },
        ..JobLedger::default()
    }
}

#[test]
fn each_fate_is_told_in_a_sentence_or_two() {
    let ledger = ledger();
    for (instant, words) in [
        (
            "08:00:00",
            "ran on web-1 from 2026-11-30T08:00:01.012Z, 1s12ms late, to 2026-11-30T08:00:31.012Z, with fence 77, and ended well.",
        ),
        (
            "08:10:00",
            "ran on web-1 from 2026-11-30T08:10:01.012Z, 1s12ms late, to 2026-11-30T08:10:31.012Z, with fence 77, in 3 tries, and ended with an error: no route to host.",
        ),
        ("08:20:00", "and was dropped because it took longer than its `timeout`."),
        (
            "08:30:00",
            "was skipped at 2026-11-30T08:30:01.012Z, because an earlier run had not ended: that of 2026-11-30T08:20:00Z on web-1, with fence 77, from 2026-11-30T08:20:01.012Z to 2026-11-30T08:35:00Z. With `overlap = \"wait\"`",
        ),
        ("08:40:00", "and was cancelled, because its leadership ended"),
        ("08:50:00", "and was lost: its runner gave no sign of life"),
        (
            "09:00:00",
            "was claimed by web-1 at 2026-11-30T09:00:01.012Z with fence 77, and its body never started",
        ),
        (
            "09:10:00",
            "did not run: web-1 found it at 2026-11-30T09:10:01.012Z, 1s12ms late, which is more than its `grace`, and `missed = \"skip\"`",
        ),
        ("09:30:00", "10m1s12ms late, and a later tick was run for it."),
        ("09:50:00", "more than its `max_age`"),
        ("10:00:00", "more ticks were owed than its `max_missed`"),
        ("10:10:00", "because no instance that led the group had the job"),
        ("10:20:00", "because a holder of another program led the group"),
        (
            "11:00:00",
            "did not run, because the job was paused; web-1 recorded it at 2026-11-30T11:10:01.012Z.",
        ),
        // The run that was in the way has left no record.
        ("11:20:00", "because an earlier run had not ended. With"),
        (
            "11:30:00",
            "ran on web-1, and its result was refused: the run with fence 77 had been",
        ),
        (
            "06:20:00",
            "did not run, because a blackout calendar covered it (`freeze`); web-1 recorded it",
        ),
        (
            "11:40:00",
            "runs now on web-2 since 2026-11-30T11:40:00.04Z, begun 40ms late, with fence 99.",
        ),
        (
            "11:50:00",
            "has failed once on web-2 (panic): index out of bounds; it is tried again from 2026-11-30T12:01:00Z on.",
        ),
        (
            "12:00:00",
            "was due at 2026-11-30T12:00:00Z and is not decided yet: an earlier run has not ended: that of 2026-11-30T11:40:00Z on web-2, with fence 99, since",
        ),
        ("12:10:00", "is not due yet: it is due at 2026-11-30T12:10:00Z."),
        (
            "20:30:00",
            "is not due yet: it is due at 2026-11-30T20:30:00Z, and will not run, because a blackout calendar covers it (`freeze`).",
        ),
        (
            "03:00:00",
            "was before the fleet first took the job up, which was at 2026-11-30T03:05:00Z",
        ),
        (
            "05:00:00",
            "was decided, but its details are gone: records of ticks up to 2026-11-30T05:50:00Z have been trimmed; the counts of outcomes remain.",
        ),
        (
            "07:30:00",
            "was passed over without a record, though none of that time was trimmed",
        ),
        // A run that somebody asked for is no tick.
        (
            "08:15:00",
            "is no tick of the schedule every 10m: the nearest are 2026-11-30T08:10:00Z and 2026-11-30T08:20:00Z.",
        ),
        ("09:35:00", "is no tick of the schedule every 10m: the nearest are"),
    ] {
        let told = asked(&ledger, &rule(), instant, Some("web-3")).to_string();
        assert!(
            told.starts_with(&format!("`report` at 2026-11-30T{instant}Z ")),
            "{told}"
        );
        assert!(told.contains(words), "{instant}: {told}");
        assert!(told.ends_with('.') && told.matches(". ").count() <= 2, "{told}");
    }
}

#[test]
fn what_is_due_and_not_decided_says_who_leads() {
    let idle = JobLedger {
        open: Vec::new(),
        waiting: Some(at("11:50:00")),
        ..ledger()
    };
    let told = |leader| asked(&idle, &rule(), "12:00:00", leader).to_string();
    assert!(told(Some("web-3")).ends_with(
        "is not decided yet; as far as this instance knows, web-3 leads the group `mail` since 2026-11-30T02:00:00Z."
    ));
    assert!(told(None).ends_with("is not decided yet; as far as this instance knows, nobody leads the group `mail`."));
    let open = Explanation {
        job: JobName::new("report").unwrap(),
        group: GroupName::new("mail").unwrap(),
        at: at("12:00:00"),
        schedule: "every 10m".to_owned(),
        fate: Fate::Undecided {
            due: at("12:00:00"),
            behind: None,
            leader: None,
            leads_since: None,
            calendars: Vec::new(),
            lacked_since: None,
            anywhere: true,
        },
        asked_for: Vec::new(),
    };
    let words = open.to_string();
    assert!(words.ends_with("it needs no leader, and whatever instance with the job comes first decides it."));
    let waits = asked(&idle, &rule(), "11:50:00", None).to_string();
    assert!(
        waits.ends_with("waits, as `overlap = \"wait\"` has it, until an earlier run has ended."),
        "{waits}"
    );
    let never = asked(&JobLedger::default(), &rule(), "12:00:00", None).to_string();
    assert!(
        never.ends_with("no leader of the group `mail` has had the job yet."),
        "{never}"
    );
    let mut covered = idle.clone();
    covered.records.clear();
    covered.cursor = Some(at("05:50:00"));
    let told = asked(&covered, &rule(), "06:10:00", None).to_string();
    assert!(
        told.contains("is not decided yet; it will not run, because a blackout calendar covers it (`freeze`); as far"),
        "{told}"
    );
}

#[test]
fn the_schedule_in_force_then_decides() {
    let stored = |text: &str, since: &str| StoredSchedule {
        text: text.to_owned(),
        since: Some(at(since)),
        ..StoredSchedule::default()
    };
    let earlier = |text, since, until| EarlierSchedule {
        schedule: stored(text, since),
        until: at(until),
    };
    let ledger = JobLedger {
        since: Some(at("01:00:00")),
        cursor: Some(at("11:50:00")),
        schedule: Some(stored("every 10m", "08:00:00")),
        schedules: vec![
            earlier("every 15m", "04:00:00", "08:00:00"),
            earlier("every blue moon", "01:00:00", "04:00:00"),
        ],
        ..JobLedger::default()
    };
    let told = |instant: &str| asked(&ledger, &rule(), instant, None);
    assert_eq!(told("08:10:00").fate, Fate::Unrecorded);
    assert_eq!(
        (told("05:45:00").fate, told("05:45:00").schedule.as_str()),
        (Fate::Unrecorded, "every 15m")
    );
    // The last of the old one's ticks is still its own; the new one's are those after it.
    assert_eq!(told("08:00:00").schedule, "every 15m");
    let (before, after) = (Some(at("07:45:00")), Some(at("08:00:00")));
    assert_eq!(told("07:50:00").fate, Fate::NotATick { before, after });
    let (before, after) = (None, Some(at("08:10:00")));
    assert_eq!(told("08:05:00").fate, Fate::NotATick { before, after });
    assert_eq!(told("02:00:00").fate, Fate::UnreadableSchedule);
    assert!(
        told("02:00:00")
            .to_string()
            .contains("every blue moon, which this version cannot read")
    );
    // Before all that is known.
    assert_eq!(told("00:30:00").fate, Fate::UnreadableSchedule);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn every_tick_of_a_random_past_is_explained_as_it_was_recorded(
        decisions in prop::collection::vec((0_usize..17, 1_u64..6), 1..40),
        keeps in 1_usize..40,
        pending in 0_u64..3,
    ) {
        let rule = Rule::new(Schedule::every("10m").unwrap());
        let since = at("00:05:00");
        let outcomes: Vec<_> = Outcome::all().collect();
        let mut ledger = JobLedger { since: Some(since), cursor: Some(since), ..JobLedger::default() };
        let mut expected = BTreeMap::new();
        let mut cursor = since;
        for (outcome, span) in decisions {
            let outcome = outcomes[outcome];
            let first = rule.schedule.next(cursor).unwrap();
            let count = if outcome.is_missed() || outcome == Outcome::Blackout { span } else { 1 };
            let last = rule.schedule.ticks(cursor).nth(usize::try_from(count).unwrap() - 1).unwrap();
            for tick in rule.schedule.ticks(cursor).take_while(|tick| *tick <= last) {
                expected.insert(tick, Some(outcome));
            }
            ledger.records.insert(0, LedgerRecord { first, last, count, ..record("00:00:00", "00:00:00", outcome) });
            cursor = last;
        }
        ledger.cursor = Some(cursor);
        // The oldest are trimmed, each list with a mark of its own.
        for gone in ledger.records.split_off(keeps.min(ledger.records.len())) {
            let mark = if gone.outcome.is_ran() { &mut ledger.trimmed.runs } else { &mut ledger.trimmed.others };
            *mark = Some(gone.last).max(*mark);
            for tick in rule.schedule.ticks(gone.first.checked_sub(SignedDuration::from_secs(1)).unwrap()) {
                if tick > gone.last {
                    break;
                }
                expected.insert(tick, None);
            }
        }
        let now = rule.schedule.ticks(cursor).nth(usize::try_from(pending).unwrap()).unwrap();
        let ask = |instant| explain(&Question {
            job: &JobName::new("report").unwrap(),
            group: &GroupName::new("mail").unwrap(),
            at: instant,
            now,
            rule: &rule,
            ledger: &ledger,
            control: &GroupControl::default(),
            leader: None,
            leads_since: None,
            anywhere: false,
        });
        for (tick, outcome) in &expected {
            let fate = ask(*tick).fate;
            let found = match &fate {
                Fate::Ran(record) | Fate::Missed { record, .. } | Fate::OverlapSkipped { record, .. } | Fate::Paused { record, .. }
                | Fate::Blackout { record, .. } | Fate::Fenced(record) => {
                    prop_assert!(record.first <= *tick && *tick <= record.last);
                    Some(record.outcome)
                }
                Fate::Trimmed { up_to } => {
                    prop_assert!(tick <= up_to);
                    None
                }
                other => return Err(TestCaseError::fail(format!("{tick}: {other:?}"))),
            };
            prop_assert_eq!(found, *outcome, "{}", tick);
            let beside = tick.checked_add(SignedDuration::from_secs(1)).unwrap();
            let is_none = matches!(ask(beside).fate, Fate::NotATick { .. });
            prop_assert!(is_none, "{}", beside);
        }
        for tick in rule.schedule.ticks(cursor).take_while(|tick| *tick <= now) {
            let fate = ask(tick).fate;
            let is_open = matches!(fate, Fate::Undecided { .. });
            prop_assert!(is_open, "{}", tick);
        }
        let next = rule.schedule.next(now).unwrap();
        prop_assert_eq!(ask(next).fate, Fate::NotYetDue { due: next, calendars: Vec::new() });
        prop_assert_eq!(ask(at("00:00:00")).fate, Fate::BeforeFirstSeen { since: Some(since) });
    }
}

#[test]
fn what_the_fleet_was_without_is_no_tick_and_what_the_leader_lacks_is_told() {
    let absence = |kind, from, until: Option<&str>| Absence {
        kind,
        from: at(from),
        until: until.map(at),
    };
    let ledger = JobLedger {
        absences: vec![
            absence(AbsenceKind::Removed, "07:05:00", Some("07:40:00")),
            absence(AbsenceKind::Uncovered, "11:52:00", None),
        ],
        ..ledger()
    };
    let told = |text| asked(&ledger, &rule(), text, None).to_string();
    assert_eq!(
        told("07:10:00"),
        "`report` at 2026-11-30T07:10:00Z is no tick: no living instance of the fleet had the job from 2026-11-30T07:05:00Z to \
         2026-11-30T07:40:00Z, and nothing is owed for that time."
    );
    assert!(told("07:40:00").contains("is no tick"));
    assert!(!told("07:50:00").contains("is no tick") && !told("07:00:00").contains("is no tick"));
    let told = told("12:00:00");
    assert!(
        told.contains("is not decided yet; it will not run, because the leaders of the group have lacked the job since 2026-11-30T11:52:00Z"),
        "{told}"
    );
}

/// Runs that were asked for at exactly that instant, and none of the schedule's.
#[test]
fn what_was_asked_for_is_told_beside_the_fate() {
    let rule = rule();
    for (instant, fences) in [("08:15:00", vec![77]), ("08:10:00", vec![]), ("08:20:00", vec![])] {
        let told = asked(&ledger(), &rule, instant, None);
        let asked_for: Vec<_> = told.asked_for.iter().map(|record| record.fence).collect();
        assert_eq!(asked_for, fences, "{instant}");
        assert!(told.asked_for.iter().all(|record| record.origin == Origin::Manual));
    }
}

/// What another schedule decided together says nothing of one of its ends by name: the schedule in force then does.
#[test]
fn a_span_names_none_of_its_ticks() {
    let mut ledger = ledger();
    ledger.records = vec![record("09:21:00", "09:41:00", Outcome::Missed(MissedReason::Coalesced))];
    for instant in ["09:21:00", "09:41:00"] {
        let fate = asked(&ledger, &rule(), instant, None).fate;
        assert!(matches!(fate, Fate::NotATick { .. }), "{instant}: {fate:?}");
    }
}

#[test]
fn the_cursor_itself_is_decided_and_an_absence_begins_after_its_first_instant() {
    let mut ledger = ledger();
    (ledger.open, ledger.records, ledger.trimmed) = (Vec::new(), Vec::new(), Trimmed::default());
    let fate = |ledger: &JobLedger, instant| asked(ledger, &rule(), instant, None).fate;
    assert_eq!(fate(&ledger, "11:50:00"), Fate::Unrecorded);
    assert!(matches!(fate(&ledger, "12:00:00"), Fate::Undecided { .. }));
    ledger.absences = vec![Absence {
        kind: AbsenceKind::Removed,
        from: at("10:10:00"),
        until: Some(at("10:30:00")),
    }];
    assert_eq!(fate(&ledger, "10:10:00"), Fate::Unrecorded);
    for instant in ["10:20:00", "10:30:00"] {
        assert!(matches!(fate(&ledger, instant), Fate::Removed { .. }), "{instant}");
    }
    assert_eq!(fate(&ledger, "10:40:00"), Fate::Unrecorded);
}

/// The run that was under way when the tick was skipped: an earlier one, and no record of anything else.
#[test]
fn what_was_overlapped_names_the_run_that_was_under_way() {
    let behind = |records: Vec<LedgerRecord>| {
        let mut ledger = ledger();
        (ledger.open, ledger.records) = (Vec::new(), records);
        match asked(&ledger, &rule(), "08:30:00", None).fate {
            Fate::OverlapSkipped { behind, .. } => behind.map(|run| run.tick),
            other => panic!("{other:?}"),
        }
    };
    let skipped = record("08:30:00", "08:30:00", Outcome::OverlapSkipped);
    let ran = |first: &str, outcome| LedgerRecord {
        claimed_at: at(first),
        settled_at: at("08:35:00"),
        ..record(first, first, outcome)
    };
    let slow = ran("08:20:00", Outcome::Ran(Ran::Ok));
    assert_eq!(behind(vec![skipped.clone(), slow.clone()]), Some(at("08:20:00")));
    for other in [
        ran("08:20:00", Outcome::Paused),
        // A run of the same tick, that somebody asked for.
        LedgerRecord {
            origin: Origin::Manual,
            ..ran("08:30:00", Outcome::Ran(Ran::Ok))
        },
        ran("08:40:00", Outcome::Ran(Ran::Ok)),
    ] {
        assert_eq!(behind(vec![skipped.clone(), other.clone()]), None, "{other:?}");
        assert_eq!(behind(vec![skipped.clone(), other, slow.clone()]), Some(at("08:20:00")));
    }
}

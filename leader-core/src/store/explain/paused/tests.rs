//! Pauses that held ticks, or hold them, as they are told.

use super::super::tests::{asked_of, at, ledger, rule};
use super::super::{Explanation, OpenRun};
use super::*;
use crate::names::JobName;
use crate::store::control::GroupControl;
use crate::store::ledger::JobLedger;

#[allow(clippy::unnecessary_wraps, reason = "what a pause names")]
fn job() -> Option<JobName> {
    Some(JobName::new("report").unwrap())
}

fn of(job: Option<JobName>, gap: Gap, since: &str, until: Option<&str>) -> Pause {
    Pause {
        number: u64::try_from(at(since).as_microsecond()).unwrap(),
        job,
        gap,
        since: at(since),
        until: until.map(at),
        by: "ann".to_owned(),
        reason: String::new(),
    }
}

fn act(job: Option<JobName>, at_: &str, deed: Deed) -> Act {
    Act {
        number: u64::try_from(at(at_).as_microsecond()).unwrap(),
        at: at(at_),
        deed,
        job,
        by: "bob".to_owned(),
        reason: "a migration".to_owned(),
    }
}

fn skip(until: Option<&str>) -> Deed {
    Deed::pause(Gap::Skip, until.map(at))
}

/// What is told of an instant, with nothing in the way but pauses.
fn told(control: &GroupControl, instant: &str) -> Explanation {
    let idle = JobLedger {
        open: Vec::<OpenRun>::new(),
        ..ledger()
    };
    asked_of(control, &idle, &rule(), instant, None)
}

fn in_force(pauses: &[Pause]) -> GroupControl {
    GroupControl {
        pauses: pauses.to_vec(),
        ..GroupControl::default()
    }
}

fn done(acts: &[Act]) -> GroupControl {
    GroupControl {
        // The newest is the first.
        acts: acts.iter().rev().cloned().collect(),
        ..GroupControl::default()
    }
}

/// The pauses that hold 12:00, which is due and not decided.
fn holding(pauses: &[Pause]) -> Option<Vec<Pause>> {
    match told(&in_force(pauses), "12:00:00").fate {
        Fate::Held { pauses, .. } => Some(pauses),
        Fate::Undecided { .. } => None,
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_is_held_names_the_pauses_that_decide() {
    let owed = of(job(), Gap::Owed, "11:55:00", None);
    let all_owed = of(None, Gap::Owed, "11:58:00", Some("13:00:00"));
    let skips = of(None, Gap::Skip, "11:55:00", None);
    assert_eq!(holding(std::slice::from_ref(&owed)), Some(vec![owed.clone()]));
    assert_eq!(
        holding(&[all_owed.clone(), owed.clone()]),
        Some(vec![all_owed, owed.clone()])
    );
    assert_eq!(
        holding(&[skips.clone(), owed.clone()]),
        Some(vec![owed]),
        "what is owed is not given up"
    );
    assert_eq!(holding(std::slice::from_ref(&skips)), Some(vec![skips]));
    // One that began later skips no tick from before, and holds it if it owes.
    assert_eq!(holding(&[of(None, Gap::Skip, "12:00:10", None)]), None);
    assert!(holding(&[of(None, Gap::Owed, "12:00:10", None)]).is_some());
    // Over by the fleet's clock, which is at 12:00:30, or another job's.
    assert_eq!(holding(&[of(job(), Gap::Owed, "11:55:00", Some("12:00:30"))]), None);
    assert_eq!(
        holding(&[of(JobName::new("other").ok(), Gap::Owed, "11:55:00", None)]),
        None
    );
}

#[test]
fn what_is_held_is_told_with_who_why_and_until_when() {
    let owed = Pause {
        reason: "a migration".to_owned(),
        ..of(job(), Gap::Owed, "11:55:00", Some("13:00:00"))
    };
    assert_eq!(
        told(&in_force(&[owed]), "12:00:00").to_string(),
        "`report` at 2026-11-30T12:00:00Z was due at 2026-11-30T12:00:00Z and is not decided yet, because ann paused the job at \
         2026-11-30T11:55:00Z until 2026-11-30T13:00:00Z (\"a migration\"); when that ends it runs if it is still within its `grace`, and its \
         `missed` policy decides otherwise."
    );
    let skips = of(None, Gap::Skip, "11:55:00", None);
    let words = told(&in_force(&[skips]), "12:00:00").to_string();
    let wanted = "because ann paused the group `mail` at 2026-11-30T11:55:00Z until it is resumed; it will not run.";
    assert!(words.ends_with(wanted), "{words}");
}

#[test]
fn a_tick_that_waits_is_held_once_nothing_runs_any_more() {
    let waits = JobLedger {
        open: Vec::new(),
        waiting: Some(at("11:50:00")),
        ..ledger()
    };
    let control = in_force(&[of(job(), Gap::Owed, "11:55:00", None)]);
    let fate = |ledger: &JobLedger| asked_of(&control, ledger, &rule(), "11:50:00", None).fate;
    assert!(matches!(fate(&waits), Fate::Held { .. }));
    let open = super::super::tests::open("11:40:00");
    let behind = JobLedger {
        open: vec![open],
        ..waits
    };
    assert!(matches!(fate(&behind), Fate::Waits { behind: Some(_) }));
}

/// The number of the act that is named for 11:00, which the record of 10:50 to 11:10 has as paused, settled at 11:10:01.012.
fn named(acts: &[Act]) -> Option<Timestamp> {
    match told(&done(acts), "11:00:00").fate {
        Fate::Paused { pause, .. } => pause.map(|pause| pause.since),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_record_names_the_pause_that_was_in_force_then() {
    let ended = |at: &str| act(job(), at, Deed::Resume);
    assert_eq!(named(&[]), None);
    assert_eq!(named(&[act(job(), "10:45:00", skip(None))]), Some(at("10:45:00")));
    let resumed = [act(job(), "10:45:00", skip(None)), ended("11:40:00")];
    assert_eq!(named(&resumed), Some(at("10:45:00")), "it ended later");
    // Of the group's and the job's that which skipped first.
    let two = [act(None, "10:45:00", skip(None)), act(job(), "10:55:00", skip(None))];
    assert_eq!(named(&two), Some(at("10:45:00")));
    let other = [act(JobName::new("other").ok(), "10:45:00", skip(None))];
    assert_eq!(named(&other), None);
    // The record goes on under a later pause: that of this very tick is named.
    let prolonged = [
        act(job(), "10:45:00", skip(None)),
        ended("11:05:00"),
        act(job(), "11:06:00", skip(None)),
    ];
    assert_eq!(named(&prolonged), Some(at("10:45:00")));
    let by_itself = [act(job(), "10:45:00", skip(Some("11:05:00")))];
    assert_eq!(named(&by_itself), Some(at("10:45:00")));
    // Over before the tick, or begun after it.
    assert_eq!(named(&[act(job(), "10:45:00", skip(Some("11:00:00")))]), None);
    assert_eq!(named(&[act(job(), "11:00:01", skip(None))]), None);
    // What the store keeps of pauses goes before: its act may be gone.
    let kept = in_force(&[of(job(), Gap::Skip, "10:45:00", None)]);
    let words = told(&kept, "11:00:00").to_string();
    let wanted = "did not run, because ann paused the job at 2026-11-30T10:45:00Z until it is resumed; web-1 recorded it at \
                  2026-11-30T11:10:01.012Z.";
    assert!(words.ends_with(wanted), "{words}");
    let over = GroupControl {
        ended: vec![of(None, Gap::Skip, "10:45:00", Some("11:30:00"))],
        ..GroupControl::default()
    };
    let words = told(&over, "11:00:00").to_string();
    let wanted =
        "because ann paused the group `mail` at 2026-11-30T10:45:00Z until 2026-11-30T11:30:00Z; web-1 recorded it";
    assert!(words.contains(wanted), "{words}");
}

/// Nobody has led since the pause began, and it is over.
#[test]
fn what_fell_due_in_a_pause_that_is_over_is_told_as_what_it_will_be() {
    let over = |until| GroupControl {
        ended: vec![of(job(), Gap::Skip, "11:55:00", Some(until))],
        ..GroupControl::default()
    };
    let words = told(&over("12:00:20"), "12:00:00").to_string();
    let wanted = "because ann paused the job at 2026-11-30T11:55:00Z until 2026-11-30T12:00:20Z; it will not run.";
    assert!(words.ends_with(wanted), "{words}");
    assert!(matches!(
        told(&over("12:00:00"), "12:00:00").fate,
        Fate::Undecided { .. }
    ));
}

//! The schedule of a job that was in force at an instant.

use jiff::Timestamp;

use crate::schedule::planner::Rule;
use crate::store::ledger::JobLedger;
use crate::store::schedules::StoredSchedule;

/// By what the ticks around an instant were planned.
#[derive(Debug)]
pub(super) enum InForce {
    /// The schedule, with this instance's own policies.
    Rule {
        rule: Box<Rule>,
        /// Its ticks are those after this instant.
        since: Option<Timestamp>,
        /// Its ticks are those up to this instant.
        until: Option<Timestamp>,
    },
    /// This version cannot read it.
    Unreadable(String),
}

impl InForce {
    pub(super) fn text(&self) -> &str {
        match self {
            Self::Rule { rule, .. } => rule.schedule.as_str(),
            Self::Unreadable(text) => text,
        }
    }
}

/// Between which ends and beginnings an instant lies, where the job was made at run time and had no schedule then. What was due when it
/// ended, and not decided, belongs to that span.
pub(super) fn ended(ledger: &JobLedger, at: Timestamp) -> Option<(Option<Timestamp>, Option<Timestamp>)> {
    ledger.handler.as_ref()?;
    let present = ledger.schedule.as_ref();
    let decided = ledger.cursor.is_some_and(|cursor| at <= cursor);
    if let Some(retired) = ledger.retired.filter(|retired| at > *retired || !decided) {
        return Some((Some(retired), None));
    }
    let spans = ledger
        .schedules
        .iter()
        .map(|earlier| (earlier.schedule.since, earlier.until));
    let covers = |(since, until): (Option<Timestamp>, Timestamp)| since.is_none_or(|since| since < at) && at <= until;
    let in_force = present.is_some_and(|kept| kept.since.is_none_or(|since| since < at));
    if in_force || ledger.since.is_none_or(|since| at <= since) || spans.clone().any(covers) {
        return None;
    }
    let since = spans.clone().map(|(_, until)| until).filter(|until| *until < at).max();
    let began = spans
        .filter_map(|(since, _)| since)
        .chain(present.and_then(|kept| kept.since));
    Some((since?, began.filter(|began| *began >= at).min())).map(|(since, until)| (Some(since), until))
}

/// The schedule in force at an instant, as the store keeps it; where it keeps none, the instance's own.
pub(super) fn at(ledger: &JobLedger, own: &Rule, at: Timestamp) -> InForce {
    let began = |schedule: &StoredSchedule| schedule.since.is_none_or(|since| since < at);
    let earlier = || {
        let mut earlier = ledger.schedules.iter();
        let found = earlier.find(|earlier| at <= earlier.until && began(&earlier.schedule))?;
        Some((&found.schedule, Some(found.until)))
    };
    let present = ledger.schedule.as_ref().map(|schedule| (schedule, None));
    // Before all that is known the oldest is the best guess: the fleet did not have the job yet, or the store has lost what it knew.
    let oldest = || {
        ledger
            .schedules
            .last()
            .map(|oldest| (&oldest.schedule, Some(oldest.until)))
    };
    let found = present
        .filter(|(schedule, _)| began(schedule))
        .or_else(earlier)
        .or_else(oldest)
        .or(present);
    let Some((stored, until)) = found else {
        return InForce::Rule {
            rule: Box::new(own.clone()),
            since: None,
            until: None,
        };
    };
    let since = stored.since.filter(|since| *since < at);
    let rule = if stored.text == own.schedule.as_str() {
        own.clone()
    } else if let Ok(schedule) = stored.text.parse() {
        own.clone().with_schedule(schedule)
    } else {
        return InForce::Unreadable(stored.text.clone());
    };
    InForce::Rule {
        rule: Box::new(rule),
        since,
        until,
    }
}

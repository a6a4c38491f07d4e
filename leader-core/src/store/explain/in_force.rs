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

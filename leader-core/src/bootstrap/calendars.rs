//! The calendars that were given, and those that each job names.

use std::collections::BTreeSet;

use super::Bootstrap;
use super::fault::Fault;
use super::settings::{Faults, Vars};
use super::variables::job_prefix;
use super::wish::JobSettings;
use crate::job::record::Record;
use crate::names::JobName;
use crate::schedule::blackout::{Blackouts, Calendar};
use crate::schedule::{Schedule, Zone};

impl Bootstrap {
    /// A calendar of days and spans on which no job runs that names it with `except = ".."`. Given twice under one name, both count
    /// together. Give all instances of the fleet the same ones: which ticks a calendar covers is decided by the instance that leads.
    ///
    /// ```
    /// # fn doc() {
    /// use jiff::civil::date;
    /// use leader_core::Calendar;
    ///
    /// # let _ =
    /// leader_core::bootstrap(leader_core::Embedded::new())
    ///     .calendar("holidays", Calendar::new().day(date(2026, 12, 25)).day(date(2026, 12, 26)))
    /// # ;
    /// # }
    /// ```
    pub fn calendar(mut self, name: impl Into<String>, calendar: Calendar) -> Self {
        self.calendars.push((name.into(), calendar));
        self
    }
}

/// Names and ranges of what was given.
pub(super) fn check(calendars: &[(String, Calendar)], faults: &mut Faults) {
    for (name, calendar) in calendars {
        // A calendar's name is as legal as a job's.
        faults.keep(JobName::new(name.clone()));
        faults
            .0
            .extend(calendar.reversed().into_iter().map(|range| Fault::ReversedRange {
                calendar: name.clone(),
                range,
            }));
    }
}

/// The calendars that a job names: by the environment, else by the code, else by the attribute.
pub(super) fn of<'a>(record: &Record, changes: impl Iterator<Item = &'a JobSettings>, vars: Vars) -> Vec<String> {
    if let Some(names) = vars.get(&format!("{}_EXCEPT", job_prefix(record.name))) {
        let names = names.split(',').map(|name| name.trim().to_owned());
        return names.filter(|name| name != "none" && !name.is_empty()).collect();
    }
    let said = changes.filter_map(|change| change.except.clone()).last();
    said.unwrap_or_else(|| record.except.iter().map(|name| (*name).to_owned()).collect())
}

/// What they cover in the job's zone.
pub(super) fn resolved<'a>(
    calendars: &'a [(String, Calendar)],
    record: &Record,
    names: &[String],
    schedule: &Schedule,
    used: &mut BTreeSet<&'a str>,
    faults: &mut Faults,
) -> Blackouts {
    for calendar in names {
        if !calendars.iter().any(|(name, _)| name == calendar) {
            faults.0.push(Fault::UnknownCalendar {
                job: record.name.to_owned(),
                calendar: calendar.clone(),
                known: known(calendars),
            });
        }
    }
    let given = || calendars.iter().filter(|(name, _)| names.contains(name));
    used.extend(given().map(|(name, _)| name.as_str()));
    let zone = schedule.zone().cloned().unwrap_or(Zone::UTC);
    Blackouts::new(given().map(|(name, calendar)| (name.as_str(), calendar)), &zone)
}

fn known(calendars: &[(String, Calendar)]) -> String {
    let names: BTreeSet<_> = calendars.iter().map(|(name, _)| format!("`{name}`")).collect();
    if names.is_empty() {
        return "none".to_owned();
    }
    names.into_iter().collect::<Vec<_>>().join(", ")
}

/// Tells of calendars that no job names: a typo in one of the two places would let a job run on a holiday.
pub(super) fn warn_of_idle(calendars: &[(String, Calendar)], used: &BTreeSet<&str>) {
    let idle: BTreeSet<_> = calendars.iter().map(|(name, _)| name.as_str()).collect();
    for calendar in idle.difference(used) {
        tracing::warn!(
            calendar,
            "no job names this calendar with `except`, and it has no effect"
        );
    }
}

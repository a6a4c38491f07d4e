//! Who has had the jobs of a group: the steps of `coverage.lua`.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::{Data, Time};
use crate::names::JobName;
use crate::store::coverage::{Absence, AbsenceKind, Cover, KEPT_ABSENCES};

/// What is kept of each job that the group ever had.
#[derive(Debug, Default)]
pub(super) struct Coverage {
    jobs: BTreeMap<JobName, Vec<Absence>>,
    /// When the last lead ended.
    pub(super) led_until: Option<Timestamp>,
}

/// Whether the leader still leads.
pub(super) fn cover(data: &mut Data, request: &Cover, time: Time) -> bool {
    let group = data.groups.entry(request.group.clone()).or_default();
    if !group.is_held_by(&request.holder, request.term, time.moment) {
        return false;
    }
    let own = request.jobs.iter().cloned().collect();
    group
        .coverage
        .mark_lacked(&own, request.elsewhere.as_deref(), time.wall);
    true
}

impl Coverage {
    /// The absences of a job.
    pub(super) fn of(&self, job: &JobName) -> Vec<Absence> {
        self.jobs.get(job).cloned().unwrap_or_default()
    }

    /// Ends what was marked while the job had no leader, and forgets what has been decided since. What a job that nobody had would have
    /// been due is nobody's, whoever led.
    pub(super) fn cover(&mut self, job: &JobName, cursor: Timestamp, now: Timestamp) -> Vec<Absence> {
        let led_until = self.led_until.map_or(now, |until| until.min(now));
        let absences = self.jobs.entry(job.clone()).or_default();
        let uncovered = absences.last().is_some_and(|last| last.kind == AbsenceKind::Uncovered);
        end_open(absences, if uncovered { led_until } else { now });
        absences.retain(|absence| {
            let removed = absence.kind == AbsenceKind::Removed;
            removed || absence.until.is_some_and(|until| until > cursor)
        });
        absences.clone()
    }

    /// Marks what the leader lacks: since now, unless it is so already.
    pub(super) fn mark_lacked(&mut self, own: &BTreeSet<JobName>, elsewhere: Option<&[JobName]>, now: Timestamp) {
        for (job, absences) in self.jobs.iter_mut().filter(|(job, _)| !own.contains(*job)) {
            let kind = if elsewhere.is_none_or(|elsewhere| elsewhere.contains(job)) {
                AbsenceKind::Uncovered
            } else {
                AbsenceKind::Removed
            };
            let open = absences.last().filter(|last| last.until.is_none());
            if open.is_some_and(|last| last.kind == kind) {
                continue;
            }
            end_open(absences, now);
            absences.push(Absence {
                kind,
                from: now,
                until: None,
            });
            let excess = absences.len().saturating_sub(KEPT_ABSENCES);
            absences.drain(..excess);
        }
    }
}

fn end_open(absences: &mut Vec<Absence>, at: Timestamp) {
    if let Some(last) = absences.pop_if(|last| last.until.is_none())
        && at > last.from
    {
        absences.push(Absence {
            until: Some(at),
            ..last
        });
    }
}

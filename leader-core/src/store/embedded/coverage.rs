//! Who has had the jobs of a group: the steps of `coverage.lua`.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::{Data, Group, Time};
use crate::names::JobName;
use crate::store::coverage::{Absence, AbsenceKind, Cover, KEPT_ABSENCES};
use crate::store::ledger::{JobLedger, LedgerRecord};
use crate::store::request::TakeOver;

/// What is kept of each job that the group ever had.
#[derive(Clone, Debug, Default)]
pub(super) struct Coverage {
    jobs: BTreeMap<JobName, Vec<Absence>>,
    /// The names under which jobs go on that had others.
    moved: BTreeMap<JobName, JobName>,
    /// When the last lead ended.
    pub(super) led_until: Option<Timestamp>,
    /// The spans in which another implementation has led since the last take-over.
    pub(super) foreign: Vec<Absence>,
}

/// Whether the leader still leads.
pub(super) fn cover(data: &mut Data, request: &Cover, time: Time<'_>) -> bool {
    let group = data.groups.entry(request.group.clone()).or_default();
    if !group.is_held_by(&request.holder, request.term, time.moment) {
        return false;
    }
    let own = request.jobs.iter().map(|job| group.coverage.goes_on_as(job)).collect();
    let before = time.is_short().then(|| group.coverage.clone());
    group
        .coverage
        .mark_lacked(&own, request.elsewhere.as_deref(), time.wall);
    group.coverage.keep_or_drop(before, time);
    true
}

impl Coverage {
    /// Where the state of a job is kept. Names are followed 16 times, and then as little as a circle of them.
    pub(super) fn goes_on_as(&self, job: &JobName) -> JobName {
        let mut name = job;
        for _ in 0..=KEPT_ABSENCES {
            let Some(next) = self.moved.get(name) else {
                return name.clone();
            };
            name = next;
        }
        job.clone()
    }

    /// Whether a job goes on under another name.
    pub(super) fn is_moved(&self, job: &JobName) -> bool {
        self.moved.contains_key(job)
    }

    /// The job needs no leader: there is none that could lack it.
    pub(super) fn forget(&mut self, job: &JobName) {
        self.jobs.remove(job);
    }

    /// Ends what was marked while the job had no leader, and forgets what has been decided since. What a job that nobody had would have
    /// been due is nobody's, whoever led.
    pub(super) fn cover(&mut self, job: &JobName, cursor: Timestamp, now: Timestamp) -> Vec<Absence> {
        let led_until = self.led_until.map_or(now, |until| until.min(now));
        let absences = self.jobs.entry(job.clone()).or_default();
        let uncovered = absences.last().is_some_and(|last| last.kind == AbsenceKind::Uncovered);
        end_open(absences, if uncovered { led_until } else { now });
        absences.extend(self.foreign.iter().cloned());
        absences.retain(|absence| {
            let removed = absence.kind == AbsenceKind::Removed;
            removed || absence.until.is_some_and(|until| until > cursor)
        });
        keep_newest(absences);
        absences.clone()
    }

    /// Another implementation has led: where the leader before lacked a job, that goes on.
    pub(super) fn note_foreign(&mut self, own: &BTreeSet<JobName>, time: Time<'_>) {
        if self.foreign.is_empty() {
            return;
        }
        time.frees();
        let foreign = std::mem::take(&mut self.foreign);
        for (_, absences) in self.jobs.iter_mut().filter(|(job, _)| !own.contains(*job)) {
            if absences.last().is_none_or(|last| last.until.is_some()) {
                absences.extend(foreign.iter().cloned());
                keep_newest(absences);
            }
        }
    }

    /// What has changed is written, unless the server refuses it: nobody is the worse for it.
    pub(super) fn keep_or_drop(&mut self, before: Option<Self>, time: Time<'_>) {
        if let Some(before) = before.filter(|before| before.jobs != self.jobs)
            && !time.may_grow()
        {
            self.jobs = before.jobs;
        }
    }

    /// Marks what the leader lacks: since now, unless it is so already.
    pub(super) fn mark_lacked(&mut self, own: &BTreeSet<JobName>, elsewhere: Option<&[JobName]>, now: Timestamp) {
        let elsewhere: Option<Vec<_>> =
            elsewhere.map(|elsewhere| elsewhere.iter().map(|job| self.goes_on_as(job)).collect());
        for (job, absences) in self.jobs.iter_mut().filter(|(job, _)| !own.contains(*job)) {
            let kind = if elsewhere.as_ref().is_none_or(|elsewhere| elsewhere.contains(job)) {
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
            keep_newest(absences);
        }
    }
}

/// A job's part of the ledger, by whatever name it had.
pub(super) fn ledger(group: &Group, job: &JobName) -> JobLedger {
    let job = group.coverage.goes_on_as(job);
    let mut ledger = group.jobs.get(&job).cloned().unwrap_or_default();
    ledger.absences = group.coverage.jobs.get(&job).cloned().unwrap_or_default();
    ledger.sort_records();
    ledger.schedule.take_if(|schedule| schedule.text.is_empty());
    ledger
}

/// The names under which the jobs of a take-over are kept, after those that have another now have been renamed.
pub(super) fn rename(group: &mut Group, request: &TakeOver, time: Time<'_>) -> Vec<JobName> {
    for job in &request.jobs {
        // The program has both: the old name is a new job's.
        let kept_as = group.coverage.goes_on_as(job);
        if kept_as != *job && (request.jobs.contains(&kept_as) || request.beside.contains(&kept_as)) {
            time.frees();
            group.coverage.moved.remove(job);
            group.coverage.jobs.insert(job.clone(), Vec::new());
        }
    }
    let kept: Vec<_> = request.jobs.iter().map(|job| group.coverage.goes_on_as(job)).collect();
    for (job, was) in kept.iter().zip(&request.was) {
        let is_known = |group: &Group, job| group.jobs.get(job).is_some_and(|job: &JobLedger| job.cursor.is_some());
        if is_known(group, job) {
            continue;
        }
        let old = was.iter().find(|old| {
            let in_use = kept.contains(old) || request.beside.contains(old) || group.coverage.moved.contains_key(*old);
            let is_made = group.jobs.get(*old).is_some_and(|job| job.handler.is_some());
            !in_use && is_known(group, old) && !is_made
        });
        if let Some(old) = old {
            time.frees();
            if let Some(mut ledger) = group.jobs.remove(old) {
                // Records that have outlived the rest of the new one stay, where the old one has none to put in their place.
                let left = group.jobs.remove(job).unwrap_or_default().records;
                for ran in [true, false] {
                    let of_kind = |record: &&LedgerRecord| record.outcome.is_ran() == ran;
                    if !ledger.records.iter().any(|record| of_kind(&record)) {
                        ledger.records.extend(left.iter().filter(of_kind).cloned());
                    }
                }
                group.jobs.insert(job.clone(), ledger);
            }
            if group.revived.remove(old) {
                group.revived.insert(job.clone());
            }
            let absences = group.coverage.jobs.remove(old).unwrap_or_default();
            group.coverage.jobs.insert(job.clone(), absences);
            group.coverage.moved.insert(old.clone(), job.clone());
            group.control.rename(old, job);
        }
    }
    kept
}

fn keep_newest(absences: &mut Vec<Absence>) {
    let excess = absences.len().saturating_sub(KEPT_ABSENCES);
    absences.drain(..excess);
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

//! Which jobs of a led group this instance lacks, told to the store: their ticks are nobody's fault of scheduling.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;

use super::super::Engine;
use super::super::input::{Group, Input};
use crate::clock::Moment;
use crate::names::JobName;
use crate::store::{Absence, AbsenceKind, Cover, StoreError};

/// What the store has been told, by group.
#[derive(Default)]
pub(super) struct Coverage(BTreeMap<Group, Told>);

struct Told {
    term: u64,
    elsewhere: Option<Vec<JobName>>,
    /// When to tell it again: the answer failed.
    again_at: Option<Moment>,
}

impl Coverage {
    pub(super) fn next_wake(&self) -> Option<Moment> {
        self.0.values().filter_map(|told| told.again_at).min()
    }

    pub(super) fn forget(&mut self, index: Group) {
        self.0.remove(&index);
    }
}

impl Engine {
    /// The jobs of a group that other living instances have, as far as the roster tells.
    fn elsewhere(&self, index: Group) -> Option<Vec<JobName>> {
        let group = self.groups[index].gate.group().as_str();
        let own = &self.shared.config.holder;
        let members = &self.roster.members;
        // Who has not found itself in the roster cannot know who else is there.
        members.iter().find(|member| member.holder == *own)?;
        let others = members.iter().filter(|member| member.holder != *own);
        let names: BTreeSet<_> = others
            .filter_map(|member| member.jobs.get(group))
            .flat_map(BTreeMap::keys)
            .filter_map(|name| JobName::new(name.clone()).ok())
            .collect();
        Some(names.into_iter().collect())
    }

    /// The name by which the store keeps a job.
    pub(in super::super) fn kept_as(&self, job: usize) -> &JobName {
        let own = &self.jobs[job].name;
        self.ticks.kept.get(&job).unwrap_or(own)
    }

    pub(super) fn keep_as(&mut self, job: usize, kept: JobName) {
        if kept == self.jobs[job].name {
            self.ticks.kept.remove(&job);
        } else {
            self.ticks.kept.insert(job, kept);
        }
    }

    /// The same, as the take-over of a term tells it.
    pub(super) fn tells_elsewhere(&mut self, index: Group, term: u64) -> Option<Vec<JobName>> {
        let elsewhere = self.elsewhere(index);
        let told = Told {
            term,
            elsewhere: elsewhere.clone(),
            again_at: None,
        };
        self.ticks.coverage.0.insert(index, told);
        elsewhere
    }

    /// The fleet may have changed: who has the jobs that this leader lacks is told anew.
    pub(in super::super) fn review_coverage(&mut self, index: Group) {
        let Some(told) = self.ticks.coverage.0.get(&index) else {
            return;
        };
        let term = told.term;
        if told.elsewhere != self.elsewhere(index) && self.groups[index].taken_over == Some(term) {
            self.tell_coverage(index, term);
        }
    }

    pub(super) fn tell_coverage(&mut self, index: Group, term: u64) {
        let elsewhere = self.tells_elsewhere(index, term);
        let config = &self.shared.config;
        let state = &self.groups[index];
        let request = Cover {
            group: state.gate.group().clone(),
            holder: config.holder.clone(),
            term,
            jobs: state.jobs.iter().map(|job| self.kept_as(*job).clone()).collect(),
            elsewhere,
        };
        let store = Arc::clone(&self.store);
        self.ask(async move { store.cover(request).await }, move |answer| {
            Input::Covered {
                group: index,
                term,
                answer,
            }
        });
    }

    pub(in super::super) fn covered(
        &mut self,
        now: Moment,
        index: Group,
        term: u64,
        answer: &Result<bool, StoreError>,
    ) {
        self.heard(now, answer);
        let again = now + self.shared.config.timing.retry();
        if let Some(told) = self.ticks.coverage.0.get_mut(&index).filter(|told| told.term == term)
            && answer.is_err()
        {
            told.again_at = Some(again);
        }
    }

    pub(super) fn coverage_turn(&mut self, now: Moment) {
        let due = self.ticks.coverage.0.iter();
        let due: Vec<_> = due
            .filter(|(_, told)| told.again_at.is_some_and(|at| now >= at))
            .map(|(index, told)| (*index, told.term))
            .collect();
        for (index, term) in due {
            if self.groups[index].gate.trusts(term) {
                self.tell_coverage(index, term);
            } else {
                self.ticks.coverage.forget(index);
            }
        }
    }
}

/// Whether the fleet has been without the job since a tick.
pub(super) fn removed_since(absences: &[Absence], tick: Timestamp) -> bool {
    let removed = absences.iter().filter(|absence| absence.kind == AbsenceKind::Removed);
    removed.into_iter().any(|absence| absence.from >= tick)
}

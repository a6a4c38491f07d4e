//! Schedules that have ended: their runs go on to their ends, and are settled where those are lost.

use std::sync::Arc;

use super::super::Engine;
use super::super::input::{Group, Input};
use crate::clock::Moment;
use crate::event::SchedulingNews;
use crate::names::JobName;
use crate::store::{MadeEntry, MakeRequest, Making, Writer};

impl Engine {
    /// Plans a job no longer; what runs goes on.
    pub(super) fn end_made(&mut self, index: Group, job: usize, ended: bool) {
        let state = &mut self.groups[index];
        let planned = state.jobs.len();
        state.jobs.retain(|other| *other != job);
        state.made.awaited.remove(&job);
        state.made.ending.entry(job).or_insert(false);
        if ended && planned > state.jobs.len() {
            self.tell_of_made(index, self.jobs[job].name.as_str(), SchedulingNews::Ended);
        }
        self.forget_plan(job);
    }

    pub(super) fn forget_plan(&mut self, job: usize) {
        self.planner.forget(job);
        self.places.forget(job);
        self.ticks.unfollow(job);
    }

    /// One that had a run open when it ended, wherever that runs: it is looked at until none is left.
    pub(super) fn look_at_ended(&mut self, now: Moment, index: Group, entry: &MadeEntry) {
        let Ok(name) = JobName::new(entry.name.clone()) else {
            return;
        };
        let known = self.jobs.named(index, &name);
        if known.is_some_and(|job| self.groups[index].jobs.contains(&job)) {
            return;
        }
        let job = known.or_else(|| {
            let line = entry.line.as_ref()?;
            // A leader that has the handler looks.
            let spec = self.spec_of(index, entry, line, &Arc::from("null")).ok()?;
            Some(self.jobs.put(index, spec))
        });
        let Some(job) = job else { return };
        if job >= self.group_of.len() {
            self.group_of.resize(job + 1, index);
        }
        self.group_of[job] = index;
        let marked = self.groups[index].made.ending.insert(job, true);
        if marked != Some(true) {
            self.ticks.look_soon(job, now);
        }
    }

    /// Frees what nothing refers to any more.
    pub(super) fn free_ended(&mut self, index: Group) {
        let made = &self.groups[index].made;
        // What is asked for by an index is answered by it.
        if made.ending.is_empty() || made.asking {
            return;
        }
        let ending = &made.ending;
        let over =
            |job: &usize| !self.runs.is_known(*job) && !self.ticks.is_known(*job) && !self.is_asked_for(index, *job);
        let free: Vec<_> = (ending.iter())
            .filter(|(job, _)| over(job))
            .map(|(job, marked)| (*job, *marked))
            .collect();
        for (job, marked) in free {
            self.groups[index].made.ending.remove(&job);
            if marked {
                self.forget_ended(index, job);
            }
            self.jobs.free(index, job);
        }
    }

    /// The store looks whether a run is open all the same; where it is, the next leader looks.
    fn forget_ended(&self, index: Group, job: usize) {
        let config = &self.shared.config;
        let request = MakeRequest {
            group: self.groups[index].gate.group().clone(),
            name: self.jobs[job].name.clone(),
            what: Making::Forget,
            by: config.instance.to_string(),
            writer: Writer::new(&config.version, &config.time_zones),
        };
        let store = Arc::clone(&self.store);
        self.ask(async move { store.make(request).await }, |_| Input::Forgotten);
    }
}

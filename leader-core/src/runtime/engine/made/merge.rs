//! What a read of the schedules changes in the table of jobs.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::super::Engine;
use super::super::input::Group;
use crate::clock::Moment;
use crate::event::{Event, Scheduling, SchedulingNews};
use crate::names::JobName;
use crate::runtime::config::{self, JobSpec};
use crate::schedule::Schedule;
use crate::store::{MadeEntry, MadeLine, MadeList};

impl Engine {
    /// Takes over what has changed. Gives the number from which on payloads are to be read that are missing here.
    pub(super) fn merge_made(&mut self, now: Moment, index: Group, after: u64, list: &MadeList) -> Option<u64> {
        let mut missing: Option<u64> = None;
        let mut names = BTreeSet::new();
        for entry in &list.entries {
            if entry.ended {
                continue;
            }
            names.insert(entry.name.as_str());
            if self.is_known(index, entry) {
                continue;
            }
            let given = after < entry.number && entry.number <= list.up_to;
            let taken = match (&entry.line, &entry.payload) {
                (Some(line), Some(payload)) => self.take_entry(index, entry, line, payload),
                (Some(_), None) if !given && entry.number > 0 => {
                    missing = Some(missing.map_or(entry.number - 1, |missing| missing.min(entry.number - 1)));
                    continue;
                }
                (Some(_), None) => Err("what it carries is gone from the store".to_owned()),
                (None, _) => Err("another version has written it in a way that this one cannot read".to_owned()),
            };
            match taken {
                Ok(()) => {
                    self.groups[index].made.not_run.remove(&entry.name);
                }
                Err(reason) => self.run_not(now, index, entry, reason),
            }
        }
        // Those among them that ended while another led were planned here by an earlier leadership.
        let ending = &self.groups[index].made.ending;
        let gone: Vec<_> = (self.jobs.made_of(index))
            .filter(|(name, job)| !names.contains(name.as_str()) && !ending.contains_key(job))
            .map(|(_, job)| job)
            .collect();
        for job in gone {
            self.end_made(index, job, true);
        }
        let made = &mut self.groups[index].made;
        made.not_run.retain(|name, _| names.contains(name.as_str()));
        for entry in list.entries.iter().filter(|entry| entry.ended) {
            self.look_at_ended(now, index, entry);
        }
        missing
    }

    /// Whether nothing of an entry has changed since it was last looked at.
    fn is_known(&self, index: Group, entry: &MadeEntry) -> bool {
        let state = &self.groups[index];
        let known = state.made.not_run.get(&entry.name);
        let planned = || {
            let name = JobName::new(entry.name.clone()).ok()?;
            let job = self.jobs.named(index, &name)?;
            let made = self.jobs[job].made.as_ref()?;
            (made.number == entry.number && state.jobs.contains(&job)).then_some(())
        };
        known.map_or_else(|| planned().is_some(), |number| *number == entry.number)
    }

    /// Plans a schedule, or says why that cannot be.
    fn take_entry(
        &mut self,
        index: Group,
        entry: &MadeEntry,
        line: &MadeLine,
        payload: &Arc<str>,
    ) -> Result<(), String> {
        let spec = self.spec_of(index, entry, line, payload)?;
        let before = self
            .jobs
            .named(index, &spec.name)
            .map(|job| (job, self.jobs.share(job)));
        let (name, schedule) = (spec.name.clone(), spec.rule.schedule.clone());
        let job = self.jobs.put(index, spec);
        if job >= self.group_of.len() {
            self.group_of.resize(job + 1, index);
        }
        self.group_of[job] = index;
        let state = &mut self.groups[index];
        let planned = state.jobs.contains(&job);
        if !planned {
            state.jobs.push(job);
        }
        state.made.ending.remove(&job);
        let identity = |spec: &JobSpec| spec.made.as_ref().map(|made| (made.born, made.handler.clone()));
        let same = before
            .as_ref()
            .is_some_and(|(_, spec)| identity(spec) == identity(&self.jobs[job]));
        let unchanged = before.is_some_and(|(_, spec)| spec.rule.schedule == schedule);
        if !same {
            // What was decided of the other one of this name is not this one's.
            self.forget_plan(job);
        }
        if !planned || !same || !unchanged {
            self.groups[index].made.awaited.insert(job);
        }
        if self.groups[index].made.complete {
            let (handler, schedule, by) = (line.handler.clone(), line.schedule.clone(), line.by.clone());
            self.tell_of_made(index, name.as_str(), SchedulingNews::Made { handler, schedule, by });
        }
        Ok(())
    }

    /// The job that an entry asks for.
    pub(super) fn spec_of(
        &self,
        index: Group,
        entry: &MadeEntry,
        line: &MadeLine,
        payload: &Arc<str>,
    ) -> Result<JobSpec, String> {
        let config = &self.shared.config;
        let name = JobName::new(entry.name.clone()).map_err(|error| error.to_string())?;
        if config.jobs.iter().any(|job| job.name == name) || config.lives.iter().any(|life| life.name == name) {
            return Err("its name is that of a job of the program: end it, and make it under another".to_owned());
        }
        let handler = config.handlers.iter().find(|handler| handler.name == line.handler);
        let handler = handler.ok_or_else(|| format!("this instance has no handler `{}`", line.handler))?;
        let schedule: Schedule = line.schedule.parse().map_err(|error| format!("{error}"))?;
        let made = config::Made {
            handler: line.handler.clone(),
            payload: Arc::clone(payload),
            number: entry.number,
            born: line.born,
        };
        let group = self.groups[index].gate.group().clone();
        Ok(handler.made(name, group, schedule, made))
    }

    /// One that this instance cannot run is told of once; its ticks stay pending for a leader that can.
    fn run_not(&mut self, now: Moment, index: Group, entry: &MadeEntry, reason: String) {
        let named = JobName::new(entry.name.clone()).ok();
        if let Some(job) = named.and_then(|name| self.jobs.named(index, &name)) {
            self.end_made(index, job, false);
            self.ticks.look_soon(job, now);
        }
        let state = &mut self.groups[index];
        state.made.awaited.retain(|job| state.jobs.contains(job));
        state.made.not_run.insert(entry.name.clone(), entry.number);
        self.tell_of_made(index, &entry.name, SchedulingNews::NotRun { reason });
    }

    pub(super) fn tell_of_made(&self, index: Group, job: &str, news: SchedulingNews) {
        self.shared.tell(Event::Scheduling(Scheduling {
            group: self.groups[index].gate.group().clone(),
            job: job.to_owned(),
            news,
        }));
    }
}

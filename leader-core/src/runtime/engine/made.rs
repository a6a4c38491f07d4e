//! Schedules made at run time: read from the store by the leader of their group, and planned like the program's own jobs.

mod ending;
mod merge;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::Engine;
use super::input::{Group, Input};
use crate::clock::Moment;
use crate::store::{MadeList, StoreError, TakeOver, Writer};

/// What is known of one group's schedules in the present leadership.
#[derive(Default)]
#[allow(clippy::struct_excessive_bools, reason = "each is a question of its own")]
pub(super) struct Made {
    /// The number of the newest change that was heard of.
    heard: u64,
    /// Up to which change payloads were read.
    known: u64,
    /// All were read once: what changes from here on is news.
    complete: bool,
    /// Something was heard while a read was under way, which may be older.
    wanted: bool,
    reading: bool,
    read_at: Option<Moment>,
    /// Those that are not run here, by the number of their last change, or 0.
    not_run: BTreeMap<String, u64>,
    /// Jobs whose cursors are to be asked for.
    awaited: BTreeSet<usize>,
    asking: bool,
    ask_at: Option<Moment>,
    /// Jobs whose schedule has ended, until nothing refers to them; marked ones are to be forgotten by the store then.
    ending: BTreeMap<usize, bool>,
}

impl Engine {
    /// The store has told the number of the newest change of a schedule.
    pub(super) fn made_heard(&mut self, index: Group, number: u64) {
        let made = &mut self.groups[index].made;
        // Where there has been none, all are known.
        made.complete |= number == 0;
        if made.heard != number {
            made.heard = number;
            self.read_made(index);
        }
    }

    fn read_made(&mut self, index: Group) {
        let state = &mut self.groups[index];
        let Some(term) = state.taken_over else { return };
        let made = &mut state.made;
        made.read_at = None;
        if std::mem::replace(&mut made.reading, true) {
            made.wanted = true;
            return;
        }
        made.wanted = false;
        let (group, after) = (state.gate.group().clone(), made.known);
        let store = Arc::clone(&self.store);
        self.ask(async move { store.made(&group, after).await }, move |answer| {
            Input::MadeRead {
                group: index,
                term,
                after,
                answer,
            }
        });
    }

    pub(super) fn made_read(
        &mut self,
        now: Moment,
        index: Group,
        term: u64,
        after: u64,
        answer: Result<MadeList, StoreError>,
    ) {
        self.heard(now, &answer);
        let state = &mut self.groups[index];
        if state.taken_over != Some(term) {
            return;
        }
        state.made.reading = false;
        let Ok(list) = answer else {
            state.made.read_at = Some(now + self.shared.config.timing.retry());
            return;
        };
        if state.draining.is_some() {
            return;
        }
        let missing = self.merge_made(now, index, after, &list);
        let made = &mut self.groups[index].made;
        made.known = missing.unwrap_or(list.up_to);
        if missing.is_some() || made.wanted {
            self.read_made(index);
        } else {
            made.complete = true;
        }
        self.show_made();
        self.requests_find_jobs(index);
        self.ask_for_made(now, index);
    }

    /// Another look at a job whose schedule in force is not the one that it was planned by: it has ended, or was made anew.
    pub(super) fn look_at_made(&mut self, now: Moment, index: Group, job: usize) {
        let made = &mut self.groups[index].made;
        made.awaited.insert(job);
        made.ask_at = Some(now + self.shared.config.timing.retry());
        self.read_made(index);
    }

    /// Asks for the cursors of those that are new here.
    fn ask_for_made(&mut self, now: Moment, index: Group) {
        let state = &mut self.groups[index];
        let Some(term) = state.taken_over.filter(|_| state.draining.is_none()) else {
            return;
        };
        let made = &mut state.made;
        if self.shared.config.manual_ticks {
            made.awaited.clear();
        }
        if made.asking || made.awaited.is_empty() || made.ask_at.is_some_and(|at| now < at) {
            return;
        }
        (made.asking, made.ask_at) = (true, None);
        let jobs: Vec<_> = std::mem::take(&mut made.awaited).into_iter().collect();
        let config = &self.shared.config;
        let request = TakeOver {
            group: state.gate.group().clone(),
            holder: config.holder.clone(),
            term,
            jobs: jobs.iter().map(|job| self.jobs[*job].name.clone()).collect(),
            // The store has theirs.
            schedules: vec!["".into(); jobs.len()],
            writer: Writer::new(&config.version, &config.time_zones),
            elsewhere: None,
            was: vec![Vec::new(); jobs.len()],
            beside: Vec::new(),
        };
        let store = Arc::clone(&self.store);
        self.ask(async move { store.take_over(request).await }, move |answer| {
            Input::TakenOver {
                group: index,
                term,
                sent: now,
                jobs,
                answer,
            }
        });
    }

    /// The cursors of those that were asked for were answered, or not.
    pub(super) fn made_answered(&mut self, now: Moment, index: Group, jobs: &[usize], failed: bool) {
        let retry = self.shared.config.timing.retry();
        let made = &mut self.groups[index].made;
        made.asking = false;
        if failed {
            made.awaited.extend(jobs);
            made.ask_at = Some(now + retry);
        }
    }

    pub(super) fn made_wake(&self, now: Moment) -> Option<Moment> {
        let wake = |made: &Made| {
            let ask = (!made.asking && !made.awaited.is_empty()).then(|| made.ask_at.unwrap_or(now));
            ask.into_iter().chain(made.read_at).min()
        };
        self.groups.iter().filter_map(|state| wake(&state.made)).min()
    }

    pub(super) fn made_turn(&mut self, now: Moment) {
        for index in 0..self.groups.len() {
            let made = &self.groups[index].made;
            if made.read_at.is_some_and(|at| now >= at) {
                self.read_made(index);
            }
            self.ask_for_made(now, index);
            self.free_ended(index);
        }
    }

    /// The leadership has ended: the schedules are read anew at the next one.
    pub(super) fn forget_made(&mut self, index: Group) {
        let state = &mut self.groups[index];
        let ending = std::mem::take(&mut state.made).ending;
        for job in ending.keys() {
            self.ticks.forget_tries(*job);
        }
        // Whose mark the store has is the next leader's to forget.
        state.made.ending = ending.into_keys().map(|job| (job, false)).collect();
        let jobs = &self.jobs;
        state.jobs.retain(|job| !jobs.is_made(*job));
        self.show_made();
    }

    fn show_made(&self) {
        let led = self.groups.iter().flat_map(|state| &state.jobs);
        let made = led.filter(|job| self.jobs.is_made(**job));
        self.shared.show_made(made.map(|job| self.jobs.share(*job)).collect());
    }
}

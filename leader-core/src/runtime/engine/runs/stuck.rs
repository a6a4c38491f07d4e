//! Runs that were asked to end and do not.

use std::collections::BTreeMap;
use std::time::Duration;

use super::super::Engine;
use super::{RunId, Runs};
use crate::clock::Moment;
use crate::event::Event;

/// How long a body may take to end after it was asked to, at most; a shorter drain is as long as it may take.
const MOST: Duration = Duration::from_secs(10);
/// How often the runs are looked at, as a part of that time.
const LOOKS: u32 = 10;

/// Since when runs have been seen to be asked to end.
#[derive(Default)]
pub(super) struct Watched {
    asked: BTreeMap<RunId, Asked>,
    next: Option<Moment>,
}

struct Asked {
    since: Moment,
    told: bool,
}

impl Watched {
    pub(super) fn next_look(&self) -> Option<Moment> {
        self.next
    }

    pub(super) fn forget(&mut self, id: RunId) {
        self.asked.remove(&id);
    }
}

impl Runs {
    /// How many are stuck.
    pub(in super::super) fn stuck(&self) -> usize {
        self.watched.asked.values().filter(|asked| asked.told).count()
    }
}

impl Engine {
    /// A body that awaits anything ends at once; one that has not returned after the bound never will by being asked.
    pub(super) fn look_for_stuck(&mut self, now: Moment) {
        if self.runs.running.is_empty() {
            self.runs.watched.next = None;
            return;
        }
        if self.runs.watched.next.is_some_and(|at| now < at) {
            return;
        }
        let bound = self.shared.config.drain.clamp(Duration::from_millis(100), MOST);
        self.runs.watched.next = Some(now + bound / LOOKS);
        let mut stuck = Vec::new();
        for (id, run) in &self.runs.running {
            if !run.control.is_over() || !run.control.has_begun() {
                continue;
            }
            let asked = self.runs.watched.asked.entry(*id).or_insert(Asked {
                since: now,
                told: false,
            });
            let asked_ago = now.since(asked.since);
            if asked_ago >= bound && !std::mem::replace(&mut asked.told, true) {
                stuck.push((*id, asked_ago));
            }
        }
        for (id, asked_ago) in stuck {
            if let Some(run) = self.runs.running.get(&id) {
                let spec = &self.jobs[run.job];
                self.shared.tell(Event::RunStuck {
                    job: spec.name.clone(),
                    group: spec.group.clone(),
                    scheduled_at: run.tick,
                    fence: id.fence,
                    asked_ago,
                });
            }
        }
    }
}

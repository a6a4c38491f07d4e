//! Places: how many job bodies run here at once, and which jobs wait for one. What waits is not claimed.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::Engine;
use crate::clock::Moment;
use crate::job::record::Overlap;
use crate::mutants::{Mutant, planted};
use crate::runtime::load::Load;
use crate::schedule::planner::{Step, StepKind};

/// The jobs that wait for a place, by when the first of their ticks was due.
#[derive(Debug, Default)]
pub(super) struct Places {
    queue: BTreeSet<(Timestamp, usize)>,
    since: BTreeMap<usize, Timestamp>,
    /// Runs that were asked for by hand.
    #[cfg(feature = "testing")]
    pub(super) by_hand: std::collections::VecDeque<super::ticks::ByHand>,
}

impl Places {
    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// How many wait.
    fn waiting(&self) -> usize {
        #[cfg(feature = "testing")]
        return self.queue.len() + self.by_hand.len();
        #[cfg(not(feature = "testing"))]
        self.queue.len()
    }

    fn wait(&mut self, job: usize, since: Timestamp) {
        self.forget(job);
        self.since.insert(job, since);
        self.queue.insert((since, job));
    }

    pub(super) fn forget(&mut self, job: usize) {
        if let Some(since) = self.since.remove(&job) {
            self.queue.remove(&(since, job));
        }
    }

    /// Takes out so many of those that have waited longest.
    fn take(&mut self, count: usize) -> Vec<usize> {
        let taken: Vec<_> = (0..count).map_while(|_| self.queue.pop_first()).collect();
        for (_, job) in &taken {
            self.since.remove(job);
        }
        taken.into_iter().map(|(_, job)| job).collect()
    }
}

/// Who has a place.
struct Taken {
    /// The jobs that have one: theirs is enough for their next claim too, because the run they have is open in the store until its
    /// result is told, and no other of the job is won before. A run that has to make way passes its place on.
    jobs: BTreeSet<usize>,
    /// Bodies and claims that have one to themselves: of jobs whose runs may overlap, and of an earlier leadership, whose run somebody
    /// may have settled meanwhile.
    others: usize,
}

impl Taken {
    fn count(&self) -> usize {
        self.jobs.len() + self.others
    }
}

impl Engine {
    fn most(&self) -> Option<usize> {
        self.shared.config.max_concurrent_jobs.map(usize::from)
    }

    fn taken(&self) -> Taken {
        let mut taken = Taken {
            jobs: BTreeSet::new(),
            others: 0,
        };
        for (job, term) in self.runs.bodies() {
            let now_led = self.plans_under(self.group_of[job], term);
            if !now_led || self.may_overlap(job) || !taken.jobs.insert(job) {
                taken.others += 1;
            }
        }
        for job in self.ticks.claiming() {
            self.give(&mut taken, job, 1);
        }
        taken
    }

    fn give(&self, taken: &mut Taken, job: usize, claims: usize) {
        if self.may_overlap(job) {
            taken.others += claims;
        } else {
            taken.jobs.insert(job);
        }
    }

    fn may_overlap(&self, job: usize) -> bool {
        self.jobs[job].overlap == Overlap::Allow
    }

    /// Whether a run of the job may be claimed now.
    pub(super) fn has_place_for(&self, job: usize) -> bool {
        self.most().is_none_or(|most| {
            let taken = self.taken();
            taken.jobs.contains(&job) || taken.count() < most
        })
    }

    /// The decisions that are due and, where they may become runs, have a place: the longest due first. Whatever has none waits, and
    /// its claim is not made.
    pub(super) fn due(&mut self, now: Moment) -> Vec<(usize, Vec<Step>)> {
        let mut at = self.planning.at(now);
        if planted(Mutant::EarlyTimer) {
            at += jiff::SignedDuration::from_secs(5);
        }
        if planted(Mutant::ClaimsLate) {
            at -= jiff::SignedDuration::from_secs(4);
        }
        let runs = &self.runs;
        let races = |index: usize| !self.groups[index].unled.jobs.is_empty() && self.races(index);
        let racing: Vec<_> = (0..self.groups.len()).map(races).collect();
        let (group_of, jobs) = (&self.group_of, &self.jobs);
        let is_unled = |job: usize| jobs[job].is_unled();
        // What needs no leader waits for nothing here: it is left to others.
        let mut left = Vec::new();
        let Some(most) = self.most() else {
            let due = self.planner.due(at, |job| {
                let leaves = is_unled(job) && !racing[group_of[job]];
                if leaves {
                    left.push(job);
                }
                leaves || runs.is_untold(job)
            });
            self.leave(now, left);
            return due;
        };
        let is_due = self.planner.next_wake().is_some_and(|wake| wake <= at);
        if !is_due && self.places.is_empty() {
            return Vec::new();
        }
        let (mut taken, mut all) = (self.taken(), Vec::new());
        loop {
            let mut free = most.saturating_sub(taken.count());
            let released = self.places.take(free);
            for job in &released {
                self.planner.release(*job);
            }
            // Those that fall due now come behind those that wait already; where that is not their turn, it is at the next round.
            let queued = !self.places.is_empty();
            let (runs, mut waiting) = (&self.runs, Vec::new());
            let (group_of, jobs) = (&self.group_of, &self.jobs);
            let due = self.planner.due(at, |job| {
                let unled = jobs[job].is_unled();
                if unled && !racing[group_of[job]] {
                    left.push(job);
                    return true;
                }
                if runs.is_untold(job) {
                    return true;
                }
                if taken.jobs.contains(&job) {
                    return false;
                }
                if free == 0 || (queued && !released.contains(&job)) {
                    let line = if unled { &mut left } else { &mut waiting };
                    line.push(job);
                    return true;
                }
                free -= 1;
                false
            });
            for job in waiting {
                let since = self.planner.queue(job, at);
                self.places.wait(job, since);
            }
            for (job, steps) in due {
                let claims = steps
                    .iter()
                    .filter(|step| !matches!(step.kind, StepKind::Settle | StepKind::Adopt))
                    .count();
                if claims > 0 {
                    self.give(&mut taken, job, claims);
                }
                all.push((job, steps));
            }
            // What was decided without a run has left its place to others.
            if self.places.is_empty() || taken.count() >= most {
                self.leave(now, left);
                return all;
            }
        }
    }

    /// Decisions that others may make. Should nobody have, there may be a place here in a while.
    fn leave(&mut self, now: Moment, jobs: Vec<usize>) {
        let again = self.planning.after(now, self.shared.config.timing.retry());
        for job in jobs {
            self.planner.leave(job, again);
        }
    }

    pub(super) fn show_load(&self) {
        self.shared.show_load(Load {
            running: self.runs.count(),
            waiting: self.places.waiting(),
            limit: self.most(),
            stuck: self.runs.stuck(),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn the_longest_due_comes_first() {
        let mut places = Places::default();
        for (job, since) in [(3, 20), (1, 10), (2, 20), (0, 30)] {
            places.wait(job, at(since));
        }
        assert_eq!(places.waiting(), 4);
        assert_eq!(places.take(0), [0_usize; 0]);
        assert_eq!(places.take(2), [1, 2]);
        // Told to wait again, a job is in the queue once.
        places.wait(3, at(40));
        assert_eq!(places.waiting(), 2);
        places.forget(3);
        places.forget(3);
        assert_eq!(places.take(9), [0]);
        assert!(places.is_empty());
    }
}

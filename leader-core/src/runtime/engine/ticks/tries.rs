//! Runs that are tried again: those whose last try failed here, and those that an earlier leader has left.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::super::Engine;
use super::super::input::Group;
use super::super::runs::Ended;
use super::{Flight, Ticks};
use crate::clock::Moment;
use crate::event::Event;
use crate::job::outcome::{Outcome, Ran};
use crate::job::record::Overlap;
use crate::job::tick::Origin;
use crate::mutants::{Mutant, planted};
use crate::schedule::missed::Missed;
use crate::store::{Claim, ClaimReply, End, Found, Pausing, UNLED, Want};

/// The runs of the led jobs that pause, and the looks at runs that live elsewhere.
#[derive(Default)]
pub(super) struct Tries {
    /// By job and by the fence of the try that failed.
    pausing: BTreeMap<(usize, u64), Pause>,
    /// When to look whether runs of earlier terms are alive.
    looks: BTreeMap<usize, Moment>,
}

struct Pause {
    /// When the next try may begin; `None` when that is too late, and a later tick settles the run.
    at: Option<Timestamp>,
    tick: Timestamp,
    tries: u32,
    owed: bool,
    ran: Ran,
    /// The claim of the next try is under way.
    asked: bool,
    /// It is due, and waits for a place.
    held: bool,
    /// The try, where it failed here.
    failed: Option<Failed>,
}

/// A try that failed here.
pub(in super::super) struct Failed {
    pub(in super::super) group: Group,
    pub(in super::super) end: End,
    pub(in super::super) ended: Ended,
}

impl Tries {
    pub(super) fn forget(&mut self, job: usize) {
        self.looks.remove(&job);
        self.pausing.retain(|(other, _), _| *other != job);
    }
}

impl Ticks {
    pub(in super::super) fn forget_tries(&mut self, job: usize) {
        self.tries.forget(job);
    }

    /// Asks for a look at what is open of a job.
    pub(in super::super) fn look_soon(&mut self, job: usize, now: Moment) {
        self.tries.looks.insert(job, now);
    }

    /// The schedule in force of a job is asked of nobody any more.
    pub(in super::super) fn unfollow(&mut self, job: usize) {
        self.followed.remove(&job);
        self.told_followed.remove(&job);
    }

    /// Whether anything that is planned or under way refers to a job.
    pub(in super::super) fn is_known(&self, job: usize) -> bool {
        let mut of_job = self.tries.pausing.range((job, 0)..=(job, u64::MAX));
        let claimed = || {
            self.flights
                .values()
                .any(|flight| flight.jobs.iter().flatten().any(|other| *other == job))
        };
        of_job.next().is_some() || self.tries.looks.contains_key(&job) || claimed()
    }
}

impl Engine {
    /// The pause before the next try of a run that ended so; `None` when this was the last. Of what the schedule has made only: who
    /// asked for a run by hand waits for its result.
    pub(in super::super) fn again_in(&self, ended: &Ended, ran: Ran) -> Option<Duration> {
        let spec = &self.jobs[ended.job];
        let failed = matches!(ran, Ran::Error | Ran::Panic | Ran::TimedOut) && !planted(Mutant::NoFurtherTry);
        let retries = spec.retries + u32::from(planted(Mutant::OneTryMore));
        if !failed || ended.origin != Origin::Schedule || ended.attempt > retries {
            return None;
        }
        let pause = spec.backoff.pause(spec.rule.seed, ended.tick, ended.attempt);
        let now = self.now();
        let at = self.planning.after(now, pause);
        self.may_begin(ended.job, ended.tick, ended.resting.is_some(), at, now)
            .then_some(pause)
    }

    /// Whether a further try of the tick's run may begin at an instant.
    fn may_begin(&self, job: usize, tick: Timestamp, owed: bool, at: Timestamp, now: Moment) -> bool {
        let spec = &self.jobs[job];
        // The schedule in force, which may be that of another version.
        let rule = self.planner.rule(job).unwrap_or(&spec.rule);
        let end = || rule.tries_end(tick, owed, self.planning.at(now));
        spec.overlap == Overlap::Allow || end().is_none_or(|end| at < end)
    }

    /// What was found open of a job.
    pub(super) fn found_open(&mut self, now: Moment, job: usize, found: Found) {
        if let Some(left) = found.silent_in {
            // Whoever is heard of meanwhile is looked at again, and not all the time.
            let renew = self.shared.config.timing.renew();
            let known = self.ticks.tries.looks.contains_key(&job);
            let at = now
                + if left.is_zero() && !known {
                    left
                } else {
                    left.max(renew / 4)
                };
            self.ticks.tries.looks.insert(job, at);
        } else {
            self.ticks.tries.looks.remove(&job);
        }
        let spec = &self.jobs[job];
        let (unled, ttl) = (spec.is_unled(), self.shared.config.timing.ttl());
        let owed = spec.rule.missed == Missed::All && !unled;
        for mut pausing in found.pausing {
            let failed = matches!(pausing.ran, Ran::Error | Ran::Panic | Ran::TimedOut);
            if unled && failed {
                // Whoever's try has failed makes the next one, if it is still there.
                let patience = SignedDuration::try_from(ttl).unwrap_or_default();
                pausing.again_at = pausing.again_at.checked_add(patience).unwrap_or(Timestamp::MAX);
            }
            self.pauses(now, job, pausing, owed, None);
        }
    }

    /// A try that failed here, and has been told: where the group is led on, the next one is this instance's.
    pub(in super::super) fn failed_here(&mut self, now: Moment, failed: Failed, again_at: Timestamp) {
        let Failed { group, end, ended } = &failed;
        let (group, job, resting) = (*group, ended.job, ended.resting);
        let pausing = Pausing {
            fence: end.fence,
            tick: ended.tick,
            tries: ended.attempt,
            again_at,
            ran: end.ran,
        };
        let state = &self.groups[group];
        let leads = if self.is_unled(job) {
            self.asks_on(group, UNLED)
        } else {
            state.taken_over.is_some() && state.draining.is_none()
        };
        let rests = leads && self.pauses(now, job, pausing, resting.is_some(), Some(failed));
        if let Some((job, term)) = resting.filter(|_| !rests)
            && self.plans_under(group, term)
        {
            self.planner.resume(job);
        }
    }

    /// Notes a run that pauses; whether the job rests for it.
    fn pauses(&mut self, now: Moment, job: usize, pausing: Pausing, owed: bool, failed: Option<Failed>) -> bool {
        let Pausing {
            fence,
            tick,
            tries,
            again_at,
            ran,
        } = pausing;
        let in_time = self.may_begin(job, tick, owed, again_at, now);
        if in_time && owed {
            self.planner.rest(job, tick);
        }
        self.ticks.tries.pausing.entry((job, fence)).or_insert(Pause {
            at: in_time.then_some(again_at),
            tick,
            tries,
            owed,
            ran,
            asked: false,
            held: false,
            failed,
        });
        in_time && owed
    }

    pub(super) fn tries_wake(&self, now: Moment) -> Option<Moment> {
        let tries = &self.ticks.tries;
        let free = |pause: &&Pause| !pause.asked && !pause.held;
        let next = tries.pausing.values().filter(free).filter_map(|pause| pause.at).min();
        let next = next
            .filter(|_| !self.holds_ticks())
            .map(|at| self.planning.moment_of(at, now));
        next.into_iter().chain(tries.looks.values().min().copied()).min()
    }

    /// Claims the tries that are due, as far as there are places, and looks at runs that live elsewhere.
    pub(super) fn tries_turn(&mut self, now: Moment, held: bool) {
        self.look_turn(now);
        if held || self.ticks.tries.pausing.is_empty() {
            return;
        }
        let at = self.planning.at(now);
        let is_due = |pause: &Pause| !pause.asked && pause.at.is_some_and(|again| again <= at);
        let due: Vec<_> = (self.ticks.tries.pausing.iter())
            .filter(|(_, pause)| is_due(pause))
            .map(|((job, fence), pause)| (*job, *fence, pause.tick, pause.tries, pause.owed))
            .collect();
        for (job, fence, tick, tries, owed) in due {
            let in_time = self.may_begin(job, tick, owed, at, now);
            let placed = in_time && self.has_place_for(job);
            if let Some(pause) = self.ticks.tries.pausing.get_mut(&(job, fence)) {
                (pause.asked, pause.held) = (placed, in_time && !placed);
                pause.at = pause.at.filter(|_| in_time);
            }
            if placed {
                self.claim_alone(now, vec![(job, tick, Want::Retry { fence, tries })]);
            } else if !in_time && owed {
                self.planner.resume(job);
            }
        }
    }

    fn look_turn(&mut self, now: Moment) {
        let looks = &mut self.ticks.tries.looks;
        let due: Vec<_> = looks
            .iter()
            .filter(|(_, at)| **at <= now)
            .map(|(job, _)| *job)
            .collect();
        if due.is_empty() {
            return;
        }
        for job in &due {
            looks.remove(job);
        }
        let look = |job| (job, Timestamp::UNIX_EPOCH, Want::Look);
        self.claim_alone(now, due.into_iter().map(look).collect());
    }

    /// Claims beside the planner's, all in one round trip.
    fn claim_alone(&mut self, now: Moment, wishes: Vec<(usize, Timestamp, Want)>) {
        let mut by_group: BTreeMap<(Group, bool), (Vec<Claim>, Vec<usize>)> = BTreeMap::new();
        for (job, tick, want) in wishes {
            self.ticks.last_number += 1;
            let claim = Claim {
                alive: self.runs.alive(job),
                job: self.kept_as(job).clone(),
                number: self.ticks.last_number,
                tick,
                cursor: tick,
                want,
                overlap: self.jobs[job].overlap,
                passed: Vec::new(),
                further: self.further(job),
                schedule: "".into(),
                adopts: "".into(),
                meets: None,
            };
            let (claims, jobs) = by_group.entry((self.group_of[job], self.is_unled(job))).or_default();
            claims.push(claim);
            jobs.push(job);
        }
        let mut flight = Flight::default();
        for ((index, unled), (claims, jobs)) in by_group {
            flight.batches.push((index, self.batch(index, unled, claims)));
            flight.jobs.push(jobs);
        }
        self.send_claims(now, flight);
    }

    pub(super) fn retry_answered(
        &mut self,
        now: Moment,
        (index, term): (Group, u64),
        claim: &Claim,
        job: usize,
        (old, tries): (u64, u32),
        reply: &ClaimReply,
    ) {
        let leads = self.plans_under(index, term);
        // Forgotten with the leadership that asked.
        let pause = leads.then(|| self.ticks.tries.pausing.remove(&(job, old))).flatten();
        match reply {
            ClaimReply::Won { fence } => {
                let fence = *fence;
                let state = &mut self.groups[index];
                state.known = state.known.max(fence);
                let attempt = tries + u32::from(!planted(Mutant::RetryUnderTheOldAttempt));
                if self.may_start(now, index, term) {
                    let owed = pause.is_some_and(|pause| pause.owed);
                    self.start_run(
                        now,
                        index,
                        term,
                        job,
                        claim.tick,
                        fence,
                        Origin::Schedule,
                        owed,
                        attempt,
                        None,
                    );
                } else {
                    self.not_started(index, term, fence, job, claim.tick, Origin::Schedule, attempt, None);
                }
            }
            ClaimReply::Early { left } => {
                if let Some(mut pause) = pause {
                    pause.at = Some(self.planning.after(now, (*left).max(Duration::from_millis(1))));
                    pause.asked = false;
                    self.ticks.tries.pausing.insert((job, old), pause);
                }
            }
            _ => {
                if let Some(pause) = pause {
                    if pause.owed {
                        self.planner.resume(job);
                    }
                    self.tell_of_end(job, old, pause);
                }
            }
        }
    }

    /// A later tick of the job has been decided: whatever paused is settled with what its last try came to.
    pub(in super::super) fn pauses_ended(&mut self, job: usize) {
        if self.jobs[job].overlap == Overlap::Allow {
            return;
        }
        // What is asked for is told by the answer.
        let of_job = self.ticks.tries.pausing.range((job, 0)..=(job, u64::MAX));
        let ended: Vec<_> = of_job.filter(|(_, pause)| !pause.asked).map(|(id, _)| *id).collect();
        for id in ended {
            if let Some(pause) = self.ticks.tries.pausing.remove(&id) {
                self.tell_of_end(job, id.1, pause);
            }
        }
    }

    /// A job that needs no leader: others have decided its ticks up to a cursor, and settled what paused of those before it.
    pub(in super::super) fn pauses_overtaken(&mut self, job: usize, cursor: Timestamp) {
        if self
            .ticks
            .tries
            .pausing
            .range((job, 0)..=(job, u64::MAX))
            .any(|(_, pause)| pause.tick < cursor)
        {
            self.pauses_ended(job);
        }
    }

    /// The same job, where the group is led no longer: only what failed here is of interest.
    pub(in super::super) fn forget_tries_elsewhere(&mut self, job: usize) {
        let tries = &mut self.ticks.tries;
        tries.looks.remove(&job);
        tries
            .pausing
            .retain(|(other, _), pause| *other != job || pause.failed.is_some());
    }

    /// Looks whether the job's runs are alive, at the latest from then on.
    pub(in super::super) fn watch_from(&mut self, job: usize, at: Moment) {
        self.ticks.tries.looks.entry(job).or_insert(at);
    }

    fn tell_of_end(&self, job: usize, fence: u64, pause: Pause) {
        let spec = &self.jobs[job];
        if spec.is_unled() && pause.failed.is_none() {
            // Somebody else's, who was here in time.
            return;
        }
        let outcome = Outcome::Ran(pause.ran);
        let mut error = String::new();
        if let Some(Failed { group, end, ended }) = pause.failed {
            self.tell_of_failure(group, &end, &ended, outcome);
            error = end.error;
        }
        self.shared.tell(Event::Decided {
            job: spec.name.clone(),
            group: spec.group.clone(),
            first: pause.tick,
            last: pause.tick,
            count: 1,
            outcome,
            fence,
            origin: Origin::Schedule,
            error,
        });
    }
}

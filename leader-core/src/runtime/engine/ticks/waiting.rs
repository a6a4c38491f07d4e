//! Ticks that wait for an earlier run of their job, wherever it runs.

use jiff::Timestamp;

use super::super::Engine;
use super::super::input::Group;
use super::super::runs::RunId;
use crate::clock::Moment;
use crate::event::Event;
use crate::job::outcome::Outcome;
use crate::job::tick::Origin;
use crate::mutants::{Mutant, planted};
use crate::schedule::missed::MissedReason;
use crate::store::{Claim, ClaimReply, Replaced, Want};

impl Engine {
    /// An earlier run somewhere in the fleet has not ended: looks again when one ends here, or with the next renewal.
    pub(super) fn pause(&mut self, now: Moment, job: usize, cursor: Timestamp) {
        self.planner.rest(job, cursor);
        let again = self.look_again_at(now, job);
        self.planner.look_when_ended(job, again);
    }

    /// The tick waits in the store. One that ends elsewhere is not told here.
    pub(super) fn look_again_at_waiting(&mut self, now: Moment, job: usize, tick: Timestamp) {
        if self.is_watched_elsewhere(job) {
            self.planner.waits_no_longer(job);
            return;
        }
        let again = self.look_again_at(now, job);
        self.planner.wait(job, tick, again);
    }

    /// A tick that waits in the store, as the leadership began or after an answer that was lost: what it waits for may have ended.
    pub(super) fn found_waiting(&mut self, now: Moment, job: usize, waiting: Option<Timestamp>) {
        if let Some(tick) = waiting {
            self.planner.wait(job, tick, self.planning.at(now));
        }
    }

    fn look_again_at(&self, now: Moment, job: usize) -> Timestamp {
        if self.is_watched_elsewhere(job) {
            return self.with_the_next_tick(now, job);
        }
        self.planning.after(now, self.shared.config.timing.renew())
    }

    /// What a claim of a waiting tick came to.
    pub(in super::super) fn waited(&mut self, now: Moment, job: usize, claim: &Claim, reply: &ClaimReply) {
        if matches!(
            reply,
            ClaimReply::Busy | ClaimReply::Held { .. } | ClaimReply::Split { .. }
        ) {
            self.look_again_at_waiting(now, job, claim.tick);
        } else {
            self.planner.waits_no_longer(job);
            self.pauses_ended(job);
        }
        self.planner.answered(job, claim.cursor);
    }

    /// A later tick that was decided stands for the one that waited.
    pub(super) fn coalesce(&mut self, job: usize, want: Want) {
        if want == Want::Settle {
            return;
        }
        if let Some(tick) = self.planner.waits_no_longer(job) {
            self.decided(job, (tick, tick, 1), Outcome::Missed(MissedReason::Coalesced));
        }
    }

    /// Runs of this instance whose place a later tick takes.
    pub(in super::super) fn end_replaced(&mut self, replaced: &[Replaced]) {
        for Replaced { group, fence } in replaced.iter().filter(|_| !planted(Mutant::ReplacedGoesOn)) {
            if let Some(group) = self.index_of(group.as_str()) {
                let fence = *fence;
                self.runs.end_one(RunId { group, fence });
            }
        }
    }

    /// A run of the job has ended here: what waited for it is looked at.
    pub(in super::super) fn ended_here(&mut self, group: Group, job: usize) {
        self.look_at_requests(group, job);
        if self.groups[group].taken_over.is_some() || self.is_unled(job) {
            let now = self.planning.at(self.now());
            self.planner.ended(job, now);
        }
    }

    pub(in super::super) fn decided(
        &self,
        job: usize,
        (first, last, count): (Timestamp, Timestamp, u64),
        outcome: Outcome,
    ) {
        let spec = &self.jobs[job];
        self.shared.tell(Event::Decided {
            job: spec.name.clone(),
            group: spec.group.clone(),
            first,
            last,
            count,
            outcome,
            fence: 0,
            origin: Origin::Schedule,
            error: String::new(),
        });
    }
}

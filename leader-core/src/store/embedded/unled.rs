//! Claims that need no leader: their part of `take_over.lua` and `claim.lua`.

use std::time::Duration;

use super::Group;
use crate::clock::Moment;
use crate::mutants::{Mutant, planted};
use crate::names::Holder;
use crate::store::ledger::OpenRun;
use crate::store::request::ClaimBatch;
use crate::store::unled::UNLED;

impl Group {
    /// Whether somebody may ask for ticks: the leader, or for jobs that need none, anybody.
    pub(super) fn may_ask(&mut self, holder: &Holder, term: u64, now: Moment) -> bool {
        self.is_held_by(holder, term, now) || term == UNLED || planted(Mutant::ClaimWithoutTheLease)
    }
}

/// Whether a run was begun by the asker, in the present term; without terms, by its process and not by an engine of it that is gone.
pub(super) fn is_own(run: &OpenRun, batch: &ClaimBatch) -> bool {
    let own = run.holder == batch.holder && run.number >= batch.first;
    run.term == batch.term && (batch.term != UNLED || own)
}

/// For how long the asker would have heard of a run. The trust in one without a leader is over when the store has heard nothing for so
/// long, whoever was cut off from what; a leader's may go on for longer.
pub(super) fn heard_for(run: &OpenRun, batch: &ClaimBatch) -> Duration {
    if (batch.term == UNLED && run.term == UNLED) || planted(Mutant::LostByAnOutage) {
        batch.silence
    } else {
        batch.connected
    }
}

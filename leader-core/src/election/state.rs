//! What a candidate is in.

use super::message::{Attempt, Lost};
use crate::clock::Moment;
use crate::mutants::{Mutant, planted};
use crate::timing::Timing;

#[derive(Clone, Debug)]
pub(super) enum State {
    /// Waits, or waits for the answer to a campaign.
    Standby {
        look_at: Moment,
        flight: Option<Flight>,
    },
    /// Believes; may be draining.
    Leading(Belief),
    /// Gives the lease back; no belief.
    Releasing {
        term: u64,
        draining_since: Option<Moment>,
        flight: Option<Flight>,
        again_at: Moment,
        give_up: Moment,
    },
    Stopped,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Flight {
    pub(super) attempt: Attempt,
    pub(super) sent: Moment,
    pub(super) deadline: Moment,
}

#[derive(Clone, Debug)]
pub(super) struct Belief {
    pub(super) term: u64,
    pub(super) until: Moment,
    pub(super) told: bool,
    pub(super) renew_at: Moment,
    /// A request came while a renewal was under way.
    pub(super) asked: bool,
    pub(super) flight: Option<Flight>,
    pub(super) failures: u32,
    pub(super) draining: Option<Draining>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Draining {
    pub(super) since: Moment,
    pub(super) bound: Moment,
    pub(super) reason: Lost,
}

impl Belief {
    pub(super) fn new(term: u64, until: Moment, renew_at: Moment) -> Self {
        Self {
            term,
            until,
            told: false,
            renew_at,
            asked: false,
            flight: None,
            failures: 0,
            draining: None,
        }
    }
}

/// Until when trust lasts that was asked for at `sent`, and is given now.
pub(super) fn trusted_until(timing: &Timing, sent: Moment, now: Moment) -> Moment {
    if planted(Mutant::TrustFromTheReply) {
        return now + timing.trust();
    }
    if planted(Mutant::NoMargin) {
        return sent + timing.ttl();
    }
    sent + timing.trust()
}

/// Takes the flight that `attempt` answers; any other answer changes nothing.
pub(super) fn landed(flight: &mut Option<Flight>, attempt: Attempt) -> Option<Moment> {
    let sent = flight.filter(|flight| flight.attempt == attempt)?.sent;
    *flight = None;
    Some(sent)
}

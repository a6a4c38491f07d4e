//! Whether the store's clock may decide ticks: not while most of a fleet's wall clocks say that it is wrong.
//!
//! One clock that is wrong by hours is an instance's own affair, and so are two that are wrong in different ways. But when most
//! instances are as far from the store as each other, the store is what they differ from; only a person can know better.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::planning::PlanningClock;
use crate::clock::Moment;

/// What two clocks may differ by and still agree.
const LIMIT: SignedDuration = SignedDuration::from_secs(5);
/// How much closer two that disagreed must come to agree again: a clock near the limit would change its mind with every look.
const CLOSER: SignedDuration = SignedDuration::from_secs(1);

/// A fleet that disagrees with the store's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dispute {
    /// How far the instances' wall clocks are ahead of the store's: the median of those that disagree alike.
    pub by: SignedDuration,
    /// How many those are.
    pub instances: usize,
    /// Of how many whose offset is known.
    pub of: usize,
}

/// What a judgement has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// No tick may be claimed from now on.
    Disputed(Dispute),
    /// Ticks go on.
    Agreed,
}

/// Whether a wall clock disagrees with the store's.
fn disagrees(offset: SignedDuration) -> bool {
    is_beyond(offset, LIMIT)
}

fn is_beyond(offset: SignedDuration, limit: SignedDuration) -> bool {
    offset.unsigned_abs() > limit.unsigned_abs()
}

/// Judges by the offsets of a fleet's wall clocks to the store's.
///
/// A dispute begins when more than half of them, and at least two, disagree alike. It ends when no more than half disagree in any
/// way, and are as much closer as makes one agree again: not by losing instances, nor because the wrong clocks part.
#[must_use]
pub fn judge(offsets: &[SignedDuration], before: Option<Dispute>) -> Option<Dispute> {
    let of = offsets.len();
    let mut wrong: Vec<_> = offsets.iter().copied().filter(|offset| disagrees(*offset)).collect();
    wrong.sort_unstable();
    // The largest number of those that lie within the limit of each other.
    let alike = |first: usize| {
        let near = |other: &&SignedDuration| other.saturating_sub(wrong[first]) <= LIMIT;
        &wrong[first..first + wrong[first..].iter().take_while(near).count()]
    };
    let alike = (0..wrong.len())
        .map(alike)
        .max_by_key(|alike| alike.len())
        .unwrap_or(&[]);
    if alike.len() >= 2 && 2 * alike.len() > of {
        return Some(Dispute {
            by: alike[alike.len() / 2],
            instances: alike.len(),
            of,
        });
    }
    let not_closer = offsets.iter().filter(|offset| is_beyond(**offset, LIMIT - CLOSER));
    before.filter(|_| 2 * not_closer.count() > of)
}

/// What one instance knows of it.
#[derive(Debug)]
pub struct Skew {
    /// The operator's word that the store's clock is right.
    follow_store: bool,
    /// How long a fleet may take to measure a step, and to say so.
    patience: Duration,
    own: Option<SignedDuration>,
    astray: bool,
    /// A leap of the planning clock that our own wall clock speaks against waits until then, and for what the fleet says.
    held_until: Option<Moment>,
    dispute: Option<Dispute>,
}

impl Skew {
    /// For an instance whose fleet shows a sign of life twice in `patience`.
    #[must_use]
    pub fn new(follow_store: bool, patience: Duration) -> Self {
        Self {
            follow_store,
            patience,
            own: None,
            astray: false,
            held_until: None,
            dispute: None,
        }
    }

    /// The slowest of the fleet shows two signs of life in so long.
    pub fn be_patient_for(&mut self, patience: Duration) {
        self.patience = patience;
    }

    /// The clock has taken a sample; `step`: and believed a step by that, or its first time.
    ///
    /// A leap that our own wall clock confirms is made at once. Another one waits: it would settle the ticks in between, and a
    /// cursor in the future cannot be taken back.
    pub fn sampled(&mut self, now: Moment, wall: Timestamp, step: bool, clock: &mut PlanningClock) {
        self.own = clock.offset_of(wall, now).map(|offset| offset.by);
        let limit = if self.astray { LIMIT - CLOSER } else { LIMIT };
        self.astray = self.own.is_some_and(|own| is_beyond(own, limit));
        if !clock.waits() {
            self.held_until = None;
        } else if self.disagrees() && !self.follow_store {
            if step || self.held_until.is_none() {
                self.held_until = Some(now + self.patience);
            }
        } else if self.dispute.is_none() {
            self.held_until = None;
            clock.follow(now);
        }
    }

    /// The fleet has been asked: the offsets of the other instances, as they last said.
    pub fn judged(&mut self, now: Moment, others: &[SignedDuration], clock: &mut PlanningClock) -> Option<Change> {
        // Whoever is about to believe a step would judge by an offset that is about to change.
        if self.follow_store || clock.suspects() {
            return None;
        }
        let offsets: Vec<_> = self.own.into_iter().chain(others.iter().copied()).collect();
        let before = self.dispute;
        self.dispute = judge(&offsets, before);
        if let Some(dispute) = self.dispute {
            return before.is_none().then_some(Change::Disputed(dispute));
        }
        // Whoever has just come learns from the others. After a step they may not have seen it yet.
        let wrong = offsets.iter().filter(|offset| disagrees(**offset)).count();
        let vouched_for = !clock.has_followed() && !others.is_empty() && 2 * wrong <= offsets.len();
        if before.is_some() && self.disagrees() && clock.waits() {
            // The others may have seen sooner that the store's clock was mended, and there is no leap to make any more.
            self.held_until = Some(now + self.patience);
        } else if before.is_some() || vouched_for || self.held_until.is_some_and(|until| now >= until) {
            self.held_until = None;
            clock.follow(now);
        }
        before.map(|_| Change::Agreed)
    }

    /// Whether our own wall clock disagrees with the store's.
    #[must_use]
    pub fn disagrees(&self) -> bool {
        self.astray
    }

    /// What the fleet disagrees with the store about.
    #[must_use]
    pub fn dispute(&self) -> Option<Dispute> {
        self.dispute
    }

    /// Whether no tick may be claimed.
    #[must_use]
    pub fn holds(&self, clock: &PlanningClock) -> bool {
        self.dispute.is_some() || !clock.has_followed() || clock.waits()
    }

    /// Whether the fleet is to be asked again and again.
    #[must_use]
    pub fn asks(&self) -> bool {
        !self.follow_store && (self.disagrees() || self.dispute.is_some() || self.held_until.is_some())
    }
}

#[cfg(test)]
mod tests;

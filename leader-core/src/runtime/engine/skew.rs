//! The engine's part in the fleet's time: takes samples of the store's clock, and asks the fleet whether that clock is right.

use jiff::{SignedDuration, Timestamp};

use super::Engine;
use crate::clock::Moment;
use crate::event::Event;
use crate::runtime::clock_status::{ClockDispute, ClockStatus};
use crate::runtime::fleet::{self, Doubt};
use crate::schedule::skew::Change;

impl Engine {
    /// Takes a sample of the store's time. Whatever changes by it is said to the fleet at once.
    pub(super) fn sampled(&mut self, now: Moment, sent: Moment, server: Timestamp) {
        let step = self.planning.sample(sent, now, server);
        if step && self.planning.has_followed() {
            let by = self.planning.store_at(now).duration_since(self.planning.at(now));
            // One that was taken back before anybody followed it changes nothing.
            if by.abs() >= SignedDuration::from_secs(1) {
                self.shared.tell(Event::ClockStepped { by });
            }
        }
        let wall = self.shared.config.clock.wall();
        self.skew.sampled(now, wall, step, &mut self.planning);
        self.tell_doubt();
        if self.planning.suspects() {
            // One that only stands by would have seen it three times after one and a half leases.
            self.roster.hurry(now + self.shared.config.timing.retry());
        }
        self.show_clock(now);
    }

    /// Judges the store's clock by what the roster says.
    pub(super) fn judge_clock(&mut self, now: Moment) {
        let config = &self.shared.config;
        let ttl = config.timing.ttl();
        let others = fleet::offsets(&self.roster.members, &config.holder, &config.machine, ttl);
        self.skew.be_patient_for(self.roster.longest_ttl().max(ttl));
        let change = self.skew.judged(now, &others, &mut self.planning);
        self.tell_doubt();
        self.show_clock(now);
        match change {
            Some(Change::Disputed(dispute)) => self.shared.tell(Event::ClockDisputed {
                ours: self.own_offset(now).unwrap_or_default(),
                theirs: dispute.by,
                instances: dispute.instances,
                of: dispute.of,
            }),
            Some(Change::Agreed) => self.shared.tell(Event::ClockAgreed {
                ours: self.own_offset(now).unwrap_or_default(),
            }),
            None => {}
        }
    }

    /// Whether no tick may be claimed at present.
    pub(super) fn holds_ticks(&self) -> bool {
        self.skew.holds(&self.planning)
    }

    fn tell_doubt(&mut self) {
        self.roster.set_doubt(Doubt {
            astray: self.skew.disagrees(),
            disputes: self.skew.dispute().is_some(),
        });
    }

    fn own_offset(&self, now: Moment) -> Option<SignedDuration> {
        let offset = self.planning.offset_of(self.shared.config.clock.wall(), now);
        offset.map(|offset| offset.by)
    }

    fn show_clock(&self, now: Moment) {
        let offset = self.planning.offset_of(self.shared.config.clock.wall(), now);
        self.shared.show_clock(ClockStatus {
            offset: offset.map(|offset| offset.by),
            offset_error: offset.map(|offset| offset.error),
            planning_error: offset.map(|_| self.planning.bound(now)),
            holds_ticks: self.holds_ticks(),
            dispute: self.skew.dispute().map(|dispute| ClockDispute {
                offset: dispute.by,
                instances: dispute.instances,
                of: dispute.of,
            }),
        });
    }
}

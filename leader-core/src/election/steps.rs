//! How a candidate goes from one state to the next.

use std::time::Duration;

use super::machine::Election;
use super::message::{Attempt, CampaignReply, Command, Lost};
use super::state::{Belief, Flight, State, trusted_until};
use crate::clock::Moment;
use crate::mutants::{Mutant, planted};

impl Election {
    /// Trust ends by the clock alone, whatever is under way.
    pub(super) fn expire(&mut self, now: Moment) {
        if matches!(&self.state, State::Leading(belief) if now >= belief.until) {
            self.lose(now, Lost::Expired);
            // The lease may still be there, in our name: a campaign finds it as its own.
            self.look(now);
            self.campaigning &= !planted(Mutant::NeverLooksAgain);
            if self.stopping {
                self.stop();
            }
        }
    }

    pub(super) fn campaign(&mut self, now: Moment) {
        let next = self.flight(now);
        if let State::Standby { flight, .. } = &mut self.state {
            *flight = Some(next);
            let paid = self.yielded.is_some_and(|until| now >= until);
            let yields = if paid { Duration::ZERO } else { self.yields };
            let routine = !std::mem::take(&mut self.hinted);
            self.commands.push_back(Command::Campaign {
                attempt: next.attempt,
                known: self.known,
                yields,
                routine,
            });
        }
    }

    pub(super) fn campaign_answered(&mut self, now: Moment, sent: Moment, reply: &CampaignReply) {
        match *reply {
            CampaignReply::Acquired { term } => {
                self.known = self.known.max(term);
                self.yielded = None;
                let until = trusted_until(&self.timing, sent, now);
                if self.stopping || self.abandoned {
                    self.begin_release(now, term, None);
                } else if now >= until {
                    self.look(now);
                } else {
                    self.state = State::Leading(Belief::new(term, until, sent + self.timing.renew()));
                    self.commands.push_back(Command::Lead { term, until });
                }
                return;
            }
            CampaignReply::Held { remaining, term } => {
                self.known = self.known.max(term);
                self.yielded = None;
                if term <= self.told && term != 0 {
                    // The answer was given before the release that we were told of.
                    self.told = 0;
                    self.look(now);
                } else {
                    // A lease that is longer than ours, or without an end, may be taken away by hand: nobody tells of that.
                    let wait = remaining.unwrap_or(self.timing.ttl()).min(self.timing.ttl());
                    self.look(now + wait + self.spread(self.timing.spread()));
                }
            }
            CampaignReply::Stale { term } => {
                self.known = self.known.max(term);
                self.look(now);
            }
            CampaignReply::Yielded { remaining, term } => {
                self.known = self.known.max(term);
                let until = now + remaining.min(self.timing.ttl());
                self.yielded = Some(self.yielded.map_or(until, |earlier| earlier.min(until)));
                self.look(until);
            }
            CampaignReply::Quarantined { remaining, term } => {
                self.known = self.known.max(term);
                // Told once, however often it is looked at.
                let until = now + remaining;
                if until > self.quarantined + self.timing.operation() {
                    self.quarantined = until;
                    self.commands.push_back(Command::Quarantined { remaining });
                }
                self.look(now + remaining.min(crate::timing::MAX_TTL) + self.spread(self.timing.spread()));
            }
        }
        if self.stopping {
            self.stop();
        }
    }

    pub(super) fn renew_if(&mut self, now: Moment, ahead: Duration) {
        let wanted =
            matches!(&self.state, State::Leading(belief) if belief.flight.is_none() && now + ahead >= belief.renew_at);
        if !wanted {
            return;
        }
        let next = self.flight(now);
        if let State::Leading(belief) = &mut self.state {
            belief.flight = Some(next);
            let (attempt, term) = (next.attempt, belief.term);
            self.commands.push_back(Command::Renew { attempt, term });
        }
    }

    pub(super) fn renewal_failed(&mut self, now: Moment) {
        let retry = self.timing.retry();
        if let State::Leading(belief) = &mut self.state {
            belief.flight = None;
            belief.failures += 1;
            // ± 20 %, so that the retries of a fleet do not stay in step.
            let jitter = retry.mul_f64(0.8 + 0.4 * f64::from(self.preference) / f64::from(u16::MAX));
            belief.renew_at = now + jitter;
            if planted(Mutant::TrustFromAFailure) {
                belief.until = now + self.timing.trust();
                let (term, until) = (belief.term, belief.until);
                self.commands.push_back(Command::Extend { term, until });
            }
            let (term, failures) = (belief.term, belief.failures);
            self.commands.push_back(Command::RenewalFailed { term, failures });
            if planted(Mutant::EndsWithAFailure) {
                self.lose(now, Lost::Expired);
                self.look(now);
            }
        }
    }

    /// Clears the belief, before anything else is sent.
    pub(super) fn lose(&mut self, now: Moment, reason: Lost) {
        if let State::Leading(belief) = &self.state {
            let term = belief.term;
            let ended = now.min(belief.until);
            self.known = self.known.max(term);
            self.commands.push_back(Command::Lose { term, reason, ended });
            self.state = State::Standby {
                look_at: now,
                flight: None,
            };
        }
    }

    /// Clears the belief and gives the lease back.
    pub(super) fn release(&mut self, now: Moment) {
        if let State::Leading(belief) = &self.state {
            let term = belief.term;
            let draining = belief.draining;
            let reason = draining.map_or(Lost::SteppedDown, |draining| draining.reason);
            self.lose(now, reason);
            self.begin_release(now, term, draining.map(|draining| draining.since));
        }
    }

    pub(super) fn begin_release(&mut self, now: Moment, term: u64, draining_since: Option<Moment>) {
        self.state = State::Releasing {
            term,
            draining_since,
            flight: None,
            again_at: now,
            // A release that fails this long is left to the lease's own end.
            give_up: now + 2 * (self.timing.operation() + self.timing.retry()),
        };
        self.send_release(now);
    }

    pub(super) fn send_release(&mut self, now: Moment) {
        let next = self.flight(now);
        if let State::Releasing {
            term,
            draining_since,
            flight,
            ..
        } = &mut self.state
        {
            *flight = Some(next);
            let command = Command::Release {
                attempt: next.attempt,
                term: *term,
                draining_since: *draining_since,
            };
            self.commands.push_back(command);
        }
    }

    pub(super) fn after_release(&mut self, now: Moment) {
        self.not_before = now + self.timing.cool_down();
        self.state = State::Standby {
            look_at: self.not_before,
            flight: None,
        };
        if self.stopping {
            self.stop();
        }
    }

    pub(super) fn stop(&mut self) {
        if !self.is_stopped() {
            self.state = State::Stopped;
            self.commands.push_back(Command::Stopped);
        }
    }

    pub(super) fn look(&mut self, at: Moment) {
        if let State::Standby { look_at, flight: None } = &mut self.state {
            *look_at = at;
        }
    }

    pub(super) fn flight(&mut self, now: Moment) -> Flight {
        self.last_attempt += 1;
        Flight {
            attempt: Attempt(self.last_attempt),
            sent: now,
            deadline: now + self.timing.operation(),
        }
    }

    pub(super) fn spread(&self, most: Duration) -> Duration {
        most.mul_f64(f64::from(self.preference) / f64::from(u16::MAX))
    }
}

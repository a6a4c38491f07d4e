//! The state machine of one candidate for one group.
//!
//! Sources of the rules: trust counts from before the send (Gray and Cheriton, "Leases", 1989; the same rule in openraft's leader
//! lease); release only after the guarded work has stopped (client-go's `ReleaseOnCancel` and its preconditions).

use std::collections::VecDeque;
use std::time::Duration;

use super::message::{Attempt, CampaignReply, Command, Lost, Reply, StepDown};
use crate::clock::Moment;
use crate::timing::Timing;

/// One candidate in one election.
///
/// Call [`handle_timeout`](Self::handle_timeout) whenever [`poll_timeout`](Self::poll_timeout) has come, feed replies as they come,
/// and execute every [`poll_command`](Self::poll_command) in order.
#[derive(Debug)]
pub struct Election {
    timing: Timing,
    drain: Duration,
    /// Spreads candidates that see one vacancy, in 0..=65535; stable, so that a group has an order of preference.
    preference: u16,
    state: State,
    known: u64,
    last_attempt: u64,
    /// The highest term whose release we were told of.
    told: u64,
    not_before: Moment,
    campaigning: bool,
    stopping: bool,
    commands: VecDeque<Command>,
}

#[derive(Debug)]
enum State {
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
struct Flight {
    attempt: Attempt,
    sent: Moment,
    deadline: Moment,
}

#[derive(Debug)]
struct Belief {
    term: u64,
    until: Moment,
    told: bool,
    renew_at: Moment,
    flight: Option<Flight>,
    failures: u32,
    draining: Option<Draining>,
}

#[derive(Clone, Copy, Debug)]
struct Draining {
    since: Moment,
    bound: Moment,
    reason: Lost,
}

impl Election {
    /// A candidate that campaigns at once. `drain` bounds a step-down; `preference` orders candidates that see one vacancy.
    #[must_use]
    pub fn new(timing: Timing, drain: Duration, preference: u16, campaigning: bool, now: Moment) -> Self {
        Self {
            timing,
            drain,
            preference,
            state: State::Standby {
                look_at: now,
                flight: None,
            },
            known: 0,
            last_attempt: 0,
            told: 0,
            not_before: now,
            campaigning,
            stopping: false,
            commands: VecDeque::new(),
        }
    }

    /// The next thing to do, in order.
    #[must_use]
    pub fn poll_command(&mut self) -> Option<Command> {
        self.commands.pop_front()
    }

    /// When to call [`handle_timeout`](Self::handle_timeout) next.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Moment> {
        match &self.state {
            State::Standby {
                flight: Some(flight), ..
            } => Some(flight.deadline),
            State::Standby { look_at, flight: None } => self.campaigning.then(|| (*look_at).max(self.not_before)),
            State::Leading(belief) => {
                let mut at = belief.until;
                if !belief.told {
                    at = at.min(belief.until - self.timing.cancel_lead());
                }
                at = at.min(belief.flight.map_or(belief.renew_at, |flight| flight.deadline));
                if let Some(draining) = belief.draining {
                    at = at.min(draining.bound);
                }
                Some(at)
            }
            State::Releasing {
                flight,
                again_at,
                give_up,
                ..
            } => Some(flight.map_or(*again_at, |flight| flight.deadline).min(*give_up)),
            State::Stopped => None,
        }
    }

    /// The term believed in now.
    #[must_use]
    pub fn leading(&self, now: Moment) -> Option<u64> {
        match &self.state {
            State::Leading(belief) if now < belief.until => Some(belief.term),
            _ => None,
        }
    }

    /// Whether the machine has stopped for good.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        matches!(self.state, State::Stopped)
    }

    /// Time has passed.
    pub fn handle_timeout(&mut self, now: Moment) {
        self.expire(now);
        match &mut self.state {
            State::Standby { look_at, flight } => {
                if flight.is_some_and(|flight| now >= flight.deadline) {
                    // What became of it is unknown; a grant that nobody believes in ends by itself, and the next
                    // campaign finds it as its own.
                    *flight = None;
                    *look_at = now + self.timing.retry();
                    if self.stopping {
                        self.stop();
                    }
                } else if flight.is_none() && self.campaigning && now >= *look_at && now >= self.not_before {
                    self.campaign(now);
                }
            }
            State::Leading(belief) => {
                if !belief.told && now >= belief.until - self.timing.cancel_lead() {
                    belief.told = true;
                    self.commands.push_back(Command::Tell { term: belief.term });
                }
                if belief.draining.is_some_and(|draining| now >= draining.bound) {
                    self.release(now);
                    return;
                }
                if belief.flight.is_some_and(|flight| now >= flight.deadline) {
                    self.renewal_failed(now);
                }
                self.renew_if(now, Duration::ZERO);
            }
            State::Releasing {
                flight,
                again_at,
                give_up,
                ..
            } => {
                if now >= *give_up {
                    self.after_release(now);
                } else if flight.is_some_and(|flight| now >= flight.deadline) {
                    *flight = None;
                    *again_at = now + self.timing.retry();
                } else if flight.is_none() && now >= *again_at {
                    self.send_release(now);
                }
            }
            State::Stopped => {}
        }
    }

    /// Renews now if the renewal falls due within `ahead`, so that groups renewed together stay together.
    pub fn renew_ahead(&mut self, now: Moment, ahead: Duration) {
        self.expire(now);
        self.renew_if(now, ahead);
    }

    /// The store answered, or did not.
    pub fn handle_reply(&mut self, now: Moment, attempt: Attempt, reply: &Reply) {
        self.expire(now);
        match &mut self.state {
            State::Standby { flight, .. } => {
                let Some(sent) = landed(flight, attempt) else { return };
                match reply {
                    Reply::Campaign(reply) => self.campaign_answered(now, sent, reply),
                    _ => self.look(now + self.timing.retry()),
                }
            }
            State::Leading(belief) => {
                let Some(sent) = landed(&mut belief.flight, attempt) else {
                    return;
                };
                match reply {
                    Reply::Renewed => {
                        belief.failures = 0;
                        belief.renew_at = sent + self.timing.renew();
                        belief.until = belief.until.max(sent + self.timing.trust());
                        let (term, until) = (belief.term, belief.until);
                        self.commands.push_back(Command::Extend { term, until });
                    }
                    Reply::NotYours { held, term } => {
                        let reason = if *held { Lost::Taken } else { Lost::Vanished };
                        let theirs = *term;
                        self.lose(now, reason);
                        self.known = self.known.max(theirs);
                        self.look(now);
                    }
                    Reply::Campaign(_) | Reply::Released | Reply::Failed => self.renewal_failed(now),
                }
            }
            State::Releasing { flight, again_at, .. } => {
                if landed(flight, attempt).is_none() {
                    return;
                }
                if matches!(reply, Reply::Released) {
                    self.after_release(now);
                } else {
                    *again_at = now + self.timing.retry();
                }
            }
            State::Stopped => {}
        }
    }

    /// A holder gave the lease of `term` back: look at once, in the order of preference. Only a hint: nothing is believed.
    pub fn told_of_release(&mut self, now: Moment, term: u64) {
        self.told = self.told.max(term);
        let soon = now + self.spread(Duration::from_millis(20));
        if let State::Standby { look_at, flight: None } = &mut self.state {
            *look_at = (*look_at).min(soon);
        }
    }

    /// Something was missed, a message or a span of the connection: look now.
    pub fn look_again(&mut self, now: Moment) {
        if let State::Standby { look_at, flight: None } = &mut self.state {
            *look_at = (*look_at).min(now);
        }
    }

    /// Takes part in the race from now on, or no longer. A present leadership is not touched.
    pub fn set_campaigning(&mut self, campaigning: bool) {
        self.campaigning = campaigning;
    }

    /// Gives up the lead after a drain, or the candidacy.
    pub fn step_down(&mut self, now: Moment, wish: StepDown) {
        self.expire(now);
        let shutdown = wish == StepDown::Shutdown;
        self.stopping |= shutdown;
        match &mut self.state {
            State::Leading(belief) => {
                let reason = if self.stopping {
                    Lost::Shutdown
                } else {
                    Lost::SteppedDown
                };
                if let Some(draining) = &mut belief.draining {
                    draining.reason = reason;
                    return;
                }
                let bound = now + self.drain;
                belief.draining = Some(Draining {
                    since: now,
                    bound,
                    reason,
                });
                belief.told = true;
                let term = belief.term;
                self.commands.push_back(Command::Drain { term, bound });
            }
            // An answer under way may bring a lease that must be given back, so a stopping candidate waits for it.
            State::Standby { flight: None, .. } if shutdown => self.stop(),
            State::Standby { .. } | State::Releasing { .. } | State::Stopped => {}
        }
    }

    /// The bodies of the draining leadership have ended.
    pub fn drained(&mut self, now: Moment, term: u64) {
        self.expire(now);
        if matches!(&self.state, State::Leading(belief) if belief.term == term && belief.draining.is_some()) {
            self.release(now);
        }
    }

    /// Gives everything up at once, without a drain; the release is still tried.
    pub fn abandon(&mut self, now: Moment, reason: Lost) {
        self.expire(now);
        self.stopping = true;
        match &mut self.state {
            State::Leading(belief) => {
                let since = belief.draining.map_or(now, |draining| draining.since);
                belief.draining = Some(Draining {
                    since,
                    bound: now,
                    reason,
                });
                self.release(now);
            }
            State::Standby { flight: None, .. } => self.stop(),
            State::Standby { .. } | State::Releasing { .. } | State::Stopped => {}
        }
    }

    /// Trust ends by the clock alone, whatever is under way.
    fn expire(&mut self, now: Moment) {
        if matches!(&self.state, State::Leading(belief) if now >= belief.until) {
            self.lose(now, Lost::Expired);
            // The lease may still be there, in our name: a campaign finds it as its own.
            self.look(now);
            if self.stopping {
                self.stop();
            }
        }
    }

    fn campaign(&mut self, now: Moment) {
        let next = self.flight(now);
        if let State::Standby { flight, .. } = &mut self.state {
            *flight = Some(next);
            let (attempt, known) = (next.attempt, self.known);
            self.commands.push_back(Command::Campaign { attempt, known });
        }
    }

    fn campaign_answered(&mut self, now: Moment, sent: Moment, reply: &CampaignReply) {
        match *reply {
            CampaignReply::Acquired { term } => {
                self.known = self.known.max(term);
                let until = sent + self.timing.trust();
                if self.stopping {
                    self.begin_release(now, term, None);
                } else if now >= until {
                    self.look(now);
                } else {
                    self.state = State::Leading(Belief {
                        term,
                        until,
                        told: false,
                        renew_at: sent + self.timing.renew(),
                        flight: None,
                        failures: 0,
                        draining: None,
                    });
                    self.commands.push_back(Command::Lead { term, until });
                }
                return;
            }
            CampaignReply::Held { remaining, term } => {
                self.known = self.known.max(term);
                if term <= self.told && term != 0 {
                    // The answer was given before the release that we were told of.
                    self.told = 0;
                    self.look(now);
                } else {
                    let wait = remaining.unwrap_or(self.timing.ttl()).min(crate::timing::MAX_TTL);
                    self.look(now + wait + self.spread(self.timing.spread()));
                }
            }
            CampaignReply::Stale { term } => {
                self.known = self.known.max(term);
                self.look(now);
            }
            CampaignReply::Quarantined { remaining, term } => {
                self.known = self.known.max(term);
                self.commands.push_back(Command::Quarantined { remaining });
                self.look(now + remaining.min(crate::timing::MAX_TTL) + self.spread(self.timing.spread()));
            }
        }
        if self.stopping {
            self.stop();
        }
    }

    fn renew_if(&mut self, now: Moment, ahead: Duration) {
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

    fn renewal_failed(&mut self, now: Moment) {
        let retry = self.timing.retry();
        if let State::Leading(belief) = &mut self.state {
            belief.flight = None;
            belief.failures += 1;
            // ± 20 %, so that the retries of a fleet do not stay in step.
            let jitter = retry.mul_f64(0.8 + 0.4 * f64::from(self.preference) / f64::from(u16::MAX));
            belief.renew_at = now + jitter;
            let (term, failures) = (belief.term, belief.failures);
            self.commands.push_back(Command::RenewalFailed { term, failures });
        }
    }

    /// Clears the belief, before anything else is sent.
    fn lose(&mut self, now: Moment, reason: Lost) {
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
    fn release(&mut self, now: Moment) {
        if let State::Leading(belief) = &self.state {
            let term = belief.term;
            let draining = belief.draining;
            let reason = draining.map_or(Lost::SteppedDown, |draining| draining.reason);
            self.lose(now, reason);
            self.begin_release(now, term, draining.map(|draining| draining.since));
        }
    }

    fn begin_release(&mut self, now: Moment, term: u64, draining_since: Option<Moment>) {
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

    fn send_release(&mut self, now: Moment) {
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

    fn after_release(&mut self, now: Moment) {
        self.not_before = now + self.timing.cool_down();
        self.state = State::Standby {
            look_at: self.not_before,
            flight: None,
        };
        if self.stopping {
            self.stop();
        }
    }

    fn stop(&mut self) {
        if !self.is_stopped() {
            self.state = State::Stopped;
            self.commands.push_back(Command::Stopped);
        }
    }

    fn look(&mut self, at: Moment) {
        if let State::Standby { look_at, flight: None } = &mut self.state {
            *look_at = at;
        }
    }

    fn flight(&mut self, now: Moment) -> Flight {
        self.last_attempt += 1;
        Flight {
            attempt: Attempt(self.last_attempt),
            sent: now,
            deadline: now + self.timing.operation(),
        }
    }

    fn spread(&self, most: Duration) -> Duration {
        most.mul_f64(f64::from(self.preference) / f64::from(u16::MAX))
    }
}

/// Takes the flight that `attempt` answers; any other answer changes nothing.
fn landed(flight: &mut Option<Flight>, attempt: Attempt) -> Option<Moment> {
    let sent = flight.filter(|flight| flight.attempt == attempt)?.sent;
    *flight = None;
    Some(sent)
}

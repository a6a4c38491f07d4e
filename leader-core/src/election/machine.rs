//! The state machine of one candidate for one group.
//!
//! Sources of the rules: trust counts from before the send (Gray and Cheriton, "Leases", 1989; the same rule in openraft's leader
//! lease); release only after the guarded work has stopped (client-go's `ReleaseOnCancel` and its preconditions).

use std::collections::VecDeque;
use std::time::Duration;

use super::message::{Attempt, Command, Lost, Reply, StepDown};
use super::state::{Belief, Draining, State, landed, trusted_until};
use crate::clock::Moment;
use crate::mutants::{Mutant, planted};
use crate::timing::Timing;

/// Over what span the standbys look that are told of a release: the first to look wins, so that a group has an order of preference,
/// and a hand-over takes no longer than this and two round trips.
const RELEASE_SPREAD: Duration = Duration::from_millis(10);

/// One candidate in one election.
///
/// Call [`handle_timeout`](Self::handle_timeout) whenever [`poll_timeout`](Self::poll_timeout) has come, feed replies as they come,
/// and execute every [`poll_command`](Self::poll_command) in order.
#[derive(Clone, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "each is true or not by itself")]
pub struct Election {
    pub(super) timing: Timing,
    pub(super) drain: Duration,
    /// Spreads candidates that see one vacancy, in 0..=65535; stable, so that a group has an order of preference.
    pub(super) preference: u16,
    pub(super) state: State,
    pub(super) known: u64,
    pub(super) last_attempt: u64,
    /// The highest term whose release we were told of.
    pub(super) told: u64,
    pub(super) not_before: Moment,
    /// The next look was called for by a hint.
    pub(super) hinted: bool,
    /// How long a vacancy is left to others.
    pub(super) yields: Duration,
    /// A vacancy was left to others until then, and is not again before somebody has led.
    pub(super) yielded: Option<Moment>,
    /// Until when nobody may lead, as last told.
    pub(super) quarantined: Moment,
    pub(super) campaigning: bool,
    pub(super) stopping: bool,
    /// Given up until further notice: no campaign, and a grant that still comes is given back.
    pub(super) abandoned: bool,
    pub(super) commands: VecDeque<Command>,
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
            hinted: false,
            yields: Duration::ZERO,
            yielded: None,
            quarantined: now,
            campaigning,
            stopping: false,
            abandoned: false,
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
            State::Standby { look_at, flight: None } => self.races().then(|| (*look_at).max(self.not_before)),
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

    /// The highest term seen.
    #[must_use]
    pub fn known(&self) -> u64 {
        self.known
    }

    /// Whether the machine has stopped for good.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        matches!(self.state, State::Stopped)
    }

    /// Time has passed.
    pub fn handle_timeout(&mut self, now: Moment) {
        self.expire(now);
        let races = self.races();
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
                } else if flight.is_none() && races && now >= *look_at && now >= self.not_before {
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

    /// Looks now if the next look falls due within `ahead`, so that groups looked at together stay together.
    pub fn look_ahead(&mut self, now: Moment, ahead: Duration) {
        let due = |look_at: Moment| self.races() && now + ahead >= look_at && now >= self.not_before;
        if matches!(self.state, State::Standby { look_at, flight: None } if due(look_at)) {
            self.campaign(now);
        }
    }

    /// How long a vacancy is left to others from now on: a delay, never a veto.
    pub fn set_yield(&mut self, yields: Duration) {
        self.yields = yields.min(self.timing.ttl());
    }

    /// Renews at the next turn: the leader of `term` is asked something.
    pub fn told_of_request(&mut self, now: Moment, term: u64) {
        if let State::Leading(belief) = &mut self.state
            && belief.term == term
        {
            belief.renew_at = belief.renew_at.min(now);
            // The answer under way may have been given before the request.
            belief.asked = belief.flight.is_some();
        }
    }

    /// The store answered, or did not.
    pub fn handle_reply(&mut self, now: Moment, attempt: Attempt, reply: &Reply) {
        self.expire(now);
        match &mut self.state {
            State::Standby { flight, .. } => {
                let Some(sent) = landed(flight, attempt) else { return };
                match reply {
                    Reply::Campaign(reply) => self.campaign_answered(now, sent, reply),
                    _ if self.stopping => self.stop(),
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
                        let asked = std::mem::take(&mut belief.asked);
                        belief.renew_at = if asked { now } else { sent + self.timing.renew() };
                        belief.until = belief.until.max(trusted_until(&self.timing, sent, now));
                        // The end that bodies were told of has not come.
                        belief.told &= belief.draining.is_some();
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
            State::Releasing { term, .. } if planted(Mutant::RenewalAfterRelease) && *reply == Reply::Renewed => {
                let (term, until) = (*term, now + self.timing.trust());
                self.state = State::Leading(Belief::new(term, until, now));
                self.commands.push_back(Command::Lead { term, until });
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
        let soon = now + self.spread(RELEASE_SPREAD);
        if let State::Standby { look_at, flight: None } = &mut self.state
            && soon < *look_at
        {
            *look_at = soon;
            self.hinted = true;
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
                if planted(Mutant::ReleaseBeforeTheDrain) {
                    let attempt = self.flight(now).attempt;
                    let draining_since = Some(now);
                    self.commands.push_back(Command::Release {
                        attempt,
                        term,
                        draining_since,
                    });
                }
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

    /// Gives the lead up at once, without a drain, and stays out of the race until [`rejoin`](Self::rejoin); the release is still
    /// tried. With [`step_down`](Self::step_down) for a shutdown after it, for good.
    pub fn abandon(&mut self, now: Moment, reason: Lost) {
        self.expire(now);
        // An answer under way may bring a lease that must be given back, so a candidate's flight is waited for.
        self.abandoned = true;
        if let State::Leading(belief) = &mut self.state {
            let since = belief.draining.map_or(now, |draining| draining.since);
            belief.draining = Some(Draining {
                since,
                bound: now,
                reason,
            });
            self.release(now);
        }
    }

    /// Takes part again after [`abandon`](Self::abandon): once the cool-down of a release is over, and at once without one.
    pub fn rejoin(&mut self, now: Moment) {
        self.abandoned = false;
        // What was seen of the lease is old by now.
        self.look(now);
    }

    fn races(&self) -> bool {
        self.campaigning && !self.abandoned
    }
}

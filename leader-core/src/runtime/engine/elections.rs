//! Executes what the elections command, and feeds them what the store answers.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::input::{Group, GroupAnswers, Input};
use super::{Engine, GroupState};
use crate::clock::Moment;
use crate::election::{Attempt, Command, Lost, Oddity, Reply, StepDown};
use crate::event::Event;
use crate::job::gate::{GroupStatus, Role};
use crate::job::outcome::Ran;
use crate::mutants::{Mutant, planted};
use crate::runtime::guarded::Ending;
use crate::store::{Asked, Campaign, Campaigned, Release, Renewal, Renewed, StoreError, Verdict};

/// The requests of one turn, sent together.
#[derive(Default)]
struct Outbox {
    campaigns: Vec<(Group, Attempt, Campaign)>,
    /// A campaign is among them that nothing but time called for.
    routine: bool,
    renewals: Vec<(Group, Attempt, Renewal)>,
}

/// The most leases that one round trip renews.
const BATCH: usize = 64;

impl Engine {
    pub(super) fn elections_turn(&mut self, now: Moment) {
        let mut outbox = Outbox::default();
        for index in 0..self.groups.len() {
            let election = &mut self.groups[index].election;
            if election.poll_timeout().is_some_and(|at| now >= at) {
                election.handle_timeout(now);
            }
            self.obey(now, index, &mut outbox);
        }
        if !outbox.renewals.is_empty() {
            // Whatever falls due soon goes along, and stays in step from then on.
            let ahead = self.shared.config.timing.renew() / 4;
            for index in 0..self.groups.len() {
                self.groups[index].election.renew_ahead(now, ahead);
                self.obey(now, index, &mut outbox);
            }
        }
        if outbox.routine {
            // One question for all groups that are to be looked at soon.
            let ahead = self.shared.config.timing.ttl() / 4;
            for index in 0..self.groups.len() {
                self.groups[index].election.look_ahead(now, ahead);
                self.obey(now, index, &mut outbox);
            }
        }
        self.post(now, outbox);
    }

    fn obey(&mut self, now: Moment, index: Group, outbox: &mut Outbox) {
        while let Some(command) = self.groups[index].election.poll_command() {
            let state = &mut self.groups[index];
            let group = state.gate.group().clone();
            match command {
                Command::Campaign {
                    attempt,
                    known,
                    yields,
                    routine,
                } => {
                    outbox.routine |= routine;
                    let config = &self.shared.config;
                    let campaign = Campaign {
                        group,
                        holder: config.holder.clone(),
                        ttl: config.timing.ttl(),
                        longest: self.roster.longest_ttl(),
                        known: known.max(state.known),
                        // Only what has never had an answer may be a first start.
                        first_start: config.first_start && !state.answered,
                        only_one: config.exclusive_id && !self.roster.has_twin(),
                        yields,
                    };
                    outbox.campaigns.push((index, attempt, campaign));
                }
                Command::Renew { attempt, term } => {
                    let config = &self.shared.config;
                    let renewal = Renewal {
                        group,
                        holder: config.holder.clone(),
                        term,
                        ttl: config.timing.ttl(),
                    };
                    outbox.renewals.push((index, attempt, renewal));
                }
                Command::Release {
                    attempt,
                    term,
                    draining_since,
                } => self.send_release(now, index, attempt, term, draining_since),
                Command::Lead { term, until } => self.lead(now, index, term, until),
                Command::Extend { term, until } => {
                    state.gate.extend(until);
                    if planted(Mutant::ElectedWithEachRenewal) {
                        self.shared.tell(Event::Elected { group, term });
                    }
                    if state.draining.is_none() {
                        state.gate.untell(term);
                    }
                }
                Command::Tell { term } => state.gate.tell(term),
                Command::Drain { term, bound: _ } => self.drain(index, term),
                Command::Lose { term, reason, ended } => self.lose(index, term, reason, ended),
                Command::RenewalFailed { term, failures } => {
                    self.shared.tell(Event::RenewalFailed { group, term, failures });
                }
                Command::Quarantined { remaining } => self.shared.tell(Event::Quarantined { group, remaining }),
                Command::Stopped => {}
            }
        }
    }

    fn post(&mut self, now: Moment, outbox: Outbox) {
        if !outbox.campaigns.is_empty() {
            let (keys, requests): (Vec<_>, Vec<_>) = outbox
                .campaigns
                .into_iter()
                .map(|(group, attempt, request)| ((group, attempt), request))
                .unzip();
            if planted(Mutant::TasksPileUp) {
                self.ask(std::future::pending(), |()| Input::CallsIdle);
            }
            let store = Arc::clone(&self.store);
            self.ask(async move { store.campaign(requests).await }, move |answers| {
                Input::Campaigned(keyed(keys, answers))
            });
        }
        let mut renewals = outbox.renewals.into_iter().peekable();
        let mut beats = self.beats_due(now, renewals.peek().is_some());
        while renewals.peek().is_some() || !beats.is_empty() {
            let (keys, requests): (Vec<_>, Vec<_>) = renewals
                .by_ref()
                .take(BATCH)
                .map(|(group, attempt, request)| ((group, attempt), request))
                .unzip();
            let beats = std::mem::take(&mut beats);
            let given = beats.clone();
            let store = Arc::clone(&self.store);
            self.ask(async move { store.renew(requests, beats).await }, move |told| {
                Input::Renewed {
                    sent: now,
                    answers: keyed(keys, told.renewed),
                    replaced: told.replaced,
                    beaten: given.into_iter().zip(told.beaten).collect(),
                    gone: told.gone,
                }
            });
        }
    }

    fn send_release(&mut self, now: Moment, index: Group, attempt: Attempt, term: u64, since: Option<Moment>) {
        let request = Release {
            group: self.groups[index].gate.group().clone(),
            holder: self.shared.config.holder.clone(),
            term,
            draining_since: since.map(|since| self.planning.store_at(now) - span(now.since(since))),
        };
        let store = Arc::clone(&self.store);
        self.ask(async move { store.release(request).await }, move |answer| {
            Input::Released {
                group: index,
                attempt,
                answer,
            }
        });
    }

    pub(super) fn campaigned(&mut self, now: Moment, answers: GroupAnswers<Campaigned>) {
        let mut moved = Vec::new();
        for (index, attempt, answer) in answers {
            self.heard(now, &answer);
            let state = &mut self.groups[index];
            let reply = match answer {
                Ok(Campaigned {
                    verdict,
                    holder,
                    oddity,
                }) => {
                    state.answered |= !matches!(verdict, Verdict::Stale { .. });
                    let holder = holder.map(|holder| holder.instance().to_owned());
                    // One of ours whose state was lost is no stranger.
                    let ours = holder.as_deref().is_some_and(|holder| self.roster.knows(holder));
                    let oddity = oddity.filter(|oddity| !(ours && *oddity == Oddity::Foreign));
                    // Once for each, and again after it was gone; a lease is cut back once for each time that it was too long.
                    let told = std::mem::replace(&mut state.oddity, oddity);
                    if let Some(oddity) = oddity.filter(|oddity| told != Some(*oddity) || *oddity == Oddity::Clamped) {
                        self.shared.tell(Event::OddLease {
                            group: state.gate.group().clone(),
                            holder: holder.clone(),
                            oddity,
                        });
                    }
                    if state.note(&verdict, holder, self.shared.config.clock.wall()) {
                        moved.push(index);
                    }
                    Reply::Campaign(verdict)
                }
                Err(_) => Reply::Failed,
            };
            state.election.handle_reply(now, attempt, &reply);
        }
        for index in moved {
            self.place(index);
        }
        self.elections_turn(now);
    }

    pub(super) fn renewed(&mut self, now: Moment, sent: Moment, answers: GroupAnswers<Renewed>) {
        // All answers of a round trip are one look at the store's clock; the last script's is the freshest.
        let server = answers.iter().rev().find_map(|(_, _, answer)| match answer {
            Ok(Renewed::Yes { now: server, .. }) => Some(*server),
            _ => None,
        });
        if let Some(server) = server {
            self.sampled(now, sent, server);
        }
        for (index, attempt, answer) in answers {
            self.heard(now, &answer);
            self.measure_renewal(now, sent, index, &answer);
            let reply = match &answer {
                Ok(Renewed::Yes { .. }) => Reply::Renewed,
                Ok(Renewed::NotYours { holder, term }) => Reply::NotYours {
                    held: holder.is_some(),
                    term: *term,
                },
                Err(_) => Reply::Failed,
            };
            self.groups[index].election.handle_reply(now, attempt, &reply);
            if let Ok(Renewed::Yes { control, .. }) = &answer {
                self.control_heard(index, *control);
            }
            if let Ok(Renewed::Yes { asked: Some(asked), .. }) = answer {
                self.asked_to_step_down(now, index, asked);
            }
        }
        self.elections_turn(now);
    }

    fn asked_to_step_down(&mut self, now: Moment, index: Group, asked: Asked) {
        let state = &mut self.groups[index];
        // The request stays in the store until the term has ended.
        let Some(term) = state.election.leading(now).filter(|_| state.draining.is_none()) else {
            return;
        };
        let Asked { by, reason } = asked;
        let group = state.gate.group().clone();
        self.shared.tell(Event::StepDownAsked {
            group,
            term,
            by,
            reason,
        });
        state.election.step_down(now, StepDown::Request);
    }

    pub(super) fn released(&mut self, now: Moment, index: Group, attempt: Attempt, answer: &Result<(), StoreError>) {
        self.heard(now, answer);
        let reply = if answer.is_ok() { Reply::Released } else { Reply::Failed };
        if planted(Mutant::BeliefUntilReleased) {
            self.groups[index].gate.close();
        }
        self.groups[index].election.handle_reply(now, attempt, &reply);
        self.elections_turn(now);
    }

    fn lead(&mut self, now: Moment, index: Group, term: u64, until: Moment) {
        let state = &mut self.groups[index];
        state.known = state.known.max(term);
        state.draining = None;
        state.leading_since = now;
        if planted(Mutant::BeliefUntilReleased) {
            state.gate.close();
        }
        state.gate.open(term, until);
        let since = self.shared.config.clock.wall();
        let leader = self.shared.config.instance.to_string();
        state.show(Role::Leader, Some(leader), term, Some(since));
        let group = state.gate.group().clone();
        self.shared.tell(Event::Elected { group, term });
        self.take_over(now, index, term);
        self.led_unled(now, index);
        self.lives_begin(index, term);
        self.look_for_uncovered(now, index);
    }

    fn drain(&mut self, index: Group, term: u64) {
        let state = &mut self.groups[index];
        state.gate.close_entry();
        state.draining = Some(term);
        state.gate.tell(term);
        let leader = state.gate.status().borrow().leader.clone();
        let since = state.gate.status().borrow().since;
        state.show(Role::Draining, leader, term, since);
        let group = state.gate.group().clone();
        let gate = Arc::clone(&state.gate);
        self.ask(async move { gate.idle().await }, |()| Input::CallsIdle);
        self.forget_ticks(index);
        self.lives.stop(&group);
        self.shared.tell(Event::Draining { group, term });
    }

    /// Belief is cleared before anything else is sent.
    fn lose(&mut self, index: Group, term: u64, reason: Lost, ended: Moment) {
        let state = &mut self.groups[index];
        if !(planted(Mutant::BeliefUntilReleased) && matches!(reason, Lost::SteppedDown | Lost::Shutdown)) {
            state.gate.close();
        }
        state.gate.tell(term);
        let drained = state.draining.take().is_some();
        state.taken_over = None;
        state.take_over_again = None;
        state.control = super::control::Control::default();
        state.show(Role::Standby, None, term, None);
        let group = state.gate.group().clone();
        for done in state.step_down.drain(..) {
            if planted(Mutant::StepDownUnanswered) {
                std::mem::forget(done);
                continue;
            }
            let _ = done.send(Ok(()));
        }
        self.forget_ticks(index);
        self.forget_made(index);
        self.lost_unled(index, drained);
        for id in self.runs.lost(index, term) {
            self.run_ended(id, Ending::of(Ran::NotStarted));
        }
        self.lives.stop(&group);
        self.lives.end(&group);
        self.shared.tell(Event::Lost {
            group,
            term,
            reason,
            ended,
        });
    }
}

impl GroupState {
    /// Keeps what a campaign's answer says of the leader; whether that is news.
    fn note(&mut self, verdict: &Verdict, holder: Option<String>, wall: Timestamp) -> bool {
        let Verdict::Held { term, .. } = verdict else {
            return false;
        };
        let same = {
            let status = self.gate.status().borrow();
            status.leader == holder && status.term == *term
        };
        if !same {
            self.show(Role::Standby, holder, *term, Some(since(*term, wall)));
        }
        !same
    }

    pub(super) fn show(&self, role: Role, leader: Option<String>, term: u64, since: Option<Timestamp>) {
        let status = GroupStatus {
            group: self.gate.group().clone(),
            role,
            leader,
            term,
            since,
        };
        self.gate.show(status);
    }
}

/// When a term began, as the number tells that the store made of its clock; when it was first seen, if the number tells something
/// that cannot be.
fn since(term: u64, seen: Timestamp) -> Timestamp {
    let minted = i64::try_from(term)
        .ok()
        .and_then(|micros| Timestamp::from_microsecond(micros).ok());
    let plausible = |at: &Timestamp| *at <= seen && seen.duration_since(*at).as_hours() < 24 * 365;
    minted.filter(plausible).unwrap_or(seen)
}

fn keyed<T>(keys: Vec<(Group, Attempt)>, answers: Vec<Result<T, StoreError>>) -> GroupAnswers<T> {
    keys.into_iter()
        .zip(answers)
        .map(|((group, attempt), answer)| (group, attempt, answer))
        .collect()
}

pub(super) fn span(duration: Duration) -> jiff::SignedDuration {
    jiff::SignedDuration::try_from(duration).unwrap_or(jiff::SignedDuration::MAX)
}

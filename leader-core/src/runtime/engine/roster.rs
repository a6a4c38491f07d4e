//! The line by which the fleet knows this instance.

use std::sync::Arc;

use super::{Engine, Input, Refused};
use crate::clock::Moment;
use crate::event::Event;
use crate::job::gate::Role;
use crate::store::{Enrolled, Entry, StoreError};

/// How long a store may be silent about the roster line before the line dies, beyond the lease's own time.
const ROSTER_SLACK: u32 = 2;

/// The instance's line in the roster.
#[derive(Default)]
pub(super) struct Roster {
    pub(super) enrolled: bool,
    in_flight: bool,
    next: Option<Moment>,
}

impl Engine {
    pub(super) fn roster_turn(&mut self, now: Moment) {
        let due = self.roster.next.is_none_or(|at| now >= at);
        if !due || self.roster.in_flight || self.is_leaving() {
            return;
        }
        self.roster.in_flight = true;
        let config = &self.shared.config;
        let entry = Entry {
            holder: config.holder.clone(),
            service: config.service.clone(),
            ttl: config.timing.ttl() * ROSTER_SLACK,
        };
        let store = Arc::clone(&self.store);
        self.ask(async move { store.enrol(entry).await }, Input::Enrolled);
    }

    pub(super) fn enrolled(&mut self, now: Moment, answer: Result<Enrolled, StoreError>) {
        self.heard(now, &answer);
        self.roster.in_flight = false;
        let timing = self.shared.config.timing;
        let again = if answer.is_ok() { timing.renew() } else { timing.retry() };
        self.roster.next = Some(now + again);
        match answer {
            Ok(Enrolled::Yes) if self.roster.enrolled => {}
            Ok(Enrolled::Yes) => {
                self.roster.enrolled = true;
                let instance = self.shared.config.instance.clone();
                self.shared.tell(Event::Started { instance });
                for group in &mut self.groups {
                    let takes_part = self.shared.config.candidacy.has(group.gate.group());
                    group.election.set_campaigning(takes_part);
                    if !takes_part {
                        group.answered = true;
                        group.gate.status().send_modify(|status| status.role = Role::Observer);
                    }
                }
            }
            Ok(Enrolled::OtherService { service, instance }) => {
                if let Some((ready, _)) = self.ready.take() {
                    let _ = ready.send(Err(Refused::OtherService { service, instance }));
                } else {
                    self.shared.tell(Event::OtherService { service, instance });
                }
            }
            Err(_) => {}
        }
    }

    pub(super) fn roster_wake(&self) -> Option<Moment> {
        self.roster
            .next
            .filter(|_| !self.roster.in_flight && !self.is_leaving())
    }

    /// Whether the roster line has been, or is being, taken out: a drain before that is still part of the fleet.
    fn is_leaving(&self) -> bool {
        self.stopping.as_ref().is_some_and(|stopping| stopping.leaving)
    }
}

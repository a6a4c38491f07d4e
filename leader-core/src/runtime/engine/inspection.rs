//! Looks at the store before the first lease is asked for, and again after every outage.

use std::sync::Arc;

use super::{Engine, Input, Refused};
use crate::clock::Moment;
use crate::event::Event;
use crate::store::{Finding, FindingKind, StoreError};

/// What is known of the store's fitness.
#[derive(Default)]
pub(super) struct Inspection {
    in_flight: bool,
    /// When to look; `None` = not before the next outage.
    next: Option<Moment>,
    /// The store can hold leases, as far as that was to be seen.
    pub(super) passed: bool,
    told: Vec<Finding>,
    deaf: bool,
}

impl Inspection {
    /// One that looks at once.
    pub(super) fn due(now: Moment) -> Self {
        let next = Some(now);
        Self {
            next,
            ..Self::default()
        }
    }

    /// As the next engine finds it: no answer is on its way.
    pub(super) fn kept(self, now: Moment) -> Self {
        Self {
            in_flight: false,
            next: Some(now),
            ..self
        }
    }

    pub(super) fn next_wake(&self) -> Option<Moment> {
        self.next.filter(|_| !self.in_flight)
    }

    /// The server that answers now may be another.
    pub(super) fn again(&mut self, now: Moment) {
        self.next = Some(now);
    }
}

impl Engine {
    /// Hints are not heard: told once.
    pub(super) fn deaf(&mut self, error: &StoreError) {
        if std::mem::replace(&mut self.inspection.deaf, true) {
            return;
        }
        let finding = Finding {
            kind: FindingKind::Channel,
            text: format!(
                "releases are not heard, so that a hand-over takes up to a TTL: {}",
                crate::job::output::chain(error)
            ),
        };
        self.shared.tell(Event::StoreFound { finding });
    }

    pub(super) fn inspection_turn(&mut self, now: Moment) {
        if self.inspection.next_wake().is_some_and(|at| now >= at) {
            self.inspection.in_flight = true;
            self.inspection.next = None;
            let store = Arc::clone(&self.store);
            self.ask(async move { store.inspect().await }, Input::Inspected);
        }
    }

    pub(super) fn inspected(&mut self, now: Moment, answer: Result<Vec<Finding>, StoreError>) {
        self.heard(now, &answer);
        self.inspection.in_flight = false;
        let timing = self.shared.config.timing;
        let Ok(findings) = answer else {
            self.inspection.next.get_or_insert(now + timing.retry());
            return;
        };
        for finding in findings
            .iter()
            .filter(|finding| !self.inspection.told.contains(finding))
        {
            let finding = finding.clone();
            self.shared.tell(Event::StoreFound { finding });
        }
        let fatal: Vec<_> = findings
            .iter()
            .filter(|finding| finding.kind.is_fatal())
            .cloned()
            .collect();
        self.inspection.told = findings;
        // One that has led goes on by its leases, which such a store does not renew.
        self.inspection.passed |= fatal.is_empty();
        if fatal.is_empty() {
            return;
        }
        // A replica may be promoted, or the address lead elsewhere one day.
        self.inspection.next.get_or_insert(now + timing.ttl());
        if !self.inspection.passed
            && let Some((ready, _)) = self.ready.take()
        {
            let _ = ready.send(Err(Refused::Unfit(fatal)));
        }
    }
}

//! Whether the store answers, and what it refuses.

use std::collections::BTreeMap;
use std::time::Duration;

use super::Engine;
use crate::clock::Moment;
use crate::event::Event;
use crate::store::StoreError;

/// How long an error is not told again.
const TOLD: Duration = Duration::from_secs(60);
/// How many different errors are kept in mind.
const ERRORS: usize = 64;

/// The state of the link.
#[derive(Default)]
pub(super) struct Link {
    /// Why the store does not answer.
    failing: Option<StoreError>,
    /// Since when it has answered without a break that is longer than one and a half renew intervals: what is cut for a moment is
    /// heard at the next try.
    pub(super) connected_since: Option<Moment>,
    answered: Option<Moment>,
    /// An error came since the last answer.
    broken: bool,
    /// The last refusal of one question.
    refused: Option<StoreError>,
    /// When each error was told.
    told: BTreeMap<String, Moment>,
}

impl Link {
    /// What keeps an instance from its start; whoever is enrolled is not kept by what was refused before.
    pub(super) fn fault(&self, enrolled: bool) -> Option<StoreError> {
        let refused = self.refused.as_ref().filter(|_| !enrolled);
        self.failing.as_ref().or(refused).cloned()
    }
}

impl Link {
    /// Whether the store does not answer at present.
    pub(super) fn is_failing(&self) -> bool {
        self.failing.is_some()
    }

    /// Why it does not.
    pub(super) fn failing(&self) -> Option<&StoreError> {
        self.failing.as_ref()
    }
}

impl Engine {
    /// Notes whether the store answers; a first failure and a recovery are told. A refusal of one question is an answer, and is
    /// told by itself.
    pub(super) fn heard<T>(&mut self, now: Moment, answer: &Result<T, StoreError>) {
        match answer {
            Err(error) if !error.is_of_the_question() => {
                self.link.broken = true;
                self.link.failing = Some(error.clone());
                self.tell_once(now, error);
            }
            answered => {
                let longest = self.shared.config.timing.renew() * 3 / 2;
                let last = self.link.answered.replace(now);
                let broken = std::mem::take(&mut self.link.broken);
                if last.is_none_or(|last| broken && now.since(last) > longest) {
                    self.link.connected_since = Some(now);
                }
                if self.link.failing.take().is_some() {
                    self.link.told.clear();
                    self.shared.tell(Event::StoreRecovered);
                    self.inspection.again(now);
                }
                if let Err(error) = answered {
                    self.link.refused = Some(error.clone());
                    self.tell_once(now, error);
                }
            }
        }
    }

    /// Tells each error when it first comes, and once a minute while it lasts.
    fn tell_once(&mut self, now: Moment, error: &StoreError) {
        let error = crate::job::output::chain(error);
        self.link.told.retain(|_, at| now.since(*at) < TOLD);
        if self.link.told.len() < ERRORS && !self.link.told.contains_key(&error) {
            self.link.told.insert(error.clone(), now);
            self.shared.tell(Event::StoreFailed { error });
        }
    }
}

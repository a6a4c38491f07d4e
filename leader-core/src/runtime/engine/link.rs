//! Whether the store answers, and what it refuses.

use std::collections::BTreeMap;
use std::time::Duration;

use super::Engine;
use crate::clock::Moment;
use crate::event::Event;
use crate::store::StoreError;

/// How long a refusal is not told again.
const TOLD: Duration = Duration::from_secs(60);
/// How many different refusals are kept in mind.
const REFUSALS: usize = 64;

/// The state of the link.
#[derive(Default)]
pub(super) struct Link {
    /// Why the store does not answer.
    failing: Option<StoreError>,
    /// Since when it has answered without a break.
    pub(super) connected_since: Option<Moment>,
    /// The last refusal of one question.
    refused: Option<StoreError>,
    /// When each refusal was told.
    told: BTreeMap<String, Moment>,
}

impl Link {
    /// What keeps an instance from its start; whoever is enrolled is not kept by what was refused before.
    pub(super) fn fault(&self, enrolled: bool) -> Option<StoreError> {
        let refused = self.refused.as_ref().filter(|_| !enrolled);
        self.failing.as_ref().or(refused).cloned()
    }
}

impl Engine {
    /// Notes whether the store answers; a first failure and a recovery are told. A refusal of one question is an answer, and is
    /// told by itself.
    pub(super) fn heard<T>(&mut self, now: Moment, answer: &Result<T, StoreError>) {
        match answer {
            Err(error) if !error.is_of_the_question() => {
                self.link.connected_since = None;
                if self.link.failing.replace(error.clone()).is_none() {
                    let error = crate::job::output::chain(error);
                    self.shared.tell(Event::StoreFailed { error });
                }
            }
            answered => {
                self.link.connected_since.get_or_insert(now);
                if self.link.failing.take().is_some() {
                    self.shared.tell(Event::StoreRecovered);
                    self.inspection.again(now);
                }
                if let Err(error) = answered {
                    self.refused(now, error);
                }
            }
        }
    }

    fn refused(&mut self, now: Moment, error: &StoreError) {
        self.link.refused = Some(error.clone());
        let error = crate::job::output::chain(error);
        self.link.told.retain(|_, at| now.since(*at) < TOLD);
        if self.link.told.len() < REFUSALS && !self.link.told.contains_key(&error) {
            self.link.told.insert(error.clone(), now);
            self.shared.tell(Event::StoreFailed { error });
        }
    }
}

//! The end of an instance: what is led is given up, and then the roster line.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::requests::last_words;
use super::{Engine, Input};
use crate::clock::Moment;
use crate::job::output;
use crate::runtime::standing::Standing;
use crate::timing::Timing;

/// A stop under way.
pub(super) struct Stopping {
    pub(super) waiting: Vec<oneshot::Sender<()>>,
    pub(super) bound: Moment,
    pub(super) left: bool,
    pub(super) leaving: bool,
}

impl Stopping {
    /// One more waits for the same stop, which the earliest bound ends.
    pub(super) fn join(stopping: &mut Option<Self>, bound: Moment, done: oneshot::Sender<()>) {
        let stopping = stopping.get_or_insert_with(|| Self {
            waiting: Vec::new(),
            bound,
            left: false,
            leaving: false,
        });
        stopping.waiting.push(done);
        stopping.bound = stopping.bound.min(bound);
    }

    /// When the drain is over, and releases have what is left.
    pub(super) fn drained_by(&self, timing: Timing) -> Moment {
        self.bound - last_words(timing)
    }
}

impl Engine {
    pub(super) fn stopping_turn(&mut self, now: Moment) {
        let Some(stopping) = &mut self.stopping else {
            return;
        };
        let drained = now >= stopping.drained_by(self.shared.config.timing);
        if drained {
            // Those that may finish, too, while there is time to tell how they ended: nobody else would know before they had been silent.
            self.runs.end_all();
        }
        // The program's hooks are waited for as long as bodies are, and no lease is held for them.
        let hooks_over = drained || self.shared.hooks.are_idle();
        let companion = self.shared.config.companion.as_ref();
        let told = companion.is_none_or(|companion| companion.has_told() && (drained || companion.is_idle()));
        // A sign of life under way would come after the leave, and bring the line back.
        let quiet = hooks_over
            && told
            && self.groups.iter().all(|group| group.election.is_stopped())
            && self.runs.is_quiet()
            && self.roster.is_still();
        let over = now >= stopping.bound;
        if !(quiet || over) || stopping.leaving {
            return;
        }
        stopping.leaving = true;
        self.runs.end_all();
        let store = Arc::clone(&self.store);
        let holder = self.shared.config.holder.clone();
        self.ask(async move { store.leave(holder).await }, |_| Input::Left);
    }

    /// Shows where the instance stands.
    pub(super) fn show_standing(&self) {
        self.shared.show_standing(Standing {
            store: self.link.failing().map(|error| output::chain(error)),
            enrolled: self.roster.enrolled,
            wedged: self.watch.is_wedged(),
            leaving: self.stopping.is_some(),
        });
    }

    pub(super) fn stopping_wake(&self, now: Moment) -> Option<Moment> {
        let stopping = self.stopping.as_ref().filter(|stopping| !stopping.leaving)?;
        let drained_by = stopping.drained_by(self.shared.config.timing);
        Some(if now < drained_by { drained_by } else { stopping.bound })
    }

    pub(super) fn is_finished(&self) -> bool {
        self.stopping.as_ref().is_some_and(|stopping| stopping.left)
    }
}

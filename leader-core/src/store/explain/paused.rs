//! Which pause it was that kept a tick from running, or keeps it.

use jiff::Timestamp;

use super::{Fate, Question};
use crate::store::control::{Act, Deed, Gap, Pause};

impl Question<'_> {
    /// A tick that nobody has decided yet, and that a pause of its job holds or will have skipped.
    pub(super) fn held(&self, due: Timestamp, calendars: Vec<String>) -> Option<Fate> {
        // What is owed is not given up by another pause beside. Ticks from before a pause that skips are decided as ever.
        let holds = |pause: &&Pause| pause.gap == Gap::Owed && pause.until.is_none_or(|until| self.now < until);
        let owed: Vec<_> = self.known().filter(holds).cloned().collect();
        let skips = || self.known().filter(|pause| pause.skips(self.at)).cloned().collect();
        let pauses = if owed.is_empty() { skips() } else { owed };
        (!pauses.is_empty()).then_some(Fate::Held { due, pauses, calendars })
    }

    /// The pause that has skipped this tick, while the store knows of it: of several the one that began first.
    pub(super) fn pause_of(&self) -> Option<Pause> {
        let first = |pauses: &mut dyn Iterator<Item = Pause>| {
            let skips = pauses.filter(|pause| pause.skips(self.at));
            skips.min_by_key(|pause| (pause.since, pause.number))
        };
        // Those that are over long since are only left among the acts.
        first(&mut self.known().cloned()).or_else(|| first(&mut self.acts()))
    }

    /// The pauses of the job and of its group that the store keeps, over or not.
    fn known(&self) -> impl Iterator<Item = &Pause> {
        let all = self.control.pauses.iter().chain(&self.control.ended);
        all.filter(|pause| pause.concerns(self.job))
    }

    /// The same as the acts tell of them: each until it ended by itself, or until the next act on the same.
    fn acts(&self) -> impl Iterator<Item = Pause> {
        let pause = |act: &Act| {
            let Deed::Pause { gap, until } = act.deed else {
                return None;
            };
            let ends = |next: &&Act| {
                next.number > act.number
                    && next.job == act.job
                    && matches!(next.deed, Deed::Pause { .. } | Deed::Resume)
            };
            let next = self.control.acts.iter().filter(ends).min_by_key(|next| next.number);
            Some(Pause {
                number: act.number,
                job: act.job.clone(),
                gap,
                since: act.at,
                until: until.into_iter().chain(next.map(|next| next.at)).min(),
                by: act.by.clone(),
                reason: act.reason.clone(),
            })
        };
        let pauses = self.control.acts.iter().filter_map(pause);
        pauses.filter(|pause| pause.concerns(self.job))
    }
}

#[cfg(test)]
mod tests;

//! The trust in runs that need no leader: each has a small lease of its own, which its signs of life prolong.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::super::Engine;
use super::super::input::Group;
use super::RunId;
use crate::clock::Moment;
use crate::job::gate::{Gate, Lead};
use crate::job::outcome::Ran;
use crate::mutants::{Mutant, planted};
use crate::runtime::guarded::Ending;
use crate::store::{Beats, Replaced, UNLED};

/// The runs that are trusted.
#[derive(Default)]
pub(in super::super) struct Trusts(BTreeMap<RunId, Trust>);

struct Trust {
    /// Opened for the run's fence.
    gate: Arc<Gate>,
    until: Moment,
    /// The body was told to stop; for good, where it was not for time alone.
    told: bool,
    for_good: bool,
}

impl Trusts {
    /// Clears every trust.
    pub(in super::super) fn close_all(&self) {
        self.0.values().for_each(|trust| trust.gate.close());
    }

    pub(super) fn forget(&mut self, id: RunId) {
        self.0.remove(&id);
    }
}

impl Engine {
    /// What a new run's body may believe.
    pub(super) fn lead_of(&mut self, now: Moment, id: RunId, term: u64) -> Lead {
        let of_group = &self.groups[id.group].gate;
        if term != UNLED {
            let own = u64::try_from(self.shared.config.clock.wall().as_microsecond())
                .unwrap_or(0)
                .max(term + 1);
            let fence = if planted(Mutant::FenceFromTheClock) {
                own
            } else {
                id.fence
            };
            return Lead::new(Arc::clone(of_group), term, fence);
        }
        let gate = Arc::new(Gate::new(of_group.group().clone(), self.shared.config.clock.clone()));
        let end = self.unled_until(now);
        let until = if planted(Mutant::UnledForEver) {
            Moment::MAX
        } else {
            end
        };
        gate.open(id.fence, until);
        let trust = Trust {
            gate: Arc::clone(&gate),
            until,
            told: false,
            for_good: false,
        };
        self.runs.trusts.0.insert(id, trust);
        Lead::of_run(gate, id.fence)
    }

    pub(in super::super) fn trusts_wake(&self) -> Option<Moment> {
        let lead = self.shared.config.timing.cancel_lead();
        let next = |trust: &Trust| if trust.told { trust.until } else { trust.until - lead };
        self.runs.trusts.0.values().map(next).min()
    }

    /// Tells the bodies whose trust will end, and drops those whose trust has ended.
    pub(super) fn trusts_turn(&mut self, now: Moment) {
        if self.runs.trusts.0.is_empty() {
            return;
        }
        if self.watch.is_wedged()
            || self
                .stopping
                .as_ref()
                .is_some_and(|stopping| now >= stopping.drained_by(self.shared.config.timing))
        {
            self.end_unled_runs(None);
            return;
        }
        let lead = self.shared.config.timing.cancel_lead();
        let stopping = self.stopping.is_some();
        let mut over = Vec::new();
        for (id, trust) in &mut self.runs.trusts.0 {
            trust.for_good |= stopping || self.groups[id.group].draining.is_some();
            if now >= trust.until {
                over.push(*id);
            } else if !trust.told && (trust.for_good || now >= trust.until - lead) {
                trust.told = true;
                trust.gate.tell(id.fence);
            }
        }
        for id in over {
            self.end_trust(id);
        }
    }

    /// Ends the runs that need no leader, of one group or of all.
    pub(in super::super) fn end_unled_runs(&mut self, group: Option<Group>) {
        let of_group = |id: &&RunId| group.is_none_or(|group| id.group == group);
        let all: Vec<_> = self.runs.trusts.0.keys().filter(of_group).copied().collect();
        for id in all {
            self.end_trust(id);
        }
    }

    /// Trust in a run is over. One that has not begun never will.
    fn end_trust(&mut self, id: RunId) {
        let Some(trust) = self.runs.trusts.0.remove(&id) else {
            return;
        };
        trust.gate.close();
        trust.gate.tell(id.fence);
        let Some(run) = self.runs.running.get(&id) else { return };
        if run.control.forbid() {
            self.run_ended(id, Ending::of(Ran::NotStarted));
        } else {
            run.control.end(Ran::Cancelled);
        }
    }

    /// Signs of life were sent: the trust in the runs whose were taken counts from before that. Of those that are somebody else's by now
    /// it is over at once.
    pub(in super::super) fn beaten(&mut self, now: Moment, sent: Moment, beaten: &[(Beats, bool)], gone: &[Replaced]) {
        if self.runs.trusts.0.is_empty() {
            return;
        }
        for Replaced { group, fence } in gone {
            if let Some(group) = self.index_of(group.as_str()) {
                self.end_trust(RunId { group, fence: *fence });
            }
        }
        let timing = self.shared.config.timing;
        let until = sent + timing.trust();
        for (beats, taken) in beaten {
            let Some(group) = self.index_of(beats.group.as_str()) else {
                continue;
            };
            for fence in &beats.fences {
                let Some(trust) = self.runs.trusts.0.get_mut(&RunId { group, fence: *fence }) else {
                    continue;
                };
                if !taken {
                    // While trust lasts.
                    let again = now + timing.retry();
                    self.runs.beat_at = Some(self.runs.beat_at.map_or(again, |at| at.min(again)));
                } else if now < trust.until && until > trust.until {
                    trust.until = until;
                    trust.gate.extend(until);
                    if !trust.for_good && std::mem::take(&mut trust.told) {
                        trust.gate.untell(*fence);
                    }
                }
            }
        }
    }
}

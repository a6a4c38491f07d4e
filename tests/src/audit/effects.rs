//! What a fenced register was asked to take.

use std::collections::BTreeMap;

use super::Audit;

/// One write, in the order in which the register had them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effect {
    /// When.
    pub at: u64,
    /// Where.
    pub key: String,
    /// By which fence.
    pub fence: u64,
    /// By whom.
    pub life: String,
    /// Whether it was taken.
    pub taken: bool,
}

/// The highest fence of each place, by what was told before.
#[derive(Debug, Default)]
pub(super) struct Register(BTreeMap<String, (u64, u64)>);

impl Audit {
    /// What was taken never goes back, and nobody is refused but for somebody with a higher fence.
    pub(super) fn judge_effects(&mut self, effects: Vec<Effect>) {
        self.counts.checks += 2;
        for effect in effects {
            self.counts.effects[usize::from(!effect.taken)] += 1;
            let highest = self.register.0.get(&effect.key).map_or(0, |(fence, _)| *fence);
            if effect.taken && effect.fence < highest {
                let text = format!("taken though {highest} was there: {effect:?}");
                self.find("effects never go back", effect.at, text);
            }
            if !effect.taken && effect.fence >= highest {
                let text = format!("refused though the highest was {highest}: {effect:?}");
                self.find("nobody is refused without reason", effect.at, text);
            }
            let (fence, at) = (effect.fence.max(highest), effect.at);
            self.register.0.insert(effect.key, (fence, at));
        }
        // A place of a single tick is written to for some seconds.
        let newest = self.register.0.values().map(|(_, at)| *at).max().unwrap_or(0);
        self.register
            .0
            .retain(|_, (_, at)| *at > newest.saturating_sub(super::MEMORY));
    }
}

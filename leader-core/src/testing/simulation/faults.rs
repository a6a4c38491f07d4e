//! How often what happens to a fleet.

use std::collections::BTreeMap;
use std::time::Duration;

use super::dice::Dice;
use super::fault::{Fault, FaultKind};

/// How often each kind of fault happens, and how fast and right the clocks are.
///
/// ```
/// use leader_core::testing::{FaultKind, Faults};
///
/// // What a fleet goes through in a bad week, every day; and no crash ever.
/// let faults = Faults::realistic().times(7.0).without(FaultKind::Crash);
/// ```
#[derive(Clone, Debug)]
#[must_use = "it is given to `Simulation::faults`"]
pub struct Faults {
    /// An hour, of each instance or of the store.
    pub(super) per_hour: BTreeMap<FaultKind, f64>,
    /// The most that a clock drifts, in parts per million.
    pub(super) drift: u64,
    /// The most that a wall clock is wrong, in milliseconds.
    pub(super) wrong: u64,
    /// Whether the wall clock of a minority may be wrong by up to a day.
    pub(super) far_off: bool,
    /// The most that a message takes when nothing is wrong, in milliseconds.
    pub(super) latency: u64,
    /// Whether each seed has rates of its own, some of them 0 and some much higher.
    pub(super) swarm: bool,
    /// How long what lasts may last.
    pub(super) longest: Duration,
}

impl Faults {
    /// Nothing goes wrong, and nothing takes any time.
    pub fn none() -> Self {
        Self {
            per_hour: BTreeMap::new(),
            drift: 0,
            wrong: 0,
            far_off: false,
            latency: 0,
            swarm: false,
            longest: Duration::from_secs(30),
        }
    }

    /// What a fleet in an ordinary data centre goes through: each instance is restarted once a day and crashes once a week, machines
    /// pause and links fail now and then, and the store is restarted once in a fortnight. It forgets nothing.
    pub fn realistic() -> Self {
        let day = 1.0 / 24.0;
        let kinds = [
            (FaultKind::Delay, day),
            (FaultKind::LostRequest, day / 2.0),
            (FaultKind::LostReply, day / 2.0),
            (FaultKind::LateRequest, day / 7.0),
            (FaultKind::CutOut, day / 7.0),
            (FaultKind::CutIn, day / 7.0),
            (FaultKind::Held, day / 7.0),
            (FaultKind::Refused, day / 7.0),
            (FaultKind::Pause, day),
            (FaultKind::Crash, day / 7.0),
            (FaultKind::Restart, day),
            (FaultKind::WallStep, day / 30.0),
            (FaultKind::StoreStall, day / 2.0),
            (FaultKind::StoreRestart, day / 14.0),
        ];
        Self {
            per_hour: kinds.into(),
            drift: 100,
            wrong: 500,
            latency: 2,
            ..Self::none()
        }
    }

    /// Everything at once that the promises cover, hundreds of times an hour, and clocks that drift by a hundredth; each seed in a
    /// proportion of its own, because what is rare in the average is never seen (swarm testing: Groce et al., 2012).
    pub fn fierce() -> Self {
        let kinds = [
            (FaultKind::Delay, 4.0),
            (FaultKind::LostRequest, 4.0),
            (FaultKind::LostReply, 4.0),
            (FaultKind::LateRequest, 4.0),
            (FaultKind::CutOut, 3.0),
            (FaultKind::CutIn, 3.0),
            (FaultKind::Held, 3.0),
            (FaultKind::Refused, 3.0),
            (FaultKind::Pause, 8.0),
            (FaultKind::Crash, 4.0),
            (FaultKind::Restart, 3.0),
            (FaultKind::Panic, 1.0),
            (FaultKind::WallStep, 1.0),
            (FaultKind::StepDown, 4.0),
            (FaultKind::StoreStall, 3.0),
            (FaultKind::StoreRestart, 1.0),
            (FaultKind::StoreFull, 0.5),
            (FaultKind::StoreReadOnly, 0.5),
        ];
        Self {
            per_hour: kinds.into(),
            drift: 10_000,
            wrong: 2_000,
            far_off: true,
            latency: 3,
            swarm: true,
            longest: Duration::from_secs(30),
        }
    }

    /// So often an hour: of each instance, or of the store.
    ///
    /// # Panics
    /// When that is no number from 0 on.
    pub fn with(mut self, kind: FaultKind, per_hour: f64) -> Self {
        assert!(
            per_hour.is_finite() && per_hour >= 0.0,
            "{kind}: {per_hour} times an hour: give a finite number from 0 on"
        );
        self.per_hour.insert(kind, per_hour);
        self
    }

    /// Never.
    pub fn without(mut self, kind: FaultKind) -> Self {
        self.per_hour.remove(&kind);
        self
    }

    /// Every kind so many times as often.
    ///
    /// # Panics
    /// When that is no number from 0 on.
    pub fn times(mut self, factor: f64) -> Self {
        assert!(
            factor.is_finite() && factor >= 0.0,
            "{factor} times as often: give a finite number from 0 on"
        );
        self.per_hour.values_mut().for_each(|per_hour| *per_hour *= factor);
        self
    }

    /// What lasts lasts no longer than this; 30 s unless given, and most a sixth of it. A wall clock may be wrong ten times as long.
    pub fn up_to(self, longest: Duration) -> Self {
        Self { longest, ..self }
    }

    /// The store forgets as well: restarts without data or with old data, fail-over to a replica that lags, two masters, leaps of its clock.
    /// Then only terms and fences are promised to rise, as long as somebody remembers.
    pub fn and_loss(mut self, per_hour: f64) -> Self {
        for kind in FaultKind::ALL.into_iter().filter(|kind| kind.is_forgetful()) {
            self = self.with(kind, per_hour);
        }
        self
    }

    /// What happens in such a span to so many instances.
    pub(super) fn plan(&self, span: Duration, instances: usize, dice: &Dice) -> Vec<Fault> {
        let mut plan = Vec::new();
        for (kind, per_hour) in &self.per_hour {
            let mut dice = dice.fork(*kind as u64);
            let mut per_hour = *per_hour;
            if self.swarm {
                per_hour *= [0.0, 0.0, 0.3, 1.0, 1.0, 2.0, 4.0][usize::try_from(dice.below(7)).unwrap_or(0)];
            }
            if per_hour <= 0.0 {
                continue;
            }
            let places = if kind.is_of_the_store() { 1 } else { instances };
            for instance in 0..places {
                let mut at = dice.pause(per_hour);
                while at < span {
                    plan.push(self.fault(*kind, at, instance, instances, &mut dice));
                    at = at.saturating_add(dice.pause(per_hour));
                }
            }
        }
        plan.sort_by_key(|fault| (fault.at, fault.kind, fault.instance));
        plan
    }

    fn fault(&self, kind: FaultKind, at: Duration, instance: usize, instances: usize, dice: &mut Dice) -> Fault {
        let ms = Duration::from_millis;
        // Most are short, and some are as long as may be.
        let longest = if dice.per_mille(300) {
            self.longest
        } else {
            self.longest / 6
        };
        let lasts = dice.span(ms(20), longest);
        let (lasts, strength) = match kind {
            FaultKind::Delay => (lasts, 20 + dice.below(4_000)),
            FaultKind::LostRequest | FaultKind::LostReply | FaultKind::LateRequest => (lasts, 100 + dice.below(900)),
            FaultKind::WallStep => (10 * lasts, 1 + dice.below(120_000)),
            FaultKind::StoreClock => (Duration::ZERO, 1 + dice.below(120_000)),
            // As much as a file that is synced each second may lack.
            FaultKind::StoreRollback | FaultKind::FailOver => (lasts.min(ms(3_000)), 1 + dice.below(1_900)),
            FaultKind::TwoMasters => (lasts.min(ms(10_000)), 1 + dice.below(2_000)),
            // Which part.
            FaultKind::StoreLoses => (Duration::ZERO, dice.below(1_000)),
            FaultKind::Panic | FaultKind::StepDown | FaultKind::StoreFlushed => (Duration::ZERO, 0),
            _ => (lasts, 0),
        };
        let back = matches!(kind, FaultKind::WallStep | FaultKind::StoreClock) && dice.per_mille(500);
        let strength = i64::try_from(strength).unwrap_or(0) * if back { -1 } else { 1 };
        let instance = if kind.is_forgetful() {
            usize::try_from(dice.below(instances as u64)).unwrap_or(0)
        } else {
            instance
        };
        Fault {
            at,
            kind,
            instance,
            lasts,
            strength,
        }
    }
}

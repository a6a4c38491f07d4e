//! Whether the store's clock may decide ticks: not while most of a fleet's wall clocks say that it is wrong.
//!
//! One clock that is wrong by hours is an instance's own affair, and so are two that are wrong in different ways. But when most
//! instances are as far from the store as each other, the store is what they differ from; only a person can know better.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::planning::PlanningClock;
use crate::clock::Moment;

/// What two clocks may differ by and still agree.
const LIMIT: SignedDuration = SignedDuration::from_secs(5);
/// How much closer two that disagreed must come to agree again: a clock near the limit would change its mind with every look.
const CLOSER: SignedDuration = SignedDuration::from_secs(1);

/// A fleet that disagrees with the store's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dispute {
    /// How far the instances' wall clocks are ahead of the store's: the median of those that disagree alike.
    pub by: SignedDuration,
    /// How many those are.
    pub instances: usize,
    /// Of how many whose offset is known.
    pub of: usize,
}

/// What a judgement has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// No tick may be claimed from now on.
    Disputed(Dispute),
    /// Ticks go on.
    Agreed,
}

/// Whether a wall clock disagrees with the store's.
fn disagrees(offset: SignedDuration) -> bool {
    is_beyond(offset, LIMIT)
}

fn is_beyond(offset: SignedDuration, limit: SignedDuration) -> bool {
    offset.unsigned_abs() > limit.unsigned_abs()
}

/// Judges by the offsets of a fleet's wall clocks to the store's.
///
/// A dispute begins when more than half of them, and at least two, disagree alike. It ends when no more than half disagree in any
/// way, and are as much closer as makes one agree again: not by losing instances, nor because the wrong clocks part.
#[must_use]
pub fn judge(offsets: &[SignedDuration], before: Option<Dispute>) -> Option<Dispute> {
    let of = offsets.len();
    let mut wrong: Vec<_> = offsets.iter().copied().filter(|offset| disagrees(*offset)).collect();
    wrong.sort_unstable();
    // The largest number of those that lie within the limit of each other.
    let alike = |first: usize| {
        let near = |other: &&SignedDuration| other.saturating_sub(wrong[first]) <= LIMIT;
        &wrong[first..first + wrong[first..].iter().take_while(near).count()]
    };
    let alike = (0..wrong.len())
        .map(alike)
        .max_by_key(|alike| alike.len())
        .unwrap_or(&[]);
    if alike.len() >= 2 && 2 * alike.len() > of {
        return Some(Dispute {
            by: alike[alike.len() / 2],
            instances: alike.len(),
            of,
        });
    }
    let not_closer = offsets.iter().filter(|offset| is_beyond(**offset, LIMIT - CLOSER));
    before.filter(|_| 2 * not_closer.count() > of)
}

/// What one instance knows of it.
#[derive(Debug)]
pub struct Skew {
    /// The operator's word that the store's clock is right.
    follow_store: bool,
    /// How long a fleet may take to measure a step, and to say so.
    patience: Duration,
    own: Option<SignedDuration>,
    astray: bool,
    /// A leap of the planning clock that our own wall clock speaks against waits until then, and for what the fleet says.
    held_until: Option<Moment>,
    dispute: Option<Dispute>,
}

impl Skew {
    /// For an instance whose fleet shows a sign of life twice in `patience`.
    #[must_use]
    pub fn new(follow_store: bool, patience: Duration) -> Self {
        Self {
            follow_store,
            patience,
            own: None,
            astray: false,
            held_until: None,
            dispute: None,
        }
    }

    /// The slowest of the fleet shows two signs of life in so long.
    pub fn be_patient_for(&mut self, patience: Duration) {
        self.patience = patience;
    }

    /// The clock has taken a sample; `step`: and believed a step by that, or its first time.
    ///
    /// A leap that our own wall clock confirms is made at once. Another one waits: it would settle the ticks in between, and a
    /// cursor in the future cannot be taken back.
    pub fn sampled(&mut self, now: Moment, wall: Timestamp, step: bool, clock: &mut PlanningClock) {
        self.own = clock.offset_of(wall, now).map(|offset| offset.by);
        let limit = if self.astray { LIMIT - CLOSER } else { LIMIT };
        self.astray = self.own.is_some_and(|own| is_beyond(own, limit));
        if !clock.waits() {
            self.held_until = None;
        } else if self.disagrees() && !self.follow_store {
            if step || self.held_until.is_none() {
                self.held_until = Some(now + self.patience);
            }
        } else if self.dispute.is_none() {
            self.held_until = None;
            clock.follow(now);
        }
    }

    /// The fleet has been asked: the offsets of the other instances, as they last said.
    pub fn judged(&mut self, now: Moment, others: &[SignedDuration], clock: &mut PlanningClock) -> Option<Change> {
        // Whoever is about to believe a step would judge by an offset that is about to change.
        if self.follow_store || clock.suspects() {
            return None;
        }
        let offsets: Vec<_> = self.own.into_iter().chain(others.iter().copied()).collect();
        let before = self.dispute;
        self.dispute = judge(&offsets, before);
        if let Some(dispute) = self.dispute {
            return before.is_none().then_some(Change::Disputed(dispute));
        }
        // Whoever has just come learns from the others. After a step they may not have seen it yet.
        let wrong = offsets.iter().filter(|offset| disagrees(**offset)).count();
        let vouched_for = !clock.has_followed() && !others.is_empty() && 2 * wrong <= offsets.len();
        if before.is_some() && self.disagrees() && clock.waits() {
            // The others may have seen sooner that the store's clock was mended, and there is no leap to make any more.
            self.held_until = Some(now + self.patience);
        } else if before.is_some() || vouched_for || self.held_until.is_some_and(|until| now >= until) {
            self.held_until = None;
            clock.follow(now);
        }
        before.map(|_| Change::Agreed)
    }

    /// Whether our own wall clock disagrees with the store's.
    #[must_use]
    pub fn disagrees(&self) -> bool {
        self.astray
    }

    /// What the fleet disagrees with the store about.
    #[must_use]
    pub fn dispute(&self) -> Option<Dispute> {
        self.dispute
    }

    /// Whether no tick may be claimed.
    #[must_use]
    pub fn holds(&self, clock: &PlanningClock) -> bool {
        self.dispute.is_some() || !clock.has_followed() || clock.waits()
    }

    /// Whether the fleet is to be asked again and again.
    #[must_use]
    pub fn asks(&self) -> bool {
        !self.follow_store && (self.disagrees() || self.dispute.is_some() || self.held_until.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(offsets: &[i64]) -> Vec<SignedDuration> {
        offsets.iter().copied().map(SignedDuration::from_secs).collect()
    }

    #[test]
    fn most_of_a_fleet_must_disagree_alike() {
        for (offsets, expected) in [
            (&[][..], None),
            // Nobody can tell whose clock it is.
            (&[3600], None),
            (&[3600, 0], None),
            (&[3600, 3600], Some((3600, 2, 2))),
            (&[3600, 3600, 0], Some((3600, 2, 3))),
            (&[3600, 3600, 0, 0], None),
            // Wrong in different ways.
            (&[3600, -3600], None),
            (&[3600, -3600, 0], None),
            (&[3600, 7200, -60, 10], None),
            // One stranger more changes nothing.
            (&[3600, 3601, 3602, -7200, 0], Some((3601, 3, 5))),
            // What may still agree.
            (&[5, -5, 5, 5], None),
            (&[-6, -6], Some((-6, 2, 2))),
            (&[6, 11, 0], Some((11, 2, 3))),
            (&[6, 12, 0], None),
            (&[6, 12, 18, 14], None),
            (&[12, 13, 18, 14], Some((14, 3, 4))),
        ] {
            let judged = judge(&seconds(offsets), None);
            let shown = judged.map(|dispute| (dispute.by.as_secs(), dispute.instances, dispute.of));
            assert_eq!(shown, expected, "{offsets:?}");
        }
    }

    #[test]
    fn a_dispute_ends_when_they_agree_and_not_before() {
        let before = judge(&seconds(&[3600, 3600, 3600]), None);
        for (offsets, goes_on) in [
            (&[3600, 3600, 3600][..], true),
            // Instances left, or were set to different times.
            (&[3600], true),
            (&[3600, 60, -60], true),
            (&[3600, 3600, 0], true),
            (&[3600, 0], false),
            (&[3600, 0, 0], false),
            (&[0], false),
            (&[], false),
        ] {
            assert_eq!(judge(&seconds(offsets), before).is_some(), goes_on, "{offsets:?}");
        }
    }

    /// Their owners tell of a crossing only when they are as close again: whoever hears of nothing else would never look.
    #[test]
    fn clocks_near_the_limit_end_no_dispute() {
        let millis = |offsets: &[i64]| -> Vec<_> { offsets.iter().copied().map(SignedDuration::from_millis).collect() };
        let before = judge(&millis(&[5_100, 5_200, 0]), None);
        assert!(before.is_some());
        for (offsets, goes_on) in [
            ([4_900, 5_100, 0], true),
            ([4_900, 4_900, 0], true),
            ([4_100, 4_001, 0], true),
            ([-4_100, 4_001, 0], true),
            ([4_100, 4_000, 0], false),
        ] {
            assert_eq!(judge(&millis(&offsets), before).is_some(), goes_on, "{offsets:?}");
            assert_eq!(judge(&millis(&offsets), None), None, "none begins by {offsets:?}");
        }
    }

    #[test]
    fn extreme_offsets_overflow_nothing() {
        let offsets = [SignedDuration::MIN, SignedDuration::MAX, SignedDuration::MAX];
        assert_eq!(judge(&offsets, None).map(|dispute| dispute.instances), Some(2));
    }

    const TTL: Duration = Duration::from_secs(10);

    fn moment(seconds: u64) -> Moment {
        Moment::from_nanos((1000 + seconds) * 1_000_000_000)
    }

    /// Noon, and so many seconds.
    fn noon(seconds: i64) -> Timestamp {
        let noon: Timestamp = "2026-03-02T12:00:00Z".parse().unwrap();
        noon + SignedDuration::from_secs(seconds)
    }

    /// An instance whose wall clock is right, on a store that is ahead by this.
    struct Instance {
        clock: PlanningClock,
        skew: Skew,
    }

    impl Instance {
        fn new(follow_store: bool) -> Self {
            Self {
                clock: PlanningClock::new(noon(0), moment(0)),
                skew: Skew::new(follow_store, TTL),
            }
        }

        fn sample(&mut self, at: u64, ahead: i64) {
            let passed = i64::try_from(at).unwrap();
            let step = self.clock.sample(moment(at), moment(at), noon(passed + ahead));
            self.skew.sampled(moment(at), noon(passed), step, &mut self.clock);
        }

        fn judged(&mut self, at: u64, others: &[i64]) -> Option<Change> {
            self.skew.judged(moment(at), &seconds(others), &mut self.clock)
        }

        fn shows(&self, at: u64) -> i64 {
            let passed = i64::try_from(at).unwrap();
            self.clock.at(moment(at)).duration_since(noon(passed)).as_secs()
        }

        fn holds(&self) -> bool {
            self.skew.holds(&self.clock)
        }
    }

    #[test]
    fn nothing_is_held_where_the_clocks_agree() {
        let mut instance = Instance::new(false);
        assert!(instance.holds(), "nothing is known yet");
        instance.sample(0, 3);
        assert!(!instance.holds() && !instance.skew.asks());
        assert_eq!(instance.shows(0), 3);
        assert_eq!(instance.judged(1, &[0, 0]), None);
        // An instance whose own pause it was is confirmed by its wall clock.
        let mut slept = Instance::new(false);
        slept.sample(0, -60);
        slept.judged(1, &[0]);
        for at in [1, 2, 3] {
            slept.sample(at, 0);
        }
        assert_eq!(slept.shows(3), 0);
        assert!(!slept.holds());
    }

    #[test]
    fn a_leap_that_our_own_clock_speaks_against_waits_for_the_fleet() {
        let leap = |instance: &mut Instance| {
            instance.sample(0, 0);
            for at in [1, 2, 3] {
                assert!(!instance.holds());
                instance.sample(at, 3600);
            }
            assert!(instance.holds() && instance.skew.asks());
            assert_eq!(instance.shows(3), 0);
        };
        // A fleet that has not measured the step yet says nothing against it, and nothing for it either.
        let mut wrong = Instance::new(false);
        leap(&mut wrong);
        assert_eq!(wrong.judged(4, &[0, 0]), None);
        assert!(wrong.holds());
        let disputed = wrong.judged(6, &[-3600, 0]).unwrap();
        assert!(matches!(disputed, Change::Disputed(dispute) if dispute.by.as_secs() == -3600));
        assert_eq!(wrong.judged(60, &[-3600, -3600]), None);
        assert_eq!(wrong.shows(60), 0, "nothing has been settled");
        // The store's clock is mended, and nothing was lost but the time.
        for at in [61, 62, 63] {
            wrong.sample(at, 0);
        }
        assert_eq!(wrong.judged(64, &[0, 0]), Some(Change::Agreed));
        assert!(!wrong.holds());
        assert_eq!(wrong.shows(64), 0);

        // It was the instance's own clock: after a while the leap is made.
        let mut own = Instance::new(false);
        leap(&mut own);
        own.judged(13, &[0, 0]);
        assert_eq!((own.holds(), own.shows(13)), (false, 3600));
        // Those of the others may be mended, too.
        let mut others = Instance::new(false);
        leap(&mut others);
        others.judged(6, &[-3600, -3600]);
        assert_eq!(others.judged(7, &[0, 0]), Some(Change::Agreed));
        assert_eq!((others.holds(), others.shows(7)), (true, 0));
        others.judged(17, &[0, 0]);
        assert_eq!((others.holds(), others.shows(17)), (false, 3600));
        // Or the store's, which the others have seen before this one.
        for seen in [0, 1, 2] {
            let mut last = Instance::new(false);
            leap(&mut last);
            last.judged(6, &[-3600, -3600]);
            (0..seen).for_each(|at| last.sample(7 + at, 0));
            last.judged(9, &[0, 0]);
            assert!(last.holds() && last.skew.asks());
            (seen..3).for_each(|at| last.sample(10 + at, 0));
            last.judged(13, &[0, 0]);
            assert_eq!((last.holds(), last.shows(13)), (false, 0), "after {seen} looks");
        }
    }

    #[test]
    fn a_clock_near_the_limit_does_not_waver() {
        let mut instance = Instance::new(false);
        let wavered = [(0, 4), (1, 6), (2, 5), (3, 6), (4, 5), (5, 3), (6, 4)].map(|(at, ahead)| {
            instance.sample(at, ahead);
            instance.skew.disagrees()
        });
        assert_eq!(wavered, [false, true, true, true, true, false, false]);
    }

    #[test]
    fn the_operators_word_ends_every_doubt() {
        let mut instance = Instance::new(true);
        instance.sample(0, 0);
        for at in [1, 2, 3] {
            instance.sample(at, 3600);
        }
        assert_eq!(instance.shows(3), 3600);
        assert_eq!(instance.judged(4, &[-3600, -3600]), None);
        assert!(!instance.holds() && !instance.skew.asks());
    }

    #[test]
    fn a_newcomer_with_a_wrong_clock_asks_the_others() {
        let mut alone = Instance::new(false);
        alone.sample(0, -3600);
        alone.judged(1, &[]);
        assert!(alone.holds(), "somebody may come and say the same");
        alone.judged(10, &[]);
        assert_eq!((alone.holds(), alone.shows(10)), (false, -3600));
        let mut third = Instance::new(false);
        third.sample(0, -3600);
        third.judged(1, &[0, 0]);
        assert_eq!((third.holds(), third.shows(1)), (false, -3600));
        let mut believer = Instance::new(false);
        believer.sample(0, -3600);
        assert!(matches!(believer.judged(1, &[3600, 0]), Some(Change::Disputed(_))));
        assert!(believer.holds());
    }
}

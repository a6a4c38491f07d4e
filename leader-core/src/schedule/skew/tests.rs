//! Whose clock is right, by tables.

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

#[test]
fn a_newcomer_is_vouched_for_by_half_of_the_fleet() {
    // Itself and another: one of two is right.
    let mut second = Instance::new(false);
    second.sample(0, -3600);
    second.judged(1, &[0]);
    assert_eq!((second.holds(), second.shows(1)), (false, -3600));
    // Both are wrong, each in its own way: neither knows anything.
    let mut lost = Instance::new(false);
    lost.sample(0, -3600);
    assert_eq!(lost.judged(1, &[7200]), None);
    assert!(lost.holds());
}

#[test]
fn every_step_begins_the_wait_for_the_fleet_anew() {
    let mut instance = Instance::new(false);
    instance.sample(0, 0);
    for at in [1, 2, 3] {
        instance.sample(at, 3600);
    }
    for at in [10, 11, 12] {
        instance.sample(at, 7200);
    }
    instance.judged(21, &[0, 0]);
    assert!(instance.holds(), "the second step is nine seconds old");
    instance.judged(22, &[0, 0]);
    assert_eq!((instance.holds(), instance.shows(22)), (false, 7200));
}

#[test]
fn after_a_dispute_a_leap_waits_as_after_a_step() {
    let mut instance = Instance::new(false);
    instance.sample(0, 0);
    for at in [1, 2, 3] {
        instance.sample(at, 3600);
    }
    instance.judged(6, &[-3600, -3600]);
    assert_eq!(instance.judged(7, &[0, 0]), Some(Change::Agreed));
    instance.judged(16, &[0, 0]);
    assert!(instance.holds() && instance.skew.asks());
    instance.judged(17, &[0, 0]);
    assert!(!instance.holds());
}

/// Whoever disagrees or disputes looks again: nobody else tells when that is over.
#[test]
fn each_doubt_alone_asks_the_fleet() {
    // Its own clock is wrong, and the others have vouched for the store's.
    let mut own = Instance::new(false);
    own.sample(0, -3600);
    own.judged(1, &[0, 0]);
    assert!(own.skew.disagrees() && own.skew.dispute().is_none() && !own.holds());
    assert!(own.skew.asks());
    // Its own clock is right, and most of the fleet says that the store's is not.
    let mut fleet = Instance::new(false);
    fleet.sample(0, 0);
    assert!(!fleet.skew.asks());
    assert!(matches!(fleet.judged(1, &[3600, 3600]), Some(Change::Disputed(_))));
    let dispute = fleet
        .skew
        .dispute()
        .map(|dispute| (dispute.by.as_secs(), dispute.instances, dispute.of));
    assert_eq!(dispute, Some((3600, 2, 3)));
    assert!(!fleet.skew.disagrees() && fleet.skew.asks());
}

/// A leap that only our own wall clock speaks against waits for as long as the slowest of the fleet takes to say something.
#[test]
fn a_leap_is_held_for_as_long_as_the_fleet_needs() {
    let wall: Timestamp = "2026-03-02T12:00:00Z".parse().unwrap();
    let at = |seconds: u64| Moment::from_nanos(seconds * 1_000_000_000);
    let mut clock = PlanningClock::new(wall, at(100));
    let mut skew = Skew::new(false, Duration::from_secs(10));
    skew.be_patient_for(Duration::from_secs(60));
    let step = clock.sample(at(100), at(100), wall + SignedDuration::from_hours(1));
    skew.sampled(at(100), wall, step, &mut clock);
    for (second, follows) in [(110, false), (159, false), (160, true)] {
        skew.judged(at(second), &[], &mut clock);
        assert_eq!(clock.has_followed(), follows, "{second}");
    }
}

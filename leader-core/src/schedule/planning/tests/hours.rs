//! Hours of ticks in virtual time: a leader whose clocks are wrong in every way, and a store whose clock decides.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use super::*;
use crate::schedule::Schedule;
use crate::schedule::planner::{Planner, Rule, Step, StepKind};
use crate::schedule::skew::Skew;

const SECOND: i64 = 1_000_000_000;
const HOUR: i64 = 3_600 * SECOND;
const RENEW: Duration = Duration::from_millis(2_500);
const TTL: Duration = Duration::from_secs(10);
/// How long the step of a clock is unknown to whoever looks at it once in a renewal interval: three looks, a long way each.
const UNKNOWN: i64 = 9 * SECOND;
/// A clock that is only slewed never gains so much at once.
const STEP_SEEN: SignedDuration = SignedDuration::from_secs(1);
/// A job each second, and one each minute.
const JOBS: [&str; 2] = ["1s", "1m"];

/// Numbers that only look like chance (xorshift: Marsaglia, 2003).
struct Chance(u64);

impl Chance {
    fn new(seed: u64) -> Self {
        Self((seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    fn below(&mut self, bound: i64) -> i64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        i64::try_from(self.0 >> 2).unwrap() % bound
    }
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    Renew,
    Asked(Moment),
    Sampled(Moment, Timestamp),
    RosterRead,
    Claimed(usize, Vec<Claim>),
    Answered(usize, Vec<Claim>, Timestamp),
    RunEnded(usize),
    WallStepped(i64),
    StoreStepped(i64),
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Claim {
    tick: Timestamp,
    cursor: Timestamp,
    /// The first of those before it that do not run.
    passed: Option<Timestamp>,
    kind: u8,
}

const RUN: u8 = 0;
const OWED: u8 = 1;
const SETTLE: u8 = 2;

impl From<Step> for Claim {
    fn from(step: Step) -> Self {
        Self {
            tick: step.tick,
            cursor: step.cursor,
            passed: step.passed.first().map(|passed| passed.first),
            kind: match step.kind {
                StepKind::Run => RUN,
                StepKind::Owed => OWED,
                StepKind::Settle => SETTLE,
                StepKind::Waited | StepKind::Adopt => unreachable!("nothing waits here, or changes"),
            },
        }
    }
}

/// One leader and its store. Time is the world's, in nanoseconds.
struct World {
    chance: Chance,
    now: i64,
    events: BinaryHeap<Reverse<(i64, u64, What)>>,
    last: u64,
    /// What the leader's monotonic clock is off, in parts per million.
    rate: i64,
    wall_ahead: i64,
    /// The store.
    store_ahead: i64,
    stepped_at: Option<i64>,
    cursors: [Timestamp; 2],
    /// What became of each tick: the number of times that it ran, or was passed over.
    outcomes: [BTreeMap<Timestamp, (u32, u32)>; 2],
    /// The leader.
    clock: PlanningClock,
    skew: Skew,
    planner: Planner,
    shown: Option<Timestamp>,
    looked_at: i64,
    /// When no tick was decided, by what the clock showed.
    holds: Vec<(Timestamp, Option<Timestamp>)>,
    early: i64,
    late: i64,
    /// How much of its bound the clock has used up, in percent.
    used: i64,
}

impl World {
    fn new(seed: u64, rate: i64) -> Self {
        let mut chance = Chance::new(seed);
        let wall_ahead = (chance.below(3) - 1) * 2 * HOUR;
        let mut planner = Planner::default();
        for (job, every) in JOBS.into_iter().enumerate() {
            let rule = Rule::new(Schedule::every(every).unwrap());
            planner.begin(job, rule, noon(0), None, noon(0));
        }
        let mut world = Self {
            chance,
            now: 0,
            events: BinaryHeap::new(),
            last: 0,
            rate,
            wall_ahead,
            store_ahead: 0,
            stepped_at: None,
            cursors: [noon(0); 2],
            outcomes: Default::default(),
            clock: PlanningClock::new(noon(0) + SignedDuration::from_nanos(wall_ahead), moment(0)),
            skew: Skew::new(false, TTL),
            planner,
            shown: None,
            looked_at: 0,
            holds: Vec::new(),
            early: 0,
            late: 0,
            used: 0,
        };
        // The others are there already, and their clocks are right.
        let step = world.clock.sample(moment(0), moment(0), noon(0));
        world.skew.sampled(moment(0), world.wall(), step, &mut world.clock);
        world
            .skew
            .judged(moment(0), &[SignedDuration::ZERO; 2], &mut world.clock);
        assert!(!world.skew.holds(&world.clock));
        world.at(0, What::Renew);
        world.at(0, What::RosterRead);
        world
    }

    fn at(&mut self, passes: i64, what: What) {
        self.last += 1;
        self.events.push(Reverse((self.now + passes, self.last, what)));
    }

    fn monotonic(&self) -> Moment {
        let passed = i128::from(self.now) * i128::from(1_000_000 + self.rate) / 1_000_000;
        moment(0) + Duration::from_nanos(u64::try_from(passed).unwrap())
    }

    fn store(&self) -> Timestamp {
        noon(0) + SignedDuration::from_nanos(self.now + self.store_ahead)
    }

    fn wall(&self) -> Timestamp {
        noon(0) + SignedDuration::from_nanos(self.now + self.wall_ahead)
    }

    /// One way of a round trip: up to 200 ms, and on some days one way takes most of it.
    fn way(&mut self, there: bool) -> i64 {
        let slow = (self.now / (600 * SECOND)) % 3;
        let most = match (slow, there) {
            (1, true) | (2, false) => 390,
            (0, _) => 200,
            _ => 10,
        };
        self.chance.below(most * 1_000_000)
    }

    /// When the leader's timer fires, by the world's time: a little early sometimes, and late on a busy machine.
    fn timer(&mut self) -> Option<i64> {
        if self.skew.holds(&self.clock) {
            return None;
        }
        let wake = self.planner.next_wake()?;
        let now = self.monotonic();
        let left = self.clock.moment_of(wake, now).since(now);
        let left = i64::try_from(left.as_nanos()).unwrap();
        let noise = self.chance.below(40_000_000) - 10_000_000;
        Some(self.now + (left - left / 1_000_000 * self.rate + noise).max(1_000_000))
    }

    fn run(&mut self, until: i64) {
        while self.now < until {
            let timer = self.timer();
            let event = self.events.peek().map(|Reverse((at, ..))| *at);
            match (timer, event) {
                (Some(timer), Some(event)) if timer < event => self.now = timer,
                (Some(timer), None) => self.now = timer,
                _ => {
                    let Some(Reverse((at, _, what))) = self.events.pop() else {
                        return;
                    };
                    self.now = at;
                    self.happens(what);
                }
            }
            self.look();
        }
    }

    fn happens(&mut self, what: What) {
        let now = self.monotonic();
        match what {
            What::Renew => {
                let way = self.way(true);
                self.at(way, What::Asked(now));
                self.at(i64::try_from(RENEW.as_nanos()).unwrap(), What::Renew);
            }
            What::Asked(sent) => {
                let way = self.way(false);
                let server = self.store();
                self.at(way, What::Sampled(sent, server));
            }
            What::Sampled(sent, server) => {
                let step = self.clock.sample(sent, now, server);
                self.skew.sampled(now, self.wall(), step, &mut self.clock);
            }
            What::RosterRead => {
                self.skew.judged(now, &[], &mut self.clock);
                self.at(5 * SECOND, What::RosterRead);
            }
            What::Claimed(job, claims) => {
                let answered: Vec<_> = claims.iter().filter(|claim| self.claim(job, claim)).cloned().collect();
                let way = self.way(false);
                let cursor = self.cursors[job];
                self.at(way, What::Answered(job, answered, cursor));
            }
            What::Answered(job, claims, cursor) => match claims.last() {
                Some(claim) if claim.kind == OWED => {
                    self.planner.rest(job, claim.tick);
                    self.at(SECOND / 20, What::RunEnded(job));
                }
                Some(claim) => self.planner.answered(job, claim.tick),
                None => self.planner.answered(job, cursor),
            },
            What::RunEnded(job) => self.planner.resume(job),
            What::WallStepped(by) => self.wall_ahead += by,
            What::StoreStepped(by) => {
                self.store_ahead += by;
                self.stepped_at = Some(self.now);
            }
        }
    }

    /// The store's part of a claim.
    fn claim(&mut self, job: usize, claim: &Claim) -> bool {
        assert_eq!(self.cursors[job], claim.cursor, "one leader alone");
        self.cursors[job] = claim.tick;
        let period = SignedDuration::from_nanos([SECOND, 60 * SECOND][job]);
        let mut passed = claim.passed.unwrap_or(claim.tick);
        while passed < claim.tick {
            self.outcomes[job].entry(passed).or_default().1 += 1;
            passed += period;
        }
        let outcome = self.outcomes[job].entry(claim.tick).or_default();
        if claim.kind == SETTLE {
            outcome.1 += 1;
        } else {
            outcome.0 += 1;
        }
        true
    }

    /// What the leader does at every turn.
    fn look(&mut self) {
        let now = self.monotonic();
        let shown = self.clock.at(now);
        assert!(
            self.shown.is_none_or(|last| shown >= last),
            "the clock ran backwards: {:?} {shown}",
            self.shown
        );
        // A leap that the wall clock confirms is made between two looks.
        let last = self.shown.replace(shown).unwrap_or(shown);
        let leapt = shown.duration_since(last) > STEP_SEEN + SignedDuration::from_nanos(self.now - self.looked_at);
        self.looked_at = self.now;
        if leapt && self.holds.last().is_none_or(|hold| hold.1.is_some()) {
            self.holds.push((last, Some(shown)));
        }
        let known = self.stepped_at.is_none_or(|at| self.now - at > UNKNOWN);
        let bound = i64::try_from(self.clock.bound(now).as_nanos()).unwrap();
        let off = i64::try_from(shown.duration_since(self.store()).as_nanos()).unwrap();
        if known {
            assert!(
                off.abs() <= bound,
                "off by {off} ns with a bound of {bound} at {}",
                self.now
            );
            self.used = self.used.max(100 * off.abs() / bound);
        }
        let open = self.holds.last_mut().filter(|hold| hold.1.is_none());
        if self.skew.holds(&self.clock) {
            if open.is_none() {
                self.holds.push((shown, None));
            }
            return;
        }
        // The leap may be over since the last look.
        if let Some(open) = open {
            open.1 = Some(shown);
        }
        for (job, steps) in self.planner.due(shown, |_| false) {
            let claims: Vec<Claim> = steps.into_iter().map(Claim::from).collect();
            for claim in claims.iter().filter(|_| known) {
                let late = i64::try_from(self.store().duration_since(claim.tick).as_nanos()).unwrap();
                assert!(-late <= bound, "{} ns early with a bound of {bound}", -late);
                self.early = self.early.max(-late);
                // What fell due while nothing was decided is late by its grace at most.
                let was_held = self
                    .holds
                    .iter()
                    .any(|hold| hold.1.is_some_and(|to| claim.tick <= to && claim.tick >= hold.0));
                if claim.kind == RUN && !was_held {
                    self.late = self.late.max(late);
                }
            }
            let way = self.way(true);
            self.at(way, What::Claimed(job, claims));
        }
    }

    /// Each tick up to the cursor has one outcome; `lost`: what did not run.
    fn account(&self) -> (u64, u64) {
        let (mut ran, mut lost) = (0, 0);
        for (job, outcomes) in self.outcomes.iter().enumerate() {
            let period = SignedDuration::from_nanos([SECOND, 60 * SECOND][job]);
            let mut tick = noon(0) + period;
            while tick <= self.cursors[job] {
                match outcomes.get(&tick) {
                    Some((1, 0)) => ran += 1,
                    Some((0, 1)) => {
                        lost += 1;
                        let in_a_hold = |(from, to): &(Timestamp, Option<Timestamp>)| {
                            tick > *from - period && to.is_none_or(|to| tick <= to)
                        };
                        assert!(self.holds.iter().any(in_a_hold), "{tick} did not run: {:?}", self.holds);
                    }
                    other => panic!("{tick} of {}: {other:?}", JOBS[job]),
                }
                tick += period;
            }
            assert_eq!(
                outcomes.len() as i128,
                self.cursors[job].duration_since(noon(0)).as_nanos() / period.as_nanos()
            );
        }
        (ran, lost)
    }
}

/// What a monotonic clock is off, by seed.
fn rate(seed: u64) -> i64 {
    match seed % 4 {
        0 => 10_000,
        1 => -10_000,
        2 => 0,
        _ => Chance::new(seed).below(20_001) - 10_000,
    }
}

fn millis_of(nanos: i64) -> String {
    format!("{}.{:03} ms", nanos / 1_000_000, nanos / 1_000 % 1_000)
}

#[test]
fn an_hour_of_ticks_by_clocks_that_are_wrong() {
    let (mut early, mut late, mut used) = (0, 0, 0);
    for seed in 0..64 {
        let mut world = World::new(seed, rate(seed));
        for _ in 0..12 {
            let at = world.chance.below(HOUR);
            let by = [2 * HOUR, -2 * HOUR][usize::try_from(world.chance.below(2)).unwrap()];
            world.at(at, What::WallStepped(by));
        }
        world.run(HOUR + 5 * SECOND);
        assert!(
            world.cursors[0] >= noon(3_600) && world.cursors[1] == noon(3_600),
            "seed {seed}"
        );
        let (ran, lost) = world.account();
        assert_eq!(lost, 0, "seed {seed}");
        assert!(ran >= 3_660, "seed {seed}: {ran}");
        assert!(world.late < SECOND, "seed {seed}: {} late", millis_of(world.late));
        (early, late, used) = (early.max(world.early), late.max(world.late), used.max(world.used));
    }
    println!(
        "64 hours: at worst {} early, {} late, {used} % of the bound",
        millis_of(early),
        millis_of(late)
    );
    assert!(early < SECOND / 2);
}

/// What a leap passes over is the policy's, here to run the latest; what a stand keeps waiting runs when it is due.
#[test]
fn hours_of_ticks_by_a_store_whose_clock_is_stepped() {
    let (mut early, mut late, mut ran, mut lost) = (0, 0, 0, 0);
    for seed in 0..12 {
        let mut world = World::new(seed, rate(seed));
        for _ in 0..4 {
            let at = world.chance.below(6 * HOUR);
            let by = [2 * HOUR, -2 * HOUR][usize::try_from(world.chance.below(2)).unwrap()];
            let what = if world.chance.below(2) == 0 {
                What::StoreStepped(by)
            } else {
                What::WallStepped(by)
            };
            world.at(at, what);
            let by = world.chance.below(4 * HOUR) - 2 * HOUR;
            let at = world.chance.below(6 * HOUR);
            world.at(at, What::StoreStepped(by));
        }
        world.run(8 * HOUR);
        let (has_run, has_lost) = world.account();
        (ran, lost) = (ran + has_run, lost + has_lost);
        assert!(world.late < SECOND, "seed {seed}: {} late", millis_of(world.late));
        (early, late) = (early.max(world.early), late.max(world.late));
    }
    println!(
        "96 hours: at worst {} early, {} late; {ran} ticks ran, {lost} were passed over",
        millis_of(early),
        millis_of(late)
    );
    assert!(early < SECOND / 2 && lost > 0);
}

//! When the runtime of the bodies counts as wedged: moments in, steps out, no clock.

use std::time::Duration;

use crate::clock::Moment;
use crate::timing::Timing;

/// A watch over a runtime that answers probes, or does not.
///
/// One probe at a time is under way: on a runtime that runs nothing they must not pile up.
#[derive(Debug)]
pub(super) struct Watch {
    every: Duration,
    patience: Duration,
    /// The number of the last probe.
    last: u64,
    /// Since when that probe's patience counts; `None` once it is answered.
    waiting_since: Option<Moment>,
    probe_at: Moment,
    looked: Moment,
    wedged: bool,
}

/// What a look brings about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Send the probe of this number.
    Probe(u64),
    /// The runtime has answered nothing since then.
    Wedged(Moment),
}

impl Watch {
    pub(super) fn new(timing: Timing, now: Moment) -> Self {
        Self {
            every: timing.renew(),
            patience: timing.ttl(),
            last: 0,
            waiting_since: None,
            probe_at: now,
            looked: now,
            wedged: false,
        }
    }

    /// How far apart looks are while a probe is under way.
    fn step(&self) -> Duration {
        self.patience / 10
    }

    /// When to look next.
    pub(super) fn next_look(&self) -> Option<Moment> {
        match self.waiting_since {
            None => Some(self.probe_at),
            Some(_) if self.wedged => None,
            Some(_) => Some(self.looked + self.step()),
        }
    }

    pub(super) fn is_wedged(&self) -> bool {
        self.wedged
    }

    /// Looks at the time.
    pub(super) fn look(&mut self, now: Moment) -> Option<Step> {
        let gap = now.since(self.looked);
        self.looked = now;
        let Some(since) = self.waiting_since else {
            if now < self.probe_at {
                return None;
            }
            self.last += 1;
            self.waiting_since = Some(now);
            self.probe_at = now + self.every;
            return Some(Step::Probe(self.last));
        };
        // Whoever did not look for so long stood still itself, and most likely the runtime with it: it gets its full time again.
        if gap > 3 * self.step() && !self.wedged {
            self.waiting_since = Some(now);
            return None;
        }
        if self.wedged || now.since(since) < self.patience {
            return None;
        }
        self.wedged = true;
        Some(Step::Wedged(since))
    }

    /// A probe was answered; whether that ends a wedge.
    pub(super) fn answered(&mut self, number: u64) -> bool {
        if number != self.last || self.waiting_since.is_none() {
            return false;
        }
        self.waiting_since = None;
        std::mem::take(&mut self.wedged)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(value: u64) -> Duration {
        Duration::from_millis(value)
    }

    /// A TTL of 2 s: a probe every 500 ms, looks every 200 ms while one is under way.
    struct Bench {
        watch: Watch,
        start: Moment,
        now: Moment,
    }

    impl Bench {
        fn new() -> Self {
            let start = Moment::from_nanos(1_000_000_000);
            let watch = Watch::new(Timing::from_ttl(ms(2_000)), start);
            let now = start;
            Self { watch, start, now }
        }

        /// Looks whenever it is time to, and keeps what came of it, and when.
        fn until(&mut self, at: u64) -> Vec<(u64, Step)> {
            let end = self.start + ms(at);
            let mut steps = Vec::new();
            while let Some(next) = self.watch.next_look().filter(|next| *next <= end) {
                self.now = self.now.max(next);
                if let Some(step) = self.watch.look(self.now) {
                    let at = u64::try_from(self.now.since(self.start).as_millis()).unwrap();
                    steps.push((at, step));
                }
            }
            self.now = end;
            steps
        }

        fn answered(&mut self, number: u64) -> bool {
            self.watch.answered(number)
        }

        fn at(&self, ms_after_start: u64) -> Moment {
            self.start + ms(ms_after_start)
        }
    }

    #[test]
    fn a_runtime_that_answers_is_probed_every_renew_interval() {
        let mut bench = Bench::new();
        for probe in 1..=20 {
            let at = (probe - 1) * 500;
            assert_eq!(bench.until(at), [(at, Step::Probe(probe))]);
            assert_eq!(bench.until(at + 499), [], "one, and no more");
            assert!(!bench.answered(probe));
        }
        assert!(!bench.watch.is_wedged());
    }

    #[test]
    fn silence_of_one_ttl_is_a_wedge_and_probes_do_not_pile_up() {
        let mut bench = Bench::new();
        assert_eq!(bench.until(1_999), [(0, Step::Probe(1))]);
        assert!(!bench.watch.is_wedged());
        assert_eq!(bench.until(2_000), [(2_000, Step::Wedged(bench.start))]);
        assert!(bench.watch.is_wedged());
        assert_eq!(bench.until(3_600_000), [], "told once, and nothing more is sent");
        assert_eq!(bench.watch.next_look(), None, "an answer wakes it, not a timer");
        assert!(bench.answered(1), "that is the end of it");
        assert!(!bench.watch.is_wedged());
        assert!(!bench.answered(1), "told once");
        assert_eq!(bench.until(3_600_000), [(3_600_000, Step::Probe(2))]);
    }

    #[test]
    fn an_answer_at_the_last_moment_counts() {
        let mut bench = Bench::new();
        assert_eq!(bench.until(1_999), [(0, Step::Probe(1))]);
        assert!(!bench.answered(1));
        // It is slow, not wedged: the next probe has its own time.
        assert_eq!(bench.until(1_999), [(1_999, Step::Probe(2))]);
        assert_eq!(bench.until(3_998), []);
        assert_eq!(bench.until(3_999), [(3_999, Step::Wedged(bench.at(1_999)))]);
    }

    #[test]
    fn only_the_last_probe_can_answer() {
        let mut bench = Bench::new();
        bench.until(0);
        assert!(!bench.answered(1));
        bench.until(500);
        assert!(!bench.answered(1), "an answer of before");
        assert_eq!(bench.until(2_500), [(2_500, Step::Wedged(bench.at(500)))]);
        assert!(!bench.answered(1));
        assert!(bench.watch.is_wedged());
        assert!(bench.answered(2));
    }

    /// The thread that looks stood still: nothing is known of the runtime.
    #[test]
    fn a_gap_of_its_own_gives_the_probe_its_full_time_again() {
        for (before, gap) in [(0, 2_000), (0, 600_000), (1_800, 601), (1_999, 86_400_000)] {
            let mut bench = Bench::new();
            assert_eq!(bench.until(before), [(0, Step::Probe(1))]);
            bench.now = bench.now + ms(gap);
            let woke = before + gap;
            assert_eq!(bench.watch.look(bench.now), None, "after {gap} ms");
            assert_eq!(bench.until(woke + 1_999), []);
            let wedged = (woke + 2_000, Step::Wedged(bench.at(woke)));
            assert_eq!(bench.until(woke + 2_000), [wedged]);
        }
    }

    #[test]
    fn a_gap_while_nothing_is_under_way_is_no_silence() {
        let mut bench = Bench::new();
        bench.until(0);
        bench.answered(1);
        assert_eq!(bench.until(100), []);
        bench.now = bench.now + ms(600_000);
        assert_eq!(bench.watch.look(bench.now), Some(Step::Probe(2)));
        assert_eq!(bench.until(602_000), []);
        assert_eq!(bench.until(602_100), [(602_100, Step::Wedged(bench.at(600_100)))]);
    }

    /// Looks that are a little late, as on a busy machine, still add up.
    #[test]
    fn late_looks_do_not_hide_a_wedge() {
        let mut bench = Bench::new();
        assert_eq!(bench.watch.look(bench.now), Some(Step::Probe(1)));
        let mut wedged = None;
        while wedged.is_none() {
            bench.now = bench.now + ms(550);
            wedged = bench.watch.look(bench.now);
        }
        assert_eq!(wedged, Some(Step::Wedged(bench.start)));
        assert_eq!(bench.now, bench.at(2_200));
    }

    #[test]
    fn a_gap_during_a_wedge_does_not_end_it() {
        let mut bench = Bench::new();
        bench.until(2_000);
        assert!(bench.watch.is_wedged());
        bench.now = bench.now + ms(600_000);
        assert_eq!(bench.watch.look(bench.now), None);
        assert!(bench.watch.is_wedged());
        assert!(bench.answered(1));
    }
}

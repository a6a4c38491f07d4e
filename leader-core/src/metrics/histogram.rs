//! How often what was measured lay below each bound.

use std::time::Duration;

/// Bounds for what should take milliseconds: answers, lateness.
pub(super) const SHORT: &[f64] = &[
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0,
];
/// Bounds for bodies, which may take an hour.
pub(super) const LONG: &[f64] = &[
    0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 300.0, 600.0, 1_800.0, 3_600.0,
];

/// A histogram with fixed bounds.
#[derive(Clone, Debug)]
pub(super) struct Histogram {
    bounds: &'static [f64],
    /// How many lay in each, and beyond the last: not summed up.
    counts: Box<[u64]>,
    sum: f64,
}

impl Histogram {
    pub(super) fn new(bounds: &'static [f64]) -> Self {
        let counts = vec![0; bounds.len() + 1].into();
        Self {
            bounds,
            counts,
            sum: 0.0,
        }
    }

    pub(super) fn note(&mut self, took: Duration) {
        let seconds = took.as_secs_f64();
        let bucket = self.bounds.partition_point(|bound| *bound < seconds);
        self.counts[bucket] += 1;
        self.sum += seconds;
    }

    pub(super) fn sum(&self) -> f64 {
        self.sum
    }

    pub(super) fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Each bound, the last of which is infinite as Prometheus wants it, and how many lay in its bucket alone.
    pub(super) fn buckets(&self) -> Vec<(f64, u64)> {
        let bounds = self.bounds.iter().copied().chain([f64::INFINITY]);
        bounds.zip(self.counts.iter().copied()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_belongs_to_its_bucket() {
        let mut histogram = Histogram::new(&[0.5, 1.0]);
        for ms in [0, 500, 501, 1_000, 1_001, 90_000] {
            histogram.note(Duration::from_millis(ms));
        }
        assert_eq!(histogram.buckets(), [(0.5, 2), (1.0, 2), (f64::INFINITY, 2)]);
        assert_eq!(histogram.count(), 6);
        assert!((histogram.sum() - 93.002).abs() < 1e-9);
    }
}

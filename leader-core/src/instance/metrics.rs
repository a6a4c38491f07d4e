//! The numbers of an instance, for Prometheus.

use std::sync::Arc;

use super::Instance;
pub use crate::metrics::table::{Metric, MetricKind};
use crate::metrics::{OPENMETRICS, Reading, TEXT, table};
use crate::runtime::shared::Shared;

/// The numbers of one instance: counted from its start, each from 0. Cheap to clone.
///
/// Every instance counts for itself, so that several in one process, or in one test, never mix.
#[doc = include_str!("../docs/metrics.md")]
#[derive(Clone, Debug)]
pub struct Metrics {
    shared: Arc<Shared>,
}

impl Instance {
    /// Its numbers, for Prometheus.
    #[must_use]
    pub fn metrics(&self) -> Metrics {
        Metrics {
            shared: Arc::clone(&self.shared),
        }
    }
}

impl Metrics {
    /// Every metric that there is, in the order in which they are scraped.
    pub const ALL: &[Metric] = table::ALL;

    /// The content type of [`openmetrics`](Self::openmetrics).
    pub const OPENMETRICS: &str = OPENMETRICS;

    /// The content type of [`text`](Self::text).
    pub const TEXT: &str = TEXT;

    /// Asks the store what waits in the shards of queues that are dispatched here: nothing else needs it. A scrape begins with it. What
    /// the store does not answer in time stays as it was. Cancel safe.
    #[allow(clippy::unused_async, reason = "without tasks there is nothing to ask for")]
    pub async fn refresh(&self) {
        #[cfg(feature = "tasks")]
        Instance::new(Arc::clone(&self.shared)).tasks().measure().await;
    }

    /// The numbers as `OpenMetrics` 1.0: for whoever accepts `application/openmetrics-text`.
    #[must_use]
    pub fn openmetrics(&self) -> String {
        self.read().openmetrics()
    }

    /// The numbers in Prometheus' text format 0.0.4.
    #[must_use]
    pub fn text(&self) -> String {
        self.read().text()
    }

    /// The numbers as the sender of this `Accept` header wants them, with their content type.
    #[must_use]
    pub fn negotiate(&self, accept: Option<&str>) -> (&'static str, String) {
        if accept.is_some_and(accepts_openmetrics) {
            (OPENMETRICS, self.openmetrics())
        } else {
            (TEXT, self.text())
        }
    }

    fn read(&self) -> Reading {
        let shared = &self.shared;
        let (clock, load) = (shared.clock(), shared.load());
        let mut numbers = shared.meter.read(shared.fleet_now(), clock.offset.is_some());
        for gate in shared.gates.iter() {
            numbers.see(gate.group(), gate.status().borrow().term);
        }
        Reading {
            numbers,
            // A refusal of one question is an answer, too.
            store_up: shared.standing().store.is_none(),
            skew: clock.offset.unwrap_or_default(),
            stuck: load.stuck,
            waiting: load.waiting,
            service: shared.config.service.to_string(),
            service_version: shared.config.version.clone(),
        }
    }
}

/// Whether one of the media types is that of `OpenMetrics`, and not refused.
fn accepts_openmetrics(accept: &str) -> bool {
    accept.split(',').any(|range| {
        let mut parts = range.split(';').map(str::trim);
        let named = parts
            .next()
            .is_some_and(|name| name.eq_ignore_ascii_case("application/openmetrics-text"));
        let refused = |weight: &str| weight.parse::<f64>().is_ok_and(|weight| weight <= 0.0);
        named && !parts.filter_map(|part| part.strip_prefix("q=")).any(refused)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_accepted_decides_the_format() {
        let prometheus = "application/openmetrics-text;version=1.0.0;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,\
                          text/plain;version=0.0.4;q=0.3,*/*;q=0.2";
        for (accept, wanted) in [
            (prometheus, true),
            ("application/openmetrics-text", true),
            ("Application/OpenMetrics-Text; version=1.0.0", true),
            ("application/openmetrics-text;q=0, text/plain", false),
            ("text/plain", false),
            ("*/*", false),
            ("", false),
        ] {
            assert_eq!(accepts_openmetrics(accept), wanted, "{accept}");
        }
    }
}

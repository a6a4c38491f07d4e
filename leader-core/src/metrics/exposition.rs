//! The numbers as text: `OpenMetrics` 1.0, or the older format 0.0.4.

use std::fmt;

use jiff::{SignedDuration, Timestamp};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet, prometheus_text, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::exemplar::Exemplar;
use prometheus_client::registry::Registry;

use super::histogram::Histogram;
use super::measured::{RenewalOutcome, TaskResult, Waiting};
use super::numbers::{Numbers, OfGroup, OfJob, OfOperation, OfQueue};
use super::table::{self, Metric, MetricKind};
use crate::election::Lost;
use crate::job::outcome::Outcome;

/// What the scrape of another format is to be told it is.
pub(crate) const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// The same of the older format.
pub(crate) const TEXT: &str = prometheus_text::CONTENT_TYPE;

/// Everything that one scrape tells, read at one instant.
#[derive(Debug)]
pub(crate) struct Reading {
    pub(crate) numbers: Numbers,
    pub(crate) store_up: bool,
    pub(crate) skew: SignedDuration,
    pub(crate) stuck: usize,
    pub(crate) waiting: usize,
    pub(crate) service: String,
    pub(crate) service_version: String,
}

impl Reading {
    pub(crate) fn openmetrics(self) -> String {
        let mut told = String::new();
        // Writing to a string fails never.
        let _ = text::encode(&mut told, &self.registry());
        told
    }

    pub(crate) fn text(self) -> String {
        let mut told = String::new();
        // As above.
        let _ = prometheus_text::encode(&mut told, &self.registry());
        told
    }

    fn registry(self) -> Registry {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(self));
        registry
    }

    fn of_groups(&self, out: &mut Out<'_>) -> fmt::Result {
        let groups = || self.numbers.groups.iter().map(|(name, of)| ([name.as_str()], of));
        out.counters(&table::ACQUIRED, groups().map(|(group, of)| (group, of.acquired)))?;
        let lost = |of: &OfGroup, reason: &Lost| of.lost.get(reason).copied().unwrap_or(0);
        out.counters(
            &table::LOST,
            groups().flat_map(|([group], of)| {
                let reasons = Lost::ALL.iter();
                reasons.map(move |reason| ([group, reason.as_str()], lost(of, reason)))
            }),
        )?;
        let renewals = |of: &OfGroup, outcome: &RenewalOutcome| of.renewals.get(outcome).copied().unwrap_or(0);
        out.counters(
            &table::RENEWALS,
            groups().flat_map(|([group], of)| {
                let outcomes = RenewalOutcome::ALL.iter();
                outcomes.map(move |outcome| ([group, outcome.as_str()], renewals(of, outcome)))
            }),
        )?;
        let failures = groups().map(|(group, of)| (group, of.renewal_failures));
        out.counters(&table::RENEWAL_FAILURES, failures)?;
        let leads = groups().map(|(group, of)| (group, f64::from(of.leads)));
        out.gauges(&table::IS_LEADER, leads)?;
        // A term is a time in µs: exact far beyond this century.
        #[allow(clippy::cast_precision_loss, reason = "exact below 2^53")]
        let terms = groups().map(|(group, of)| (group, of.term as f64));
        out.gauges(&table::TERM, terms)?;
        out.histograms(
            &table::RENEW_SECONDS,
            groups().map(|(group, of)| (group, &of.renew_seconds)),
        )?;
        out.gauges(
            &table::LEASE_EXPIRY,
            groups().map(|(group, of)| (group, seconds(of.expiry))),
        )
    }

    fn of_jobs(&self, out: &mut Out<'_>) -> fmt::Result {
        let jobs = || self.numbers.jobs.iter().map(|(name, of)| ([name.as_str()], of));
        let group = |of: &OfJob| self.numbers.groups.get(&of.group);
        out.counters(
            &table::CRON,
            jobs().filter(|(_, of)| of.has_ticks).flat_map(|([job], of)| {
                let decided = Outcome::all().map(move |outcome| {
                    let count = of.outcomes.get(&outcome).copied().unwrap_or(0);
                    ([job, outcome.as_str()], count)
                });
                decided.chain([([job, "not-leader"], of.not_leader)])
            }),
        )?;
        out.counters(&table::RETRIES, jobs().map(|(job, of)| (job, of.retries)))?;
        out.histograms(&table::RUN_SECONDS, jobs().map(|(job, of)| (job, &of.run_seconds)))?;
        out.histograms(&table::LAG, jobs().map(|(job, of)| (job, &of.lag)))?;
        out.gauges(
            &table::LAST_SUCCESS,
            jobs().map(|(job, of)| (job, seconds(of.last_success))),
        )?;
        let next = jobs().map(|(job, of)| {
            let leads = group(of).is_some_and(|group| group.leads);
            (job, seconds(of.next.filter(|_| leads)))
        });
        out.gauges(&table::NEXT_TICK, next)?;
        let paused = jobs().map(|(job, of)| {
            let paused = of.paused || group(of).is_some_and(|group| group.paused);
            (job, f64::from(paused))
        });
        out.gauges(&table::PAUSED, paused)?;
        out.gauges(&table::RUNNING, jobs().map(|(job, of)| (job, number(of.running))))?;
        out.gauges(&table::STUCK, [([], number(self.stuck as u64))].into_iter())?;
        out.gauges(&table::WAITING, [([], number(self.waiting as u64))].into_iter())
    }

    fn of_queues(&self, out: &mut Out<'_>) -> fmt::Result {
        let queues = || self.numbers.queues.iter().map(|(name, of)| ([name.as_str()], of));
        out.counters(&table::ENQUEUED, queues().map(|(queue, of)| (queue, of.enqueued)))?;
        out.counters(&table::DISPATCHED, queues().map(|(queue, of)| (queue, of.dispatched)))?;
        let completed = |of: &OfQueue, result: &TaskResult| of.completed.get(result).copied().unwrap_or(0);
        out.counters(
            &table::COMPLETED,
            queues().flat_map(|([queue], of)| {
                let results = TaskResult::ALL.iter();
                results.map(move |result| ([queue, result.as_str()], completed(of, result)))
            }),
        )?;
        out.counters(&table::TASK_RETRIES, queues().map(|(queue, of)| (queue, of.retries)))?;
        out.counters(&table::CLAIMS_EXPIRED, queues().map(|(queue, of)| (queue, of.expired)))?;
        let states: [(&str, Count); 4] = [
            ("pending", |waiting| waiting.pending),
            ("dispatched", |waiting| waiting.dispatched),
            ("running", |waiting| waiting.running),
            ("dead", |waiting| waiting.dead),
        ];
        out.gauges(
            &table::PENDING,
            queues().flat_map(|([queue], of)| {
                states.map(|(status, count)| ([queue, status], number(of.waiting.values().map(count).sum())))
            }),
        )?;
        let oldest = queues().map(|(queue, of)| {
            let oldest = of.waiting.values().filter_map(|waiting| waiting.oldest_due).min();
            (queue, seconds(oldest))
        });
        out.gauges(&table::OLDEST_DUE, oldest)?;
        out.histograms(
            &table::DISPATCH_LAG,
            queues().map(|(queue, of)| (queue, &of.dispatch_lag)),
        )
    }

    fn of_the_store(&self, out: &mut Out<'_>) -> fmt::Result {
        let fenced = [
            (["run"], self.numbers.fenced_runs),
            (["task"], self.numbers.fenced_tasks),
        ];
        out.counters(&table::FENCED, fenced.into_iter())?;
        out.gauges(&table::STORE_UP, [([], f64::from(self.store_up))].into_iter())?;
        let operations = || {
            self.numbers
                .operations
                .iter()
                .map(|(op, of): (_, &OfOperation)| ([*op], of))
        };
        out.counters(&table::STORE_ERRORS, operations().map(|(op, of)| (op, of.errors)))?;
        out.histograms(&table::STORE_SECONDS, operations().map(|(op, of)| (op, &of.seconds)))?;
        out.gauges(&table::SKEW, [([], self.skew.as_secs_f64())].into_iter())?;
        let version = env!("CARGO_PKG_VERSION");
        let labels = [version, self.service.as_str(), self.service_version.as_str()];
        out.gauges(&table::BUILD, [(labels, 1.0)].into_iter())
    }
}

impl Collector for Reading {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut out = Out(encoder);
        self.of_groups(&mut out)?;
        self.of_jobs(&mut out)?;
        self.of_queues(&mut out)?;
        self.of_the_store(&mut out)
    }
}

/// How many of a status.
type Count = fn(&Waiting) -> u64;

/// Writes one metric after the other.
struct Out<'a>(DescriptorEncoder<'a>);

impl Out<'_> {
    /// Each with the values of its labels.
    fn counters<'a, const N: usize>(
        &mut self,
        metric: &Metric,
        all: impl Iterator<Item = ([&'a str; N], u64)>,
    ) -> fmt::Result {
        self.each(metric, all, |encoder, count| {
            encoder.encode_counter::<NoLabelSet, u64, f64>(&count, None::<&Exemplar<NoLabelSet, f64>>)
        })
    }

    fn gauges<'a, const N: usize>(
        &mut self,
        metric: &Metric,
        all: impl Iterator<Item = ([&'a str; N], f64)>,
    ) -> fmt::Result {
        self.each(metric, all, |encoder, value| encoder.encode_gauge(&value))
    }

    fn histograms<'a, 'h, const N: usize>(
        &mut self,
        metric: &Metric,
        all: impl Iterator<Item = ([&'a str; N], &'h Histogram)>,
    ) -> fmt::Result {
        self.each(metric, all, |encoder, histogram| {
            encoder.encode_histogram::<NoLabelSet>(histogram.sum(), histogram.count(), &histogram.buckets(), None)
        })
    }

    fn each<'a, T, const N: usize>(
        &mut self,
        metric: &Metric,
        all: impl Iterator<Item = ([&'a str; N], T)>,
        mut write: impl FnMut(&mut MetricEncoder<'_>, T) -> fmt::Result,
    ) -> fmt::Result {
        debug_assert_eq!(metric.labels.len(), N, "{}", metric.name);
        let kind = match metric.kind {
            MetricKind::Counter => MetricType::Counter,
            MetricKind::Gauge => MetricType::Gauge,
            MetricKind::Histogram => MetricType::Histogram,
        };
        // The encoder adds it.
        let name = metric.name.strip_suffix("_total").unwrap_or(metric.name);
        let mut encoder = self.0.encode_descriptor(name, metric.help, None, kind)?;
        for (values, value) in all {
            let mut labels = [("", ""); N];
            for (label, pair) in labels.iter_mut().zip(metric.labels.iter().zip(values)) {
                *label = (*pair.0, pair.1);
            }
            if N == 0 {
                write(&mut encoder, value)?;
            } else {
                write(&mut encoder.encode_family(&labels)?, value)?;
            }
        }
        Ok(())
    }
}

/// Since the epoch; 0 for never.
fn seconds(at: Option<Timestamp>) -> f64 {
    at.map_or(0.0, |at| at.duration_since(Timestamp::UNIX_EPOCH).as_secs_f64())
}

#[allow(clippy::cast_precision_loss, reason = "nobody has 2^53 of anything")]
fn number(count: u64) -> f64 {
    count as f64
}

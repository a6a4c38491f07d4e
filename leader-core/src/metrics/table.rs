//! Every metric there is: its name as scraped, its labels, and what it tells.

/// What kind of metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MetricKind {
    /// Rises, and starts at 0 with the process.
    Counter,
    /// What is so now.
    Gauge,
    /// How often what was measured lay below each bound.
    Histogram,
}

/// One metric of an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Metric {
    /// Its name as scraped: a counter's ends in `_total`.
    pub name: &'static str,
    /// What kind it is.
    pub kind: MetricKind,
    /// The names of its labels.
    pub labels: &'static [&'static str],
    /// What it tells.
    pub help: &'static str,
}

const fn counter(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Metric {
    let kind = MetricKind::Counter;
    Metric {
        name,
        kind,
        labels,
        help,
    }
}

const fn gauge(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Metric {
    let kind = MetricKind::Gauge;
    Metric {
        name,
        kind,
        labels,
        help,
    }
}

const fn histogram(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Metric {
    let kind = MetricKind::Histogram;
    Metric {
        name,
        kind,
        labels,
        help,
    }
}

macro_rules! metrics {
    ($($(#[$attribute:meta])* $NAME:ident = $metric:expr;)*) => {
        $($(#[$attribute])* pub(super) const $NAME: Metric = $metric;)*

        /// Every metric, in the order in which they are scraped.
        pub(crate) const ALL: &[Metric] = &[$($(#[$attribute])* $NAME,)*];
    };
}

metrics! {
    ACQUIRED = counter("leader_acquired_total", &["group"], "Leaderships that this instance has begun");
    LOST = counter("leader_lost_total", &["group", "reason"], "Leaderships of this instance that have ended, by why");
    RENEWALS = counter("leader_renewals_total", &["group", "outcome"], "Renewals of leases that have had an answer or none in time");
    RENEWAL_FAILURES = counter("leader_renewal_failures_total", &["group"], "Renewals that failed and are retried while trust lasts");
    IS_LEADER = gauge("leader_election_is_leader", &["group"], "1 while this instance leads: acquired less lost");
    TERM = gauge("leader_election_term", &["group"], "The newest term that this instance has seen");
    RENEW_SECONDS = histogram("leader_election_renew_duration_seconds", &["group"], "How long renewals took");
    LEASE_EXPIRY = gauge(
        "leader_election_lease_expiry_timestamp_seconds", &["group"],
        "When the lease of this leader ends unless it is renewed; 0 where it does not lead"
    );
    CRON = counter("leader_cron_total", &["job", "status"], "Ticks by what this instance has decided, and those that it saw pass while not leading");
    RETRIES = counter("leader_cron_retries_total", &["job"], "Tries that failed and were followed by another");
    RUN_SECONDS = histogram("leader_cron_run_duration_seconds", &["job"], "How long bodies ran");
    LAG = histogram("leader_cron_tick_lag_seconds", &["job"], "How long after they were due the bodies of ticks were started");
    LAST_SUCCESS = gauge("leader_cron_last_success_timestamp_seconds", &["job"], "When a run last succeeded on this instance; 0 for never");
    NEXT_TICK = gauge("leader_cron_next_tick_timestamp_seconds", &["job"], "The next planned tick, on the job's leader; 0 elsewhere");
    PAUSED = gauge("leader_cron_paused", &["job"], "1 while the job is paused, on its leader");
    RUNNING = gauge("leader_cron_running", &["job"], "Bodies that run here");
    STUCK = gauge("leader_cron_stuck", &[], "Bodies that were asked to end long ago and have not returned");
    WAITING = gauge("leader_cron_waiting", &[], "Jobs with a due tick that waits for a place");
    ENQUEUED = counter("leader_tasks_enqueued_total", &["queue"], "Tasks that this instance has stored");
    DISPATCHED = counter("leader_tasks_dispatched_total", &["queue"], "Due tasks that this instance has handed to the workers");
    COMPLETED = counter("leader_tasks_completed_total", &["queue", "result"], "Tasks that ended here");
    TASK_RETRIES = counter("leader_tasks_retries_total", &["queue"], "Attempts that failed here and are followed by another");
    CLAIMS_EXPIRED = counter("leader_tasks_claims_expired_total", &["queue"], "Attempts of silent workers that this dispatcher has taken back");
    PENDING = gauge("leader_tasks_pending", &["queue", "status"], "Tasks that have not ended, from the dispatcher of each shard only");
    OLDEST_DUE = gauge(
        "leader_tasks_oldest_due_timestamp_seconds", &["queue"],
        "Since when the oldest due task waits, from its dispatcher only; 0 where none waits"
    );
    DISPATCH_LAG = histogram("leader_tasks_dispatch_lag_seconds", &["queue"], "How long after it was due the first task of a step was handed to the workers");
    FENCED = counter("leader_fenced_writes_total", &["target"], "Results that the store refused, because the run or task was another's by then");
    STORE_UP = gauge("leader_store_up", &[], "1 while the store answers");
    STORE_ERRORS = counter("leader_redis_errors_total", &["op"], "Round trips to the store that failed");
    STORE_SECONDS = histogram("leader_redis_command_duration_seconds", &["op"], "How long round trips to the store took");
    SKEW = gauge("leader_clock_skew_seconds", &[], "How far this machine's wall clock is ahead of the store's");
    BUILD = gauge("leader_build_info", &["version", "service", "service_version"], "1, with the version of leader-core and what the service calls itself");
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// As <https://prometheus.io/docs/practices/naming/> asks.
    #[test]
    fn names_are_those_of_their_kind() {
        let mut names = BTreeSet::new();
        for metric in ALL {
            let name = metric.name;
            assert!(names.insert(name), "{name} is there twice");
            assert!(name.starts_with("leader_"), "{name}");
            assert_eq!(name.ends_with("_total"), metric.kind == MetricKind::Counter, "{name}");
            if metric.kind == MetricKind::Histogram {
                assert!(name.ends_with("_seconds"), "{name}");
            }
            for unit in ["_ms", "_millis", "_minutes"] {
                assert!(!name.contains(unit), "{name}");
            }
            assert!(!metric.help.ends_with('.'), "{name}");
            for label in metric.labels {
                assert!(
                    !name.contains(&format!("_{label}_")),
                    "{name} repeats its label {label}"
                );
                assert!(!["instance", "le", "task", "holder"].contains(label), "{name}: {label}");
            }
        }
    }

    #[test]
    fn the_documentation_has_each_of_them() {
        let told = include_str!("../docs/metrics.md");
        for metric in ALL {
            let labels = metric
                .labels
                .iter()
                .map(|label| format!("`{label}`"))
                .collect::<Vec<_>>();
            let kind = format!("{:?}", metric.kind).to_lowercase();
            let row = format!("| `{}` | {kind} | {} |", metric.name, labels.join(", "));
            assert!(
                told.contains(&row),
                "docs/metrics.md lacks the row\n{row} {} |",
                metric.help
            );
        }
        let rows = told.lines().filter(|line| line.starts_with("| `leader_")).count();
        assert_eq!(rows, ALL.len(), "docs/metrics.md has a metric that is none");
    }
}

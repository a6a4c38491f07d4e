//! What is measured, and how it is shown.
#![allow(clippy::cast_precision_loss, reason = "counts and microseconds far below 2^52")]

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use leader_tests::RedisServer;
use rustix::time::{ClockId, clock_gettime};

/// So many jobs, each due every second, for so many seconds.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    pub jobs: usize,
    pub seconds: u64,
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} jobs each second for {} s", self.jobs, self.seconds)
    }
}

/// How late each start was, in microseconds; negative when the planning clock, which follows the store's, runs ahead of ours.
#[derive(Debug, Default)]
pub struct Lateness(Mutex<Vec<(Timestamp, i64)>>);

impl Lateness {
    pub const fn new() -> Self {
        Self(Mutex::new(Vec::new()))
    }

    pub fn note(&self, scheduled: Timestamp, started: Timestamp) {
        let late = started.as_microsecond() - scheduled.as_microsecond();
        self.0.lock().expect("nobody panics").push((scheduled, late));
    }

    /// Those of the ticks in (`from`, `from` + `seconds`], by tick.
    pub fn take(&self, from: Timestamp, seconds: u64) -> Vec<Vec<i64>> {
        let until = from + Duration::from_secs(seconds);
        let all = std::mem::take(&mut *self.0.lock().expect("nobody panics"));
        let mut by_tick: BTreeMap<Timestamp, Vec<i64>> = BTreeMap::new();
        for (tick, late) in all.into_iter().filter(|(tick, _)| *tick > from && *tick <= until) {
            by_tick.entry(tick).or_default().push(late);
        }
        by_tick.into_values().collect()
    }
}

/// The figures of one run.
#[derive(Debug)]
pub struct Figures {
    /// How late the starts were, by tick.
    pub late: Vec<Vec<i64>>,
    /// How many starts there should be.
    pub due: u64,
    pub seconds: u64,
    pub round_trips: Option<u64>,
    pub cpu: Duration,
    pub server_cpu: Option<Duration>,
}

impl Figures {
    /// Adds another run of the same.
    pub fn add(&mut self, other: Self) {
        self.late.extend(other.late);
        self.due += other.due;
        self.seconds += other.seconds;
        self.cpu += other.cpu;
        self.server_cpu = self.server_cpu.zip(other.server_cpu).map(|(a, b)| a + b);
        self.round_trips = self.round_trips.zip(other.round_trips).map(|(a, b)| a + b);
    }

    /// The p99 of the median second: what the program does, where the overall p99 may be what the machine's other guests did.
    fn typical(&self) -> f64 {
        let seconds = self.late.iter().map(|late| percentile(late.clone(), 99));
        percentile(seconds.collect(), 50) as f64 / 1000.0
    }

    pub fn print(&self, name: &str, floor: Option<&Self>) {
        let all = self.late.concat();
        let [p50, p99, max] = [50, 99, 100].map(|percent| percentile(all.clone(), percent) as f64 / 1000.0);
        let per_second = |cpu: Duration| 100.0 * cpu.as_secs_f64() / self.seconds as f64;
        print!(
            "{name:<31} late p50 {p50:6.2}  p99 {p99:6.2}  max {max:6.2} ms, median second's p99 {:6.2} | started {} of {} | CPU {:5.2} %",
            self.typical(),
            all.len(),
            self.due,
            per_second(self.cpu)
        );
        if let Some(cpu) = self.server_cpu {
            print!(", Redis {:5.2} %", per_second(cpu));
        }
        if let Some(trips) = self.round_trips {
            print!(
                " | claim round trips per second {:.2}",
                trips as f64 / self.seconds as f64
            );
        }
        if let Some(floor) = floor {
            print!(
                " | median second's p99 is {:.1} × the floor's",
                self.typical() / floor.typical()
            );
        }
        println!();
    }
}

fn percentile(mut values: Vec<i64>, percent: usize) -> i64 {
    values.sort_unstable();
    let at = (values.len() * percent / 100).min(values.len().saturating_sub(1));
    values.get(at).copied().unwrap_or_default()
}

/// The processor time that this process has used.
pub fn cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let part = |part: i64| u64::try_from(part).unwrap_or_default();
    Duration::from_secs(part(time.tv_sec)) + Duration::from_nanos(part(time.tv_nsec))
}

/// The processor time that the server has used, by its own account.
pub async fn server_cpu(server: &RedisServer) -> Duration {
    let info = server.tells("cpu").await;
    ["used_cpu_sys:", "used_cpu_user:"]
        .map(|field| Duration::from_secs_f64(number(&info, field)))
        .into_iter()
        .sum()
}

/// Calls of a command, and the microseconds that the server spent in them.
pub async fn command(server: &RedisServer, name: &str) -> (f64, f64) {
    let info = server.tells("commandstats").await;
    let line = info
        .split_once(&format!("cmdstat_{name}:"))
        .map_or("", |(_, line)| line);
    (number(line, "calls="), number(line, "usec="))
}

/// The number after the first occurrence of `field`; 0 without one.
fn number(text: &str, field: &str) -> f64 {
    let digits = text.split_once(field).map_or("0", |(_, rest)| rest);
    let end = digits
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(digits.len());
    digits[..end].parse().unwrap_or_default()
}

static ROUND_TRIPS: AtomicU64 = AtomicU64::new(0);

/// Counts, from now on, the round trips that carry claims: the engine tells the log of each one, at the level `trace`.
pub fn count_claims() {
    tracing::subscriber::set_global_default(Counter).expect("the bench's own log is the first");
}

pub fn round_trips() -> u64 {
    ROUND_TRIPS.load(Ordering::Relaxed)
}

struct Counter;

impl tracing::Subscriber for Counter {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.is_event() && metadata.fields().field("claims").is_some()
    }

    fn event(&self, _: &tracing::Event<'_>) {
        ROUND_TRIPS.fetch_add(1, Ordering::Relaxed);
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
    fn enter(&self, _: &tracing::span::Id) {}
    fn exit(&self, _: &tracing::span::Id) {}
}

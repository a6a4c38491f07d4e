//! The only file that reads a clock.
//!
//! Monotonic time guards leases and wall time names ticks; the two types never mix.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use jiff::Timestamp;

/// An instant of the monotonic clock that also counts suspend (`CLOCK_BOOTTIME` on Linux and Android).
///
/// On other systems the clock is the monotonic one, which may stand still while the machine sleeps: there the lease's end, not
/// the local view, is what bounds a sleeper's belief.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(u64);

impl Moment {
    /// Before every other moment.
    pub const ZERO: Self = Self(0);
    /// After every other moment.
    pub const MAX: Self = Self(u64::MAX);

    /// A moment by its nanoseconds since the clock's origin.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the clock's origin (boot, on Linux).
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The time from `earlier` to this moment; zero when it is not earlier.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl std::ops::Add<Duration> for Moment {
    type Output = Self;

    fn add(self, span: Duration) -> Self {
        Self(
            self.0
                .saturating_add(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)),
        )
    }
}

impl std::ops::Sub<Duration> for Moment {
    type Output = Self;

    fn sub(self, span: Duration) -> Self {
        Self(
            self.0
                .saturating_sub(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)),
        )
    }
}

/// Where an instance takes its time from: the system, or a test's hand.
#[derive(Clone, Debug, Default)]
pub struct Clock(Source);

#[derive(Clone, Debug, Default)]
enum Source {
    #[default]
    System,
    /// The system's, with a wall clock that is wrong by so many microseconds.
    Ahead(Arc<AtomicI64>),
    Manual(Arc<Manual>),
    /// The timers' of the runtime, which a test may have paused.
    Runtime(Arc<OfTheRuntime>),
}

#[derive(Debug)]
struct OfTheRuntime {
    began: tokio::time::Instant,
    wall: Timestamp,
    /// How many millionths the monotonic clock is too fast, or too slow.
    drift: i64,
    /// How far the wall clock is ahead beside that, in microseconds.
    ahead: AtomicI64,
}

/// A million, as in parts per million.
const MILLION: u64 = 1_000_000;

impl OfTheRuntime {
    fn rate(&self) -> u64 {
        MILLION.saturating_add_signed(self.drift)
    }

    /// How long the clock has run, as it shows itself.
    fn shown(&self) -> Duration {
        let elapsed = self.began.elapsed();
        if self.drift == 0 {
            return elapsed;
        }
        let nanos = elapsed.as_nanos() * u128::from(self.rate()) / u128::from(MILLION);
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// How long a span of this clock takes.
    fn lasts(&self, span: Duration) -> Duration {
        if self.drift == 0 {
            return span;
        }
        let nanos = (span.as_nanos() * u128::from(MILLION)).div_ceil(u128::from(self.rate()));
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

#[derive(Debug, Default)]
struct Manual {
    monotonic: AtomicU64,
    wall_micros: AtomicI64,
}

impl Clock {
    /// The system's clocks.
    #[must_use]
    pub fn system() -> Self {
        Self(Source::System)
    }

    /// The system's clocks, with a wall clock that is wrong by `ahead`.
    #[must_use]
    pub fn ahead(ahead: jiff::SignedDuration) -> Self {
        let clock = Self(Source::Ahead(Arc::default()));
        clock.step_wall(ahead);
        clock
    }

    /// A clock that stands until it is moved by [`Clock::advance`].
    #[must_use]
    pub fn manual(wall: Timestamp) -> Self {
        Self(Source::Manual(Arc::new(Manual {
            monotonic: AtomicU64::new(1_000_000_000),
            wall_micros: AtomicI64::new(wall.as_microsecond()),
        })))
    }

    /// The clock of the timers of the tokio runtime that it is read in, which began now. On a runtime whose time is paused it stands
    /// while anything is left to do, and then leaps to the next timer.
    #[must_use]
    pub fn of_the_runtime(wall: Timestamp) -> Self {
        Self::drifting(wall, 0)
    }

    /// The same, with a monotonic clock that runs by so many parts per million too fast, or too slow: at most a tenth. The wall clock is
    /// as somebody keeps it right.
    #[must_use]
    pub(crate) fn drifting(wall: Timestamp, ppm: i32) -> Self {
        Self(Source::Runtime(Arc::new(OfTheRuntime {
            began: tokio::time::Instant::now(),
            wall,
            drift: i64::from(ppm.clamp(-100_000, 100_000)),
            ahead: AtomicI64::new(0),
        })))
    }

    /// Whether everything that reads it has to live in one runtime.
    pub(crate) fn is_of_the_runtime(&self) -> bool {
        matches!(self.0, Source::Runtime(_))
    }

    /// Moves a manual clock; does nothing to others.
    pub fn advance(&self, by: Duration) {
        if let Source::Manual(manual) = &self.0 {
            let nanos = u64::try_from(by.as_nanos()).unwrap_or(u64::MAX);
            manual.monotonic.fetch_add(nanos, Ordering::SeqCst);
            let micros = i64::try_from(by.as_micros()).unwrap_or(i64::MAX);
            manual.wall_micros.fetch_add(micros, Ordering::SeqCst);
        }
    }

    /// Steps the wall clock alone, as an administrator does; does nothing to the system's. Clones share the step.
    pub fn step_wall(&self, by: jiff::SignedDuration) {
        let by = i64::try_from(by.as_micros()).unwrap_or(0);
        match &self.0 {
            Source::System => {}
            Source::Runtime(clock) => {
                clock.ahead.fetch_add(by, Ordering::SeqCst);
            }
            Source::Ahead(micros) => {
                micros.fetch_add(by, Ordering::SeqCst);
            }
            Source::Manual(manual) => {
                manual.wall_micros.fetch_add(by, Ordering::SeqCst);
            }
        }
    }

    /// The monotonic moment now.
    #[inline]
    #[must_use]
    pub fn now(&self) -> Moment {
        match &self.0 {
            Source::System | Source::Ahead(_) => system_monotonic(),
            Source::Manual(manual) => Moment(manual.monotonic.load(Ordering::SeqCst)),
            // Later than `Moment::ZERO` from its beginning on.
            Source::Runtime(clock) => Moment(1_000_000_000) + clock.shown(),
        }
    }

    /// The wall clock's reading now.
    #[must_use]
    pub fn wall(&self) -> Timestamp {
        match &self.0 {
            Source::System => Timestamp::now(),
            Source::Ahead(ahead) => {
                let now = Timestamp::now();
                let ahead = jiff::SignedDuration::from_micros(ahead.load(Ordering::SeqCst));
                now.saturating_add(ahead).unwrap_or(now)
            }
            Source::Manual(manual) => {
                Timestamp::from_microsecond(manual.wall_micros.load(Ordering::SeqCst)).unwrap_or(Timestamp::UNIX_EPOCH)
            }
            Source::Runtime(clock) => {
                let ahead = jiff::SignedDuration::from_micros(clock.ahead.load(Ordering::SeqCst));
                let right = clock.wall.saturating_add(clock.began.elapsed()).unwrap_or(clock.wall);
                right.saturating_add(ahead).unwrap_or(right)
            }
        }
    }

    /// Sleeps until `at`, in steps of at most `step`: a timer of the runtime does not count suspend, and a late one may not
    /// outlive what it guards. Cancel safe.
    pub async fn sleep_until(&self, at: Moment, step: Duration) {
        loop {
            let left = at.since(self.now());
            if left.is_zero() {
                return;
            }
            tokio::time::sleep(match &self.0 {
                // Its timers go by the same time.
                Source::Runtime(clock) => clock.lasts(left),
                _ => left.min(step),
            })
            .await;
        }
    }
}

/// The instant by which the timers of the runtime go: in a simulation, the true one.
#[cfg(feature = "testing")]
pub(crate) fn of_timers() -> tokio::time::Instant {
    tokio::time::Instant::now()
}

#[cfg(any(target_os = "linux", target_os = "android"))]
#[inline]
fn system_monotonic() -> Moment {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let nanos = u64::try_from(time.tv_nsec).unwrap_or(0);
    Moment(seconds * 1_000_000_000 + nanos)
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn system_monotonic() -> Moment {
    use std::sync::OnceLock;
    use std::time::Instant;
    static ORIGIN: OnceLock<Instant> = OnceLock::new();
    let origin = *ORIGIN.get_or_init(Instant::now);
    // One second is added so that the origin itself is later than `Moment::ZERO`.
    Moment(u64::try_from(origin.elapsed().as_nanos()).unwrap_or(u64::MAX - 1) + 1_000_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_clock_only_rises() {
        let clock = Clock::system();
        let first = clock.now();
        assert!(first > Moment::ZERO);
        assert!(clock.now() >= first);
    }

    #[test]
    fn a_wall_clock_can_be_stepped_alone() {
        let hour = jiff::SignedDuration::from_hours(1);
        let clock = Clock::ahead(hour);
        let (moment, other) = (clock.now(), clock.clone());
        other.step_wall(hour);
        let ahead = clock.wall().duration_since(Timestamp::now());
        assert!(
            (2 * hour - ahead).abs() < jiff::SignedDuration::from_secs(60),
            "{ahead}"
        );
        assert!(clock.now().since(moment) < Duration::from_secs(60));
    }

    #[tokio::test(start_paused = true)]
    async fn a_clock_of_the_runtime_may_drift() {
        let wall = Timestamp::UNIX_EPOCH;
        let (right, fast) = (Clock::of_the_runtime(wall), Clock::drifting(wall, 10_000));
        let begin = fast.now();
        fast.sleep_until(begin + Duration::from_secs(101), Duration::MAX).await;
        assert_eq!(fast.now().since(begin), Duration::from_secs(101));
        assert_eq!(right.wall(), wall + jiff::SignedDuration::from_secs(100));
        fast.step_wall(jiff::SignedDuration::from_secs(9));
        assert_eq!(fast.wall(), wall + jiff::SignedDuration::from_secs(109));
        assert_eq!(fast.now().since(begin), Duration::from_secs(101));
    }

    #[test]
    fn arithmetic_saturates() {
        assert_eq!(Moment::MAX + Duration::from_secs(1), Moment::MAX);
        assert_eq!(Moment::ZERO - Duration::from_secs(1), Moment::ZERO);
        assert_eq!(Moment::ZERO.since(Moment::MAX), Duration::ZERO);
    }
}

//! What an annotated function leaves for the linker to collect: one constant and two function pointers.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use super::extract::{Given, Needs};
use super::output::JobError;
use super::scope::Skipped;
use crate::schedule::missed::{DEFAULT_MAX_MISSED, Missed};
use crate::schedule::{Backoff, Days};

/// How a run's body ended by itself.
#[doc(hidden)]
pub type BodyResult = Result<Result<(), JobError>, Skipped>;
/// The future of a body.
#[doc(hidden)]
pub type BodyFuture = Pin<Box<dyn Future<Output = BodyResult> + Send>>;
type RunFn = fn(&Given<'_>) -> BodyFuture;
type NeedsFn = fn(&mut Needs);

/// What happens to a running body when its leadership ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum OnLoss {
    /// It is told, and dropped when trust ends.
    #[default]
    Cancel,
    /// It may finish; until then it keeps the job's overlap slot, and its fence is what protects the data.
    Finish,
}

/// What becomes of a tick whose job still runs for an earlier one, on whatever instance.
///
/// Ticks that are owed, because they were missed or fell into a drain, run one after another under each of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Overlap {
    /// It is not run.
    #[default]
    Skip,
    /// It waits, and runs when the earlier one has ended; one that waits already is coalesced into it.
    Wait,
    /// The earlier one is cancelled, and it runs when that has ended, or after two renewal intervals in any case: its higher fence is
    /// what protects the data from a body that does not listen.
    Replace,
    /// It runs beside the earlier one.
    Allow,
}

impl Overlap {
    /// The word for the store.
    #[cfg(feature = "redis")]
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Skip => "skip",
            Self::Wait => "wait",
            Self::Replace => "replace",
            Self::Allow => "allow",
        }
    }
}

/// Where the ticks of a job are run.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum On {
    /// On the leader of its group.
    #[default]
    Leader,
    /// On whatever instance claims the tick first.
    Any,
    /// On a worker: each tick becomes a task.
    Fleet,
}

/// What starts a body.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Trigger {
    /// Nothing: a gated function that is called.
    Call,
    /// A cron expression.
    Cron(&'static str),
    /// A period.
    Every(&'static str),
    /// A leadership: the body lives as long as it.
    WhileLeading,
    /// The schedules that are made for it at run time.
    Handler,
}

/// Checks `concurrency` at compile time.
///
/// # Panics
/// When it is zero.
#[must_use]
#[track_caller]
pub(crate) const fn checked_concurrency(most: u32) -> u32 {
    assert!(
        most > 0,
        "`concurrency = 0` lets nothing run: write how many may run at once on one instance, or take it out"
    );
    most
}

/// One annotated function.
#[doc(hidden)]
#[derive(Clone, Copy)]
pub struct Record {
    pub(crate) name: &'static str,
    pub(crate) group: &'static str,
    pub(crate) module: &'static str,
    pub(crate) trigger: Trigger,
    /// The zone of a cron expression; UTC, unless said.
    pub(crate) timezone: Option<&'static str>,
    pub(crate) days: Days,
    pub(crate) jitter: Option<Duration>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) grace: Option<Duration>,
    pub(crate) missed: Missed,
    pub(crate) max_missed: u32,
    pub(crate) max_age: Option<Duration>,
    pub(crate) overlap: Overlap,
    pub(crate) on_loss: OnLoss,
    pub(crate) retries: u32,
    pub(crate) backoff: Option<Backoff>,
    /// The calendars on whose days it does not run.
    pub(crate) except: &'static [&'static str],
    /// The names that it had before.
    pub(crate) was: &'static [&'static str],
    pub(crate) on: On,
    /// The queue that its ticks wait in as tasks, where that is what becomes of them.
    pub(crate) queue: Option<&'static str>,
    /// And the most of them that run at once on one instance.
    pub(crate) concurrency: Option<u32>,
    pub(crate) body: Option<Body>,
}

/// The two function pointers of a job: one makes the body's future, one says what its arguments need.
#[derive(Clone, Copy)]
pub(crate) struct Body {
    pub(crate) run: RunFn,
    pub(crate) needs: NeedsFn,
}

impl fmt::Debug for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Record")
            .field("name", &self.name)
            .field("group", &self.group)
            .field("trigger", &self.trigger)
            .field("timezone", &self.timezone)
            .field("days", &self.days)
            .field("jitter", &self.jitter)
            .field("timeout", &self.timeout)
            .field("grace", &self.grace)
            .field("on", &self.on)
            .field("queue", &self.queue)
            .field("concurrency", &self.concurrency)
            .finish_non_exhaustive()
    }
}

inventory::collect!(Record);

impl Record {
    /// A gated function; the other methods make it a job.
    #[must_use]
    pub const fn new(name: &'static str, group: &'static str, module: &'static str) -> Self {
        Self {
            name,
            group,
            module,
            trigger: Trigger::Call,
            timezone: None,
            days: Days::Unsaid,
            jitter: None,
            timeout: None,
            grace: None,
            missed: Missed::Latest,
            max_missed: DEFAULT_MAX_MISSED,
            max_age: None,
            overlap: Overlap::Skip,
            on_loss: OnLoss::Cancel,
            retries: 0,
            backoff: None,
            except: &[],
            was: &[],
            on: On::Leader,
            queue: None,
            concurrency: None,
            body: None,
        }
    }

    /// What starts the body, and the body.
    #[must_use]
    pub const fn job(self, trigger: Trigger, run: RunFn, needs: NeedsFn) -> Self {
        let body = Some(Body { run, needs });
        Self { trigger, body, ..self }
    }

    /// The zone of the cron expression.
    #[must_use]
    pub const fn timezone(self, zone: &'static str) -> Self {
        Self {
            timezone: Some(zone),
            ..self
        }
    }

    /// How the day fields of the cron expression combine.
    #[must_use]
    pub const fn days(self, days: Days) -> Self {
        Self { days, ..self }
    }

    /// The most that a tick is due later than planned.
    #[must_use]
    pub const fn jitter(self, jitter: Duration) -> Self {
        Self {
            jitter: Some(jitter),
            ..self
        }
    }

    /// The bound of a run.
    #[must_use]
    pub const fn timeout(self, timeout: Duration) -> Self {
        Self {
            timeout: Some(timeout),
            ..self
        }
    }

    /// How late a tick may be and still simply run.
    #[must_use]
    pub const fn grace(self, grace: Duration) -> Self {
        Self {
            grace: Some(grace),
            ..self
        }
    }

    /// What happens to missed ticks.
    #[must_use]
    pub const fn missed(self, missed: Missed) -> Self {
        Self { missed, ..self }
    }

    /// The most missed ticks that are run.
    #[must_use]
    pub const fn max_missed(self, max_missed: u32) -> Self {
        Self { max_missed, ..self }
    }

    /// The age from which a missed tick is not run.
    #[must_use]
    pub const fn max_age(self, max_age: Duration) -> Self {
        Self {
            max_age: Some(max_age),
            ..self
        }
    }

    /// What becomes of a tick while the job runs.
    #[must_use]
    pub const fn overlap(self, overlap: Overlap) -> Self {
        Self { overlap, ..self }
    }

    /// What happens to a running body when its leadership ends.
    #[must_use]
    pub const fn on_loss(self, on_loss: OnLoss) -> Self {
        Self { on_loss, ..self }
    }

    /// How often a failed run is tried again.
    #[must_use]
    pub const fn retries(self, retries: u32) -> Self {
        Self { retries, ..self }
    }

    /// How long it pauses before.
    #[must_use]
    pub const fn backoff(self, backoff: Backoff) -> Self {
        Self {
            backoff: Some(backoff),
            ..self
        }
    }

    /// The calendars on whose days it does not run.
    #[must_use]
    pub const fn except(self, except: &'static [&'static str]) -> Self {
        Self { except, ..self }
    }

    /// The names that it had before.
    #[must_use]
    pub const fn was(self, was: &'static [&'static str]) -> Self {
        Self { was, ..self }
    }

    /// Where its ticks are run.
    #[must_use]
    pub const fn on(self, on: On) -> Self {
        Self { on, ..self }
    }

    /// The queue that its ticks wait in as tasks.
    #[must_use]
    pub const fn queue(self, queue: &'static str) -> Self {
        Self {
            queue: Some(queue),
            ..self
        }
    }

    /// The most of them that run at once on one instance.
    #[must_use]
    pub const fn concurrency(self, most: u32) -> Self {
        Self {
            concurrency: Some(most),
            ..self
        }
    }
}

/// The hidden type beside every annotated job, of the function's own name: `.expect::<jobs::purge_sessions>()`.
pub trait Job: 'static {
    /// The job's stable name.
    const NAME: &'static str;
    /// The group whose leader runs it, or among whose candidates each tick goes to whoever claims it first.
    const GROUP: &'static str;
    #[doc(hidden)]
    const RECORD: Record;
}

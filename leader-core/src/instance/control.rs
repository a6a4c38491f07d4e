//! Steering the fleet's jobs from any instance: pauses, runs outside the schedule, and the list of what was done.

mod error;
mod work;

use std::collections::BTreeMap;
use std::fmt;
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;

use jiff::Timestamp;
use tokio::sync::oneshot;

pub use error::ControlError;
use work::Wish;

use crate::job::record::Job;
use crate::names::GroupName;
use crate::runtime::engine::{Errand, Input, Request};
use crate::runtime::shared::Shared;
use crate::store::{Gap, GroupControl, Pause, Store};

/// What a pause or a resume is for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Target {
    /// One job, by its name.
    Job(String),
    /// All jobs of a group, those that come later included.
    Group(String),
    /// Every group that this instance or the roster knows at the time.
    All,
}

impl Target {
    /// A job by its name.
    #[must_use]
    pub fn job(name: impl Into<String>) -> Self {
        Self::Job(name.into())
    }

    /// A job by its type: `Target::of::<jobs::purge_sessions>()`.
    #[must_use]
    pub fn of<J: Job>() -> Self {
        Self::job(J::NAME)
    }

    /// A group by its name.
    #[must_use]
    pub fn group(name: impl Into<String>) -> Self {
        Self::Group(name.into())
    }

    /// Every group.
    #[must_use]
    pub fn all() -> Self {
        Self::All
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Job(name) => write!(f, "the job `{name}`"),
            Self::Group(name) => write!(f, "the group `{name}`"),
            Self::All => f.write_str("every group"),
        }
    }
}

/// What was done in one group.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Done {
    /// The group.
    pub group: GroupName,
    /// The act's number.
    pub number: u64,
    /// When, by the store's clock.
    pub at: Timestamp,
    /// The pause that was replaced or ended.
    pub before: Option<Pause>,
}

/// A request for runs that is kept: some leader meets it, this one or a later one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Requested {
    /// The group.
    pub group: GroupName,
    /// The request's id.
    pub id: u64,
    /// The instant of the run, by which the ledger has it; of a past span its first tick.
    pub at: Timestamp,
    /// How many runs are asked for.
    pub runs: u64,
}

/// Steers the fleet's jobs; made by [`Instance::control`](crate::Instance::control).
///
/// It works on every instance, whether it leads, stands by or only watches. What is asked is kept in the store and judged there, in the step
/// that would begin a run: no leader passes a pause by, nor one that has not heard of it. Every act is kept with who and why; the newest
/// 256 of each group can be [read](Self::state).
///
/// Dropping the future of an act does not undo it: it may be kept, or may be kept still.
#[derive(Clone, Copy, Debug)]
pub struct Control<'a> {
    shared: &'a Arc<Shared>,
}

impl<'a> Control<'a> {
    pub(super) fn new(shared: &'a Arc<Shared>) -> Self {
        Self { shared }
    }

    /// Pauses a job, a group or all; awaited, it gives what was done in each group. A pause of the same target is replaced.
    ///
    /// No tick that falls due from now on is run, until the pause is [resumed](Self::resume) or ends [by itself](Pausing::until). By
    /// default each has the outcome `paused`; with [`owed`](Pausing::owed) they stay open, and the job's `grace` and `missed` decide them
    /// at the end. Runs under way go on. What was due before a pause that skips is decided as ever, and what fell due in it is paused also when
    /// nobody led meanwhile and it is decided after the end (for 32 days, and the newest 32 pauses of a group). A tick that waits for an earlier run
    /// is paused too, and a backfill goes on after the pause; a [trigger](Self::trigger) is run all the same.
    ///
    /// A pause of [everything](Target::all) is written into one group after another, and a group that nobody has yet is not paused.
    #[must_use = "nothing is asked before it is awaited"]
    pub fn pause(self, target: Target) -> Pausing {
        Pausing {
            wish: self.wish(),
            target,
            gap: Gap::Skip,
            until: None,
        }
    }

    /// Ends the pause of a job, of a group or of all. A pause of the group is not that of a job, nor the reverse: what was paused is
    /// resumed.
    #[must_use = "nothing is asked before it is awaited"]
    pub fn resume(self, target: Target) -> Resuming {
        Resuming {
            wish: self.wish(),
            target,
        }
    }

    /// Asks for one run of a job, outside its schedule and also while it is paused.
    ///
    /// It is begun exactly once, by the present leader or a later one, as soon as no other run of the job is left (with
    /// `overlap = "allow"` at once). [`Tick::origin`](crate::Tick::origin) is `manual`, the instant the store's time of the request.
    #[must_use = "nothing is asked before it is awaited"]
    pub fn trigger<J: Job>(self) -> Triggering {
        self.trigger_named(J::NAME)
    }

    /// The same for a job by its name.
    #[must_use = "nothing is asked before it is awaited"]
    pub fn trigger_named(self, job: impl Into<String>) -> Triggering {
        Triggering {
            wish: self.wish(),
            job: job.into(),
        }
    }

    /// Asks for a run at each tick of a job's schedule from `from` to `to`, both included, whatever became of it in its time: oldest first,
    /// one after another, never beside another run of the job (with `overlap = "allow"` only not beside another of these).
    ///
    /// The span must be past (an end that is at most 5 s ahead of the store's clock counts as its present instant) and have at most 10,000
    /// ticks. Progress is kept in the store: a later leader goes on behind the last run.
    #[must_use = "nothing is asked before it is awaited"]
    pub fn backfill<J: Job>(self, from: Timestamp, to: Timestamp) -> Backfilling {
        self.backfill_named(J::NAME, from, to)
    }

    /// The same for a job by its name.
    #[must_use = "nothing is asked before it is awaited"]
    pub fn backfill_named(self, job: impl Into<String>, from: Timestamp, to: Timestamp) -> Backfilling {
        Backfilling {
            wish: self.wish(),
            job: job.into(),
            from,
            to,
        }
    }

    /// Withdraws an open request of a group; a run that has begun goes on.
    #[must_use = "nothing is asked before it is awaited"]
    pub fn cancel(self, group: impl Into<String>, request: u64) -> Cancelling {
        Cancelling {
            wish: self.wish(),
            group: group.into(),
            request,
        }
    }

    /// The pauses in force, the open requests and the newest acts of every group that this instance or the roster knows. Cancel safe.
    ///
    /// # Errors
    /// [`ControlError`], when the store does not answer.
    pub async fn state(self) -> Result<BTreeMap<GroupName, GroupControl>, ControlError> {
        let wish = self.wish();
        self.wish()
            .send(move |store| async move { wish.read(&*store).await })
            .await
    }

    fn wish(self) -> Wish {
        Wish {
            shared: Arc::clone(self.shared),
            by: self.shared.config.instance.to_string(),
            reason: String::new(),
        }
    }
}

/// A pause to be awaited.
#[derive(Clone, Debug)]
#[must_use = "nothing is asked before it is awaited"]
pub struct Pausing {
    wish: Wish,
    target: Target,
    gap: Gap,
    until: Option<Timestamp>,
}

impl Pausing {
    /// The ticks that fall due meanwhile stay open, and are decided when the pause ends.
    pub fn owed(mut self) -> Self {
        self.gap = Gap::Owed;
        self
    }

    /// The pause ends by itself, by the store's clock. What falls due at that instant or later is not paused any more.
    pub fn until(mut self, until: Timestamp) -> Self {
        self.until = Some(until);
        self
    }
}

/// The end of a pause, to be awaited.
#[derive(Clone, Debug)]
#[must_use = "nothing is asked before it is awaited"]
pub struct Resuming {
    wish: Wish,
    target: Target,
}

/// A run to be asked for by awaiting.
#[derive(Clone, Debug)]
#[must_use = "nothing is asked before it is awaited"]
pub struct Triggering {
    wish: Wish,
    job: String,
}

/// The runs of a past span, to be asked for by awaiting.
#[derive(Clone, Debug)]
#[must_use = "nothing is asked before it is awaited"]
pub struct Backfilling {
    wish: Wish,
    job: String,
    from: Timestamp,
    to: Timestamp,
}

/// A withdrawal to be awaited.
#[derive(Clone, Debug)]
#[must_use = "nothing is asked before it is awaited"]
pub struct Cancelling {
    wish: Wish,
    group: String,
    request: u64,
}

macro_rules! awaited {
    ($($Act:ident => $Output:ty, $do:ident;)*) => {$(
        impl $Act {
            /// Who does it: the instance's id, unless said. Cut to 200 characters, on one line.
            pub fn by(mut self, who: impl AsRef<str>) -> Self {
                self.wish.by = plain(who.as_ref()).replace('|', " ");
                self
            }

            /// Why, for whoever reads of it later. Cut to 200 characters, on one line.
            pub fn because(mut self, reason: impl AsRef<str>) -> Self {
                self.wish.reason = plain(reason.as_ref());
                self
            }
        }

        impl IntoFuture for $Act {
            type Output = Result<$Output, ControlError>;
            type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

            fn into_future(self) -> Self::IntoFuture {
                Box::pin(async move {
                    let wish = self.wish.clone();
                    wish.send(move |store| async move { self.$do(&*store).await }).await
                })
            }
        }
    )*};
}

awaited! {
    Pausing => Vec<Done>, pause;
    Resuming => Vec<Done>, resume;
    Triggering => Requested, trigger;
    Backfilling => Requested, backfill;
    Cancelling => Done, cancel;
}

pub(super) fn plain(words: &str) -> String {
    let plain = words.chars().map(|c| if c.is_control() { ' ' } else { c });
    plain.take(200).collect()
}

impl Wish {
    /// Has it done on the framework's thread.
    async fn send<T, F, Fut>(self, work: F) -> Result<T, ControlError>
    where
        T: Send + 'static,
        F: FnOnce(Arc<dyn Store>) -> Fut + Send + 'static,
        Fut: Future<Output = Result<T, ControlError>> + Send + 'static,
    {
        let (answer, done) = oneshot::channel();
        let errand = Errand(Box::new(move |store| {
            Box::pin(async move {
                let _ = answer.send(work(store).await);
            })
        }));
        self.shared.send(Input::Request(Request::Errand(errand)));
        done.await.map_err(|_| ControlError::Stopped)?
    }
}

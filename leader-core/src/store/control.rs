//! What people ask of a group: pauses and runs outside the schedule, kept in the store until they are met or ended.

use std::fmt;

use jiff::{SignedDuration, Timestamp};

use crate::job::tick::Origin;
use crate::names::{GroupName, JobName};

/// How many acts are kept for each group.
pub const KEPT_ACTS: usize = 256;
/// How many requests of a group may be open at once.
pub const OPEN_REQUESTS: usize = 100;

/// How many ended pauses of a group are kept for the ticks that fell due in them and are not decided yet.
pub const KEPT_ENDED: usize = 32;

/// What becomes of the ticks that fall due during a pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Gap {
    /// They are not run: each has the outcome `paused`.
    #[default]
    Skip,
    /// They stay open, and are decided when the pause ends: those within the job's `grace` run, its `missed` policy has the others.
    Owed,
}

impl Gap {
    /// The word for logs and the store.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Skip => "skip",
            Self::Owed => "owed",
        }
    }
}

impl fmt::Display for Gap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A pause of a job, or of all jobs of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Pause {
    /// The act's number.
    pub number: u64,
    /// The job; `None` for the group as a whole.
    pub job: Option<JobName>,
    /// What becomes of the ticks that fall due meanwhile.
    pub gap: Gap,
    /// When it began, by the server's clock.
    pub since: Timestamp,
    /// When it ends by itself, by the server's clock; `None`: when it is resumed.
    pub until: Option<Timestamp>,
    /// Who paused it.
    pub by: String,
    /// Why; may be empty.
    pub reason: String,
}

/// A request for runs outside the schedule that is not met yet.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OpenRequest {
    /// Its id: rising, and of this group alone.
    pub id: u64,
    /// The job.
    pub job: JobName,
    /// Whether it asks for one run now, or for those of a past span.
    pub origin: Origin,
    /// The instant of the run, or the beginning of the span.
    pub from: Timestamp,
    /// The end of the span, which belongs to it.
    pub to: Timestamp,
    /// The last tick of the span whose run was begun.
    pub done: Option<Timestamp>,
    /// When it was asked for, by the server's clock.
    pub asked_at: Timestamp,
    /// Who asked.
    pub by: String,
    /// Why; may be empty.
    pub reason: String,
}

/// Something that was done to a group by somebody.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Act {
    /// Its number: rising, and of this group alone.
    pub number: u64,
    /// When, by the server's clock.
    pub at: Timestamp,
    /// What.
    pub deed: Deed,
    /// On which job; `None` for the group as a whole.
    pub job: Option<JobName>,
    /// Who.
    pub by: String,
    /// Why; may be empty.
    pub reason: String,
}

/// What is done to a job or to a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Deed {
    /// It is paused.
    #[non_exhaustive]
    Pause {
        /// What becomes of the ticks that fall due meanwhile.
        gap: Gap,
        /// When the pause ends by itself.
        until: Option<Timestamp>,
    },
    /// Its pause is ended.
    Resume,
    /// One run is asked for.
    Trigger,
    /// A run is asked for at each tick of a past span, ends included.
    #[non_exhaustive]
    Backfill {
        /// The beginning.
        from: Timestamp,
        /// The end.
        to: Timestamp,
    },
    /// A request is withdrawn.
    #[non_exhaustive]
    Cancel {
        /// Its id.
        request: u64,
    },
}

impl Pause {
    /// Whether it speaks for this job.
    pub(crate) fn concerns(&self, job: &JobName) -> bool {
        self.job.as_ref().is_none_or(|own| own == job)
    }

    /// Whether it skips what falls due at this instant.
    pub(crate) fn skips(&self, at: Timestamp) -> bool {
        self.gap == Gap::Skip && self.since <= at && self.until.is_none_or(|until| at < until)
    }

    /// Where what falls due meets another answer than before.
    pub(crate) fn edges(&self) -> impl Iterator<Item = Timestamp> {
        let skips = self.gap == Gap::Skip;
        [Some(self.since), self.until]
            .into_iter()
            .flatten()
            .filter(move |_| skips)
    }
}

impl Deed {
    #[doc(hidden)]
    #[must_use]
    pub fn pause(gap: Gap, until: Option<Timestamp>) -> Self {
        Self::Pause { gap, until }
    }

    #[doc(hidden)]
    #[must_use]
    pub fn backfill(from: Timestamp, to: Timestamp) -> Self {
        Self::Backfill { from, to }
    }

    #[doc(hidden)]
    #[must_use]
    pub fn cancel(request: u64) -> Self {
        Self::Cancel { request }
    }

    /// The word for logs and the store.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Pause { .. } => "pause",
            Self::Resume => "resume",
            Self::Trigger => "trigger",
            Self::Backfill { .. } => "backfill",
            Self::Cancel { .. } => "cancel",
        }
    }
}

/// Something to be done.
#[derive(Clone, Debug)]
#[allow(clippy::exhaustive_structs, reason = "an internal message")]
pub struct ActRequest {
    /// The group.
    pub group: GroupName,
    /// The job; `None` for the group as a whole.
    pub job: Option<JobName>,
    /// What.
    pub deed: Deed,
    /// Who, without control characters and `|`.
    pub by: String,
    /// Why, without control characters.
    pub reason: String,
}

/// What came of an act.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "an internal message")]
pub enum Acted {
    /// It is done, under this number: the id of a request.
    Done {
        /// The number.
        number: u64,
        /// The server's time; of a trigger, the instant of its run.
        at: Timestamp,
        /// The pause that this one replaces or ends.
        before: Option<Pause>,
    },
    /// There is no such pause or request; nothing was changed.
    Nothing,
    /// So many requests are open already; nothing was changed.
    Full {
        /// How many.
        open: usize,
    },
    /// A pause would have ended already, or a span has not: the server's time. Nothing was changed.
    Untimely {
        /// The server's time.
        now: Timestamp,
    },
}

/// What is in force and open in a group, and what was done to it.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct GroupControl {
    /// The number of the newest act, or change of a schedule made at run time; 0 when there was none.
    pub number: u64,
    /// The pauses in force, that of the group first.
    pub pauses: Vec<Pause>,
    /// The pauses that skipped and are over, newest first; at most 32. Ticks that fell due in one while nobody led are paused as well.
    pub ended: Vec<Pause>,
    /// The requests that are not met yet, oldest first.
    pub requests: Vec<OpenRequest>,
    /// The newest acts, newest first; at most 256.
    pub acts: Vec<Act>,
    /// The number of the newest change of a schedule made at run time; 0 when there was none.
    pub(crate) made: u64,
}

/// For how long after its end a pause speaks for ticks that nobody has decided: as long as the scripts say. Whoever comes back later finds
/// missed ticks.
const SPEAKS: SignedDuration = SignedDuration::from_hours(32 * 24);

/// Those of the pauses that are over and are kept.
pub(crate) fn ended(over: impl Iterator<Item = Pause>, now: Timestamp) -> Vec<Pause> {
    let mut ended = speaking(over, now);
    ended.truncate(KEPT_ENDED);
    ended
}

/// Those of the pauses that are over and still speak for ticks, newest first. Until the next act they are as many as there were.
pub(crate) fn speaking(over: impl Iterator<Item = Pause>, now: Timestamp) -> Vec<Pause> {
    let speaks = |pause: &Pause| {
        let ends = pause.until.filter(|ends| *ends > pause.since);
        pause.gap == Gap::Skip && ends.is_some_and(|ends| now.duration_since(ends) <= SPEAKS)
    };
    let mut ended: Vec<_> = over.filter(speaks).collect();
    ended.sort_by_key(|pause| std::cmp::Reverse(pause.number));
    ended
}

/// The request that a claim meets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "an internal message")]
pub struct Meets {
    /// Its id.
    pub request: u64,
    /// Whether the schedule has more ticks in its span.
    pub more: bool,
}

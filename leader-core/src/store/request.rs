//! What is asked of a store and what it answers.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::control::Meets;
use super::coverage::Absence;
pub use super::ends::{End, SettleBatch, Settled};
use super::error::StoreError;
use super::tries::{Found, Further};
pub use crate::election::Oddity;
pub use crate::job::record::Overlap;
use crate::job::tick::Origin;
use crate::names::{GroupName, Holder, JobName};
pub use crate::schedule::missed::{Passed, PassedAs};
use crate::store::schedules::{StoredSchedule, Writer};

/// A wish for a lease.
#[derive(Clone, Debug)]
#[allow(clippy::exhaustive_structs, reason = "an internal message")]
pub struct Campaign {
    /// The group.
    pub group: GroupName,
    /// Who asks.
    pub holder: Holder,
    /// How long the lease shall live.
    pub ttl: Duration,
    /// How long the longest lease may live that anybody in the fleet has: what a quarantine lasts.
    pub longest: Duration,
    /// The highest term or fence the candidate has ever seen.
    pub known: u64,
    /// The caller's promise that no leader of an earlier life can believe: skips the quarantine of a group's first start.
    pub first_start: bool,
    /// The caller's promise that no other process of the holder's id is alive: a lease of that id counts as its own.
    pub only_one: bool,
    /// How long a vacancy is left to others.
    pub yields: Duration,
}

/// The answer to a campaign.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "an internal message")]
pub struct Campaigned {
    /// What was decided.
    pub verdict: Verdict,
    /// Who holds the lease, as the key spells it.
    pub holder: Option<Holder>,
    /// What was odd about the lease.
    pub oddity: Option<Oddity>,
}

/// What a campaign came to.
pub type Verdict = crate::election::CampaignReply;

/// A wish to prolong a lease.
#[derive(Clone, Debug)]
#[allow(clippy::exhaustive_structs, reason = "an internal message")]
pub struct Renewal {
    /// The group.
    pub group: GroupName,
    /// Who asks.
    pub holder: Holder,
    /// The term believed in.
    pub term: u64,
    /// How long the lease shall live from now.
    pub ttl: Duration,
}

/// The answer to a renewal.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "an internal message")]
pub enum Renewed {
    /// The lease was prolonged.
    Yes {
        /// The server's time.
        now: Timestamp,
        /// The request to step down that is meant for this term.
        asked: Option<Asked>,
        /// The number of the newest act of control; 0 when there was none.
        control: u64,
    },
    /// Holder or term did not match; nothing was done.
    NotYours {
        /// Who holds the lease now.
        holder: Option<Holder>,
        /// The store's term.
        term: u64,
    },
}

/// A request to step down, as its leader hears of it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "an internal message")]
pub struct Asked {
    /// The instance that asks.
    pub by: String,
    /// Why, in its own words; may be empty.
    pub reason: String,
}

/// A request to the leader of a group to step down.
#[derive(Clone, Debug)]
#[allow(clippy::exhaustive_structs, reason = "an internal message")]
pub struct Ask {
    /// The group.
    pub group: GroupName,
    /// The term that is meant; `None` for the present one.
    pub term: Option<u64>,
    /// When the request ends by itself.
    pub ends_after: Duration,
    /// Who asks and why.
    pub asked: Asked,
}

/// The answer to a request to step down.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "an internal message")]
pub enum AskReply {
    /// It is kept for the leader.
    Kept {
        /// The leader.
        holder: Holder,
        /// Its term.
        term: u64,
    },
    /// The term that was meant has ended.
    Over,
    /// Nobody leads.
    Vacant,
    /// Somebody leads who is not of this fleet and cannot be asked.
    Foreign {
        /// Who, as the key spells it.
        holder: Option<Holder>,
    },
}

/// The heartbeats of a group's runs on this instance.
#[derive(Clone, Debug)]
#[allow(clippy::exhaustive_structs, reason = "an internal message")]
pub struct Beats {
    /// The group.
    pub group: GroupName,
    /// The runs, by their fences.
    pub fences: Vec<u64>,
}

/// A run that is to end because a later tick takes its place.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "an internal message")]
pub struct Replaced {
    /// The group.
    pub group: GroupName,
    /// The run.
    pub fence: u64,
}

/// The answers to renewals and signs of life.
#[derive(Debug, Default)]
#[allow(clippy::exhaustive_structs, reason = "an internal message")]
pub struct Told {
    /// One answer for each renewal, in order.
    pub renewed: Vec<Result<Renewed, StoreError>>,
    /// The runs among those that gave a sign of life that are to end.
    pub replaced: Vec<Replaced>,
    /// Whether each batch of signs of life was taken, in order.
    pub beaten: Vec<bool>,
    /// The runs among them that are no longer their runner's: settled, or tried again by another.
    pub gone: Vec<Replaced>,
}

/// A lease that is given back.
#[derive(Clone, Debug)]
#[allow(clippy::exhaustive_structs, reason = "an internal message")]
pub struct Release {
    /// The group.
    pub group: GroupName,
    /// Who gives it back.
    pub holder: Holder,
    /// Its term.
    pub term: u64,
    /// Since when ticks were no longer claimed.
    pub draining_since: Option<Timestamp>,
}

/// A new leader's question; with the term [`UNLED`](super::UNLED), that of whoever may run the jobs of a group that need no leader.
#[derive(Clone, Debug)]
#[allow(clippy::exhaustive_structs, reason = "an internal message")]
pub struct TakeOver {
    /// The group.
    pub group: GroupName,
    /// The leader.
    pub holder: Holder,
    /// Its term.
    pub term: u64,
    /// The jobs it has.
    pub jobs: Vec<JobName>,
    /// The schedule of each, as text: written where the store keeps none.
    pub schedules: Vec<Arc<str>>,
    /// Who writes them.
    pub writer: Writer,
    /// The jobs of the group that other living instances have: those that the leader lacks are uncovered, and what nobody has is removed.
    /// `None` where that is not known.
    pub elsewhere: Option<Vec<JobName>>,
    /// The names that each job had before, newest first: where the store does not know the job, it goes on with what it keeps under the first
    /// of them that it knows.
    pub was: Vec<Vec<JobName>>,
    /// The other jobs of the same program and group, which are asked for apart: nothing goes on under their names.
    pub beside: Vec<JobName>,
}

/// What a new leader must know.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "an internal message")]
pub enum TakenOver {
    /// The lease is the asker's.
    Yours {
        /// The server's time.
        now: Timestamp,
        /// What fell due since then is late, whatever the policy: the predecessor drained.
        late_from: Option<Timestamp>,
        /// The cursor of each job, in the order asked.
        cursors: Vec<Timestamp>,
        /// The tick of each job that waits for an earlier run to end.
        waiting: Vec<Option<Timestamp>>,
        /// What is open of each job; how long a run has been silent is not told.
        open: Vec<Found>,
        /// The schedule of each job that is in force.
        schedules: Vec<StoredSchedule>,
        /// The number of the newest act of control; 0 when there was none.
        control: u64,
        /// The spans in which no leader could decide each job's ticks.
        absences: Vec<Vec<Absence>>,
        /// The name under which the store keeps each job: another than its own where a newer version of the program has renamed it.
        /// Claims go by this one.
        kept: Vec<JobName>,
    },
    /// It is not.
    NotYours,
}

/// Ticks of one group that are claimed in one step; with the term [`UNLED`](super::UNLED), by whoever comes first.
#[derive(Clone, Debug)]
#[allow(clippy::exhaustive_structs, reason = "an internal message")]
pub struct ClaimBatch {
    /// The group.
    pub group: GroupName,
    /// The leader.
    pub holder: Holder,
    /// Its term.
    pub term: u64,
    /// The highest fence the leader has ever seen.
    pub known: u64,
    /// The lowest number of a claim of this leadership whose answer may not be known yet: a run of one from here on is not dead.
    pub claiming: u64,
    /// From which number on claims are of the engine that asks. Without terms nothing else tells them from those of one that is gone, whose
    /// runs may have begun: they are lost when they have been silent.
    pub first: u64,
    /// How long a run may be silent before it is lost.
    pub silence: Duration,
    /// How long a run that is replaced may take to end before its successor begins beside it.
    pub patience: Duration,
    /// How long the leader has been connected without a break: a silence is judged only by one that would have heard.
    pub connected: Duration,
    /// The claims, those of one job in planned order.
    pub claims: Vec<Claim>,
    /// Who writes the schedules of the jobs, where the store has lost them or is to keep another.
    pub writer: Writer,
}

/// One claim.
#[derive(Clone, Debug)]
#[allow(clippy::exhaustive_structs, reason = "an internal message")]
pub struct Claim {
    /// The job.
    pub job: JobName,
    /// Names the claim together with holder and term: the same claim again gets the same answer.
    pub number: u64,
    /// The tick.
    pub tick: Timestamp,
    /// The cursor that the leader planned from.
    pub cursor: Timestamp,
    /// What the claim is for.
    pub want: Want,
    /// What becomes of it while an earlier run has not ended.
    pub overlap: Overlap,
    /// The outcomes of the ticks between cursor and tick.
    pub passed: Vec<Passed>,
    /// The runs of the job that live on this instance, by their fences.
    pub alive: Vec<u64>,
    /// What the job's runs have of further tries; `None` when they have none.
    pub further: Option<Further>,
    /// The schedule that the tick is one of, as text: no claim is won by another than the store's. Empty outside the schedule.
    pub schedule: Arc<str>,
    /// The schedule that [`Want::Adopt`] brings; empty otherwise.
    pub adopts: Arc<str>,
    /// The request that the run meets: moved on, or removed, in the step that begins the run.
    pub meets: Option<Meets>,
}

/// What a claim is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "an internal message")]
pub enum Want {
    /// Run the tick; what an earlier run means for it, the job's overlap policy says.
    Run,
    /// Run the tick as soon as no earlier run is left.
    Owed,
    /// Run the tick, which waits in the store, as soon as no earlier run is left.
    Waited,
    /// Only settle what has passed; the tick is the last of it.
    Settle,
    /// Put another schedule in force: its ticks are those after the claim's instant, up to which all of the one before are decided.
    Adopt,
    /// A run of its own origin: the cursor is neither asked nor moved.
    Extra(Origin),
    /// Try a run again that pauses, as soon as its time has come.
    Retry {
        /// The fence of the try that failed.
        fence: u64,
        /// Which try that was: the engine may have forgotten it by the time of the answer, as when a drain has begun.
        tries: u32,
    },
    /// Only look at what is open, and settle what is dead.
    Look,
}

/// The answer to a batch of claims.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "an internal message")]
pub enum Claimed {
    /// The lease is the asker's: one answer for each claim.
    Yours(Vec<ClaimReply>),
    /// It is not; nothing was done.
    NotYours,
}

/// The answer to one claim.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "an internal message")]
pub enum ClaimReply {
    /// The run is recorded, under this fence.
    Won {
        /// The run's fence.
        fence: u64,
    },
    /// An earlier run has not ended: the tick is settled as `overlap_skipped`.
    Overlapped,
    /// An earlier run has not ended: the tick waits in the store.
    Waits,
    /// Earlier runs have not ended and are asked to: nothing else was done.
    Replacing,
    /// The ticks are settled; or the tick that was to have waited does no longer, or the run that was to be tried again pauses no longer.
    Passed,
    /// The run pauses on: nothing was done.
    Early {
        /// For so long.
        left: Duration,
    },
    /// What is open.
    Looked(Found),
    /// An earlier run has not ended and the tick is owed: nothing was done.
    Busy,
    /// The job is paused, and what fell due since then is settled as `paused`, the tick included.
    Paused {
        /// When the pause began.
        since: Timestamp,
    },
    /// The job is paused and its ticks stay open: nothing was done.
    Held {
        /// When the pause ends by itself.
        until: Option<Timestamp>,
    },
    /// The job is paused since an instant within a span of passed ticks, which must be handed over in two parts: nothing was done.
    Split {
        /// When the pause began.
        since: Timestamp,
    },
    /// The request is met or withdrawn: nothing was done.
    Gone,
    /// The store's cursor is another; nothing was done.
    Moved {
        /// The store's cursor.
        cursor: Timestamp,
        /// The tick that waits in the store: whoever moved the cursor may not have heard that it does.
        waiting: Option<Timestamp>,
    },
    /// The store keeps another schedule of the job than the claim was planned by; nothing was done.
    OtherSchedule,
    /// The schedule that was to be adopted is in force.
    Adopted {
        /// The cursor.
        cursor: Timestamp,
    },
}

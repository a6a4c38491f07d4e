//! The one list of things worth telling.

mod reader;
mod scheduling;
mod tasks;

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::clock::Moment;
use crate::election::{Lost, Oddity};
use crate::job::outcome::Outcome;
use crate::job::tick::Origin;
use crate::names::{GroupName, InstanceId, JobName};
use crate::store::{Finding, OpenRequest, Pause};

pub(crate) use reader::BACKLOG;
pub use reader::{Events, EventsError, Stamped};
pub use scheduling::{Scheduling, SchedulingNews};
pub use tasks::TaskNews;

/// Something that happened on this instance.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// The instance has joined its fleet and takes part in its elections.
    #[non_exhaustive]
    Started {
        /// The instance.
        instance: InstanceId,
    },
    /// This instance leads a group.
    #[non_exhaustive]
    Elected {
        /// The group.
        group: GroupName,
        /// The new term.
        term: u64,
    },
    /// This instance leads a group no longer.
    #[non_exhaustive]
    Lost {
        /// The group.
        group: GroupName,
        /// The term that ended.
        term: u64,
        /// Why.
        reason: Lost,
        /// When belief ended. A frozen process tells it only after it wakes.
        ended: Moment,
    },
    /// This instance gives a group up: nothing new is started, and running bodies have been told.
    #[non_exhaustive]
    Draining {
        /// The group.
        group: GroupName,
        /// The term.
        term: u64,
    },
    /// A renewal failed; it is retried while trust lasts.
    #[non_exhaustive]
    RenewalFailed {
        /// The group.
        group: GroupName,
        /// The term.
        term: u64,
        /// How many failed in a row.
        failures: u32,
    },
    /// Nobody may lead a group yet: its first start ever, or the store has lost data, and an old leader may still believe.
    #[non_exhaustive]
    Quarantined {
        /// The group.
        group: GroupName,
        /// For how long.
        remaining: Duration,
    },
    /// A lease was found in an odd state. Told when it is first seen, and again after it was gone.
    #[non_exhaustive]
    OddLease {
        /// The group.
        group: GroupName,
        /// Who holds it, as far as that can be told.
        holder: Option<String>,
        /// What is odd.
        oddity: Oddity,
    },
    /// Another instance has asked this one to step down: it drains and gives the group up.
    #[non_exhaustive]
    StepDownAsked {
        /// The group.
        group: GroupName,
        /// The term that the request is meant for.
        term: u64,
        /// Who asked.
        by: String,
        /// Why, in the asker's words; may be empty.
        reason: String,
    },
    /// Another process of the same instance id is alive. From now on neither takes a lease of the other.
    #[non_exhaustive]
    DuplicateId {
        /// The id.
        instance: InstanceId,
        /// The other process: the id and its random part.
        other: String,
        /// Whether this instance was promised to be the only one: the other may have taken its leases.
        exclusive: bool,
    },
    /// This instance leads a group and lacks a job of it that another instance has: the job does not run.
    #[non_exhaustive]
    Uncovered {
        /// The group.
        group: GroupName,
        /// The job.
        job: String,
        /// An instance that has it.
        member: String,
    },
    /// A job's ticks are decided up to an instant of the future: nothing of it runs before. A clock was wrong, or somebody wrote the cursor.
    #[non_exhaustive]
    CursorAhead {
        /// The group.
        group: GroupName,
        /// The job.
        job: JobName,
        /// The last decided tick.
        cursor: Timestamp,
    },
    /// A job's schedule in force is a living newer version's: this leader follows it, with its own body. Told once for each schedule.
    #[non_exhaustive]
    ScheduleFollowed {
        /// The group.
        group: GroupName,
        /// The job.
        job: JobName,
        /// The schedule that is followed.
        schedule: String,
        /// The version that wrote it.
        version: String,
    },
    /// This leader has put its own schedule of a job into force, after every tick of the one before was decided.
    #[non_exhaustive]
    ScheduleChanged {
        /// The group.
        group: GroupName,
        /// The job.
        job: JobName,
        /// The one before.
        from: String,
        /// The new one.
        to: String,
        /// Its ticks are those after this instant.
        since: Timestamp,
    },
    /// A job's schedule in force is one that this version cannot read: it is replaced by this leader's own at once, and what fell due by it
    /// since its last decided tick is not counted.
    #[non_exhaustive]
    ScheduleUnreadable {
        /// The group.
        group: GroupName,
        /// The job.
        job: JobName,
        /// The schedule as the store keeps it.
        schedule: String,
        /// The version that wrote it.
        version: String,
    },
    /// This instance gives a group up for another that has more of the group's jobs, or that the group prefers among equals.
    #[non_exhaustive]
    MakingWay {
        /// The group.
        group: GroupName,
        /// The term that ends.
        term: u64,
        /// The other instance.
        member: String,
    },
    /// Other living instances read time zones from another version of the database, and this one has jobs with a `timezone`: they may
    /// plan different ticks. Told once for each version, when the first instance is seen to have it.
    #[non_exhaustive]
    TimeZonesDiffer {
        /// One of them.
        instance: String,
        /// How many they are.
        instances: usize,
        /// Their version, as in [`Member::time_zones`](crate::Member::time_zones).
        theirs: String,
        /// This instance's.
        ours: String,
    },
    /// The store's clock was stepped, as three looks at it agree; or this machine stood still with its monotonic clock, as when it was
    /// moved. Forwards, ticks go on after a leap, which the policy of each job decides; backwards, they wait.
    #[non_exhaustive]
    ClockStepped {
        /// By so much, compared with the time that ticks are planned by.
        by: SignedDuration,
    },
    /// This instance's own wall clock has come to differ from the store's by more than 5 s. Ticks go by the store's, so none is moved;
    /// but what the program itself asks that clock is off by so much.
    #[non_exhaustive]
    ClockAstray {
        /// How far the wall clock is ahead of the store's; negative when it is behind.
        by: SignedDuration,
    },
    /// This instance's own wall clock differs from the store's by no more than 4 s again.
    #[non_exhaustive]
    ClockRight {
        /// How far it is ahead of the store's; negative when it is behind.
        by: SignedDuration,
    },
    /// Most instances of the fleet disagree with the store's clock by more than 5 s, and in the same way: that clock is probably wrong,
    /// and no tick is claimed. Leads, and what runs, go on. It ends when they agree again, or is overruled by
    /// [`follow_store_clock`](crate::Bootstrap::follow_store_clock).
    #[non_exhaustive]
    ClockDisputed {
        /// How far this instance's wall clock is ahead of the store's.
        ours: SignedDuration,
        /// How far theirs are.
        theirs: SignedDuration,
        /// How many instances disagree in this way.
        instances: usize,
        /// Of how many that have measured their offset.
        of: usize,
    },
    /// Most of the fleet no longer disagrees with the store's clock: ticks go on, and each job's policy decides what it owes.
    #[non_exhaustive]
    ClockAgreed {
        /// How far this instance's wall clock is ahead of the store's.
        ours: SignedDuration,
    },
    /// A job of a group that is led here is paused, or the group as a whole: told when its leader learns of it.
    #[non_exhaustive]
    Paused {
        /// The group.
        group: GroupName,
        /// What is paused, until when, by whom and why.
        pause: Pause,
    },
    /// A pause has ended.
    #[non_exhaustive]
    Resumed {
        /// The group.
        group: GroupName,
        /// The job; `None` for all of the group.
        job: Option<JobName>,
        /// Who ended it; empty when it has ended by itself.
        by: String,
        /// Why; may be empty.
        reason: String,
    },
    /// A schedule made at run time came, changed or ended, or cannot be run here.
    Scheduling(Scheduling),
    /// Runs outside the schedule are asked for.
    #[non_exhaustive]
    Requested {
        /// The group.
        group: GroupName,
        /// Which, by whom and why.
        request: OpenRequest,
    },
    /// A job's body was started.
    #[non_exhaustive]
    RunStarted {
        /// The job.
        job: JobName,
        /// Its group.
        group: GroupName,
        /// The planned instant.
        scheduled_at: Timestamp,
        /// When the body was started, by the wall clock.
        started_at: Timestamp,
        /// The run's fence.
        fence: u64,
        /// The term it runs under.
        term: u64,
        /// Why it was made.
        origin: Origin,
        /// Which try of the run it is, from 1.
        attempt: u32,
    },
    /// A try of a run has failed, and the run is tried again: it is not decided yet.
    #[non_exhaustive]
    RunFailed {
        /// The job.
        job: JobName,
        /// Its group.
        group: GroupName,
        /// The planned instant.
        scheduled_at: Timestamp,
        /// The fence of the try.
        fence: u64,
        /// Which try it was, from 1.
        attempt: u32,
        /// How it ended.
        outcome: Outcome,
        /// The body's error; empty for none.
        error: String,
        /// When the next try may begin, by the store's clock.
        again_at: Timestamp,
    },
    /// What became of one tick, or of several in a row, is recorded.
    #[non_exhaustive]
    Decided {
        /// The job.
        job: JobName,
        /// Its group.
        group: GroupName,
        /// The first tick.
        first: Timestamp,
        /// The last tick.
        last: Timestamp,
        /// How many.
        count: u64,
        /// What became of them.
        outcome: Outcome,
        /// The run's fence; 0 without a run.
        fence: u64,
        /// Why the run was made.
        origin: Origin,
        /// The body's error; empty for none.
        error: String,
    },
    /// A body that was asked to end, because of its time-out, a later tick or the end of the leadership, has not returned for long: most
    /// probably it blocks its thread. It keeps its slot, so that the overlap policy holds up later ticks. Told once for each run.
    #[non_exhaustive]
    RunStuck {
        /// The job.
        job: JobName,
        /// Its group.
        group: GroupName,
        /// The planned instant.
        scheduled_at: Timestamp,
        /// The run's fence.
        fence: u64,
        /// How long ago it was asked to end.
        asked_ago: Duration,
    },
    /// A long-lived body ended before its leadership did, and is started again after a pause.
    #[non_exhaustive]
    BodyEnded {
        /// The body's name.
        name: JobName,
        /// Its group.
        group: GroupName,
        /// The error or panic; empty for none.
        error: String,
        /// The pause.
        again_in: Duration,
    },
    /// What a look at the store says of its fitness, told at the start and again when it has changed after an outage.
    #[non_exhaustive]
    StoreFound {
        /// What was found, and what to do.
        finding: Finding,
    },
    /// The runtime of the bodies has run nothing for one TTL, as when blocking code holds every worker: no group is led here meanwhile.
    #[non_exhaustive]
    RuntimeWedged {
        /// Since when it has run nothing.
        since: Moment,
        /// The jobs that are under way here, one of which may be what blocks it.
        running: Vec<String>,
    },
    /// That runtime runs again, and the instance takes part again.
    RuntimeRecovered,
    /// The framework's own work panicked: every lead is lost, running bodies are dropped, and after a pause it is started again.
    #[non_exhaustive]
    EnginePanicked {
        /// The panic.
        error: String,
        /// The pause; `None` when the instance was stopping, and stops.
        again_in: Option<Duration>,
    },
    /// An operation of the store failed: each error is told when it first comes, and once a minute while it lasts.
    #[non_exhaustive]
    StoreFailed {
        /// The error and its causes.
        error: String,
    },
    /// The store answers again.
    StoreRecovered,
    /// Another service is alive in the namespace: this instance stands by.
    #[non_exhaustive]
    OtherService {
        /// That service.
        service: String,
        /// One of its instances.
        instance: String,
    },
    /// Something happened to tasks.
    Tasks(TaskNews),
    /// The instance has left its fleet.
    #[non_exhaustive]
    Stopped {
        /// The instance.
        instance: InstanceId,
    },
}

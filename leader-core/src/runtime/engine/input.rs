//! What reaches the engine.

use std::pin::Pin;
use std::sync::Arc;

#[cfg(feature = "testing")]
use jiff::Timestamp;
use tokio::sync::oneshot;

use super::lives::LifeId;
use super::runs::RunId;
use crate::clock::Moment;
use crate::election::Attempt;
use crate::names::{GroupName, JobName};
use crate::runtime::config::LifeSpec;
use crate::runtime::fleet::Member;
use crate::runtime::guarded::Ending;
use crate::runtime::process::Process;
use crate::runtime::requests::StepDownError;
use crate::store::{
    Beats, Campaigned, Claimed, End, Enrolled, Finding, GroupControl, MadeList, Renewed, Replaced, Roster, Settled,
    Store, StoreError, TakenOver,
};

/// A group, by its index in the engine.
pub(super) type Group = usize;

/// Who waits for a read of the roster.
pub(crate) type FleetAnswer = oneshot::Sender<Result<Vec<Member>, StoreError>>;

/// The answers to a batch: group, attempt, answer.
pub(crate) type GroupAnswers<T> = Vec<(Group, Attempt, Result<T, StoreError>)>;

#[derive(Debug)]
pub(crate) enum Input {
    Campaigned(GroupAnswers<Campaigned>),
    Renewed {
        sent: Moment,
        answers: GroupAnswers<Renewed>,
        replaced: Vec<Replaced>,
        /// The signs of life that went along, and whether they were taken.
        beaten: Vec<(Beats, bool)>,
        /// The runs that are no longer ours.
        gone: Vec<Replaced>,
    },
    Released {
        group: Group,
        attempt: Attempt,
        answer: Result<(), StoreError>,
    },
    TakenOver {
        group: Group,
        term: u64,
        sent: Moment,
        jobs: Vec<usize>,
        answer: Result<TakenOver, StoreError>,
    },
    Covered {
        group: Group,
        term: u64,
        answer: Result<bool, StoreError>,
    },
    Claimed {
        id: u64,
        answers: Vec<Result<Claimed, StoreError>>,
    },
    Settled {
        ends: Vec<(Group, Vec<End>)>,
        answers: Vec<Result<Vec<Settled>, StoreError>>,
    },
    Enrolled {
        sent: Moment,
        answer: Result<Enrolled, StoreError>,
    },
    Inspected(Result<Vec<Finding>, StoreError>),
    Roster(Result<Roster, StoreError>),
    Left,
    RunEnded {
        id: RunId,
        ending: Ending,
    },
    LifeEnded {
        id: LifeId,
        ending: Ending,
    },
    /// A question to the store panicked.
    Unanswerable(String),
    /// The runtime of the bodies has run this probe.
    Probed(u64),
    CallsIdle,
    HooksIdle,
    Told {
        group: String,
        term: u64,
    },
    Asked {
        group: String,
        term: u64,
    },
    /// Something was done to a group.
    Controlled {
        group: String,
        number: u64,
    },
    ControlRead {
        group: Group,
        term: u64,
        answer: Result<GroupControl, StoreError>,
    },
    MadeRead {
        group: Group,
        term: u64,
        after: u64,
        answer: Result<MadeList, StoreError>,
    },
    /// The store has been asked to forget a schedule that has ended.
    Forgotten,
    Gap,
    Deaf(StoreError),
    Request(Request),
}

type Question = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A question of a handle to the store, which answers by itself.
pub(crate) struct Errand(pub(crate) Box<dyn FnOnce(Arc<dyn Store>) -> Question + Send>);

impl std::fmt::Debug for Errand {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Errand")
    }
}

impl Errand {
    pub(super) fn run(self, process: &Process, store: &Arc<dyn Store>) {
        tokio::spawn(process.hold((self.0)(Arc::clone(store))));
    }
}

/// What a handle asks of its instance.
#[derive(Debug)]
pub(crate) enum Request {
    /// Give up the lead of a group, here or wherever it is led; answered when that term has ended.
    StepDown {
        group: GroupName,
        reason: String,
        done: oneshot::Sender<Result<(), StepDownError>>,
    },
    Fleet {
        answer: FleetAnswer,
    },
    /// Ask the store something, in a task of its own.
    Errand(Errand),
    Shutdown {
        done: oneshot::Sender<()>,
    },
    /// The runtime of the bodies is gone.
    RuntimeGone {
        done: oneshot::Sender<()>,
    },
    /// Vanish like a killed process: nothing is released and nobody is told.
    #[cfg(feature = "testing")]
    Kill,
    /// Stand still for a while, like a frozen process.
    #[cfg(feature = "testing")]
    Freeze(std::time::Duration),
    /// Panic, like an engine with a mistake in it, or like a store with one.
    #[cfg(feature = "testing")]
    Panic {
        in_a_question: bool,
    },
    Live(LifeSpec),
    EndLife(JobName),
    #[cfg(feature = "testing")]
    RunTick {
        job: usize,
        at: Timestamp,
        done: super::ticks::Asker,
    },
}

/// Why an instance could not start.
#[derive(Clone, Debug)]
pub(crate) enum Refused {
    OtherService {
        service: String,
        instance: String,
    },
    Unreachable(StoreError),
    /// The store cannot hold leases.
    Unfit(Vec<Finding>),
}

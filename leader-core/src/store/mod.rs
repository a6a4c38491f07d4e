//! The seam between an instance and its store.
//!
//! Every operation is one atomic step of the store, and does nothing unless holder and term both match what the store knows.
#![cfg_attr(
    not(all(feature = "redis", feature = "testing")),
    allow(
        dead_code,
        unreachable_pub,
        unused_imports,
        reason = "the suites reach these items through the hidden seam of the feature `testing`"
    )
)]

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use crate::names::{GroupName, JobName};

pub(crate) mod control;
pub(crate) mod coverage;
pub(crate) mod embedded;
pub(crate) mod ends;
pub(crate) mod error;
pub(crate) mod explain;
pub(crate) mod finding;
pub(crate) mod ledger;
pub(crate) mod made;
#[cfg(feature = "redis")]
pub(crate) mod redis;
pub(crate) mod request;
pub(crate) mod roster;
pub(crate) mod schedules;
#[cfg(feature = "tasks")]
pub(crate) mod tasks;
pub(crate) mod tries;
pub(crate) mod unled;

pub use control::*;
pub use coverage::{Absence, AbsenceKind, Cover};
pub use error::{StoreError, StoreErrorKind};
pub use finding::{Finding, FindingKind};
pub use ledger::{JobLedger, LedgerRecord, OpenRun};
pub use made::*;
pub use request::*;
pub use roster::*;
pub use schedules::{EarlierSchedule, StoredSchedule, Writer};
#[cfg(feature = "tasks")]
pub use tasks::*;
pub use tries::*;
pub use unled::UNLED;

/// The answer of a store, bounded in time by the store itself.
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;
/// Answers of a batch: each is judged on its own.
pub type Answers<'a, T> = Pin<Box<dyn Future<Output = Vec<Result<T, StoreError>>> + Send + 'a>>;

/// What a store does. The contract suite states what each operation must keep.
///
/// Dropping an answer's future does not undo the operation: it may have run, or may still run.
pub trait Store: fmt::Debug + Send + Sync {
    /// Where the store is, for people: no password.
    fn address(&self) -> String;

    /// Whether the store is a fleet of this process alone.
    fn is_embedded(&self) -> bool {
        false
    }

    /// Looks at what the store says of itself: what a person should know of its fitness to hold leases.
    fn inspect(&self) -> Answer<'_, Vec<Finding>>;

    /// Asks for leases. One round trip; one answer for each request.
    fn campaign(&self, requests: Vec<Campaign>) -> Answers<'_, Campaigned>;

    /// Prolongs leases and tells of living runs. Never acquires. One round trip; one answer for each renewal.
    fn renew(&self, renewals: Vec<Renewal>, beats: Vec<Beats>) -> Pin<Box<dyn Future<Output = Told> + Send + '_>>;

    /// Gives a lease back and wakes the standbys.
    fn release(&self, request: Release) -> Answer<'_, ()>;

    /// Asks the leader of a group to step down.
    fn ask(&self, request: Ask) -> Answer<'_, AskReply>;

    /// Reads what a new leader must know of its jobs; a job without a cursor starts now.
    fn take_over(&self, request: TakeOver) -> Answer<'_, TakenOver>;

    /// Marks which jobs of a group its leader lacks, after the fleet has changed. Whether the asker leads.
    fn cover(&self, request: Cover) -> Answer<'_, bool>;

    /// Claims ticks: all of a batch in one round trip, each batch in one atomic step.
    fn claim(&self, batches: Vec<ClaimBatch>) -> Answers<'_, Claimed>;

    /// Records how runs ended.
    fn settle(&self, batches: Vec<SettleBatch>) -> Answers<'_, Vec<Settled>>;

    /// Reads a job's part of the ledger.
    fn ledger<'a>(&'a self, group: &'a GroupName, job: &'a JobName) -> Answer<'a, JobLedger>;

    /// Keeps what is done to a group by people: one atomic step, told at once.
    fn act(&self, request: ActRequest) -> Answer<'_, Acted>;

    /// Reads what is in force and open in a group, and what was done to it.
    fn control<'a>(&'a self, group: &'a GroupName) -> Answer<'a, GroupControl>;

    /// Makes a schedule at run time, or ends it: one atomic step with the state of its job, told at once.
    fn make(&self, request: MakeRequest) -> Answer<'_, MadeReply>;

    /// Reads a group's schedules made at run time, with the payloads of those that were changed after this number.
    fn made<'a>(&'a self, group: &'a GroupName, after: u64) -> Answer<'a, MadeList>;

    /// Writes this instance into the roster, unless another service is alive in the namespace.
    fn enrol(&self, entry: Entry) -> Answer<'_, Enrolled>;

    /// Takes this instance out of the roster.
    fn leave(&self, holder: crate::Holder) -> Answer<'_, ()>;

    /// Reads the roster.
    fn roster(&self) -> Answer<'_, Roster>;

    /// The tasks of the same store.
    #[cfg(feature = "tasks")]
    fn tasks(&self) -> &dyn TaskStore;

    /// Listens for releases and requests for ever: hints only.
    fn listen(&self, ears: Arc<dyn Ears>) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;
}

/// Who is told of releases and requests.
pub trait Ears: Send + Sync {
    /// The lease of `term` was given back.
    fn released(&self, group: &str, term: u64);
    /// The leader of `term` is asked to step down.
    fn asked(&self, group: &str, term: u64);
    /// Something was done to a group, under this number.
    fn controlled(&self, group: &str, number: u64);
    /// A task that is due at this instant is the first of its shard.
    #[cfg(feature = "tasks")]
    fn due(&self, group: &str, at: jiff::Timestamp);
    /// Something may have been missed.
    fn gap(&self);
    /// Nothing will be heard, because the store does not allow it.
    fn deaf(&self, error: StoreError);
}

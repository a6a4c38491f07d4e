//! The embedded store as a server of its own, which outlives its fleets: it restarts, forgets, fills up and is failed over.
//!
//! For suites and the simulator. Its lease times follow its wall clock, as a Redis' do.

use std::collections::BTreeMap;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::quarantine::{GRAIN, Marks, whole};
use super::step::{State, as_moment, whole_millis};
use super::told::Message;
use super::{Data, Embedded, Group, Lease};
use crate::clock::{Clock, Moment};
use crate::names::{GroupName, Holder, JobName, Namespace};
use crate::store::ledger::JobLedger;

/// One process of a server.
#[derive(Clone, Debug)]
pub(super) struct Process {
    pub(super) id: u64,
    /// When it was started, by its own clock.
    started: Timestamp,
    /// Whether it tells that it keeps an append-only file.
    pub(super) appendonly: bool,
    /// Whether it has no memory left.
    pub(super) full: bool,
    /// Whether it follows another, and takes no writes.
    pub(super) readonly: bool,
    /// How far its wall clock is ahead of what its machine's says.
    ahead: SignedDuration,
}

impl Process {
    pub(super) fn wall(&self, clock: &Clock) -> Timestamp {
        let wall = clock.wall();
        wall.saturating_add(self.ahead).unwrap_or(wall)
    }

    /// How long it has run at the least, in ms: it counts whole seconds of its wall clock. `None` where that was set back to before
    /// the start, which scripts cannot read.
    pub(super) fn age(&self, now: Timestamp) -> Option<i64> {
        let uptime = now.as_millisecond().div_euclid(1_000) - self.started.as_millisecond().div_euclid(1_000);
        (uptime >= 0).then_some((uptime - 1) * 1_000)
    }
}

fn next_id() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    LAST.fetch_add(1, Ordering::Relaxed)
}

/// An embedded store that is a server. Clones are handles of the same one.
#[derive(Clone, Debug)]
pub struct EmbeddedServer(Embedded);

/// Everything that a server held at an instant.
#[derive(Clone, Debug)]
pub struct Snapshot(BTreeMap<Namespace, Data>);

/// What a server has left of its data after a restart.
#[derive(Clone, Debug)]
#[allow(clippy::exhaustive_enums, reason = "for the workspace's own suites")]
pub enum Left {
    /// All of it.
    Everything,
    /// None.
    Nothing,
    /// What it held at an earlier instant.
    AsOf(Snapshot),
}

/// A part of what is kept of a group.
#[derive(Clone, Debug)]
#[allow(clippy::exhaustive_enums, reason = "for the workspace's own suites")]
pub enum Part {
    /// The key that names the leader.
    Lease,
    /// What is known of the lead: terms, birth mark, last renewal, the numbers of acts.
    State,
    /// The counter of terms and fences.
    Fence,
    /// The signs of life of its runs.
    Beats,
    /// The cursor of a job, its open runs and counts; its records stay.
    Job(JobName),
    /// All of it.
    All,
}

/// What somebody else has written over the key of a lease.
#[derive(Clone, Debug)]
#[allow(clippy::exhaustive_enums, reason = "for the workspace's own suites")]
pub enum Written {
    /// A holder, until a span has passed or for ever.
    Holder(Holder, Option<Duration>),
    /// A key of another type.
    OtherType,
}

/// What a server knows of one group, for who checks it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "for the workspace's own suites")]
pub struct GroupLook {
    /// The namespace.
    pub namespace: Namespace,
    /// The group.
    pub group: GroupName,
    /// Whom the lease names, if it has not ended.
    pub holder: Option<Holder>,
    /// The term of the last one that was granted.
    pub term: u64,
    /// When the lease ends; `None` where there is none, or it has no end.
    pub ends_in: Option<Duration>,
    /// The highest term or fence that was minted.
    pub fence: u64,
    /// Its jobs.
    pub jobs: Vec<JobLook>,
}

/// What a server knows of one job.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "for the workspace's own suites")]
pub struct JobLook {
    /// The job.
    pub job: JobName,
    /// The last settled tick.
    pub cursor: Option<Timestamp>,
    /// The highest fence among its runs, open or recorded; 0 without any.
    pub fence: u64,
}

impl EmbeddedServer {
    /// A server without data, started now. Without an append-only file, until it is told to have one.
    #[must_use]
    pub fn on(clock: Clock) -> Self {
        let process = Process {
            id: next_id(),
            started: clock.wall(),
            appendonly: false,
            full: false,
            readonly: false,
            ahead: SignedDuration::ZERO,
        };
        let state = State {
            process: Some(process),
            ..State::default()
        };
        Self(Embedded::with_state(clock, state))
    }

    /// What an instance is given to live on it.
    #[must_use]
    pub fn store(&self) -> Embedded {
        self.0.clone()
    }

    /// Everything that it holds now.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        self.with(|state, _| Snapshot(state.data.clone()))
    }

    /// Another process begins, with what is left. Whoever listens may have missed something.
    pub fn restart(&self, left: Left) {
        self.with(|state, now| {
            match left {
                Left::Everything => {}
                Left::Nothing => state.data.clear(),
                Left::AsOf(Snapshot(data)) => state.data = data,
            }
            let Some(process) = &mut state.process else { return };
            (process.id, process.started) = (next_id(), now);
            if !process.appendonly {
                // Keys that have ended are not loaded.
                let now = as_moment(whole_millis(now));
                let groups = state.data.values_mut().flat_map(|data| data.groups.values_mut());
                groups.for_each(|group| {
                    let _ = group.held(now);
                });
            }
        });
        self.cut_listeners();
    }

    /// Forgets everything, as `FLUSHALL` does.
    pub fn flush(&self) {
        self.with(|state, _| state.data.clear());
    }

    /// Forgets a part of a group.
    pub fn lose(&self, namespace: &Namespace, group: &GroupName, part: &Part) {
        self.with(|state, _| {
            let groups = state.data.get_mut(namespace).map(|data| &mut data.groups);
            let Some(groups) = groups else { return };
            if matches!(part, Part::All) {
                groups.remove(group);
            } else if let Some(group) = groups.get_mut(group) {
                lose(group, part);
            }
        });
    }

    /// Writes over the key of a lease, as another program does.
    pub fn write_lease(&self, namespace: &Namespace, group: &GroupName, written: Written) {
        self.with(|state, now| {
            let now = as_moment(whole_millis(now));
            let (holder, lasts) = match written {
                Written::Holder(holder, lasts) => (Some(holder), lasts),
                Written::OtherType => (None, None),
            };
            let ends = lasts.map_or(Moment::MAX, |lasts| now + whole(lasts) + GRAIN);
            let data = state.data.entry(namespace.clone()).or_default();
            data.groups.entry(group.clone()).or_default().lease = Some(Lease { holder, ends });
        });
    }

    /// Whether it has no memory left: writes that need some are refused with `OOM`.
    pub fn set_full(&self, full: bool) {
        self.with_process(|process| process.full = full);
    }

    /// Whether it follows another: writes are refused with `READONLY`.
    pub fn set_readonly(&self, readonly: bool) {
        self.with_process(|process| process.readonly = readonly);
    }

    /// Whether it tells that it keeps an append-only file, so that a restart has lost the last moments at the most.
    pub fn set_appendonly(&self, appendonly: bool) {
        self.with_process(|process| process.appendonly = appendonly);
    }

    /// Whether it tells that it keeps an append-only file.
    #[must_use]
    pub fn appendonly(&self) -> bool {
        self.with(|state, _| state.process.as_ref().is_some_and(|process| process.appendonly))
    }

    /// When it is to have been started, by its own clock: a replica may be younger or older than its primary.
    pub fn set_started(&self, started: Timestamp) {
        self.with_process(|process| process.started = started);
    }

    /// Steps its wall clock: forward, and leases end early; back, and they last longer.
    pub fn step_clock(&self, by: SignedDuration) {
        self.with_process(|process| process.ahead += by);
    }

    /// Another writable server with the same data, as a failover leaves two of them: of another process, as old as this one.
    #[must_use]
    pub fn fork(&self) -> Self {
        let clock = self.0.clock().clone();
        let state = self.with(|state, _| State {
            data: state.data.clone(),
            process: state.process.clone().map(|process| Process {
                id: next_id(),
                ..process
            }),
        });
        Self(Embedded::with_state(clock, state))
    }

    /// Holds what another has held at an earlier instant, as a replica that lags does.
    pub(crate) fn hold(&self, Snapshot(data): Snapshot) {
        self.with(|state, _| state.data = data);
    }

    /// Puts a replica in this server's place: its process, and its data, which may lag.
    pub fn promote(&self, replica: &Self) {
        let promoted = replica.with(|state, _| State {
            data: state.data.clone(),
            process: state.process.clone().map(|process| Process {
                readonly: false,
                ..process
            }),
        });
        self.with(|state, _| *state = promoted);
        self.cut_listeners();
    }

    /// What it knows of each group; changes nothing.
    #[must_use]
    pub fn leases(&self) -> Vec<GroupLook> {
        self.with(|state, now| {
            let now = as_moment(whole_millis(now));
            let of = |(namespace, data): (&Namespace, &Data)| {
                let looks = data
                    .groups
                    .iter()
                    .map(|(name, group)| look(namespace, name, group, now));
                looks.collect::<Vec<_>>()
            };
            state.data.iter().flat_map(of).collect()
        })
    }

    fn cut_listeners(&self) {
        // Nobody listens: nobody is waiting.
        let _ = self.0.shared.told.send(Message::Gap);
    }

    fn with_process(&self, change: impl FnOnce(&mut Process)) {
        self.with(|state, _| state.process.as_mut().map(change));
    }

    /// With the server's time.
    fn with<T>(&self, change: impl FnOnce(&mut State, Timestamp) -> T) -> T {
        let shared = &self.0.shared;
        let mut state = shared.state.lock().unwrap_or_else(PoisonError::into_inner);
        let process = state.process.as_ref();
        let now = process.map_or_else(|| shared.clock.wall(), |process| process.wall(&shared.clock));
        change(&mut state, now)
    }
}

fn lose(group: &mut Group, part: &Part) {
    match part {
        Part::Lease => group.lease = None,
        Part::State => {
            group.marks = Marks::default();
            (group.term, group.asked) = (0, None);
            (group.drained, group.late_from) = (None, None);
            group.control.lose_numbers();
            group.made.number = 0;
            group.coverage.led_until = None;
            group.coverage.foreign.clear();
        }
        Part::Fence => group.fence = 0,
        Part::Beats => {
            group.beats.clear();
            group.replaced.clear();
        }
        Part::Job(job) => {
            group.revived.remove(job);
            if let Some(job) = group.jobs.get_mut(job) {
                let records = std::mem::take(&mut job.records);
                *job = JobLedger {
                    records,
                    ..JobLedger::default()
                };
            }
        }
        Part::All => *group = Group::default(),
    }
}

fn look(namespace: &Namespace, name: &GroupName, group: &Group, now: Moment) -> GroupLook {
    let lease = group.lease.as_ref().filter(|lease| now < lease.ends);
    let job = |(name, job): (&JobName, &JobLedger)| {
        let open = job.open.iter().map(|run| run.fence);
        let recorded = job.records.iter().map(|record| record.fence);
        JobLook {
            job: name.clone(),
            cursor: job.cursor,
            fence: open.chain(recorded).max().unwrap_or(0),
        }
    };
    GroupLook {
        namespace: namespace.clone(),
        group: name.clone(),
        holder: lease.and_then(|lease| lease.holder.clone()),
        term: group.term,
        ends_in: lease
            .filter(|lease| lease.ends < Moment::MAX)
            .map(|lease| lease.ends.since(now + GRAIN)),
        fence: group.fence,
        jobs: group.jobs.iter().map(job).collect(),
    }
}

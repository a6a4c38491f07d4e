//! What the framework's thread and the handles on an instance share.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use jiff::Timestamp;
use tokio::sync::{broadcast, mpsc, watch};

use super::clock_status::ClockStatus;
use super::config::{Config, JobSpec};
use super::engine::Input;
use super::hooks::Hooks;
use super::load::Load;
use super::standing::Standing;
use crate::event::{Event, Stamped};
use crate::job::scope::Gates;
use crate::metrics::{Meter, MeteredJob};
use crate::names::{GroupName, JobName};
use crate::telemetry;

/// One instance, as seen from every thread.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) config: Config,
    pub(crate) gates: Arc<Gates>,
    pub(crate) store_address: String,
    pub(crate) inbox: mpsc::UnboundedSender<Input>,
    events: broadcast::Sender<Stamped>,
    clock: watch::Sender<ClockStatus>,
    load: watch::Sender<Load>,
    standing: watch::Sender<Standing>,
    /// The schedules in force that are not this instance's.
    followed: watch::Sender<BTreeMap<JobName, String>>,
    /// The schedules made at run time that are planned here.
    made: watch::Sender<Arc<[Arc<JobSpec>]>>,
    /// The jobs that this instance lacks of the groups that it leads, each with an instance that has it.
    uncovered: watch::Sender<BTreeMap<GroupName, BTreeMap<String, String>>>,
    pub(crate) hooks: Hooks,
    pub(crate) meter: Arc<Meter>,
    /// The last event has been told.
    stopped: AtomicBool,
}

impl Shared {
    pub(crate) fn new(
        config: Config,
        gates: Arc<Gates>,
        store_address: String,
        inbox: mpsc::UnboundedSender<Input>,
        events: broadcast::Sender<Stamped>,
    ) -> Self {
        let meter = Arc::new(meter(&config));
        Self {
            config,
            gates,
            store_address,
            inbox,
            events,
            // Nothing is decided before the store's clock has been seen.
            clock: watch::Sender::new(ClockStatus {
                holds_ticks: true,
                ..ClockStatus::default()
            }),
            load: watch::Sender::default(),
            standing: watch::Sender::default(),
            followed: watch::Sender::default(),
            made: watch::Sender::new(Arc::new([])),
            uncovered: watch::Sender::default(),
            hooks: Hooks::default(),
            meter,
            stopped: AtomicBool::new(false),
        }
    }

    /// Tells an event to the log and to whoever listens.
    pub(crate) fn tell(&self, event: Event) {
        telemetry::tell(self.config.instance.as_str(), &event);
        self.meter.hear(&event, self.fleet_now(), self.clock().offset.is_some());
        let at = self.config.clock.now();
        if matches!(event, Event::Stopped { .. }) {
            self.stopped.store(true, Ordering::SeqCst);
        }
        // Nobody listens: nothing is lost.
        let _ = self.events.send(Stamped { at, event });
    }

    /// What is known of the clocks.
    pub(crate) fn clock(&self) -> ClockStatus {
        *self.clock.borrow()
    }

    pub(crate) fn show_clock(&self, status: ClockStatus) {
        let before = self.clock.send_replace(status);
        if before.offset.is_none() && status.offset.is_some() {
            self.meter.begin(self.fleet_now());
        }
    }

    /// Now by the fleet's time, as far as it has been measured: this machine's wall clock may be wrong by hours.
    pub(crate) fn fleet_now(&self) -> Timestamp {
        let wall = self.config.clock.wall();
        let ahead = self.clock().offset.unwrap_or_default();
        wall.checked_sub(ahead).unwrap_or(wall)
    }

    /// How much there is to do.
    pub(crate) fn load(&self) -> Load {
        *self.load.borrow()
    }

    pub(crate) fn show_load(&self, load: Load) {
        self.load
            .send_if_modified(|shown| std::mem::replace(shown, load) != load);
    }

    /// Where the instance stands.
    pub(crate) fn standing(&self) -> Standing {
        self.standing.borrow().clone()
    }

    pub(crate) fn show_standing(&self, standing: Standing) {
        self.standing.send_if_modified(|shown| {
            let changed = *shown != standing;
            if changed {
                *shown = standing;
            }
            changed
        });
    }

    /// Whether the framework's thread works, or has ended as it was told to.
    pub(crate) fn is_alive(&self) -> bool {
        self.has_stopped() || !self.inbox.is_closed()
    }

    /// The jobs that are led here by another schedule than their own.
    pub(crate) fn followed(&self) -> BTreeMap<JobName, String> {
        self.followed.borrow().clone()
    }

    pub(crate) fn show_followed(&self, followed: BTreeMap<JobName, String>) {
        self.followed.send_replace(followed);
    }

    /// The jobs made at run time of the groups that are led here.
    pub(crate) fn made(&self) -> Arc<[Arc<JobSpec>]> {
        Arc::clone(&self.made.borrow())
    }

    pub(crate) fn show_made(&self, made: Vec<Arc<JobSpec>>) {
        self.meter.know(made.iter().filter_map(|job| {
            let handler = &job.made.as_ref()?.handler;
            Some((job.name.clone(), handler.clone()))
        }));
        self.made.send_replace(made.into());
    }

    pub(crate) fn uncovered(&self, group: &str) -> BTreeMap<String, String> {
        let shown = self.uncovered.borrow();
        let of_group = shown.iter().find(|(name, _)| name.as_str() == group);
        of_group.map(|(_, jobs)| jobs.clone()).unwrap_or_default()
    }

    pub(crate) fn show_uncovered(&self, group: &GroupName, jobs: &BTreeMap<String, String>) {
        self.uncovered.send_if_modified(|shown| {
            let changed = shown.get(group).map_or(!jobs.is_empty(), |shown| shown != jobs);
            if changed {
                shown.insert(group.clone(), jobs.clone());
            }
            changed
        });
    }

    pub(crate) fn has_stopped(&self) -> bool {
        self.stopped.load(Ordering::SeqCst)
    }

    pub(crate) fn listen(&self) -> broadcast::Receiver<Stamped> {
        self.events.subscribe()
    }

    /// Sends to the framework's thread; a stopped one has nothing more to do.
    pub(crate) fn send(&self, input: Input) {
        let _ = self.inbox.send(input);
    }
}

/// Counts whatever an instance was given.
fn meter(config: &Config) -> Meter {
    let scheduled = config.jobs.iter().map(|job| MeteredJob {
        name: job.name.clone(),
        group: job.group.clone(),
        rule: Some(job.rule.clone()),
        has_ticks: true,
        led: !job.is_unled(),
    });
    let handlers = config.handlers.iter().map(|job| (&job.name, &job.group, true));
    let lives = config.lives.iter().map(|life| (&life.name, &life.group, false));
    let unscheduled = handlers.chain(lives).map(|(name, group, has_ticks)| MeteredJob {
        name: name.clone(),
        group: group.clone(),
        rule: None,
        has_ticks,
        led: true,
    });
    // A handler that has a schedule of its own, too, is counted once.
    let jobs = unscheduled.chain(scheduled).collect();
    let queues = config.companion.as_ref().map(|companion| companion.queues());
    Meter::new(&config.groups, jobs, queues.unwrap_or_default())
}

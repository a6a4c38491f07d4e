//! One run: the fleet is started, goes through its faults, recovers, settles what it began, and is looked at.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::{sleep, sleep_until};

use super::Setting;
use super::fault::{Fault, FaultKind};
use super::nemesis::PATIENCE;
use super::report::Report;
use super::seen::Seen;
use super::world::{World, lock};
use crate::bootstrap::DRAIN;
use crate::clock::of_timers;
use crate::job::record::{Record, Trigger};
use crate::names::{GroupName, JobName};
use crate::store::Store;
use crate::store::ledger::JobLedger;
use crate::timing::Timing;

/// How often the end of something is looked for.
const LOOK: Duration = Duration::from_millis(50);

/// The most tasks of one process, beside one for each body.
const TASKS: usize = 400;

pub(super) fn run(setting: &Setting, plan: &[Fault]) -> Report {
    assert!(
        tokio::runtime::Handle::try_current().is_err(),
        "a simulation has a runtime of its own, with its own time: call it in a plain `#[test]`, or in a thread of its own"
    );
    assert!(
        !setting.is_empty(),
        "nothing would be simulated: give the fleet a job with `.job::<its_name>()`"
    );
    let is_made = |record: &&&Record| matches!(record.trigger, Trigger::Handler);
    if let Some(job) = setting.jobs.iter().find(is_made) {
        panic!(
            "`{}` is a handler, whose schedules are made at run time, and none would be: give jobs that have a schedule of their own",
            job.name
        );
    }
    let fits = |fault: &&Fault| fault.instance < setting.instances && fault.at <= setting.span;
    if let Some(fault) = plan.iter().find(|fault| !fits(fault)) {
        panic!(
            "a fleet of {} instances and {:?} has no place for this fault of another: {fault}",
            setting.instances, setting.span
        );
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        // Nothing of the world outside: its time would be another.
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime without threads is always to be had");
    let report = runtime.block_on(play(setting.clone(), plan));
    drop(runtime);
    report
}

async fn play(setting: Setting, plan: &[Fault]) -> Report {
    let world = World::new(setting);
    for instance in 0..world.machines.len() {
        world.start(instance);
    }
    #[cfg(feature = "tasks")]
    super::tasks::begin(&world);
    for (at, number, happens) in events(plan) {
        sleep_until(world.began + at).await;
        if lock(&world.refused).is_some() {
            break;
        }
        if world.setting.ends_early && world.judge(|judge| !judge.violations.is_empty()) {
            for instance in 0..world.machines.len() {
                if let Some((who, ..)) = world.living(instance) {
                    world.kill(who);
                }
            }
            return report(&world, plan);
        }
        if happens {
            world.afflict(&plan[number], number);
            look_around(&world);
        } else {
            world.servers.keep(number);
        }
    }
    sleep_until(world.began + world.setting.span).await;
    if let Some(error) = lock(&world.refused).take() {
        panic!("the instances of the simulation cannot be started: {error}");
    }
    if !plan.is_empty() {
        world.heal();
    }
    let healed_at = world.clock.wall();
    recover(&world, plan).await;
    #[cfg(feature = "tasks")]
    super::tasks::settle(&world).await;
    settle(&world, healed_at).await;
    let mut handle = None;
    for instance in 0..world.machines.len() {
        handle = handle.or(world.living(instance).and_then(|(_, _, handle)| handle));
    }
    let stopping: Vec<_> = (0..world.machines.len())
        .map(|instance| {
            let world = Arc::clone(&world);
            tokio::spawn(async move { world.shut_down(instance, PATIENCE).await })
        })
        .collect();
    for stop in stopping {
        let _ = stop.await;
    }
    let ledgers = ledgers(&world).await;
    for (job, ledger) in &ledgers {
        let (Some(since), Some(cursor), Some(handle)) = (ledger.since, ledger.cursor, &handle) else {
            continue;
        };
        let Ok(due) = handle.count_ticks(job, since, cursor) else {
            continue;
        };
        let undecided = handle.count_ticks(job, cursor, healed_at).unwrap_or(0);
        let record = world.setting.jobs.iter().find(|record| record.name == job);
        world.see(&Seen::Ledger {
            job,
            missed: record.map(|record| record.missed).unwrap_or_default(),
            overlap: record.map(|record| record.overlap).unwrap_or_default(),
            due,
            undecided,
            ledger,
        });
    }
    #[cfg(feature = "tasks")]
    let tasks = super::tasks::look(&world).await;
    Report {
        ledgers,
        #[cfg(feature = "tasks")]
        tasks,
        ..report(&world, plan)
    }
}

fn report(world: &World, plan: &[Fault]) -> Report {
    let counts = lock(&world.counts).clone();
    world.judge(|judge| Report {
        seed: world.setting.seed,
        span: world.began.elapsed(),
        faults: counts,
        plan: plan.to_vec(),
        violations: std::mem::take(&mut judge.violations),
        ledgers: BTreeMap::new(),
        #[cfg(feature = "tasks")]
        tasks: BTreeMap::new(),
        elections: judge.elections,
        runs: judge.runs,
        dropped: judge.dropped,
        polls: judge.polls,
        #[cfg(feature = "tasks")]
        attempts: judge.attempts,
        log: judge.log.take(),
    })
}

/// When each fault happens; and before those that bring back what the store held, when that is kept.
fn events(plan: &[Fault]) -> Vec<(Duration, usize, bool)> {
    let mut events = Vec::new();
    for (number, fault) in plan.iter().enumerate() {
        if fault.kind.brings_back() {
            let ago = Duration::from_millis(fault.strength.unsigned_abs());
            events.push((fault.at.saturating_sub(ago), number, false));
        }
        events.push((fault.at, number, true));
    }
    events.sort_by_key(|(at, number, happens)| (*at, *happens, *number));
    events
}

fn look_around(world: &World) {
    for group in world.servers.look() {
        for look in group.jobs {
            if let Some(cursor) = look.cursor {
                let job = look.job.as_str();
                world.see(&Seen::Cursor { job, cursor });
            }
        }
    }
    for instance in 0..world.machines.len() {
        if let Some((_, process, _)) = world.living(instance) {
            world.see(&Seen::Size {
                what: "tasks of a process",
                size: process.tasks(),
                bound: TASKS + 10 * world.setting.jobs.len() + of_tasks(world),
            });
        }
    }
}

/// The most that the work on tasks adds to these: a few for each queue, and the bodies.
#[cfg(feature = "tasks")]
fn of_tasks(world: &World) -> usize {
    300 * world.setting.tasks.len()
}

#[cfg(not(feature = "tasks"))]
fn of_tasks(_: &World) -> usize {
    0
}

/// How much longer than promised a fleet may be without a leader: a server that may have forgotten keeps everybody waiting, a lease
/// that is longer because its clock was put back is cut back by who looks next, and where everybody was asked to step down, all stay out
/// of the race until the first one's cool-down is over.
fn grace_of_recovery(timing: Timing, plan: &[Fault], span: Duration) -> Duration {
    let any = |of: fn(FaultKind) -> bool| plan.iter().any(|fault| of(fault.kind));
    let mut grace = Duration::ZERO;
    if any(|kind| kind.is_forgetful() || kind == FaultKind::StoreRestart) {
        grace += timing.ttl() + Duration::from_secs(2);
    }
    if any(|kind| kind == FaultKind::StoreClock) {
        grace += timing.ttl();
    }
    let is_late = |fault: &Fault| fault.kind == FaultKind::StepDown && fault.at + PATIENCE + 4 * timing.ttl() > span;
    if plan.iter().any(is_late) {
        grace += DRAIN + timing.cool_down();
    }
    grace
}

/// Waits until every group is led.
async fn recover(world: &Arc<World>, plan: &[Fault]) {
    let timing = world.setting.timing;
    let bound = timing.ttl() + Duration::from_secs(1) + grace_of_recovery(timing, plan, world.setting.span);
    let began = of_timers();
    for group in &world.groups() {
        let after = loop {
            let led = (0..world.machines.len()).any(|instance| world.believes(instance, group.as_str()).is_some());
            if led {
                break Some(began.elapsed());
            }
            if began.elapsed() > bound {
                break None;
            }
            sleep(LOOK).await;
        };
        world.see(&Seen::Led {
            group: group.as_str(),
            after,
            bound,
        });
    }
}

/// Waits until everything is decided that was due when the faults were over.
async fn settle(world: &Arc<World>, healed_at: Timestamp) {
    let until = of_timers() + world.setting.settle_within;
    // What a leader of before has left running is found to be lost within that.
    sleep(world.setting.timing.ttl() + Duration::from_secs(2)).await;
    while of_timers() < until {
        let all = ledgers(world).await;
        let is_settled = |(job, ledger): (&String, &JobLedger)| {
            let undecided = ledger.cursor.map(|cursor| world.count_ticks(job, cursor, healed_at));
            undecided.is_none_or(|undecided| undecided == 0)
        };
        if all.iter().all(is_settled) {
            return;
        }
        sleep(Duration::from_secs(1)).await;
    }
}

/// As the store has them.
async fn ledgers(world: &World) -> BTreeMap<String, JobLedger> {
    let server = world.servers.of(0);
    let mut ledgers = BTreeMap::new();
    for record in world
        .setting
        .jobs
        .iter()
        .filter(|record| matches!(record.trigger, Trigger::Cron(_) | Trigger::Every(_)))
    {
        let (Ok(group), Ok(job)) = (GroupName::new(record.group), JobName::new(record.name)) else {
            continue;
        };
        if let Ok(ledger) = server.ledger(&group, &job).await {
            ledgers.insert(record.name.to_owned(), ledger);
        }
    }
    ledgers
}

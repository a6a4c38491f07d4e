//! What the program of a simulated fleet does with tasks: it stores them, and changes its mind about some.

use std::sync::{Arc, Weak};
use std::time::Duration;

use jiff::SignedDuration;
use tokio::time::sleep;

use super::seen::{Answer, TaskSeen};
use super::{Kind, When, Wish};
use crate::clock::of_timers;
use crate::instance::Instance;
use crate::runtime::process::Process;
use crate::store::tasks::Priority;
use crate::tasks::enqueue::{EnqueueError, Enqueued};
use crate::tasks::id::TaskId;
use crate::testing::simulation::dice::Dice;
use crate::testing::simulation::seen::{Seen, Who};
use crate::testing::simulation::world::{World, lock};

/// Tasks are due between now and this much later.
const LATEST: Duration = Duration::from_secs(60);
/// The keys that tasks of one handler have, where they have one: few, so that they meet.
const UNIQUES: u64 = 5;
/// How many tasks are looked up at the end, the newest.
const KEPT: usize = 20_000;
/// For how many operations' time a call may last: others wait before it, each for as long as the store is asked again.
const OPERATIONS: u32 = 30;

/// What is done with one task.
struct Order {
    wish: Wish,
    instance: usize,
    then: Option<(Duration, Then)>,
}

/// What is wanted of it afterwards.
enum Then {
    Cancel,
    Reschedule(Duration),
}

impl Order {
    fn roll(world: &World, kind: &Kind, dice: &mut Dice) -> Self {
        let instance = usize::try_from(dice.below(world.machines.len() as u64)).unwrap_or(0);
        let later = dice.span(Duration::ZERO, LATEST);
        let due = match dice.below(4) {
            0 => When::After(Duration::ZERO),
            1 => When::After(later),
            _ => {
                let later = SignedDuration::try_from(later).unwrap_or(SignedDuration::ZERO);
                When::At(world.clock.wall() + later)
            }
        };
        let number = dice.below(3 * UNIQUES);
        let unique = (number < UNIQUES).then(|| format!("{}-{number}", kind.record.name));
        let at = usize::try_from(dice.below(6)).unwrap_or(0);
        let priority = Priority::ALL.get(at).copied().unwrap_or_default();
        let (after, again) = (dice.span(Duration::ZERO, LATEST), dice.span(Duration::ZERO, LATEST));
        let then = match dice.below(10) {
            0 => Some((after, Then::Cancel)),
            1 | 2 => Some((after, Then::Reschedule(again))),
            _ => None,
        };
        Self {
            wish: Wish { due, unique, priority },
            instance,
            then,
        }
    }
}

/// Lets the program begin.
pub(in crate::testing::simulation) fn begin(world: &Arc<World>) {
    for (at, kind) in world.setting.tasks.iter().enumerate() {
        let dice = Dice::new(world.setting.seed).fork(3_000 + at as u64);
        tokio::spawn(produce(world.weak(), kind.clone(), dice, world.setting.span));
    }
}

/// Stores tasks of one handler until the faults are over.
async fn produce(world: Weak<World>, kind: Kind, mut dice: Dice, span: Duration) {
    let per_hour = 3_600.0 / kind.every.as_secs_f64();
    loop {
        sleep(dice.pause(per_hour).max(Duration::from_millis(1))).await;
        let Some(world) = world.upgrade() else { return };
        if world.began.elapsed() >= span {
            return;
        }
        let order = Order::roll(&world, &kind, &mut dice);
        let Some((who, process, Some(handle))) = world.living(order.instance) else {
            continue;
        };
        let (world, kind) = (world.weak(), kind.clone());
        tokio::spawn(Process::from(process).hold(give(world, kind, who, handle, order)));
    }
}

/// Has one task stored, as a part of the program that one process runs.
async fn give(world: Weak<World>, kind: Kind, who: Who, handle: Instance, order: Order) {
    let stood = world.upgrade().and_then(|world| world.stood(who));
    let (began, unique) = (of_timers(), order.wish.unique.clone());
    let answer = answer(kind.store(&handle.tasks(), order.wish).await);
    let took = began.elapsed();
    let Some(of_world) = world.upgrade() else { return };
    of_world.see(&Seen::Task(TaskSeen::Answered {
        who,
        task: kind.record.name,
        unique: unique.as_deref(),
        answer: &answer,
    }));
    if stood.is_some() && of_world.stood(who) == stood {
        of_world.see(&Seen::Called {
            who,
            what: "enqueue",
            took,
            bound: OPERATIONS * of_world.setting.timing.operation(),
        });
    }
    let Answer::Stored(id) = answer else { return };
    keep(&of_world, &id, kind.record.retries);
    drop(of_world);
    let Some((after, then)) = order.then else { return };
    sleep(after).await;
    let Some(later) = world
        .upgrade()
        .filter(|world| world.began.elapsed() < world.setting.span)
    else {
        return;
    };
    let now = later.clock.wall();
    drop(later);
    // What becomes of it is not the point: the server tells.
    let _ = match then {
        Then::Cancel => handle.tasks().cancel(&id).await,
        Then::Reschedule(pause) => {
            let pause = SignedDuration::try_from(pause).unwrap_or(SignedDuration::ZERO);
            handle.tasks().reschedule(&id, now + pause).await
        }
    };
}

fn answer(stored: Result<Enqueued, EnqueueError>) -> Answer {
    match stored {
        Ok(Enqueued { id, is_new: true }) => Answer::Stored(id),
        Ok(Enqueued { id, is_new: false }) => Answer::Instead(id),
        Err(EnqueueError::Stopped | EnqueueError::Store { unknown: true, .. }) => Answer::NotKnown,
        Err(_) => Answer::NotStored,
    }
}

fn keep(world: &World, id: &TaskId, retries: u32) {
    let mut stored = lock(&world.tasks.stored);
    stored.push_back((id.clone(), retries));
    if stored.len() > KEPT {
        stored.pop_front();
    }
}

//! The worker: takes what it has room for, and hands the bodies to the program's runtime.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::attempts::{Attempt, AttemptId, Room};
use super::extract::TaskGiven;
use super::hub::Desk;
use super::id::TaskId;
use super::record::TaskRunFn;
use super::results::Reporter;
use super::spec::Runs;
use super::task::{Inner, Task};
use super::ticks;
use super::trust::Trust;
use crate::clock::Moment;
use crate::job::record::OnLoss;
use crate::job::scope::{self, Scope};
use crate::mutants::{Mutant, planted};
use crate::runtime::guarded::{Control, Ending, Guarded, Start, Trusted};
use crate::store::Answer;
use crate::store::tasks::{AwaitTasks, Shard, Take, Taken};

impl Trusted for Arc<Trust> {
    fn holds(&self) -> bool {
        planted(Mutant::TaskPolledPastTrust) || Trust::holds(self)
    }
}

/// Numbers of steps rise as long as the process lives, whatever begins anew.
static STEPS: AtomicU64 = AtomicU64::new(0);

/// How long a shard is not looked at while others have work without end; and the longest wait while some task is at its bound, because what
/// has room only afterwards is not waited for.
const LOOK: Duration = Duration::from_millis(100);

/// How one shard is worked for.
struct Bench {
    shard: Shard,
    /// More may wait.
    hot: bool,
    /// Some task was at its bound when that was last seen.
    held: bool,
    /// Which of its tasks has the first choice: whoever was given something comes last next time. (What is counted otherwise, such as looks, may
    /// be in step with what makes room, and then the same one has always the first choice.)
    turn: usize,
    unanswered: Option<Unanswered>,
}

/// A step that has had no answer yet: it may have been done. It is asked again in the same words, and no other of its shard before.
struct Unanswered {
    request: Take,
    /// Attempts that it began may be trusted by this.
    sent: Moment,
    again_at: Moment,
    /// What it may have begun keeps its places until then; whoever had them by now has lost them.
    until: Moment,
}

/// Takes and runs tasks until the instance drains.
pub(super) async fn work(desk: Desk) {
    let hub = &desk.hub;
    let clock = &desk.shared.config.clock;
    let bench = |shard: &Shard| Bench {
        shard: shard.clone(),
        hot: true,
        held: false,
        turn: 0,
        unanswered: None,
    };
    let mut shards: Vec<Bench> = hub.shards().map(bench).collect();
    // Whose turn it is, for the same reason.
    let mut first = 0;
    let mut looked = clock.now();
    // One at a time: a server that is asked again while it waits answers the first wait first.
    let mut waiting: Option<Answer<'_, ()>> = None;
    while !hub.drains() {
        let room_made = hub.attempts.room.notified();
        let now = clock.now();
        if now >= looked + LOOK {
            for of in &mut shards {
                of.hot = true;
            }
            looked = now;
        }
        let mut took = false;
        let (begins_with, all) = (first, shards.len());
        for at in (0..all).map(|at| (at + begins_with) % all) {
            let kept = kept(&shards, clock.now());
            let of = &mut shards[at];
            let room = hub.attempts.room(&of.shard.queue, of.turn, kept);
            of.held = room.held;
            let request = match of.unanswered.take() {
                Some(unanswered) if clock.now() >= unanswered.again_at => unanswered,
                None if of.hot && !room.lanes.is_empty() => new_step(&desk, &of.shard, room),
                other => {
                    of.unanswered = other;
                    continue;
                }
            };
            if take(&desk, of, request).await {
                first = at + 1;
                of.turn = of.turn.wrapping_add(1);
            }
            took |= of.unanswered.is_none();
        }
        if took {
            continue;
        }
        let tasks = hub.attempts.names(kept(&shards, clock.now()));
        let full = tasks.is_empty();
        let is_held = shards.iter().any(|of| of.held);
        // One that is asked again has an instant of its own: what waits there is no reason to look before.
        let quiet = shards.iter().filter(|of| of.unanswered.is_none());
        let quiet: Vec<_> = quiet.map(|of| of.shard.clone()).collect();
        if waiting.is_none() && !full && !quiet.is_empty() {
            let renew = desk.shared.config.timing.renew();
            waiting = Some(desk.store.tasks().await_tasks(AwaitTasks {
                shards: quiet,
                tasks,
                bound: if is_held { renew.min(LOOK) } else { renew },
            }));
        }
        let answer = async {
            match &mut waiting {
                Some(waiting) if !full => waiting.await,
                // Until there is room for what may wait.
                _ => pending().await,
            }
        };
        let again_at = shards
            .iter()
            .filter_map(|of| of.unanswered.as_ref())
            .map(|of| of.again_at)
            .min();
        let again = async {
            match again_at {
                Some(at) => clock.sleep_until(at, LOOK).await,
                None => pending().await,
            }
        };
        tokio::select! {
            biased;
            () = hub.draining() => {}
            answer = answer => {
                waiting = None;
                if let Err(error) = answer {
                    tracing::debug!(%error, "the wait for tasks was broken off");
                    tokio::time::sleep(desk.shared.config.timing.retry()).await;
                }
                for of in &mut shards {
                    of.hot = true;
                }
            }
            () = room_made, if is_held || full => {
                for of in &mut shards {
                    of.hot |= of.held;
                }
            }
            () = again => {}
        }
    }
    // What was begun without our knowing is found silent.
}

/// How many places are kept for what unanswered steps may have begun.
fn kept(shards: &[Bench], now: Moment) -> usize {
    let unanswered = shards.iter().filter_map(|of| of.unanswered.as_ref());
    unanswered
        .filter(|of| now < of.until)
        .map(|of| of.request.most as usize)
        .sum()
}

/// A step of a shard that was not asked for before.
fn new_step(desk: &Desk, shard: &Shard, room: Room) -> Unanswered {
    let config = &desk.shared.config;
    let sent = config.clock.now();
    Unanswered {
        request: Take {
            shard: shard.clone(),
            holder: config.holder.clone(),
            number: STEPS.fetch_add(1, Ordering::SeqCst) + 1,
            again: false,
            most: u32::try_from(room.most).unwrap_or(u32::MAX),
            lanes: room.lanes,
        },
        sent,
        again_at: sent,
        until: sent + config.timing.ttl(),
    }
}

/// Asks for one step of a shard. Whether it began anything; without an answer it is kept, and asked again after a while: a shard that does not
/// answer holds up no other.
async fn take(desk: &Desk, of: &mut Bench, mut step: Unanswered) -> bool {
    let config = &desk.shared.config;
    match desk.store.tasks().take(step.request.clone()).await {
        Ok(reply) => {
            // The step may have been done when it was first asked for.
            let sent = if planted(Mutant::TaskTrustFromTheReply) {
                config.clock.now()
            } else {
                step.sent
            };
            let any = !reply.taken.is_empty();
            of.hot = reply.more;
            begin(desk, &of.shard, sent + config.timing.trust(), sent, reply.taken);
            any
        }
        Err(error) => {
            let group = of.shard.group();
            // An outage is told of by whoever sees all of it.
            if step.request.again || !error.is_of_the_question() {
                tracing::debug!(%group, %error, "no tasks were taken");
            } else {
                tracing::warn!(
                    instance = %config.instance, %group, error = crate::job::output::chain(&error),
                    "no tasks of this shard can be taken; it is asked again, and the others go on"
                );
            }
            step.request.again = true;
            step.again_at = config.clock.now() + config.timing.retry();
            of.unanswered = Some(step);
            false
        }
    }
}

fn begin(desk: &Desk, shard: &Shard, until: Moment, sent: Moment, taken: Vec<Taken>) {
    let config = &desk.shared.config;
    let now = config.clock.now();
    let mut attempts = Vec::with_capacity(taken.len());
    let mut bodies = Vec::with_capacity(taken.len());
    for task in taken {
        let id: AttemptId = (shard.clone(), task.fence);
        let Some(spec) = desk.hub.settings.specs.get(&task.lane.task) else {
            // Only what is known was asked for.
            continue;
        };
        if desk.hub.attempts.has(&id) {
            continue;
        }
        let control = Arc::new(Control::default());
        let (trust, start) = match &spec.runs {
            Runs::Task(function) => {
                let trust = Arc::new(Trust::new(config.clock.clone(), until));
                let start = body(desk, shard, function.run, &task, &trust);
                (trust, start)
            }
            Runs::Tick(job) => {
                let of_tick = Trust::of_a_tick(config.clock.clone(), until, job.group.clone(), task.fence);
                (Arc::new(of_tick.0), ticks::body(desk, job, &task, of_tick.1))
            }
        };
        let reporter = Reporter::new(desk, id.clone(), spec.timeout.is_some());
        let guarded = Guarded::new(
            start,
            Arc::clone(&trust),
            OnLoss::Cancel,
            Arc::clone(&control),
            reporter,
        );
        bodies.push(guarded);
        let attempt = Attempt {
            key: task.key,
            lane: task.lane,
            unique: task.unique,
            generation: task.generation,
            failed: task.failed,
            trust,
            control,
            begun: now,
            heard: sent,
            may_take: spec.timeout,
            timeout: None,
            cancelled: false,
            ended: false,
        };
        attempts.push((id, attempt));
    }
    // Known before any of them can end.
    desk.hub.attempts.begin(attempts);
    for guarded in bodies {
        desk.bodies.spawn(config.process.hold(guarded));
    }
}

/// Makes the body's future, at its first poll.
fn body(desk: &Desk, shard: &Shard, run: TaskRunFn, task: &Taken, trust: &Arc<Trust>) -> Start {
    let (instance, trust) = (Arc::clone(&desk.shared), Arc::clone(trust));
    let (payload, shard) = (Arc::clone(&task.payload), shard.clone());
    let (key, lane, unique) = (task.key.clone(), task.lane.clone(), task.unique.clone());
    let (attempt, fence, due_at, enqueued_at) = (task.attempt, task.fence, task.due, task.created);
    Box::new(move || {
        let task = Task::new(Inner {
            id: TaskId::new(shard, key),
            name: lane.task,
            priority: lane.priority,
            attempt,
            due_at,
            enqueued_at,
            started_at: instance.config.clock.wall(),
            fence,
            unique,
            trust,
        });
        let given = TaskGiven {
            task: &task,
            states: &instance.config.states,
            payload: &payload,
        };
        let body = run(&given);
        // Gated functions that it calls ask this instance.
        let body = scope::within(Scope::new(Some(Arc::clone(&instance.gates)), None), body);
        Box::pin(async move { Ending::from(body.await) })
    })
}

/// How long a body that was handed over may take to begin: a runtime that runs nothing keeps no tasks.
pub(super) fn patience(ttl: Duration) -> Duration {
    ttl / 2
}

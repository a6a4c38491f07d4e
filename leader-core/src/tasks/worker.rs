//! The worker: takes what it has room for, and hands the bodies to the program's runtime.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::attempts::{Attempt, AttemptId};
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
use crate::store::tasks::{AwaitTasks, LaneRoom, Shard, Take, Taken};

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

/// Takes and runs tasks until the instance drains.
pub(super) async fn work(desk: Desk) {
    let hub = &desk.hub;
    let shards: Vec<Shard> = hub.shards().cloned().collect();
    // Where more may wait, and where some task was at its bound when that was last seen.
    let (mut hot, mut held) = (vec![true; shards.len()], vec![false; shards.len()]);
    // Whose turn it is, and which of its tasks': whoever was given something comes last next time. (What is counted otherwise, such as looks,
    // may be in step with what makes room, and then the same one has always the first choice.)
    let (mut first, mut turns) = (0, vec![0_usize; shards.len()]);
    let mut looked = desk.shared.config.clock.now();
    // One at a time: a server that is asked again while it waits answers the first wait first.
    let mut waiting: Option<Answer<'_, ()>> = None;
    while !hub.drains() {
        let room_made = hub.attempts.room.notified();
        let now = desk.shared.config.clock.now();
        if now >= looked + LOOK {
            hot.fill(true);
            looked = now;
        }
        let mut took = false;
        let begins_with = first;
        for at in (0..shards.len()).map(|at| (at + begins_with) % shards.len()) {
            let room = hub.attempts.room(&shards[at].queue, turns[at]);
            held[at] = room.held;
            if hot[at] && !room.lanes.is_empty() {
                let begun = take(&desk, &shards[at], room.most, room.lanes).await;
                hot[at] = begun.more;
                if begun.any {
                    first = at + 1;
                    turns[at] = turns[at].wrapping_add(1);
                }
                took = true;
            }
        }
        if took {
            continue;
        }
        let tasks = hub.attempts.names();
        let full = tasks.is_empty();
        let is_held = held.contains(&true);
        if waiting.is_none() && !full {
            let renew = desk.shared.config.timing.renew();
            waiting = Some(desk.store.tasks().await_tasks(AwaitTasks {
                shards: shards.clone(),
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
        tokio::select! {
            biased;
            () = hub.draining() => {}
            answer = answer => {
                waiting = None;
                if let Err(error) = answer {
                    tracing::debug!(%error, "the wait for tasks was broken off");
                    tokio::time::sleep(desk.shared.config.timing.retry()).await;
                }
                hot.fill(true);
            }
            () = room_made, if is_held || full => {
                hot.iter_mut().zip(&held).for_each(|(hot, held)| *hot |= *held);
            }
        }
    }
}

/// What came of one step.
struct Begun {
    any: bool,
    /// More may wait.
    more: bool,
}

/// Takes from one shard, until the store has answered.
async fn take(desk: &Desk, shard: &Shard, most: usize, lanes: Vec<LaneRoom>) -> Begun {
    let config = &desk.shared.config;
    let mut request = Take {
        shard: shard.clone(),
        holder: config.holder.clone(),
        number: STEPS.fetch_add(1, Ordering::SeqCst) + 1,
        again: false,
        most: u32::try_from(most).unwrap_or(u32::MAX),
        lanes,
    };
    // The step may have been done when it was first asked for.
    let mut sent = config.clock.now();
    loop {
        match desk.store.tasks().take(request.clone()).await {
            Ok(reply) => {
                if planted(Mutant::TaskTrustFromTheReply) {
                    sent = config.clock.now();
                }
                let begun = Begun {
                    any: !reply.taken.is_empty(),
                    more: reply.more,
                };
                begin(desk, shard, sent + config.timing.trust(), sent, reply.taken);
                return begun;
            }
            Err(error) => {
                tracing::debug!(group = %shard.group(), %error, "no tasks were taken");
                request.again = true;
                tokio::time::sleep(config.timing.retry()).await;
                if desk.hub.drains() {
                    // What has begun without our knowing is found silent.
                    return Begun {
                        any: false,
                        more: false,
                    };
                }
            }
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
        let reporter = Reporter::new(desk, id.clone());
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
            timeout: spec.timeout.map(|timeout| now + timeout),
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

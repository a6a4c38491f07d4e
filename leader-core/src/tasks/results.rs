//! What is told of attempts: signs of life while they last, and how they ended.

use super::attempts::AttemptId;
use super::hub::{Desk, Stage};
use super::id::TaskId;
use super::worker::patience;
use crate::event::{Event, TaskNews};
use crate::job::outcome::Ran;
use crate::metrics::{Measured, TaskResult};
use crate::mutants::{Mutant, planted};
use crate::runtime::guarded::{Ending, Witness};
use crate::store::tasks::{FinishBatch, FinishReply, Shard, TaskBeats, TaskEnd, TaskEnding};

/// The most ends of one step.
const BATCH: usize = 512;

/// Tells the end of one attempt.
pub(super) struct Reporter {
    desk: Desk,
    id: Option<AttemptId>,
    /// Whether its body may take only so long, which counts from its first poll.
    is_timed: bool,
}

impl Reporter {
    pub(super) fn new(desk: &Desk, id: AttemptId, is_timed: bool) -> Self {
        let (desk, id) = (desk.clone(), Some(id));
        Self { desk, id, is_timed }
    }
}

impl Witness for Reporter {
    fn begun(&mut self) {
        if let Some(id) = self.id.as_ref().filter(|_| self.is_timed) {
            self.desk
                .hub
                .attempts
                .has_begun(id, self.desk.shared.config.clock.now());
        }
    }

    fn ended(&mut self, ending: Ending) {
        if let Some(id) = self.id.take() {
            self.desk.hub.attempts.report(id, ending);
        }
    }
}

/// Tells how attempts of a shard ended, until the store knows.
pub(super) async fn tell(desk: Desk, shard: Shard) {
    let config = &desk.shared.config;
    loop {
        let endings = desk.hub.attempts.reported(&shard, BATCH).await;
        let specs = &desk.hub.settings.specs;
        let drains = desk.hub.drains();
        let ends = desk.hub.attempts.ended(&shard, endings, drains, |attempt| {
            let spec = specs.get(&attempt.lane.task)?;
            let failed = attempt.failed + 1;
            let seed = crate::schedule::planner::seed(&attempt.key);
            let most = spec.retries + u32::from(planted(Mutant::TaskOneTryMore));
            (failed <= most).then(|| spec.backoff.pause(seed, jiff::Timestamp::UNIX_EPOCH, failed))
        });
        let batch = FinishBatch {
            shard: shard.clone(),
            holder: config.holder.clone(),
            ends,
            keep: desk.hub.settings.keep,
        };
        let replies = loop {
            match desk.store.tasks().finish(batch.clone()).await {
                Ok(replies) => break replies,
                Err(_) if planted(Mutant::TaskToldOnce) => break Vec::new(),
                Err(error) => {
                    tracing::debug!(group = %shard.group(), %error, "results of tasks were not taken");
                    tokio::time::sleep(config.timing.retry()).await;
                }
            }
        };
        desk.hub.attempts.told(&shard, batch.ends.iter().map(|end| end.fence));
        measure(&desk, &shard, &batch.ends, &replies);
        tell_of(&desk, &shard, &batch.ends, &replies);
        desk.look_again();
    }
}

fn measure(desk: &Desk, shard: &Shard, ends: &[TaskEnd], replies: &[FinishReply]) {
    let queue = &shard.queue;
    let taken = || {
        let taken = ends
            .iter()
            .zip(replies)
            .filter(|(_, reply)| **reply != FinishReply::Late);
        taken.map(|(end, _)| &end.how)
    };
    let count = |of: fn(&TaskEnding) -> bool| taken().filter(|how| of(how)).count() as u64;
    let results = [
        (TaskResult::Done, count(|how| matches!(how, TaskEnding::Done))),
        (TaskResult::Dead, count(|how| matches!(how, TaskEnding::Bury { .. }))),
        (TaskResult::Cancelled, count(|how| matches!(how, TaskEnding::Cancelled))),
    ];
    for (result, count) in results {
        desk.shared.meter.measure(Measured::TaskEnded { queue, result, count });
    }
    let count = count(|how| matches!(how, TaskEnding::Retry { .. }));
    desk.shared.meter.measure(Measured::TaskRetried { queue, count });
}

fn tell_of(desk: &Desk, shard: &Shard, ends: &[TaskEnd], replies: &[FinishReply]) {
    for (end, reply) in ends.iter().zip(replies) {
        let (ran, error, dead) = match &end.how {
            _ if *reply == FinishReply::Late => (Ran::Cancelled, "", false),
            TaskEnding::Retry { ran, error, .. } => (*ran, error.as_str(), false),
            TaskEnding::Bury { ran, error } => (*ran, error.as_str(), true),
            TaskEnding::Done | TaskEnding::Cancelled | TaskEnding::HandBack => continue,
        };
        let id = TaskId::new(shard.clone(), end.key.as_str()).to_string();
        let task = end.lane.task.clone();
        desk.shared.tell(Event::Tasks(if *reply == FinishReply::Late {
            TaskNews::Refused {
                id,
                task,
                fence: end.fence,
            }
        } else {
            TaskNews::Failed {
                id,
                task,
                fence: end.fence,
                ran,
                error: error.to_owned(),
                dead,
            }
        }));
    }
}

/// Gives signs of life of what runs of a shard or is not told yet: twice in the time after which a worker counts as silent.
pub(super) async fn beat(desk: Desk, shard: Shard) {
    let timing = desk.shared.config.timing;
    let clock = &desk.shared.config.clock;
    let period = timing.ttl() / 2;
    let mut pause = period / 2;
    loop {
        clock.sleep_until(clock.now() + pause, period / 4).await;
        pause = period / 2;
        let sent = clock.now();
        let attempts = desk.hub.attempts.unheard_since(&shard, sent - period / 2);
        if attempts.is_empty() {
            continue;
        }
        let fences: Vec<_> = attempts.iter().map(|(_, fence)| *fence).collect();
        let beats = TaskBeats {
            shard: shard.clone(),
            attempts,
        };
        match desk.store.tasks().beat_tasks(beats).await {
            Ok(replies) => {
                let replies = fences.into_iter().zip(replies);
                desk.hub.attempts.heard(&shard, sent, sent + timing.trust(), replies);
            }
            Err(error) => {
                tracing::debug!(group = %shard.group(), %error, "signs of life of tasks were not taken");
                pause = timing.retry();
            }
        }
    }
}

/// Ends bodies whose time is over.
pub(super) async fn watch(desk: Desk) {
    let timing = desk.shared.config.timing;
    let clock = &desk.shared.config.clock;
    let mut stage = desk.hub.stage.subscribe();
    loop {
        let sooner = desk.hub.attempts.sooner.notified();
        let end_by = match *stage.borrow_and_update() {
            Stage::Works => None,
            Stage::Drains(by) => Some(by),
        };
        let now = clock.now();
        let (unbegun, next) = desk
            .hub
            .attempts
            .look(now, timing.cancel_lead(), patience(timing.ttl()), end_by);
        for id in unbegun {
            desk.hub.attempts.report(id, Ending::of(Ran::NotStarted));
        }
        let next = next.unwrap_or(now + timing.ttl());
        tokio::select! {
            biased;
            () = clock.sleep_until(next, timing.ttl() / 10) => {}
            () = sooner => {}
            _ = stage.changed() => desk.look_again(),
        }
    }
}

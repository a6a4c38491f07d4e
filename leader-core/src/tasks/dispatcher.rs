//! The dispatcher of a shard: where its group is led, what is due goes to the streams.

use std::sync::Arc;

use super::hub::Desk;
use super::pace::Pace;
use super::spec::LOSSES;
use crate::event::{Event, TaskNews};
use crate::job::gate::{Gate, Role};
use crate::metrics::Measured;
use crate::store::tasks::{Dispatch, DispatchReply, Moves, Shard};

/// The most tasks that one step moves: it holds the server up for about a millisecond.
const BATCH: u32 = 500;

/// Dispatches a shard whenever this instance leads it.
pub(super) async fn dispatch(desk: Desk, shard: Shard) {
    let Some(gate) = desk.shared.gates.get(shard.group().as_str()).cloned() else {
        return;
    };
    loop {
        let seen = {
            let status = gate.status().borrow();
            (status.role == Role::Leader).then_some(status.term)
        };
        if let Some(term) = seen {
            lead(&desk, &shard, &gate, term).await;
        }
        // Once more after a while, whatever was seen.
        let renew = desk.shared.config.timing.renew();
        let _ = tokio::time::timeout(renew, gate.led()).await;
    }
}

/// As long as the leadership of `term` lasts.
async fn lead(desk: &Desk, shard: &Shard, gate: &Arc<Gate>, term: u64) {
    let config = &desk.shared.config;
    let clock = &config.clock;
    let mut pace = Pace::new(config.timing);
    while gate.is_open() && gate.trusts(term) {
        let sent = clock.now();
        let request = Dispatch {
            shard: shard.clone(),
            holder: config.holder.clone(),
            term,
            most: BATCH,
            room: desk.hub.settings.stream,
            silence: config.timing.ttl(),
            connected: pace.connected(sent),
            losses: LOSSES,
            keep: desk.hub.settings.keep,
        };
        let at = match desk.store.tasks().dispatch(request).await {
            Ok(DispatchReply::Yours(moves)) => {
                tell(desk, shard, &moves);
                pace.heard(clock.now(), &moves)
            }
            Ok(DispatchReply::NotYours) => return,
            Err(error) => {
                tracing::debug!(group = %shard.group(), %error, "due tasks were not dispatched");
                pace.unheard(clock.now())
            }
        };
        pause(desk, shard, at, &pace).await;
    }
}

/// Until `at`, or a hint.
async fn pause(desk: &Desk, shard: &Shard, at: crate::clock::Moment, pace: &Pace) {
    let clock = &desk.shared.config.clock;
    let step = desk.shared.config.timing.ttl() / 10;
    let Some(bell) = desk.hub.bell(shard) else {
        return clock.sleep_until(at, step).await;
    };
    tokio::select! {
        biased;
        () = clock.sleep_until(at, step) => {}
        () = bell.notified() => {
            if let Some(earliest) = pace.hinted() {
                clock.sleep_until(earliest.min(at), step).await;
            } else {
                clock.sleep_until(at, step).await;
            }
        }
    }
}

fn tell(desk: &Desk, shard: &Shard, moves: &Moves) {
    if let Some(first_due) = moves.first_due {
        desk.shared.tell(Event::Tasks(TaskNews::Dispatched {
            queue: shard.queue.clone(),
            shard: shard.index,
            count: moves.moved,
            lag: moves.now.duration_since(first_due).max(jiff::SignedDuration::ZERO),
        }));
    }
    for lost in &moves.lost {
        let (queue, dead) = (&shard.queue, lost.dead);
        desk.shared.meter.measure(Measured::TaskLost { queue, dead });
        desk.shared.tell(Event::Tasks(TaskNews::Lost {
            id: super::id::TaskId::new(shard.clone(), lost.key.as_str()).to_string(),
            task: lost.lane.task.clone(),
            attempt: lost.attempt,
            instance: lost.holder.instance().to_owned(),
            dead: lost.dead,
        }));
    }
}

//! What was remembered of tasks that were to be stored once.

use super::{by, patiently, shard_of};
use crate::names::QueueName;
use crate::tasks::hub::{Counted, Desk};

/// Has a key forgotten in the shards where it may be remembered, in a task of its own. Where that fails it is remembered for longer.
pub(super) fn forget(desk: &Desk, queue: QueueName, key: String, counted: Counted) {
    let desk = desk.clone();
    let process = desk.shared.config.process.clone();
    tokio::spawn(process.hold(async move {
        let known = desk.hub.routes().of(&queue).cloned();
        let generations = known
            .into_iter()
            .flat_map(|known| [vec![known.newest], known.earlier].concat());
        for generation in generations {
            let shard = shard_of(&queue, None, &key, generation);
            let forgotten = patiently(&desk, by(&desk), || {
                desk.store.tasks().forget_once(&shard, vec![key.clone()])
            })
            .await;
            if let Err(error) = forgotten {
                tracing::debug!(group = %shard.group(), %error, "the key of a tick is remembered for longer");
            }
        }
        drop(counted);
        desk.look_again();
    }));
}

//! `apalis-redis`: leases, retries, schedules, and the results of what is done are kept.

use std::time::Duration;

use apalis::prelude::{BoxDynError, TaskSink, WorkerBuilder};
use apalis_redis::{Config, RedisStorage};

use crate::{executed, payload, timed, tuned};

async fn nothing(_payload: String) -> Result<(), BoxDynError> {
    executed();
    Ok(())
}

/// One script moves all that is due, and gives it to one command as so many arguments: above 7,990 it fails, for Lua has no room for them.
pub(crate) async fn run(port: u16, tasks: usize) -> Duration {
    let url = format!("redis://127.0.0.1:{port}/");
    let connection = apalis_redis::connect(url).await.expect("the server is there");
    // All in one batch is the fastest, and more of them do not fit. Bodies that end at once need no lease that outlives a sign of life, and nobody listens to events.
    let config = Config::default()
        .queue("bench")
        .batch_size(tuned("BATCH", 7_500))
        .lock_tasks(false)
        .emit_events(false);
    let mut storage = RedisStorage::new(connection).with_config(config);
    for first in (0..tasks).step_by(500) {
        let batch = vec![payload(); 500.min(tasks - first)];
        storage.push_bulk(batch).await.expect("they are stored");
    }
    timed(tasks, async move {
        let worker = WorkerBuilder::new("bench").backend(storage).build(nothing);
        worker.run().await.expect("the server is there");
    })
    .await
}

//! `oxana`: retries, schedules, unique jobs, and what a dead process had is run by another.

use std::time::Duration;

use oxana::{JobContext, Storage};
use serde::{Deserialize, Serialize};

use crate::{executed, payload, timed, tuned};

#[derive(Debug, thiserror::Error)]
enum Never {}

#[derive(Clone, Debug)]
struct Nothing;

#[derive(Debug, Serialize, Deserialize, oxana::Job)]
struct NothingJob {
    payload: String,
}

#[derive(oxana::Worker)]
#[oxana(context = Nothing, error = Never, registry = None)]
struct NothingWorker;

impl NothingWorker {
    #[allow(clippy::unused_async, reason = "the derive awaits it")]
    async fn process(&self, _job: NothingJob, _context: &JobContext) -> Result<(), Never> {
        executed();
        Ok(())
    }
}

#[derive(Serialize, oxana::Queue)]
#[oxana(key = "bench", registry = None)]
struct Bench;

pub(crate) async fn run(port: u16, tasks: usize) -> Duration {
    // From 64 to 1,000 under way, and from 32 connections to 256, make little difference.
    let storage = Storage::builder()
        .max_pool_size(tuned("POOL", 128))
        .build_from_redis_url(format!("redis://127.0.0.1:{port}/"))
        .expect("a legal URL");
    for first in (0..tasks).step_by(500) {
        let jobs = (first..tasks.min(first + 500)).map(|_| NothingJob { payload: payload() });
        storage.enqueue_list(Bench, jobs).await.expect("they are stored");
    }
    let runtime = storage
        .runtime(Nothing)
        .queue_with_concurrency::<Bench>(tuned("CONCURRENCY", 256))
        .worker::<NothingWorker, NothingJob>();
    timed(tasks, async move {
        runtime.run().await.expect("the server is there");
    })
    .await
}

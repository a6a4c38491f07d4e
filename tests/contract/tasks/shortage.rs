//! A server that is full takes no more tasks, and what was begun is ended all the same.

use std::sync::Arc;

use leader_core::__seam::{
    BeatReply, EmbeddedServer, FinishReply, OpenQueue, TaskChange, TaskEnding, TaskStatus, in_namespace,
};
use leader_core::Clock;
use leader_core::StoreError;
use leader_core::testing::__server_on;
use leader_tests::RedisServer;

use super::bench::{LATER, TaskBench, bury, due_in, new, usual};
use crate::bench::Bench;

enum Server {
    Embedded(EmbeddedServer),
    Redis(Arc<RedisServer>),
}

impl Server {
    async fn set_full(&self, full: bool) {
        match self {
            Self::Embedded(server) => server.set_full(full),
            Self::Redis(server) => {
                let limit = if full { "1" } else { "0" };
                server.command(&["CONFIG", "SET", "maxmemory", limit]).await;
            }
        }
    }
}

#[tokio::test]
async fn embedded_a_full_server_ends_what_was_begun() {
    let server = __server_on(Clock::system());
    let bench = Bench::embedded();
    let store = in_namespace(server.store(), &bench.namespace);
    let bench = Bench {
        store: Arc::new(store),
        ..bench
    };
    a_full_server_ends_what_was_begun(Server::Embedded(server), bench).await;
}

#[tokio::test]
async fn redis_a_full_server_ends_what_was_begun() {
    // Nobody else's tests are to be refused.
    let server = Arc::new(RedisServer::start().await);
    let bench = Bench::redis_on(Arc::clone(&server));
    a_full_server_ends_what_was_begun(Server::Redis(server), bench).await;
}

fn is_full<T: std::fmt::Debug>(answer: Result<T, StoreError>) {
    let error = answer.unwrap_err();
    assert_eq!(error.code(), Some("OOM"), "{error}");
}

async fn a_full_server_ends_what_was_begun(server: Server, bench: Bench) {
    let tasks = TaskBench::on(bench).await;
    tasks.live("dead", bury()).await;
    // In the order in which those that are due together are taken.
    let all = ["back", "bury", "done", "retry"];
    tasks.store_all(all.map(new).to_vec()).await;
    tasks.dispatch().await;
    let taken = tasks.take("worker", 9).await;
    assert_eq!(taken.len(), 4);
    tasks.store_all(vec![new("moved")]).await;
    tasks.dispatch().await;
    tasks.store_all(vec![new("due"), due_in("waits", LATER)]).await;
    let taken_in = tasks.batch(vec![new("taken in")]);
    tasks.send(taken_in.clone()).await;
    tasks.change("waits", TaskChange::Cancel).await;
    let before = tasks.figures().await;

    server.set_full(true).await;
    let refused = tasks.batch(vec![new("refused")]);
    is_full(tasks.store().enqueue(refused.clone()).await);
    // What repeats needs nothing.
    assert_eq!(tasks.send(taken_in).await, [None]);
    is_full(tasks.store().dispatch(tasks.step()).await);
    is_full(tasks.store().take(tasks.wish("worker", 9, &[usual()])).await);
    let open = OpenQueue {
        queue: tasks.shard.queue.clone(),
        shards: Some(4),
    };
    is_full(tasks.store().open_queue(open).await);
    assert_eq!(tasks.look("refused").await, None);
    let after = tasks.figures().await;
    assert_eq!(
        (after.counts, after.pending, after.dispatched),
        (before.counts, before.pending, before.dispatched)
    );

    for taken in &taken {
        assert_eq!(tasks.beat(&taken.key, taken.fence).await, BeatReply::Heard);
    }
    let ends = [
        TaskEnding::HandBack,
        bury(),
        TaskEnding::Done,
        super::bench::retry(LATER),
    ];
    for (taken, how) in taken.iter().zip(ends) {
        for _ in 0..2 {
            assert_eq!(tasks.finish(taken, how.clone()).await, FinishReply::Taken, "{how:?}");
        }
    }
    let statuses = [
        TaskStatus::Failed,
        TaskStatus::Dead,
        TaskStatus::Done,
        TaskStatus::Failed,
    ];
    for (key, status) in all.into_iter().zip(statuses) {
        assert_eq!(tasks.status(key).await, status);
    }

    server.set_full(false).await;
    assert_eq!(tasks.send(refused).await, [None], "it was not taken before");
    assert_eq!(tasks.dispatch().await.moved, 4);
}

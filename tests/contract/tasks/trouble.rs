//! Servers that take no writes, load their data, or forget everything between two steps: each step ends, and all goes on after it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use ::redis::Value;
use leader_core::__seam::{
    ChangeTask, DispatchReply, FinishBatch, OpenQueue, RedisStore, Store, Taken, TaskBeats, TaskChange, TaskEnding,
    TaskStatus,
};
use leader_core::{Namespace, StoreError};
use leader_tests::{RedisServer, eventually};

use super::bench::{LATER, TaskBench, bury, due_in, end_of, keys, new, once, retry, usual};
use crate::bench::{BOUND, Bench, group, holder};
use crate::machine::{INSTANT, Machine};

on_each_server!(
    a_replica_takes_no_tasks_and_answers_what_it_knows,
    whatever_is_forgotten_between_two_steps_none_fails,
);

async fn tasks_of(machine: &Machine) -> TaskBench {
    TaskBench::on(Bench {
        store: Arc::clone(&machine.bench.store),
        namespace: machine.bench.namespace.clone(),
        group: group("cleanup"),
        server: None,
    })
    .await
}

/// The steps that write, in the order of a task's life.
const WRITING: usize = 14;

/// One of them; its error, if it has one. Each is bounded.
async fn write(tasks: &TaskBench, step: usize, running: &Taken) -> Option<StoreError> {
    let (store, shard) = (tasks.store(), &tasks.shard);
    let end = |how| FinishBatch {
        shard: shard.clone(),
        holder: holder("worker"),
        ends: vec![end_of(running, how)],
        keep: tasks.keep,
    };
    let change = |key: &str, change| ChangeTask {
        shard: shard.clone(),
        key: key.to_owned(),
        change,
        keep: tasks.keep,
    };
    let beats = TaskBeats {
        shard: shard.clone(),
        attempts: vec![(running.key.clone(), running.fence)],
    };
    let asked = async {
        match step {
            0 => store.enqueue(tasks.batch(vec![new("refused")])).await.err(),
            1 => store.dispatch(tasks.step()).await.err(),
            2 => store.take(tasks.wish("worker", 1, &[usual()])).await.err(),
            3 => store.beat_tasks(beats).await.err(),
            4 => store.finish(end(TaskEnding::HandBack)).await.err(),
            5 => store.finish(end(retry(LATER))).await.err(),
            6 => store.finish(end(bury())).await.err(),
            7 => store.finish(end(TaskEnding::Done)).await.err(),
            8 => store.change_task(change("running", TaskChange::Cancel)).await.err(),
            9 => store.change_task(change("waits", TaskChange::Cancel)).await.err(),
            10 => store.change_task(change("dispatched", TaskChange::Cancel)).await.err(),
            11 => store.change_task(change("dead", TaskChange::Retry)).await.err(),
            12 => store.forget_once(shard, vec!["once".to_owned()]).await.err(),
            _ => {
                let (queue, shards) = (shard.queue.clone(), Some(9));
                store.open_queue(OpenQueue { queue, shards }).await.err()
            }
        }
    };
    tokio::time::timeout(BOUND, asked).await.unwrap()
}

/// A task in each state; the attempt under way.
async fn one_of_each(tasks: &TaskBench) -> Taken {
    tasks.live("dead", bury()).await;
    let running = tasks.begin(new("running")).await;
    tasks.store_all(vec![new("dispatched")]).await;
    tasks.dispatch().await;
    tasks
        .store_all(vec![new("due"), due_in("waits", LATER), once("once")])
        .await;
    running
}

async fn a_replica_takes_no_tasks_and_answers_what_it_knows(mut machine: Machine) {
    let mut tasks = tasks_of(&machine).await;
    let running = one_of_each(&tasks).await;
    let before = tasks.figures().await;
    let task = tasks.task("running").await;
    machine.set_readonly(true).await;
    for step in 0..WRITING {
        // The connection to a replica is left.
        machine.connect_anew();
        tasks.bench.store = Arc::clone(&machine.bench.store);
        let error = write(&tasks, step, &running).await.expect("it is refused");
        assert_eq!(error.code(), Some("READONLY"), "step {step}: {error}");
    }
    machine.connect_anew();
    tasks.bench.store = Arc::clone(&machine.bench.store);
    assert_eq!(tasks.figures().await, before);
    assert_eq!(tasks.task("running").await, task);
    assert_eq!(tasks.list(TaskStatus::Dispatched).await, ["dispatched"]);
    machine.set_readonly(false).await;
    tasks.bench.store = Arc::clone(&machine.bench.store);
    for step in 0..WRITING {
        let error = write(&tasks, step, &running).await;
        assert!(error.is_none(), "step {step}: {error:?}");
    }
}

async fn whatever_is_forgotten_between_two_steps_none_fails(mut machine: Machine) {
    for at in 0..WRITING {
        let mut tasks = tasks_of(&machine).await;
        let running = one_of_each(&tasks).await;
        for step in 0..WRITING {
            if step == at {
                machine.pass(INSTANT);
                machine.flush().await;
            }
            let error = write(&tasks, step, &running).await;
            assert!(error.is_none(), "step {step} after {at}: {error:?}");
        }
        let reply = tasks.store().dispatch(tasks.step()).await.unwrap();
        assert!(matches!(reply, DispatchReply::NotYours), "{reply:?}");
        // And then it is as new, with higher fences than before.
        tasks.term = tasks.bench.acquire(&tasks.leader).await;
        tasks.send(tasks.batch(vec![new("again")])).await;
        tasks.dispatch().await;
        let taken = tasks.take("another", 9).await;
        assert!(keys(&taken).contains(&"again"), "{taken:?}");
        assert!(taken.iter().all(|taken| taken.fence > running.fence), "{taken:?}");
        let ends = taken.iter().map(|taken| end_of(taken, TaskEnding::Done)).collect();
        tasks.finish_all(ends).await;
        let figures = tasks.figures().await;
        assert_eq!((figures.running, figures.dispatched), (0, 0));
        machine.flush().await;
    }
}

/// Whoever asks meanwhile is told so at once, and what was stored before goes its way.
#[tokio::test]
async fn a_server_that_is_loading_refuses_each_step_and_then_takes_it() {
    let mut server = RedisServer::options()
        .appendonly(true)
        // So long for each key that is loaded, in microseconds.
        .set("key-load-delay", "0")
        // It answers while it loads, though that is little.
        .set("loading-process-events-interval-bytes", "1024")
        .start()
        .await;
    let namespace = Namespace::new("loads").unwrap();
    let store: Arc<dyn Store> = Arc::new(RedisStore::new(&server.info(), &namespace, BOUND));
    let tasks = TaskBench::on(Bench {
        store,
        namespace: namespace.clone(),
        group: group("cleanup"),
        server: None,
    })
    .await;
    let running = one_of_each(&tasks).await;
    server.command(&["DEBUG", "POPULATE", "5000"]).await;
    server.command(&["BGREWRITEAOF"]).await;
    eventually(BOUND, "the data is written", || async {
        let Value::BulkString(info) = server.command(&["INFO", "persistence"]).await else {
            return false;
        };
        let info = String::from_utf8(info).unwrap();
        info.contains("aof_rewrite_in_progress:0") && info.contains("aof_rewrite_scheduled:0")
    })
    .await;
    let info = server.info();
    server.kill().await;
    server.change("key-load-delay", "200");
    // On a connection that knows of no trouble.
    let anew = || tasks.by(Arc::new(RedisStore::new(&info, &namespace, BOUND)));
    let asks = async {
        let mut codes = BTreeSet::new();
        for step in 0..WRITING {
            loop {
                let Some(error) = write(&anew(), step, &running).await else {
                    break;
                };
                codes.extend(error.code().map(str::to_owned));
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
        codes
    };
    let (codes, ()) = tokio::join!(asks, server.restart(true));
    assert_eq!(codes, ["LOADING".to_owned()].into());
    assert_eq!(anew().list(TaskStatus::Done).await.len(), 0, "it was handed back first");
    assert_eq!(anew().figures().await.counts.handed_back, 1);
}

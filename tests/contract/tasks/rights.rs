//! Users who may not do everything: what the documentation names is enough, and who lacks one of it is told so.

use std::sync::Arc;
use std::time::Duration;

use leader_core::__seam::{AwaitTasks, Closed, Due, OpenQueue, RedisStore, TaskChange, TaskEnding, TaskStatus};
use leader_core::{Namespace, StoreError};
use leader_tests::RedisServer;

use super::bench::{LATER, TaskBench, bury, due_in, end_of, new, once, retry, task_name, unique, usual};
use crate::bench::{BOUND, Bench, group};

/// The words of the documentation for a user of the namespace `shop`.
fn documented() -> Vec<String> {
    let text = include_str!("../../../leader-core/src/docs/task.md");
    let line = text.lines().find_map(|line| line.strip_prefix("ACL SETUSER app "));
    line.unwrap().split(' ').map(str::to_owned).collect()
}

struct Users {
    server: Arc<RedisServer>,
    tasks: TaskBench,
}

impl Users {
    /// Who may everything leads the shard.
    async fn new() -> Self {
        let server = Arc::new(RedisServer::start().await);
        let namespace = Namespace::new("shop").unwrap();
        let bench = Bench {
            store: Arc::new(RedisStore::new(&server.info(), &namespace, BOUND)),
            namespace,
            group: group("cleanup"),
            server: Some(Arc::clone(&server)),
        };
        let tasks = TaskBench::on(bench).await;
        Self { server, tasks }
    }

    /// Whoever comes from now on has these rights alone.
    async fn come_with(&mut self, rights: &[String]) {
        let reset = ["ACL", "SETUSER", "default", "reset", "on", "nopass"];
        let rights = rights.iter().map(String::as_str);
        let words: Vec<_> = reset.into_iter().chain(rights).collect();
        let answer = self.server.command(&words).await;
        assert_eq!(answer, redis::Value::Okay, "{words:?}");
        let bench = &mut self.tasks.bench;
        bench.store = Arc::new(RedisStore::new(&self.server.info(), &bench.namespace, BOUND));
    }

    /// Each step there is, of tasks with names of their own; what is refused.
    #[allow(clippy::too_many_lines, reason = "every call once")]
    async fn refused(&self, round: usize) -> Vec<StoreError> {
        let tasks = &self.tasks;
        let (store, shard) = (tasks.store(), &tasks.shard);
        let mut refused = Vec::new();
        // As on a server that was just started.
        self.server.command(&["SCRIPT", "FLUSH"]).await;
        let stream = "{shop:leader:dispatch:mail:0}:stream:1:charge";
        self.server.command(&["DEL", stream]).await;
        macro_rules! ask {
            ($step:expr) => {
                match $step.await {
                    Ok(answer) => Some(answer),
                    Err(error) => {
                        refused.push(error);
                        None
                    }
                }
            };
        }
        let names: Vec<_> = (0..6).map(|n| format!("{round}-{n}")).collect();
        let mut all: Vec<_> = names.iter().map(|name| new(name)).collect();
        all[0] = once(&names[0]);
        all[1] = unique(&names[1], "u");
        all.push(due_in(&format!("{round}-later"), LATER));
        all.push(due_in(&format!("{round}-never"), LATER));
        let queue = shard.queue.clone();
        for shards in [4, 1] {
            let request = OpenQueue {
                queue: queue.clone(),
                shards: Some(shards),
            };
            ask!(store.open_queue(request));
        }
        ask!(store.close_generation(Closed { queue, number: 1 }));
        ask!(store.enqueue(tasks.batch(all)));
        ask!(store.dispatch(tasks.step()));
        let mut step = tasks.impatient();
        let mut ends = [
            TaskEnding::Done,
            bury(),
            retry(LATER),
            TaskEnding::HandBack,
            TaskEnding::Cancelled,
        ]
        .into_iter();
        let change = |key: String, change| leader_core::__seam::ChangeTask {
            shard: shard.clone(),
            key,
            change,
            keep: tasks.keep,
        };
        ask!(store.change_task(change(names[5].clone(), TaskChange::Cancel)));
        let wish = tasks.wish("worker", 5, &[usual()]);
        for _ in 0..2 {
            ask!(store.take(wish.clone()));
        }
        let taken = ask!(store.take(wish)).map(|reply| reply.taken).unwrap_or_default();
        let attempts = taken.iter().map(|taken| (taken.key.clone(), taken.fence)).collect();
        let shard_of = || shard.clone();
        ask!(store.beat_tasks(leader_core::__seam::TaskBeats {
            shard: shard_of(),
            attempts
        }));
        for key in taken.iter().skip(4).map(|taken| taken.key.clone()) {
            ask!(store.change_task(change(key, TaskChange::Cancel)));
        }
        for taken in &taken {
            let ends = vec![end_of(taken, ends.next().unwrap_or(TaskEnding::Done))];
            let batch = leader_core::__seam::FinishBatch {
                shard: shard.clone(),
                holder: crate::bench::holder("worker"),
                ends,
                keep: tasks.keep,
            };
            ask!(store.finish(batch));
        }
        let later = format!("{round}-later");
        let soon = TaskChange::Reschedule(Due::After(Duration::ZERO));
        ask!(store.change_task(change(later.clone(), soon)));
        ask!(store.change_task(change(format!("{round}-never"), TaskChange::Cancel)));
        ask!(store.dispatch(step.clone()));
        // One whose worker falls silent, one that dies of it.
        ask!(store.take(tasks.wish("silent", 9, &[usual()])));
        step.losses = 0;
        ask!(store.dispatch(step.clone()));
        for status in TaskStatus::ALL {
            let mut request = tasks.all(*status);
            request.most = 1;
            let page = ask!(store.list_tasks(request.clone())).unwrap_or_default();
            request.after = page.next;
            ask!(store.list_tasks(request));
        }
        ask!(store.task(shard, &later));
        ask!(store.unique(shard, "u"));
        ask!(store.task_figures(shard));
        ask!(store.forget_once(shard, names));
        ask!(store.await_tasks(AwaitTasks {
            shards: vec![shard.clone()],
            tasks: vec![task_name("charge")],
            bound: Duration::from_millis(1),
        }));
        (step.keep.dead, step.keep.ended) = (0, 0);
        ask!(store.dispatch(step));
        refused
    }
}

#[tokio::test]
async fn the_rights_of_the_documentation_are_enough_and_each_is_needed() {
    let mut users = Users::new().await;
    let all = documented();
    users.come_with(&all).await;
    for round in 0..2 {
        let refused = users.refused(round).await;
        assert!(refused.is_empty(), "{refused:?}");
    }
    let mut needless = Vec::new();
    for (at, right) in all.iter().enumerate() {
        let rest: Vec<_> = all.iter().filter(|other| *other != right).cloned().collect();
        users.come_with(&rest).await;
        let refused = users.refused(10 + at).await;
        for error in &refused {
            assert_eq!(error.code(), Some("NOPERM"), "without {right}: {error:?}");
            assert!(error.to_string().contains("grant it in the server's ACL"), "{error}");
        }
        if refused.is_empty() {
            needless.push(right.as_str());
        }
        // What was half done is done by now.
        users.come_with(&all).await;
        let refused = users.refused(1_000 + at).await;
        assert!(refused.is_empty(), "after {right}: {refused:?}");
    }
    // These only make it faster, and nobody is refused for want of them.
    assert_eq!(needless, ["&shop:leader-told", "+publish", "+rpush"]);
}

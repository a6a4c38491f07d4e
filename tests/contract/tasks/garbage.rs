//! Keys and values of tasks as somebody else may have written them: one that is rotten fails no step for good, and everything else goes on.

use std::fmt::Debug;
use std::time::Duration;

use leader_core::__seam::{
    AwaitTasks, BeatReply, ChangeTask, Changed, Closed, DispatchReply, EnqueueReply, FinishBatch, FinishReply,
    Generations, OpenQueue, Taken, TaskBeats, TaskChange, TaskEnding, TaskStatus,
};
use leader_core::StoreError;
use redis::Value;

use super::bench::{LATER, TaskBench, bury, due_in, end_of, new, once, retry, task_name, unique, usual};
use crate::bench::{Bench, LONG, holder};
use crate::garbage::{JUNK, junk};

/// A shard with one task in each state, each with a name of its own.
struct Case {
    tasks: TaskBench,
    running: Taken,
}

/// What a step that is refused says.
fn told(error: &StoreError) -> String {
    format!(
        "{error} {:?}",
        std::error::Error::source(error).map(ToString::to_string)
    )
}

/// What has failed.
#[derive(Default)]
struct Failures(Vec<String>);

impl Failures {
    fn check<T: Debug>(&mut self, what: &str, answer: Result<T, StoreError>, fine: impl Fn(&T) -> bool) -> Option<T> {
        match answer {
            Ok(answer) if fine(&answer) => Some(answer),
            Ok(answer) => {
                self.0.push(format!("{what}: {answer:?}").chars().take(300).collect());
                None
            }
            Err(error) => {
                self.0.push(format!("{what}: {}", told(&error)));
                None
            }
        }
    }
}

impl Case {
    async fn new() -> Self {
        let tasks = TaskBench::on(Bench::redis().await).await;
        tasks.live("done", TaskEnding::Done).await;
        tasks.live("dead", bury()).await;
        tasks.live("failed", retry(LATER)).await;
        let running = tasks.begin(new("running")).await;
        let mut waits = unique("dispatched", "theirs");
        waits.once = true;
        tasks.store_all(vec![waits]).await;
        tasks.dispatch().await;
        tasks.store_all(vec![due_in("pending", LATER)]).await;
        Self { tasks, running }
    }

    fn key(&self, part: &str) -> String {
        format!(
            "{{{}:leader:{}}}:{part}",
            self.tasks.bench.namespace,
            self.tasks.shard.group()
        )
    }

    async fn command(&self, words: &[&str]) -> Value {
        self.tasks.bench.server.as_ref().unwrap().command(words).await
    }

    /// Writes with a script: its words have escapes for what is no text.
    async fn write(&self, script: &str) {
        let script = script.replace('$', &self.key(""));
        let answer = self.command(&["EVAL", &script, "0"]).await;
        assert!(!matches!(answer, Value::ServerError(_)), "{script}: {answer:?}");
    }

    /// A new task goes its whole way, and whatever can be asked is answered.
    #[allow(clippy::too_many_lines, reason = "every call once")]
    async fn failures(&self, round: u32) -> Vec<String> {
        let mut failures = Failures::default();
        let tasks = &self.tasks;
        let (store, shard) = (tasks.store(), &tasks.shard);
        let name = |name: &str| format!("{name}-{round}");
        let mut own = once(&name("own"));
        own.unique = Some(name("unique"));
        let mut batch = tasks.batch(vec![own, new(&name("again")), due_in(&name("later"), LATER)]);
        batch.producer = holder("rotten");
        for _ in 0..2 {
            let stored = |reply: &EnqueueReply| matches!(reply, EnqueueReply::Stored { .. });
            failures.check("enqueue", store.enqueue(batch.clone()).await, stored);
        }
        let mut step = tasks.step();
        (step.connected, step.losses) = (LONG, 1_000);
        let yours = |reply: &DispatchReply| matches!(reply, DispatchReply::Yours(_));
        failures.check("dispatch", store.dispatch(step.clone()).await, yours);
        let mut begun = Vec::new();
        for _ in 0..3 {
            let mut wish = tasks.wish("rotten", 20, &[usual()]);
            wish.number += 1_000;
            let reply = failures.check("take", store.take(wish.clone()).await, |_| true);
            begun.extend(reply.map(|reply| reply.taken).unwrap_or_default());
            failures.check("take again", store.take(wish).await, |_| true);
        }
        for key in [name("own"), name("again")] {
            let Some(taken) = begun.iter().find(|taken| taken.key == key) else {
                failures.0.push(format!("{key} is not begun"));
                continue;
            };
            let beats = TaskBeats {
                shard: shard.clone(),
                attempts: vec![
                    (key.clone(), taken.fence),
                    (self.running.key.clone(), self.running.fence),
                ],
            };
            let heard = |replies: &Vec<BeatReply>| replies[0] == BeatReply::Heard;
            failures.check("beat", store.beat_tasks(beats).await, heard);
        }
        let mut ends: Vec<_> = begun.iter().map(|taken| end_of(taken, TaskEnding::Done)).collect();
        for end in &mut ends {
            if end.key == name("again") {
                end.how = retry(Duration::ZERO);
            }
        }
        ends.push(end_of(&self.running, retry(Duration::ZERO)));
        let batch = FinishBatch {
            shard: shard.clone(),
            holder: holder("rotten"),
            ends,
            keep: tasks.keep,
        };
        for _ in 0..2 {
            let own = begun.iter().position(|taken| taken.key == name("own"));
            let taken = |replies: &Vec<FinishReply>| own.is_none_or(|own| replies[own] == FinishReply::Taken);
            failures.check("finish", store.finish(batch.clone()).await, taken);
        }
        let change = |key: &str, change| ChangeTask {
            shard: shard.clone(),
            key: key.to_owned(),
            change,
            keep: tasks.keep,
        };
        let cancelled = |changed: &Changed| matches!(changed, Changed::Done(TaskStatus::Pending));
        let cancel = change(&name("later"), TaskChange::Cancel);
        failures.check("cancel", store.change_task(cancel).await, cancelled);
        for status in TaskStatus::ALL {
            let page = store.list_tasks(tasks.all(*status)).await;
            let page = failures.check("list", page, |_| true).unwrap_or_default();
            let has = page.tasks.iter().any(|task| task.key == name("own"));
            if has != (*status == TaskStatus::Done) {
                failures.0.push(format!("{status}: {has}"));
            }
        }
        failures.check("figures", store.task_figures(shard).await, |_| true);
        let done = |task: &Option<leader_core::__seam::StoredTask>| {
            task.as_ref().is_some_and(|task| task.status == TaskStatus::Done)
        };
        failures.check("task", store.task(shard, &name("own")).await, done);
        let holder = store.unique(shard, &name("unique")).await;
        failures.check("unique", holder, Option::is_none);
        // What is rotten itself is answered too.
        for key in ["pending", "running", "dispatched", "dead", "done", "failed"] {
            failures.check("read", store.task(shard, key).await, |_| true);
        }
        if round > 1 {
            for key in ["pending", "running", "dispatched", "dead", "failed"] {
                let mut tries = vec![TaskChange::Retry, TaskChange::Cancel];
                tries.insert(0, TaskChange::Reschedule(leader_core::__seam::Due::After(LATER)));
                for what in tries {
                    failures.check("change", store.change_task(change(key, what)).await, |_| true);
                }
            }
        }
        let waits = AwaitTasks {
            shards: vec![shard.clone()],
            tasks: vec![task_name("charge")],
            bound: Duration::from_millis(1),
        };
        failures.check("wait", store.await_tasks(waits).await, |()| true);
        let forgets = store.forget_once(shard, vec![name("own")]).await;
        failures.check("forget once", forgets, |()| true);
        // Silences are judged, and what has ended goes.
        (step.silence, step.keep.ended_for, step.keep.dead_for) = (Duration::ZERO, LONG, LONG);
        failures.check("judging dispatch", store.dispatch(step.clone()).await, yours);
        step.keep.dead = 0;
        failures.check("forgetting dispatch", store.dispatch(step).await, yours);
        failures.0
    }
}

/// Each script alone in a shard: whatever is asked, twice over.
async fn try_all(scripts: Vec<String>) {
    let mut failed = Vec::new();
    for script in scripts {
        let case = Case::new().await;
        case.write(&script).await;
        for round in 1..3 {
            for failure in case.failures(round).await {
                let script = script.chars().take(150).collect::<String>();
                failed.push(format!("{script}: round {round}: {failure}"));
            }
        }
    }
    let few = failed.iter().take(60).cloned().collect::<Vec<_>>().join("\n");
    assert!(failed.is_empty(), "{} failures:\n{few}", failed.len());
}

/// Each of these values in each of these fields of hashes, `#` being the value.
fn each(fields: &[(&str, &str, &str)]) -> Vec<String> {
    let mut scripts = Vec::new();
    for (key, field, line) in fields {
        for word in JUNK {
            let (line, field) = (line.replace('#', &junk(word)), field.replace('#', &junk(word)));
            scripts.push(format!("return redis.call('HSET', '${key}', '{field}', '{line}')"));
        }
    }
    scripts
}

#[tokio::test]
async fn a_record_that_is_nobodys_stops_no_other_task() {
    let mut fields = Vec::new();
    for task in ["pending", "running", "dispatched", "dead", "failed"] {
        fields.push(("tasks", task, "#"));
        fields.push(("tasks", task, "1:charge # 0 1 \\n1"));
        fields.push(("tasks", task, "1:charge 0 # 1 \\n1"));
        fields.push(("tasks", task, "#:charge 0 0 1 \\n1"));
        fields.push(("tasks", task, "1:# 0 0 1 \\n1"));
    }
    try_all(each(&fields)).await;
}

#[tokio::test]
async fn what_is_nobodys_about_attempts_stops_no_other_task() {
    let mut fields = Vec::new();
    for task in ["pending", "running", "dispatched", "dead", "failed"] {
        fields.push(("attempts", task, "#"));
        for state in ["r", "d", "w"] {
            let head = "\\n1:charge 0 0 1 ";
            for line in [
                "# 5 0 0 - 0 0 w",
                "1 # 0 0 - 0 0 w",
                "1 5 # 0 - 0 0 w",
                "1 5 0 0 # 0 0 w",
            ] {
                let line: &'static str = format!("{state} {line}{head}").leak();
                fields.push(("attempts", task, line));
            }
            let line: &'static str = format!("{state} 1 5 0 0 - 0 0 w{head}\\n#").leak();
            fields.push(("attempts", task, line));
        }
    }
    try_all(each(&fields)).await;
}

#[tokio::test]
async fn what_is_nobodys_in_the_hashes_of_a_shard_stops_no_task() {
    let process = format!("{}", holder("rotten"));
    let process: &'static str = process.leak();
    try_all(each(&[
        ("takes", process, "#"),
        ("takes", process, "# 5\\na"),
        ("takes", process, "5 #\\n#"),
        ("takes", "#", "#"),
        ("producers", process, "#"),
        ("producers", process, "# 5"),
        ("producers", process, "1 #\\n#"),
        ("producers", "#", "#"),
        ("unique", "unique-1", "#"),
        ("unique", "#", "own-1"),
        ("once", "#", "#"),
        ("cancels", "#", "#"),
        ("cancels", "running", "#"),
        ("unfinished", "1", "#"),
        ("unfinished", "#", "1"),
        ("counts", "done", "#"),
        ("counts", "started", "#"),
        ("counts", "dispatched", "#"),
        ("counts", "enqueued", "#"),
        ("counts", "#", "1"),
        ("ended", "first", "#"),
        ("ended", "last", "#"),
        ("ended", "kept", "#"),
        ("ended", "t1", "#"),
        ("ended", "#", "#"),
        ("ended:1", "done", "#"),
        ("ended:1", "done", "done 5\\n#"),
        ("ended:1", "done", "done #\\nr 1 5 0 0 - 0 0 w\\n1:charge 0 0 1 "),
        ("ended:1", "#", "#"),
    ]))
    .await;
}

#[tokio::test]
async fn what_is_nobodys_in_the_order_of_a_shard_stops_no_task() {
    let mut scripts = Vec::new();
    for score in ["0", "-inf", "+inf", "1e300", "-1e300", "99999999999999"] {
        for word in JUNK {
            let word = junk(word);
            for key in [
                "lanes",
                "minutes:1:charge",
                "running",
                "dead",
                "due:1:charge:0",
                "due:1:charge:5",
            ] {
                let index = if key.starts_with("due:") {
                    let minute = key.rsplit(':').next().unwrap();
                    format!(
                        "redis.call('ZADD', '$minutes:1:charge', {minute}, '{minute}') redis.call('ZADD', '$lanes', 0, '1:charge') "
                    )
                } else {
                    String::new()
                };
                scripts.push(format!(
                    "{index}return redis.call('ZADD', '${key}', '{score}', '{word}')"
                ));
            }
        }
    }
    for word in JUNK {
        let word = junk(word);
        scripts.push(format!("return redis.call('SADD', '$seen', '{word}')"));
        scripts.push(format!("return redis.call('SET', '$generation', '{word}')"));
        scripts.push(format!(
            "return redis.call('XADD', '$stream:1:charge', '*', 'k', '{word}')"
        ));
        scripts.push(format!(
            "return redis.call('XADD', '$stream:1:charge', '*', 'x', '{word}')"
        ));
        scripts.push(format!(
            "return redis.call('XADD', '$stream:1:charge', '*', '{word}', 'pending')"
        ));
        scripts.push(format!("return redis.call('RPUSH', '$bell:charge', '{word}')"));
    }
    try_all(scripts).await;
}

#[tokio::test]
async fn what_is_nobodys_of_a_queue_stops_nobody_who_asks_for_it() {
    let case = Case::new().await;
    let (store, queue) = (case.tasks.store(), case.tasks.shard.queue.clone());
    let key = format!("{{{}:leader-queue:{queue}}}:generations", case.tasks.bench.namespace);
    let mut failures = Failures::default();
    for (newest, earlier) in [
        ("#", "3 2\n1 1\n"),
        ("4 #", "3 2\n1 1\n"),
        ("# 2", "3 2\n1 1\n"),
        ("4 2", "#\n3 2\n#\n"),
        ("4 2", "# 2\n3 #\n3 2"),
        ("0", "#"),
        ("4 0", "3 2\n"),
    ] {
        for word in JUNK {
            let of = |line: &str| line.replace('#', &junk(word));
            let words = ["HSET", &key, "newest", &of(newest), "earlier", &of(earlier)];
            case.command(&words).await;
            let what = format!("{newest:?} {earlier:?} {word:?}");
            let ask = |shards| OpenQueue {
                queue: queue.clone(),
                shards,
            };
            let known = failures.check(&what, store.open_queue(ask(None)).await, |_| true);
            let number = known.map(|known| known.newest.number).unwrap_or_default();
            let rises = |known: &Generations| known.newest.number == number + 1 && known.newest.shards == 7;
            failures.check(&what, store.open_queue(ask(Some(7))).await, rises);
            let queue = queue.clone();
            let closed = store.close_generation(Closed { queue, number }).await;
            let is_closed = |known: &Generations| known.earlier.iter().all(|one| one.number != number);
            failures.check(&what, closed, is_closed);
        }
    }
    let all = &failures.0;
    assert!(all.is_empty(), "{} failures: {:?}", all.len(), &all[..all.len().min(9)]);
}

/// One type of key where another was.
fn of_another_type(key: &str) -> [String; 2] {
    [
        format!("redis.call('DEL', '${key}') return redis.call('SET', '${key}', 'x')"),
        format!("redis.call('DEL', '${key}') return redis.call('GEOADD', '${key}', 1, 1, 'x')"),
    ]
}

/// They are of one lane, or of what is only counted: they go.
#[tokio::test]
async fn keys_of_parts_of_another_type_stop_no_task() {
    let mut scripts = Vec::new();
    for key in ["stream:1:charge", "bell:charge", "ended", "ended:1", "counts", "seen"] {
        scripts.extend(of_another_type(key));
    }
    scripts
        .push("redis.call('DEL', '$minutes:1:charge') return redis.call('SET', '$minutes:1:charge', 'x')".to_owned());
    for minute in ["0", "5"] {
        scripts.push(format!(
            "redis.call('ZADD', '$minutes:1:charge', {minute}, '{minute}') redis.call('ZADD', '$lanes', 0, '1:charge') \
             return redis.call('SET', '$due:1:charge:{minute}', 'x')"
        ));
    }
    try_all(scripts).await;
}

/// Who asks for what such a key has is told so, and nothing is half done: when it is as it was, every task goes its way.
#[tokio::test]
async fn keys_of_a_shard_of_another_type_are_told_and_nothing_is_half_done() {
    let all = [
        "tasks",
        "attempts",
        "running",
        "lanes",
        "dead",
        "unique",
        "once",
        "cancels",
        "unfinished",
        "producers",
        "takes",
        "generation",
    ];
    for key in all {
        let case = Case::new().await;
        let tasks = &case.tasks;
        let (key, aside) = (case.key(key), case.key("aside"));
        // Whatever is there is there again.
        let renamed = case.command(&["RENAME", &key, &aside]).await;
        let was_there = matches!(renamed, Value::Okay);
        assert!(was_there || key.ends_with("cancels"), "{key}: {renamed:?}");
        for wrong in [&["SET", &key, "x"][..], &["RPUSH", &key, "x"]] {
            case.command(&["DEL", &key]).await;
            case.command(wrong).await;
            let mut failures = Failures::default();
            let (store, shard) = (tasks.store(), &tasks.shard);
            failures.check(
                "enqueue",
                store.enqueue(tasks.batch(vec![once("new"), unique("u", "u")])).await,
                |_| true,
            );
            failures.check("dispatch", store.dispatch(tasks.impatient()).await, |_| true);
            failures.check("take", store.take(tasks.wish("worker", 9, &[usual()])).await, |_| true);
            for how in [TaskEnding::Done, bury(), retry(LATER), TaskEnding::HandBack] {
                let batch = FinishBatch {
                    shard: shard.clone(),
                    holder: holder("worker"),
                    ends: vec![end_of(&case.running, how)],
                    keep: tasks.keep,
                };
                failures.check("finish", store.finish(batch).await, |_| true);
            }
            for key in ["pending", "dispatched", "dead", "failed", "running"] {
                for change in [TaskChange::Retry, TaskChange::Cancel] {
                    let change = ChangeTask {
                        shard: shard.clone(),
                        key: key.to_owned(),
                        change,
                        keep: tasks.keep,
                    };
                    failures.check("change", store.change_task(change).await, |_| true);
                }
            }
            for failure in &failures.0 {
                assert!(failure.contains("WRONGTYPE"), "{key}: {failure}");
            }
        }
        case.command(&["DEL", &key]).await;
        if was_there {
            case.command(&["RENAME", &aside, &key]).await;
        }
        // Everything that is unfinished can be had and done.
        let again = ["new", "u"].map(new).to_vec();
        tasks.send(tasks.batch(again)).await;
        for key in ["pending", "failed"] {
            tasks
                .change(
                    key,
                    TaskChange::Reschedule(leader_core::__seam::Due::After(Duration::ZERO)),
                )
                .await;
        }
        for _ in 0..2 {
            tasks.dispatch_by(tasks.impatient()).await;
            let taken = tasks.take("another", 20).await;
            let ends = taken.iter().map(|taken| end_of(taken, TaskEnding::Done)).collect();
            let replies = tasks.finish_all(ends).await;
            assert!(replies.iter().all(|reply| *reply == FinishReply::Taken), "{key}");
        }
        let figures = tasks.figures().await;
        assert_eq!(
            (
                figures.pending,
                figures.dispatched,
                figures.running,
                figures.unfinished.len()
            ),
            (0, 0, 0, 0),
            "{key}: {figures:?}"
        );
    }
}

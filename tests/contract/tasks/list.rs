//! Tasks are listed in pages, and counted.

use leader_core::__seam::{Due, Priority, TaskEnding, TaskStatus};

use super::bench::{LATER, TaskBench, bury, due_in, lane, new, of_lane, retry, task_name};
use crate::bench::{Bench, after};

on_each_store!(
    what_waits_is_listed_by_lane_and_then_by_due_time,
    every_list_is_read_in_pages_of_any_size,
    lists_may_be_of_one_name_or_until_a_due_time,
    a_place_that_no_page_ended_at_is_refused,
    figures_count_what_is_there,
);

async fn what_waits_is_listed_by_lane_and_then_by_due_time(bench: Bench) {
    let tasks = TaskBench::on(bench).await;
    let past: jiff::Timestamp = "2026-03-02T12:00:00Z".parse().unwrap();
    let at = |key: &str, priority, name: &str, seconds: i64| {
        let mut task = of_lane(key, lane(priority, name));
        task.due = Due::At(after(past, seconds));
        task
    };
    let all = [
        at("c", Priority::Normal, "mail", 1),
        at("b", Priority::Normal, "charge", 100),
        at("a", Priority::Normal, "charge", 200),
        at("e", Priority::Low, "charge", 0),
        at("d", Priority::High, "zip", 500),
        at("B", Priority::Normal, "charge", 100),
    ];
    tasks.store_all(all.to_vec()).await;
    assert_eq!(tasks.list(TaskStatus::Pending).await, ["d", "B", "b", "a", "c", "e"]);
    assert_eq!(tasks.list(TaskStatus::Failed).await, [""; 0]);
    tasks.dispatch().await;
    assert_eq!(tasks.list(TaskStatus::Dispatched).await, ["d", "B", "b", "a", "c", "e"]);
}

async fn every_list_is_read_in_pages_of_any_size(bench: Bench) {
    let tasks = TaskBench::on(bench).await;
    let names = |kind: &str| -> Vec<String> { (0..5).map(|n| format!("{kind}{n}")).collect() };
    for key in names("done") {
        tasks.live(&key, TaskEnding::Done).await;
        tasks.tick().await;
    }
    for key in names("cancelled") {
        let taken = tasks.begin(new(&key)).await;
        tasks.finish(&taken, TaskEnding::Cancelled).await;
        tasks.tick().await;
    }
    for key in names("dead") {
        tasks.live(&key, bury()).await;
        tasks.tick().await;
    }
    for key in names("failed") {
        tasks.live(&key, retry(LATER)).await;
        tasks.tick().await;
    }
    for key in names("running") {
        tasks.begin(new(&key)).await;
        tasks.tick().await;
    }
    tasks
        .store_all(names("dispatched").iter().map(|key| new(key)).collect())
        .await;
    tasks.dispatch().await;
    tasks
        .store_all(names("pending").iter().map(|key| due_in(key, LATER)).collect())
        .await;
    for status in TaskStatus::ALL {
        let expected = names(status.as_str());
        for most in [1, 2, 3, 5, 1_000] {
            let mut request = tasks.all(*status);
            request.most = most;
            assert_eq!(tasks.list_by(request).await, expected, "{status} by {most}");
        }
    }
    let page = tasks.page(tasks.all(TaskStatus::Dead)).await;
    assert_eq!((page.tasks.len(), page.next), (5, None));
    let listed = &page.tasks[2];
    let mut read = tasks.task("dead2").await;
    assert!(read.payload.take().is_some());
    assert_eq!(*listed, read, "all but the payload");
}

async fn lists_may_be_of_one_name_or_until_a_due_time(bench: Bench) {
    let tasks = TaskBench::on(bench).await;
    let past: jiff::Timestamp = "2026-03-02T12:00:00Z".parse().unwrap();
    let mut all = Vec::new();
    for n in 0..6 {
        let name = if n % 2 == 0 { "charge" } else { "mail" };
        let mut task = of_lane(&format!("{n}"), lane(Priority::Normal, name));
        task.due = Due::At(after(past, n));
        all.push(task);
    }
    tasks.store_all(all).await;
    let asked = async |status, name: Option<&str>, before: Option<i64>| {
        let mut keys = Vec::new();
        for most in [1, 1_000] {
            let mut request = tasks.all(status);
            request.task = name.map(task_name);
            request.due_before = before.map(|seconds| after(past, seconds));
            request.most = most;
            keys.push(tasks.list_by(request).await.join(" "));
        }
        assert_eq!(keys[0], keys[1]);
        keys.pop().unwrap()
    };
    let check = async |status| {
        assert_eq!(asked(status, Some("mail"), None).await, "1 3 5");
        assert_eq!(asked(status, None, Some(3)).await, "0 2 1");
        assert_eq!(asked(status, Some("charge"), Some(4)).await, "0 2");
        assert_eq!(asked(status, Some("none"), None).await, "");
        assert_eq!(asked(status, None, Some(0)).await, "");
    };
    check(TaskStatus::Pending).await;
    tasks.dispatch().await;
    check(TaskStatus::Dispatched).await;
    let lanes = ["charge", "mail"].map(|name| lane(Priority::Normal, name));
    let taken = tasks.take_by(tasks.wish("worker", 9, &lanes)).await.taken;
    check(TaskStatus::Running).await;
    for taken in &taken {
        tasks.finish(taken, bury()).await;
        tasks.tick().await;
    }
    check(TaskStatus::Dead).await;
}

async fn a_place_that_no_page_ended_at_is_refused(bench: Bench) {
    let tasks = TaskBench::on(bench).await;
    tasks.store_all(vec![new("a"), due_in("b", LATER)]).await;
    for status in TaskStatus::ALL {
        for after in ["nonsense", "0", "1:charge x", "x 1 2"] {
            let mut request = tasks.all(*status);
            request.after = Some(after.to_owned());
            if *status == TaskStatus::Running && after == "0" {
                // A fence is a place of these.
                continue;
            }
            let error = tasks.store().list_tasks(request).await.unwrap_err();
            assert_eq!(error.code(), Some("CURSOR"), "{status} after {after}: {error}");
            let source = std::error::Error::source(&error).map(ToString::to_string);
            let words = format!("{error} {}", source.unwrap_or_default());
            assert!(words.contains("begin with the first page"), "{words}");
        }
    }
}

async fn figures_count_what_is_there(bench: Bench) {
    let tasks = TaskBench::on(bench).await;
    let past: jiff::Timestamp = "2026-03-02T12:00:00Z".parse().unwrap();
    let mut first = of_lane("first", lane(Priority::Low, "mail"));
    first.due = Due::At(past);
    tasks
        .store_all(vec![new("a"), first, due_in("later", LATER), new("b")])
        .await;
    let figures = tasks.figures().await;
    assert_eq!((figures.pending, figures.due, figures.oldest_due), (4, 3, Some(past)));
    tasks.dispatch().await;
    let taken = tasks.take("worker", 1).await;
    let figures = tasks.figures().await;
    assert_eq!((figures.pending, figures.due, figures.oldest_due), (1, 0, None));
    assert_eq!((figures.dispatched, figures.running, figures.dead), (2, 1, 0));
    tasks.finish(&taken[0], bury()).await;
    let figures = tasks.figures().await;
    assert_eq!((figures.dispatched, figures.running, figures.dead), (2, 0, 1));
    assert_eq!(figures.unfinished, [(1, 3)].into());
    assert!(figures.now >= tasks.task("a").await.created);
}

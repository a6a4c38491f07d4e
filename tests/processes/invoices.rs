//! The midnight invoice run: in one process and on a real server, with and without the death of a dispatcher and a worker.

use std::collections::BTreeMap;
use std::process::{Command, Output};
use std::time::Duration;

use leader_tests::RedisServer;
use redis::Value;

use crate::programs::{Process, program};

const INVOICES: u64 = 2_000;

/// Runs it to its end and gives the numbers of the table that it prints last.
async fn run(server: Option<&RedisServer>, arguments: &[&str]) -> BTreeMap<String, f64> {
    let mut command = Command::new(program("tasks"));
    command.args(["--invoices", &INVOICES.to_string()]).args(arguments);
    let mut process = match server {
        Some(server) => Process::start_on("tasks", &mut command, &server.url()),
        None => Process::start("tasks", &mut command),
    };
    let status = process.ended(Duration::from_secs(90)).await;
    process
        .says(Duration::from_secs(5), "the last line", |line| {
            line.trim_start().starts_with("rate")
        })
        .await;
    let out = process.out();
    println!("{}", out.join("\n"));
    assert!(status.success(), "{status}");
    let rows = out.iter().filter_map(|line| {
        // `  lost attempts     128   what it means`
        let (name, rest) = line.strip_prefix("  ")?.split_at_checked(14)?;
        let number = rest.split_whitespace().next()?.parse().ok()?;
        Some((name.trim().to_owned(), number))
    });
    rows.collect()
}

/// What holds of every run.
fn adds_up(table: &BTreeMap<String, f64>, killed: bool) {
    let number = |name: &str| *table.get(name).unwrap_or_else(|| panic!("no {name} in {table:?}"));
    let is =
        |name: &str, wanted: f64| assert!((number(name) - wanted).abs() < 0.5, "{name} is not {wanted}: {table:?}");
    #[allow(clippy::cast_precision_loss, reason = "a small number")]
    let all = INVOICES as f64;
    is("due", all);
    is("executed", all);
    for none in ["duplicates", "early", "missed", "backlog", "late writes"] {
        is(none, 0.0);
    }
    let lost = number("lost attempts");
    assert_eq!(lost > 0.0, killed, "{table:?}");
    is("attempts", all + lost);
    is("dispatched", all + lost);
    assert!(number("confirmed") <= lost, "{table:?}");
    assert!(number("drain time") < 30.0 && number("rate") > 0.0, "{table:?}");
}

/// With work that takes long enough for both kills to find attempts under way.
const KILLS: &[&str] = &["--kill", "--work", "100ms"];

#[tokio::test]
async fn every_invoice_is_charged_once_in_one_process() {
    adds_up(&run(None, &[]).await, false);
}

#[tokio::test]
async fn kills_in_one_process_cost_no_invoice() {
    adds_up(&run(None, KILLS).await, true);
}

#[tokio::test]
async fn every_invoice_is_charged_once_by_processes_on_redis() {
    let server = RedisServer::start().await;
    adds_up(&run(Some(&server), &[]).await, false);
    assert_eq!(
        server.command(&["DBSIZE"]).await,
        Value::Int(0),
        "it leaves something behind"
    );
}

#[tokio::test]
async fn killed_processes_cost_no_invoice() {
    let server = RedisServer::start().await;
    adds_up(&run(Some(&server), KILLS).await, true);
    assert_eq!(
        server.command(&["DBSIZE"]).await,
        Value::Int(0),
        "it leaves something behind"
    );
}

#[test]
fn an_impossible_night_is_refused() {
    for (arguments, why) in [
        (&["--invoices", "0"][..], "from 1 to 10000000"),
        (&["--instances", "2", "--kill"], "from 3 to 32 (two are killed)"),
        (
            &["--instance", "worker-9", "--namespace", "x"],
            "needs LEADER_REDIS_URL",
        ),
        (&["--work", "soon"], "--work"),
    ] {
        let Output { status, stderr, stdout } = Command::new(program("tasks"))
            .args(arguments)
            .env_remove("LEADER_REDIS_URL")
            .output()
            .expect("started");
        let message = String::from_utf8_lossy(&stderr);
        assert_eq!(status.code(), Some(2), "{arguments:?}: {message}");
        assert!(message.contains(why), "{arguments:?}: {message}");
        assert!(stdout.is_empty(), "{arguments:?}");
    }
}

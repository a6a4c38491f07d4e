//! A process that is frozen in the middle of its work for longer than a lease: what it writes when it wakes is refused everywhere.

use std::collections::BTreeMap;
use std::process::Command;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::routing::put;
use leader_core::fencing::http::{FenceLayer, MemoryFences};
use leader_core::fencing::sql;
use leader_tests::{PostgresServer, RedisServer, eventually};
use redis::Value;
use rustix::process::Signal;
use serde::Deserialize;
use tokio::sync::watch;

use crate::programs::Process;

const SOON: Duration = Duration::from_secs(30);
const PLACES: [&str; 4] = ["database", "redis", "server", "table"];

/// What became of one write, as the process tells.
#[derive(Clone, Debug, Deserialize)]
struct Told {
    half: String,
    to: String,
    fence: u64,
    refusal: Option<String>,
    /// As an error that is told apart by its type, where the client has one.
    is_fenced: bool,
}

/// The writes of the first run that a process has told of, by place.
fn told(process: &Process, half: &str) -> BTreeMap<String, Told> {
    let lines = process.out();
    let mut told = BTreeMap::new();
    for line in lines.iter().filter(|line| line.starts_with('{')) {
        let line: Told = serde_json::from_str(line).unwrap();
        if line.half == half {
            told.entry(line.to.clone()).or_insert(line);
        }
    }
    told
}

async fn has_told(process: &Process, half: &str, what: &str) -> BTreeMap<String, Told> {
    eventually(SOON, what, || async { told(process, half).len() == PLACES.len() }).await;
    told(process, half)
}

fn start(id: &str, redis: &RedisServer, database: &PostgresServer, server: std::net::SocketAddr) -> Process {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fenced_writer"));
    command
        .arg(id)
        .arg(redis.url())
        .arg(database.directory())
        .arg(server.to_string());
    Process::start(id, &mut command)
}

async fn keep(State(text): State<watch::Sender<String>>, body: String) {
    text.send_replace(body);
}

#[tokio::test]
async fn what_a_frozen_run_writes_when_it_wakes_is_refused_everywhere() {
    let (redis, database) = (RedisServer::start().await, PostgresServer::start().await);
    let client = database.client().await;
    client.batch_execute(sql::GUARD_TABLE).await.unwrap();
    let tables = "CREATE TABLE report (id bigint PRIMARY KEY, body text NOT NULL, fence bigint NOT NULL);
        CREATE TABLE line (body text NOT NULL); INSERT INTO report VALUES (7, '', 0)";
    client.batch_execute(tables).await.unwrap();
    let text = watch::Sender::new(String::new());
    let layer = FenceLayer::new(MemoryFences::with_capacity(10)).require();
    let routes = Router::new()
        .route("/reports/7", put(keep))
        .layer(layer)
        .with_state(text.clone());
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let server = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, routes).await });

    let a = start("a", &redis, &database, server);
    let first = has_told(&a, "first", "a has done the first half").await;
    assert!(first.values().all(|write| write.refusal.is_none()), "{first:?}");
    let b = start("b", &redis, &database, server);
    a.signal(Signal::STOP);
    eventually(SOON, "a stands still", || async { a.is_still() }).await;

    // The lease ends, and the successor does the whole of its work.
    let successor = has_told(&b, "first", "b follows").await;
    redis.command(&["SET", "go:b", "1"]).await;
    let whole = has_told(&b, "second", "b is done").await;
    assert!(whole.values().all(|write| write.refusal.is_none()), "{whole:?}");
    let (old, new) = (first["redis"].fence, successor["redis"].fence);
    assert!(new > old, "{new} after {old}");

    // The first one's work may go on as soon as its process does.
    redis.command(&["SET", "go:a", "1"]).await;
    a.signal(Signal::CONT);
    let late = has_told(&a, "second", "a has tried the second half").await;
    for (place, write) in &late {
        assert_eq!(write.fence, old, "of the same run: {write:?}");
        let refusal = write
            .refusal
            .as_deref()
            .unwrap_or_else(|| panic!("{place} has let it in"));
        println!("{place}: {refusal}");
        assert_eq!(
            write.is_fenced,
            ["database", "table"].contains(&place.as_str()),
            "{write:?}"
        );
        let words = match place.as_str() {
            "database" => format!("no row of `report 7` took fence {old}"),
            "table" => format!("`frozen/lines` refuses fence {old}"),
            "redis" => format!("`report:7` refuses fence {old}: a newer run has written to it under fence "),
            _ => format!("`/reports/7` refuses fence {old}: a newer run has written to it under fence "),
        };
        assert!(refusal.contains(&words), "{refusal}");
    }
    assert!(late["server"].refusal.as_deref().unwrap().starts_with("HTTP/1.1 412 "));

    // Nothing of it stands anywhere, but for the line that it wrote while it was the newest.
    let of_old = format!("under {old}");
    let body: String = client.query_one("SELECT body FROM report", &[]).await.unwrap().get(0);
    let Value::BulkString(value) = redis.command(&["GET", "report:7"]).await else {
        panic!("no value");
    };
    let value = String::from_utf8(value).unwrap();
    for stands in [body, value, text.borrow().clone()] {
        assert!(stands.contains("under ") && !stands.ends_with(&of_old), "{stands}");
    }
    let lines = "SELECT body FROM line WHERE body LIKE '%' || $1";
    let lines = client.query(lines, &[&of_old]).await.unwrap();
    let lines: Vec<String> = lines.iter().map(|row| row.get(0)).collect();
    assert_eq!(lines, [format!("first half {of_old}")]);
}

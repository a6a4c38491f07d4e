//! What the processes `fenced_writer` write to, and what they tell of it.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::process::Command;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::routing::put;
use leader_core::fencing::http::{FenceLayer, MemoryFences};
use leader_core::fencing::sql;
use leader_tests::{PostgresServer, RedisServer, eventually};
use redis::Value;
use serde::Deserialize;
use tokio::sync::watch;
use tokio_postgres::Client;

use crate::programs::Process;

pub(crate) const SOON: Duration = Duration::from_secs(30);
pub(crate) const PLACES: [&str; 4] = ["database", "redis", "server", "table"];

/// What became of one write, as the process tells.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Told {
    half: String,
    to: String,
    pub(crate) fence: u64,
    pub(crate) refusal: Option<String>,
    /// As an error that is told apart by its type, where the client has one.
    pub(crate) is_fenced: bool,
}

impl Told {
    /// A write of a second half that was tried here.
    pub(crate) fn refused(to: &str, fence: u64, refusal: String, is_fenced: bool) -> Self {
        Self {
            half: "second".to_owned(),
            to: to.to_owned(),
            fence,
            refusal: Some(refusal),
            is_fenced,
        }
    }
}

/// The writes of the first run that a process has told of, by place.
pub(crate) fn told(process: &Process, half: &str) -> BTreeMap<String, Told> {
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

pub(crate) async fn has_told(process: &Process, half: &str, what: &str) -> BTreeMap<String, Told> {
    eventually(SOON, what, || async { told(process, half).len() == PLACES.len() }).await;
    told(process, half)
}

/// Each place has refused the write of an old run, in its own words.
pub(crate) fn all_refused(late: &BTreeMap<String, Told>, old: u64) {
    assert_eq!(late.len(), PLACES.len(), "{late:?}");
    for (place, write) in late {
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
}

/// The servers.
pub(crate) struct Places {
    pub(crate) redis: RedisServer,
    pub(crate) database: PostgresServer,
    pub(crate) client: Client,
    pub(crate) server: SocketAddr,
    text: watch::Sender<String>,
}

impl Places {
    pub(crate) async fn open() -> Self {
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
        Self {
            redis,
            database,
            client,
            server,
            text,
        }
    }

    /// Starts a process that writes to them while it leads a group.
    pub(crate) fn start(&self, id: &str, group: &str, retries: u32) -> Process {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fenced_writer"));
        command
            .arg(id)
            .arg(self.redis.url())
            .arg(self.database.directory())
            .arg(self.server.to_string())
            .arg(group)
            .arg(retries.to_string());
        Process::start(id, &mut command)
    }

    /// Lets a process go on with its second half.
    pub(crate) async fn let_go(&self, id: &str) {
        self.redis.command(&["SET", &format!("go:{id}"), "1"]).await;
    }

    /// Nothing of an old run stands anywhere, but for the line that it wrote while it was the newest.
    pub(crate) async fn nothing_stands_of(&self, old: u64) {
        let of_old = format!("under {old}");
        let body = self.client.query_one("SELECT body FROM report", &[]).await;
        let body: String = body.unwrap().get(0);
        let Value::BulkString(value) = self.redis.command(&["GET", "report:7"]).await else {
            panic!("no value");
        };
        let value = String::from_utf8(value).unwrap();
        for stands in [body, value, self.text.borrow().clone()] {
            assert!(stands.contains("under ") && !stands.ends_with(&of_old), "{stands}");
        }
        let lines = "SELECT body FROM line WHERE body LIKE '%' || $1";
        let lines = self.client.query(lines, &[&of_old]).await.unwrap();
        let lines: Vec<String> = lines.iter().map(|row| row.get(0)).collect();
        assert_eq!(lines, [format!("first half {of_old}")]);
    }
}

async fn keep(State(text): State<watch::Sender<String>>, body: String) {
    text.send_replace(body);
}

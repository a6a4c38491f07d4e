//! The program that every instance of these tests runs, and how it is asked over HTTP.

use std::net::SocketAddr;
use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use leader_core::admin::Admin;
use leader_core::{Bootstrap, IntoStore, Lead, Payload, Task, Tick, Timing, leader_only, scheduled, task};
use leader_tests::eventually;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tower_service::Service;

pub(crate) const SOON: Duration = Duration::from_secs(20);

/// Succeeds each second.
#[leader_only(group = "work", every = "1s")]
pub(crate) async fn works(_tick: Tick) {}

/// Fails each second, after another try.
#[leader_only(group = "work", every = "1s", retries = 1, backoff = "1ms..1ms")]
pub(crate) async fn fails(_tick: Tick) -> Result<(), String> {
    Err("it was to fail".to_owned())
}

/// Belongs to a group of its own, and is never due.
#[leader_only(group = "calm", cron = "0 0 29 2 *")]
pub(crate) async fn rarely(_tick: Tick) {}

/// Needs no leader.
#[scheduled(on = "any", group = "work", every = "1s")]
pub(crate) async fn anywhere(_tick: Tick) {}

/// Runs for the schedules that are made for it.
#[leader_only(group = "work", handler)]
pub(crate) async fn handles(_tick: Tick, Payload(_payload): Payload<u32>) {}

/// Lives as long as a lead.
#[leader_only(group = "work", while_leading)]
pub(crate) async fn lives(lead: Lead) {
    lead.cancelled().await;
}

/// Does what its payload says.
#[task(queue = "mail", retries = 1, backoff = "1ms..1ms")]
pub(crate) async fn send(what: String, _task: Task) -> Result<(), String> {
    if what == "fails" { Err(what) } else { Ok(()) }
}

pub(crate) fn instance(store: impl IntoStore, id: &str) -> Bootstrap {
    leader_core::bootstrap(store)
        .service("shop")
        .instance_id(id)
        .first_start(true)
        .timing(Timing::from_ttl(Duration::from_secs(2)))
}

/// What was answered.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) kind: String,
    pub(crate) text: String,
}

/// Asks the service as a server would.
pub(crate) async fn ask(admin: &Admin, method: &str, uri: &str, accept: &str) -> Answer {
    let request = Request::builder().method(method).uri(uri).header("accept", accept);
    let answer = admin.clone().call(request.body(Body::empty()).unwrap()).await.unwrap();
    let (parts, body) = answer.into_parts();
    assert_eq!(parts.headers["cache-control"], "no-store");
    assert_eq!(parts.headers["x-content-type-options"], "nosniff");
    assert!(
        parts.headers["content-security-policy"]
            .to_str()
            .unwrap()
            .starts_with("default-src 'none'")
    );
    Answer {
        status: parts.status.as_u16(),
        kind: parts.headers["content-type"].to_str().unwrap().to_owned(),
        text: String::from_utf8(body.into_bytes()).unwrap(),
    }
}

pub(crate) async fn soon(what: &str, condition: impl FnMut() -> bool) {
    let mut condition = condition;
    eventually(SOON, what, || std::future::ready(condition())).await;
}

/// Gets a page over a connection of its own: what it holds, if it is there.
pub(crate) async fn try_fetch(address: SocketAddr, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect(address).await.ok()?;
    let request = format!("GET {path} HTTP/1.0\r\nhost: {address}\r\n\r\n");
    stream.write_all(request.as_bytes()).await.ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let found = head.starts_with("HTTP/1.0 200") || head.starts_with("HTTP/1.1 200");
    found.then(|| body.to_owned())
}

/// The same of one that has to be there.
pub(crate) async fn fetch(address: SocketAddr, path: &str) -> String {
    try_fetch(address, path)
        .await
        .unwrap_or_else(|| panic!("there is no {path}"))
}

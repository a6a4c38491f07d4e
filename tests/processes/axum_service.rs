//! The web service.

use std::process::Command;
use std::time::Duration;

use rustix::process::Signal;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::programs::{Process, program};

/// Sends a request and gives the status line and the body.
async fn ask(address: &str, method: &str, path: &str) -> (String, String) {
    let mut stream = TcpStream::connect(address).await.expect("it listens");
    let request =
        format!("{method} {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("answered");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
    (head.lines().next().unwrap_or_default().to_owned(), body.to_owned())
}

#[tokio::test]
async fn the_web_service_tells_its_role_and_stops_at_sigterm() {
    let mut service = Process::start("axum_service", Command::new(program("axum_service")).env("PORT", "0"));
    let listening = "listening on http://";
    let line = service
        .says(Duration::from_secs(10), "it listens", |line| {
            line.starts_with(listening)
        })
        .await;
    let address = &line[listening.len()..];
    let ok = "HTTP/1.1 200 OK".to_owned();
    assert_eq!(
        ask(address, "GET", "/").await,
        (ok.clone(), "leader of default\n".to_owned())
    );
    assert_eq!(ask(address, "POST", "/rebuild").await, (ok, "rebuilt\n".to_owned()));
    service.signal(Signal::TERM);
    let status = service.ended(Duration::from_secs(10)).await;
    assert!(status.success(), "{status}");
    assert!(TcpStream::connect(address).await.is_err(), "it still listens");
}

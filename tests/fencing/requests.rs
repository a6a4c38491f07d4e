//! A client of HTTP with nothing to it: one request for each connection.

use std::fmt::Write;
use std::net::SocketAddr;

use leader_core::fencing::http::RequestFence;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// What a server answered.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    head: String,
    pub(crate) body: String,
}

impl Answer {
    /// The body of a refusal.
    pub(crate) fn json(&self) -> Value {
        assert!(self.head.contains("content-type: application/json"), "{self:?}");
        serde_json::from_str(&self.body).unwrap()
    }
}

pub(crate) fn fence(group: &str, fence: u64) -> Vec<(&'static str, String)> {
    let group = leader_core::GroupName::new(group.to_owned()).unwrap();
    RequestFence::new(group, fence).headers().into()
}

pub(crate) async fn ask(
    server: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&str, String)],
    body: &str,
) -> Answer {
    let mut stream = TcpStream::connect(server).await.unwrap();
    let length = body.len();
    let mut request =
        format!("{method} {path} HTTP/1.1\r\nhost: {server}\r\nconnection: close\r\ncontent-length: {length}\r\n");
    for (name, value) in headers {
        write!(request, "{name}: {value}\r\n").unwrap();
    }
    write!(request, "\r\n{body}").unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer
        .split_once("\r\n\r\n")
        .unwrap_or_else(|| panic!("no answer: {answer:?}"));
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Answer {
        status,
        head: head.to_owned(),
        body: body.to_owned(),
    }
}

/// Writes a text under a fence of the group `cleanup`.
pub(crate) async fn put(server: SocketAddr, path: &str, number: u64, body: &str) -> Answer {
    ask(server, "PUT", path, &fence("cleanup", number), body).await
}

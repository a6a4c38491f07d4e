//! The proxy of the harness itself: a fault that does nothing would make every test of faults pass.

use std::fmt::Write as _;
use std::io::ErrorKind;
use std::time::Duration;

use leader_tests::{Direction, Proxy, RedisServer, Request, eventually};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};

use crate::caller::ms;

/// How long nothing must come for it to count as nothing.
const QUIET: Duration = Duration::from_millis(150);

/// A client that speaks the protocol by hand: every byte and every end is seen.
struct Client(TcpStream);

impl Client {
    async fn through(proxy: &Proxy) -> Self {
        let url = proxy.url();
        let address = url.trim_start_matches("redis://").trim_end_matches('/');
        Self(TcpStream::connect(address).await.unwrap())
    }

    async fn send(&mut self, words: &[&str]) {
        let mut text = format!("*{}\r\n", words.len());
        for word in words {
            write!(text, "${}\r\n{word}\r\n", word.len()).unwrap();
        }
        self.0.write_all(text.as_bytes()).await.unwrap();
    }

    /// What comes next: bytes, the end or an error.
    async fn receive(&mut self) -> Result<String, ErrorKind> {
        let mut bytes = [0; 256];
        match timeout(ms(5000), self.0.read(&mut bytes)).await.expect("an answer") {
            Ok(count) => Ok(String::from_utf8_lossy(&bytes[..count]).into_owned()),
            Err(error) => Err(error.kind()),
        }
    }

    async fn asks(&mut self, words: &[&str], answer: &str) {
        self.send(words).await;
        assert_eq!(self.receive().await, Ok(answer.to_owned()));
    }

    async fn hears_nothing(&mut self) {
        let mut bytes = [0; 256];
        let heard = timeout(QUIET, self.0.read(&mut bytes)).await;
        assert!(heard.is_err(), "{heard:?}: {:?}", String::from_utf8_lossy(&bytes));
    }
}

async fn rig() -> (RedisServer, Proxy) {
    let server = RedisServer::start().await;
    let proxy = Proxy::start(server.port()).await;
    (server, proxy)
}

async fn counter(server: &RedisServer) -> redis::Value {
    server.command(&["GET", "counter"]).await
}

fn bulk(text: &str) -> redis::Value {
    redis::Value::BulkString(text.as_bytes().to_vec())
}

#[tokio::test]
async fn a_cut_resets_what_is_open_and_what_comes() {
    let (_server, proxy) = rig().await;
    let mut client = Client::through(&proxy).await;
    client.asks(&["PING"], "+PONG\r\n").await;
    proxy.cut();
    assert_eq!(client.receive().await, Err(ErrorKind::ConnectionReset));
    let mut refused = Client::through(&proxy).await;
    assert_eq!(refused.receive().await, Err(ErrorKind::ConnectionReset));
    proxy.heal();
    Client::through(&proxy).await.asks(&["PING"], "+PONG\r\n").await;
    assert_eq!(proxy.accepted(), 3);
}

/// However short it was, and towards another server.
#[tokio::test]
async fn a_cut_that_is_healed_at_once_still_cuts() {
    let (server, proxy) = rig().await;
    let other = RedisServer::start().await;
    server.command(&["SET", "counter", "old"]).await;
    other.command(&["SET", "counter", "new"]).await;
    let mut client = Client::through(&proxy).await;
    client.asks(&["GET", "counter"], "$3\r\nold\r\n").await;
    proxy.set_target(other.port());
    client.asks(&["GET", "counter"], "$3\r\nold\r\n").await;
    proxy.cut();
    proxy.heal();
    assert_eq!(client.receive().await, Err(ErrorKind::ConnectionReset));
    let mut again = Client::through(&proxy).await;
    again.asks(&["GET", "counter"], "$3\r\nnew\r\n").await;
}

#[tokio::test]
async fn a_server_that_is_gone_looks_gone() {
    let (mut server, proxy) = rig().await;
    let mut client = Client::through(&proxy).await;
    client.asks(&["PING"], "+PONG\r\n").await;
    server.kill().await;
    let end = client.receive().await;
    assert!(
        matches!(end.as_deref(), Ok("") | Err(ErrorKind::ConnectionReset)),
        "{end:?}"
    );
    let mut refused = Client::through(&proxy).await;
    assert_eq!(refused.receive().await, Err(ErrorKind::ConnectionReset));
}

#[tokio::test]
async fn a_stall_holds_back_and_loses_nothing() {
    for direction in [Direction::ToServer, Direction::ToClient, Direction::Both] {
        let (server, proxy) = rig().await;
        let mut client = Client::through(&proxy).await;
        client.asks(&["INCR", "counter"], ":1\r\n").await;
        proxy.stall(direction);
        client.send(&["INCR", "counter"]).await;
        let mut newcomer = Client::through(&proxy).await;
        newcomer.send(&["INCRBY", "counter", "10"]).await;
        client.hears_nothing().await;
        newcomer.hears_nothing().await;
        let reached = direction == Direction::ToClient;
        assert_eq!(
            counter(&server).await,
            bulk(if reached { "12" } else { "1" }),
            "{direction:?}"
        );
        // What a client has sent goes through even when the client is gone.
        drop(newcomer);
        proxy.heal();
        assert!(client.receive().await.unwrap().starts_with(':'));
        eventually(ms(2000), "nothing is lost", || async {
            counter(&server).await == bulk("12")
        })
        .await;
    }
}

#[tokio::test]
async fn a_black_hole_swallows_for_ever_and_only_what_was_open() {
    let (server, proxy) = rig().await;
    let mut client = Client::through(&proxy).await;
    client.asks(&["PING"], "+PONG\r\n").await;
    let mut leaving = Client::through(&proxy).await;
    leaving.asks(&["CLIENT", "SETNAME", "leaving"], "+OK\r\n").await;
    proxy.black_hole();
    client.send(&["INCR", "counter"]).await;
    drop(leaving);
    client.hears_nothing().await;
    proxy.heal();
    proxy.cut();
    client.hears_nothing().await;
    proxy.heal();
    let mut other = Client::through(&proxy).await;
    other.asks(&["GET", "counter"], "$-1\r\n").await;
    // The server never learns of the end.
    let redis::Value::BulkString(list) = server.command(&["CLIENT", "LIST"]).await else {
        panic!("a list");
    };
    assert!(String::from_utf8(list).unwrap().contains("name=leaving"));
}

#[tokio::test]
async fn a_delay_is_one_way_and_does_not_add_up() {
    let (_server, proxy) = rig().await;
    let mut client = Client::through(&proxy).await;
    client.asks(&["PING"], "+PONG\r\n").await;
    for (direction, least) in [
        (Direction::ToServer, 300),
        (Direction::ToClient, 300),
        (Direction::Both, 600),
    ] {
        proxy.delay(direction, ms(300));
        let began = Instant::now();
        client.send(&["PING"]).await;
        tokio::time::sleep(ms(50)).await;
        client.send(&["PING"]).await;
        let mut heard = String::new();
        while heard.len() < 14 {
            heard += &client.receive().await.unwrap();
        }
        let took = began.elapsed();
        assert_eq!(heard, "+PONG\r\n+PONG\r\n");
        assert!(
            took >= ms(least + 49) && took < ms(least + 250),
            "{direction:?}: {took:?}"
        );
        proxy.heal();
    }
}

#[tokio::test]
async fn a_request_runs_and_its_connection_is_reset() {
    let (server, proxy) = rig().await;
    proxy.reset_after_request("counter", 2);
    for round in ["1", "2"] {
        let mut client = Client::through(&proxy).await;
        client.asks(&["PING"], "+PONG\r\n").await;
        client.send(&["INCR", "counter"]).await;
        assert_eq!(client.receive().await, Err(ErrorKind::ConnectionReset));
        assert_eq!(counter(&server).await, bulk(round));
    }
    Client::through(&proxy).await.asks(&["INCR", "counter"], ":3\r\n").await;
    assert_eq!(proxy.hits(), 2);
}

#[tokio::test]
async fn a_dropped_reply_leaves_a_silent_connection() {
    let (server, proxy) = rig().await;
    let mut client = Client::through(&proxy).await;
    proxy.drop_replies("counter", 1);
    client.asks(&["PING"], "+PONG\r\n").await;
    client.send(&["INCR", "counter"]).await;
    client.hears_nothing().await;
    client.send(&["PING"]).await;
    client.hears_nothing().await;
    assert_eq!(counter(&server).await, bulk("1"));
    Client::through(&proxy).await.asks(&["INCR", "counter"], ":2\r\n").await;
    assert_eq!(proxy.hits(), 1);
    // What was aimed and not hit is taken back.
    proxy.drop_replies("counter", 1);
    proxy.heal();
    Client::through(&proxy).await.asks(&["INCR", "counter"], ":3\r\n").await;
    assert_eq!(proxy.hits(), 1);
}

#[test]
fn requests_differ_by_their_markers() {
    assert_ne!(Request::Campaign.marker(), Request::Renewal.marker());
}

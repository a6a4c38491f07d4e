//! Faults of server and network: every call is bounded and the connection comes back by itself.

use std::sync::Arc;

use leader_core::__seam::{Connection, parse};
use leader_core::StoreErrorKind;
use leader_tests::{RedisServer, eventually};
use tokio::io::{AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;

use crate::caller::{Caller, SLACK, ask, ms};

#[tokio::test]
async fn a_killed_server_is_found_again() {
    let mut server = RedisServer::start().await;
    let caller = Caller::start(&server, ms(200)).await;
    for _ in 0..3 {
        server.kill().await;
        let error = caller.failed_after(Instant::now(), 50).await;
        assert_eq!(*error.kind(), StoreErrorKind::Unreachable, "{error}");
        assert!(error.to_string().contains("127.0.0.1"), "{error}");
        server.restart(false).await;
        let recovery = caller.answered_after(Instant::now(), ms(2000)).await;
        println!("server killed and restarted: answered after {recovery:?}");
        assert!(recovery <= ms(500) + SLACK, "{recovery:?}");
    }
    caller.stop();
}

#[tokio::test]
async fn a_frozen_server_holds_nobody_longer_than_the_bound() {
    let server = RedisServer::start().await;
    let caller = Caller::start(&server, ms(200)).await;
    server.pause();
    let error = caller.failed_after(Instant::now(), 3).await;
    assert_eq!(*error.kind(), StoreErrorKind::TimedOut, "{error}");
    tokio::time::sleep(ms(3000)).await;
    server.resume();
    let recovery = caller.answered_after(Instant::now(), ms(2000)).await;
    println!("server frozen for 3 s: answered after {recovery:?}");
    assert!(recovery <= ms(250), "{recovery:?}");
    caller.stop();
}

#[tokio::test]
async fn a_killed_client_is_back_at_once() {
    let server = RedisServer::start().await;
    let caller = Caller::start(&server, ms(200)).await;
    for _ in 0..5 {
        server.command(&["CLIENT", "KILL", "TYPE", "normal"]).await;
        let recovery = caller.answered_after(Instant::now(), ms(2000)).await;
        println!("client killed: answered after {recovery:?}");
        assert!(recovery <= ms(250), "{recovery:?}");
    }
    caller.stop();
}

#[tokio::test]
async fn a_password_rotated_and_put_back_heals_by_itself() {
    let server = RedisServer::options().requirepass("one").start().await;
    let caller = Caller::start(&server, ms(200)).await;
    server.command(&["CONFIG", "SET", "requirepass", "two"]).await;
    server.command(&["CLIENT", "KILL", "TYPE", "normal"]).await;
    let error = caller.failed_after(Instant::now(), 20).await;
    assert_eq!(error.code(), Some("WRONGPASS"), "{error}");
    server.command(&["CONFIG", "SET", "requirepass", "one"]).await;
    let recovery = caller.answered_after(Instant::now(), ms(2000)).await;
    println!("password put back: answered after {recovery:?}");
    assert!(recovery <= ms(500) + SLACK, "{recovery:?}");
    caller.stop();
}

#[tokio::test]
async fn a_paused_server_is_waited_for_within_the_bound() {
    let server = RedisServer::start().await;
    let caller = Caller::start(&server, ms(200)).await;
    let began = Instant::now();
    server.command(&["CLIENT", "PAUSE", "2000", "ALL"]).await;
    caller.failed_after(began, 3).await;
    // The pause holds this one too: its answer tells when it was over.
    server.command(&["PING"]).await;
    assert!(
        began.elapsed() >= ms(2000),
        "the pause was short: {:?}",
        began.elapsed()
    );
    let recovery = caller.answered_after(Instant::now(), ms(5000)).await;
    println!("CLIENT PAUSE: answered after {recovery:?}");
    assert!(recovery <= ms(300), "{recovery:?}");
    caller.stop();
}

#[tokio::test]
async fn a_sleeping_server_is_waited_for_within_the_bound() {
    let server = RedisServer::start().await;
    let caller = Caller::start(&server, ms(200)).await;
    let sleep = server.command(&["DEBUG", "SLEEP", "2"]);
    let (_, error) = tokio::join!(sleep, caller.failed_after(Instant::now(), 3));
    assert_eq!(*error.kind(), StoreErrorKind::TimedOut, "{error}");
    let recovery = caller.answered_after(Instant::now(), ms(2000)).await;
    println!("DEBUG SLEEP: answered after {recovery:?}");
    assert!(recovery <= ms(250), "{recovery:?}");
    caller.stop();
}

#[tokio::test]
async fn a_server_that_never_answers_holds_every_caller_for_its_own_bound() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let info = parse(&format!("redis://127.0.0.1:{port}")).unwrap();
    let connection = Connection::new(&info, "test");
    let callers = [50, 100, 400, 2500].map(|bound| {
        let connection = connection.clone();
        tokio::spawn(async move {
            let began = Instant::now();
            let error = connection.connect(ms(bound)).await.unwrap_err();
            assert_eq!(*error.kind(), StoreErrorKind::TimedOut, "{error}");
            (ms(bound), began.elapsed())
        })
    });
    for caller in callers {
        let (bound, took) = caller.await.unwrap();
        assert!(took <= bound + SLACK, "{took:?} > {bound:?}");
    }
}

#[tokio::test]
async fn a_server_that_speaks_otherwise_is_told_apart() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let answering = tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
        }
    });
    let info = parse(&format!("redis://127.0.0.1:{port}")).unwrap();
    let connection = Connection::new(&info, "test");
    let error = connection.connect(ms(1000)).await.unwrap_err();
    assert_eq!(*error.kind(), StoreErrorKind::Protocol, "{error}");
    answering.abort();
}

#[tokio::test]
async fn after_a_failure_callers_fail_fast_and_few_attempts_are_made() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let accepted = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counting = tokio::spawn({
        let accepted = Arc::clone(&accepted);
        async move {
            loop {
                // Dropped at once: the handshake fails.
                drop(listener.accept().await.unwrap());
                accepted.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            }
        }
    });
    let info = parse(&format!("redis://127.0.0.1:{port}")).unwrap();
    let connection = Connection::new(&info, "test");
    let began = Instant::now();
    let mut calls = 0;
    while began.elapsed() < ms(2000) {
        let call = Instant::now();
        let error = connection.connect(ms(200)).await.unwrap_err();
        assert_eq!(*error.kind(), StoreErrorKind::Unreachable, "{error}");
        assert!(call.elapsed() < SLACK);
        calls += 1;
        tokio::time::sleep(ms(1)).await;
    }
    counting.abort();
    let attempts = accepted.load(std::sync::atomic::Ordering::SeqCst);
    println!("{calls} calls made {attempts} attempts in 2 s");
    assert!((4..=60).contains(&attempts), "{attempts} attempts");
    assert!(calls > attempts * 3, "{calls} calls, {attempts} attempts");
}

/// A link that was slow once may be half-open for good.
#[tokio::test]
async fn the_first_timeout_ends_the_connection() {
    let server = RedisServer::start().await;
    let connection = Connection::new(&server.info(), "test");
    let before = ask(&connection, &["CLIENT", "ID"], ms(1000)).await.unwrap();
    server.command(&["CLIENT", "PAUSE", "300", "ALL"]).await;
    let error = ask(&connection, &["PING"], ms(100)).await.unwrap_err();
    assert_eq!(*error.kind(), StoreErrorKind::TimedOut, "{error}");
    let after = ask(&connection, &["CLIENT", "ID"], ms(2000)).await.unwrap();
    assert_ne!(before, after);
}

/// The first attempt leads nowhere for ever, as to a host that died behind a balancer; the next would lead to a live one.
#[tokio::test]
async fn an_attempt_that_leads_nowhere_is_given_up_for_another() {
    let server = RedisServer::start().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let live = server.port();
    let balancer = tokio::spawn(async move {
        let (_held, _) = listener.accept().await.unwrap();
        loop {
            let (mut client, _) = listener.accept().await.unwrap();
            tokio::spawn(async move {
                let mut upstream = TcpStream::connect(("127.0.0.1", live)).await.unwrap();
                let _ = copy_bidirectional(&mut client, &mut upstream).await;
            });
        }
    });
    let info = parse(&format!("redis://127.0.0.1:{port}")).unwrap();
    let connection = Connection::new(&info, "test");
    let took = eventually(ms(2500), "an answer", || async {
        connection.connect(ms(100)).await.is_ok()
    })
    .await;
    println!("past a dead host after {took:?}");
    balancer.abort();
}

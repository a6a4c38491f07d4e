//! Replies and refusals.

use std::error::Error;
use std::hash::{BuildHasher, RandomState};

use leader_core::__seam::Connection;
use leader_core::StoreErrorKind;
use leader_tests::RedisServer;
use redis::Value;

use crate::caller::{ask, ms};

async fn client_id(connection: &Connection) -> Value {
    ask(connection, &["CLIENT", "ID"], ms(1000)).await.unwrap()
}

#[tokio::test]
async fn each_reply_is_judged_on_its_own() {
    let server = RedisServer::start().await;
    let connection = Connection::new(&server.info(), "lease");
    let mut pipeline = redis::pipe();
    pipeline.cmd("SET").arg("a").arg(1);
    pipeline.cmd("LPUSH").arg("a").arg(1);
    pipeline.cmd("GET").arg("a").ignore();
    let replies = connection.query(&pipeline, ms(1000)).await.unwrap();
    let [set, push, get] = replies.as_slice() else {
        panic!("{replies:?}");
    };
    assert_eq!(*set.as_ref().unwrap(), Value::Okay);
    let error = push.as_ref().unwrap_err();
    assert_eq!(error.code(), Some("WRONGTYPE"), "{error}");
    assert!(error.source().unwrap().to_string().contains("WRONGTYPE"));
    assert_eq!(*get.as_ref().unwrap(), Value::BulkString(b"1".to_vec()));

    let none = connection.query(&redis::pipe(), ms(1000)).await.unwrap();
    assert!(none.is_empty());
    let name = ask(&connection, &["CLIENT", "GETNAME"], ms(1000)).await.unwrap();
    assert_eq!(name, Value::BulkString(b"leader:lease".to_vec()));
}

#[tokio::test]
async fn a_transaction_has_one_reply_a_command() {
    let server = RedisServer::start().await;
    let connection = Connection::new(&server.info(), "test");
    let mut pipeline = redis::pipe();
    pipeline.atomic();
    pipeline.cmd("SET").arg("a").arg("x");
    pipeline.cmd("INCR").arg("a");
    let replies = connection.query(&pipeline, ms(1000)).await.unwrap();
    assert_eq!(replies.len(), 2);
    assert!(replies[0].is_ok());
    assert_eq!(replies[1].as_ref().unwrap_err().code(), Some("ERR"));

    pipeline.cmd("NONSENSE");
    let error = connection.query(&pipeline, ms(1000)).await.unwrap_err();
    assert_eq!(error.code(), Some("EXECABORT"), "{error}");
    assert_eq!(
        ask(&connection, &["GET", "a"], ms(1000)).await.unwrap(),
        Value::BulkString(b"x".to_vec())
    );
}

#[tokio::test]
async fn a_full_server_is_told_apart_and_the_connection_kept() {
    let server = RedisServer::options().maxmemory("1kb").start().await;
    let connection = Connection::new(&server.info(), "test");
    let before = client_id(&connection).await;
    let error = ask(&connection, &["SET", "a", "1"], ms(1000)).await.unwrap_err();
    assert_eq!((error.code(), error.is_transient()), (Some("OOM"), false), "{error}");
    assert!(error.to_string().contains("maxmemory"), "{error}");
    assert_eq!(client_id(&connection).await, before);
}

#[tokio::test]
async fn a_missing_password_says_where_it_goes() {
    let server = RedisServer::options().requirepass("secret").start().await;
    let open = format!("redis://127.0.0.1:{}/", server.port());
    let connection = Connection::new(&open.parse().unwrap(), "test");
    let error = connection.connect(ms(1000)).await.unwrap_err();
    assert_eq!(error.code(), Some("NOAUTH"), "{error}");
    assert!(error.to_string().contains("redis://user:password@host"), "{error}");
    assert!(!format!("{:?}", Connection::new(&server.info(), "test")).contains("secret"));
}

#[tokio::test]
async fn a_forbidden_command_says_so() {
    let server = RedisServer::start().await;
    server
        .command(&["ACL", "SETUSER", "poor", "on", ">pw", "~*", "+ping"])
        .await;
    let url = format!("redis://poor:pw@127.0.0.1:{}/", server.port());
    let connection = Connection::new(&url.parse().unwrap(), "test");
    // Not even `CLIENT SETNAME` is allowed.
    connection.connect(ms(1000)).await.unwrap();
    let error = ask(&connection, &["GET", "a"], ms(1000)).await.unwrap_err();
    assert_eq!(error.code(), Some("NOPERM"), "{error}");
}

/// A connection that leads to the wrong server is left, so that the next one can lead to the right one.
#[tokio::test]
async fn a_server_that_may_not_write_is_left() {
    let server = RedisServer::start().await;
    let connection = Connection::new(&server.info(), "test");
    for (set, reset, code) in [
        (
            &["REPLICAOF", "127.0.0.1", "1"][..],
            &["REPLICAOF", "NO", "ONE"][..],
            "READONLY",
        ),
        (
            &["CONFIG", "SET", "min-replicas-to-write", "1"],
            &["CONFIG", "SET", "min-replicas-to-write", "0"],
            "NOREPLICAS",
        ),
    ] {
        let before = client_id(&connection).await;
        server.command(set).await;
        let error = ask(&connection, &["SET", "a", "1"], ms(1000)).await.unwrap_err();
        assert_eq!((error.code(), error.is_transient()), (Some(code), true), "{error}");
        server.command(reset).await;
        leader_tests::eventually(ms(1000), "it writes again", || async {
            ask(&connection, &["SET", "a", "1"], ms(1000)).await.is_ok()
        })
        .await;
        assert_ne!(client_id(&connection).await, before, "{code}");
    }
}

/// Dropped calls leave their replies behind; nobody else may get one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cancelled_calls_never_swap_replies() {
    let server = RedisServer::start().await;
    let connection = Connection::new(&server.info(), "test");
    let callers = (0_u64..64).map(|caller| {
        let connection = connection.clone();
        tokio::spawn(async move {
            let (random, mut answered) = (RandomState::new(), 0_u32);
            for number in 0_u64..200 {
                let text = format!("{caller}:{number}");
                let words = ["ECHO", text.as_str()];
                let call = ask(&connection, &words, ms(5000));
                let cancel = random.hash_one(number) % 3000;
                let cancel = tokio::time::sleep(std::time::Duration::from_micros(cancel));
                tokio::select! {
                    biased;
                    answer = call => {
                        assert_eq!(answer.unwrap(), Value::BulkString(text.clone().into_bytes()));
                        answered += 1;
                    }
                    () = cancel => {}
                }
            }
            answered
        })
    });
    let mut answered = 0;
    for caller in callers.collect::<Vec<_>>() {
        answered += caller.await.unwrap();
    }
    println!("{answered} of 12800 calls answered, the others cancelled");
    assert!(answered > 1000 && answered < 12_800, "{answered}");
    connection.connect(ms(1000)).await.unwrap();
}

#[tokio::test]
async fn settings_that_cannot_work_fail_every_call() {
    let info = leader_core::__seam::parse("rediss://127.0.0.1:1/#insecure").unwrap();
    let connection = Connection::new(&info, "test");
    for _ in 0..2 {
        let error = connection.connect(ms(1000)).await.unwrap_err();
        assert_eq!(*error.kind(), StoreErrorKind::Config, "{error:?}");
    }
}

/// The connection is used from the framework's thread and from the program's.
#[test]
fn a_runtime_that_ends_does_not_take_the_connection_with_it() {
    let runtime = || {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap()
    };
    let first = runtime();
    let server = first.block_on(RedisServer::start());
    let connection = Connection::new(&server.info(), "test");
    first.block_on(connection.connect(ms(1000))).unwrap();
    drop(first);
    runtime().block_on(leader_tests::eventually(ms(1000), "an answer", || async {
        connection.connect(ms(500)).await.is_ok()
    }));
}

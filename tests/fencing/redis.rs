//! Fenced writes to a real Redis: scripts that compare and write in one step.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use leader_core::fencing::redis::{FencedKey, FencedScript, Refused};
use leader_tests::dice::{Dice, seed};
use leader_tests::{RedisServer, eventually};
use redis::Value;
use redis::aio::MultiplexedConnection;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

const SOON: Duration = Duration::from_secs(20);

async fn connect(server: &RedisServer) -> MultiplexedConnection {
    let client = redis::Client::open(server.info()).unwrap();
    client.get_multiplexed_async_connection().await.unwrap()
}

/// As the page shows it. The outer error is the server's.
async fn run(
    connection: &mut MultiplexedConnection,
    script: &FencedScript,
) -> redis::RedisResult<Result<Vec<String>, Refused>> {
    let mut command = redis::cmd("EVAL");
    command
        .arg(&*script.source)
        .arg(script.keys.len())
        .arg(&script.keys)
        .arg(&script.args);
    let answer: Vec<Vec<u8>> = command.query_async(connection).await?;
    let text = |given: Vec<u8>| String::from_utf8(given).unwrap();
    Ok(script.read(&answer).map(|given| given.into_iter().map(text).collect()))
}

async fn accepted(connection: &mut MultiplexedConnection, script: &FencedScript) -> Vec<String> {
    run(connection, script).await.unwrap().unwrap()
}

async fn refused(connection: &mut MultiplexedConnection, script: &FencedScript) -> Refused {
    run(connection, script).await.unwrap().unwrap_err()
}

/// The data of a key, whatever it is, as the server would dump it; with its TTL.
async fn data(server: &RedisServer, key: &str) -> (Value, Value) {
    (
        server.command(&["DUMP", key]).await,
        server.command(&["PEXPIRETIME", key]).await,
    )
}

fn micros() -> u64 {
    let since = SystemTime::UNIX_EPOCH.elapsed().unwrap();
    u64::try_from(since.as_micros()).unwrap()
}

/// Every kind of write, at a fence.
type Write = fn(&FencedKey, u64) -> FencedScript;
const WRITES: [(&str, Write, &[&str]); 6] = [
    ("set", |key, fence| key.set(fence, format!("by {fence}")), &["OK"]),
    (
        "set_for",
        |key, fence| key.set_for(fence, format!("by {fence}"), Duration::from_secs(100 + fence % 1_000)),
        &["OK"],
    ),
    (
        "hset",
        |key, fence| key.hset(fence, [("by", fence.to_string()), ("state", "done".to_owned())]),
        &["0"],
    ),
    ("del", FencedKey::del, &["1"]),
    ("raise", FencedKey::raise, &[]),
    (
        "eval",
        |key, fence| {
            let lua = "return redis.call('RPUSH', KEYS[1], FENCE, ARGV[1])";
            key.eval(fence, lua).arg("done")
        },
        &["6"],
    ),
];

#[tokio::test]
async fn an_older_fence_is_refused_and_an_equal_one_is_not() {
    let server = RedisServer::start().await;
    let (mut old, mut new) = (connect(&server).await, connect(&server).await);
    for keep in [None, Some(Duration::from_secs(60))] {
        for (name, write, again) in WRITES {
            server.command(&["FLUSHALL"]).await;
            let mut key = FencedKey::new(format!("data:{name}")).unwrap();
            if let Some(keep) = keep {
                key = key.keep_guard(keep);
            }
            // Without a guard that is kept for good, low ones are as old as 1970.
            let base = keep.map_or(0, |_| micros() / 1_000 * 1_000);
            let write = |number| {
                let script = write(&key, base + number);
                assert_eq!(script.keys, [key.guard(), key.key()]);
                script
            };
            accepted(&mut old, &write(5)).await;
            let before = data(&server, key.key()).await;
            accepted(&mut new, &write(9)).await;
            if ["del", "raise"].contains(&name) {
                // Something for an older run to take away.
                server.command(&["SET", key.key(), "kept"]).await;
            }
            let after = data(&server, key.key()).await;
            assert!(before != after, "{name} writes");
            match refused(&mut old, &write(5)).await {
                Refused::Fenced(fenced) => {
                    assert_eq!((fenced.fence, fenced.held), (base + 5, Some(base + 9)), "{name}");
                    assert_eq!(fenced.resource, key.key());
                }
                other => panic!("{name}: {other}"),
            }
            assert_eq!(data(&server, key.key()).await, after, "{name} changed something");
            // The same run again; then a newer one.
            assert_eq!(accepted(&mut new, &write(9)).await, again, "{name}");
            accepted(&mut old, &write(10)).await;
            assert!(matches!(refused(&mut new, &write(9)).await, Refused::Fenced(_)));
        }
    }
}

#[tokio::test]
async fn what_is_written_is_what_redis_would_write() {
    let server = RedisServer::start().await;
    let mut connection = connect(&server).await;
    let key = FencedKey::new("data").unwrap();
    let binary = vec![0, 255, b'\r', b'\n', 0];
    accepted(&mut connection, &key.set(5, binary.clone())).await;
    assert_eq!(server.command(&["GET", "data"]).await, Value::BulkString(binary));
    accepted(&mut connection, &key.set_for(5, "x", Duration::from_secs(60))).await;
    let Value::Int(ttl) = server.command(&["PTTL", "data"]).await else {
        panic!("no TTL");
    };
    assert!((50_000..=60_000).contains(&ttl), "{ttl}");
    assert_eq!(accepted(&mut connection, &key.del(5)).await, ["1"]);
    assert_eq!(server.command(&["EXISTS", "data"]).await, Value::Int(0));
    // More fields than a Lua call takes at once.
    let fields = (0..20_000).map(|number| (format!("f{number}"), number.to_string()));
    assert_eq!(accepted(&mut connection, &key.hset(5, fields)).await, ["20000"]);
    assert_eq!(server.command(&["HLEN", "data"]).await, Value::Int(20_000));
    let value = server.command(&["HGET", "data", "f19999"]).await;
    assert_eq!(value, Value::BulkString(b"19999".to_vec()));
    let none: [(&str, &str); 0] = [];
    assert_eq!(accepted(&mut connection, &key.hset(6, none)).await, ["0"]);
    assert!(matches!(
        refused(&mut connection, &key.del(5)).await,
        Refused::Fenced(_)
    ));
}

/// Whoever deletes leaves the guard: what was deleted is not brought back by an older run.
#[tokio::test]
async fn what_a_newer_run_has_deleted_stays_deleted() {
    let server = RedisServer::start().await;
    let mut connection = connect(&server).await;
    let key = FencedKey::new("data").unwrap();
    accepted(&mut connection, &key.set(5, "old")).await;
    accepted(&mut connection, &key.del(9)).await;
    refused(&mut connection, &key.set(5, "old")).await;
    assert_eq!(server.command(&["GET", "data"]).await, Value::Nil);
}

/// Raised before anything was read: an older run changes nothing in between.
#[tokio::test]
async fn a_guard_that_was_raised_keeps_older_runs_out_before_anything_is_written() {
    let server = RedisServer::start().await;
    let mut connection = connect(&server).await;
    let key = FencedKey::new("data").unwrap();
    accepted(&mut connection, &key.set(5, "old")).await;
    assert!(accepted(&mut connection, &key.raise(9)).await.is_empty());
    refused(&mut connection, &key.set(5, "older")).await;
    assert_eq!(
        server.command(&["GET", "data"]).await,
        Value::BulkString(b"old".to_vec())
    );
}

#[tokio::test]
async fn a_wrong_type_is_the_servers_error_and_keeps_older_runs_out() {
    let server = RedisServer::start().await;
    let mut connection = connect(&server).await;
    let key = FencedKey::new("data").unwrap();
    accepted(&mut connection, &key.set(5, "text")).await;
    let error = run(&mut connection, &key.hset(9, [("a", "b")])).await.unwrap_err();
    assert!(error.to_string().contains("WRONGTYPE"), "{error}");
    assert_eq!(
        server.command(&["GET", "data"]).await,
        Value::BulkString(b"text".to_vec())
    );
    // It could not write, but it has been here.
    let refusal = refused(&mut connection, &key.set(5, "text")).await;
    assert!(
        matches!(&refusal, Refused::Fenced(fenced) if fenced.held == Some(9)),
        "{refusal}"
    );
}

#[tokio::test]
async fn what_is_no_guard_is_told_and_left_alone() {
    let server = RedisServer::start().await;
    let mut connection = connect(&server).await;
    let key = FencedKey::new("data").unwrap();
    for (words, found) in [
        (&["HSET", key.guard(), "a", "b"][..], "hash"),
        (&["LPUSH", key.guard(), "a"], "list"),
        (&["SET", key.guard(), "somebody"], "somebody"),
        (&["SET", key.guard(), "-5"], "-5"),
        (&["SET", key.guard(), "007"], "007"),
        (&["SET", key.guard(), ""], ""),
    ] {
        server.command(&["FLUSHALL"]).await;
        server.command(words).await;
        let before = data(&server, key.guard()).await;
        let expected = Refused::OddGuard {
            guard: key.guard().to_owned(),
            found: found.to_owned(),
        };
        let refusal = refused(&mut connection, &key.set(9, "x")).await;
        assert!(refusal == expected, "{refusal} for {words:?}");
        assert_eq!(data(&server, key.guard()).await, before);
        assert_eq!(server.command(&["EXISTS", "data"]).await, Value::Int(0));
    }
}

/// A Lua number is exact up to 2^53 only; a fence is compared as text.
#[tokio::test]
async fn neighbours_are_told_apart_however_high_they_are() {
    let server = RedisServer::start().await;
    let mut connection = connect(&server).await;
    for (number, fence) in [9, 10, 99, 1 << 53, u64::try_from(i64::MAX).unwrap(), u64::MAX - 1]
        .into_iter()
        .enumerate()
    {
        let keys = ["plain", "kept"].map(|name| FencedKey::new(format!("{name}:{number}")).unwrap());
        let [plain, kept] = keys;
        for key in [plain, kept.keep_guard(Duration::from_secs(100 * 365 * 86_400))] {
            accepted(&mut connection, &key.set(fence + 1, "x")).await;
            let refusal = refused(&mut connection, &key.set(fence, "y")).await;
            assert!(
                matches!(&refusal, Refused::Fenced(fenced) if fenced.held == Some(fence + 1)),
                "{refusal}"
            );
            accepted(&mut connection, &key.set(fence + 1, "z")).await;
        }
    }
}

/// The rule for guards that end: without one, what is as old as a forgotten fence could be is refused.
#[tokio::test]
async fn an_expired_guard_lets_no_older_run_in() {
    let server = RedisServer::start().await;
    let mut connection = connect(&server).await;
    let keep = Duration::from_millis(300);
    let key = FencedKey::new("data").unwrap().keep_guard(keep);
    let old = micros();
    let new = old + 1;
    accepted(&mut connection, &key.set(new, "new")).await;
    eventually(SOON, "the guard ends", || async {
        server.command(&["EXISTS", key.guard()]).await == Value::Int(0)
    })
    .await;
    for fence in [old, new] {
        let refusal = refused(&mut connection, &key.set(fence, "old")).await;
        match &refusal {
            Refused::Forgotten { lowest, .. } => assert!(*lowest > new, "{refusal}"),
            other => panic!("{other}"),
        }
        assert!(refusal.to_string().contains("keep guards for longer"), "{refusal}");
    }
    assert_eq!(
        server.command(&["GET", "data"]).await,
        Value::BulkString(b"new".to_vec())
    );
    accepted(&mut connection, &key.set(micros(), "newest")).await;

    // A fence ahead of the server's clock is remembered until that clock has caught up, and the span after it.
    let ahead = FencedKey::new("ahead").unwrap().keep_guard(keep);
    accepted(&mut connection, &ahead.set(micros() + 50_000_000, "new")).await;
    let Value::Int(life) = server.command(&["PTTL", ahead.guard()]).await else {
        panic!("no TTL");
    };
    assert!((40_000..=50_301).contains(&life), "{life}");
    // A guard outlives its data, too, and one that is kept for good has no end.
    accepted(&mut connection, &key.set_for(micros(), "x", Duration::from_secs(100))).await;
    let Value::Int(life) = server.command(&["PTTL", key.guard()]).await else {
        panic!("no TTL");
    };
    assert!((90_000..=100_000).contains(&life), "{life}");
    let plain = FencedKey::new("plain").unwrap();
    accepted(&mut connection, &plain.set_for(5, "x", Duration::from_secs(100))).await;
    assert_eq!(server.command(&["PTTL", plain.guard()]).await, Value::Int(-1));
}

#[tokio::test]
async fn a_script_of_ones_own_gives_what_it_returns() {
    let server = RedisServer::start().await;
    let mut connection = connect(&server).await;
    let key = FencedKey::new("data").unwrap();
    for (lua, given) in [
        ("return 'text'", &["text"][..]),
        ("return 12", &["12"]),
        ("return -0.5", &["-0.5"]),
        ("return 9007199254740993", &["9007199254740992"]),
        ("return true", &["1"]),
        ("return redis.call('GET', 'leader-nothing')", &[""]),
        (
            "return { 'a', 7, false, { 'b', 'c' } }",
            &["a", "7", "", "[\"b\",\"c\"]"],
        ),
        ("return redis.status_reply('FINE')", &["FINE"]),
        ("return {}", &[]),
        ("return", &[]),
        ("redis.call('SET', KEYS[1], FENCE) -- a remark", &[]),
        (
            "return { #KEYS, #ARGV, KEYS[2], ARGV[1], ARGV[2] }",
            &["2", "2", "more", "a", "b"],
        ),
    ] {
        let script = key.eval(7, lua).key("more").arg("a").arg("b");
        assert_eq!(accepted(&mut connection, &script).await, given, "{lua}");
    }
    assert_eq!(server.command(&["GET", "data"]).await, Value::BulkString(b"7".to_vec()));
    for (lua, message) in [
        ("return redis.error_reply('NOPE mine')", "NOPE"),
        ("return redis.call('LPUSH', KEYS[1], 'x')", "WRONGTYPE"),
        ("error('thrown')", "thrown"),
        // As the line of the user's own text.
        ("\nreturn nothing.at.all", "user_script:2"),
        ("return (", "unexpected symbol"),
    ] {
        let error = run(&mut connection, &key.eval(7, lua)).await.unwrap_err();
        assert!(error.to_string().contains(message), "{lua}: {error}");
    }
}

/// With its own reader of the protocol, as any client has one.
#[tokio::test]
async fn any_client_runs_a_script() {
    let server = RedisServer::start().await;
    let mut stream = BufReader::new(TcpStream::connect(("127.0.0.1", server.port())).await.unwrap());
    let key = FencedKey::new("data").unwrap();
    let mut answers = Vec::new();
    for script in [key.set(9, "new"), key.set(5, "old")] {
        let words = script.words();
        let mut request = format!("*{}\r\n", words.len()).into_bytes();
        for word in words {
            request.extend(format!("${}\r\n", word.len()).into_bytes());
            request.extend(word);
            request.extend(b"\r\n");
        }
        stream.write_all(&request).await.unwrap();
        let mut answer = Vec::new();
        for _ in 0..length(&mut stream, '*').await {
            let mut word = vec![0; length(&mut stream, '$').await + 2];
            stream.read_exact(&mut word).await.unwrap();
            answer.push(word[..word.len() - 2].to_vec());
        }
        answers.push(script.read(&answer));
    }
    assert_eq!(answers[0], Ok(vec![b"OK".to_vec()]));
    assert!(matches!(&answers[1], Err(Refused::Fenced(fenced)) if fenced.held == Some(9)));
    // And by the digest of a text that never changes.
    let script = key.set(10, "newest");
    let mut connection = connect(&server).await;
    let answer: Vec<Vec<u8>> = redis::Script::new(&script.source)
        .prepare_invoke()
        .key(&script.keys)
        .arg(&script.args)
        .invoke_async(&mut connection)
        .await
        .unwrap();
    assert!(script.read(&answer).is_ok());
}

/// The number in a line of the protocol.
async fn length(stream: &mut BufReader<TcpStream>, sign: char) -> usize {
    let mut line = String::new();
    stream.read_line(&mut line).await.unwrap();
    let number = line.trim_end().strip_prefix(sign);
    number.unwrap_or_else(|| panic!("{line}")).parse().unwrap()
}

/// On a Cluster of one node, which checks the slots of all keys.
#[tokio::test]
async fn a_guard_is_in_the_slot_of_its_data() {
    let server = RedisServer::options().set("cluster-enabled", "yes").start().await;
    server.command(&["CLUSTER", "ADDSLOTSRANGE", "0", "16383"]).await;
    let mut connection = connect(&server).await;
    eventually(SOON, "the cluster takes commands", || async {
        server.command(&["SET", "a", "b"]).await == Value::Okay
    })
    .await;
    for name in [
        "data",
        "shop:data:7",
        "{shop}:data",
        "a{b}c{d}",
        "{data}",
        "{{b}}",
        "open{ended",
        "ünï {x}",
    ] {
        let key = FencedKey::new(name).unwrap();
        let slot = async |key| server.command(&["CLUSTER", "KEYSLOT", key]).await;
        assert_eq!(slot(key.key()).await, slot(key.guard()).await, "{name}");
        assert_eq!(accepted(&mut connection, &key.set(9, "x")).await, ["OK"], "{name}");
        refused(&mut connection, &key.set(5, "y")).await;
    }
    // One guard for two keys: each keeps older runs out of both.
    let [head, rows] =
        ["{report}:head", "{report}:rows"].map(|key| FencedKey::guarded_by(key, "{report}:guard").unwrap());
    accepted(&mut connection, &head.set(9, "x")).await;
    let refusal = refused(&mut connection, &rows.set(5, "y")).await;
    assert!(
        refusal.to_string().starts_with("`{report}:rows` refuses fence 5"),
        "{refusal}"
    );
}

/// Two clients, a thousand writes each, with fences that rise and fall.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_racing_writers_never_go_back() {
    let seed = seed();
    println!("LEADER_CHAOS_SEED={seed}");
    let server = Arc::new(RedisServer::start().await);
    let race = |number: u64| {
        let server = Arc::clone(&server);
        async move {
            let mut dice = Dice::new(seed ^ number);
            let mut connection = connect(&server).await;
            let plain = FencedKey::new("{race}:plain").unwrap();
            let logged = FencedKey::new("{race}:last").unwrap();
            let log = "redis.call('RPUSH', KEYS[2], FENCE) return redis.call('SET', KEYS[1], FENCE)";
            let (mut highest, mut count) = (0, 0);
            for round in 0..1_000 {
                let fence = round + 1 + dice.below(200);
                let script = logged.eval(fence, log).key("{race}:log");
                count += usize::from(run(&mut connection, &script).await.unwrap().is_ok());
                let fence = round + 1 + dice.below(200);
                let written = run(&mut connection, &plain.set(fence, fence.to_string()))
                    .await
                    .unwrap();
                if written.is_ok() {
                    highest = highest.max(fence);
                }
            }
            (highest, count)
        }
    };
    let (one, other) = tokio::join!(tokio::spawn(race(1)), tokio::spawn(race(2)));
    let (one, other) = (one.unwrap(), other.unwrap());
    let mut connection = connect(&server).await;
    let log: Vec<u64> = redis::cmd("LRANGE")
        .arg(&["{race}:log", "0", "-1"])
        .query_async(&mut connection)
        .await
        .unwrap();
    println!("{} of 2000 accepted", log.len());
    assert_eq!(log.len(), one.1 + other.1);
    assert!(log.is_sorted(), "an accepted fence fell: {log:?}");
    let ends: (u64, u64) = redis::cmd("MGET")
        .arg(&["{race}:last", "{race}:plain"])
        .query_async(&mut connection)
        .await
        .unwrap();
    assert_eq!(ends, (*log.last().unwrap(), one.0.max(other.0)));
}

//! The floor: one script that moves what is due from a sorted set to a stream, and one loop that reads and acknowledges. No retries, no signs of
//! life, no fence, and what is read by who dies is lost.

use std::time::Instant;

use leader_tests::RedisServer;
use redis::streams::StreamReadReply;
use redis::{Value, cmd};

use crate::meter::rate;

const MOVE: &str = "
local due = redis.call('ZRANGE', KEYS[1], '-inf', ARGV[1], 'BYSCORE', 'LIMIT', '0', ARGV[2])
for i = 1, #due do redis.call('XADD', KEYS[2], '*', 't', due[i]) end
if #due > 0 then redis.call('ZREMRANGEBYRANK', KEYS[1], '0', tostring(#due - 1)) end
return #due";

/// How many one step takes.
const BATCH: u32 = 500;

pub(crate) async fn run(server: &RedisServer, tasks: u32) -> f64 {
    let client = redis::Client::open(server.info()).expect("a client");
    let mut mover = client.get_multiplexed_async_connection().await.expect("a connection");
    let mut reader = client.get_multiplexed_async_connection().await.expect("a connection");
    let _: Value = cmd("DEL")
        .arg("bare")
        .arg("bare-stream")
        .query_async(&mut mover)
        .await
        .expect("DEL");
    let payload = "x".repeat(100);
    for first in (0..tasks).step_by(BATCH as usize) {
        let mut add = cmd("ZADD");
        add.arg("bare");
        for number in first..(first + BATCH).min(tasks) {
            add.arg(1).arg(format!("{number:026}{payload}"));
        }
        let _: Value = add.query_async(&mut mover).await.expect("ZADD");
    }
    let mut create = cmd("XGROUP");
    create
        .arg("CREATE")
        .arg("bare-stream")
        .arg("g")
        .arg("0")
        .arg("MKSTREAM");
    let _: Value = create.query_async(&mut mover).await.expect("XGROUP");
    let began = Instant::now();
    let moving = tokio::spawn(async move {
        let mut step = cmd("EVAL");
        step.arg(MOVE).arg(2).arg("bare").arg("bare-stream").arg(2).arg(BATCH);
        while step.query_async::<u32>(&mut mover).await.expect("EVAL") > 0 {}
    });
    let mut read = cmd("XREADGROUP");
    read.arg("GROUP")
        .arg("g")
        .arg("c")
        .arg("COUNT")
        .arg(BATCH)
        .arg("STREAMS")
        .arg("bare-stream")
        .arg(">");
    let mut done = 0;
    while done < tasks as usize {
        let entries: StreamReadReply = read.query_async(&mut reader).await.expect("XREADGROUP");
        let ids: Vec<String> = entries
            .keys
            .into_iter()
            .flat_map(|key| key.ids)
            .map(|entry| entry.id)
            .collect();
        if ids.is_empty() {
            tokio::task::yield_now().await;
            continue;
        }
        done += ids.len();
        let mut pipeline = redis::pipe();
        pipeline.cmd("XACK").arg("bare-stream").arg("g").arg(&ids);
        pipeline.cmd("XDEL").arg("bare-stream").arg(&ids);
        let _: Vec<Value> = pipeline.query_async(&mut reader).await.expect("XACK");
    }
    let took = began.elapsed();
    moving.await.expect("the mover ends");
    rate(tasks, took)
}

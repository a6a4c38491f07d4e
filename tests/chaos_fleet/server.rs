//! The server, asked past every fault of a link, and what it keeps of the jobs, read from its keys.

use std::collections::BTreeMap;

use leader_tests::RedisServer;
use leader_tests::audit::{JobSpec, JobState};
use redis::Value;

use crate::NAMESPACE;
use crate::floor::now;
use crate::jobs::JOBS;

/// Everything that the store keeps of a job, in one step.
/// KEYS: 1 its hash, 2 its runs, 3 its other ticks
const READ: &str = "\
local time = redis.call('TIME')
local now = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
return { now, redis.call('HGETALL', KEYS[1]), redis.call('LRANGE', KEYS[2], 0, -1), redis.call('LRANGE', KEYS[3], 0, -1) }";

/// Asks for something whose answer does not matter.
pub async fn ask(server: &RedisServer, words: &[&str]) {
    let answer = server.command(words).await;
    assert!(!matches!(answer, Value::ServerError(_)), "{words:?}: {answer:?}");
}

/// Ends every connection but the harness's own.
pub async fn throw_out(server: &RedisServer) {
    for kind in ["normal", "pubsub"] {
        ask(server, &["CLIENT", "KILL", "TYPE", kind]).await;
    }
}

/// What the store keeps of a job.
pub async fn state(server: &RedisServer, spec: JobSpec) -> JobState {
    let key = |part: &str| format!("{{{NAMESPACE}:leader:{}}}:{part}:{}", spec.group, spec.name);
    let keys = ["job", "ran", "passed"].map(key);
    let at = now();
    let answer = server.command(&["EVAL", READ, "3", &keys[0], &keys[1], &keys[2]]).await;
    let Value::Array(parts) = answer else {
        panic!("an unexpected answer: {answer:?}");
    };
    let [clock, fields, ran, passed] = parts.as_slice() else {
        panic!("an unexpected answer: {parts:?}");
    };
    let fields: Vec<_> = texts(fields);
    let fields = fields.chunks_exact(2).map(|pair| (pair[0].clone(), pair[1].clone()));
    JobState {
        at,
        now: text(clock).parse().expect("a number"),
        fields: fields.collect::<BTreeMap<_, _>>(),
        ran: texts(ran),
        passed: texts(passed),
    }
}

/// What it keeps of every job.
pub async fn states(server: &RedisServer) -> Vec<JobState> {
    let mut states = Vec::new();
    for spec in JOBS {
        states.push(state(server, spec).await);
    }
    states
}

fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::Array(values) => values.iter().map(text).collect(),
        other => panic!("no list: {other:?}"),
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::BulkString(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        other => panic!("no text: {other:?}"),
    }
}

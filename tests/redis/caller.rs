//! A caller in a loop, and what became of its calls.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use leader_core::__seam::Connection;
use leader_core::StoreError;
use leader_tests::{RedisServer, eventually};
use redis::Value;
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// Timers, and a machine that does other things too.
pub(crate) const SLACK: Duration = Duration::from_millis(50);

pub(crate) fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// One command.
pub(crate) async fn ask(connection: &Connection, words: &[&str], bound: Duration) -> Result<Value, StoreError> {
    let mut pipeline = redis::pipe();
    pipeline.add_command({
        let mut command = redis::Cmd::new();
        command.arg(words);
        command
    });
    let mut replies = connection.query(&pipeline, bound).await?;
    assert_eq!(replies.len(), 1);
    replies.pop().unwrap()
}

pub(crate) struct Call {
    pub(crate) ended: Instant,
    pub(crate) took: Duration,
    pub(crate) error: Option<StoreError>,
}

/// Asks for an echo every 10 ms; every answer must be its own.
pub(crate) struct Caller {
    bound: Duration,
    calls: Arc<Mutex<Vec<Call>>>,
    task: JoinHandle<()>,
}

impl Caller {
    /// Starts and waits for the first answer.
    pub(crate) async fn start(server: &RedisServer, bound: Duration) -> Self {
        let connection = Connection::new(&server.info(), "test");
        let calls = Arc::new(Mutex::new(Vec::new()));
        let task = tokio::spawn(run(connection, bound, Arc::clone(&calls)));
        let caller = Self { bound, calls, task };
        caller.answered_after(Instant::now(), ms(2000)).await;
        caller
    }

    /// Waits for an answer to a call after `event`, and says how much later it came.
    pub(crate) async fn answered_after(&self, event: Instant, deadline: Duration) -> Duration {
        let first = || {
            let calls = self.calls.lock().unwrap();
            calls
                .iter()
                .find(|call| call.ended >= event && call.error.is_none())
                .map(|call| call.ended - event)
        };
        eventually(deadline, "an answer", || async { first().is_some() }).await;
        first().unwrap()
    }

    /// Waits until `many` calls after `event` have failed, and gives the last error.
    pub(crate) async fn failed_after(&self, event: Instant, many: usize) -> StoreError {
        let failures = || {
            let calls = self.calls.lock().unwrap();
            let late = calls.iter().filter(|call| call.ended >= event);
            late.filter_map(|call| call.error.clone()).collect::<Vec<_>>()
        };
        eventually(ms(10_000), "failures", || async { failures().len() >= many }).await;
        failures().pop().unwrap()
    }

    /// Ends, after checking that no call was longer than its bound.
    pub(crate) fn stop(self) -> Vec<Call> {
        assert!(!self.task.is_finished(), "an answer was not its own");
        self.task.abort();
        let calls = std::mem::take(&mut *self.calls.lock().unwrap());
        let longest = calls.iter().map(|call| call.took).max().unwrap();
        println!("longest call {longest:?}, bound {:?}", self.bound);
        assert!(longest <= self.bound + SLACK, "{longest:?} > {:?}", self.bound);
        calls
    }
}

async fn run(connection: Connection, bound: Duration, calls: Arc<Mutex<Vec<Call>>>) {
    for number in 0_u64.. {
        let text = number.to_string();
        let began = Instant::now();
        let outcome = ask(&connection, &["ECHO", &text], bound).await;
        let ended = Instant::now();
        if let Ok(value) = &outcome {
            assert_eq!(*value, Value::BulkString(text.into_bytes()));
        }
        calls.lock().unwrap().push(Call {
            ended,
            took: ended - began,
            error: outcome.err(),
        });
        tokio::time::sleep(ms(10)).await;
    }
}

//! The table that the tasks write to: one row for each, behind its fence.

use std::collections::BTreeSet;

use redis::aio::MultiplexedConnection;
use redis::{RedisResult, Value, cmd};

/// One effect: refused under a lower fence than was seen of the task, confirmed where it is there already, else made; and told where that was
/// before the task was due. `effects` counts what was made by itself, so that a second one of a task shows.
const EFFECT: &str = "
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local task, fence, due = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local seen = tonumber(redis.call('HGET', KEYS[1], task) or 0)
if fence < seen then
  redis.call('HINCRBY', KEYS[3], 'refused', 1)
  return 'refused'
end
redis.call('HSET', KEYS[1], task, ARGV[2])
if now < due then
  redis.call('HINCRBY', KEYS[3], 'early', 1)
end
if redis.call('HEXISTS', KEYS[2], task) == 1 then
  redis.call('HINCRBY', KEYS[3], 'again', 1)
  return 'confirmed'
end
if redis.call('HINCRBY', KEYS[2], task, 1) > 1 then
  redis.call('HINCRBY', KEYS[3], 'doubled', 1)
end
return 'made'";

/// A way to the table, past every link that is cut.
#[derive(Clone)]
pub(crate) struct Ledger(MultiplexedConnection);

/// What was counted.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) early: u64,
    pub(crate) doubled: u64,
    pub(crate) again: u64,
    pub(crate) refused: u64,
}

impl Ledger {
    pub(crate) async fn open(url: &str) -> RedisResult<Self> {
        let client = redis::Client::open(url)?;
        client.get_multiplexed_async_connection().await.map(Self)
    }

    /// Has the effect of a task.
    pub(crate) async fn effect(&self, task: &str, fence: u64, due: jiff::Timestamp) -> RedisResult<String> {
        let mut call = cmd("EVAL");
        call.arg(EFFECT)
            .arg(3)
            .arg("ledger:fences")
            .arg("ledger:rows")
            .arg("ledger:counts");
        call.arg(task).arg(fence).arg(due.as_millisecond());
        call.query_async(&mut self.0.clone()).await
    }

    /// The tasks that had one.
    pub(crate) async fn rows(&self) -> RedisResult<BTreeSet<String>> {
        cmd("HKEYS").arg("ledger:rows").query_async(&mut self.0.clone()).await
    }

    pub(crate) async fn counts(&self) -> RedisResult<Counts> {
        let mut call = cmd("HMGET");
        call.arg("ledger:counts").arg(&["early", "doubled", "again", "refused"]);
        let read: Vec<Value> = call.query_async(&mut self.0.clone()).await?;
        let mut counts = read.into_iter().map(|value| match value {
            Value::BulkString(bytes) => String::from_utf8_lossy(&bytes).parse().unwrap_or(u64::MAX),
            _ => 0,
        });
        let mut next = || counts.next().unwrap_or(u64::MAX);
        Ok(Counts {
            early: next(),
            doubled: next(),
            again: next(),
            refused: next(),
        })
    }
}

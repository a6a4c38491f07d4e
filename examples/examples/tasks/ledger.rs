//! The ledger table: a row for each charged invoice, written in one step that compares the fence.
//!
//! That a task may be run again is not the ledger's business; that its invoice is charged once is. So a row says by which task it was
//! written, and under which fence: an attempt that finds its own task's row confirms it, and one with a lower fence is refused.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use leader_core::Task;
use leader_core::fencing::Fenced;
use leader_core::fencing::redis::{FencedKey, Refused};
use redis::Script;
use redis::aio::MultiplexedConnection;

use crate::work::Invoice;

/// Runs behind the comparison of fences, in the same step.
/// KEYS: 1 the row, 2 the sums; ARGV: 1 task, 2 cents, 3 when it was due
const CHARGE: &str = "
local time = redis.call('TIME')
local micros = time[1] * 1000000 + time[2]
local row = redis.call('GET', KEYS[1])
if row and string.match(row, '^%S+') ~= ARGV[1] then
  redis.call('HINCRBY', KEYS[2], 'duplicates', 1)
  return 'duplicate'
end
redis.call('SET', KEYS[1], ARGV[1] .. ' ' .. ARGV[2] .. ' ' .. FENCE)
if row then
  redis.call('HINCRBY', KEYS[2], 'confirmed', 1)
  return 'confirmed'
end
redis.call('HINCRBY', KEYS[2], 'charged', 1)
redis.call('HINCRBY', KEYS[2], 'cents', ARGV[2])
if micros < tonumber(ARGV[3]) then
  redis.call('HINCRBY', KEYS[2], 'early', 1)
end
redis.call('HSET', KEYS[2], 'last', string.format('%.0f', micros))
return 'charged'";

/// The ledger.
#[derive(Clone)]
pub enum Ledger {
    /// In this process.
    Memory(Arc<Mutex<Table>>),
    /// On the Redis of the run.
    Redis(Box<Rows>),
}

/// The table in memory.
#[derive(Debug, Default)]
pub struct Table {
    rows: BTreeMap<u64, Row>,
    sums: Sums,
}

#[derive(Debug)]
struct Row {
    task: String,
    fence: u64,
}

/// The table on Redis.
#[derive(Clone)]
pub struct Rows {
    connection: MultiplexedConnection,
    namespace: String,
    script: Arc<Script>,
}

/// What is in the ledger.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    /// Rows.
    pub charged: u64,
    /// What they come to.
    pub cents: u64,
    /// Attempts that found the row of their own task.
    pub confirmed: u64,
    /// Attempts that found the row of another task.
    pub duplicates: u64,
    /// Attempts with a lower fence than the row's.
    pub refused: u64,
    /// Rows that were written before they were due.
    pub early: u64,
    /// When the last row was written, by the ledger's clock.
    pub last: Timestamp,
}

impl Ledger {
    pub fn in_memory() -> Self {
        Self::Memory(Arc::default())
    }

    /// # Errors
    /// When the server is not there.
    pub async fn on_redis(url: &str, namespace: &str) -> anyhow::Result<Self> {
        let connection = redis::Client::open(url)?.get_multiplexed_async_connection().await?;
        // The text is the same for all rows.
        let script = FencedKey::new("row")?.eval(0, CHARGE).source;
        Ok(Self::Redis(Box::new(Rows {
            connection,
            namespace: namespace.to_owned(),
            script: Arc::new(Script::new(&script)),
        })))
    }

    /// Writes the row of an invoice, or confirms it.
    ///
    /// # Errors
    /// A fence that is too low, a row of another task, a server that does not answer.
    pub async fn charge(&self, invoice: &Invoice, task: &Task) -> anyhow::Result<()> {
        match self {
            Self::Memory(table) => {
                let mut table = table.lock().unwrap_or_else(PoisonError::into_inner);
                table.charge(invoice, task)
            }
            Self::Redis(rows) => rows.charge(invoice, task).await,
        }
    }

    /// # Errors
    /// A server that does not answer.
    pub async fn sums(&self) -> anyhow::Result<Sums> {
        match self {
            Self::Memory(table) => Ok(table.lock().unwrap_or_else(PoisonError::into_inner).sums),
            Self::Redis(rows) => rows.sums().await,
        }
    }
}

fn name(number: u64) -> String {
    format!("invoice {number}")
}

fn doubled(number: u64) -> anyhow::Error {
    anyhow::anyhow!("invoice {number} was charged by another task: nothing was charged again")
}

impl Table {
    fn charge(&mut self, invoice: &Invoice, task: &Task) -> anyhow::Result<()> {
        let (id, fence) = (task.id().to_string(), task.fence());
        let sums = &mut self.sums;
        match self.rows.entry(invoice.number) {
            Entry::Occupied(row) if row.get().fence > fence => {
                sums.refused += 1;
                return Err(Fenced::by(name(invoice.number), fence, Some(row.get().fence)).into());
            }
            Entry::Occupied(row) if row.get().task != id => {
                sums.duplicates += 1;
                return Err(doubled(invoice.number));
            }
            Entry::Occupied(mut row) => {
                row.get_mut().fence = fence;
                sums.confirmed += 1;
            }
            Entry::Vacant(place) => {
                place.insert(Row { task: id, fence });
                sums.charged += 1;
                sums.cents += invoice.cents;
                sums.last = Timestamp::now();
                sums.early += u64::from(sums.last < task.due_at());
            }
        }
        Ok(())
    }
}

impl Rows {
    /// All keys of the ledger share a slot of a Cluster.
    fn key(&self, part: &str) -> String {
        format!("{{{}:ledger}}:{part}", self.namespace)
    }

    async fn charge(&self, invoice: &Invoice, task: &Task) -> anyhow::Result<()> {
        let row = FencedKey::new(self.key(&invoice.number.to_string()))?;
        let write = row
            .eval(task.fence(), CHARGE)
            .key(self.key("sums"))
            .arg(task.id().to_string())
            .arg(invoice.cents.to_string())
            .arg(task.due_at().as_microsecond().to_string());
        let mut call = self.script.prepare_invoke();
        for key in &write.keys {
            call.key(key);
        }
        for arg in &write.args {
            call.arg(arg.as_slice());
        }
        let mut connection = self.connection.clone();
        let answer: Vec<Vec<u8>> = call.invoke_async(&mut connection).await?;
        match write.read(&answer) {
            Ok(told) if told.first().is_some_and(|word| word == b"duplicate") => Err(doubled(invoice.number)),
            Ok(_) => Ok(()),
            Err(refused) => {
                if matches!(refused, Refused::Fenced(_)) {
                    let count = redis::cmd("HINCRBY")
                        .arg(self.key("sums"))
                        .arg("refused")
                        .arg(1)
                        .to_owned();
                    let _: u64 = count.query_async(&mut connection).await?;
                }
                Err(refused.into())
            }
        }
    }

    async fn sums(&self) -> anyhow::Result<Sums> {
        let mut connection = self.connection.clone();
        let read = redis::cmd("HGETALL").arg(self.key("sums")).to_owned();
        let sums: BTreeMap<String, i64> = read.query_async(&mut connection).await?;
        let sum = |name: &str| sums.get(name).map_or(0, |sum| sum.unsigned_abs());
        Ok(Sums {
            charged: sum("charged"),
            cents: sum("cents"),
            confirmed: sum("confirmed"),
            duplicates: sum("duplicates"),
            refused: sum("refused"),
            early: sum("early"),
            last: Timestamp::from_microsecond(sums.get("last").copied().unwrap_or(0))?,
        })
    }
}

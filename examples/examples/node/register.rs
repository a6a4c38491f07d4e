//! Work that must never overlap, as it should be done: each write carries the leadership's fence, and the register refuses a
//! lower one than it has seen.

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use leader_core::Lead;
use redis::aio::MultiplexedConnection;
use serde_json::json;

use crate::{Lines, mono};

/// Whose leader writes.
pub const GROUP: &str = "register";

/// Takes a write, unless a higher fence was seen; keeps who wrote under which fence, one entry for each change, whatever the
/// comparison before it let through.
/// KEYS: 1 register, 2 history; ARGV: 1 fence, 2 writer
const WRITE: &str = "\
local seen = redis.call('HMGET', KEYS[1], 'fence', 'writer')
if seen[1] and tonumber(ARGV[1]) < tonumber(seen[1]) then
  redis.call('HINCRBY', KEYS[1], 'refused', 1)
  return 0
end
if seen[1] ~= ARGV[1] or seen[2] ~= ARGV[2] then
  redis.call('HSET', KEYS[1], 'fence', ARGV[1], 'writer', ARGV[2])
  redis.call('RPUSH', KEYS[2], ARGV[1] .. ' ' .. ARGV[2])
end
redis.call('HINCRBY', KEYS[1], 'accepted', 1)
return 1";

/// The pause between two writes.
const PAUSE: Duration = Duration::from_millis(1);
/// How long the body ignores that it was told to stop: longer than trust can last from then on, so that only the guard ends it.
const STUBBORN: Duration = Duration::from_secs(1);
/// How many of a body's last polls are told.
const POLLS: usize = 8;

/// The register, and how this instance reaches it.
#[derive(Clone)]
pub struct Register {
    client: redis::Client,
    keys: [String; 2],
    lines: Lines,
}

impl Register {
    /// The register of a namespace.
    ///
    /// # Errors
    /// A URL that the `redis` crate does not take.
    pub fn new(store: &str, namespace: &str, lines: Lines) -> redis::RedisResult<Self> {
        Ok(Self {
            client: redis::Client::open(store)?,
            keys: ["register", "register-history"].map(|key| format!("{namespace}:{key}")),
            lines,
        })
    }

    /// Writes for as long as it is led, and tells of itself when it begins and when it ends, be it dropped.
    ///
    /// # Errors
    /// When its beginning cannot be told.
    pub async fn hold(self, lead: Lead) -> anyhow::Result<()> {
        let fields = json!({ "group": GROUP, "fence": lead.fence() });
        self.lines.write("writing", mono(), fields)?;
        let counts = Arc::new(Counts::default());
        let mut record = Record {
            lines: self.lines.clone(),
            fence: lead.fence(),
            polls: VecDeque::with_capacity(POLLS),
            counts: Arc::clone(&counts),
        };
        let mut body = pin!(self.write_on(&lead, &counts));
        std::future::poll_fn(|context| {
            // Before anything else: this is the body's own first look.
            record.polled(mono());
            body.as_mut().poll(context)
        })
        .await;
        Ok(())
    }

    async fn write_on(&self, lead: &Lead, counts: &Counts) {
        let mut connection = None;
        let mut told = None;
        loop {
            // News that came in time takes the word back.
            told = lead.is_cancelled().then(|| told.unwrap_or_else(Instant::now));
            if told.is_some_and(|told| told.elapsed() > STUBBORN) {
                return;
            }
            let count = match self.write(&mut connection, lead.fence()).await {
                Ok(true) => &counts.accepted,
                Ok(false) => &counts.refused,
                Err(_) => {
                    connection = None;
                    &counts.failed
                }
            };
            count.fetch_add(1, Ordering::Relaxed);
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Whether the register took it.
    async fn write(&self, connection: &mut Option<MultiplexedConnection>, fence: u64) -> redis::RedisResult<bool> {
        let connection = match connection {
            Some(connection) => connection,
            None => connection.insert(self.client.get_multiplexed_async_connection().await?),
        };
        let mut write = redis::cmd("EVAL");
        write.arg(WRITE).arg(self.keys.len()).arg(&self.keys);
        write.arg(fence).arg(self.lines.instance());
        write.query_async(connection).await
    }
}

/// What became of the writes.
#[derive(Default)]
struct Counts {
    accepted: AtomicU64,
    refused: AtomicU64,
    failed: AtomicU64,
}

/// Tells, when it is dropped, of one body's life.
struct Record {
    lines: Lines,
    fence: u64,
    polls: VecDeque<u64>,
    counts: Arc<Counts>,
}

impl Record {
    fn polled(&mut self, at: u64) {
        if self.polls.len() == POLLS {
            self.polls.pop_front();
        }
        self.polls.push_back(at);
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        let count = |of: &AtomicU64| of.load(Ordering::Relaxed);
        let fields = json!({
            "group": GROUP,
            "fence": self.fence,
            "accepted": count(&self.counts.accepted),
            "refused": count(&self.counts.refused),
            "failed": count(&self.counts.failed),
            "last_polls_ns": self.polls,
        });
        // Nobody is left to hear of a failure: whoever reads the log misses the line.
        let _ = self.lines.write("written", mono(), fields);
    }
}

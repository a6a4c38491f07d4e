//! Looks at leases on the server itself, past all proxies.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use leader_core::{Instance, Moment};
use leader_tests::RedisServer;
use redis::aio::MultiplexedConnection;
use tokio::task::JoinHandle;

use crate::rig::{ms, now};

/// A connection of its own.
#[derive(Clone)]
pub(crate) struct Observer(MultiplexedConnection);

/// One look at a lease.
#[derive(Clone, Debug)]
pub(crate) struct Look {
    /// The server looked after `sent` and before `heard`.
    pub(crate) sent: Moment,
    pub(crate) heard: Moment,
    /// Whom the lease names, without the nonce.
    pub(crate) holder: Option<String>,
    /// How long the lease still lasts.
    pub(crate) left: Duration,
    /// The last term that was minted.
    pub(crate) term: u64,
}

impl Look {
    pub(crate) fn is_held_by(&self, id: &str) -> bool {
        self.holder.as_deref() == Some(id)
    }

    /// The lease cannot end sooner by itself: what is left is told in whole milliseconds.
    pub(crate) fn lasts_until(&self) -> Moment {
        self.sent + self.left.saturating_sub(ms(1))
    }
}

impl Observer {
    pub(crate) async fn of(server: &RedisServer) -> Self {
        let client = redis::Client::open(server.url()).unwrap();
        Self(client.get_multiplexed_async_connection().await.unwrap())
    }

    pub(crate) async fn look(&self, namespace: &str, group: &str) -> Look {
        let lease = format!("{namespace}:leader:{group}");
        let mut pipeline = redis::pipe();
        pipeline.atomic();
        pipeline.get(&lease);
        pipeline.pttl(&lease);
        pipeline.hget(format!("{{{lease}}}:lease"), "term");
        let sent = now();
        let (holder, left, term): (Option<String>, i64, Option<u64>) =
            pipeline.query_async(&mut self.0.clone()).await.unwrap();
        Look {
            sent,
            heard: now(),
            holder: holder.map(|holder| holder.split('#').next().unwrap().to_owned()),
            left: Duration::from_millis(u64::try_from(left).unwrap_or(0)),
            term: term.unwrap_or(0),
        }
    }

    /// How many connections listen for releases in a namespace.
    pub(crate) async fn listeners(&self, namespace: &str) -> u64 {
        let channel = format!("{namespace}:leader-told");
        let mut command = redis::cmd("PUBSUB");
        command.arg("NUMSUB").arg(&channel);
        let (_, count): (String, u64) = command.query_async(&mut self.0.clone()).await.unwrap();
        count
    }
}

/// Asks an instance about every millisecond whether it leads.
pub(crate) struct Sampler {
    seen: Arc<Seen>,
    task: JoinHandle<()>,
}

#[derive(Default)]
struct Seen {
    last_yes: AtomicU64,
    yes: AtomicU64,
    no: AtomicU64,
}

/// What a [`Sampler`] has seen.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Samples {
    /// Before the last question that was answered with yes.
    pub(crate) last_yes: Moment,
    pub(crate) yes: u64,
    pub(crate) no: u64,
}

impl Sampler {
    pub(crate) fn of(instance: &Instance, group: &'static str) -> Self {
        let (seen, instance) = (Arc::<Seen>::default(), instance.clone());
        let noted = Arc::clone(&seen);
        let task = tokio::spawn(async move {
            loop {
                let at = now();
                if instance.is_leader(group) {
                    noted.last_yes.store(at.as_nanos(), Ordering::SeqCst);
                    noted.yes.fetch_add(1, Ordering::SeqCst);
                } else {
                    noted.no.fetch_add(1, Ordering::SeqCst);
                }
                tokio::time::sleep(ms(1)).await;
            }
        });
        Self { seen, task }
    }

    /// Stops asking.
    pub(crate) fn stop(self) -> Samples {
        self.task.abort();
        Samples {
            last_yes: Moment::from_nanos(self.seen.last_yes.load(Ordering::SeqCst)),
            yes: self.seen.yes.load(Ordering::SeqCst),
            no: self.seen.no.load(Ordering::SeqCst),
        }
    }
}

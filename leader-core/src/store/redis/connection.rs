//! One connection to the server that mends itself.
//!
//! The `redis` crate's own `ConnectionManager` keeps a half-open connection after a time-out, lets callers wait without a bound
//! while it reconnects, and gives up for good on some errors. This one drops a connection at the first doubt and never gives up.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ::redis::aio::MultiplexedConnection;
use ::redis::{AsyncConnectionConfig, Client, ConnectionInfo, Pipeline, Value};
use tokio::sync::watch;

use super::{address, backoff, fault};
use crate::clock::{Clock, Moment};
use crate::store::error::StoreError;

/// The bound of one attempt to connect. Callers wait no longer than their own; a shorter one here would mean that a slow link
/// is never opened.
const ATTEMPT: Duration = Duration::from_secs(2);

/// One self-mending connection. Never gives up, never blocks longer than the bound of a call.
///
/// It is opened by the first call and dropped after anything that puts it in doubt: an I/O error, the first time-out, an answer
/// that cannot be parsed, a refusal that says "wrong server" or "who are you". Attempts to connect are made one at a time, by a
/// task of the calling runtime, and all callers share the outcome. After a failed one callers fail fast with its error until a
/// short pause has passed. Clones share the connection.
///
/// # Cancel safety
/// Every future may be dropped at any time: replies are never swapped, and an attempt to connect goes on for the next caller. A
/// dropped call may have run on the server or may still run. A call that was dropped before its bound has not timed out, and
/// the connection stays in use: pass the bound instead of wrapping the call in a shorter time-out.
#[derive(Clone)]
pub struct Connection(Arc<Shared>);

struct Shared {
    client: Result<Client, StoreError>,
    address: Arc<str>,
    name: &'static str,
    clock: Clock,
    link: Mutex<Link>,
}

struct Link {
    state: State,
    /// Tells the present attempt or connection from earlier ones, whose late errors mean nothing.
    epoch: u64,
    /// When the present attempt began.
    began: Moment,
    /// Attempts in a row that did not lead to a connection of use.
    failures: u32,
}

enum State {
    Closed,
    /// An attempt is under way and tells its outcome here.
    Opening(Told),
    Open(MultiplexedConnection),
    /// The last attempt failed: nobody tries again before `until`.
    Resting {
        until: Moment,
        error: StoreError,
    },
}

type Told = watch::Receiver<Option<Result<(), StoreError>>>;

enum Step {
    Use(u64, MultiplexedConnection),
    Await(u64, Told),
}

impl Connection {
    /// A connection that the first call opens. Settings that cannot work are the error of every call.
    #[must_use]
    pub fn new(info: &ConnectionInfo, name: &'static str) -> Self {
        let address = info.addr().to_string().into();
        let clock = Clock::system();
        let link = Link {
            state: State::Closed,
            epoch: 0,
            began: clock.now(),
            failures: 0,
        };
        Self(Arc::new(Shared {
            client: address::client(info).map_err(|error| error.with_address(&address)),
            address,
            name,
            clock,
            link: Mutex::new(link),
        }))
    }

    /// One round trip, each reply judged on its own; `bound` covers connect, send and reply.
    ///
    /// There is one result for every command of the pipeline, ignored ones included. An error of the whole call says nothing
    /// about whether the commands ran.
    pub async fn query(
        &self,
        pipeline: &Pipeline,
        bound: Duration,
    ) -> Result<Vec<Result<Value, StoreError>>, StoreError> {
        if pipeline.is_empty() {
            return Ok(Vec::new());
        }
        let mut used = None;
        let answer = tokio::time::timeout(bound, self.0.round_trip(pipeline, &mut used)).await;
        answer.unwrap_or_else(|_| {
            let error = StoreError::timed_out().with_address(&self.0.address);
            if let Some(epoch) = used {
                self.0.drop_link(epoch, &error);
            }
            Err(error)
        })
    }

    /// Opens the connection ahead of need, and asks whether the server serves us.
    pub async fn connect(&self, bound: Duration) -> Result<(), StoreError> {
        let mut ping = ::redis::pipe();
        ping.cmd("PING");
        self.query(&ping, bound)
            .await?
            .into_iter()
            .try_for_each(|reply| reply.map(drop))
    }
}

impl Shared {
    async fn round_trip(
        self: &Arc<Self>,
        pipeline: &Pipeline,
        used: &mut Option<u64>,
    ) -> Result<Vec<Result<Value, StoreError>>, StoreError> {
        let (epoch, mut connection) = self.opened().await?;
        *used = Some(epoch);
        let commands = pipeline.len();
        let answer = if pipeline.is_transaction() {
            // `+OK` and a `+QUEUED` for each command come before the one reply that counts.
            connection
                .send_packed_commands(pipeline, commands + 1, 1)
                .await
                .and_then(unpack_transaction)
        } else {
            connection.send_packed_commands(pipeline, 0, commands).await
        };
        let judged = answer
            .map_err(|error| self.translate(error))
            .and_then(|replies| {
                if replies.len() == commands {
                    Ok(replies)
                } else {
                    Err(StoreError::protocol().with_address(&self.address))
                }
            })
            .map(|replies| {
                let judge = |reply: Value| reply.extract_error().map_err(|e| self.translate(e));
                replies.into_iter().map(judge).collect::<Vec<_>>()
            });
        let doubt = match &judged {
            Err(error) => Some(error).filter(|error| fault::spoils(error)),
            Ok(replies) => replies
                .iter()
                .filter_map(|reply| reply.as_ref().err())
                .find(|error| fault::spoils(error)),
        };
        match doubt {
            Some(error) => self.drop_link(epoch, error),
            None => self.prove(epoch),
        }
        judged
    }

    /// The open connection, after waiting for an attempt if need be.
    async fn opened(self: &Arc<Self>) -> Result<(u64, MultiplexedConnection), StoreError> {
        loop {
            let (epoch, mut told) = match self.step()? {
                Step::Use(epoch, connection) => return Ok((epoch, connection)),
                Step::Await(epoch, told) => (epoch, told),
            };
            match told.wait_for(Option::is_some).await.as_deref() {
                Ok(Some(Err(error))) => return Err(error.clone()),
                Ok(_) => {}
                // The runtime that made the attempt is gone.
                Err(_) => {
                    let error = StoreError::unreachable().with_address(&self.address);
                    self.settle(epoch, Err(error.clone()))?;
                    return Err(error);
                }
            }
        }
    }

    fn step(self: &Arc<Self>) -> Result<Step, StoreError> {
        let mut link = self.lock();
        match &link.state {
            State::Open(connection) => return Ok(Step::Use(link.epoch, connection.clone())),
            State::Opening(told) => return Ok(Step::Await(link.epoch, told.clone())),
            State::Resting { until, error } if self.clock.now() < *until => {
                return Err(error.clone());
            }
            State::Resting { .. } | State::Closed => {}
        }
        let client = self.client.clone()?;
        let (tell, told) = watch::channel(None);
        link.epoch += 1;
        link.began = self.clock.now();
        link.state = State::Opening(told.clone());
        let epoch = link.epoch;
        drop(link);
        let shared = Arc::clone(self);
        tokio::spawn(async move {
            let outcome = shared.attempt(&client).await;
            tell.send_replace(Some(shared.settle(epoch, outcome)));
        });
        Ok(Step::Await(epoch, told))
    }

    async fn attempt(&self, client: &Client) -> Result<MultiplexedConnection, StoreError> {
        // The bounds are ours: the crate's own would end calls earlier or add up with ours.
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(None)
            .set_response_timeout(None);
        let opening = client.get_multiplexed_async_connection_with_config(&config);
        let mut connection = match tokio::time::timeout(ATTEMPT, opening).await {
            Ok(opened) => opened.map_err(|error| self.translate(error))?,
            Err(_) => return Err(StoreError::timed_out().with_address(&self.address)),
        };
        // A name for `CLIENT LIST`. Nobody waits for the answer: a user without the right to it works all the same.
        let mut name = ::redis::cmd("CLIENT");
        name.arg("SETNAME").arg(format!("leader:{}", self.name));
        name.set_no_response(true);
        let _ = connection.send_packed_command(&name).await;
        Ok(connection)
    }

    /// Takes the outcome of an attempt.
    fn settle(&self, epoch: u64, outcome: Result<MultiplexedConnection, StoreError>) -> Result<(), StoreError> {
        let mut link = self.lock();
        let present = link.epoch == epoch && matches!(link.state, State::Opening(_));
        match outcome {
            Ok(connection) => {
                if present {
                    link.state = State::Open(connection);
                }
                drop(link);
                tracing::debug!(name = self.name, at = %self.address, "connected to the store");
                Ok(())
            }
            Err(error) => {
                if present {
                    link.rest(&error);
                }
                drop(link);
                tracing::debug!(
                    name = self.name,
                    error = &error as &dyn std::error::Error,
                    "no connection to the store"
                );
                Err(error)
            }
        }
    }

    /// A connection that served a call owes nothing to the failures before it.
    fn prove(&self, epoch: u64) {
        let mut link = self.lock();
        if link.epoch == epoch {
            link.failures = 0;
        }
    }

    /// Drops the connection of `epoch`; the next call opens another.
    fn drop_link(&self, epoch: u64, error: &StoreError) {
        let mut link = self.lock();
        if link.epoch != epoch || !matches!(link.state, State::Open(_)) {
            return;
        }
        link.rest(error);
        drop(link);
        tracing::debug!(
            name = self.name,
            error = error as &dyn std::error::Error,
            "connection to the store dropped"
        );
    }

    fn translate(&self, error: ::redis::RedisError) -> StoreError {
        fault::from_redis(error).with_address(&self.address)
    }

    fn lock(&self) -> MutexGuard<'_, Link> {
        // Nothing below panics halfway through a change.
        self.link.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Link {
    /// The pause counts from the attempt's beginning: one that took long, or led to a connection that lasted, is followed by the
    /// next at once.
    fn rest(&mut self, error: &StoreError) {
        self.failures = self.failures.saturating_add(1);
        self.state = State::Resting {
            until: self.began + backoff::pause(self.failures),
            error: error.clone(),
        };
    }
}

/// The replies of a transaction's commands.
fn unpack_transaction(mut answer: Vec<Value>) -> ::redis::RedisResult<Vec<Value>> {
    match answer.pop() {
        Some(Value::Array(replies)) => Ok(replies),
        Some(other) => other.extract_error().map(|other| vec![other]),
        None => Ok(answer),
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("name", &self.0.name)
            .field("address", &self.0.address)
            .finish_non_exhaustive()
    }
}

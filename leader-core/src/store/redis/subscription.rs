//! Messages of one channel, as a hint: whoever listens looks at the store for the truth.

use std::convert::Infallible;
use std::pin::Pin;
use std::time::Duration;

use ::redis::{Client, ConnectionInfo};
use futures_core::Stream;

use super::{address, backoff, fault};
use crate::clock::Clock;
use crate::store::error::StoreError;

/// The bound of connecting, of subscribing and of a ping's answer.
const BOUND: Duration = Duration::from_secs(2);
/// How long a link may be silent before it is tested. With [`BOUND`] a dead one is noticed within 7 s.
const PING: Duration = Duration::from_secs(5);

/// How long a refusal is respected: rights change seldom.
const REFUSED: Duration = Duration::from_secs(30);

/// A subscription of its own connection that mends itself.
#[derive(Debug)]
#[allow(clippy::exhaustive_structs, reason = "a place for one function")]
pub struct Subscription;

impl Subscription {
    /// Listens to `channel` for ever; dropping the future ends it.
    ///
    /// `on_gap` is called after every subscription, the first included: what was published before it was not heard. Both
    /// callbacks run between two messages and must not block. `on_refused` is told when the server does not let this user listen;
    /// it is asked again after [`REFUSED`].
    pub async fn run(
        info: ConnectionInfo,
        channel: String,
        on_message: impl Fn(String) + Send + Sync + 'static,
        on_gap: impl Fn() + Send + Sync + 'static,
        on_refused: impl Fn(StoreError) + Send + Sync + 'static,
    ) -> Infallible {
        let at = info.addr().to_string().into();
        let client = match address::client(&info) {
            Ok(client) => client,
            Err(error) => {
                trace(&error.with_address(&at));
                return std::future::pending().await;
            }
        };
        let clock = Clock::system();
        let mut failures: u32 = 0;
        loop {
            let began = clock.now();
            let error = listen(&client, &channel, &on_message, &on_gap).await.with_address(&at);
            trace(&error);
            if error.is_of_the_question() {
                on_refused(error);
                tokio::time::sleep(REFUSED).await;
                continue;
            }
            let lasted = clock.now().since(began);
            failures = if lasted > backoff::LONGEST {
                1
            } else {
                failures.saturating_add(1)
            };
            tokio::time::sleep(backoff::pause(failures).saturating_sub(lasted)).await;
        }
    }
}

/// Listens until the connection is in doubt, and says why.
async fn listen(client: &Client, channel: &str, on_message: &impl Fn(String), on_gap: &impl Fn()) -> StoreError {
    let opening = bounded(async {
        let mut connection = client.get_async_pubsub().await?;
        connection.subscribe(channel).await?;
        Ok(connection)
    });
    let (mut sink, mut messages) = match opening.await {
        Ok(connection) => connection.split(),
        Err(error) => return error,
    };
    on_gap();
    loop {
        let next = std::future::poll_fn(|context| Pin::new(&mut messages).poll_next(context));
        match tokio::time::timeout(PING, next).await {
            Ok(Some(message)) => {
                on_message(String::from_utf8_lossy(message.get_payload_bytes()).into_owned());
            }
            Ok(None) => return StoreError::unreachable(),
            // Messages that arrive meanwhile wait in the stream.
            Err(_) => {
                if let Err(error) = bounded(sink.ping::<::redis::Value>()).await {
                    return error;
                }
            }
        }
    }
}

async fn bounded<T>(operation: impl Future<Output = ::redis::RedisResult<T>>) -> Result<T, StoreError> {
    match tokio::time::timeout(BOUND, operation).await {
        Ok(done) => done.map_err(fault::from_redis),
        Err(_) => Err(StoreError::timed_out()),
    }
}

fn trace(error: &StoreError) {
    tracing::debug!(error = error as &dyn std::error::Error, "no news from the store");
}

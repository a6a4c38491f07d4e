//! A real server whose clock stands until it is moved, for one sequence after another.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use leader_core::__seam::{RedisStore, Store};
use leader_core::{Clock, Namespace};
use leader_tests::{HandClock, RedisServer};
use redis::Value;
use redis::aio::MultiplexedConnection;

use crate::bench::BOUND;
use crate::differential::little;

/// One server, and what moves its clock.
pub(crate) struct Lane {
    server: RedisServer,
    hand: HandClock,
    /// The clock of the embedded side; the server's shows the same.
    pub(crate) clock: Clock,
    connection: MultiplexedConnection,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) namespace: Namespace,
    /// When the server was started, as it counts: in whole seconds.
    started: Timestamp,
    pub(crate) appendonly: bool,
    full: bool,
    readonly: bool,
}

impl Lane {
    pub(crate) async fn start(appendonly: bool) -> Self {
        let began: Timestamp = "2026-03-02T12:00:00Z".parse().unwrap();
        let hand = HandClock::at(began);
        let mut options = RedisServer::options()
            .clock(&hand)
            .set("auto-aof-rewrite-min-size", "4mb");
        if appendonly {
            options = options.set("appendonly", "yes").set("appendfsync", "no");
        }
        let server = options.start().await;
        let namespace = Namespace::new("pair").unwrap();
        let store = Arc::new(RedisStore::new(&server.info(), &namespace, BOUND).keeping(little()));
        let mut lane = Self {
            connection: connected(&server).await,
            hand,
            clock: Clock::manual(began),
            store,
            namespace,
            started: began,
            appendonly,
            full: false,
            readonly: false,
            server,
        };
        assert_eq!(
            lane.server.uptime().await,
            Duration::ZERO,
            "the server goes by its own clock"
        );
        lane.only_looks_expire().await;
        lane
    }

    /// A server without data, which was started so long ago.
    pub(crate) async fn begin(&mut self, age: Duration) {
        if self.readonly {
            self.set_readonly(false).await;
            self.connect_anew();
        }
        self.set_full(false).await;
        self.command(&["FLUSHALL"]).await;
        self.clock = Clock::manual(self.started + SignedDuration::try_from(age).unwrap());
        self.hand.set(self.clock.wall());
    }

    pub(crate) fn pass(&self, span: Duration) {
        self.clock.advance(span);
        self.hand.set(self.clock.wall());
    }

    pub(crate) fn step_clock(&self, by: SignedDuration) {
        self.clock.step_wall(by);
        self.hand.set(self.clock.wall());
    }

    pub(crate) fn started(&self) -> Timestamp {
        self.started
    }

    pub(crate) fn is_short(&self) -> bool {
        self.full || self.readonly
    }

    pub(crate) fn is_readonly(&self) -> bool {
        self.readonly
    }

    pub(crate) async fn set_full(&mut self, full: bool) {
        if self.full != full {
            self.full = full;
            let limit = if full { "1" } else { "0" };
            self.command(&["CONFIG", "SET", "maxmemory", limit]).await;
        }
    }

    pub(crate) async fn set_readonly(&mut self, readonly: bool) {
        if self.readonly != readonly {
            self.readonly = readonly;
            // Nobody serves there: it keeps what it has, and takes no writes.
            let primary: &[&str] = if readonly { &["127.0.0.1", "1"] } else { &["NO", "ONE"] };
            self.command(&[&["REPLICAOF"], primary].concat()).await;
        }
    }

    /// Another process begins, with the data on its disk or without.
    pub(crate) async fn restart(&mut self, keep_data: bool) {
        self.started = Timestamp::from_second(self.clock.wall().as_second()).unwrap();
        self.server.restart(keep_data).await;
        self.connection = connected(&self.server).await;
        self.connect_anew();
        self.only_looks_expire().await;
    }

    /// The store on a connection that knows of no trouble.
    pub(crate) fn connect_anew(&mut self) -> Arc<dyn Store> {
        self.store = Arc::new(RedisStore::new(&self.server.info(), &self.namespace, BOUND).keeping(little()));
        Arc::clone(&self.store)
    }

    /// What has ended goes when somebody looks at it, and not at any moment before.
    async fn only_looks_expire(&mut self) {
        self.command(&["DEBUG", "SET-ACTIVE-EXPIRE", "0"]).await;
    }

    pub(crate) async fn command(&mut self, words: &[&str]) -> Value {
        let mut command = redis::Cmd::new();
        command.arg(words);
        let answer: redis::RedisResult<Value> = command.query_async(&mut self.connection).await;
        answer.unwrap_or_else(|error| panic!("{words:?}: {error}"))
    }

    /// Several in one round trip; an error is an answer.
    pub(crate) async fn pipeline(&mut self, commands: &[&[&str]]) -> Vec<Value> {
        let mut pipeline = redis::Pipeline::new();
        pipeline.ignore_errors();
        for words in commands {
            let mut command = redis::Cmd::new();
            command.arg(*words);
            pipeline.add_command(command);
        }
        let answers: Vec<redis::RedisResult<Value>> = pipeline.query_async(&mut self.connection).await.unwrap();
        answers.into_iter().map(|answer| answer.unwrap_or(Value::Nil)).collect()
    }

    pub(crate) fn lease(&self, group: &str) -> String {
        format!("{}:leader:{group}", self.namespace)
    }

    pub(crate) fn part(&self, group: &str, part: &str) -> String {
        format!("{{{}}}:{part}", self.lease(group))
    }
}

async fn connected(server: &RedisServer) -> MultiplexedConnection {
    let client = redis::Client::open(server.info()).unwrap();
    // What it saves is synced to a disk that others use too.
    let config = redis::AsyncConnectionConfig::new()
        .set_connection_timeout(Some(6 * BOUND))
        .set_response_timeout(Some(6 * BOUND));
    client
        .get_multiplexed_async_connection_with_config(&config)
        .await
        .unwrap()
}

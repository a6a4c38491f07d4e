//! One group on a server that forgets and whose clock is moved by hand: on the embedded store made as a server, and on a real one.

use std::sync::Arc;
use std::time::Duration;

use jiff::SignedDuration;
use leader_core::__seam::{EmbeddedServer, Left, Part, Snapshot, Store, Verdict, Written, in_namespace};
use leader_core::testing::__server_on;
use leader_core::{Clock, Holder, Namespace};

use crate::bench::{Bench, LONG, group};
use crate::lane::Lane;

pub(crate) const TTL: Duration = Duration::from_secs(10);
pub(crate) const INSTANT: Duration = Duration::from_millis(1);

/// An instant less.
pub(crate) fn just_before(span: Duration) -> Duration {
    span.saturating_sub(INSTANT)
}

/// One group on a server of one of the two kinds.
pub(crate) struct Machine {
    pub(crate) kind: Kind,
    pub(crate) clock: Clock,
    pub(crate) bench: Bench,
}

pub(crate) enum Kind {
    Embedded(EmbeddedServer),
    Redis(Box<Lane>),
}

/// Makes a test for each kind of server out of each case; both begin old, and the second of each with an append-only file.
macro_rules! on_each_server {
    ($($case:ident),* $(,)?) => {
        mod embedded {
            $(#[tokio::test] async fn $case() {
                super::$case($crate::machine::Machine::embedded(false)).await;
                super::$case($crate::machine::Machine::embedded(true)).await;
            })*
        }
        mod redis {
            $(#[tokio::test] async fn $case() {
                super::$case($crate::machine::Machine::redis(false).await).await;
                super::$case($crate::machine::Machine::redis(true).await).await;
            })*
        }
    };
}

impl Machine {
    pub(crate) fn embedded(appendonly: bool) -> Self {
        let clock = Clock::manual("2026-03-02T12:00:00Z".parse().unwrap());
        let server = __server_on(clock.clone());
        server.set_appendonly(appendonly);
        assert_eq!(server.appendonly(), appendonly);
        clock.advance(LONG);
        let namespace = Namespace::new("pair").unwrap();
        let store = Arc::new(in_namespace(server.store(), &namespace));
        Self::on(Kind::Embedded(server), clock, namespace, store)
    }

    pub(crate) async fn redis(appendonly: bool) -> Self {
        let mut lane = Lane::start(appendonly).await;
        lane.begin(LONG).await;
        let (clock, namespace, store) = (lane.clock.clone(), lane.namespace.clone(), Arc::clone(&lane.store));
        Self::on(Kind::Redis(Box::new(lane)), clock, namespace, store)
    }

    pub(crate) fn on(kind: Kind, clock: Clock, namespace: Namespace, store: Arc<dyn Store>) -> Self {
        let bench = Bench {
            store,
            namespace,
            group: group("cleanup"),
            server: None,
        };
        Self { kind, clock, bench }
    }

    pub(crate) fn appendonly(&self) -> bool {
        match &self.kind {
            Kind::Embedded(server) => server.appendonly(),
            Kind::Redis(lane) => lane.appendonly,
        }
    }

    pub(crate) fn pass(&self, span: Duration) {
        match &self.kind {
            Kind::Embedded(_) => self.clock.advance(span),
            Kind::Redis(lane) => lane.pass(span),
        }
    }

    pub(crate) fn step(&self, by: SignedDuration) {
        match &self.kind {
            Kind::Embedded(server) => server.step_clock(by),
            Kind::Redis(lane) => lane.step_clock(by),
        }
    }

    pub(crate) async fn flush(&mut self) {
        match &mut self.kind {
            Kind::Embedded(server) => server.flush(),
            Kind::Redis(lane) => drop(lane.command(&["FLUSHALL"]).await),
        }
    }

    /// What the next restart may go back to.
    pub(crate) async fn save(&mut self) -> Option<Snapshot> {
        match &mut self.kind {
            Kind::Embedded(server) => Some(server.snapshot()),
            Kind::Redis(lane) => {
                lane.command(&["SAVE"]).await;
                None
            }
        }
    }

    pub(crate) async fn restart(&mut self, keep_data: bool) {
        if keep_data && !self.appendonly() {
            self.save().await;
        }
        match &mut self.kind {
            Kind::Embedded(server) => server.restart(if keep_data { Left::Everything } else { Left::Nothing }),
            Kind::Redis(lane) => {
                lane.restart(keep_data).await;
                self.bench.store = Arc::clone(&lane.store);
            }
        }
    }

    pub(crate) async fn restart_as_of(&mut self, saved: Option<Snapshot>) {
        match &mut self.kind {
            Kind::Embedded(server) => server.restart(Left::AsOf(saved.unwrap())),
            Kind::Redis(lane) => {
                lane.restart(true).await;
                self.bench.store = Arc::clone(&lane.store);
            }
        }
    }

    pub(crate) async fn lose(&mut self, part: Part) {
        let (namespace, group) = (self.bench.namespace.clone(), self.bench.group.clone());
        match &mut self.kind {
            Kind::Embedded(server) => server.lose(&namespace, &group, &part),
            Kind::Redis(lane) => {
                let key = match part {
                    Part::Lease => lane.lease(group.as_str()),
                    Part::State => lane.part(group.as_str(), "lease"),
                    Part::Fence => lane.part(group.as_str(), "fence"),
                    Part::Job(job) => lane.part(group.as_str(), &format!("job:{job}")),
                    other => panic!("{other:?}"),
                };
                lane.command(&["DEL", &key]).await;
            }
        }
    }

    pub(crate) async fn write_lease(&mut self, written: Written) {
        let (namespace, group) = (self.bench.namespace.clone(), self.bench.group.clone());
        match &mut self.kind {
            Kind::Embedded(server) => server.write_lease(&namespace, &group, written),
            Kind::Redis(lane) => {
                let key = lane.lease(group.as_str());
                lane.command(&["DEL", &key]).await;
                let millis = |lasts: Duration| lasts.as_millis().to_string();
                match written {
                    Written::OtherType => lane.command(&["LPUSH", &key, "x"]).await,
                    Written::Holder(holder, None) => lane.command(&["SET", &key, holder.as_str()]).await,
                    Written::Holder(holder, Some(lasts)) => {
                        let words = ["SET", &key, holder.as_str(), "PX", &millis(lasts)];
                        lane.command(&words).await
                    }
                };
            }
        }
    }

    pub(crate) async fn set_full(&mut self, full: bool) {
        match &mut self.kind {
            Kind::Embedded(server) => server.set_full(full),
            Kind::Redis(lane) => lane.set_full(full).await,
        }
    }

    pub(crate) async fn set_readonly(&mut self, readonly: bool) {
        match &mut self.kind {
            Kind::Embedded(server) => server.set_readonly(readonly),
            Kind::Redis(lane) => lane.set_readonly(readonly).await,
        }
        self.connect_anew();
    }

    /// A connection to a replica is left, and rests.
    pub(crate) fn connect_anew(&mut self) {
        if let Kind::Redis(lane) = &mut self.kind {
            self.bench.store = lane.connect_anew();
        }
    }

    /// Asks without any promise.
    pub(crate) async fn ask(&self, who: &Holder, known: u64) -> Verdict {
        let mut wish = self.bench.wish(who, TTL, known);
        wish.first_start = false;
        self.bench.ask(wish).await.verdict
    }

    pub(crate) async fn quarantined(&self, who: &Holder, known: u64) -> Duration {
        match self.ask(who, known).await {
            Verdict::Quarantined { remaining, .. } => remaining,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) async fn acquires(&self, who: &Holder, known: u64) -> u64 {
        match self.ask(who, known).await {
            Verdict::Acquired { term } => term,
            other => panic!("{other:?}"),
        }
    }

    /// Nobody acquires for exactly so long, and then the asker does.
    pub(crate) async fn waits(&self, who: &Holder, known: u64, span: Duration) -> u64 {
        assert_eq!(self.quarantined(who, known).await, span);
        self.pass(span.checked_sub(INSTANT).unwrap());
        assert_eq!(self.quarantined(who, known).await, INSTANT);
        self.pass(INSTANT);
        self.acquires(who, known).await
    }
}

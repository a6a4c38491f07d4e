//! What the handles on an instance's tasks and what works for them on the framework's thread share.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use tokio::runtime::Handle;
use tokio::sync::{Notify, mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

use super::attempts::Attempts;
use super::enqueue::EnqueueError;
use super::producer::{self, Order, OrderKind, Placed};
use super::routing::Routes;
use super::spec::Settings;
use super::{dispatcher, generations, results, worker};
use crate::clock::Moment;
use crate::job::output::JobError;
use crate::names::{GroupName, QueueName};
use crate::runtime::companion::{Companion, HandedOver};
use crate::runtime::engine::Input;
use crate::runtime::panics::{self, caught};
use crate::runtime::shared::Shared;
use crate::store::Store;
use crate::store::tasks::{NewTask, Shard};

/// The pause before what panicked begins anew.
const PAUSE: Duration = Duration::from_secs(1);

/// Where an instance's work on tasks stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    Works,
    /// Nothing new is begun, and what still runs then is dropped.
    Drains(Moment),
}

/// All of an instance's tasks.
#[derive(Debug)]
pub(crate) struct Hub {
    pub(super) settings: Settings,
    pub(super) routes: Mutex<Routes>,
    pub(super) attempts: Attempts,
    pub(super) stage: watch::Sender<Stage>,
    /// Cancelled when the drain begins: two waiters of a channel would be woken in an order of its own.
    draining: CancellationToken,
    orders: mpsc::UnboundedSender<Order>,
    inbox: tokio::sync::Mutex<mpsc::UnboundedReceiver<Order>>,
    /// Orders that were given and not answered.
    ordered: Arc<AtomicUsize>,
    /// Nobody answers orders any more.
    over: CancellationToken,
    /// What wakes the dispatcher of each shard.
    bells: BTreeMap<GroupName, (Shard, Notify)>,
}

/// An order that is under way: counts until it is dropped, whatever became of it.
#[derive(Debug)]
pub(super) struct Counted {
    under_way: Arc<AtomicUsize>,
    taken: Arc<AtomicBool>,
}

impl Counted {
    /// From here on it may be stored.
    pub(super) fn take(&self) {
        self.taken.store(true, Ordering::SeqCst);
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.under_way.fetch_sub(1, Ordering::SeqCst);
    }
}

/// What one part of the work needs.
#[derive(Clone)]
pub(super) struct Desk {
    pub(super) hub: Arc<Hub>,
    pub(super) shared: Arc<Shared>,
    pub(super) store: Arc<dyn Store>,
    pub(super) bodies: Handle,
}

impl Hub {
    /// `shards` are those that are dispatched and worked for here.
    pub(crate) fn new(settings: Settings, routes: Routes, shards: Vec<Shard>) -> Self {
        let (orders, inbox) = mpsc::unbounded_channel();
        let bell = |shard: Shard| (shard.group(), (shard, Notify::new()));
        Self {
            attempts: Attempts::new(&settings, &shards),
            settings,
            routes: Mutex::new(routes),
            stage: watch::Sender::new(Stage::Works),
            draining: CancellationToken::new(),
            orders,
            inbox: tokio::sync::Mutex::new(inbox),
            ordered: Arc::default(),
            over: CancellationToken::new(),
            bells: shards.into_iter().map(bell).collect(),
        }
    }

    pub(super) fn routes(&self) -> MutexGuard<'_, Routes> {
        // Nothing panics while it holds this.
        self.routes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn shards(&self) -> impl Iterator<Item = &Shard> {
        self.bells.values().map(|(shard, _)| shard)
    }

    pub(super) fn bell(&self, shard: &Shard) -> Option<&Notify> {
        self.bells.get(&shard.group()).map(|(_, bell)| bell)
    }

    /// Gives an order, and whether it has been taken up; `None` when the instance has stopped.
    pub(super) fn give(&self, queue: QueueName, tasks: Vec<NewTask>, kind: OrderKind) -> Option<Arc<AtomicBool>> {
        if self.over.is_cancelled() {
            return None;
        }
        self.ordered.fetch_add(1, Ordering::SeqCst);
        let taken = Arc::<AtomicBool>::default();
        let counted = Counted {
            under_way: Arc::clone(&self.ordered),
            taken: Arc::clone(&taken),
        };
        // The receiver lives beside it.
        let _ = self.orders.send(Order {
            queue,
            tasks,
            kind,
            counted,
        });
        Some(taken)
    }

    /// Has tasks stored.
    pub(super) fn store(
        &self,
        queue: QueueName,
        tasks: Vec<NewTask>,
    ) -> impl Future<Output = Result<Vec<Placed>, EnqueueError>> + Send + use<> {
        let (done, answer) = oneshot::channel();
        let given = self.give(queue, tasks, OrderKind::Store(done));
        let over = self.over.clone();
        async move {
            let taken = given.ok_or(EnqueueError::Stopped)?;
            let answer = tokio::select! {
                biased;
                answer = answer => answer.ok(),
                () = over.cancelled() => None,
            };
            // Whoever would take it up is gone by then.
            let ended = || {
                if taken.load(Ordering::SeqCst) {
                    EnqueueError::Ended
                } else {
                    EnqueueError::Stopped
                }
            };
            answer.unwrap_or_else(|| Err(ended()))
        }
    }

    pub(super) fn inbox(&self) -> &tokio::sync::Mutex<mpsc::UnboundedReceiver<Order>> {
        &self.inbox
    }

    pub(super) fn drains(&self) -> bool {
        *self.stage.borrow() != Stage::Works
    }

    /// Completes when the drain begins. Cancel safe.
    pub(super) async fn draining(&self) {
        self.draining.cancelled().await;
    }
}

impl Companion for Hub {
    fn work(
        self: Arc<Self>,
        shared: Arc<Shared>,
        store: Arc<dyn Store>,
        bodies: Handle,
    ) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let desk = Desk {
            hub: self,
            shared,
            store,
            bodies,
        };
        Box::pin(async move {
            let mut parts = tokio::task::JoinSet::new();
            let hold = |part: Pin<Box<dyn Future<Output = ()> + Send>>| desk.shared.config.process.hold(part);
            parts.spawn(hold(kept_up(desk.clone(), "producer", producer::produce)));
            for of in desk.hub.shards() {
                let of = of.clone();
                let dispatch = move |desk| dispatcher::dispatch(desk, of.clone());
                parts.spawn(hold(kept_up(desk.clone(), "dispatcher", dispatch)));
            }
            parts.spawn(hold(kept_up(
                desk.clone(),
                "closing of generations",
                generations::close,
            )));
            if desk.hub.settings.works && !desk.hub.settings.specs.is_empty() {
                parts.spawn(hold(kept_up(desk.clone(), "worker", worker::work)));
                for of in desk.hub.shards() {
                    let (telling, beating) = (of.clone(), of.clone());
                    let tell = move |desk| results::tell(desk, telling.clone());
                    parts.spawn(hold(kept_up(desk.clone(), "results", tell)));
                    let beat = move |desk| results::beat(desk, beating.clone());
                    parts.spawn(hold(kept_up(desk.clone(), "signs of life", beat)));
                }
                parts.spawn(hold(kept_up(desk.clone(), "deadlines", results::watch)));
            }
            // Dropped with this future.
            while parts.join_next().await.is_some() {}
        })
    }

    fn queues(&self) -> Vec<QueueName> {
        self.settings.queues.keys().cloned().collect()
    }

    fn drain(&self, by: Moment) {
        self.stage.send_modify(|stage| {
            *stage = match *stage {
                Stage::Works => Stage::Drains(by),
                Stage::Drains(earlier) => Stage::Drains(earlier.min(by)),
            };
        });
        self.draining.cancel();
    }

    fn end(&self) {
        self.over.cancel();
        self.attempts.end_all();
    }

    fn has_told(&self) -> bool {
        self.attempts.is_empty()
    }

    fn is_idle(&self) -> bool {
        self.attempts.is_empty() && self.ordered.load(Ordering::SeqCst) == 0
    }

    fn hand_over(&self, run: HandedOver) -> Pin<Box<dyn Future<Output = Result<(), JobError>> + Send>> {
        self.hand_over_tick(&run)
    }

    fn handed_over(&self, run: HandedOver) {
        self.forget_tick(&run);
    }

    fn due(&self, group: &str, _at: Timestamp) {
        if let Some((_, bell)) = self.bells.get(group) {
            bell.notify_one();
        }
    }
}

impl Desk {
    /// Something has ended: who stops looks again.
    pub(super) fn look_again(&self) {
        if self.hub.drains() {
            self.shared.send(Input::HooksIdle);
        }
    }
}

/// One part of the work, begun anew after a panic: what it knows is kept in the hub.
fn kept_up<F, P>(desk: Desk, what: &'static str, part: P) -> Pin<Box<dyn Future<Output = ()> + Send>>
where
    P: Fn(Desk) -> F + Send + 'static,
    F: Future<Output = ()> + Send + 'static,
{
    Box::pin(async move {
        while let Err(panic) = caught(part(desk.clone())).await {
            let panic = panics::text(panic);
            tracing::error!(
                instance = %desk.shared.config.instance,
                panic,
                "the {what} of tasks panicked, which is a fault of this library; it begins anew"
            );
            tokio::time::sleep(PAUSE).await;
        }
    })
}

//! The program that every instance of these tests runs: its tasks do what the test says, and what they did is kept.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::Timestamp;
use leader_core::{
    Bootstrap, Embedded, Event, EventsError, Instance, State, Task, TaskDetails, TaskFigures, TaskId, TaskNews,
    TaskStatus, Tasks, Tick, Timing, scheduled, task,
};
use leader_tests::{RedisServer, eventually};
use serde::{Deserialize, Serialize};

/// The bound of every wait for something that happens soon, on a machine that does other things too.
pub(crate) const SOON: Duration = Duration::from_secs(20);

pub(crate) fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// Makes a test for each store out of each case.
macro_rules! on_each_store {
    ($($case:ident),* $(,)?) => {
        mod embedded {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $case() {
                    super::$case($crate::stage::Ground::embedded()).await;
                }
            )*
        }
        mod redis {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $case() {
                    super::$case($crate::stage::Ground::redis().await).await;
                }
            )*
        }
    };
}

/// Where a fleet meets.
pub(crate) enum Ground {
    Embedded(Embedded),
    Redis(Box<RedisServer>),
}

impl Ground {
    pub(crate) fn embedded() -> Self {
        Self::Embedded(Embedded::new())
    }

    pub(crate) async fn redis() -> Self {
        Self::Redis(Box::new(RedisServer::start().await))
    }

    /// An instance of this fleet.
    pub(crate) fn instance(&self, id: &str, stage: &Stage) -> Bootstrap {
        let bootstrap = match self {
            Self::Embedded(store) => leader_core::bootstrap(store.clone()),
            Self::Redis(server) => leader_core::bootstrap(server.url()),
        };
        bootstrap
            .state(stage.clone())
            .state(Whose(id.to_owned()))
            .instance_id(id.to_owned())
            .first_start(true)
            .timing(Timing::from_ttl(TTL))
            .drain(ms(2_000))
    }
}

/// The instance that runs a task.
#[derive(Clone)]
pub(crate) struct Whose(pub(crate) String);

/// What a task carries: what it is to play.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Order {
    pub(crate) part: String,
    pub(crate) number: u64,
}

pub(crate) fn order(part: &str, number: u64) -> Order {
    let part = part.to_owned();
    Order { part, number }
}

/// One attempt, as its body saw it.
#[derive(Clone, Debug)]
pub(crate) struct Played {
    pub(crate) number: u64,
    pub(crate) id: TaskId,
    pub(crate) attempt: u32,
    pub(crate) fence: u64,
    pub(crate) due: Timestamp,
    pub(crate) at: Timestamp,
    pub(crate) on: String,
}

type Playing = Pin<Box<dyn Future<Output = Result<(), String>> + Send>>;
type Part = Arc<dyn Fn(Order, Task) -> Playing + Send + Sync>;

/// What the tasks do, and did.
#[derive(Clone, Default)]
pub(crate) struct Stage(Arc<Mutex<Board>>);

#[derive(Default)]
struct Board {
    parts: BTreeMap<String, Part>,
    played: Vec<Played>,
    ticks: Vec<Ticked>,
}

/// One run of a tick, as its body saw it.
#[derive(Clone, Debug)]
pub(crate) struct Ticked {
    pub(crate) at: Timestamp,
    pub(crate) fence: u64,
    pub(crate) attempt: u32,
    pub(crate) on: String,
}

impl Stage {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// What tasks of this part do; nothing, unless said.
    pub(crate) fn part<F>(&self, name: &str, part: impl Fn(Order, Task) -> F + Send + Sync + 'static)
    where
        F: Future<Output = Result<(), String>> + Send + 'static,
    {
        let part: Part = Arc::new(move |order, task| Box::pin(part(order, task)));
        self.0.lock().unwrap().parts.insert(name.to_owned(), part);
    }

    async fn play(&self, order: Order, task: Task, on: String) -> Result<(), String> {
        let part = {
            let mut board = self.0.lock().unwrap();
            board.played.push(Played {
                number: order.number,
                id: task.id().clone(),
                attempt: task.attempt(),
                fence: task.fence(),
                due: task.due_at(),
                at: Timestamp::now(),
                on,
            });
            board.parts.get(&order.part).cloned()
        };
        match part {
            Some(part) => part(order, task).await,
            None => Ok(()),
        }
    }

    pub(crate) fn played(&self) -> Vec<Played> {
        self.0.lock().unwrap().played.clone()
    }

    pub(crate) fn ticks(&self) -> Vec<Ticked> {
        self.0.lock().unwrap().ticks.clone()
    }

    /// Waits until so many attempts have begun.
    pub(crate) async fn has_played(&self, count: usize) -> Vec<Played> {
        eventually(SOON, &format!("{count} attempts"), async || {
            self.played().len() >= count
        })
        .await;
        self.played()
    }
}

/// Jobs whose ticks are run by workers.
pub(crate) mod jobs {
    use super::*;

    #[scheduled(
        on = "fleet",
        group = "ticks",
        every = "1s",
        queue = "ticks",
        missed = "all",
        retries = 2,
        backoff = "50ms..100ms"
    )]
    pub(crate) async fn each_second(
        tick: Tick,
        State(stage): State<Stage>,
        State(whose): State<Whose>,
    ) -> Result<(), String> {
        assert_eq!((tick.group().as_str(), tick.term()), ("ticks", 0));
        assert!(!tick.is_cancelled() && leader_core::current().is_some());
        let mut board = stage.0.lock().unwrap();
        board.ticks.push(Ticked {
            at: tick.scheduled_at(),
            fence: tick.fence(),
            attempt: tick.attempt(),
            on: whose.0,
        });
        // Every fifth fails once.
        let fails = tick.scheduled_at().as_second() % 5 == 0 && tick.attempt() == 1;
        if fails { Err("once".to_owned()) } else { Ok(()) }
    }
}

/// The queue of all these tasks.
pub(crate) const QUEUE: &str = "work";
/// The election of its first part.
pub(crate) const GROUP: &str = "dispatch:work:0";
/// How long an attempt that is not heard of lives.
pub(crate) const TTL: Duration = Duration::from_secs(2);

/// Waits until an instance leads.
pub(crate) async fn leads(instance: &Instance, group: &str) {
    eventually(SOON, &format!("{} leads {group}", instance.id()), async || {
        instance.is_leader(group)
    })
    .await;
}

/// Waits until a task is in a status, and gives it.
pub(crate) async fn comes_to(tasks: &Tasks, id: &TaskId, status: TaskStatus) -> TaskDetails {
    let mut seen = None;
    let began = tokio::time::Instant::now();
    loop {
        // A store that is not there answers later.
        if let Ok(found) = tasks.get(id).await {
            seen = found;
        }
        match seen {
            Some(task) if task.status == status => return task,
            _ => assert!(
                began.elapsed() < SOON,
                "`{id}` is not {status} within {SOON:?}: {seen:?}"
            ),
        }
        tokio::time::sleep(ms(5)).await;
    }
}

/// Waits until what is in the queue is as it should be, and gives it.
pub(crate) async fn counts(tasks: &Tasks, what: &str, as_wanted: impl Fn(&TaskFigures) -> bool) -> TaskFigures {
    let mut seen = None;
    let began = tokio::time::Instant::now();
    loop {
        if let Ok(figures) = tasks.figures(QUEUE).await {
            seen = Some(figures);
        }
        match seen {
            Some(figures) if as_wanted(&figures) => return figures,
            _ => assert!(began.elapsed() < SOON, "not within {SOON:?}: {what}: {seen:?}"),
        }
        tokio::time::sleep(ms(5)).await;
    }
}

/// What an instance tells of tasks, as long as it lives.
#[derive(Clone, Default)]
pub(crate) struct News(Arc<Mutex<Vec<TaskNews>>>);

impl News {
    pub(crate) fn of(instance: &Instance) -> Self {
        let news = Self::default();
        let (sink, mut events) = (news.clone(), instance.events());
        tokio::spawn(async move {
            loop {
                match events.recv().await.map(|stamped| stamped.event) {
                    Ok(Event::Tasks(one)) => sink.0.lock().unwrap().push(one),
                    Ok(_) => {}
                    Err(EventsError::Lagged(count)) => panic!("{count} events were missed"),
                    Err(_) => return,
                }
            }
        });
        news
    }

    pub(crate) fn all(&self) -> Vec<TaskNews> {
        self.0.lock().unwrap().clone()
    }

    /// Waits until something is told.
    pub(crate) async fn tells(&self, what: &str, is: impl Fn(&TaskNews) -> bool) {
        eventually(SOON, what, async || self.all().iter().any(&is)).await;
    }
}

/// Says when it is dropped.
#[derive(Clone, Default)]
pub(crate) struct Mark(Arc<()>);

impl Mark {
    /// Never ends, and keeps this copy until then.
    pub(crate) async fn hang(self) {
        std::future::pending::<()>().await;
    }

    /// Waits until there is no other copy of it.
    pub(crate) async fn is_alone(&self, what: &str) {
        eventually(SOON, what, async || Arc::strong_count(&self.0) == 1).await;
    }
}

/// A door that bodies wait at.
#[derive(Clone)]
pub(crate) struct Door(tokio::sync::watch::Sender<bool>);

impl Door {
    pub(crate) fn shut() -> Self {
        Self(tokio::sync::watch::Sender::new(false))
    }

    pub(crate) fn open(&self) {
        self.0.send_replace(true);
    }

    pub(crate) async fn pass(&self) {
        // The sender lives in here.
        let _ = self.0.subscribe().wait_for(|open| *open).await;
    }
}

/// The tasks of the program. Those of one name share a queue's workers.
pub(crate) mod tasks {
    use super::*;

    #[task(queue = "work", retries = 2, backoff = "50ms..100ms")]
    pub(crate) async fn act(
        order: Order,
        task: Task,
        State(stage): State<Stage>,
        State(whose): State<Whose>,
    ) -> Result<(), String> {
        stage.play(order, task, whose.0).await
    }

    #[task(queue = "work", retries = 0, timeout = "300ms", concurrency = 2)]
    pub(crate) async fn brief(
        order: Order,
        task: Task,
        State(stage): State<Stage>,
        State(whose): State<Whose>,
    ) -> Result<(), String> {
        stage.play(order, task, whose.0).await
    }

    /// Of a queue of its own, one at a time.
    #[task(queue = "single", retries = 0, concurrency = 1)]
    pub(crate) async fn single(
        order: Order,
        task: Task,
        State(stage): State<Stage>,
        State(whose): State<Whose>,
    ) -> Result<(), String> {
        stage.play(order, task, whose.0).await
    }
}

//! Tasks of a simulated fleet: which there are, and what its instances are given of them.

mod end;
mod orders;
mod probe;
pub(super) mod seen;
pub(super) mod steps;

use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use jiff::Timestamp;

pub(super) use end::{look, settle};
pub(super) use orders::begin;

use super::Simulation;
use super::seen::Who;
use super::world::World;
use crate::bootstrap::Bootstrap;
use crate::store::tasks::{Priority, Shard};
use crate::tasks::enqueue::{EnqueueError, Enqueued};
use crate::tasks::handle::Tasks;
use crate::tasks::id::TaskId;
use crate::tasks::record::{PayloadOf, TaskBody, TaskHandler, TaskRecord};

/// What is noted of a fleet's tasks.
#[derive(Default)]
pub(super) struct Notes {
    /// Attempts whose bodies are under way.
    under: Mutex<probe::Under>,
    /// The tasks that somebody was told to be stored, with how often each is tried again.
    stored: Mutex<VecDeque<(TaskId, u32)>>,
}

/// What is said of one task.
#[derive(Clone, Debug)]
pub(super) struct Wish {
    pub(super) due: When,
    pub(super) unique: Option<String>,
    pub(super) priority: Priority,
}

/// When it shall be due.
#[derive(Clone, Copy, Debug)]
pub(super) enum When {
    At(Timestamp),
    After(Duration),
}

pub(super) type Stored = Pin<Box<dyn Future<Output = Result<Enqueued, EnqueueError>> + Send>>;

type StoreOne = Arc<dyn Fn(&Tasks, Wish) -> Stored + Send + Sync>;

/// Tasks of one handler that a fleet is given to do.
#[derive(Clone)]
pub(super) struct Kind {
    pub(super) record: TaskRecord,
    /// How long it is from one to the next, in the average.
    pub(super) every: Duration,
    store: StoreOne,
}

impl fmt::Debug for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kind")
            .field("record", &self.record)
            .field("every", &self.every)
            .finish_non_exhaustive()
    }
}

impl Kind {
    pub(super) fn of<H: TaskHandler>(payload: impl PayloadOf<H> + Send + Sync + 'static, every: Duration) -> Self {
        let store = move |tasks: &Tasks, wish: Wish| -> Stored {
            let mut task = tasks.enqueue::<H>(&payload).priority(wish.priority);
            task = match wish.due {
                When::At(at) => task.at(at),
                When::After(pause) => task.after(pause),
            };
            if let Some(unique) = wish.unique {
                task = task.unique(unique);
            }
            task.into_future()
        };
        let body = TaskBody {
            run: probe::run::<H>,
            ..H::RECORD.body
        };
        Self {
            record: TaskRecord { body, ..H::RECORD },
            every,
            store: Arc::new(store),
        }
    }

    pub(super) fn store(&self, tasks: &Tasks, wish: Wish) -> Stored {
        (self.store)(tasks, wish)
    }
}

impl Simulation {
    /// Tasks for the fleet: while the faults last its instances store one of `H` with this payload every so often, in the average, at no
    /// time rather than another, and change their mind about some. They are due within a minute; a third has a unique key of a few. Only
    /// handlers that are given are simulated, whatever else the program has.
    ///
    /// What was stored for certain ends: it is done, dead or cancelled when the fleet has come to rest.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use leader_core::testing::{Faults, Simulation};
    /// use leader_core::{Task, TaskStatus, task};
    ///
    /// #[task(retries = 5, timeout = "1m")]
    /// async fn charge(invoice: u32, task: Task) {
    ///     tokio::time::sleep(Duration::from_secs(3)).await;
    /// }
    ///
    /// let report = Simulation::new()
    ///     .task::<charge>(7_u32, Duration::from_secs(30))
    ///     .lasting(Duration::from_secs(3_600))
    ///     .faults(Faults::realistic().times(10.0))
    ///     .run();
    /// report.assert_sound();
    /// assert!(report.tasks["charge"][&TaskStatus::Done] > 50);
    /// ```
    ///
    /// # Panics
    /// When that is less than a millisecond.
    pub fn task<H: TaskHandler>(mut self, payload: impl PayloadOf<H> + Send + Sync + 'static, every: Duration) -> Self {
        assert!(
            every >= Duration::from_millis(1),
            "a task every {every:?}: give at least a millisecond"
        );
        self.setting.tasks.push(Kind::of::<H>(payload, every));
        self
    }
}

/// Who runs a body, and where that is seen: given to the instance as a state.
#[derive(Clone)]
pub(super) struct Sight {
    world: Weak<World>,
    who: Who,
}

/// Gives an instance the tasks of its fleet.
pub(super) fn given(bootstrap: Bootstrap, kinds: &[Kind], world: &Weak<World>, who: Who) -> Bootstrap {
    let records = kinds.iter().map(|kind| kind.record).collect();
    let bootstrap = bootstrap.tasks(|mut tasks| {
        tasks.only = Some(records);
        tasks
    });
    bootstrap.state(Sight {
        world: Weak::clone(world),
        who,
    })
}

/// The shard that a group dispatches, if it does.
pub(super) fn shard_of(group: &str) -> Option<Shard> {
    let (queue, index) = group.strip_prefix("dispatch:")?.rsplit_once(':')?;
    let queue = crate::names::QueueName::new(queue.to_owned()).ok()?;
    let index = index.parse().ok()?;
    Some(Shard { queue, index })
}

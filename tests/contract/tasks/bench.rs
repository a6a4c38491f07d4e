//! One shard on one of the stores, with a dispatcher that leads, and short words for what is asked of it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use leader_core::__seam::{
    BeatReply, ChangeTask, Changed, Dispatch, DispatchReply, Due, EnqueueBatch, EnqueueReply, FinishBatch, FinishReply,
    Lane, LaneRoom, ListTasks, Moves, NewTask, Priority, Shard, ShardFigures, StoredTask, Take, TakeReply, Taken,
    TaskBeats, TaskChange, TaskEnd, TaskEnding, TaskKeep, TaskPage, TaskStatus, TaskStore,
};
use leader_core::{Holder, QueueName, Ran, TaskName};

use crate::bench::{Bench, LONG, holder};

/// The name of every task, unless a test says otherwise.
pub(crate) const CHARGE: &str = "charge";
/// Later than any test.
pub(crate) const LATER: Duration = Duration::from_secs(3_600);

/// A shard, and who dispatches it.
pub(crate) struct TaskBench {
    pub(crate) bench: Bench,
    pub(crate) shard: Shard,
    pub(crate) leader: Holder,
    pub(crate) term: u64,
    number: AtomicU64,
    pub(crate) keep: TaskKeep,
}

pub(crate) fn shard() -> Shard {
    Shard {
        queue: QueueName::new("mail").unwrap(),
        index: 0,
    }
}

pub(crate) fn task_name(name: &str) -> TaskName {
    TaskName::new(name.to_owned()).unwrap()
}

pub(crate) fn lane(priority: Priority, name: &str) -> Lane {
    Lane {
        priority,
        task: task_name(name),
    }
}

/// The lane of every task, unless a test says otherwise.
pub(crate) fn usual() -> Lane {
    lane(Priority::Normal, CHARGE)
}

/// A task that is due at once.
pub(crate) fn new(key: &str) -> NewTask {
    NewTask {
        key: key.to_owned(),
        lane: usual(),
        due: Due::After(Duration::ZERO),
        unique: None,
        once: false,
        payload: format!("\"{key}\"").into(),
    }
}

pub(crate) fn due_in(key: &str, after: Duration) -> NewTask {
    NewTask {
        due: Due::After(after),
        ..new(key)
    }
}

pub(crate) fn of_lane(key: &str, lane: Lane) -> NewTask {
    NewTask { lane, ..new(key) }
}

pub(crate) fn unique(key: &str, unique: &str) -> NewTask {
    NewTask {
        unique: Some(unique.to_owned()),
        ..new(key)
    }
}

pub(crate) fn once(key: &str) -> NewTask {
    NewTask { once: true, ..new(key) }
}

pub(crate) fn retry(after: Duration) -> TaskEnding {
    TaskEnding::Retry {
        after,
        ran: Ran::Error,
        error: "no money".to_owned(),
    }
}

pub(crate) fn bury() -> TaskEnding {
    TaskEnding::Bury {
        ran: Ran::Panic,
        error: "out of bounds".to_owned(),
    }
}

pub(crate) fn end_of(taken: &Taken, how: TaskEnding) -> TaskEnd {
    TaskEnd {
        key: taken.key.clone(),
        lane: taken.lane.clone(),
        fence: taken.fence,
        unique: taken.unique.clone(),
        generation: taken.generation,
        how,
    }
}

pub(crate) fn keys(taken: &[Taken]) -> Vec<&str> {
    taken.iter().map(|taken| taken.key.as_str()).collect()
}

impl TaskBench {
    pub(crate) async fn on(bench: Bench) -> Self {
        let shard = shard();
        let group = shard.group();
        let bench = Bench { group, ..bench };
        let leader = holder("leader");
        let term = bench.acquire(&leader).await;
        Self {
            bench,
            shard,
            leader,
            term,
            number: AtomicU64::new(1),
            keep: TaskKeep::default(),
        }
    }

    /// The same shard on another connection.
    pub(crate) fn by(&self, store: std::sync::Arc<dyn leader_core::__seam::Store>) -> Self {
        let bench = Bench {
            store,
            namespace: self.bench.namespace.clone(),
            group: self.bench.group.clone(),
            server: None,
        };
        Self {
            bench,
            shard: self.shard.clone(),
            leader: self.leader.clone(),
            number: AtomicU64::new(self.number() + 1_000),
            ..*self
        }
    }

    pub(crate) fn store(&self) -> &dyn TaskStore {
        self.bench.store.tasks()
    }

    fn number(&self) -> u64 {
        self.number.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn batch(&self, tasks: Vec<NewTask>) -> EnqueueBatch {
        EnqueueBatch {
            shard: self.shard.clone(),
            generation: 1,
            producer: holder("producer"),
            number: self.number(),
            tasks,
        }
    }

    /// Whose place each of the tasks would have taken.
    pub(crate) async fn send(&self, batch: EnqueueBatch) -> Vec<Option<String>> {
        let count = batch.tasks.len();
        match self.store().enqueue(batch).await.unwrap() {
            EnqueueReply::Stored { instead, .. } => {
                assert_eq!(instead.len(), count);
                instead
            }
            EnqueueReply::Moved { generation } => panic!("moved to generation {generation}"),
        }
    }

    pub(crate) async fn enqueue(&self, tasks: Vec<NewTask>) -> Vec<Option<String>> {
        self.send(self.batch(tasks)).await
    }

    /// Stores tasks that must be new.
    pub(crate) async fn store_all(&self, tasks: Vec<NewTask>) {
        let answers = self.enqueue(tasks).await;
        assert!(answers.iter().all(Option::is_none), "{answers:?}");
    }

    /// A step that moves whatever is due, and judges no silence.
    pub(crate) fn step(&self) -> Dispatch {
        Dispatch {
            shard: self.shard.clone(),
            holder: self.leader.clone(),
            term: self.term,
            most: 1_000,
            room: 1_000,
            silence: LONG,
            connected: Duration::ZERO,
            losses: 1,
            keep: self.keep,
        }
    }

    /// A step for which whatever is not heard of in this very moment is silent.
    pub(crate) fn impatient(&self) -> Dispatch {
        Dispatch {
            silence: Duration::ZERO,
            losses: 1_000,
            ..self.step()
        }
    }

    pub(crate) async fn dispatch_by(&self, step: Dispatch) -> Moves {
        match self.store().dispatch(step).await.unwrap() {
            DispatchReply::Yours(moves) => moves,
            DispatchReply::NotYours => panic!("not led by {}", self.leader),
        }
    }

    pub(crate) async fn dispatch(&self) -> Moves {
        self.dispatch_by(self.step()).await
    }

    pub(crate) fn wish(&self, worker: &str, most: u32, lanes: &[Lane]) -> Take {
        let room = |lane: &Lane| LaneRoom {
            lane: lane.clone(),
            most,
        };
        Take {
            shard: self.shard.clone(),
            holder: holder(worker),
            number: self.number(),
            again: false,
            most,
            lanes: lanes.iter().map(room).collect(),
        }
    }

    pub(crate) async fn take_by(&self, wish: Take) -> TakeReply {
        self.store().take(wish).await.unwrap()
    }

    /// Takes from the usual lane.
    pub(crate) async fn take(&self, worker: &str, most: u32) -> Vec<Taken> {
        self.take_by(self.wish(worker, most, &[usual()])).await.taken
    }

    /// Stores one that is due, moves it, and begins an attempt.
    pub(crate) async fn begin(&self, task: NewTask) -> Taken {
        let (key, lane) = (task.key.clone(), task.lane.clone());
        self.store_all(vec![task]).await;
        self.begin_again(&key, lane).await
    }

    /// Begins an attempt of one that waits and is due.
    pub(crate) async fn begin_again(&self, key: &str, lane: Lane) -> Taken {
        self.dispatch().await;
        let mut taken = self.take_by(self.wish("worker", 1, &[lane])).await.taken;
        assert_eq!(keys(&taken), [key]);
        taken.pop().unwrap()
    }

    pub(crate) async fn finish_all(&self, ends: Vec<TaskEnd>) -> Vec<FinishReply> {
        let count = ends.len();
        let batch = FinishBatch {
            shard: self.shard.clone(),
            holder: holder("worker"),
            ends,
            keep: self.keep,
        };
        let answers = self.store().finish(batch).await.unwrap();
        assert_eq!(answers.len(), count);
        answers
    }

    pub(crate) async fn finish(&self, taken: &Taken, how: TaskEnding) -> FinishReply {
        self.finish_all(vec![end_of(taken, how)]).await.pop().unwrap()
    }

    /// Has a task of this name live and end.
    pub(crate) async fn live(&self, key: &str, how: TaskEnding) {
        let taken = self.begin(new(key)).await;
        assert_eq!(self.finish(&taken, how).await, FinishReply::Taken);
    }

    pub(crate) async fn beat(&self, key: &str, fence: u64) -> BeatReply {
        let beats = TaskBeats {
            shard: self.shard.clone(),
            attempts: vec![(key.to_owned(), fence)],
        };
        let mut answers = self.store().beat_tasks(beats).await.unwrap();
        assert_eq!(answers.len(), 1);
        answers.pop().unwrap()
    }

    pub(crate) async fn change(&self, key: &str, change: TaskChange) -> Changed {
        let request = ChangeTask {
            shard: self.shard.clone(),
            key: key.to_owned(),
            change,
            keep: self.keep,
        };
        self.store().change_task(request).await.unwrap()
    }

    pub(crate) async fn look(&self, key: &str) -> Option<StoredTask> {
        self.store().task(&self.shard, key).await.unwrap()
    }

    pub(crate) async fn task(&self, key: &str) -> StoredTask {
        self.look(key).await.unwrap_or_else(|| panic!("{key} is not known"))
    }

    pub(crate) async fn status(&self, key: &str) -> TaskStatus {
        self.task(key).await.status
    }

    pub(crate) async fn figures(&self) -> ShardFigures {
        self.store().task_figures(&self.shard).await.unwrap()
    }

    pub(crate) fn all(&self, status: TaskStatus) -> ListTasks {
        ListTasks {
            shard: self.shard.clone(),
            status,
            task: None,
            due_before: None,
            after: None,
            most: 1_000,
        }
    }

    pub(crate) async fn page(&self, request: ListTasks) -> TaskPage {
        self.store().list_tasks(request).await.unwrap()
    }

    /// The keys of all tasks of one list, which is read in pages.
    pub(crate) async fn list_by(&self, mut request: ListTasks) -> Vec<String> {
        let mut keys = Vec::new();
        loop {
            let page = self.page(request.clone()).await;
            assert!(page.tasks.len() <= request.most as usize);
            for task in &page.tasks {
                assert_eq!((task.status, &task.payload), (request.status, &None));
            }
            keys.extend(page.tasks.into_iter().map(|task| task.key));
            match page.next {
                Some(next) => request.after = Some(next),
                None => return keys,
            }
        }
    }

    pub(crate) async fn list(&self, status: TaskStatus) -> Vec<String> {
        self.list_by(self.all(status)).await
    }

    /// Waits until the store's clock shows another millisecond.
    pub(crate) async fn tick(&self) {
        let before = self.figures().await.now;
        while self.figures().await.now == before {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

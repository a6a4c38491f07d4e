//! A thousand tasks that are due among few and among very many that are not, and what one that waits takes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use leader_core::__seam::{Due, EnqueueBatch, EnqueueReply, Lane, NewTask, Priority, RedisStore, Shard, Store};
use leader_core::{Holder, InstanceId, Namespace, QueueName, TaskName, task};
use leader_tests::RedisServer;

use crate::at_once::{fresh, instance};
use crate::meter::median;

/// How many are due.
const DUE: u32 = 1_000;
/// How far ahead the others are due, in seconds: a month.
const MONTH: i64 = 30 * 24 * 60 * 60;
/// How many one step stores.
const BATCH: u32 = 256;
/// Measured so often.
const ROUNDS: usize = 7;

static EXECUTED: AtomicU32 = AtomicU32::new(0);

#[task(queue = "pending")]
async fn due_now(_payload: String) {
    EXECUTED.fetch_add(1, Ordering::Relaxed);
}

pub(crate) async fn run() {
    let mut times = Vec::new();
    for waiting in [10_000, 10_000_000] {
        let server = RedisServer::start().await;
        let (took, bytes) = among(&server, waiting).await;
        println!(
            "{DUE} due among {waiting:>8} that wait: {took:.1} ms until all have been executed; {bytes:.0} bytes of Redis for each that waits"
        );
        times.push(took);
    }
    println!("ratio {:.2}", times[1] / times[0]);
}

async fn among(server: &RedisServer, waiting: u32) -> (f64, f64) {
    let namespace = fresh();
    let memory = async || {
        server
            .fact("memory", "used_memory")
            .await
            .parse::<f64>()
            .expect("bytes")
    };
    let before = memory().await;
    fill(server, &namespace, waiting).await;
    let bytes = (memory().await - before) / f64::from(waiting);
    let instance = instance(server.url(), namespace).await;
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        EXECUTED.store(0, Ordering::SeqCst);
        let due = Timestamp::now() + SignedDuration::from_millis(500);
        let payloads = std::iter::repeat_n("x".repeat(98), DUE as usize);
        let stored = instance.tasks().enqueue_many::<due_now, _>(payloads).at(due).await;
        assert_eq!(stored.expect("they are stored").len(), DUE as usize);
        let left = Duration::try_from(due.duration_since(Timestamp::now())).expect("they are stored in time");
        tokio::time::sleep(left).await;
        let began = Instant::now();
        while EXECUTED.load(Ordering::Relaxed) < DUE {
            tokio::time::sleep(Duration::from_micros(200)).await;
        }
        times.push(began.elapsed().as_secs_f64() * 1e3);
    }
    instance.shutdown().await;
    (median(&mut times), bytes)
}

/// Has tasks stored that are due within the next month, by the store's own step.
async fn fill(server: &RedisServer, namespace: &str, waiting: u32) {
    let namespace = Namespace::new(namespace.to_owned()).expect("a name");
    let store = Arc::new(RedisStore::new(&server.info(), &namespace, Duration::from_secs(30)));
    let shard = Shard {
        queue: QueueName::new("pending").expect("a name"),
        index: 0,
    };
    let lane = Lane {
        priority: Priority::Normal,
        task: TaskName::new("due_now").expect("a name"),
    };
    let payload: Arc<str> = format!("\"{}\"", "x".repeat(98)).into();
    let producer = Holder::new(&InstanceId::new("bench").expect("a name"), 1);
    let begin = Timestamp::now() + SignedDuration::from_secs(3_600);
    for (number, first) in (1..).zip((0..waiting).step_by(BATCH as usize)) {
        let task = |at: u32| NewTask {
            key: format!("{at:026}"),
            lane: lane.clone(),
            // Spread, and in no order.
            due: Due::At(begin + SignedDuration::from_secs(i64::from(at.wrapping_mul(2_654_435_761)) % MONTH)),
            unique: None,
            once: false,
            payload: Arc::clone(&payload),
        };
        let batch = EnqueueBatch {
            shard: shard.clone(),
            generation: 1,
            producer: producer.clone(),
            number,
            tasks: (first..(first + BATCH).min(waiting)).map(task).collect(),
        };
        let stored = store.tasks().enqueue(batch).await.expect("they are stored");
        assert!(matches!(stored, EnqueueReply::Stored { .. }));
    }
}

//! `rsmq_async`: a queue of visibility times. What was executed is deleted by its worker; retries and schedules are the caller's.

use std::time::Duration;

use rsmq_async::{Rsmq, RsmqConnection, RsmqOptions};
use tokio::task::JoinSet;

use crate::{executed, payload, timed, tuned};

const QUEUE: &str = "bench";

async fn connected(port: u16) -> Rsmq {
    let options = RsmqOptions {
        host: "127.0.0.1".to_owned(),
        port,
        ..RsmqOptions::default()
    };
    Rsmq::new(options).await.expect("the server is there")
}

async fn stored(port: u16, tasks: usize) -> Rsmq {
    let mut rsmq = connected(port).await;
    let hidden = Some(Duration::from_secs(60));
    rsmq.create_queue(QUEUE, hidden, None, None).await.expect("a new queue");
    for first in (0..tasks).step_by(500) {
        let batch = vec![payload(); 500.min(tasks - first)];
        rsmq.send_message_batch(QUEUE, batch, None).await.expect("it is stored");
    }
    rsmq
}

/// Deletes one message; the connection is shared, so those of a batch travel together.
async fn delete(mut rsmq: Rsmq, id: String) {
    executed();
    assert!(rsmq.delete_message(QUEUE, &id).await.expect("the server is there"));
}

/// Few loops, each with many messages at once: of 50 to 1,000 messages, and one to eight loops, these are the fastest.
pub(crate) async fn in_batches(port: u16, tasks: usize) -> Duration {
    let rsmq = stored(port, tasks).await;
    let most = u32::try_from(tuned("BATCH", 200)).expect("few");
    timed(tasks, async move {
        let mut loops = JoinSet::new();
        for _ in 0..tuned("LOOPS", 8) {
            let mut rsmq = rsmq.clone();
            loops.spawn(async move {
                loop {
                    let batch = rsmq.receive_message_batch::<String>(QUEUE, None, most).await;
                    let deletes = batch.expect("the server is there").into_iter();
                    futures::future::join_all(deletes.map(|message| delete(rsmq.clone(), message.id))).await;
                }
            });
        }
        loops.join_all().await;
    })
    .await
}

/// Many loops on one connection, each with one message at a time; from 256 to 1,000 loops are equally fast.
pub(crate) async fn one_at_a_time(port: u16, tasks: usize) -> Duration {
    let rsmq = stored(port, tasks).await;
    timed(tasks, async move {
        let mut loops = JoinSet::new();
        for _ in 0..tuned("LOOPS", 500) {
            let mut rsmq = rsmq.clone();
            loops.spawn(async move {
                loop {
                    let message = rsmq.receive_message::<String>(QUEUE, None).await;
                    match message.expect("the server is there") {
                        Some(message) => delete(rsmq.clone(), message.id).await,
                        None => tokio::time::sleep(Duration::from_millis(1)).await,
                    }
                }
            });
        }
        loops.join_all().await;
    })
    .await
}

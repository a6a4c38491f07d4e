//! Messages as a hint, and the gaps between them.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use leader_core::__seam::Subscription;
use leader_tests::{RedisServer, eventually};
use tokio::task::JoinHandle;

use crate::caller::ms;

struct Listener {
    heard: Arc<Mutex<Vec<String>>>,
    gaps: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl Listener {
    async fn start(server: &RedisServer) -> Self {
        let heard = Arc::new(Mutex::new(Vec::new()));
        let gaps = Arc::new(AtomicUsize::new(0));
        let run = Subscription::run(
            server.info(),
            "news".to_owned(),
            {
                let heard = Arc::clone(&heard);
                move |message| heard.lock().unwrap().push(message)
            },
            {
                let gaps = Arc::clone(&gaps);
                move || {
                    gaps.fetch_add(1, Ordering::SeqCst);
                }
            },
            |error| panic!("{error}"),
        );
        let task = tokio::spawn(async move {
            run.await;
        });
        let listener = Self { heard, gaps, task };
        listener.subscribed(1, ms(2000)).await;
        listener
    }

    async fn subscribed(&self, times: usize, deadline: Duration) -> Duration {
        eventually(deadline, "subscribed again", || async {
            self.gaps.load(Ordering::SeqCst) >= times
        })
        .await
    }

    async fn hears(&self, server: &RedisServer, message: &str) {
        server.command(&["PUBLISH", "news", message]).await;
        eventually(ms(1000), "the message is heard", || async {
            self.heard.lock().unwrap().iter().any(|heard| heard == message)
        })
        .await;
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.task.abort();
    }
}

#[tokio::test]
async fn a_broken_subscription_is_made_again() {
    let mut server = RedisServer::start().await;
    let listener = Listener::start(&server).await;
    listener.hears(&server, "first").await;

    server.command(&["CLIENT", "KILL", "TYPE", "pubsub"]).await;
    let took = listener.subscribed(2, ms(1000)).await;
    println!("listener killed: subscribed again after {took:?}");
    listener.hears(&server, "second").await;

    server.kill().await;
    server.restart(false).await;
    let took = listener.subscribed(3, ms(1000)).await;
    println!("server restarted: subscribed again after {took:?}");
    listener.hears(&server, "third").await;
}

/// A link on which nothing comes back looks like one without news.
#[tokio::test]
async fn a_silent_link_is_noticed_within_8_seconds() {
    let server = RedisServer::start().await;
    let listener = Listener::start(&server).await;
    server.pause();
    tokio::time::sleep(ms(8000)).await;
    server.resume();
    listener.subscribed(2, ms(1000)).await;
    listener.hears(&server, "after").await;
}

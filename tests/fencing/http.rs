//! Fenced requests to a real HTTP server: what the layer refuses, and what it cannot.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::extract::{Extension, Path, State};
use axum::http::StatusCode;
use axum::routing::{get, put as routed};
use leader_core::GroupName;
use leader_core::fencing::http::{
    FENCE_HEADER, FenceLayer, Fences, GROUP_HEADER, MemoryFences, RaiseError, RequestFence,
};
use leader_core::fencing::sql;
use leader_tests::dice::{Dice, seed};
use leader_tests::{PostgresServer, eventually};
use serde_json::json;
use tokio::sync::Semaphore;
use tokio_postgres::Client;

use crate::requests::{ask, fence, put};

const SOON: Duration = Duration::from_secs(20);

/// A server of texts by name; handlers of the name `slow` wait until they are let go.
#[derive(Clone)]
struct Shelf {
    texts: Arc<Mutex<BTreeMap<String, String>>>,
    slow: Arc<Semaphore>,
    /// How many handlers have begun.
    begun: Arc<AtomicU64>,
}

impl Shelf {
    fn new() -> Self {
        Self {
            texts: Arc::default(),
            slow: Arc::new(Semaphore::new(0)),
            begun: Arc::default(),
        }
    }

    fn text(&self, name: &str) -> Option<String> {
        self.texts.lock().unwrap().get(name).cloned()
    }

    async fn passes(&self, body: &str) {
        self.begun.fetch_add(1, Ordering::SeqCst);
        if body.starts_with("slow") {
            self.slow.acquire().await.unwrap().forget();
        }
    }
}

async fn write(State(shelf): State<Shelf>, Path(name): Path<String>, body: String) {
    shelf.passes(&body).await;
    shelf.texts.lock().unwrap().insert(name, body);
}

async fn read(State(shelf): State<Shelf>, Path(name): Path<String>) -> Result<String, StatusCode> {
    shelf.text(&name).ok_or(StatusCode::NOT_FOUND)
}

/// Serves until the test's runtime ends.
async fn serve(routes: Router) -> SocketAddr {
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, routes).await });
    address
}

async fn serve_behind<F: Fences>(layer: FenceLayer<F>, shelf: &Shelf) -> SocketAddr {
    let routes = Router::new().route("/reports/{name}", get(read).put(write));
    serve(routes.layer(layer).with_state(shelf.clone())).await
}

fn in_memory() -> FenceLayer<MemoryFences> {
    FenceLayer::new(MemoryFences::with_capacity(1_000))
}

#[tokio::test]
async fn an_older_fence_is_refused_and_an_equal_one_is_not() {
    let shelf = Shelf::new();
    let server = serve_behind(in_memory(), &shelf).await;
    assert_eq!(put(server, "/reports/7", 5, "old").await.status, 200);
    assert_eq!(put(server, "/reports/7", 9, "new").await.status, 200);
    let answer = put(server, "/reports/7", 5, "older").await;
    assert_eq!(answer.status, 412);
    let body = answer.json();
    let message = body["message"].as_str().unwrap().to_owned();
    let expected = json!({
        "error": "fenced", "message": message,
        "group": "cleanup", "resource": "/reports/7", "fence": 5, "held": 9,
    });
    assert_eq!(body, expected);
    assert!(message.contains("under fence 9; this run is over"), "{message}");
    assert_eq!(shelf.text("7").as_deref(), Some("new"));
    assert_eq!(shelf.begun.load(Ordering::SeqCst), 2, "no handler has seen it");
    assert_eq!(put(server, "/reports/7", 9, "again").await.status, 200);
    assert_eq!(put(server, "/reports/7", 10, "newest").await.status, 200);
    assert_eq!(put(server, "/reports/7", 9, "again").await.status, 412);
    assert_eq!(shelf.text("7").as_deref(), Some("newest"));
    // A read with a fence raises it, too: before a run reads what it will write anew.
    let read = ask(server, "GET", "/reports/7", &fence("cleanup", 20), "").await;
    assert_eq!((read.status, read.body.as_str()), (200, "newest"));
    assert_eq!(put(server, "/reports/7", 19, "older").await.status, 412);
}

#[tokio::test]
async fn what_says_nothing_about_each_other_is_not_compared() {
    let shelf = Shelf::new();
    let server = serve_behind(in_memory(), &shelf).await;
    assert_eq!(put(server, "/reports/7", 9, "new").await.status, 200);
    assert_eq!(put(server, "/reports/8", 5, "other").await.status, 200);
    let other_group = ask(server, "PUT", "/reports/7", &fence("shop/cleanup", 5), "theirs").await;
    assert_eq!(other_group.status, 200);
    assert_eq!(put(server, "/reports/7", 8, "older").await.status, 412);
    let layer = in_memory().key(|request| request.method.to_string());
    let server = serve_behind(layer, &shelf).await;
    assert_eq!(put(server, "/reports/7", 9, "new").await.status, 200);
    let answer = put(server, "/reports/8", 5, "older").await;
    assert_eq!((answer.status, answer.json()["resource"].as_str()), (412, Some("PUT")));
}

#[tokio::test]
async fn requests_without_a_fence_are_let_in_or_not() {
    let shelf = Shelf::new();
    let open = serve_behind(in_memory(), &shelf).await;
    let strict = serve_behind(in_memory().require(), &shelf).await;
    assert_eq!(put(open, "/reports/7", 9, "new").await.status, 200);
    assert_eq!(ask(open, "PUT", "/reports/7", &[], "anybody").await.status, 200);
    let answer = ask(strict, "PUT", "/reports/8", &[], "anybody").await;
    assert_eq!(
        (answer.status, answer.json()["error"].as_str()),
        (428, Some("no_fence"))
    );
    assert_eq!(shelf.text("8"), None);
    // What cannot be read is refused in either case.
    let five = || (FENCE_HEADER, "5".to_owned());
    let group = || (GROUP_HEADER, "cleanup".to_owned());
    for (headers, word) in [
        (vec![five()], "without `leader-group`"),
        (vec![group()], "without `leader-fence`"),
        (vec![group(), five(), five()], "more than once"),
        (vec![group(), (FENCE_HEADER, "five".to_owned())], "is no fence"),
        (
            vec![group(), (FENCE_HEADER, "18446744073709551615".to_owned())],
            "is no fence",
        ),
        (
            vec![(GROUP_HEADER, "clean up".to_owned()), five()],
            "group name `clean up` is refused",
        ),
    ] {
        for server in [open, strict] {
            let answer = ask(server, "PUT", "/reports/8", &headers, "odd").await;
            let body = answer.json();
            assert_eq!((answer.status, body["error"].as_str()), (400, Some("headers")));
            assert!(body["message"].as_str().unwrap().contains(word), "{body}");
        }
    }
    assert_eq!(shelf.text("8"), None);
}

/// A memory of one: what it has forgotten it does not take for new.
#[tokio::test]
async fn a_small_memory_refuses_rather_than_forgets() {
    let server = serve_behind(FenceLayer::new(MemoryFences::with_capacity(1)), &Shelf::new()).await;
    for (path, number) in [("/reports/7", 9), ("/reports/8", 10)] {
        assert_eq!(put(server, path, number, "x").await.status, 200);
    }
    let answer = put(server, "/reports/7", 8, "older").await;
    let body = answer.json();
    assert_eq!(
        (answer.status, body["error"].as_str(), body["lowest"].as_u64()),
        (412, Some("forgotten"), Some(9))
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_racing_clients_are_never_let_in_after_a_newer_one() {
    let seed = seed();
    println!("LEADER_CHAOS_SEED={seed}");
    let server = serve_behind(in_memory(), &Shelf::new()).await;
    let answered = Arc::new(AtomicU64::new(0));
    let race = |number: u64| {
        let answered = Arc::clone(&answered);
        async move {
            let mut dice = Dice::new(seed ^ number);
            let mut accepted = 0;
            for round in 0..500 {
                let fence = round + 1 + dice.below(200);
                let before = answered.load(Ordering::SeqCst);
                let status = put(server, "/reports/7", fence, "x").await.status;
                if status == 200 {
                    accepted += 1;
                    assert!(fence >= before, "{fence} was let in after {before}");
                    answered.fetch_max(fence, Ordering::SeqCst);
                } else {
                    assert_eq!(status, 412);
                }
            }
            accepted
        }
    };
    let (one, other) = tokio::join!(tokio::spawn(race(1)), tokio::spawn(race(2)));
    println!("{} of 1000 accepted", one.unwrap() + other.unwrap());
    let highest = answered.load(Ordering::SeqCst);
    assert_eq!(put(server, "/reports/7", highest - 1, "x").await.status, 412);
}

/// The fences in a database, as the page shows it.
struct InDatabase(Client);

impl Fences for InDatabase {
    async fn raise(&self, group: &GroupName, resource: &str, fence: u64) -> Result<(), RaiseError> {
        let name = format!("{group} {resource}");
        let rows = self.0.execute(sql::RAISE, &[&name, &sql::bigint(fence)?]).await;
        Ok(sql::raised(rows.map_err(RaiseError::unavailable)?, &name, fence)?)
    }
}

async fn database() -> PostgresServer {
    let server = PostgresServer::start().await;
    let client = server.client().await;
    client.batch_execute(sql::GUARD_TABLE).await.unwrap();
    let report = "CREATE TABLE report (name text PRIMARY KEY, body text NOT NULL, fence bigint NOT NULL)";
    client.batch_execute(report).await.unwrap();
    server
}

/// The hole that the page tells of, and what closes it.
#[tokio::test]
async fn two_servers_see_the_same_only_where_they_share_it() {
    let shelf = Shelf::new();
    let apart = [
        serve_behind(in_memory(), &shelf).await,
        serve_behind(in_memory(), &shelf).await,
    ];
    assert_eq!(put(apart[0], "/reports/7", 9, "new").await.status, 200);
    assert_eq!(put(apart[1], "/reports/7", 5, "old").await.status, 200);
    assert_eq!(shelf.text("7").as_deref(), Some("old"), "each has a memory of its own");

    let shelf = Shelf::new();
    let database = database().await;
    let mut together = Vec::new();
    for _ in 0..2 {
        let fences = InDatabase(database.client().await);
        together.push(serve_behind(FenceLayer::new(fences), &shelf).await);
    }
    assert_eq!(put(together[0], "/reports/7", 9, "new").await.status, 200);
    let answer = put(together[1], "/reports/7", 5, "old").await;
    let body = answer.json();
    assert_eq!(
        (answer.status, body["fence"].as_u64(), body["held"].as_u64()),
        (412, Some(5), None)
    );
    let other = ask(together[1], "PUT", "/reports/7", &fence("shop/cleanup", 5), "theirs").await;
    assert_eq!(other.status, 200, "a group of its own");
    assert_eq!(put(together[1], "/reports/7", 9, "again").await.status, 200);
    // And where it cannot be told, nothing is let in.
    drop(database);
    let answer = put(together[0], "/reports/7", 10, "blind").await;
    assert_eq!(
        (answer.status, answer.json()["error"].as_str()),
        (503, Some("unavailable"))
    );
    assert_eq!(shelf.text("7").as_deref(), Some("again"));
}

/// A handler that compares again when it writes.
async fn write_fenced(
    State((shelf, database)): State<(Shelf, Arc<Client>)>,
    Path(name): Path<String>,
    Extension(fence): Extension<RequestFence>,
    body: String,
) -> Result<(), (StatusCode, String)> {
    shelf.passes(&body).await;
    let upsert = "INSERT INTO report (name, body, fence) VALUES ($1, $2, $3)
        ON CONFLICT (name) DO UPDATE SET body = excluded.body, fence = excluded.fence
        WHERE report.fence <= excluded.fence";
    let number = sql::bigint(fence.fence()).unwrap();
    let rows = database.execute(upsert, &[&name, &body, &number]).await.unwrap();
    sql::wrote(rows, &name, fence.fence()).map_err(|error| (StatusCode::PRECONDITION_FAILED, error.to_string()))
}

/// Checked at arrival, not at commit: what was let in may be late all the same, and the place that can tell is the statement.
#[tokio::test]
async fn what_was_let_in_in_time_may_write_too_late() {
    let shelf = Shelf::new();
    let layered = serve_behind(in_memory(), &shelf).await;
    let slow = tokio::spawn(async move { put(layered, "/reports/7", 5, "slow old").await });
    eventually(SOON, "the old handler has begun", || async {
        shelf.begun.load(Ordering::SeqCst) == 1
    })
    .await;
    assert_eq!(put(layered, "/reports/7", 9, "new").await.status, 200);
    shelf.slow.add_permits(1);
    assert_eq!(slow.await.unwrap().status, 200);
    assert_eq!(
        shelf.text("7").as_deref(),
        Some("slow old"),
        "the layer alone cannot know"
    );

    let (shelf, database) = (Shelf::new(), database().await);
    let client = Arc::new(database.client().await);
    let routes = Router::new().route("/reports/{name}", routed(write_fenced));
    let state = (shelf.clone(), Arc::clone(&client));
    let checked = serve(routes.layer(in_memory().require()).with_state(state)).await;
    let slow = tokio::spawn(async move { put(checked, "/reports/7", 5, "slow old").await });
    eventually(SOON, "the old handler has begun", || async {
        shelf.begun.load(Ordering::SeqCst) == 1
    })
    .await;
    assert_eq!(put(checked, "/reports/7", 9, "new").await.status, 200);
    shelf.slow.add_permits(1);
    let late = slow.await.unwrap();
    assert_eq!(late.status, 412);
    assert!(late.body.contains("took fence 5"), "{}", late.body);
    let body: String = client.query_one("SELECT body FROM report", &[]).await.unwrap().get(0);
    assert_eq!(body, "new");
}

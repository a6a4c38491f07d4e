//! Probes: whether a process is worth keeping, whether an instance is ready, and whether it leads.

use axum::Router;
use axum::routing::get;
use leader_core::admin::Admin;
use leader_core::{Embedded, Instance};
use leader_tests::RedisServer;
use tokio::net::TcpListener;

use crate::program::{ask, fetch, instance, soon};

const TEXT: &str = "text/plain; charset=utf-8";

async fn started() -> Instance {
    let instance = instance(Embedded::new(), "web-1").groups(["billing/eu"]).await.unwrap();
    soon("it leads", || {
        instance.is_leader("default") && instance.is_leader("billing/eu")
    })
    .await;
    instance
}

#[tokio::test]
async fn each_path_is_answered_below_any_prefix() {
    let instance = started().await;
    for (prefix, path) in [
        ("", "/livez"),
        ("/", "/livez"),
        ("/a", "/a/livez"),
        ("a/b/", "/a/b/livez"),
        // Stripped on the way.
        ("/a/b", "/livez"),
        ("/a", "/healthz?x=1"),
    ] {
        let admin = Admin::new(&instance).at(prefix);
        let answer = ask(&admin, "GET", path, "*/*").await;
        assert_eq!((answer.status, answer.text.as_str()), (200, "ok\n"), "{prefix} {path}");
        assert_eq!(answer.kind, TEXT);
    }
    let admin = Admin::new(&instance).at("/a");
    for path in ["/", "/a", "/a/", "/a/b/livez", "/ab/livez", "/livez/", "/a/%6civez"] {
        assert_eq!(ask(&admin, "GET", path, "*/*").await.status, 404, "{path}");
    }
    for method in ["POST", "DELETE", "PUT"] {
        assert_eq!(ask(&admin, method, "/a/livez", "*/*").await.status, 405, "{method}");
    }
    let head = ask(&admin, "HEAD", "/a/metrics", "*/*").await;
    assert_eq!((head.status, head.text.as_str()), (200, ""));
    instance.shutdown().await;
}

#[tokio::test]
async fn who_leads_and_who_does_not_is_told() {
    let instance = started().await;
    let admin = Admin::new(&instance);
    for path in [
        "/leaderz",
        "/leaderz?group=default",
        "/leaderz?group=billing/eu",
        "/leaderz?x&group=billing%2Feu",
        "/leaderz?group=",
    ] {
        let answer = ask(&admin, "GET", path, "*/*").await;
        assert_eq!((answer.status, answer.text.as_str()), (200, "leader\n"), "{path}");
    }
    for path in ["/leaderz?group=nobody", "/leaderz?group=%", "/leaderz?group=%zz%ff"] {
        let answer = ask(&admin, "GET", path, "*/*").await;
        assert_eq!(answer.status, 404, "{path}");
        assert!(answer.text.contains("billing/eu, calm, default"), "{answer:?}");
    }
    instance.shutdown().await;
    let answer = ask(&admin, "GET", "/leaderz", "*/*").await;
    assert_eq!(answer.status, 503);
    assert!(answer.text.starts_with("not leader"), "{answer:?}");
}

#[tokio::test]
async fn a_standby_is_as_ready_as_its_leader() {
    let store = Embedded::new();
    let a = instance(store.clone(), "a").await.unwrap();
    soon("it leads", || a.is_leader("work")).await;
    let b = instance(store, "b").await.unwrap();
    let admin = Admin::new(&b);
    assert_eq!(ask(&admin, "GET", "/readyz", "*/*").await.text, "ready\n");
    let answer = ask(&admin, "GET", "/leaderz?group=work", "*/*").await;
    assert_eq!(
        (answer.status, answer.text.as_str()),
        (503, "not leader: a leads `work`, as last seen\n")
    );
    let answer = ask(&admin, "GET", "/readyz?verbose", "*/*").await;
    let wanted = "[+]store ok\n[+]fleet ok\n[+]runtime ok\n[+]draining ok\nready\n";
    assert_eq!((answer.status, answer.text.as_str()), (200, wanted));
    b.shutdown().await;
    let answer = ask(&admin, "GET", "/readyz", "*/*").await;
    assert_eq!(
        (answer.status, answer.text.as_str()),
        (503, "not ready: draining (?verbose says why)\n")
    );
    let answer = ask(&admin, "GET", "/readyz?verbose=1", "*/*").await;
    assert!(
        answer.text.contains("[-]draining: the instance leaves its fleet"),
        "{answer:?}"
    );
    // That is no reason to start the process anew.
    assert_eq!(ask(&admin, "GET", "/livez", "*/*").await.status, 200);
    a.shutdown().await;
}

/// An outage must take instances out of the traffic, and must not restart them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_outage_makes_nobody_ready_and_kills_nobody() {
    let mut server = RedisServer::start().await;
    let a = instance(server.url(), "a").await.unwrap();
    let admin = Admin::new(&a);
    assert!(a.health().is_ready(), "{}", a.health());
    server.stop().await;
    soon("it is not ready", || !a.health().is_ready()).await;
    let answer = ask(&admin, "GET", "/readyz?verbose", "*/*").await;
    assert_eq!(answer.status, 503);
    assert!(answer.text.starts_with("[-]store: "), "{answer:?}");
    assert_eq!(ask(&admin, "GET", "/livez", "*/*").await.status, 200);
    // A scrape is answered meanwhile.
    let scraped = ask(&admin, "GET", "/metrics", "*/*").await;
    assert!(scraped.text.contains("\nleader_store_up 0.0\n"), "{scraped:?}");
    server.restart(true).await;
    soon("it is ready", || a.health().is_ready()).await;
    let scraped = ask(&admin, "GET", "/metrics", "*/*").await;
    assert!(scraped.text.contains("\nleader_store_up 1.0\n"), "{scraped:?}");
    a.shutdown().await;
}

/// As a program has it: nested below a prefix by a real server.
#[tokio::test]
async fn a_server_has_it_beside_its_own_routes() {
    let instance = started().await;
    let admin = Admin::new(&instance);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let routes = Router::new()
        .route("/", get(|| async { "hello" }))
        .nest_service("/ops/leader", admin);
    let serving = tokio::spawn(async move { axum::serve(listener, routes).await });
    for (path, wanted) in [
        ("/", "hello"),
        ("/ops/leader/readyz", "ready\n"),
        ("/ops/leader/leaderz", "leader\n"),
    ] {
        assert_eq!(fetch(address, path).await, wanted);
    }
    serving.abort();
    instance.shutdown().await;
}

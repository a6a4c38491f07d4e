//! A server that has no memory left, and refuses every write that needs some.

use leader_core::__seam::{ClaimBatch, Renewed, Verdict, Want};
use leader_core::StoreErrorKind;
use leader_tests::RedisServer;
use std::sync::Arc;

use crate::bench::{Bench, LONG, after, claim, holder};

#[tokio::test]
async fn renewals_and_releases_need_no_memory() {
    let server = Arc::new(RedisServer::start().await);
    let bench = Bench::redis_on(Arc::clone(&server));
    let (a, b) = (holder("a"), holder("b"));
    let term = bench.acquire(&a).await;
    let cursor = bench.cursor(&a, term, "job").await;
    // A second one that was renewed never and has the least there is to change.
    let mut other = bench.wish(&b, LONG, 0);
    other.group = crate::bench::group("other");
    bench.ask(other.clone()).await;
    server.command(&["CONFIG", "SET", "maxmemory", "1"]).await;
    let refused = server.command(&["SET", "x", "y"]).await;
    assert!(matches!(refused, redis::Value::ServerError(_)), "{refused:?}");

    for _ in 0..3 {
        assert!(matches!(bench.renew(&a, term).await, Renewed::Yes { .. }));
    }
    // What needs memory says so, and has changed nothing.
    let batch: ClaimBatch = bench.batch(&a, term, vec![claim("job", 1, cursor, after(cursor, 1), Want::Run)]);
    let error = bench.store.claim(vec![batch.clone()]).await.pop().unwrap().unwrap_err();
    assert_eq!(error.code(), Some("OOM"), "{error}");
    assert!(matches!(error.kind(), StoreErrorKind::Refused { .. }) && error.to_string().contains("maxmemory"));
    assert!(matches!(bench.renew(&a, term).await, Renewed::Yes { .. }));
    let since = "2026-03-02T12:00:00Z".parse().unwrap();
    bench.release(&a, term, Some(since)).await;
    assert!(matches!(
        bench.renew(&a, term).await,
        Renewed::NotYours { holder: None, .. }
    ));
    let error = bench
        .store
        .campaign(vec![bench.wish(&b, LONG, term)])
        .await
        .pop()
        .unwrap()
        .unwrap_err();
    assert_eq!(error.code(), Some("OOM"), "{error}");

    server.command(&["CONFIG", "SET", "maxmemory", "0"]).await;
    let Verdict::Acquired { term } = bench.campaign(&b, term).await.verdict else {
        panic!("nobody may lead");
    };
    let leader_core::__seam::TakenOver::Yours { late_from, .. } = bench.take_over(&b, term, &["job"]).await else {
        panic!("not yours");
    };
    assert_eq!(late_from, Some(since), "the drain was noted all the same");
    bench.win(&b, term, batch.claims.into_iter().next().unwrap()).await;
}

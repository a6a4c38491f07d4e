//! Requests to step down: kept for the leader of one term, until it has heard or they have ended.

use std::sync::Arc;
use std::time::Duration;

use leader_core::__seam::{ActRequest, Ask, AskReply, Asked, Deed, Gap, Renewed, Store, in_namespace};
use leader_core::{Embedded, Namespace};
use leader_tests::eventually;

use crate::bench::{BOUND, Bench, COARSE, LONG, group, holder};
use crate::heard::Heard;

on_each_store!(
    a_request_comes_back_with_the_renewal_of_its_term,
    a_request_ends_by_itself,
    a_request_ends_with_its_term,
    a_request_for_a_term_that_is_over_is_kept_nowhere,
    a_request_is_told_at_once,
    words_of_any_kind_arrive_as_they_were_said,
);

fn ask(bench: &Bench, term: Option<u64>, ends_after: Duration, reason: &str) -> Ask {
    Ask {
        group: bench.group.clone(),
        term,
        ends_after,
        asked: Asked {
            by: "web-2".to_owned(),
            reason: reason.to_owned(),
        },
    }
}

async fn answer(bench: &Bench, request: Ask) -> AskReply {
    bench.store.ask(request).await.unwrap()
}

async fn heard(bench: &Bench, who: &leader_core::Holder, term: u64) -> Option<Asked> {
    match bench.renew(who, term).await {
        Renewed::Yes { asked, .. } => asked,
        Renewed::NotYours { .. } => panic!("not led by {who}"),
    }
}

async fn a_request_comes_back_with_the_renewal_of_its_term(bench: Bench) {
    let a = holder("a");
    assert_eq!(answer(&bench, ask(&bench, None, LONG, "")).await, AskReply::Vacant);
    let term = bench.acquire(&a).await;
    assert_eq!(heard(&bench, &a, term).await, None);
    let kept = AskReply::Kept {
        holder: a.clone(),
        term,
    };
    for meant in [None, Some(term)] {
        assert_eq!(answer(&bench, ask(&bench, meant, LONG, "a new version")).await, kept);
        // Again and again, until it has stepped down.
        for _ in 0..2 {
            let asked = heard(&bench, &a, term).await.unwrap();
            assert_eq!((asked.by.as_str(), asked.reason.as_str()), ("web-2", "a new version"));
        }
    }
}

async fn a_request_ends_by_itself(bench: Bench) {
    let a = holder("a");
    let term = bench.acquire(&a).await;
    let span = Duration::from_millis(200);
    let began = std::time::Instant::now();
    answer(&bench, ask(&bench, None, span, "")).await;
    assert!(heard(&bench, &a, term).await.is_some());
    eventually(BOUND, "the request has ended", || async {
        heard(&bench, &a, term).await.is_none()
    })
    .await;
    assert!(began.elapsed() + COARSE >= span);
}

async fn a_request_ends_with_its_term(bench: Bench) {
    let (a, b) = (holder("a"), holder("b"));
    let first = bench.acquire(&a).await;
    answer(&bench, ask(&bench, None, LONG, "")).await;
    bench.release(&a, first, None).await;
    let second = bench.acquire(&b).await;
    assert_eq!(heard(&bench, &b, second).await, None);
    // A term that ended without a release.
    answer(&bench, ask(&bench, None, LONG, "")).await;
    let third = bench.acquire(&b).await;
    assert!(third > second);
    assert_eq!(heard(&bench, &b, third).await, None);
}

async fn a_request_for_a_term_that_is_over_is_kept_nowhere(bench: Bench) {
    let (a, b) = (holder("a"), holder("b"));
    let first = bench.acquire(&a).await;
    bench.release(&a, first, None).await;
    assert_eq!(answer(&bench, ask(&bench, Some(first), LONG, "")).await, AskReply::Over);
    let second = bench.acquire(&b).await;
    assert_eq!(answer(&bench, ask(&bench, Some(first), LONG, "")).await, AskReply::Over);
    assert_eq!(heard(&bench, &b, second).await, None);
}

async fn a_request_is_told_at_once(bench: Bench) {
    let a = holder("a");
    let term = bench.acquire(&a).await;
    let ears = Arc::new(Heard::default());
    let (store, told) = (Arc::clone(&bench.store), Arc::clone(&ears));
    let listening = tokio::spawn(async move { store.listen(told).await });
    // One before the ears are open is never heard.
    eventually(BOUND, "a request is heard", || async {
        answer(&bench, ask(&bench, None, LONG, "")).await;
        ears.asked.lock().unwrap().contains(&("cleanup".to_owned(), term))
    })
    .await;
    assert!(ears.released.lock().unwrap().is_empty());
    listening.abort();
}

async fn words_of_any_kind_arrive_as_they_were_said(bench: Bench) {
    let a = holder("a");
    let term = bench.acquire(&a).await;
    for reason in [
        "",
        " ",
        "two  words ",
        "\"quoted\" | 7 8 9",
        "größer 100 %",
        &"long ".repeat(40),
    ] {
        answer(&bench, ask(&bench, None, LONG, reason)).await;
        assert_eq!(heard(&bench, &a, term).await.unwrap().reason, reason);
    }
}

#[tokio::test]
async fn an_embedded_store_tells_a_namespace_of_itself_only() {
    let store = Embedded::new();
    let [here, there] = ["here", "there"].map(|name| {
        let namespace = Namespace::new(name).unwrap();
        Arc::new(in_namespace(store.clone(), &namespace))
    });
    let ears = Arc::new(Heard::default());
    let (listens, told) = (Arc::clone(&here), Arc::clone(&ears));
    let listening = tokio::spawn(async move { listens.listen(told).await });
    let act = async |store: &Embedded, name: &str| {
        let request = ActRequest {
            group: group(name),
            job: None,
            deed: Deed::pause(Gap::Skip, None),
            by: "ann".to_owned(),
            reason: String::new(),
        };
        store.act(request).await.unwrap();
    };
    eventually(BOUND, "an act is heard", || async {
        act(&there, "theirs").await;
        act(&here, "ours").await;
        !ears.controlled.lock().unwrap().is_empty()
    })
    .await;
    act(&there, "theirs").await;
    act(&here, "last").await;
    eventually(BOUND, "the last act is heard", || async {
        ears.controlled.lock().unwrap().iter().any(|(group, _)| group == "last")
    })
    .await;
    listening.abort();
    let heard = ears.controlled.lock().unwrap().clone();
    assert!(heard.iter().all(|(group, _)| group != "theirs"), "{heard:?}");
}

#[test]
fn an_embedded_store_for_tests_fires_nothing_by_itself() {
    for (store, expected) in [
        (Embedded::for_test(), "manual_ticks: true"),
        (Embedded::new(), "manual_ticks: false"),
    ] {
        let told = format!("{store:?}");
        assert!(told.contains(expected), "{told}");
    }
}

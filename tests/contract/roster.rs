//! Who is alive in a namespace.

use std::time::Duration;

use leader_core::__seam::{Enrolled, Entry};
use leader_core::{Holder, ServiceName};
use leader_tests::eventually;

use crate::bench::{BOUND, Bench, COARSE, LONG, holder};

on_each_store!(
    instances_of_one_service_share_a_namespace,
    another_service_is_refused_and_named,
    a_line_ends_by_itself,
    an_instance_that_left_is_gone,
    an_instance_may_enrol_again,
);

async fn enrol(bench: &Bench, holder: &Holder, service: &str, ttl: Duration) -> Enrolled {
    let entry = Entry {
        holder: holder.clone(),
        service: ServiceName::new(service.to_owned()).unwrap(),
        ttl,
    };
    bench.store.enrol(entry).await.unwrap()
}

fn other(service: &str, instance: &str) -> Enrolled {
    Enrolled::OtherService {
        service: service.to_owned(),
        instance: instance.to_owned(),
    }
}

async fn instances_of_one_service_share_a_namespace(bench: Bench) {
    for n in 0..20 {
        let instance = holder(&format!("web-{n}"));
        assert_eq!(enrol(&bench, &instance, "shop", LONG).await, Enrolled::Yes);
    }
}

async fn another_service_is_refused_and_named(bench: Bench) {
    let (a, b) = (holder("a"), holder("b"));
    assert_eq!(enrol(&bench, &a, "shop", LONG).await, Enrolled::Yes);
    for _ in 0..2 {
        assert_eq!(enrol(&bench, &b, "shop-worker", LONG).await, other("shop", "a"));
    }
    // The refusal wrote nothing: the first is alone still.
    assert_eq!(enrol(&bench, &a, "shop", LONG).await, Enrolled::Yes);
}

async fn a_line_ends_by_itself(bench: Bench) {
    let (a, b) = (holder("a"), holder("b"));
    let ttl = Duration::from_millis(300);
    let began = std::time::Instant::now();
    assert_eq!(enrol(&bench, &a, "shop", ttl).await, Enrolled::Yes);
    eventually(BOUND, "the line has ended", || async {
        enrol(&bench, &b, "mail", LONG).await == Enrolled::Yes
    })
    .await;
    assert!(began.elapsed() + COARSE >= ttl, "not before its end");
    assert_eq!(enrol(&bench, &a, "shop", LONG).await, other("mail", "b"));
}

async fn an_instance_that_left_is_gone(bench: Bench) {
    let (a, b) = (holder("a"), holder("b"));
    enrol(&bench, &a, "shop", LONG).await;
    bench.store.leave(b.clone()).await.unwrap();
    assert_eq!(enrol(&bench, &b, "mail", LONG).await, other("shop", "a"));
    for _ in 0..2 {
        bench.store.leave(a.clone()).await.unwrap();
    }
    assert_eq!(enrol(&bench, &b, "mail", LONG).await, Enrolled::Yes);
}

async fn an_instance_may_enrol_again(bench: Bench) {
    let (a, b) = (holder("a"), holder("b"));
    for _ in 0..3 {
        assert_eq!(enrol(&bench, &a, "shop", LONG).await, Enrolled::Yes);
    }
    // Under another name too: it is the only one there.
    assert_eq!(enrol(&bench, &a, "mail", LONG).await, Enrolled::Yes);
    assert_eq!(enrol(&bench, &b, "shop", LONG).await, other("mail", "a"));
    assert_eq!(enrol(&bench, &b, "mail", LONG).await, Enrolled::Yes);
}

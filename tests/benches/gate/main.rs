//! What the local view of a leadership costs, in reads of the clock.
//!
//! `cargo bench -p leader-tests --bench gate` takes some seconds. The store is the embedded one: neither `is_leader` nor the gate ever asks it.

#[path = "../sampling.rs"]
mod sampling;

use std::future::Future;
use std::hint::black_box;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use leader_core::{Clock, Embedded, Instance, Skipped, Timing, bootstrap, leader_only, testing};
use sampling::{Case, compare};

#[leader_only]
async fn gated() {}

#[leader_only(group = "g31")]
async fn gated_in_the_middle() {}

/// Polls a future that never waits.
fn now_or_never<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    match poll(future.as_mut()) {
        Poll::Ready(output) => output,
        Poll::Pending => unreachable!("an empty body never waits"),
    }
}

fn poll<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

fn clock_read() -> Case<'static> {
    let clock = Clock::system();
    Case::new("one clock read", move || {
        black_box(black_box(&clock).now());
    })
}

fn ran(result: &Result<(), Skipped>) {
    assert!(result.is_ok(), "the bench's instance leads");
}

fn skipped(result: &Result<(), Skipped>) {
    assert!(
        matches!(result, Err(Skipped::NotLeader { .. })),
        "the bench's instance stands by"
    );
}

/// What a gated call does in any case, with the bench's own loop: one poll of an empty future.
fn bare_call() -> Case<'static> {
    let bare = || async { black_box(Ok(())) };
    Case::new("the same call without the attribute", move || {
        ran(&now_or_never(bare()));
    })
}

/// What the attribute's tokens ask before the body: in or not, and out again.
fn decision(group: &'static str) -> Case<'static> {
    Case::new("the gate's decision alone", move || {
        drop(black_box(leader_core::__private::enter(black_box(group))));
    })
}

/// Calls inside one scope, as a request handler makes them.
fn in_scope<'a, F: Future<Output = Result<(), Skipped>> + 'a>(instance: &'a Instance, call: fn() -> F) -> Case<'a> {
    Case::timed("gated call that runs, inside `instance.scope`", move |times| {
        now_or_never(instance.scope(async {
            let began = Instant::now();
            for _ in 0..times {
                ran(&call().await);
            }
            began.elapsed()
        }))
    })
}

fn leading(instance: &Instance) -> Vec<Case<'_>> {
    let count = AtomicU64::new(0);
    vec![
        Case::new("one atomic addition", move || {
            count.fetch_add(1, Ordering::SeqCst);
        }),
        bare_call(),
        Case::new("is_leader, leading", move || {
            assert!(black_box(instance).is_leader(black_box("default")));
        }),
        Case::new("is_leader, group unknown", move || {
            assert!(!black_box(instance).is_leader(black_box("elsewhere")));
        }),
        decision("default"),
        Case::new("gated call that runs", || ran(&now_or_never(gated()))),
        in_scope(instance, gated),
        Case::new("`instance.scope` around a gated call that runs", move || {
            ran(&now_or_never(instance.scope(gated())));
        }),
    ]
}

fn among_64(instance: &Instance) -> Vec<Case<'_>> {
    vec![
        Case::new("is_leader", move || {
            assert!(black_box(instance).is_leader(black_box("g31")));
        }),
        decision("g31"),
        Case::new("gated call that runs", || ran(&now_or_never(gated_in_the_middle()))),
        in_scope(instance, gated_in_the_middle),
    ]
}

fn standing_by(instance: &Instance) -> Vec<Case<'_>> {
    vec![
        Case::new("is_leader", move || {
            assert!(!black_box(instance).is_leader(black_box("default")));
        }),
        decision("default"),
        Case::new("gated call that is skipped", || skipped(&now_or_never(gated()))),
    ]
}

async fn start(store: &Embedded, groups: usize) -> Instance {
    // `default` and the group of the function above are always there.
    let others = (0..groups.max(2))
        .map(|n| format!("g{n:02}"))
        .filter(|name| name != "g31");
    let others: Vec<_> = others.take(groups.saturating_sub(2)).collect();
    let instance = bootstrap(store.clone())
        // Long enough that no renewal falls into many of the samples.
        .timing(Timing::from_ttl(Duration::from_secs(600)))
        .groups(others)
        .await
        .expect("the embedded store always answers");
    assert_eq!(instance.groups().len(), groups.max(2));
    instance
}

fn main() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let mut unit = clock_read();

    let few = runtime.block_on(start(&Embedded::new(), 2));
    compare("Leader of 2 groups", &mut unit, leading(&few));
    runtime.block_on(few.shutdown());

    let many = runtime.block_on(start(&Embedded::new(), 64));
    compare("Leader of 64 groups", &mut unit, among_64(&many));
    runtime.block_on(many.shutdown());

    // The leases outlive their holder: whoever comes next stands by.
    let store = Embedded::new();
    let gone = runtime.block_on(start(&store, 2));
    testing::kill(&gone);
    runtime.block_on(wait_for_the_end(&gone));
    let standby = runtime.block_on(start(&store, 2));
    compare("Standby of 2 groups", &mut unit, standing_by(&standby));
    runtime.block_on(standby.shutdown());
}

/// Waits until a killed instance is out of the process's list.
async fn wait_for_the_end(gone: &Instance) {
    gone.shutdown().await;
    leader_tests::eventually(Duration::from_secs(5), "the killed instance is gone", || async {
        gated().await == Err(Skipped::NotBootstrapped)
    })
    .await;
}

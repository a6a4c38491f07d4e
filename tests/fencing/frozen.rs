//! A process that is frozen in the middle of its work for longer than a lease: what it writes when it wakes is refused everywhere.

use leader_tests::eventually;
use rustix::process::Signal;

use crate::places::{Places, SOON, all_refused, has_told};

#[tokio::test]
async fn what_a_frozen_run_writes_when_it_wakes_is_refused_everywhere() {
    let places = Places::open().await;
    let a = places.start("a", "frozen", 0);
    let first = has_told(&a, "first", "a has done the first half").await;
    assert!(first.values().all(|write| write.refusal.is_none()), "{first:?}");
    let b = places.start("b", "frozen", 0);
    a.signal(Signal::STOP);
    eventually(SOON, "a stands still", || async { a.is_still() }).await;

    // The lease ends, and the successor does the whole of its work.
    let successor = has_told(&b, "first", "b follows").await;
    places.let_go("b").await;
    let whole = has_told(&b, "second", "b is done").await;
    assert!(whole.values().all(|write| write.refusal.is_none()), "{whole:?}");
    let (old, new) = (first["redis"].fence, successor["redis"].fence);
    assert!(new > old, "{new} after {old}");

    // The first one's work may go on as soon as its process does.
    places.let_go("a").await;
    a.signal(Signal::CONT);
    all_refused(&has_told(&a, "second", "a has tried the second half").await, old);
    places.nothing_stands_of(old).await;
}

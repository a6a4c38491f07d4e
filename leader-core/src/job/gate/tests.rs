//! The gate by the clock's hand: what opens, closes and tells it.

use super::*;
use std::time::Duration;

fn gate() -> (Arc<Gate>, Clock) {
    let clock = Clock::manual(Timestamp::UNIX_EPOCH);
    let group = GroupName::new("default").unwrap();
    (Arc::new(Gate::new(group, clock.clone())), clock)
}

#[test]
fn a_gate_closes_by_the_clock_alone() {
    let (gate, clock) = gate();
    assert!(gate.enter().is_none());
    gate.open(7, clock.now() + Duration::from_secs(2));
    assert_eq!(gate.enter().unwrap().lead().term(), 7);
    clock.advance(Duration::from_secs(2));
    assert!(gate.enter().is_none());
    assert!(!gate.trusts(7));
}

#[test]
fn a_drain_lets_nobody_in_and_trust_goes_on() {
    let (gate, clock) = gate();
    gate.open(7, clock.now() + Duration::from_secs(2));
    let outer = gate.enter().unwrap();
    gate.close_entry();
    assert!(gate.enter().is_none());
    assert!(gate.trusts(outer.lead().term()));
    gate.extend(clock.now() + Duration::from_secs(9));
    assert!(gate.enter().is_none(), "a renewal must not reopen a draining gate");
    gate.close();
    assert!(!gate.trusts(outer.lead().term()));
    assert_eq!(gate.calls(), 1);
    drop(outer);
    assert_eq!(gate.calls(), 0);
}

/// Callers that keep coming to a closed gate hold no drain up.
#[tokio::test]
async fn a_caller_that_is_not_let_in_is_not_counted() {
    let (gate, clock) = gate();
    gate.open(7, clock.now() + Duration::from_secs(2));
    gate.close_entry();
    let counted = gate.idle.notified();
    assert!(gate.enter().is_none());
    tokio::select! {
        biased;
        () = counted => panic!("it was counted"),
        () = std::future::ready(()) => {}
    }
}

#[test]
fn a_cleared_belief_is_not_prolonged_and_a_sealed_one_not_begun() {
    let (gate, clock) = gate();
    let until = clock.now() + Duration::from_secs(2);
    gate.open(7, until);
    gate.close();
    gate.extend(until);
    assert!(!gate.trusts(7) && gate.enter().is_none());
    gate.seal();
    gate.open(8, until);
    assert!(!gate.trusts(8) && gate.enter().is_none());
}

#[test]
fn an_old_term_is_not_trusted_under_a_new_one() {
    let (gate, clock) = gate();
    gate.open(7, clock.now() + Duration::from_secs(2));
    gate.close();
    gate.open(9, clock.now() + Duration::from_secs(2));
    assert!(!gate.trusts(7));
    assert!(gate.trusts(9));
}

#[tokio::test]
async fn bodies_are_told_by_term() {
    let (gate, clock) = gate();
    gate.open(7, clock.now() + Duration::from_secs(2));
    let lead = Lead::new(Arc::clone(&gate), 7, 8);
    assert!(!lead.is_cancelled());
    gate.tell(7);
    lead.cancelled().await;
    assert!(lead.is_cancelled());
    gate.tell(3);
    lead.cancelled().await;
    gate.untell(7);
    assert!(!lead.is_cancelled(), "a renewal came in time after all");
    gate.untell(6);
    gate.tell(7);
    assert!(lead.is_cancelled());
}

/// Whether it has come without waiting.
async fn has_come(future: &mut (impl Future<Output = ()> + Unpin)) -> bool {
    tokio::select! {
        biased;
        () = future => true,
        () = std::future::ready(()) => false,
    }
}

#[tokio::test]
async fn who_waits_to_be_told_is_woken() {
    let (gate, clock) = gate();
    gate.open(7, clock.now() + Duration::from_secs(2));
    let lead = Lead::new(Arc::clone(&gate), 7, 8);
    let mut told = Box::pin(lead.cancelled());
    assert!(!has_come(&mut told).await);
    gate.tell(6);
    assert!(!has_come(&mut told).await, "another term was meant");
    gate.tell(7);
    assert!(has_come(&mut told).await);
}

#[tokio::test]
async fn a_drain_waits_for_the_last_call_inside() {
    let (gate, clock) = gate();
    gate.open(7, clock.now() + Duration::from_secs(2));
    assert!(has_come(&mut Box::pin(gate.idle())).await, "nobody is inside");
    let (one, two) = (gate.enter().unwrap(), gate.enter().unwrap());
    let mut idle = Box::pin(gate.idle());
    assert!(!has_come(&mut idle).await);
    let mut woken = Box::pin(gate.idle.notified());
    assert!(!has_come(&mut woken).await);
    drop(one);
    assert!(!has_come(&mut woken).await, "one is inside still");
    drop(two);
    assert!(has_come(&mut woken).await && has_come(&mut idle).await);
}

/// Calls of a gate that nobody drains wake nobody.
#[tokio::test]
async fn a_call_that_ends_wakes_nobody_who_does_not_drain() {
    let (gate, clock) = gate();
    gate.open(7, clock.now() + Duration::from_secs(2));
    let mut woken = Box::pin(gate.idle.notified());
    assert!(!has_come(&mut woken).await);
    drop(gate.enter());
    assert!(!has_come(&mut woken).await);
}

#[test]
fn a_renewal_prolongs_what_stands_open() {
    let (gate, clock) = gate();
    gate.open(7, clock.now() + Duration::from_secs(2));
    gate.extend(clock.now() + Duration::from_secs(9));
    clock.advance(Duration::from_secs(8));
    assert!(gate.trusts(7) && gate.is_open());
    clock.advance(Duration::from_secs(1));
    assert!(!gate.trusts(7) && !gate.is_open());
}

#[test]
fn the_trust_in_a_run_is_no_leadership() {
    let (gate, _) = gate();
    let of_run = Lead::of_run(Arc::clone(&gate), 8);
    assert_eq!((of_run.is_of_a_term(), of_run.term(), of_run.fence()), (false, 0, 8));
    assert!(Lead::new(gate, 7, 8).is_of_a_term());
}

#[cfg(feature = "testing")]
#[test]
fn checkers_see_the_belief_and_each_step() {
    use super::steps::{GateStep, GateView};
    let group = GroupName::new("default").unwrap();
    let (gate, _) = gate();
    let until = |nanos| Moment::from_nanos(nanos);
    assert_eq!(gate.belief(), (0, 0));
    gate.open(7, until(2_000_000_000));
    assert_eq!(gate.belief(), (7, 2_000_000_000));
    let mut view = GateView::default();
    for (step, expected) in [
        (GateStep::Extend(until(5_000_000_000)), (0, 0, 0)),
        (
            GateStep::Open(7, until(3_000_000_000)),
            (7, 3_000_000_000, 3_000_000_000),
        ),
        (GateStep::CloseEntry, (7, 3_000_000_000, 0)),
        (GateStep::Extend(until(5_000_000_000)), (7, 5_000_000_000, 0)),
        (GateStep::Close, (7, 0, 0)),
        (
            GateStep::Open(9, until(4_000_000_000)),
            (9, 4_000_000_000, 4_000_000_000),
        ),
    ] {
        view = view.after(&group, step);
        let (term, trust_until, open_until) = expected;
        assert_eq!(
            view,
            GateView {
                term,
                trust_until,
                open_until
            },
            "{step:?}"
        );
    }
    assert!(view.trusts(&group, 9, until(3_999_999_999)));
    assert!(!view.trusts(&group, 9, until(4_000_000_000)));
    assert!(!view.trusts(&group, 7, until(3_999_999_999)));
}

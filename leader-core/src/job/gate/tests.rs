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

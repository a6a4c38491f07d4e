//! What a gated call returns: the body's own value, or why it did not run; never one for the other.

use std::sync::atomic::{AtomicU32, Ordering};

use leader_core::testing::as_leader;
use leader_core::{Skipped, leader_only};

use crate::block_on;

static RUNS: AtomicU32 = AtomicU32::new(0);

#[leader_only(group = "gate")]
async fn count(by: u32) -> u32 {
    RUNS.fetch_add(by, Ordering::SeqCst)
}

#[leader_only(group = "gate")]
async fn parse(text: &str) -> Result<u8, std::num::ParseIntError> {
    if text.is_empty() {
        return Ok(0);
    }
    let parsed = text.parse()?;
    Ok(parsed)
}

/// A body whose own error is the very type that says "skipped".
#[leader_only(group = "gate")]
async fn relays() -> Result<(), Skipped> {
    Err(Skipped::Ambiguous)
}

#[leader_only(group = "outer")]
async fn calls_another() -> (Option<String>, Result<Option<String>, Skipped>) {
    (led_group(), reports_its_group().await)
}

#[leader_only(group = "inner")]
async fn reports_its_group() -> Option<String> {
    led_group()
}

fn led_group() -> Option<String> {
    leader_core::current().map(|lead| lead.group().to_string())
}

/// Before `bootstrap` the result is a defined one, and the body never runs bare.
#[test]
fn before_bootstrap_nothing_runs() {
    let runs = RUNS.load(Ordering::SeqCst);
    assert_eq!(block_on(count(1)), Err(Skipped::NotBootstrapped));
    assert_eq!(RUNS.load(Ordering::SeqCst), runs);
}

#[test]
fn the_value_is_the_bodys_own() {
    assert_eq!(block_on(as_leader(parse("7"))), Ok(Ok(7)));
    assert_eq!(block_on(as_leader(parse(""))), Ok(Ok(0)));
}

#[test]
fn an_error_of_the_body_is_no_skip_and_a_skip_no_error_of_the_body() {
    assert!(block_on(as_leader(parse("x"))).unwrap().is_err());
    assert_eq!(block_on(as_leader(relays())), Ok(Err(Skipped::Ambiguous)));
    assert_eq!(block_on(relays()), Err(Skipped::NotBootstrapped));
}

#[test]
fn both_errors_leave_through_two_question_marks() {
    async fn both() -> anyhow::Result<u8> {
        Ok(parse("8").await??)
    }
    assert_eq!(block_on(as_leader(both())).unwrap(), 8);
    let skipped = block_on(both()).unwrap_err();
    assert_eq!(skipped.downcast_ref(), Some(&Skipped::NotBootstrapped));
}

#[test]
fn the_body_knows_its_leadership() {
    assert_eq!(led_group(), None);
    let (outer, inner) = block_on(as_leader(calls_another())).unwrap();
    assert_eq!(outer.as_deref(), Some("outer"));
    assert_eq!(inner.unwrap().as_deref(), Some("inner"));
}

//! Every fault of a real fleet, one after the other, and what may never be seen.

use std::time::Duration;

use leader_tests::RedisServer;
use rustix::process::Signal;

use crate::fleet::{Fleet, GROUPS, TTL, between, mono};
use leader_tests::checker::violations;

/// How soon a group is led again after it was given back.
const AFTER_RELEASE: Duration = Duration::from_millis(100);
/// How soon after its leader fell silent.
const AFTER_SILENCE: Duration = Duration::from_millis(2500);
/// How soon after a server without its data has come back.
const AFTER_DATA_LOSS: Duration = Duration::from_secs(4);
/// How long a condition that has a bound of its own is waited for: the bound is judged by the logs.
const PATIENCE: Duration = Duration::from_secs(20);

#[tokio::test]
async fn no_fault_makes_two_leaders_or_doubles_a_tick() {
    let mut server = RedisServer::start().await;
    let mut fleet = Fleet::on(&server);
    (0..3).for_each(|_| fleet.join(true));
    fleet.ticks(3).await;

    let mut figures = Vec::new();
    sigterm(&mut fleet, &mut figures).await;
    fleet.join(false);
    fleet.ticks(2).await;
    sigkill(&mut fleet, &server, &mut figures).await;
    fleet.join(false);
    fleet.ticks(2).await;
    freeze(&mut fleet, &mut figures).await;
    fleet.ticks(2).await;
    data_loss(&mut fleet, &mut server, &mut figures).await;
    fleet.ticks(3).await;

    let living = fleet.living();
    assert_eq!(living.len(), 3);
    for node in &living {
        fleet.signal(*node, Signal::TERM);
    }
    for node in living {
        fleet.stopped(node).await;
    }
    let lines = fleet.lines();
    let ticks = lines.iter().filter(|line| line.event == "tick").count();
    let terms = lines.iter().filter(|line| line.event == "elected").count();
    println!("{} lines, {ticks} bodies started, {terms} leaderships", lines.len());
    for (what, took, bound) in &figures {
        println!("{what}: {took:?} (at most {bound:?})");
    }
    let violations = violations(&lines, &fleet.ends);
    assert!(violations.is_empty(), "{}", violations.join("\n"));
    let late: Vec<_> = figures.iter().filter(|(_, took, bound)| took > bound).collect();
    assert!(late.is_empty(), "too late: {late:?}");
}

/// What was measured, and its bound.
type Figures = Vec<(String, Duration, Duration)>;

/// The leader of `default` is told to stop: its groups change hands at once, each when its bodies have ended.
async fn sigterm(fleet: &mut Fleet, figures: &mut Figures) {
    let leader = fleet.leader("default").await;
    let led = fleet.led_by(leader);
    let at = mono();
    fleet.signal(leader, Signal::TERM);
    for group in led {
        let (_, released) = fleet.lost_after(leader, group, at, PATIENCE).await;
        let (_, again) = fleet.led_after(group, released, PATIENCE).await;
        figures.push((
            format!("SIGTERM: `{group}` led again after its release"),
            between(released, again),
            AFTER_RELEASE,
        ));
    }
    fleet.stopped(leader).await;
}

/// The leader of another group is killed: the lease has to end first.
async fn sigkill(fleet: &mut Fleet, server: &RedisServer, figures: &mut Figures) {
    let leader = fleet.leader("cleanup").await;
    let led = fleet.led_by(leader);
    let at = fleet.kill(leader, server).await;
    for group in led {
        let (_, again) = fleet.led_after(group, at, PATIENCE).await;
        figures.push((
            format!("kill -9: `{group}` led again"),
            between(at, again),
            AFTER_SILENCE,
        ));
    }
}

/// A leader stands still for three times its lease, and wakes up in a world that has gone on.
async fn freeze(fleet: &mut Fleet, figures: &mut Figures) {
    let leader = fleet.leader("cleanup").await;
    let led = fleet.led_by(leader);
    let at = mono();
    fleet.signal(leader, Signal::STOP);
    tokio::time::sleep(3 * TTL).await;
    let woken = mono();
    fleet.signal(leader, Signal::CONT);
    for group in led {
        let (_, again) = fleet.led_after(group, at, PATIENCE).await;
        figures.push((
            format!("SIGSTOP: `{group}` led again"),
            between(at, again),
            AFTER_SILENCE,
        ));
        let (_, until) = fleet.lost_after(leader, group, woken, PATIENCE).await;
        figures.push((format!("SIGSTOP: belief in `{group}` went on"), between(at, until), TTL));
    }
}

/// The server is gone for a while and comes back empty.
async fn data_loss(fleet: &mut Fleet, server: &mut RedisServer, figures: &mut Figures) {
    let mut leaders = Vec::new();
    for group in GROUPS {
        leaders.push((group, fleet.leader(group).await));
    }
    let at = mono();
    server.stop().await;
    let gone = mono();
    tokio::time::sleep(Duration::from_secs(5)).await;
    for (group, leader) in leaders {
        let (_, until) = fleet.lost_after(leader, group, at, PATIENCE).await;
        figures.push((
            format!("server gone: belief in `{group}` went on"),
            between(gone, until),
            TTL,
        ));
    }
    server.restart(false).await;
    let back = mono();
    for group in GROUPS {
        let (_, again) = fleet.led_after(group, back, PATIENCE).await;
        figures.push((
            format!("data gone: `{group}` led again"),
            between(back, again),
            AFTER_DATA_LOSS,
        ));
    }
}

//! Ticks that become tasks.

use std::collections::BTreeMap;

use leader_core::{Outcome, Ran};
use leader_tests::eventually;

use crate::stage::{Ground, SOON, Stage, Ticked};

on_each_store!(
    each_tick_becomes_one_task_that_a_worker_runs,
    a_hand_over_by_a_leader_that_is_gone_is_done_by_the_next,
);

fn by_tick(ticks: Vec<Ticked>) -> BTreeMap<jiff::Timestamp, Vec<Ticked>> {
    let mut by_tick: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for tick in ticks {
        by_tick.entry(tick.at).or_default().push(tick);
    }
    by_tick
}

/// Each tick between the first and the last was run to its end once, after an attempt that failed where one was to.
fn check(stage: &Stage) {
    let by_tick = by_tick(stage.ticks());
    let seconds: Vec<_> = by_tick.keys().map(|at| at.as_second()).collect();
    let all: Vec<_> = (seconds[0]..=*seconds.last().unwrap()).collect();
    assert_eq!(seconds, all, "none is passed over");
    // The last may be under way.
    for (at, runs) in by_tick.into_iter().rev().skip(1) {
        let attempts = if at.as_second() % 5 == 0 { 2 } else { 1 };
        assert_eq!(runs.len(), attempts, "{at}: {runs:?}");
        assert!(
            runs.is_sorted_by(|a, b| a.fence < b.fence && a.attempt < b.attempt),
            "{runs:?}"
        );
        assert!(runs.iter().all(|run| ["a", "b"].contains(&run.on.as_str())));
    }
}

async fn each_tick_becomes_one_task_that_a_worker_runs(ground: Ground) {
    let stage = Stage::new();
    let a = ground.instance("a", &stage).await.unwrap();
    let b = ground
        .instance("b", &stage)
        .tasks(|tasks| tasks.work(false))
        .await
        .unwrap();
    eventually(SOON, "seven ticks have run", async || by_tick(stage.ticks()).len() >= 7).await;
    check(&stage);
    assert!(stage.ticks().iter().all(|tick| tick.on == "a"), "only `a` works");
    // The ledger says that each was handed over, and the queue what became of it.
    let ledger = a.ledger("each_second").await.unwrap();
    let ran: Vec<_> = ledger.records.iter().map(|record| record.outcome).collect();
    assert!(
        ran.len() >= 6 && ran.iter().all(|outcome| *outcome == Outcome::Ran(Ran::Ok)),
        "{ran:?}"
    );
    let figures = b.tasks().figures("ticks").await.unwrap();
    assert!(figures.counts.done >= 6 && figures.counts.failed >= 1, "{figures:?}");
    assert_eq!(figures.dead, 0);
    b.shutdown().await;
    a.shutdown().await;
}

async fn a_hand_over_by_a_leader_that_is_gone_is_done_by_the_next(ground: Ground) {
    let stage = Stage::new();
    let a = ground.instance("a", &stage).await.unwrap();
    let b = ground.instance("b", &stage).await.unwrap();
    for round in 0..4 {
        let seen = by_tick(stage.ticks()).len();
        eventually(SOON, "two more ticks have run", async || {
            by_tick(stage.ticks()).len() >= seen + 2
        })
        .await;
        let leader = if a.is_leader("ticks") { &a } else { &b };
        if round < 3 {
            leader.step_down("ticks").await.unwrap();
        }
    }
    check(&stage);
    b.shutdown().await;
    a.shutdown().await;
}

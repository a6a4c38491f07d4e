//! What is due goes to the streams, by who leads, in order, and no more than there is room for.

use std::time::Duration;

use leader_core::__seam::{DispatchReply, FinishReply, Priority, TaskChange, TaskEnding, TaskStatus};

use super::bench::{LATER, TaskBench, bury, due_in, keys, lane, new, of_lane, usual};
use crate::bench::{Bench, holder};

on_each_store!(
    nobody_dispatches_without_the_lease,
    nothing_is_moved_before_it_is_due,
    what_is_due_goes_by_priority_and_then_by_due_time,
    a_step_moves_no_more_than_asked,
    a_stream_holds_no_more_than_its_room,
    a_lane_without_room_holds_up_no_other,
    what_has_ended_is_kept_within_its_bounds,
    dead_letters_are_kept_within_their_own_bounds,
    an_empty_shard_has_nothing_to_do,
);

async fn nobody_dispatches_without_the_lease(bench: Bench) {
    let tasks = TaskBench::on(bench).await;
    tasks.store_all(vec![new("a")]).await;
    let running = tasks.begin(of_lane("r", lane(Priority::High, "charge"))).await;
    tasks.store_all(vec![new("b")]).await;
    let not = async |who: &str, term| {
        let mut step = tasks.impatient();
        (step.holder, step.term, step.keep.ended) = (holder(who), term, 0);
        assert_eq!(tasks.store().dispatch(step).await.unwrap(), DispatchReply::NotYours);
    };
    not("other", tasks.term).await;
    not("leader", tasks.term + 1).await;
    not("leader", tasks.term - 1).await;
    not("leader", 0).await;
    tasks.bench.release(&tasks.leader, tasks.term, None).await;
    not("leader", tasks.term).await;
    assert_eq!(tasks.status("b").await, TaskStatus::Pending);
    assert_eq!(tasks.task("r").await.running.unwrap().fence, running.fence);
    let mut other = tasks.step();
    (other.holder, other.term) = (holder("other"), tasks.bench.acquire(&holder("other")).await);
    assert_eq!(tasks.dispatch_by(other).await.moved, 1);
}

async fn nothing_is_moved_before_it_is_due(bench: Bench) {
    let tasks = TaskBench::on(bench).await;
    tasks.store_all(vec![due_in("b", 2 * LATER), due_in("a", LATER)]).await;
    let first = tasks.task("a").await.due;
    let moves = tasks.dispatch().await;
    assert_eq!((moves.moved, moves.first_due, moves.next), (0, None, Some(first)));
    assert!(
        !moves.full && moves.lost.is_empty() && moves.silent_at.is_none(),
        "{moves:?}"
    );
    assert_eq!(tasks.take("worker", 9).await, []);
    let soon = Duration::from_millis(20);
    tasks.store_all(vec![due_in("c", soon)]).await;
    let due = tasks.task("c").await.due;
    loop {
        let moves = tasks.dispatch().await;
        assert_eq!(moves.moved == 1, moves.now >= due, "{moves:?}, due {due}");
        if moves.moved == 1 {
            assert_eq!((moves.first_due, moves.next), (Some(due), Some(first)));
            break;
        }
        assert_eq!(moves.next, Some(due));
    }
    assert_eq!(tasks.status("c").await, TaskStatus::Dispatched);
}

async fn what_is_due_goes_by_priority_and_then_by_due_time(bench: Bench) {
    let tasks = TaskBench::on(bench).await;
    let at = |key: &str, priority, seconds: i64| {
        let mut task = of_lane(key, lane(priority, "charge"));
        let past: jiff::Timestamp = "2026-03-02T12:00:00Z".parse().unwrap();
        task.due = leader_core::__seam::Due::At(crate::bench::after(past, seconds));
        task
    };
    let all = [
        at("low", Priority::Low, 0),
        at("n3", Priority::Normal, 3),
        at("n1", Priority::Normal, 1),
        at("b", Priority::Normal, 2),
        at("a", Priority::Normal, 2),
        at("high", Priority::High, 9),
    ];
    tasks.store_all(all.to_vec()).await;
    let mut order = Vec::new();
    let mut one = tasks.step();
    one.most = 1;
    for left in (0..all.len()).rev() {
        let moves = tasks.dispatch_by(one.clone()).await;
        assert_eq!(
            (moves.moved, moves.full, moves.next.is_some()),
            (1, false, left > 0),
            "{moves:?}"
        );
        let all = tasks.list(TaskStatus::Dispatched).await;
        let new: Vec<_> = all.into_iter().filter(|key| !order.contains(key)).collect();
        assert_eq!((new.len(), moves.first_due), (1, Some(tasks.task(&new[0]).await.due)));
        order.extend(new);
    }
    assert_eq!(order, ["high", "n1", "a", "b", "n3", "low"]);
    // The streams keep it.
    assert_eq!(keys(&tasks.take("worker", 9).await), ["n1", "a", "b", "n3"]);
    // The first of all lanes, whichever lane is the first.
    tasks
        .store_all(vec![at("x", Priority::Low, 1), at("y", Priority::High, 8)])
        .await;
    let moves = tasks.dispatch().await;
    assert_eq!((moves.moved, moves.first_due), (2, Some(tasks.task("x").await.due)));
}

async fn a_step_moves_no_more_than_asked(bench: Bench) {
    let tasks = TaskBench::on(bench).await;
    tasks.store_all((0..10).map(|n| new(&format!("{n}"))).collect()).await;
    let mut step = tasks.step();
    step.most = 3;
    let mut counts = Vec::new();
    loop {
        let moves = tasks.dispatch_by(step.clone()).await;
        counts.push(moves.moved);
        let Some(next) = moves.next else { break };
        assert!(next <= moves.now, "more is due: {moves:?}");
    }
    assert_eq!(counts, [3, 3, 3, 1]);
    assert_eq!(tasks.figures().await.counts.dispatched, 10);
    step.most = 0;
    tasks.store_all(vec![new("x")]).await;
    assert_eq!(tasks.dispatch_by(step).await.moved, 0);
}

async fn a_stream_holds_no_more_than_its_room(bench: Bench) {
    let tasks = TaskBench::on(bench).await;
    tasks.store_all((0..5).map(|n| new(&format!("{n}"))).collect()).await;
    let mut step = tasks.step();
    step.room = 2;
    let moves = tasks.dispatch_by(step.clone()).await;
    assert_eq!((moves.moved, moves.full, moves.next), (2, true, None));
    assert_eq!(tasks.dispatch_by(step.clone()).await.moved, 0);
    // What is begun takes no room.
    let taken = tasks.take("worker", 1).await;
    assert_eq!(keys(&taken), ["0"]);
    let moves = tasks.dispatch_by(step.clone()).await;
    assert_eq!((moves.moved, moves.full, moves.next), (1, true, None));
    let taken = [taken, tasks.take("worker", 9).await].concat();
    assert_eq!(keys(&taken), ["0", "1", "2"]);
    assert_eq!(tasks.finish(&taken[0], TaskEnding::Done).await, FinishReply::Taken);
    assert_eq!(tasks.finish(&taken[2], TaskEnding::Done).await, FinishReply::Taken);
    // A failed one waits for its time, and not in the stream.
    assert_eq!(
        tasks.finish(&taken[1], super::bench::retry(LATER)).await,
        FinishReply::Taken
    );
    step.most = 1;
    let moves = tasks.dispatch_by(step.clone()).await;
    assert_eq!((moves.moved, moves.full), (1, false));
    for taken in tasks.take("worker", 9).await {
        tasks.finish(&taken, TaskEnding::Done).await;
    }
    let moves = tasks.dispatch_by(step).await;
    assert_eq!((moves.moved, moves.full), (1, false));
    assert_eq!(moves.next, Some(tasks.task("1").await.due));
    // A stream without room is full of nothing, as long as no more is due.
    let mut none = tasks.step();
    none.room = 0;
    let moves = tasks.dispatch_by(none).await;
    let due = tasks.task("1").await.due;
    assert_eq!((moves.full, moves.next), (false, Some(due)), "{moves:?}");
}

async fn a_lane_without_room_holds_up_no_other(bench: Bench) {
    let tasks = TaskBench::on(bench).await;
    let (other, low) = (lane(Priority::Normal, "mail"), lane(Priority::Low, "charge"));
    tasks.store_all((0..4).map(|n| new(&format!("{n}"))).collect()).await;
    tasks
        .store_all(vec![of_lane("m", other.clone()), of_lane("l", low.clone())])
        .await;
    let mut step = tasks.step();
    step.room = 3;
    let moves = tasks.dispatch_by(step).await;
    assert_eq!((moves.moved, moves.full), (5, true));
    let taken = tasks.take_by(tasks.wish("worker", 9, &[other, low])).await.taken;
    assert_eq!(keys(&taken), ["m", "l"]);
}

async fn what_has_ended_is_kept_within_its_bounds(bench: Bench) {
    let mut tasks = TaskBench::on(bench).await;
    tasks.keep.ended = 2;
    for key in ["a", "b", "c", "d"] {
        tasks.live(key, TaskEnding::Done).await;
        tasks.tick().await;
    }
    tasks.store_all(vec![due_in("e", LATER)]).await;
    tasks.change("e", TaskChange::Cancel).await;
    tasks.live("dead", bury()).await;
    let mut step = tasks.step();
    tasks.dispatch_by(step.clone()).await;
    assert_eq!(tasks.list(TaskStatus::Done).await, ["d"]);
    assert_eq!(tasks.list(TaskStatus::Cancelled).await, ["e"]);
    assert_eq!(
        (tasks.look("a").await, tasks.status("dead").await),
        (None, TaskStatus::Dead)
    );
    step.keep.ended_for = Duration::ZERO;
    tasks.dispatch_by(step).await;
    assert_eq!((tasks.look("d").await, tasks.look("e").await), (None, None));
    assert_eq!(tasks.list(TaskStatus::Dead).await, ["dead"]);
    // What waits, or runs, is not of these.
    let counts = tasks.figures().await.counts;
    assert_eq!((counts.done, counts.cancelled, counts.dead), (4, 1, 1));
}

async fn dead_letters_are_kept_within_their_own_bounds(bench: Bench) {
    let tasks = TaskBench::on(bench).await;
    tasks.live("done", TaskEnding::Done).await;
    for key in ["a", "b", "c"] {
        tasks.live(key, bury()).await;
        tasks.tick().await;
    }
    let mut step = tasks.step();
    step.keep.dead = 2;
    tasks.dispatch_by(step.clone()).await;
    assert_eq!(tasks.list(TaskStatus::Dead).await, ["b", "c"]);
    step.keep.dead_for = Duration::ZERO;
    tasks.dispatch_by(step).await;
    assert_eq!(tasks.list(TaskStatus::Dead).await, [""; 0]);
    assert_eq!(
        (tasks.look("c").await, tasks.status("done").await),
        (None, TaskStatus::Done)
    );
    assert_eq!(tasks.figures().await.dead, 0);
}

async fn an_empty_shard_has_nothing_to_do(bench: Bench) {
    let tasks = TaskBench::on(bench).await;
    let moves = tasks.dispatch_by(tasks.impatient()).await;
    assert_eq!(
        (moves.moved, moves.next, moves.full, moves.silent_at),
        (0, None, false, None)
    );
    assert_eq!(tasks.take("worker", 9).await, []);
    assert!(!tasks.take_by(tasks.wish("worker", 9, &[usual()])).await.more);
    let figures = tasks.figures().await;
    assert_eq!((figures.pending, figures.unfinished.len()), (0, 0));
}

//! The leader's link stalls for four leases' time.

use std::time::Duration;

use leader_core::{Lost, Moment};
use leader_tests::{Direction, RedisServer, eventually};

use crate::dose::{Chance, dose};
use crate::observer::{Observer, Sampler};
use crate::rig::{Fleet, Log, Member, PATIENCE, RESTLESS, TTL, ms, now, side_by_side, spread, turn};

const STALL: Duration = ms(8_000);
/// How far a body's own look at the clock may lie behind the guard's look that let this one poll begin.
const PREEMPTION: Duration = ms(20);
/// How soon a healed instance knows its place again.
const BACK: Duration = ms(5_000);

/// What one stall has shown.
struct Stalled {
    /// How much earlier than the lease belief ended.
    ahead: Duration,
    /// How much later than the lease's end another was elected.
    vacancy: Duration,
    /// How long after the stall the instance stood by again.
    back: Duration,
    polls: usize,
    late_polls: usize,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fault_a_a_stalled_leader_stops_believing_before_its_lease_can_end() {
    let _turn = turn().await;
    let (pairs, rounds) = dose().stalls;
    let chance = Chance::of("stall");
    let server = RedisServer::start().await;
    let (port, observer, log) = (server.port(), Observer::of(&server).await, Log::new());
    let directions = [Direction::ToServer, Direction::ToClient, Direction::Both];
    let stalled = side_by_side(directions.len() * pairs, |index| {
        let fleet = Fleet::new(format!("stall-{index}"), RESTLESS, &log);
        let direction = directions[index % directions.len()];
        let rig = (observer.clone(), chance.fork());
        async move { (direction, in_turn(&fleet, port, direction, rounds, rig).await) }
    })
    .await;
    for direction in directions {
        let of = |pick: fn(&Stalled) -> Duration| {
            let all = stalled.iter().filter(|(of, _)| *of == direction);
            spread(all.flat_map(|(_, stalls)| stalls.iter().map(pick)).collect())
        };
        println!(
            "{direction:?}: belief ended before the lease by {}",
            of(|one| one.ahead)
        );
        println!(
            "{direction:?}: another led after the lease's end by {}",
            of(|one| one.vacancy)
        );
        println!("{direction:?}: a standby again after {}", of(|one| one.back));
    }
    let all = || stalled.iter().flat_map(|(_, stalls)| stalls);
    println!(
        "{} stalls, {} polls of bodies, {} begun before trust's end and noted after it",
        all().count(),
        all().map(|one| one.polls).sum::<usize>(),
        all().map(|one| one.late_polls).sum::<usize>(),
    );
    assert_eq!(all().count(), directions.len() * pairs * rounds);
    log.judge("stall");
}

/// One pair: whoever leads is stalled, round for round.
async fn in_turn(
    fleet: &Fleet,
    port: u16,
    direction: Direction,
    rounds: usize,
    (observer, chance): (Observer, Chance),
) -> Vec<Stalled> {
    let (mut leader, mut standby) = fleet.pair(port).await;
    let mut stalled = Vec::new();
    for _ in 0..rounds {
        eventually(PATIENCE, "a body runs", || async {
            leader.polls.lock().unwrap().contains_key(&leader.term())
        })
        .await;
        tokio::time::sleep(chance.below(ms(1_000))).await;
        stalled.push(stall(fleet, &leader, &standby, &observer, direction).await);
        (leader, standby) = (standby, leader);
    }
    // The one that was stalled last can lead again.
    let at = now();
    leader.step_down().await;
    standby.granted_after(at).await;
    leader.stop().await;
    standby.stop().await;
    stalled
}

async fn stall(fleet: &Fleet, leader: &Member, standby: &Member, observer: &Observer, direction: Direction) -> Stalled {
    let term = leader.term();
    let sampler = Sampler::of(&leader.instance, RESTLESS);
    let at = now();
    leader.proxy.stall(direction);
    let lasted = lease_of(fleet, leader, observer).await;
    let (ended, reason) = leader.lost(term).await;
    let seen = sampler.stop();
    assert_eq!(reason, Lost::Expired);
    assert!(
        ended <= lasted,
        "belief outlived the lease by {:?}",
        ended.since(lasted)
    );
    assert!(seen.yes > 0 && seen.no > 0, "{seen:?}");
    assert!(seen.last_yes <= ended, "{:?} late", seen.last_yes.since(ended));
    let (next, granted) = standby.granted_after(at).await;
    assert!(granted > ended && next > term);

    tokio::time::sleep(STALL.saturating_sub(now().since(at))).await;
    assert_eq!(leader.grants().last().unwrap().0, term);
    leader.proxy.heal();
    let back = leader.stands_by(standby).await;
    assert!(back <= BACK, "a standby only after {back:?}");
    let lost = standby.losses().iter().any(|(of, ..)| *of == next);
    assert!(
        !lost && standby.is_leader(),
        "the leader was disturbed: {standby:?} {leader:?}"
    );

    let polls = leader.polls.lock().unwrap()[&term].clone();
    let late: Vec<_> = polls.iter().filter(|poll| **poll >= ended).collect();
    assert!(late.len() <= 1, "polled {} times after its trust", late.len());
    assert!(late.iter().all(|poll| poll.since(ended) < PREEMPTION), "{late:?}");
    Stalled {
        ahead: lasted.since(ended),
        vacancy: granted.since(lasted),
        back,
        polls: polls.len(),
        late_polls: late.len(),
    }
}

/// Watches the lease until it no longer names the leader: until when it lasted at least.
async fn lease_of(fleet: &Fleet, leader: &Member, observer: &Observer) -> Moment {
    let mut lasted = Moment::ZERO;
    let began = now();
    loop {
        let look = observer.look(&fleet.namespace, fleet.group).await;
        if !look.is_held_by(&leader.id) {
            assert!(lasted > Moment::ZERO && lasted < look.heard);
            return lasted;
        }
        lasted = lasted.max(look.sent).max(look.lasts_until());
        assert!(now().since(began) < 4 * TTL, "the lease does not end");
        tokio::time::sleep(ms(5)).await;
    }
}

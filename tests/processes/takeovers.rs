//! How soon a group is led again: after its leader was told to stop, and after it was killed.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use leader_tests::RedisServer;
use rustix::process::Signal;
use tokio::task::JoinSet;

use crate::fleet::{Fleet, TTL, between, mono};
use crate::stalls::Stalls;
use leader_tests::Dice;

const GROUP: &str = "default";
/// How many processes a fleet has.
const NODES: usize = 3;
/// How long a condition that has a bound of its own is waited for.
const PATIENCE: Duration = Duration::from_secs(20);

/// The promises.
pub const AFTER_RELEASE: Duration = Duration::from_millis(100);
pub const AFTER_KILL: Duration = Duration::from_millis(2500);

/// How a leader ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// SIGTERM: it drains and gives its lease back.
    Stopped,
    /// SIGKILL: its lease has to end by itself.
    Killed,
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Stopped => "stopped",
            Self::Killed => "killed",
        })
    }
}

/// One change of hands.
#[derive(Clone, Debug)]
pub struct Takeover {
    /// The one that led and the one that leads.
    pub who: [String; 2],
    /// From the end of belief before the release, or from just before the kill, to the new leader's belief.
    pub took: Duration,
    /// The rest of the lease at a kill, as the server told it.
    pub rest: Duration,
    /// From the lease's own end to the new leader's belief, at the most.
    pub beyond: Duration,
    /// How long, while the group was vacant, the machine kept a thread of ours waiting that was due.
    pub stalled: Duration,
}

impl fmt::Display for Takeover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            who,
            took,
            rest,
            beyond,
            stalled,
        } = self;
        let [before, after] = who;
        write!(
            f,
            "{before} → {after}: {took:?}, rest of the lease {rest:?}, beyond its end {beyond:?}; the machine stood still for {stalled:?}"
        )
    }
}

/// Makes `count` leaders end, in `fleets` fleets side by side on a server that must not be young.
pub async fn takeovers(server: &Arc<RedisServer>, way: Way, fleets: usize, count: usize, seed: u64) -> Vec<Takeover> {
    let left = Arc::new(AtomicUsize::new(count));
    let stalls = Arc::new(Stalls::watch());
    let mut tasks = JoinSet::new();
    for number in 0..fleets.min(count) {
        let namespace = format!("takeover-{way}-{number}");
        let dice = Dice::new(seed ^ ((number as u64) << 32));
        let (server, left, stalls) = (Arc::clone(server), Arc::clone(&left), Arc::clone(&stalls));
        tasks.spawn(in_fleet(server, way, namespace, dice, left, stalls));
    }
    tasks.join_all().await.concat()
}

async fn in_fleet(
    server: Arc<RedisServer>,
    way: Way,
    namespace: String,
    mut dice: Dice,
    left: Arc<AtomicUsize>,
    stalls: Arc<Stalls>,
) -> Vec<Takeover> {
    let mut fleet = Fleet::with(&server, &namespace, &[GROUP], &[]);
    (0..NODES).for_each(|_| fleet.join(true));
    let mut all = Vec::new();
    // What is left of the fleet ends with its handle: the last to join may not have got as far as to hear SIGTERM.
    while left
        .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1))
        .is_ok()
    {
        let (leader, _) = fleet.led_after(GROUP, 0, PATIENCE).await;
        fleet.all_started(PATIENCE).await;
        // The leader ends at any point between two of its renewals.
        tokio::time::sleep(dice.span(TTL / 8, TTL / 4)).await;
        let vacancy = match way {
            Way::Stopped => stopped(&mut fleet, leader).await,
            Way::Killed => killed(&mut fleet, leader, &server).await,
        };
        let Vacancy {
            next,
            began,
            end,
            again,
        } = vacancy;
        all.push(Takeover {
            who: [leader, next].map(|node| fleet.id(node).to_owned()),
            took: between(began, again),
            rest: between(began, end),
            beyond: between(end, again),
            stalled: stalls.within(end, again),
        });
        fleet.join(false);
    }
    all
}

/// The instants of a change of hands, and who leads after it.
struct Vacancy {
    next: usize,
    /// The end of belief before the release, or just before the kill.
    began: u64,
    /// The end of the lease at the earliest.
    end: u64,
    again: u64,
}

async fn stopped(fleet: &mut Fleet, leader: usize) -> Vacancy {
    let at = mono();
    fleet.signal(leader, Signal::TERM);
    let (_, released) = fleet.lost_after(leader, GROUP, at, PATIENCE).await;
    let (next, again) = fleet.led_after(GROUP, released, PATIENCE).await;
    fleet.stopped(leader).await;
    let (began, end) = (released, released);
    Vacancy {
        next,
        began,
        end,
        again,
    }
}

async fn killed(fleet: &mut Fleet, leader: usize, server: &RedisServer) -> Vacancy {
    let began = fleet.kill(leader, server).await;
    let end = fleet.ends[&(fleet.id(leader).to_owned(), GROUP.to_owned())];
    let (next, again) = fleet.led_after(GROUP, began, PATIENCE).await;
    Vacancy {
        next,
        began,
        end,
        again,
    }
}

/// Median, p99 and greatest, by nearest rank.
pub fn percentiles(mut values: Vec<Duration>) -> [Duration; 3] {
    values.sort_unstable();
    let rank = |percent: usize| values[(values.len() * percent).div_ceil(100).max(1) - 1];
    [rank(50), rank(99), rank(100)]
}

//! One group without a leader, and everybody else waiting for it.

use std::time::Duration;

use leader_core::{Clock, Moment, Timing};
use leader_tests::RedisServer;
use redis::Value;

use super::commands::{Commands, LEASE_END};
use super::crowd::Crowd;

/// What one vacancy took.
#[derive(Debug)]
pub struct Vacancy {
    /// From the kill, or from the release, until the group was led again.
    pub took: Duration,
    /// From the lease's own end, or from the release, until the group was led again.
    pub beyond: Duration,
    /// From before the kill or the release until everybody knew the new leader.
    pub all: Commands,
    /// The part of it that came from just before the lease's end, or from before the release.
    pub race: Commands,
    /// How long that part took.
    pub race_took: Duration,
}

impl Vacancy {
    /// Scripts of the race that renewed nothing, gave nothing back and wrote no line of the roster.
    pub fn campaigns(&self) -> u64 {
        let others = self.race.renewals() + self.race.releases() + self.race.enrolments();
        self.race.scripts().saturating_sub(others)
    }
}

/// Kills the leader of the crowd's first group like `kill -9` would; the crowd goes on without it.
pub async fn kill(server: &RedisServer, namespace: &str, crowd: &mut Crowd) -> Vacancy {
    let group = crowd.groups[0].clone();
    let term = crowd.agrees(&group, 0, None).await;
    let leader = crowd.leader(&group).expect("it is led");
    let before = Commands::until_now(server).await;
    let at = now();
    leader_core::testing::kill(&crowd.instances.swap_remove(leader));
    let end = end_of_lease(server, namespace, &group).await;
    tokio::time::sleep(end.since(now()).saturating_sub(Duration::from_millis(30))).await;
    let (ending, race_began) = (Commands::until_now(server).await, now());
    let again = crowd.turn(&group, true, at).await;
    crowd.agrees(&group, term, None).await;
    let (after, calm) = (Commands::until_now(server).await, now());
    Vacancy {
        took: again.since(at),
        beyond: again.since(end),
        all: after.since(&before),
        race: after.since(&ending),
        race_took: calm.since(race_began),
    }
}

/// The leader of the crowd's first group steps down.
pub async fn step_down(server: &RedisServer, crowd: &Crowd) -> Vacancy {
    let group = crowd.groups[0].clone();
    let term = crowd.agrees(&group, 0, None).await;
    let leader = crowd.leader(&group).expect("it is led");
    let (before, began) = (Commands::until_now(server).await, now());
    crowd.instances[leader].step_down(&group).await.expect("it leads");
    let released = crowd.turn(&group, false, began).await;
    let again = crowd.turn(&group, true, released).await;
    // It stays out of the race, and does not ask, for a while.
    crowd.agrees(&group, term, Some(leader)).await;
    let (after, calm) = (Commands::until_now(server).await, now());
    let all = after.since(&before);
    Vacancy {
        took: again.since(released),
        beyond: again.since(released),
        race: all.clone(),
        all,
        race_took: calm.since(began),
    }
}

/// How many commands a crowd of one group sends each second while nothing happens.
pub async fn calm(server: &RedisServer, timing: Timing) -> f64 {
    let before = (Commands::until_now(server).await, now());
    tokio::time::sleep(timing.ttl()).await;
    let after = (Commands::until_now(server).await, now());
    #[allow(clippy::cast_precision_loss, reason = "a small number")]
    let sent = after.0.since(&before.0).sent() as f64;
    sent / after.1.since(before.1).as_secs_f64()
}

fn now() -> Moment {
    Clock::system().now()
}

/// When the lease of a killed leader ends by itself: a renewal may have been on its way.
async fn end_of_lease(server: &RedisServer, namespace: &str, group: &str) -> Moment {
    let key = format!("{namespace}:leader:{group}");
    let ask = || async {
        match server.command(&[LEASE_END, &key]).await {
            Value::Int(end) => end,
            other => panic!("{LEASE_END}: {other:?}"),
        }
    };
    let mut end = ask().await;
    loop {
        tokio::time::sleep(Duration::from_millis(20)).await;
        let again = ask().await;
        if again == end {
            let left = end - jiff::Timestamp::now().as_millisecond();
            let left = u64::try_from(left).unwrap_or_else(|_| panic!("{key} ends at {end}, in {left} ms"));
            return now() + Duration::from_millis(left);
        }
        end = again;
    }
}

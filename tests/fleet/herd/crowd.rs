//! Many instances in one process, and what they tell of leading.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use leader_core::{Bootstrap, Event, Instance, Moment, Timing};
use leader_tests::{RedisServer, eventually};
use tokio::task::JoinSet;

const PATIENCE: Duration = Duration::from_secs(60);

/// When belief in a group began or ended.
#[derive(Clone, Debug)]
struct Turn {
    group: String,
    at: Moment,
    elected: bool,
}

/// How many there are, of what, and what they get besides.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    pub namespace: &'static str,
    pub instances: usize,
    pub groups: usize,
    pub timing: Timing,
    pub settings: fn(Bootstrap) -> Bootstrap,
}

/// Instances that all campaign in the same groups, and in no other.
#[derive(Debug)]
pub struct Crowd {
    pub instances: Vec<Instance>,
    pub groups: Vec<String>,
    turns: Arc<Mutex<Vec<Turn>>>,
}

impl Crowd {
    /// Starts it, and waits until every group is led and everybody knows by whom.
    pub async fn start(server: &RedisServer, plan: Plan) -> Self {
        let groups: Vec<_> = (0..plan.groups).map(|n| format!("group-{n}")).collect();
        let turns: Arc<Mutex<Vec<Turn>>> = Arc::default();
        let mut starts = JoinSet::new();
        for number in 0..plan.instances {
            let bootstrap = leader_core::bootstrap(server.url())
                .namespace(plan.namespace)
                .instance_id(format!("instance-{number}"))
                .service("herd")
                .single_process()
                .first_start(true)
                .timing(plan.timing)
                .groups(groups.clone())
                .campaign_only(groups.clone());
            let (mut events, turns) = (bootstrap.events(), Arc::clone(&turns));
            tokio::spawn(async move {
                while let Ok(stamped) = events.recv().await {
                    let turn = match stamped.event {
                        Event::Elected { group, .. } => Turn {
                            group: group.to_string(),
                            at: stamped.at,
                            elected: true,
                        },
                        Event::Lost { group, ended, .. } => Turn {
                            group: group.to_string(),
                            at: ended,
                            elected: false,
                        },
                        _ => continue,
                    };
                    turns.lock().expect("nobody panics with it").push(turn);
                }
            });
            starts.spawn((plan.settings)(bootstrap).into_future());
        }
        let instances = starts.join_all().await;
        let instances = instances.into_iter().map(|start| start.expect("it starts")).collect();
        let crowd = Self {
            instances,
            groups,
            turns,
        };
        for group in &crowd.groups {
            crowd.agrees(group, 0, None).await;
        }
        crowd
    }

    /// Waits until a group is led in a term above `after`, and every instance but `except` knows it; the term.
    pub async fn agrees(&self, group: &str, after: u64, except: Option<usize>) -> u64 {
        let mut term = 0;
        eventually(PATIENCE, &format!("everybody knows who leads {group}"), || {
            let asked = self.instances.iter().enumerate().filter(|(at, _)| Some(*at) != except);
            let terms = asked.map(|(_, instance)| {
                let status = instance.watch(group).expect("its group").current();
                if status.leader.is_some() { status.term } else { 0 }
            });
            let (least, most) = terms.fold((u64::MAX, 0), |(least, most), term| (least.min(term), most.max(term)));
            term = most;
            let agreed = least == most && most > after && self.leader(group).is_some();
            async move { agreed }
        })
        .await;
        term
    }

    /// Who leads a group.
    pub fn leader(&self, group: &str) -> Option<usize> {
        self.instances.iter().position(|instance| instance.is_leader(group))
    }

    /// When belief in a group began or ended for the first time after `after`.
    pub async fn turn(&self, group: &str, elected: bool, after: Moment) -> Moment {
        let mut at = None;
        eventually(PATIENCE, &format!("{group} changes hands"), || {
            let turns = self.turns.lock().expect("nobody panics with it");
            let of = turns
                .iter()
                .filter(|turn| turn.group == group && turn.elected == elected && turn.at > after);
            at = of.map(|turn| turn.at).min();
            let is_there = at.is_some();
            async move { is_there }
        })
        .await;
        at.expect("it is there")
    }

    pub async fn shutdown(self) {
        let mut ends = JoinSet::new();
        for instance in self.instances {
            ends.spawn(async move { instance.shutdown().await });
        }
        ends.join_all().await;
    }
}

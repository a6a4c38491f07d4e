//! The acts themselves: whose group it is, what is refused early, and the store's answer.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use super::{Backfilling, Cancelling, ControlError, Done, Pausing, Requested, Resuming, Target, Triggering};
use crate::instance::{lookup, schedules};
use crate::names::{GroupName, JobName};
use crate::runtime::fleet;
use crate::runtime::shared::Shared;
use crate::schedule::Schedule;
use crate::store::{ActRequest, Acted, Deed, GroupControl, Store};

/// The most ticks that one request may ask for.
const MOST_TICKS: u64 = 10_000;
/// How far a clock may be ahead of the store's for its "now" to be the store's: more than the clocks of a fleet differ that claims ticks.
const CLOCKS: SignedDuration = SignedDuration::from_secs(5);

/// Who wants something, and why.
#[derive(Clone, Debug)]
pub(super) struct Wish {
    pub(super) shared: Arc<Shared>,
    pub(super) by: String,
    pub(super) reason: String,
}

type Answer<T> = Result<T, ControlError>;

impl Wish {
    /// The group of a scheduled job, as this instance or the roster knows it.
    async fn group_of(&self, store: &dyn Store, job: &str) -> Answer<(GroupName, JobName)> {
        if let Ok(spec) = lookup::scheduled(&self.shared, job) {
            return Ok((spec.group.clone(), spec.name.clone()));
        }
        let unknown = || ControlError::UnknownJob { job: job.to_owned() };
        let members = fleet::members(&store.roster().await?);
        let mut groups = members.iter().flat_map(|member| &member.jobs);
        let has_ticks = |schedule: &String| schedule != "while leading" && schedule != fleet::HANDLER;
        let name = JobName::new(job.to_owned()).map_err(|_| unknown())?;
        if let Some((group, _)) = groups.find(|(_, jobs)| jobs.get(job).is_some_and(has_ticks)) {
            return Ok((GroupName::new(group.clone()).map_err(|_| unknown())?, name));
        }
        let made = schedules::named(&self.shared, store, job).await?;
        let (group, _) = made.into_iter().next().ok_or_else(unknown)?;
        Ok((group, name))
    }

    /// The schedule of a job of this instance, or of one that was made at run time.
    async fn schedule_of(&self, store: &dyn Store, job: &str) -> Answer<Option<Schedule>> {
        if let Ok(spec) = lookup::scheduled(&self.shared, job) {
            return Ok(Some(spec.rule.schedule.clone()));
        }
        let made = schedules::named(&self.shared, store, job).await?;
        let line = made.into_iter().find_map(|(_, entry)| entry.line);
        Ok(line.and_then(|line| line.schedule.parse().ok()))
    }

    async fn groups(&self, store: &dyn Store) -> Answer<BTreeSet<GroupName>> {
        let here = self.shared.gates.iter().map(|gate| gate.group().clone());
        let members = fleet::members(&store.roster().await?);
        let named = members
            .iter()
            .flat_map(|member| member.jobs.keys().chain(&member.candidate_for).chain(&member.leads));
        let there = named.filter_map(|name| GroupName::new(name.clone()).ok());
        Ok(here.chain(there).collect())
    }

    async fn places(&self, store: &dyn Store, target: &Target) -> Answer<Vec<(GroupName, Option<JobName>)>> {
        match target {
            Target::Job(name) => {
                let (group, job) = self.group_of(store, name).await?;
                Ok(vec![(group, Some(job))])
            }
            Target::Group(name) => {
                if let Some(gate) = self.shared.gates.get(name) {
                    return Ok(vec![(gate.group().clone(), None)]);
                }
                let known = self
                    .groups(store)
                    .await?
                    .into_iter()
                    .find(|group| group.as_str() == name);
                let unknown = || ControlError::UnknownGroup { group: name.clone() };
                Ok(vec![(known.ok_or_else(unknown)?, None)])
            }
            Target::All => Ok(self
                .groups(store)
                .await?
                .into_iter()
                .map(|group| (group, None))
                .collect()),
        }
    }

    async fn act(&self, store: &dyn Store, group: GroupName, job: Option<JobName>, deed: Deed) -> Answer<Option<Done>> {
        let request = ActRequest {
            group: group.clone(),
            job,
            deed,
            by: self.by.clone(),
            reason: self.reason.clone(),
        };
        match store.act(request).await? {
            Acted::Done { number, at, before } => Ok(Some(Done {
                group,
                number,
                at,
                before,
            })),
            Acted::Nothing => Ok(None),
            Acted::Full { open } => Err(ControlError::TooManyRequests {
                group: group.to_string(),
                open,
            }),
            Acted::Untimely { now } => Err(match deed {
                Deed::Backfill { to, .. } => ControlError::NotPast { to, now },
                Deed::Pause { until, .. } => ControlError::UntilPassed {
                    until: until.unwrap_or(now),
                    now,
                },
                _ => ControlError::NotPaused {
                    target: group.to_string(),
                },
            }),
        }
    }

    /// The same in each place; an error tells what was done before it.
    async fn act_at(
        &self,
        store: &dyn Store,
        places: Vec<(GroupName, Option<JobName>)>,
        deed: Deed,
    ) -> Answer<Vec<Done>> {
        let mut all = Vec::new();
        for (group, job) in places {
            match self.act(store, group, job, deed).await {
                Ok(done) => all.extend(done),
                Err(ControlError::Store { source, .. }) => return Err(ControlError::Store { source, done: all }),
                Err(error) => return Err(error),
            }
        }
        Ok(all)
    }

    pub(super) async fn read(&self, store: &dyn Store) -> Answer<BTreeMap<GroupName, GroupControl>> {
        let mut all = BTreeMap::new();
        for group in self.groups(store).await? {
            let control = store.control(&group).await?;
            all.insert(group, control);
        }
        Ok(all)
    }
}

impl Pausing {
    pub(super) async fn pause(self, store: &dyn Store) -> Answer<Vec<Done>> {
        // The store keeps whole milliseconds.
        let until = self.until.map(whole_millis);
        let places = self.wish.places(store, &self.target).await?;
        let deed = Deed::Pause { gap: self.gap, until };
        self.wish.act_at(store, places, deed).await
    }
}

impl Resuming {
    pub(super) async fn resume(self, store: &dyn Store) -> Answer<Vec<Done>> {
        let places = self.wish.places(store, &self.target).await?;
        let done = self.wish.act_at(store, places, Deed::Resume).await?;
        if done.is_empty() {
            let target = self.target.to_string();
            return Err(ControlError::NotPaused { target });
        }
        Ok(done)
    }
}

impl Triggering {
    pub(super) async fn trigger(self, store: &dyn Store) -> Answer<Requested> {
        let (group, job) = self.wish.group_of(store, &self.job).await?;
        let done = self.wish.act(store, group, Some(job), Deed::Trigger).await?;
        let Done { group, number, at, .. } = done.ok_or(ControlError::UnknownJob { job: self.job })?;
        Ok(Requested {
            group,
            id: number,
            at,
            runs: 1,
        })
    }
}

impl Backfilling {
    pub(super) async fn backfill(self, store: &dyn Store) -> Answer<Requested> {
        let (group, job) = self.wish.group_of(store, &self.job).await?;
        let Some(schedule) = self.wish.schedule_of(store, job.as_str()).await? else {
            return Err(ControlError::NotHere { job: self.job });
        };
        let (from, mut to) = (whole_millis(self.from), whole_millis(self.to));
        let before = from.checked_sub(SignedDuration::from_nanos(1)).unwrap_or(from);
        loop {
            let ticks = if from <= to { schedule.count(before, to) } else { 0 };
            let Some(first) = schedule.next(before).filter(|_| ticks > 0) else {
                let (from, to) = (self.from, self.to);
                return Err(ControlError::NoTicks {
                    job: self.job,
                    from,
                    to,
                });
            };
            if ticks > MOST_TICKS {
                return Err(ControlError::TooManyTicks {
                    job: self.job,
                    ticks,
                    most: MOST_TICKS,
                });
            }
            let deed = Deed::Backfill { from, to };
            match self.wish.act(store, group.clone(), Some(job.clone()), deed).await {
                Ok(Some(Done { number, .. })) => {
                    return Ok(Requested {
                        group,
                        id: number,
                        at: first,
                        runs: ticks,
                    });
                }
                Ok(None) => return Err(ControlError::UnknownJob { job: self.job }),
                // "Until now", by a clock that is ahead of the store's.
                Err(ControlError::NotPast { now, .. }) if to > now && to.duration_since(now) <= CLOCKS => to = now,
                Err(error) => return Err(error),
            }
        }
    }
}

impl Cancelling {
    pub(super) async fn cancel(self, store: &dyn Store) -> Answer<Done> {
        let (group, request) = (self.group, self.request);
        let places = self.wish.places(store, &Target::group(group.clone())).await?;
        let done = self.wish.act_at(store, places, Deed::Cancel { request }).await?;
        done.into_iter().next().ok_or(ControlError::NotOpen { group, request })
    }
}

fn whole_millis(at: Timestamp) -> Timestamp {
    Timestamp::from_millisecond(at.as_millisecond()).unwrap_or(at)
}

//! What is refused before the store is asked, and what its answer means.

use std::sync::Arc;

use super::{NewSchedule, Scheduled, SchedulingError, Unscheduled, Unscheduling, When, find};
use crate::job::handler::{Handler, NOTHING, read};
use crate::names::{GroupName, JobName};
use crate::runtime::fleet;
use crate::runtime::shared::Shared;
use crate::schedule::{Days, Schedule, ScheduleError, Zone};
use crate::store::{MAX_PAYLOAD, MadeReply, MakeRequest, Making, Store, Writer};

/// A schedule that can be made, as far as this instance can tell by itself.
pub(super) struct Wish {
    shared: Arc<Shared>,
    name: JobName,
    handler: JobName,
    group: String,
    schedule: Schedule,
    payload: String,
    by: String,
}

type Answer<T> = Result<T, SchedulingError>;

impl Wish {
    pub(super) fn of<H: Handler>(new: NewSchedule<H>) -> Answer<Self> {
        let name = JobName::new(new.name.clone())?;
        let schedule = schedule(&new).map_err(|error| SchedulingError::Schedule {
            name: new.name.clone(),
            error,
        })?;
        let now = new.shared.fleet_now();
        if schedule.next(now).is_none() {
            let schedule = schedule.to_string();
            return Err(SchedulingError::NeverDue { schedule, now });
        }
        let config = &new.shared.config;
        let handler = config.handlers.iter().find(|handler| handler.name.as_str() == H::NAME);
        let handler = handler.ok_or_else(|| SchedulingError::NoHandler {
            handler: H::NAME.to_owned(),
            name: new.name.clone(),
        })?;
        Ok(Self {
            name,
            handler: handler.name.clone(),
            group: new.group.unwrap_or_else(|| H::GROUP.to_owned()),
            schedule,
            payload: payload::<H>(&new.name, new.payload)?,
            by: new.by,
            shared: Arc::clone(&new.shared),
        })
    }

    pub(super) async fn make(self, store: &dyn Store) -> Answer<Scheduled> {
        let group = self.checked(store).await?;
        let config = &self.shared.config;
        let request = MakeRequest {
            group: group.clone(),
            name: self.name.clone(),
            what: Making::Make {
                handler: self.handler,
                schedule: self.schedule.shared_text(),
                payload: self.payload.into(),
            },
            by: self.by,
            writer: Writer::new(&config.version, &config.time_zones),
        };
        let (changed, new, at) = match store.make(request).await.map_err(SchedulingError::Store)? {
            MadeReply::Done { at, new, .. } => (true, new, at),
            MadeReply::Same { at, .. } => (false, false, at),
            MadeReply::Full { schedules } => {
                let group = group.to_string();
                return Err(SchedulingError::TooMany { group, schedules });
            }
            MadeReply::Taken | MadeReply::Nothing => {
                return Err(SchedulingError::NameTaken {
                    name: self.name.to_string(),
                    of: format!("a job that the group `{group}` has, or has had"),
                });
            }
        };
        Ok(Scheduled {
            group,
            next: self.schedule.next(self.shared.fleet_now()),
            job: self.name,
            changed,
            new,
            at,
        })
    }

    /// The group, where the fleet elects it and has no job of the name.
    async fn checked(&self, store: &dyn Store) -> Answer<GroupName> {
        let (config, name) = (&self.shared.config, self.name.as_str());
        let taken = |of: String| {
            let name = name.to_owned();
            Err(SchedulingError::NameTaken { name, of })
        };
        let jobs = config.jobs.iter().map(|job| &job.name);
        let lives = config.lives.iter().map(|life| &life.name);
        let handlers = config.handlers.iter().map(|handler| &handler.name);
        if jobs.chain(lives).chain(handlers).any(|other| other.as_str() == name) {
            return taken("a job of the program".to_owned());
        }
        let roster = store.roster().await.map_err(SchedulingError::Unread)?;
        let members = fleet::members(&roster);
        for member in &members {
            if member.jobs.values().any(|jobs| jobs.contains_key(name)) {
                return taken(format!("a job that the instance {} has", member.instance));
            }
        }
        find::group(&self.shared, &members, &self.group)
    }
}

fn schedule<H>(new: &NewSchedule<H>) -> Result<Schedule, ScheduleError> {
    let schedule = match &new.when {
        When::Cron(expr) => Schedule::cron_with(expr, new.days)?,
        When::Every(period) if new.days == Days::Unsaid => Schedule::every(period)?,
        When::Every(period) => return Err(ScheduleError::Days { expr: period.clone() }),
    };
    match &new.timezone {
        Some(name) => schedule.in_zone(Zone::new(name)?),
        None => Ok(schedule),
    }
}

/// The payload, as the handler will be given it.
fn payload<H: Handler>(name: &str, given: Option<Result<String, String>>) -> Answer<String> {
    let refuse = |reason: String| SchedulingError::Payload {
        handler: H::NAME.to_owned(),
        reason,
    };
    let missing = given.is_none();
    let json = given.unwrap_or_else(|| Ok(NOTHING.to_owned())).map_err(refuse)?;
    if json.len() > MAX_PAYLOAD {
        return Err(SchedulingError::PayloadTooLong {
            name: name.to_owned(),
            bytes: json.len(),
        });
    }
    match read::<H::Payload>(Some(&json)) {
        Ok(_) => Ok(json),
        Err(_) if missing => Err(refuse(
            "there is none, and it takes one: give it with `.with(&..)`".to_owned(),
        )),
        Err(error) => Err(refuse(format!("it does not read what it writes: {error}"))),
    }
}

impl Unscheduling {
    pub(super) async fn end(self, store: &dyn Store) -> Answer<Unscheduled> {
        let (group, job) = self.found(store).await?;
        let config = &self.shared.config;
        let request = MakeRequest {
            group: group.clone(),
            name: job.clone(),
            what: Making::End,
            by: self.by,
            writer: Writer::new(&config.version, &config.time_zones),
        };
        match store.make(request).await.map_err(SchedulingError::Store)? {
            MadeReply::Done { at, .. } => Ok(Unscheduled { group, job, at }),
            _ => Err(SchedulingError::NotScheduled {
                name: self.name,
                groups: format!("`{group}`"),
            }),
        }
    }

    async fn found(&self, store: &dyn Store) -> Answer<(GroupName, JobName)> {
        let name = JobName::new(self.name.clone())?;
        if let Some(group) = &self.group {
            let roster = store.roster().await.map_err(SchedulingError::Unread)?;
            return Ok((find::group(&self.shared, &fleet::members(&roster), group)?, name));
        }
        let found = find::named(&self.shared, store, name.as_str())
            .await
            .map_err(SchedulingError::Unread)?;
        let mut groups: Vec<_> = found.into_iter().map(|(group, _)| group).collect();
        match groups.len() {
            0 => Err(SchedulingError::NotScheduled {
                name: self.name.clone(),
                groups: find::listed(self.shared.gates.iter().map(|gate| gate.group().as_str())),
            }),
            1 => Ok((groups.remove(0), name)),
            _ => Err(SchedulingError::Ambiguous {
                name: self.name.clone(),
                groups: find::listed(groups.iter().map(GroupName::as_str)),
            }),
        }
    }
}

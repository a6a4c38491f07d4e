//! What instances say of themselves in the roster, and what it means for the elections.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::config::Config;
use crate::election::placement::{self, Fitness, Version};
use crate::names::{GroupName, Holder};
use crate::schedule::planning::Offset;
use crate::store::{Line, Roster};

/// What stands for the schedule of a handler.
pub(crate) const HANDLER: &str = "handler";

/// An instance as the roster knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Member {
    /// Its id.
    pub instance: String,
    /// The program that it runs.
    pub service: String,
    /// The program's version; empty when it was not given.
    pub version: String,
    /// The version of this library in it.
    pub library: String,
    /// When it started, by its own clock.
    pub started_at: Option<Timestamp>,
    /// Its last sign of life, by the store's clock.
    pub last_seen: Timestamp,
    /// Whether it is shutting down.
    pub draining: bool,
    /// Whether its runtime runs no bodies at present, so that it stays out of the elections.
    pub wedged: bool,
    /// The groups in whose elections it takes part.
    pub candidate_for: BTreeSet<String>,
    /// The groups that it led at its last sign of life.
    pub leads: BTreeSet<String>,
    /// Its jobs by group: the name, and the schedule in effect; of a handler `handler`.
    pub jobs: BTreeMap<String, BTreeMap<String, String>>,
    /// What it was labelled with.
    pub labels: BTreeMap<String, String>,
    /// How long its leases live. All instances of a fleet should have the same.
    pub ttl: Duration,
    /// The version of the time zone database that its schedules are read with: that of the build, or `system` and that of its
    /// machine; empty when it does not say.
    pub time_zones: String,
    /// How far its wall clock is ahead of the store's; `None` before it has been measured.
    pub clock_offset: Option<SignedDuration>,
    /// How far that may be off; `None` before it has been measured.
    pub clock_error: Option<Duration>,
    pub(crate) holder: Holder,
    pub(crate) machine: String,
    /// The names that its jobs had before, by group, each with the one that it has now.
    pub(crate) was: BTreeMap<String, BTreeMap<String, String>>,
    /// Those of its jobs that need no leader, by group.
    pub(crate) unled: BTreeMap<String, BTreeSet<String>>,
}

/// What stays the same from one sign of life to the next. Unknown fields are a newer version's.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Introduction {
    version: String,
    library: String,
    started_at: Option<Timestamp>,
    draining: bool,
    wedged: bool,
    doubt: Doubt,
    groups: BTreeSet<String>,
    jobs: BTreeMap<String, BTreeMap<String, String>>,
    /// The names that jobs had before, by group, each with the one that it has now.
    was: BTreeMap<String, BTreeMap<String, String>>,
    /// Those of the jobs that need no leader, by group.
    unled: BTreeMap<String, BTreeSet<String>>,
    labels: BTreeMap<String, String>,
    ttl_ms: u64,
    time_zones: String,
    machine: String,
}

/// What an instance holds against the store's clock; by how much its own differs, each sign of life says. When it changes, all read
/// the roster and judge: those whose own clock is right, too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Doubt {
    /// Its wall clock disagrees.
    pub(crate) astray: bool,
    /// So do those of most of the fleet, as it sees them.
    pub(crate) disputes: bool,
}

/// What changes.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Beat {
    leads: BTreeSet<String>,
    offset_us: Option<i64>,
    error_us: Option<u64>,
}

/// The introduction of an instance, as text.
pub(crate) fn introduction(
    config: &Config,
    started_at: Timestamp,
    draining: bool,
    wedged: bool,
    doubt: Doubt,
) -> String {
    let mut jobs: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
    let scheduled = config
        .jobs
        .iter()
        .map(|job| (&job.group, &job.name, job.rule.schedule.to_string()));
    let live = config
        .lives
        .iter()
        .map(|life| (&life.group, &life.name, "while leading".to_owned()));
    // Whoever lacks one cannot run the schedules that are made for it.
    let handlers = config
        .handlers
        .iter()
        .map(|handler| (&handler.group, &handler.name, HANDLER.to_owned()));
    for (group, job, schedule) in scheduled.chain(live).chain(handlers) {
        jobs.entry(group.to_string())
            .or_default()
            .insert(job.to_string(), schedule);
    }
    let mut was: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
    for job in &config.jobs {
        for old in &job.was {
            let of_group = was.entry(job.group.to_string()).or_default();
            of_group.insert(old.to_string(), job.name.to_string());
        }
    }
    let mut unled: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for job in config.jobs.iter().filter(|job| job.is_unled()) {
        let of_group = unled.entry(job.group.to_string()).or_default();
        of_group.insert(job.name.to_string());
    }
    let groups = config.groups.iter().filter(|group| config.candidacy.has(group));
    text(&Introduction {
        version: config.version.clone(),
        library: env!("CARGO_PKG_VERSION").to_owned(),
        started_at: Some(started_at),
        draining,
        wedged,
        doubt,
        groups: groups.map(ToString::to_string).collect(),
        jobs,
        was,
        unled,
        labels: config.labels.clone(),
        ttl_ms: u64::try_from(config.timing.ttl().as_millis()).unwrap_or(u64::MAX),
        time_zones: config.time_zones.clone(),
        machine: config.machine.clone(),
    })
}

/// A sign of life, as text.
pub(crate) fn beat<'a>(leads: impl Iterator<Item = &'a GroupName>, offset: Option<Offset>) -> String {
    text(&Beat {
        leads: leads.map(ToString::to_string).collect(),
        offset_us: offset.and_then(|offset| i64::try_from(offset.by.as_micros()).ok()),
        error_us: offset.and_then(|offset| u64::try_from(offset.error.as_micros()).ok()),
    })
}

fn text(value: &impl Serialize) -> String {
    // Maps with keys of text, and nothing else that JSON cannot spell.
    serde_json::to_string(value).unwrap_or_default()
}

/// The members of a fleet, by id. What a member says that makes no sense is left out, and the member is not.
pub(crate) fn members(roster: &Roster) -> Vec<Member> {
    let mut members: Vec<_> = roster.lines.iter().map(member).collect();
    members.sort_by(|a, b| (&a.instance, &a.holder).cmp(&(&b.instance, &b.holder)));
    members
}

fn member(line: &Line) -> Member {
    let said: Introduction = serde_json::from_str(&line.introduction).unwrap_or_default();
    let beat: Beat = serde_json::from_str(&line.beat).unwrap_or_default();
    Member {
        instance: line.holder.instance().to_owned(),
        service: line.service.clone(),
        version: said.version,
        library: said.library,
        started_at: said.started_at,
        last_seen: line.seen,
        draining: said.draining,
        wedged: said.wedged,
        candidate_for: said.groups,
        leads: beat.leads,
        jobs: said.jobs,
        labels: said.labels,
        ttl: Duration::from_millis(said.ttl_ms),
        time_zones: said.time_zones,
        clock_offset: beat.offset_us.map(SignedDuration::from_micros),
        clock_error: beat.error_us.map(Duration::from_micros),
        holder: line.holder.clone(),
        machine: said.machine,
        was: said.was,
        unled: said.unled,
    }
}

impl Member {
    fn is_eligible(&self, group: &str) -> bool {
        !self.draining && !self.wedged && self.candidate_for.contains(group)
    }

    fn fitness(&self, group: &str) -> Fitness {
        Fitness {
            covered: self.jobs.get(group).map_or(0, BTreeMap::len),
            version: Version::read(&self.version),
        }
    }
}

/// The members besides `own` that may lead a group.
fn rivals<'a>(members: &'a [Member], own: &'a Holder, group: &'a str) -> impl Iterator<Item = &'a Member> {
    members
        .iter()
        .filter(move |member| member.holder != *own && member.is_eligible(group))
}

fn own_fitness(members: &[Member], own: &Holder, group: &str) -> Option<Fitness> {
    let own = members.iter().find(|member| member.holder == *own)?;
    Some(own.fitness(group))
}

/// How long `own` leaves a vacancy of a group to others; `last_leader` is the one whose lead has just ended.
pub(crate) fn yields(
    members: &[Member],
    own: &Holder,
    group: &str,
    last_leader: Option<&str>,
    ttl: Duration,
) -> Duration {
    let Some(fitness) = own_fitness(members, own, group) else {
        return Duration::ZERO;
    };
    let others: Vec<_> = rivals(members, own, group)
        .filter(|member| Some(member.instance.as_str()) != last_leader)
        .map(|member| member.fitness(group))
        .collect();
    placement::yields(&fitness, &others, ttl)
}

/// A member that has more jobs of a group than `own`, and that a leader makes way for.
pub(crate) fn better_covered<'a>(members: &'a [Member], own: &'a Holder, group: &'a str) -> Option<&'a Member> {
    let covered = own_fitness(members, own, group)?.covered;
    rivals(members, own, group).find(|member| member.fitness(group).covered > covered)
}

/// The member that a group belongs to: of those that fit it best, the one that the group prefers.
pub(crate) fn preferred<'a>(members: &'a [Member], group: &str) -> Option<&'a Member> {
    let eligible = || members.iter().filter(|member| member.is_eligible(group));
    let best = eligible().map(|member| member.fitness(group)).max()?;
    eligible()
        .filter(|member| member.fitness(group) == best)
        .min_by_key(|member| (placement::preference(group, &member.instance), &member.holder))
}

/// Jobs of a group that other members have and `own` lacks, each with one that has it. A job that one of the two has renamed is the same, and
/// one that needs no leader is run by whoever has it.
pub(crate) fn uncovered(members: &[Member], own: &Holder, group: &str) -> BTreeMap<String, String> {
    let jobs_of = |member: &Member| member.jobs.get(group).cloned().unwrap_or_default();
    let Some(we) = members.iter().find(|member| member.holder == *own) else {
        return BTreeMap::new();
    };
    let ours = jobs_of(we);
    let renamed = |member: &Member, job: &String| {
        let ours_now = we.was.get(group).and_then(|was| was.get(job));
        let was = member.was.get(group);
        let mut before = was.into_iter().flatten().filter(|(_, now)| *now == job);
        ours_now.is_some_and(|now| ours.contains_key(now)) || before.any(|(old, _)| ours.contains_key(old))
    };
    let unled = |member: &Member, job: &String| member.unled.get(group).is_some_and(|jobs| jobs.contains(job));
    let others = members.iter().filter(|member| member.holder != *own);
    others
        .flat_map(|member| jobs_of(member).into_keys().map(move |job| (job, member)))
        .filter(|(job, member)| !ours.contains_key(job) && !renamed(member, job) && !unled(member, job))
        .map(|(job, member)| (job, member.instance.clone()))
        .collect()
}

/// Whether the schedule that a `stored` version wrote for a job goes before that of `ours`: that version is newer, and one that is at least
/// as new lives and has the job. Who has not found itself in the roster yet cannot know that none does.
pub(crate) fn newer_lives(
    members: &[Member],
    own: &Holder,
    (group, job): (&str, &str),
    stored: &str,
    ours: &str,
) -> bool {
    let (stored, ours) = (Version::read(stored), Version::read(ours));
    if stored <= ours {
        return false;
    }
    let has = |member: &&Member| member.jobs.get(group).is_some_and(|jobs| jobs.contains_key(job));
    let mut others = members.iter().filter(|member| member.holder != *own).filter(has);
    let known = members.iter().any(|member| member.holder == *own);
    !known || others.any(|member| Version::read(&member.version) >= stored)
}

/// The members that read schedules with another version of the time zone database than `ours`.
pub(crate) fn of_other_time_zones<'a>(
    members: &'a [Member],
    own: &'a Holder,
    ours: &'a str,
) -> impl Iterator<Item = &'a Member> {
    // One version is the same wherever it comes from.
    let data = |version: &'a str| version.strip_prefix("system ").unwrap_or(version);
    let others = members.iter().filter(move |member| member.holder != *own);
    others.filter(move |member| !member.time_zones.is_empty() && data(&member.time_zones) != data(ours))
}

/// How far the wall clocks of the other machines are ahead of the store's, as their instances said that still show signs of life: two
/// in each TTL. They are compared with the freshest line, because the store's clock itself is in question.
///
/// The instances of one machine have one clock, and one voice, that of the freshest line: many of them prove no more than one, and neither
/// does one that is started again and again.
pub(crate) fn offsets(members: &[Member], own: &Holder, machine: &str, ttl: Duration) -> Vec<SignedDuration> {
    let newest = members.iter().map(|member| member.last_seen).max();
    let is_fresh = |member: &&Member| {
        let silent = newest.map_or(Duration::ZERO, |newest| {
            newest.duration_since(member.last_seen).unsigned_abs()
        });
        member.holder != *own && silent <= ttl.max(member.ttl)
    };
    let mut voices: BTreeMap<&str, &Member> = BTreeMap::new();
    let mut offsets = Vec::new();
    for member in members.iter().filter(is_fresh) {
        match member.machine.as_str() {
            // An older version, which does not say where it runs.
            "" => offsets.extend(member.clock_offset),
            ours if ours == machine => {}
            other if member.clock_offset.is_some() => {
                let voice = voices.entry(other).or_insert(member);
                if member.last_seen > voice.last_seen {
                    *voice = member;
                }
            }
            _ => {}
        }
    }
    offsets.extend(voices.values().filter_map(|member| member.clock_offset));
    offsets
}

#[cfg(test)]
mod tests;

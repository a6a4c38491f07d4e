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
    /// Its jobs by group: the name, and the schedule in effect.
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
    for (group, job, schedule) in scheduled.chain(live) {
        jobs.entry(group.to_string())
            .or_default()
            .insert(job.to_string(), schedule);
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

/// Jobs of a group that other members have and `own` lacks, each with one that has it.
pub(crate) fn uncovered(members: &[Member], own: &Holder, group: &str) -> BTreeMap<String, String> {
    let jobs_of = |member: &Member| member.jobs.get(group).cloned().unwrap_or_default();
    let Some(ours) = members.iter().find(|member| member.holder == *own).map(jobs_of) else {
        return BTreeMap::new();
    };
    let others = members.iter().filter(|member| member.holder != *own);
    others
        .flat_map(|member| jobs_of(member).into_keys().map(|job| (job, member.instance.clone())))
        .filter(|(job, _)| !ours.contains_key(job))
        .collect()
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
mod tests {
    use super::*;

    const TTL: Duration = Duration::from_secs(10);

    fn member(id: &str, version: &str, jobs: &[&str]) -> Member {
        let said = Introduction {
            version: version.to_owned(),
            groups: ["default".to_owned()].into(),
            jobs: [(
                "default".to_owned(),
                jobs.iter().map(|job| ((*job).to_owned(), String::new())).collect(),
            )]
            .into(),
            ..Introduction::default()
        };
        super::member(&Line {
            holder: holder(id),
            service: "shop".to_owned(),
            seen: Timestamp::UNIX_EPOCH,
            beat: "nonsense".to_owned(),
            introduction: text(&said),
        })
    }

    fn holder(id: &str) -> Holder {
        Holder::from_store(&format!("{id}#1"))
    }

    #[test]
    fn a_vacancy_is_left_to_the_better_covered_unless_it_has_just_led() {
        let fleet = [
            member("a", "1", &["x"]),
            member("b", "1", &["x", "y"]),
            member("c", "2", &["x"]),
        ];
        let wait = |own: &str, last: Option<&str>| yields(&fleet, &holder(own), "default", last, TTL);
        assert_eq!(wait("a", None), TTL);
        assert_eq!(wait("b", None), Duration::ZERO);
        assert_eq!(wait("c", Some("b")), Duration::ZERO);
        let newer = wait("a", Some("b"));
        assert!(newer > Duration::ZERO && newer < TTL);
        // Nobody waits before the roster knows it, or in a group that is nobody else's.
        assert_eq!(wait("z", None), Duration::ZERO);
        assert_eq!(yields(&fleet, &holder("a"), "other", None, TTL), Duration::ZERO);
    }

    #[test]
    fn one_that_leaves_or_is_wedged_is_not_waited_for() {
        let mut fleet = [member("a", "1", &[]), member("b", "1", &["x"])];
        assert_eq!(better_covered(&fleet, &holder("a"), "default").unwrap().instance, "b");
        for change in [
            |member: &mut Member| member.draining = true,
            |member: &mut Member| member.wedged = true,
        ] {
            let mut fleet = fleet.clone();
            change(&mut fleet[1]);
            assert_eq!(yields(&fleet, &holder("a"), "default", None, TTL), Duration::ZERO);
            assert!(better_covered(&fleet, &holder("a"), "default").is_none());
        }
        fleet[1].candidate_for.clear();
        assert_eq!(yields(&fleet, &holder("a"), "default", None, TTL), Duration::ZERO);
    }

    #[test]
    fn a_group_prefers_one_of_those_that_fit_it_best() {
        let fleet = |ids: &[&str]| ids.iter().map(|id| member(id, "1", &["x"])).collect::<Vec<_>>();
        let choice = |members: &[Member]| preferred(members, "default").map(|member| member.instance.clone());
        let three = choice(&fleet(&["a", "b", "c"])).unwrap();
        // Whoever goes, the others' groups stay where they are.
        for gone in ["a", "b", "c"].into_iter().filter(|id| *id != three) {
            let rest: Vec<_> = ["a", "b", "c"].into_iter().filter(|id| *id != gone).collect();
            assert_eq!(choice(&fleet(&rest)).as_deref(), Some(three.as_str()));
        }
        let mut better = fleet(&["a", "b", "c"]);
        better.push(member("d", "1", &["x", "y"]));
        assert_eq!(choice(&better).as_deref(), Some("d"));
        better[3].wedged = true;
        assert_eq!(choice(&better), Some(three));
        assert_eq!(choice(&[]), None);
    }

    #[test]
    fn members_of_another_time_zone_version_are_found() {
        let mut fleet = [member("a", "1", &[]), member("b", "1", &[]), member("c", "1", &[])];
        let own = holder("a");
        let others = |fleet: &[Member], ours: &str| {
            let others = of_other_time_zones(fleet, &own, ours);
            others.map(|member| member.instance.clone()).collect::<Vec<_>>()
        };
        // Older libraries say nothing of it.
        assert_eq!(others(&fleet, "2026f"), [""; 0]);
        fleet[0].time_zones = "1999a".to_owned();
        fleet[1].time_zones = "system 2026f".to_owned();
        fleet[2].time_zones = "2026e".to_owned();
        assert_eq!(others(&fleet, "2026f"), ["c"]);
        assert_eq!(others(&fleet, "system 2026e"), ["b"]);
        // A version that nobody knows may be any.
        assert_eq!(others(&fleet, "system"), ["b", "c"]);
        fleet[1].time_zones = "system".to_owned();
        assert_eq!(others(&fleet, "system"), ["c"]);
    }

    #[test]
    fn a_sign_of_life_tells_the_offset_and_its_error() {
        let offset = Offset {
            by: SignedDuration::from_secs(-3600),
            error: Duration::from_millis(2),
        };
        let beat = |beat: &str| {
            let line = Line {
                holder: holder("a"),
                service: "shop".to_owned(),
                seen: Timestamp::UNIX_EPOCH,
                beat: beat.to_owned(),
                introduction: String::new(),
            };
            let member = super::member(&line);
            (member.clock_offset, member.clock_error)
        };
        let said = (Some(offset.by), Some(offset.error));
        assert_eq!(beat(&super::beat([].iter(), Some(offset))), said);
        assert_eq!(beat(&super::beat([].iter(), None)), (None, None));
        // One of an older version.
        let older = (Some(SignedDuration::from_micros(-5)), None);
        assert_eq!(beat(r#"{"leads":["x"],"offset_us":-5}"#), older);
    }

    #[test]
    fn only_fresh_members_have_a_say_in_whose_clock_is_right() {
        let fleet: Vec<_> = [
            ("a", 0, Some(1)),
            ("b", 20, Some(2)),
            ("c", 25, None),
            ("d", 31, Some(4)),
        ]
        .into_iter()
        .map(|(id, seen, offset)| Member {
            last_seen: Timestamp::from_second(seen).unwrap(),
            clock_offset: offset.map(SignedDuration::from_secs),
            ..member(id, "1", &[])
        })
        .collect();
        let seconds = |own: &str| -> Vec<_> {
            let offsets = offsets(&fleet, &holder(own), "", TTL);
            offsets.into_iter().map(|offset| offset.as_secs()).collect()
        };
        assert_eq!(seconds("a"), [4]);
        assert_eq!(seconds("d"), [] as [i64; 0]);
        let slower: Vec<_> = fleet
            .iter()
            .cloned()
            .map(|member| Member { ttl: 4 * TTL, ..member })
            .collect();
        assert_eq!(offsets(&slower, &holder("z"), "", TTL).len(), 3);
        assert!(offsets(&[], &holder("z"), "", TTL).is_empty());
    }

    /// One that is started again and again leaves many lines, and has one clock.
    #[test]
    fn a_machine_has_one_voice() {
        let on = |machine: &str, seen: i64, offset: i64| Member {
            last_seen: Timestamp::from_second(seen).unwrap(),
            clock_offset: Some(SignedDuration::from_secs(offset)),
            machine: machine.to_owned(),
            ..member(&format!("i{seen}"), "1", &[])
        };
        let fleet = [
            on("bad", 10, 3600),
            on("bad", 12, 3601),
            on("bad", 11, 3602),
            on("good", 13, 0),
            on("ours", 14, 7),
            on("", 15, 1),
            on("", 16, 2),
        ];
        let seconds: Vec<_> = (offsets(&fleet, &holder("z"), "ours", TTL).into_iter())
            .map(|offset| offset.as_secs())
            .collect();
        assert_eq!(seconds, [1, 2, 3601, 0]);
    }

    #[test]
    fn what_a_leader_lacks_is_named() {
        let fleet = [member("a", "1", &["x"]), member("b", "1", &["x", "y"])];
        let lacks = uncovered(&fleet, &holder("a"), "default");
        assert_eq!(lacks, [("y".to_owned(), "b".to_owned())].into());
        assert!(uncovered(&fleet, &holder("b"), "default").is_empty());
    }
}

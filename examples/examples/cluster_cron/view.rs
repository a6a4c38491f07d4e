//! What the fleet looks like at one moment, as text.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use jiff::Timestamp;
use leader_core::LedgerError;

use crate::fleet::{Fleet, State};
use crate::jobs::GROUPS;
use crate::report::Report;

/// How many ticks are shown.
const SHOWN: usize = 30;
const RUNNING: &str = "running";

/// A group: who leads it, and who would.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupLine {
    pub group: &'static str,
    pub leader: Option<&'static str>,
    pub draining: bool,
    pub since: String,
    pub term: u64,
    pub standby: Vec<&'static str>,
}

impl GroupLine {
    fn of(fleet: &Fleet, group: &'static str) -> Self {
        let holder = fleet
            .members
            .iter()
            .find(|member| member.leads(group) || member.drains(group));
        let statuses = holder.map(|leader| leader.instance.groups()).unwrap_or_default();
        let status = statuses.iter().find(|status| status.group.as_str() == group);
        let standing_by = |member: &&crate::fleet::Member| {
            member.state() == State::Alive && holder.is_none_or(|leader| leader.name != member.name)
        };
        Self {
            group,
            leader: holder.map(|leader| leader.name),
            draining: holder.is_some_and(|leader| !leader.leads(group)),
            since: status.and_then(|status| status.since).map(clock).unwrap_or_default(),
            term: status.map_or(0, |status| status.term),
            standby: fleet
                .members
                .iter()
                .filter(standing_by)
                .map(|member| member.name)
                .collect(),
        }
    }

    fn leader(&self) -> String {
        match self.leader {
            Some(leader) if self.draining => format!("{leader} (draining)"),
            Some(leader) => leader.to_owned(),
            None => "nobody".to_owned(),
        }
    }
}

/// One tick, or several in a row that did not run.
#[derive(Clone, Debug)]
pub struct TickLine {
    pub job: String,
    pub group: String,
    pub tick: Timestamp,
    pub instance: String,
    pub fence: u64,
    pub lag: String,
    pub outcome: &'static str,
}

/// Everything.
#[derive(Debug)]
pub struct View {
    pub groups: Vec<GroupLine>,
    pub members: Vec<(&'static str, State)>,
    /// Newest first.
    pub ticks: Vec<TickLine>,
    pub report: Report,
}

impl View {
    pub async fn of(fleet: &Fleet) -> Result<Self, LedgerError> {
        let observer = &fleet.observer;
        let report = Report::read(fleet, Timestamp::now()).await?;
        let mut ticks = Vec::new();
        for job in observer.jobs() {
            let ledger = observer.ledger(job.name.as_str()).await?;
            let line = |tick, instance: &str, fence, outcome| TickLine {
                job: job.name.to_string(),
                group: job.group.to_string(),
                tick,
                instance: instance.to_owned(),
                fence,
                lag: match fleet.log.lag(job.name.as_str(), tick) {
                    Some(lag) if fence != 0 => format!("{} ms", lag.as_millis()),
                    _ => "-".to_owned(),
                },
                outcome,
            };
            let open = ledger
                .open
                .iter()
                .map(|run| line(run.tick, &run.instance, run.fence, RUNNING));
            let decided = ledger.records.iter().take(SHOWN);
            let decided =
                decided.map(|record| line(record.last, &record.instance, record.fence, record.outcome.as_str()));
            ticks.extend(open.chain(decided));
        }
        ticks.sort_by_key(|line: &TickLine| std::cmp::Reverse((line.tick, line.fence)));
        ticks.truncate(SHOWN);
        Ok(Self {
            groups: GROUPS.iter().map(|group| GroupLine::of(fleet, group)).collect(),
            members: fleet
                .members
                .iter()
                .map(|member| (member.name, member.state()))
                .collect(),
            ticks,
            report,
        })
    }

    /// A screen of at most `height` lines.
    pub fn screen(&self, height: usize, head: &str, foot: &[String]) -> Vec<String> {
        let mut lines = vec![bold(head), String::new()];
        lines.push(dim(&format!(
            "{:<10}{:<20}{:<10}{:<18}{}",
            "GROUP", "LEADER", "SINCE", "TERM", "STANDING BY"
        )));
        for group in &self.groups {
            let leader = format!("{:<20}", group.leader());
            let leader = if group.leader.is_some() {
                green(&leader)
            } else {
                red(&leader)
            };
            let term = if group.term == 0 {
                String::new()
            } else {
                group.term.to_string()
            };
            let standby = group.standby.join(", ");
            lines.push(format!(
                "{:<10}{leader}{:<10}{term:<18}{standby}",
                group.group, group.since
            ));
        }
        lines.push(String::new());
        lines.push(dim(&format!("{:<10}{:<10}{}", "INSTANCE", "STATE", "LEADS")));
        for (name, state) in &self.members {
            let led: Vec<_> = self.groups.iter().filter(|group| group.leader == Some(*name)).collect();
            let led: Vec<_> = led.iter().map(|group| group.group).collect();
            let word = format!("{:<10}", state.as_str());
            let word = if *state == State::Alive {
                green(&word)
            } else {
                red(&word)
            };
            lines.push(format!("{name:<10}{word}{}", led.join(", ")));
        }
        lines.push(String::new());
        lines.push(dim(&format!(
            "{:<9}{:<15}{:<8}{:<6}{:<17}{:<8}{}",
            "TICK", "JOB", "GROUP", "ON", "FENCE", "LAG", "OUTCOME"
        )));
        let room = height.saturating_sub(lines.len() + foot.len() + 3);
        for line in self.ticks.iter().take(room) {
            let outcome = match line.outcome {
                "ran.ok" => green(line.outcome),
                RUNNING => line.outcome.to_owned(),
                _ => red(line.outcome),
            };
            let fence = if line.fence == 0 {
                "-".to_owned()
            } else {
                line.fence.to_string()
            };
            lines.push(format!(
                "{:<9}{:<15}{:<8}{:<6}{fence:<17}{:<8}{outcome}",
                clock(line.tick),
                line.job,
                line.group,
                line.instance,
                line.lag,
            ));
        }
        lines.push(String::new());
        lines.push(self.report.line());
        lines.extend(foot.iter().cloned());
        lines
    }
}

/// Tells of changes, line by line, where there is no terminal to redraw.
#[derive(Debug, Default)]
pub struct Changes {
    groups: BTreeMap<&'static str, GroupLine>,
    members: BTreeMap<&'static str, State>,
    told: BTreeSet<(String, Timestamp)>,
}

impl Changes {
    /// What is new since the last view.
    pub fn since(&mut self, view: &View) -> String {
        let mut text = String::new();
        let now = clock(Timestamp::now());
        for (name, state) in &view.members {
            if self.members.insert(name, *state) != Some(*state) {
                let _ = writeln!(text, "{now} {name} is {}", state.as_str());
            }
        }
        for group in &view.groups {
            if self.groups.insert(group.group, group.clone()).as_ref() == Some(group) {
                continue;
            }
            let standby = if group.standby.is_empty() {
                "nobody".to_owned()
            } else {
                group.standby.join(", ")
            };
            let _ = match group.leader {
                Some(_) => writeln!(
                    text,
                    "{now} {}: {} leads since {} (term {}), standing by: {standby}",
                    group.group,
                    group.leader(),
                    group.since,
                    group.term
                ),
                None => writeln!(text, "{now} {}: nobody leads, standing by: {standby}", group.group),
            };
        }
        for line in view.ticks.iter().rev().filter(|line| line.outcome != RUNNING) {
            if self.told.insert((line.job.clone(), line.tick)) {
                let (
                    tick,
                    TickLine {
                        job,
                        group,
                        instance,
                        fence,
                        lag,
                        outcome,
                        ..
                    },
                ) = (clock(line.tick), line);
                let _ = writeln!(
                    text,
                    "{now} tick {tick} {group}/{job} {instance} fence {fence} lag {lag}: {outcome}"
                );
            }
        }
        text
    }
}

fn clock(at: Timestamp) -> String {
    at.strftime("%H:%M:%S").to_string()
}

fn bold(text: &str) -> String {
    format!("\x1b[1m{text}\x1b[0m")
}

fn dim(text: &str) -> String {
    format!("\x1b[2m{text}\x1b[0m")
}

fn green(text: &str) -> String {
    format!("\x1b[32m{text}\x1b[0m")
}

fn red(text: &str) -> String {
    format!("\x1b[31m{text}\x1b[0m")
}
